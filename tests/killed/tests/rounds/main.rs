//! At least once, proven by `kill -9`: 10,000 records, a commit each 100, and members that are killed at random
//! moments: while they start, handle, commit or rebalance. What counts is outside of them: a journal of what they
//! handled, and what is stored.
//!
//! `TROUPE_ROUNDS` is the number of rounds for each storage (5; 50 to close an issue), `TROUPE_SEED` the first one's
//! seed (1).

mod journal;
mod kills;
mod member;
mod round;
mod storage;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use round::Round;
use storage::{Storage, Store};
use troupe_cluster::{Cluster, KafkaVersion, ZooKeeperVersion};

/// So many at the same time: most of a round is waiting for the sessions of killed members to expire.
const AT_ONCE: u64 = 5;

#[test]
fn every_record_is_handled_at_least_once_with_offsets_in_zookeeper() {
    rounds(Storage::ZooKeeper, KafkaVersion::V1_1_1, ZooKeeperVersion::V3_4_10);
}

#[test]
fn every_record_is_handled_at_least_once_with_offsets_in_kafka() {
    rounds(Storage::Kafka, KafkaVersion::V3_9_1, ZooKeeperVersion::V3_8_4);
}

#[test]
fn every_record_is_handled_at_least_once_with_offsets_in_both() {
    rounds(Storage::Both, KafkaVersion::V1_1_1, ZooKeeperVersion::V3_4_10);
}

fn rounds(storage: Storage, kafka: KafkaVersion, zookeeper: ZooKeeperVersion) {
    let (count, first) = (number("TROUPE_ROUNDS").unwrap_or(5), number("TROUPE_SEED").unwrap_or(1));
    let cluster = Cluster::builder().kafka(kafka).zookeeper(zookeeper).start().expect("a cluster starts");
    let (begun, next) = (Instant::now(), AtomicU64::new(0));
    let run_some = || {
        let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let numbers = numbers.take_while(|number| *number < count);
        numbers.map(|number| Round::new(&cluster, storage, first + number).run()).collect::<Vec<_>>()
    };
    let names: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE.min(count)).map(|_| scope.spawn(run_some)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a round succeeds")).collect()
    });
    assert_eq!(names.len() as u64, count);
    storage.stores().iter().for_each(|store| check_stored(&cluster, *store, &names));
    println!("{storage}: {count} rounds in {:.1?}", begun.elapsed());
}

/// What is stored has never gone down, and is the end of the log now.
#[track_caller]
fn check_stored(cluster: &Cluster, store: Store, names: &[String]) {
    let values = store.values(cluster);
    for name in names {
        let ends = cluster.log_end_offsets(name).expect("the topic has ends");
        for (partition, end) in (0..).zip(ends) {
            let values = values.get(&(name.clone(), partition)).map_or(&[][..], Vec::as_slice);
            assert!(values.is_sorted(), "{name}-{partition} went down in {store:?}: {values:?}");
            assert_eq!(values.last(), Some(&end), "{name}-{partition} is not at the end in {store:?}");
        }
    }
}

fn number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|error| panic!("{name}={value}: {error}")))
}
