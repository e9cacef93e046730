//! Records that cannot be handled: tried again, and then what their failure policy says; nothing of it loses a record.

use std::collections::BTreeMap;
use std::sync::Mutex;

use kafka_troupe_actors::Subscription;
use kafka_troupe_proto::group::Then;
use kafka_troupe_proto::schemas::status::v1::{HaltedPartition, StatusSnapshot};
use tokio::sync::Semaphore;

use super::*;

/// What a handler does with a record.
#[derive(Clone)]
pub(super) enum Deed {
    Fail,
    Panic,
    /// Only when it has answered.
    PanicLater,
    Stop,
    Wait(Arc<Semaphore>),
}

/// What is done with which record; all others are handled at once.
#[derive(Clone, Default)]
pub(super) struct Script(Arc<Mutex<BTreeMap<String, Deed>>>);

impl Script {
    pub(super) fn of(deeds: &[(&str, Deed)]) -> Self {
        let script = Self::default();
        deeds.iter().for_each(|(value, deed)| script.set(value, Some(deed.clone())));
        script
    }

    pub(super) fn set(&self, value: &str, deed: Option<Deed>) {
        let mut deeds = self.0.lock().expect("nobody panics with it");
        match deed {
            Some(deed) => deeds.insert(value.to_owned(), deed),
            None => deeds.remove(value),
        };
    }

    fn get(&self, value: &str) -> Option<Deed> {
        self.0.lock().expect("nobody panics with it").get(value).cloned()
    }
}

/// Tells each record that it is given, and then does as the script says.
#[derive(Clone)]
pub(super) struct Player(pub(super) UnboundedSender<String>, pub(super) Script);

impl Actor for Player {
    type Context = Context<Self>;
}

impl Handler<Record> for Player {
    type Result = ResponseFuture<HandlerResult>;

    fn handle(&mut self, record: Record, ctx: &mut Context<Self>) -> Self::Result {
        let value = record.text().into_owned();
        let told = self.0.send(value.clone());
        let deed = self.1.get(&value);
        match deed {
            Some(Deed::Panic) => panic!("{value}"),
            Some(Deed::Stop) => ctx.stop(),
            _ => {}
        }
        Box::pin(async move {
            told?;
            match deed {
                Some(Deed::Fail) => Err(format!("{value} is bad").into()),
                Some(Deed::PanicLater) => panic!("{value}"),
                Some(Deed::Wait(gate)) => {
                    gate.acquire().await?.forget();
                    Ok(())
                }
                _ => Ok(()),
            }
        })
    }
}

impl World {
    /// A member of one stream over all partitions.
    pub(super) async fn playing(
        &self,
        policy: FailurePolicy,
        script: &Script,
    ) -> (ConsumerHandle, UnboundedReceiver<String>) {
        let (tell, told) = unbounded_channel();
        let script = script.clone();
        let subscription = Subscription::topic("orders").on_failure(policy);
        let subscribed = subscription.handle(move || Player(tell.clone(), script.clone()));
        let handle = self.builder("a").subscription(subscribed).start().await.expect("it starts");
        (handle, told)
    }

    pub(super) fn produce_all(&self, partition: i32, values: &[&str]) {
        // in batches of their own, so that chunks end anywhere
        values.iter().for_each(|value| self.produce_to("orders", partition, value));
    }
}

pub(super) fn order(partition: i32) -> TopicPartition {
    TopicPartition::new("orders", partition)
}

pub(super) async fn status(handle: &ConsumerHandle) -> StatusSnapshot {
    handle.metrics().await.expect("it runs")
}

/// The only reason for which something is halted.
pub(super) async fn halted(handle: &ConsumerHandle) -> HaltedPartition {
    let mut halted = status(handle).await.halted;
    assert_eq!(halted.len(), 1, "{halted:?}");
    halted.remove(0)
}

pub(super) async fn heard_all(told: &mut UnboundedReceiver<String>, values: &[&str]) {
    for value in values {
        assert_eq!(heard(told).await, *value);
    }
}

/// As they come within a while that is long enough for all that is to come.
pub(super) async fn all_heard(told: &mut UnboundedReceiver<String>) -> Vec<String> {
    tokio::time::sleep(Duration::from_secs(120)).await;
    std::iter::from_fn(|| told.try_recv().ok()).collect()
}

#[test]
fn a_record_that_always_fails_stops_its_partition_and_the_others_of_the_stream_go_on() {
    on_paused_clock(async |world| {
        world.brokers.create_topic("orders", 2);
        let script = Script::of(&[("bad", Deed::Fail)]);
        world.produce_all(0, &["0", "bad", "2"]);
        let (handle, mut told) = world.playing(soon(2), &script).await;
        heard_all(&mut told, &["0", "bad", "bad", "bad"]).await;
        world.produce_all(1, &["other", "another"]);
        heard_all(&mut told, &["other", "another"]).await;
        world.produce_all(0, &["3"]);
        assert_eq!(all_heard(&mut told).await, [""; 0]);
        let halted = halted(&handle).await;
        assert_eq!((&*halted.topic, halted.partition, &*halted.reason), ("orders", 0, "failed"));
        assert_eq!((halted.offset, halted.attempts, &*halted.why), (1, 3, "bad is bad"));
        assert_eq!(world.stored_of(0), Some(1), "what failed is not acknowledged");
        assert_eq!(status(&handle).await.streams[0].queued_chunks, 0, "it keeps no memory");
        handle.shutdown().await;
        assert_eq!(world.stored_of(0), Some(1));
        assert_eq!(world.stored_of(1), Some(2));
    });
}

#[test]
fn a_stopped_partition_that_is_resumed_tries_the_record_again_and_goes_on_after_it() {
    on_paused_clock(async |world| {
        let script = Script::of(&[("bad", Deed::Fail)]);
        world.produce_all(0, &["0", "bad", "2"]);
        let (handle, mut told) = world.playing(soon(1), &script).await;
        heard_all(&mut told, &["0", "bad", "bad"]).await;
        assert_eq!(all_heard(&mut told).await, [""; 0]);
        handle.resume([order(0)]).await.expect("it is ours");
        // with all its retries again
        heard_all(&mut told, &["bad", "bad"]).await;
        assert_eq!(all_heard(&mut told).await, [""; 0]);
        assert_eq!(halted(&handle).await.attempts, 2);
        script.set("bad", None);
        handle.resume_topic("orders").await.expect("it runs");
        heard_all(&mut told, &["bad", "2"]).await;
        assert_eq!(status(&handle).await.halted, []);
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("3"));
    });
}

#[test]
fn a_stopped_partition_goes_on_where_it_is_sought_and_with_its_next_owner() {
    on_paused_clock(async |world| {
        let script = Script::of(&[("bad", Deed::Fail)]);
        world.produce_all(0, &["bad", "1"]);
        let (handle, mut told) = world.playing(soon(0), &script).await;
        assert_eq!(heard(&mut told).await, "bad");
        assert_eq!(all_heard(&mut told).await, [""; 0]);
        handle.seek("orders", 0, 1).await.expect("it is ours");
        heard_all(&mut told, &["1"]).await;
        assert_eq!(status(&handle).await.halted, []);
        world.produce_all(0, &["bad"]);
        assert_eq!(heard(&mut told).await, "bad");
        handle.shutdown().await;
        let (next, mut told) = world.playing(soon(0), &Script::default()).await;
        heard_all(&mut told, &["bad"]).await;
        next.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("3"));
    });
}

#[test]
fn a_record_that_is_skipped_is_told_and_acknowledged() {
    on_paused_clock(async |world| {
        let script = Script::of(&[("bad", Deed::Fail)]);
        world.produce_all(0, &["0", "bad", "2"]);
        let (handle, mut told) = world.playing(soon(1).then(Then::Skip), &script).await;
        heard_all(&mut told, &["0", "bad", "bad", "2"]).await;
        let stream = status(&handle).await.streams.remove(0);
        let skipped = stream.last_skipped.expect("one was");
        assert_eq!((stream.skipped, skipped.partition, skipped.offset, skipped.attempts), (1, 0, 1, 2));
        assert_eq!(skipped.why, "bad is bad");
        assert_eq!(status(&handle).await.halted, []);
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("3"));
    });
}

#[test]
fn a_stopped_stream_hands_nothing_over_not_even_of_a_partition_that_comes_to_it_later() {
    on_paused_clock(async |world| {
        world.brokers.create_topic("orders", 2);
        let script = Script::of(&[("bad", Deed::Fail)]);
        let (handle, mut told) = world.playing(soon(0).then(Then::StopStream), &script).await;
        world.produce_all(1, &["0"]);
        assert_eq!(heard(&mut told).await, "0");
        world.produce_all(0, &["bad", "1"]);
        assert_eq!(heard(&mut told).await, "bad");
        world.produce_all(1, &["2"]);
        world.brokers.create_topic("orders", 3);
        world.brokers.register(&world.zookeeper);
        until("it owns the new one", || world.owner(2).is_some()).await;
        world.produce_all(2, &["3"]);
        assert_eq!(all_heard(&mut told).await, [""; 0]);
        let now = status(&handle).await;
        let halted: Vec<_> = now.halted.iter().map(|it| (it.partition, &*it.reason, it.attempts)).collect();
        assert_eq!(halted, [(0, "failed", 1), (1, "failed", 0), (2, "failed", 0)]);
        assert_eq!(now.streams[0].stopped, "bad is bad");
        script.set("bad", None);
        handle.resume([order(0)]).await.expect("it is ours");
        heard_all(&mut told, &["bad", "1"]).await;
        assert_eq!(all_heard(&mut told).await, [""; 0], "the others are not resumed");
        handle.resume_topic("orders").await.expect("it runs");
        let mut rest = [heard(&mut told).await, heard(&mut told).await];
        rest.sort();
        assert_eq!(rest, ["2", "3"]);
        handle.shutdown().await;
        assert_eq!([0, 1, 2].map(|partition| world.stored_of(partition).unwrap()), [2, 2, 1]);
    });
}

#[test]
fn a_seek_in_a_stopped_stream_is_followed() {
    on_paused_clock(async |world| {
        let script = Script::of(&[("bad", Deed::Fail)]);
        world.produce_all(0, &["bad", "1"]);
        let (handle, mut told) = world.playing(soon(0).then(Then::StopStream), &script).await;
        assert_eq!(heard(&mut told).await, "bad");
        assert_eq!(halted(&handle).await.offset, 0);
        handle.seek("orders", 0, 1).await.expect("it is ours");
        heard_all(&mut told, &["1"]).await;
        assert_eq!(status(&handle).await.halted, []);
        handle.shutdown().await;
    });
}

/// The one that was to try again is gone.
#[test]
fn what_could_not_be_read_is_tried_again_when_its_stream_was_made_anew() {
    on_paused_clock(async |world| {
        world.brokers.append(&order(0), &["0"]);
        world.brokers.damage(&order(0), 0);
        let (handle, mut told) = world.playing(soon(0), &Script::default()).await;
        until("it is met", || world.brokers.fetches(&order(0)) > 0).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(&*halted(&handle).await.reason, "unreadable");
        world.brokers.damage(&order(0), 0);
        crash(&handle, "stream-queue/orders-0");
        heard_all(&mut told, &["0"]).await;
        assert_eq!(status(&handle).await.halted, []);
        handle.shutdown().await;
    });
}

/// Whatever of the three it does, the record is tried as often as the policy says, and no other is.
#[test]
fn a_record_that_ends_its_handler_each_time_falls_under_the_policy() {
    for deed in [Deed::Panic, Deed::PanicLater, Deed::Stop] {
        on_paused_clock(async |world| {
            world.brokers.create_topic("orders", 2);
            let script = Script::of(&[("bad", deed.clone())]);
            world.produce_all(0, &["0", "bad", "2"]);
            let (handle, mut told) = world.playing(soon(2), &script).await;
            heard_all(&mut told, &["0", "bad", "bad", "bad"]).await;
            world.produce_all(1, &["other"]);
            heard_all(&mut told, &["other"]).await;
            assert_eq!(all_heard(&mut told).await, [""; 0]);
            let halted = halted(&handle).await;
            assert_eq!((halted.partition, halted.offset, halted.attempts), (0, 1, 3));
            assert!(halted.why.contains("panicked"), "{}", halted.why);
            assert_eq!(world.stored().as_deref(), Some("1"));
            script.set("bad", None);
            handle.resume([order(0)]).await.expect("it is ours");
            heard_all(&mut told, &["bad", "2"]).await;
            handle.shutdown().await;
            assert_eq!(world.stored().as_deref(), Some("3"));
        });
    }
}

#[test]
fn a_record_that_ends_its_handler_is_skipped_by_the_next_and_errors_count_with_ends() {
    on_paused_clock(async |world| {
        let script = Script::of(&[("bad", Deed::Fail)]);
        world.produce_all(0, &["0", "bad", "2"]);
        let (handle, mut told) = world.playing(soon(3).then(Then::Skip), &script).await;
        heard_all(&mut told, &["0", "bad", "bad"]).await;
        script.set("bad", Some(Deed::Panic));
        heard_all(&mut told, &["bad", "bad", "2"]).await;
        let stream = status(&handle).await.streams.remove(0);
        assert_eq!((stream.skipped, stream.handler_restarts), (1, 2));
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("3"));
    });
}

/// Of two partitions in turn: neither makes the other's failures forgotten.
#[test]
fn records_of_two_partitions_that_end_their_handler_are_each_counted() {
    on_paused_clock(async |world| {
        world.brokers.create_topic("orders", 2);
        let script = Script::of(&[("bad", Deed::Panic), ("worse", Deed::Panic)]);
        world.produce_all(0, &["bad", "1"]);
        world.produce_all(1, &["worse", "2"]);
        let (handle, mut told) = world.playing(soon(2).then(Then::Skip), &script).await;
        let heard = all_heard(&mut told).await;
        let times = |value: &str| heard.iter().filter(|it| *it == value).count();
        assert_eq!(["bad", "worse", "1", "2"].map(times), [3, 3, 1, 1], "{heard:?}");
        handle.shutdown().await;
    });
}

/// Ends when it is told to, between two records.
struct Mortal(UnboundedSender<String>, Arc<Semaphore>);

impl Actor for Mortal {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        let end = Arc::clone(&self.1);
        let ends = async move {
            end.acquire().await.is_ok_and(|permit| {
                permit.forget();
                true
            })
        };
        ctx.spawn(ends.into_actor(self).map(|_, _, ctx| ctx.stop()));
    }
}

impl Handler<Record> for Mortal {
    type Result = HandlerResult;

    fn handle(&mut self, record: Record, _: &mut Context<Self>) -> HandlerResult {
        self.0.send(record.text().into_owned())?;
        Ok(())
    }
}

#[test]
fn a_handler_that_ends_without_a_record_in_hand_is_no_fault_of_the_next_one() {
    on_paused_clock(async |world| {
        let (tell, mut told) = unbounded_channel();
        let end = Arc::new(Semaphore::new(0));
        let ends = Arc::clone(&end);
        let subscription = Subscription::topic("orders").on_failure(soon(0));
        let subscribed = subscription.handle(move || Mortal(tell.clone(), Arc::clone(&ends)));
        let handle = world.builder("a").subscription(subscribed).start().await.expect("it starts");
        for value in ["0", "1", "2"] {
            world.produce(value);
            assert_eq!(heard(&mut told).await, value);
            end.add_permits(1);
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        let now = status(&handle).await;
        assert_eq!((now.halted.len(), now.streams[0].handler_restarts), (0, 3));
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("3"));
    });
}
