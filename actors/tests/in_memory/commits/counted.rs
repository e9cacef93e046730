//! `commit_after`: a commit after so many records.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use kafka_troupe_actors::chaos::Vanish;
use kafka_troupe_actors::{RecordBatch, Subscription};
use kafka_troupe_proto::group::Then;
use kafka_troupe_proto::group::{FailurePolicy, InFlight};

use super::*;

/// No commit by time: the clock does not come that far.
const BY_COUNT: &[(&str, &str)] =
    &[("auto.offset.reset", "smallest"), ("auto.commit.interval.ms", "86400000")];

impl World {
    /// So many records in each partition, 10 in a batch.
    fn fill(&self, topic: &str, partitions: i32, each: usize) {
        (0..each / 10).for_each(|_| self.fill_with(topic, partitions, &["x"; 10]));
    }
}

/// Takes a millisecond for each record, counts it when it is done.
fn counts(
    handled: &Handled,
) -> impl Fn(Record) -> ResponseFuture<HandlerResult> + Clone + Send + Sync + Unpin + 'static {
    let handled = handled.clone();
    move |_| {
        let handled = handled.clone();
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            handled.0.fetch_add(1, SeqCst);
            Ok(())
        })
    }
}

/// How many records were handled.
#[derive(Clone, Default)]
struct Handled(Arc<AtomicU64>);

impl Handled {
    fn number(&self) -> u64 {
        self.0.load(SeqCst)
    }

    async fn reaches(&self, number: u64) {
        until(&format!("{number} are handled"), || self.number() >= number).await;
    }
}

/// A member that counts the records of "orders", and commits `after` so many.
async fn counting(world: &World, after: u32, streams: u32) -> (ConsumerHandle, Handled) {
    counting_with(world, BY_COUNT, after, streams).await
}

async fn counting_with(
    world: &World,
    properties: &[(&str, &str)],
    after: u32,
    streams: u32,
) -> (ConsumerHandle, Handled) {
    let handled = Handled::default();
    let builder = world.builder_of("a", properties).commit_after(after);
    let builder = builder.handle("orders", streams, Does::make(counts(&handled)));
    (builder.start().await.expect("it starts"), handled)
}

#[test]
fn a_handler_s_records_are_committed_after_so_many() {
    on_paused_clock(async |world| {
        let written = Written::of(&world);
        world.fill("orders", 1, 40);
        let (handle, handled) = counting(&world, 10, 1).await;
        handled.reaches(40).await;
        until("all is stored", || world.stored().as_deref() == Some("40")).await;
        handle.shutdown().await;
        assert_eq!(written.to("orders/0"), [0, 10, 20, 30, 40]);
    });
}

/// The first takes long, and nothing behind it is acknowledged meanwhile.
#[test]
fn of_several_in_flight_those_count_that_are_acknowledged() {
    on_paused_clock(async |world| {
        world.fill("orders", 1, 40);
        world.fill_with("orders", 1, &["x"; 5]);
        let slow = |record: Record| -> ResponseFuture<HandlerResult> {
            let millis = if record.offset() == 0 { 1_000 } else { 1 };
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                Ok(())
            })
        };
        let subscription = Subscription::topic("orders").in_flight(InFlight::window(20));
        let builder = world.builder_of("a", BY_COUNT).commit_after(10);
        let builder = builder.subscription(subscription.handle(Does::make(slow)));
        let handle = builder.start().await.expect("it starts");
        until("all is stored", || world.stored().as_deref() == Some("45")).await;
        handle.shutdown().await;
    });
}

#[test]
fn records_that_are_passed_over_count_as_well() {
    on_paused_clock(async |world| {
        world.fill("orders", 1, 10);
        let bad =
            |_: Record| -> ResponseFuture<HandlerResult> { Box::pin(async { Err("it is bad".into()) }) };
        let policy = FailurePolicy::retry(0).then(Then::Skip);
        let builder = world.builder_of("a", BY_COUNT).commit_after(10);
        let builder =
            builder.subscription(Subscription::topic("orders").on_failure(policy).handle(Does::make(bad)));
        let handle = builder.start().await.expect("it starts");
        until("all is stored", || world.stored().as_deref() == Some("10")).await;
        handle.shutdown().await;
    });
}

/// Handles batches up to the record at 7.
struct UpTo7;

impl Actor for UpTo7 {
    type Context = Context<Self>;
}

impl Handler<RecordBatch> for UpTo7 {
    type Result = HandlerResult;

    fn handle(&mut self, batch: RecordBatch, _: &mut Context<Self>) -> HandlerResult {
        batch.try_for_each(|record| if record.offset() == 7 { Err("it is bad".into()) } else { Ok(()) })
    }
}

#[test]
fn records_before_the_one_at_which_a_batch_failed_count_as_well() {
    on_paused_clock(async |world| {
        world.fill("orders", 1, 10);
        let builder = world.builder_of("a", BY_COUNT).commit_after(7);
        let builder = builder.subscription(Subscription::topic("orders").handle_batches(500, || UpTo7));
        let handle = builder.start().await.expect("it starts");
        until("what is handled is stored", || world.stored().as_deref() == Some("7")).await;
        handle.shutdown().await;
    });
}

#[test]
fn so_many_of_all_partitions_and_streams_together() {
    on_paused_clock(async |world| {
        let written = Written::of(&world);
        world.fill("orders", 4, 50);
        let (handle, handled) = counting(&world, 20, 4).await;
        handled.reaches(200).await;
        let values: Vec<_> = (0..4).map(|partition| written.to(&format!("orders/{partition}"))).collect();
        for values in values {
            // each handles one of four
            let steps: Vec<_> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(values[0] == 0 && steps.iter().all(|step| (4..=6).contains(step)), "{values:?}");
            // of 50 all but what one commit takes
            assert!(values.len() >= 9 && values.last() >= Some(&44), "{values:?}");
        }
        handle.shutdown().await;
    });
}

#[test]
fn a_puller_s_records_are_committed_after_so_many_whatever_it_waits_for() {
    on_paused_clock(async |world| {
        let written = Written::of(&world);
        world.fill("orders", 1, 40);
        let handle = world.builder_of("a", BY_COUNT).commit_after(8).pull("orders", 1).start();
        let handle = handle.await.expect("it starts");
        let mut stream = handle.streams("orders").remove(0);
        for _ in 0..40 {
            next(&mut stream).await;
            // lets the commit be done
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(written.to("orders/0"), [0, 8, 16, 24, 32], "the last is in hand");
        stream.ack();
        until("the last is stored", || world.stored().as_deref() == Some("40")).await;
        assert_eq!(written.to("orders/0"), [0, 8, 16, 24, 32, 40]);
        handle.shutdown().await;
    });
}

/// Each stream tells after some, and they need not be equally busy.
#[test]
fn so_many_are_counted_at_the_latest_however_many_streams_there_are() {
    on_paused_clock(async |world| {
        let written = Written::of(&world);
        world.fill_with("orders", 4, &["x"; 9]);
        for _ in 0..39 {
            world.brokers.append(&TopicPartition::new("orders", 3), &["x"; 10]);
        }
        let (handle, handled) = counting(&world, 320, 4).await;
        handled.reaches(426).await;
        let by_count = 27 + written.to("orders/3")[1];
        assert!((300..=320).contains(&by_count), "{by_count}");
        handle.shutdown().await;
    });
}

/// A commit takes as long as ten records: what comes meanwhile is for the next.
#[test]
fn commits_do_not_pile_up_when_they_are_slower_than_the_records() {
    on_paused_clock(async |world| {
        let written = Written::of(&world);
        // so that a commit is one write
        world.zookeeper.put("/consumers/g/offsets/orders", b"");
        world.zookeeper.set_pace(Arc::new(|| Duration::from_millis(5)));
        world.fill("orders", 1, 500);
        let (handle, handled) = counting(&world, 1, 1).await;
        handled.reaches(500).await;
        let actors = handle.metrics().await.expect("it runs").actors;
        let asked = actors.iter().find(|it| it.name == "offset-committer").expect("it is one").handled;
        assert!((40..70).contains(&asked), "it was asked {asked} times");
        handle.shutdown().await;
        let values = written.to("orders/0");
        assert!((40..=70).contains(&values.len()), "{} commits", values.len());
        assert!(values.is_sorted() && values.last() == Some(&500), "{values:?}");
    });
}

#[test]
fn an_added_member_commits_after_so_many_as_well() {
    on_paused_clock(async |world| {
        let written = Written::of(&world);
        world.fill("more", 1, 30);
        let builder = world.builder_of("a", BY_COUNT).commit_after(10).pull("orders", 1);
        let handle = builder.start().await.expect("it starts");
        let handled = Handled::default();
        handle.subscribe().handle("more", 1, Does::make(counts(&handled))).start().await.expect("it starts");
        handled.reaches(30).await;
        handle.shutdown().await;
        assert_eq!(written.to("more/0"), [0, 10, 20, 30]);
    });
}

#[test]
fn a_commit_after_so_many_outlives_a_committer_that_panics() {
    for delay in (0..30).step_by(3) {
        on_paused_clock(async |world| {
            world.zookeeper.set_pace(Arc::new(|| Duration::from_millis(4)));
            world.fill("orders", 1, 20);
            let (handle, handled) = counting(&world, 10, 1).await;
            handled.reaches(9).await;
            tokio::time::sleep(Duration::from_millis(delay)).await;
            crash(&handle, "offset-committer");
            until("all is stored", || world.stored().as_deref() == Some("20")).await;
            handle.shutdown().await;
        });
    }
}

/// At whatever moment: the number that was asked for, what was acknowledged while commits were under way, and one in
/// hand.
#[test]
fn after_a_crash_no_more_is_handled_again_than_the_docs_say() {
    const RECORDS: u32 = 25;
    let mut most = 0;
    for moment in (30..400).step_by(7) {
        on_paused_clock(async |world| {
            world.zookeeper.put("/consumers/g/offsets/orders", b"");
            // a commit takes as long as 8 records
            world.zookeeper.set_pace(Arc::new(|| Duration::from_millis(4)));
            world.fill("orders", 1, 500);
            let (handle, handled) = counting(&world, RECORDS, 1).await;
            handled.reaches(moment).await;
            handle.address().do_send(Vanish);
            world.zookeeper.vanish("a");
            tokio::time::sleep(Duration::from_millis(100)).await;
            let (handled, stored) = (handled.number(), world.stored().expect("the first position is stored"));
            let again = handled - stored.parse::<u64>().expect("a number");
            assert!(again <= u64::from(RECORDS) + 8 + 1, "{again} of {handled}");
            most = most.max(again);
        });
    }
    assert!(most >= u64::from(RECORDS), "the crash never came at a bad moment: {most}");
}

/// In place of time, and all else that automatic commit does: the first position, and what is given up.
#[test]
fn with_automatic_commit_off_so_many_records_take_its_place() {
    on_paused_clock(async |world| {
        let written = Written::of(&world);
        world.fill("orders", 1, 30);
        let (handle, handled) = counting_with(&world, BY_HAND, 20, 1).await;
        handled.reaches(30).await;
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(written.to("orders/0"), [0, 20], "no commit by time");
        handle.seek("orders", 0, 25).await.expect("it is ours");
        handled.reaches(35).await;
        handle.shutdown().await;
        assert_eq!(written.to("orders/0"), [0, 20, 25, 30]);
    });
}
