//! Offsets stored in Kafka, by whole members over brokers in memory, on a clock that stands.

mod asked_for;
mod restarted;

use std::ops::Deref;
use std::sync::Mutex;

use kafka_troupe_actors::offset_committer::CommitError;
use kafka_troupe_actors::testkit::{Generation, OffsetStored, OffsetsFault};

use super::*;

const FIND_COORDINATOR: i16 = 10;
const OFFSET_FETCH: i16 = 9;
const LIST_OFFSETS: i16 = 2;
/// `auto.commit.interval.ms` here.
const INTERVAL: Duration = Duration::from_secs(1);

struct Stored {
    world: World,
    /// Requests by api, with the broker and the time since the test began.
    seen: Arc<Mutex<Vec<(i16, i32, Duration)>>>,
    /// All that was stored in Kafka.
    written: Arc<Mutex<Vec<OffsetStored>>>,
}

impl Deref for Stored {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

/// Two brokers, and a topic of so many partitions with 150 records in each.
fn stored(generation: Generation, partitions: usize, test: impl AsyncFnOnce(Stored)) {
    clock::on_paused_clock(async {
        let (zookeeper, brokers) = (MemoryZooKeeper::default(), MemoryBrokers::new(2));
        (0..2).for_each(|broker| brokers.set_generation(broker, generation));
        brokers.register(&zookeeper);
        brokers.create_topic("orders", partitions);
        for partition in 0..partitions as i32 {
            brokers.append(&key(partition), &["x"; 150]);
        }
        let (seen, began) = (Arc::<Mutex<Vec<_>>>::default(), Instant::now());
        let told = Arc::clone(&seen);
        brokers.set_watch(Arc::new(move |request| {
            let mut seen = told.lock().expect("no test panics with it");
            seen.push((request.api, request.broker, began.elapsed()));
        }));
        let written = Arc::<Mutex<Vec<_>>>::default();
        let told = Arc::clone(&written);
        brokers.observe_offsets(move |stored| {
            told.lock().expect("no test panics with it").push(stored.clone());
        });
        let world = World { zookeeper, brokers, bootstrap: false };
        test(Stored { world, seen, written }).await;
    });
}

fn key(partition: i32) -> TopicPartition {
    TopicPartition::new("orders", partition)
}

impl Stored {
    async fn member(&self, dual: bool, properties: &[(&str, &str)]) -> (ConsumerHandle, KafkaStream) {
        self.member_as("a", dual, properties).await
    }

    async fn member_as(
        &self,
        id: &str,
        dual: bool,
        properties: &[(&str, &str)],
    ) -> (ConsumerHandle, KafkaStream) {
        let own = [
            ("offsets.storage", "kafka"),
            ("dual.commit.enabled", if dual { "true" } else { "false" }),
            ("auto.offset.reset", "smallest"),
            ("auto.commit.interval.ms", "1000"),
            ("client.id", id),
        ];
        let all: Vec<_> = own.into_iter().chain(properties.iter().copied()).collect();
        let handle = self.builder_of(id, &all).pull("orders", 1).start().await.expect("it starts");
        let stream = handle.streams("orders").remove(0);
        (handle, stream)
    }

    fn asked(&self, api: i16) -> Vec<(i32, Duration)> {
        let seen = self.seen.lock().expect("no test panics with it");
        seen.iter().filter(|(its, ..)| *its == api).map(|(_, broker, at)| (*broker, *at)).collect()
    }

    fn in_kafka(&self, partition: i32) -> Option<i64> {
        self.brokers.stored_offset("g", &key(partition))
    }

    fn writes(&self, partition: i32) -> usize {
        let written = self.written.lock().expect("no test panics with it");
        written.iter().filter(|stored| stored.partition == key(partition)).count()
    }

    fn node_version(&self) -> i32 {
        self.zookeeper.node("/consumers/g/offsets/orders/0").expect("it is there").stat.version
    }

    fn put_in_zookeeper(&self, offset: &str) {
        self.zookeeper.put("/consumers/g/offsets/orders/0", offset.as_bytes());
    }

    fn nothing_negative_was_written(&self) {
        let written = self.written.lock().expect("no test panics with it");
        assert!(written.iter().all(|stored| stored.offset >= 0), "{written:?}");
    }
}

/// How many offsets were written by a commit of all.
async fn committed(handle: &ConsumerHandle) -> Result<usize, CommitError> {
    handle.commit().await?.all()
}

async fn next_offset(stream: &mut KafkaStream) -> i64 {
    let record = timeout(PATIENCE, stream.next()).await.expect("a record in time").expect("no end");
    record.expect("it can be read").offset()
}

/// B23 (a) of the field cases. Brokers before 0.10.2 say it for each partition, later ones for the whole request, with
/// an empty list.
#[test]
fn a_coordinator_that_loads_or_is_not_there_or_has_moved_is_no_missing_offset() {
    for generation in [Generation::Kafka0_9, Generation::Kafka1_1, Generation::Latest, Generation::Kafka4] {
        stored(generation, 1, async |world| {
            world.brokers.store_offset("g", &key(0), 100);
            let began = Instant::now();
            let trouble = async {
                let mut looked_up = Vec::new();
                for (code, seconds) in [(14, 2), (15, 2), (16, 1)] {
                    let before = world.asked(FIND_COORDINATOR).len();
                    world.brokers.refuse_offsets(code, Duration::from_secs(seconds));
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    looked_up.push(world.asked(FIND_COORDINATOR).len() - before);
                }
                looked_up
            };
            let start = async {
                let (handle, mut stream) = world.member(false, &[]).await;
                assert_eq!(next_offset(&mut stream).await, 100, "{generation:?}");
                (handle, stream, began.elapsed())
            };
            let (looked_up, (handle, _stream, took)) = tokio::join!(trouble, start);
            assert_eq!(looked_up[0], 1, "who loads is asked again: {generation:?}");
            // after a pause each, so perhaps in the time of the next
            let looked_up = world.asked(FIND_COORDINATOR).len();
            assert!(looked_up >= 3, "after 15 and after 16 again, {looked_up} with {generation:?}");
            assert!((5..10).contains(&took.as_secs()), "{took:?} with {generation:?}");
            assert!(world.asked(OFFSET_FETCH).len() > 3, "it was tried again: {generation:?}");
            handle.shutdown().await;
            // a position that is made is stored, and a reset would have made 0
            let written = world.written.lock().expect("no test panics with it");
            assert!(written.iter().all(|stored| stored.offset >= 100), "{written:?} with {generation:?}");
        });
    }
}

/// As that one, but for good: what cannot be read is told, and nothing is delivered.
#[test]
fn a_partition_whose_offset_may_not_be_read_is_not_started_anywhere_else() {
    for code in [29, 30, 3, -1, 42] {
        stored(Generation::Latest, 1, async |world| {
            world.brokers.store_offset("g", &key(0), 100);
            for _ in 0..40 {
                world.brokers.spoil_offsets(OffsetsFault::FetchRefused(key(0), code));
            }
            let (handle, mut stream) = world.member(false, &[]).await;
            let early = timeout(Duration::from_secs(5), stream.next()).await;
            assert!(early.is_err(), "delivered after {code}: {early:?}");
            assert!(world.asked(LIST_OFFSETS).is_empty(), "a reset after {code}");
            world.brokers.heal_offsets();
            assert_eq!(next_offset(&mut stream).await, 100, "after {code}");
            handle.shutdown().await;
        });
    }
}

/// B23 (c): the old consumer stores it.
#[test]
fn a_stored_minus_one_is_no_offset_and_none_is_ever_stored() {
    for (dual, reset, first) in
        [(false, "smallest", 0), (false, "largest", 150), (true, "smallest", 0), (true, "largest", 150)]
    {
        stored(Generation::Latest, 1, async |world| {
            world.put_in_zookeeper("-1");
            world.brokers.store_offset("g", &key(0), -1);
            world.written.lock().expect("no test panics with it").clear();
            let (handle, mut stream) = world.member(dual, &[("auto.offset.reset", reset)]).await;
            until("the position is stored", || world.in_kafka(0) == Some(first)).await;
            world.produce("new");
            assert_eq!(next_offset(&mut stream).await, first);
            handle.shutdown().await;
            world.nothing_negative_was_written();
        });
    }
}

/// B22 (b) and (c): ten intervals of idle partitions.
#[test]
fn what_is_unchanged_is_refreshed_in_kafka_and_not_written_again_in_zookeeper() {
    for dual in [false, true] {
        stored(Generation::Latest, 3, async |world| {
            let (handle, mut stream) = world.member(dual, &[]).await;
            for _ in 0..450 {
                next_offset(&mut stream).await;
            }
            // nothing more comes: that acknowledges the last
            assert!(timeout(INTERVAL * 3, stream.next()).await.is_err());
            let before: Vec<_> = (0..3).map(|partition| world.writes(partition)).collect();
            let version = dual.then(|| world.node_version());
            tokio::time::sleep(INTERVAL * 10).await;
            for partition in 0..3 {
                assert_eq!(world.in_kafka(partition), Some(150));
                let writes = world.writes(partition) - before[partition as usize];
                assert!((9..=11).contains(&writes), "{writes} records of partition {partition}");
            }
            assert_eq!(dual.then(|| world.node_version()), version);
            handle.shutdown().await;
        });
    }
}

/// B22 (b) with ZooKeeper alone.
#[test]
fn an_unchanged_offset_node_is_not_written_again() {
    stored(Generation::Latest, 1, async |world| {
        let (handle, mut stream) = world.member(true, &[("offsets.storage", "zookeeper")]).await;
        for _ in 0..150 {
            next_offset(&mut stream).await;
        }
        assert!(timeout(INTERVAL * 3, stream.next()).await.is_err());
        let version = world.node_version();
        tokio::time::sleep(INTERVAL * 10).await;
        assert_eq!((world.node_version(), world.stored().as_deref()), (version, Some("150")));
        assert!(world.asked(FIND_COORDINATOR).is_empty());
        handle.shutdown().await;
    });
}

/// What only Kafka stores is not fenced: a commit that its member has given up may be carried out yet.
#[test]
fn a_commit_that_is_carried_out_late_is_written_over_by_the_next() {
    stored(Generation::Latest, 1, async |world| {
        let impatient = [("offsets.channel.socket.timeout.ms", "500"), ("offsets.commit.max.retries", "0")];
        let (first, mut stream) = world.member(false, &impatient).await;
        for _ in 0..11 {
            next_offset(&mut stream).await;
        }
        world.brokers.spoil_offsets(OffsetsFault::CommitLate(Duration::from_secs(20)));
        assert!(committed(&first).await.is_err());
        first.shutdown().await;
        drop(stream);
        let (second, mut stream) = world.member_as("b", false, &[]).await;
        for _ in 0..50 {
            next_offset(&mut stream).await;
        }
        until("it is carried out", || world.written.lock().is_ok_and(|it| it.iter().any(|it| it.late))).await;
        assert_eq!(world.in_kafka(0), Some(10));
        until("the next commit is above it", || world.in_kafka(0).is_some_and(|it| it > 50)).await;
        second.shutdown().await;
    });
}

/// Members of Kafka's own group protocol have the group's name: nothing helps but another name, or theirs to end.
#[test]
fn a_group_of_kafkas_own_members_is_named_as_the_reason() {
    for code in [25, 22] {
        stored(Generation::Latest, 1, async |world| {
            world.brokers.store_offset("g", &key(0), 100);
            let (handle, mut stream) = world.member(false, &[("auto.commit.enable", "false")]).await;
            assert_eq!(next_offset(&mut stream).await, 100);
            assert_eq!(next_offset(&mut stream).await, 101);
            world.brokers.set_active_group("g", Some(code));
            let error = committed(&handle).await.expect_err("it is refused").to_string();
            for told in ["orders", "g", &format!("broker-{}:9092", world.brokers.coordinator().unwrap())] {
                assert!(error.contains(told), "{error}");
            }
            assert_eq!(world.in_kafka(0), Some(100));
            world.brokers.set_active_group("g", None);
            assert_eq!(committed(&handle).await, Ok(1));
            assert_eq!(world.in_kafka(0), Some(101));
            handle.shutdown().await;
        });
    }
}

/// Nothing fences it, so it would overwrite what the next owner has committed (seed 66 of the simulation).
#[test]
fn a_commit_by_hand_is_answered_before_its_partition_is_the_next_owners() {
    stored(Generation::Latest, 1, async |world| {
        let by_hand = [("auto.commit.enable", "false")];
        world.brokers.store_offset("g", &key(0), 140);
        let (first, mut stream) = world.member_as("b", false, &by_hand).await;
        for _ in 0..10 {
            next_offset(&mut stream).await;
        }
        // nothing more comes, and nothing is in hand
        assert!(timeout(INTERVAL, stream.next()).await.is_err());
        world.brokers.spoil_offsets(OffsetsFault::CommitLate(Duration::from_secs(2)));
        let (commit, next_owner) = tokio::join!(committed(&first), async {
            let member = world.member_as("a", false, &by_hand).await;
            until("it has moved", || world.owner(0).as_deref() == Some("g_a-0")).await;
            (member, world.in_kafka(0))
        });
        let ((second, _stream), in_kafka) = next_owner;
        assert_eq!((commit, in_kafka), (Ok(1), Some(150)));
        second.shutdown().await;
        first.shutdown().await;
    });
}
