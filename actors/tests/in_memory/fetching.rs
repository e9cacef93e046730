//! Whole members over brokers in memory of several generations, on a clock that stands.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Mutex;

use kafka_troupe_actors::testkit::{Generation, RequestSeen};

use super::*;

const FETCH: i16 = 1;

struct Watched {
    world: World,
    /// Requests, with the time since the test began.
    seen: Arc<Mutex<Vec<(Duration, RequestSeen)>>>,
}

impl Deref for Watched {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

/// A member that pulls, with what it got so far by partition.
struct Member {
    handle: ConsumerHandle,
    stream: KafkaStream,
    got: BTreeMap<i32, Vec<i64>>,
}

/// Runs a test in one thread, on a paused clock, with one broker and one topic.
fn watched(generation: Generation, partitions: usize, test: impl AsyncFnOnce(Watched)) {
    clock::on_paused_clock(async {
        let (zookeeper, brokers) = (MemoryZooKeeper::default(), MemoryBrokers::new(1));
        brokers.set_generation(0, generation);
        brokers.register(&zookeeper);
        brokers.create_topic("orders", partitions);
        let (seen, began) = (Arc::<Mutex<Vec<_>>>::default(), Instant::now());
        let told = Arc::clone(&seen);
        brokers.set_watch(Arc::new(move |request| {
            told.lock().expect("no test panics with it").push((began.elapsed(), request));
        }));
        test(Watched { world: World { zookeeper, brokers, bootstrap: false }, seen }).await;
    });
}

fn key(partition: i32) -> TopicPartition {
    TopicPartition::new("orders", partition)
}

impl Watched {
    async fn member(&self, properties: &str) -> Member {
        let own = properties.lines().filter_map(|line| line.split_once('='));
        let all: Vec<_> = [("auto.offset.reset", "smallest")].into_iter().chain(own).collect();
        let handle = self.builder_of("a", &all).pull("orders", 1).start().await.expect("it starts");
        let stream = handle.streams("orders").remove(0);
        Member { handle, stream, got: BTreeMap::new() }
    }

    /// The fetches since this was asked last.
    fn fetches(&self) -> Vec<(Duration, RequestSeen)> {
        let seen = std::mem::take(&mut *self.seen.lock().expect("no test panics with it"));
        seen.into_iter().filter(|(_, request)| request.api == FETCH).collect()
    }
}

impl Member {
    async fn take(&mut self, count: usize) {
        for _ in 0..count {
            let record = timeout(PATIENCE, self.stream.next()).await.expect("a record in time");
            let record = record.expect("no end").expect("it can be read");
            self.got.entry(record.partition()).or_default().push(record.offset());
        }
    }

    /// Partitions that are not fetched, and why.
    async fn waiting(&self) -> Vec<(i32, String)> {
        let metrics = self.handle.metrics().await.expect("it is alive");
        metrics.waiting.into_iter().map(|it| (it.partition, it.why)).collect()
    }
}

/// B12 of the field cases: a batch that a broker before 0.10.1 cuts off at the fetch size.
#[test]
fn a_batch_above_the_fetch_size_is_one_error_and_the_other_partitions_go_on() {
    watched(Generation::Kafka0_8_2, 2, async |world| {
        let large = "x".repeat(5_000);
        for value in ["a", "b", "c", "d", &large, "e"] {
            world.brokers.append(&key(0), &[value]);
        }
        let mut member = world.member("fetch.message.max.bytes=1000").await;
        member.take(4).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let waiting = member.waiting().await;
        let [(0, why)] = &waiting[..] else { panic!("{waiting:?}") };
        for told in ["offset 4", "fetch.message.max.bytes (1000)", "of 50"] {
            assert!(why.contains(told), "{why}");
        }
        let before = world.brokers.fetches(&key(0));
        for round in 0..20 {
            world.brokers.append(&key(1), &["other"]);
            member.take(1).await;
            assert_eq!(member.got[&1].len(), round + 1);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let tries = world.brokers.fetches(&key(0)) - before;
        assert!((1..=40).contains(&tries), "{tries} tries in 20 s");

        // retention takes it away
        world.brokers.delete_before(&key(0), 5);
        member.take(1).await;
        assert_eq!(member.got[&0], [0, 1, 2, 3, 5]);
        member.handle.shutdown().await;
    });
}

#[test]
fn a_batch_above_the_fetch_size_comes_where_the_fetch_may_grow() {
    watched(Generation::Kafka0_8_2, 2, async |world| {
        let large = "x".repeat(5_000);
        for value in ["a", &large, "b", &large, "c"] {
            world.brokers.append(&key(0), &[value]);
        }
        let limits = "fetch.message.max.bytes=1000\ntroupe.fetch.message.max.bytes.limit=6000";
        let mut member = world.member(limits).await;
        member.take(5).await;
        assert_eq!(member.got[&0], [0, 1, 2, 3, 4]);
        assert!(member.waiting().await.is_empty());
        member.handle.shutdown().await;
    });
}

#[test]
fn an_upgrade_in_place_under_a_running_member_needs_no_restart() {
    for (before, after, fetch_version) in [
        (Generation::Kafka0_8_2, Generation::Kafka1_1, 7),
        (Generation::Kafka0_9, Generation::Kafka1_1, 7),
        (Generation::Kafka1_1, Generation::Latest, 11),
        (Generation::Latest, Generation::Kafka4, 11),
    ] {
        watched(before, 1, async |world| {
            world.brokers.append(&key(0), &["a"]);
            let mut member = world.member("").await;
            member.take(1).await;
            world.fetches();
            world.brokers.stop(0);
            tokio::time::sleep(Duration::from_secs(3)).await;
            world.brokers.set_generation(0, after);
            world.brokers.start(0);
            world.brokers.elect();
            world.brokers.append(&key(0), &["b"]);
            let up = Instant::now();
            member.take(1).await;
            assert!(up.elapsed() < Duration::from_secs(5), "{before:?} to {after:?}: {:?}", up.elapsed());
            let versions: Vec<_> = world.fetches().into_iter().map(|(_, it)| it.version).collect();
            assert_eq!(versions.last(), Some(&fetch_version), "{before:?} to {after:?}");
            member.handle.shutdown().await;
        });
    }
}

/// B15 of the field cases.
#[test]
fn the_first_record_of_an_old_broker_comes_soon() {
    let seconds = Duration::from_secs;
    for (generation, limit) in [
        (Generation::Kafka0_8_2, seconds(5)),
        (Generation::Kafka0_9, seconds(15)),
        (Generation::Kafka4, seconds(5)),
    ] {
        watched(generation, 1, async |world| {
            world.brokers.append(&key(0), &["a"]);
            let began = Instant::now();
            let mut member = world.member("").await;
            member.take(1).await;
            assert!(began.elapsed() < limit, "{generation:?}: {:?}", began.elapsed());
            member.handle.shutdown().await;
        });
    }
}

#[test]
fn idle_partitions_cost_a_few_bytes_and_each_is_still_heard_of() {
    watched(Generation::Latest, 1_000, async |world| {
        let mut member = world.member("").await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.fetches();
        tokio::time::sleep(Duration::from_secs(10)).await;
        let idle = world.fetches();
        assert!(idle.len() > 50 && idle.iter().all(|(_, it)| it.bytes < 80), "{:?}", idle.last());
        for partition in [3, 997, 3] {
            world.brokers.append(&key(partition), &["a"]);
            member.take(1).await;
        }
        assert_eq!(member.got, BTreeMap::from([(3, vec![0, 1]), (997, vec![0])]));
        assert!(world.fetches().iter().all(|(_, it)| it.bytes < 200));

        // the broker lost them: all is told once more, and nothing fails
        world.brokers.forget_sessions(0);
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.brokers.append(&key(5), &["a"]);
        member.take(1).await;
        let sizes: Vec<_> = world.fetches().iter().map(|(_, it)| it.bytes).filter(|it| *it > 200).collect();
        assert!(sizes.len() == 1 && sizes[0] > 28_000, "{sizes:?}");
        assert!(member.waiting().await.is_empty());
        member.handle.shutdown().await;
    });
}

/// B30 (d) of the field cases.
#[test]
fn a_broker_that_answers_with_nothing_at_once_is_asked_20_times_a_second_at_most() {
    for generation in [Generation::Kafka0_8_2, Generation::Kafka1_1, Generation::Latest] {
        watched(generation, 3, async |world| {
            world.brokers.set_hasty(true);
            let mut member = world.member("").await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            world.fetches();
            tokio::time::sleep(Duration::from_secs(10)).await;
            let fetches = world.fetches().len();
            assert!((50..=200).contains(&fetches), "{generation:?}: {fetches} fetches in 10 s");
            world.brokers.append(&key(1), &["a"]);
            member.take(1).await;
            member.handle.shutdown().await;
        });
    }
}

#[test]
fn a_throttled_fetcher_asks_when_the_broker_listens_again() {
    // those of 1.1 have waited before they answer
    for (generation, pauses) in [(Generation::Latest, true), (Generation::Kafka1_1, false)] {
        watched(generation, 1, async |world| {
            world.brokers.set_throttle(Duration::from_secs(2));
            let mut member = world.member("").await;
            let mut times = Vec::new();
            for value in ["a", "b", "c"] {
                world.brokers.append(&key(0), &[value]);
                member.take(1).await;
            }
            times.extend(world.fetches().into_iter().map(|(at, _)| at));
            let least = times.windows(2).map(|two| two[1] - two[0]).min().expect("more than one");
            assert_eq!(least >= Duration::from_secs(2), pauses, "{generation:?}: {times:?}");
            member.handle.shutdown().await;
        });
    }
}
