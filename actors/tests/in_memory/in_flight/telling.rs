//! Which record is at fault, of several in flight, and what it keeps from others.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use kafka_troupe_proto::group::Then;

use super::super::failing::{order, status};
use super::*;

fn limits() -> [InFlight; 2] {
    [InFlight::window(4), InFlight::by_key(4)]
}

fn soon(times: u32) -> FailurePolicy {
    FailurePolicy::retry(times).backoff(Duration::from_millis(100), Duration::from_secs(1))
}

#[test]
fn a_decoder_that_panics_is_the_fault_of_its_record_and_of_no_other() {
    for (limit, times) in limits().into_iter().flat_map(|limit| [(limit, 0), (limit, 2)]) {
        on_paused_clock(async |world| {
            world.produce_keyed(0, 20, 20);
            let journal = Journal::default();
            // the one before it is with the handler then, and the only one
            let script: Script = Arc::new(|_, offset, _| Deed::After(if offset == 10 { 5_000 } else { 0 }));
            let worker = worker("a", limit, &journal, script);
            let decoder = |record: &Record| match record.offset() {
                11 => panic!("no such thing"),
                _ => Ok::<_, std::convert::Infallible>(()),
            };
            let subscription = Subscription::topic("orders").in_flight(limit).decoder(decoder);
            let subscription = subscription.on_failure(soon(times).then(Then::Skip));
            let builder = world.builder("a").subscription(subscription.handle(move || worker.clone()));
            let handle = builder.start().await.expect("it starts");
            until("all others are handled", || journal.order().iter().any(|(_, at)| *at == 19)).await;
            until("those before it are", || journal.handled(0) == 11).await;
            let stream = status(&handle).await.streams.remove(0);
            let skipped = stream.last_skipped.expect("one was");
            assert_eq!((stream.skipped, skipped.offset, skipped.attempts), (1, 11, times + 1));
            handle.shutdown().await;
            assert_eq!(world.stored_of(0), Some(20));
        });
    }
}

/// Answers that the fourth record is bad, and ends.
struct FailsFast;

impl Actor for FailsFast {
    type Context = Context<Self>;
}

impl Handler<Record> for FailsFast {
    type Result = HandlerResult;

    fn handle(&mut self, record: Record, ctx: &mut Context<Self>) -> HandlerResult {
        if record.offset() != 3 {
            return Ok(());
        }
        ctx.stop();
        Err("it is bad".into())
    }
}

#[test]
fn a_handler_that_answers_with_an_error_and_ends_falls_under_the_policy() {
    for limit in limits() {
        on_paused_clock(async |world| {
            world.produce_keyed(0, 20, 20);
            let subscription = Subscription::topic("orders").in_flight(limit);
            let subscription = subscription.on_failure(soon(2).then(Then::Skip));
            let builder = world.builder("a").subscription(subscription.handle(|| FailsFast));
            let handle = builder.start().await.expect("it starts");
            tokio::time::sleep(Duration::from_secs(60)).await;
            let stream = status(&handle).await.streams.remove(0);
            let skipped = stream.last_skipped.expect("one was");
            assert_eq!((stream.skipped, skipped.offset, skipped.attempts), (1, 3, 3));
            handle.shutdown().await;
            assert_eq!(world.stored_of(0), Some(20));
        });
    }
}

#[test]
fn records_that_wait_to_be_tried_again_hold_up_nobody_once_their_partition_is_paused() {
    for limit in limits() {
        on_paused_clock(async |world| {
            world.with_partitions(2);
            world.produce_keyed(0, 20, 20);
            let (journal, well) = (Journal::default(), Arc::<AtomicBool>::default());
            let is_well = Arc::clone(&well);
            let script: Script = Arc::new(move |partition, _, _| match partition {
                0 if !is_well.load(SeqCst) => Deed::Fail,
                _ => Deed::After(5),
            });
            let policy = FailurePolicy::retry(5).backoff(Duration::from_secs(60), Duration::from_secs(60));
            let handle = world.working_under(policy, worker("a", limit, &journal, script), &[]).await;
            until("it failed", || (0..4).all(|offset| journal.begun(0, offset) == 1)).await;
            world.produce_keyed(1, 20, 20);
            tokio::time::sleep(Duration::from_secs(5)).await;
            assert_eq!(journal.handled(1), 0, "there is no room");
            let paused = Instant::now();
            handle.pause([order(0)]).await.expect("it is ours");
            until("the other is handled", || journal.handled(1) == 20).await;
            assert!(paused.elapsed() < Duration::from_secs(2), "after {:?}", paused.elapsed());
            well.store(true, SeqCst);
            handle.resume([order(0)]).await.expect("it is ours");
            until("all is stored", || world.stored_of(0) == Some(20)).await;
            handle.shutdown().await;
        });
    }
}

/// Fails on partition 0, and counts what is begun after it said so.
#[derive(Clone, Default)]
struct Fails(Arc<AtomicBool>, Arc<AtomicUsize>);

impl Actor for Fails {
    type Context = Context<Self>;
}

impl Handler<Record> for Fails {
    type Result = ResponseFuture<HandlerResult>;

    fn handle(&mut self, record: Record, _: &mut Context<Self>) -> Self::Result {
        let Self(failed, begun) = self.clone();
        begun.fetch_add(failed.load(SeqCst).into(), SeqCst);
        Box::pin(async move {
            // all end at once
            tokio::time::sleep(Duration::from_millis(5)).await;
            if record.partition() == 0 {
                failed.store(true, SeqCst);
                return Err("it is bad".into());
            }
            Ok(())
        })
    }
}

#[test]
fn nothing_begins_once_a_policy_has_stopped_the_stream() {
    for limit in limits() {
        on_paused_clock(async |world| {
            world.with_partitions(2);
            world.produce_keyed(0, 1, 1);
            world.produce_keyed(1, 100, 100);
            let handler = Fails::default();
            let begun = Arc::clone(&handler.1);
            let subscription = Subscription::topic("orders").in_flight(limit);
            let subscription = subscription.on_failure(soon(0).then(Then::StopStream));
            let subscribed = subscription.handle(move || handler.clone());
            let handle = world.builder("a").subscription(subscribed).start().await.expect("it starts");
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert_eq!(status(&handle).await.halted.len(), 2);
            assert_eq!(begun.load(SeqCst), 0, "{limit:?}");
            handle.shutdown().await;
        });
    }
}
