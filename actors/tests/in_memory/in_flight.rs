//! Several records of a stream with its handler at once.

mod journal;
mod policies;
mod telling;

use std::hash::{DefaultHasher, Hash, Hasher};

use kafka_troupe_actors::Subscription;
use kafka_troupe_proto::group::InFlight;

use super::failing::status;
use super::*;
use journal::Journal;

/// What a handler does with a record.
#[derive(Clone, Copy, Debug)]
enum Deed {
    After(u64),
    Fail,
    Panic,
}

/// By partition, offset and how often it began.
type Script = Arc<dyn Fn(i32, i64, u32) -> Deed + Send + Sync>;

/// Does as it is told.
#[derive(Clone)]
struct Worker {
    member: &'static str,
    limit: InFlight,
    journal: Journal,
    script: Script,
}

impl Actor for Worker {
    type Context = Context<Self>;
}

impl Handler<Record> for Worker {
    type Result = ResponseFuture<HandlerResult>;

    fn handle(&mut self, record: Record, _: &mut Self::Context) -> Self::Result {
        let running = self.journal.begin(self.member, self.limit, &record);
        let count = self.journal.begun(record.partition(), record.offset());
        let deed = (self.script)(record.partition(), record.offset(), count);
        Box::pin(async move {
            let time = if let Deed::After(millis) = deed { millis } else { record.offset() as u64 % 7 };
            tokio::time::sleep(Duration::from_millis(time)).await;
            match deed {
                Deed::Fail => return Err("as it was told".into()),
                Deed::Panic => panic!("as it was told"),
                Deed::After(_) => running.done(),
            }
            Ok(())
        })
    }
}

impl World {
    fn with_partitions(&self, count: usize) {
        self.brokers.create_topic("orders", count);
    }

    /// Records in batches of 10, with keys `k0`, `k1` and so on, as many as there are, and every fifth without.
    fn produce_keyed(&self, partition: i32, count: usize, keys: usize) {
        let names: Vec<_> = (0..keys).map(|key| format!("k{key}")).collect();
        let key = |number: usize| (number % 5 != 4).then(|| names[number % keys].as_str());
        let records: Vec<_> = (0..count).map(|number| (key(number), "value")).collect();
        for batch in records.chunks(10) {
            self.brokers.append_keyed(&TopicPartition::new("orders", partition), batch);
        }
    }

    async fn working(&self, worker: Worker, properties: &[(&str, &str)]) -> ConsumerHandle {
        self.working_under(FailurePolicy::default(), worker, properties).await
    }

    async fn working_under(
        &self,
        policy: FailurePolicy,
        worker: Worker,
        properties: &[(&str, &str)],
    ) -> ConsumerHandle {
        let (member, limit) = (worker.member, worker.limit);
        let usual = [("auto.offset.reset", "smallest"), ("auto.commit.interval.ms", "100")];
        let builder = self.builder_of(member, &[&usual, properties].concat());
        let subscription = Subscription::topic("orders").in_flight(limit).on_failure(policy);
        let builder = builder.subscription(subscription.handle(move || worker.clone()));
        builder.start().await.expect("it starts")
    }

    /// The offset of a partition, by the node.
    pub(super) fn stored_of(&self, partition: i32) -> Option<i64> {
        let node = self.zookeeper.node(&format!("/consumers/g/offsets/orders/{partition}"))?;
        String::from_utf8(node.data).ok()?.parse().ok()
    }

    fn observe_commits(&self, journal: &Journal) {
        let journal = journal.clone();
        self.zookeeper.observe(move |path, node| {
            let partition = path.strip_prefix("/consumers/g/offsets/orders/").map(str::parse);
            let offset = node.map(|node| String::from_utf8_lossy(&node.data).parse());
            if let (Some(Ok(partition)), Some(Ok(offset))) = (partition, offset) {
                journal.committed(partition, offset);
            }
        });
    }
}

fn all_after(millis: u64) -> Script {
    Arc::new(move |_, _, _| Deed::After(millis))
}

fn worker(member: &'static str, limit: InFlight, journal: &Journal, script: Script) -> Worker {
    Worker { member, limit, journal: journal.clone(), script }
}

#[test]
fn fifty_records_of_100_ms_each_take_100_ms_across_chunks_and_partitions() {
    on_paused_clock(async |world| {
        world.with_partitions(5);
        (0..5).for_each(|partition| world.produce_keyed(partition, 10, 100));
        let (journal, limit) = (Journal::default(), InFlight::window(50));
        let worker = worker("a", limit, &journal, all_after(100));
        let handle = world.working(worker, &[("queued.max.message.chunks", "5")]).await;
        until("all is handled", || (0..5).all(|partition| journal.handled(partition) == 10)).await;
        assert_eq!((journal.took().as_millis(), journal.most()), (100, 50));
        handle.shutdown().await;
        assert!((0..5).all(|partition| world.stored_of(partition) == Some(10)));
        journal.check();
    });
}

#[test]
fn the_status_says_how_many_records_are_with_a_handler_now() {
    for (limit, most) in [(InFlight::window(8), 8), (InFlight::one(), 1)] {
        on_paused_clock(async move |world| {
            world.produce_keyed(0, 20, 3);
            let journal = Journal::default();
            let handle = world.working(worker("a", limit, &journal, all_after(500)), &[]).await;
            let in_flight = async || status(&handle).await.streams[0].in_flight;
            until("it is busy", || journal.most() == most).await;
            assert_eq!(in_flight().await as usize, most, "{limit:?}");
            until("all is handled", || journal.handled(0) == 20).await;
            assert_eq!(in_flight().await, 0, "{limit:?}");
            handle.shutdown().await;
        });
    }
}

#[test]
fn what_is_committed_is_the_row_without_a_gap_however_far_others_are() {
    on_paused_clock(async |world| {
        world.produce_keyed(0, 1_000, 3);
        let (journal, limit) = (Journal::default(), InFlight::window(8));
        let script: Script = Arc::new(|_, offset, _| Deed::After(if offset == 15 { 30_000 } else { 1 }));
        let small = [("fetch.message.max.bytes", "500")];
        let handle = world.working(worker("a", limit, &journal, script), &small).await;
        until("all but one are done", || journal.order().len() == 999).await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!((journal.handled(0), world.stored_of(0)), (15, Some(15)));
        until("all is handled", || journal.handled(0) == 1_000).await;
        assert_eq!(journal.again(), 0);
        handle.shutdown().await;
        assert_eq!(world.stored_of(0), Some(1_000));
        journal.check();
    });
}

#[test]
fn a_chunk_keeps_its_room_until_its_last_record_is_done() {
    on_paused_clock(async |world| {
        world.produce_keyed(0, 1_000, 3);
        let (journal, limit) = (Journal::default(), InFlight::window(8));
        // one of each batch hangs
        let script: Script = Arc::new(|_, offset, _| Deed::After(if offset % 10 == 5 { 30_000 } else { 1 }));
        let small = [("fetch.message.max.bytes", "100"), ("queued.max.message.chunks", "3")];
        let handle = world.working(worker("a", limit, &journal, script), &small).await;
        until("the third chunk hangs", || journal.begun(0, 25) == 1).await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!((journal.order().len(), journal.begun(0, 30)), (27, 0));
        let stream = handle.metrics().await.expect("it runs").streams.remove(0);
        assert_eq!(stream.queued_chunks, 3, "{stream:?}");
        until("others follow", || journal.begun(0, 55) == 1).await;
        handle.shutdown().await;
        journal.check();
    });
}

#[test]
fn a_record_that_failed_comes_again_while_later_ones_go_on_and_by_key_only_those_of_other_keys() {
    for (limit, goes_on) in
        [(InFlight::window(4), true), (InFlight::by_key(4), false), (InFlight::one(), false)]
    {
        on_paused_clock(async |world| {
            let keys = ["a", "b", "a", "b", "a"].map(|key| (Some(key), "value"));
            world.brokers.append_keyed(&TopicPartition::new("orders", 0), &keys);
            let journal = Journal::default();
            let script: Script = Arc::new(|_, offset, count| match (offset, count) {
                (0, 1 | 2) => Deed::Fail,
                _ => Deed::After(1),
            });
            let handle = world.working(worker("a", limit, &journal, script), &[]).await;
            until("all is handled", || journal.handled(0) == 5).await;
            let order: Vec<_> = journal.order().into_iter().map(|(_, offset)| offset).collect();
            let expected = match limit {
                _ if goes_on => [1, 2, 3, 4, 0],
                _ if limit.is_one() => [0, 1, 2, 3, 4],
                _ => [1, 3, 0, 2, 4],
            };
            assert_eq!(order, expected, "{limit:?}");
            handle.shutdown().await;
            assert_eq!(world.stored_of(0), Some(5));
            journal.check();
        });
    }
}

#[test]
fn a_handler_that_always_fails_has_no_more_in_flight_than_it_may() {
    on_paused_clock(async |world| {
        world.produce_keyed(0, 100, 100);
        let journal = Journal::default();
        let script: Script = Arc::new(|_, _, count| if count < 4 { Deed::Fail } else { Deed::After(1) });
        let handle = world.working(worker("a", InFlight::window(5), &journal, script), &[]).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(journal.begun(0, 4) > 1 && journal.begun(0, 5) == 0, "those that wait for a retry count");
        until("all is handled", || journal.handled(0) == 100).await;
        handle.shutdown().await;
        journal.check();
    });
}

#[test]
fn a_release_waits_for_what_the_handler_has_and_not_for_what_waits_to_be_tried_again() {
    on_paused_clock(async |world| {
        world.produce_keyed(0, 10, 100);
        let journal = Journal::default();
        world.observe_commits(&journal);
        let script: Script = Arc::new(|_, offset, _| match offset {
            3 => Deed::Fail,
            _ => Deed::After(1_000),
        });
        let handle = world.working(worker("a", InFlight::window(10), &journal, script), &[]).await;
        until("the third has failed and waits", || journal.begun(0, 3) == 1).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        let began = Instant::now();
        handle.shutdown().await;
        let took = began.elapsed().as_millis();
        assert!((900..1_100).contains(&took), "the others were waited for, the third was not: {took} ms");
        assert_eq!((world.stored_of(0), journal.order().len()), (Some(3), 9));
        journal.check();
    });
}

#[test]
fn what_is_answered_after_the_partition_was_lost_changes_nothing() {
    on_paused_clock(async |world| {
        world.produce_keyed(0, 10, 100);
        let journal = Journal::default();
        world.observe_commits(&journal);
        let script: Script = Arc::new(|_, offset, count| match (offset, count) {
            (0, 1) => Deed::After(60_000),
            (0, _) => Deed::After(20_000),
            (1.., _) => Deed::After(1_000),
            _ => Deed::Fail,
        });
        let handle = world.working(worker("a", InFlight::by_key(20), &journal, script), &[]).await;
        until("all but the first are done", || journal.order().len() == 9).await;
        world.zookeeper.expire(world.zookeeper.sessions_of("a")[0]);
        until("they come again", || journal.begun(0, 9) == 2).await;
        assert_eq!(journal.begun(0, 0), 1, "its key is taken by the one that was cut off");
        until("the first is done", || journal.handled(0) == 10).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(journal.begun(0, 0), 2, "it has begun again");
        assert_eq!(world.stored_of(0), Some(0), "the late answer is of another claim");
        until("it is done again", || journal.order().len() == 20).await;
        handle.shutdown().await;
        assert_eq!(world.stored_of(0), Some(10));
        journal.check();
    });
}

#[test]
fn nothing_past_a_damaged_batch_is_handed_over_and_it_is_fetched_again_when_all_before_it_is_done() {
    on_paused_clock(async |world| {
        world.produce_keyed(0, 60, 100);
        world.brokers.damage(&TopicPartition::new("orders", 0), 25);
        let journal = Journal::default();
        let script: Script = Arc::new(|_, offset, _| Deed::After(if offset == 3 { 10_000 } else { 5 }));
        let small = [("fetch.message.max.bytes", "500")];
        let handle = world.working(worker("a", InFlight::window(100), &journal, script), &small).await;
        until("all before it but one is done", || journal.order().len() == 19).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!((journal.order().len(), journal.begun(0, 20)), (19, 0));
        until("the last before it is done", || journal.handled(0) == 20).await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!((journal.begun(0, 20), journal.begun(0, 30), journal.again()), (0, 0, 0));
        world.brokers.damage(&TopicPartition::new("orders", 0), 25);
        until("all is handled", || journal.handled(0) == 60).await;
        assert_eq!(journal.again(), 0);
        handle.shutdown().await;
        assert_eq!(world.stored_of(0), Some(60));
        journal.check();
    });
}

/// A number that looks random.
fn drawn(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Random ends, failures and panics, while a second member comes and goes and sessions expire.
fn in_trouble(seed: u64, limit: InFlight) {
    const RECORDS: usize = 1_000;
    on_paused_clock(async |world| {
        world.with_partitions(3);
        (0..3).for_each(|partition| world.produce_keyed(partition, RECORDS, 40));
        let journal = Journal::default();
        world.observe_commits(&journal);
        let script: Script =
            Arc::new(move |partition, offset, count| match drawn((seed, partition, offset, count)) % 1_000 {
                0 => Deed::Panic,
                1..20 => Deed::Fail,
                20..25 => Deed::After(3_000),
                other => Deed::After(other % 50),
            });
        let small = [("fetch.message.max.bytes", "2000"), ("rebalance.backoff.ms", "500")];
        let start =
            async |name| world.working(worker(name, limit, &journal, Arc::clone(&script)), &small).await;
        let first = start("a").await;
        let is_done = || (0..3).all(|partition| journal.handled(partition) == RECORDS as i64);
        for round in 0..100 {
            let pause = async |what| {
                let millis = 200 + drawn((seed, round, what)) % 3_000;
                tokio::time::sleep(Duration::from_millis(millis)).await;
            };
            let second = start("b").await;
            pause(1).await;
            match drawn((seed, round)) % 3 {
                0 => world.zookeeper.sessions_of("a").into_iter().for_each(|id| world.zookeeper.expire(id)),
                1 => world.zookeeper.sessions_of("b").into_iter().for_each(|id| world.zookeeper.expire(id)),
                _ => {}
            }
            pause(2).await;
            second.shutdown().await;
            if is_done() {
                break;
            }
        }
        let began = Instant::now();
        until("all is handled", is_done).await;
        assert!(began.elapsed() < PATIENCE);
        first.shutdown().await;
        assert!((0..3).all(|partition| world.stored_of(partition) == Some(RECORDS as i64)));
        assert!(journal.again() > 0, "nothing went wrong");
        journal.check();
    });
}

#[test]
fn in_any_order_with_failures_panics_rebalances_and_expiries_nothing_is_lost_or_committed_too_early() {
    for seed in 0..3 {
        in_trouble(seed, InFlight::window(16));
        in_trouble(seed, InFlight::by_key(16));
    }
}
