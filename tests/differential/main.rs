//! The differential check: random records, written by Kafka's own producers and by a second client, are read by Kafka's
//! own consumer and by Troupe, which must deliver the same, byte for byte.
//!
//! `TROUPE_DIFFERENTIAL` is the number of records in all (5000), `TROUPE_SEED` chooses others.

mod batches;
mod compare;
mod journal;
mod raw;
mod records;
mod topics;
mod troupe;
mod writing;

use std::collections::BTreeMap;
use std::time::Instant;

use fastrand::Rng;
use troupe_cluster::{Cluster, JavaRecord, KafkaVersion};

use crate::journal::Journal;
use crate::topics::{PARTITIONS, Topic};
use crate::troupe::{Delivered, Way};
use crate::writing::{Writing, has_transactions};

const RECORDS: usize = 5_000;
const SEED: u64 = 5;

macro_rules! each_release {
    ($($name:ident: $version:ident $percent:literal,)*) => {
        $(#[test]
        fn $name() {
            check(KafkaVersion::$version, $percent);
        })*
    };
}

// each with a share of the records, in percent
each_release! {
    magic_0_on_0_8_2_2_reads_as_by_the_simple_consumer: V0_8_2_2 10,
    magic_0_and_1_on_0_10_2_2_read_as_by_the_java_consumer: V0_10_2_2 10,
    all_formats_on_1_1_1_read_as_by_the_java_consumer: V1_1_1 40,
    magic_2_on_3_9_1_reads_as_by_the_java_consumer: V3_9_1 20,
    magic_2_on_4_4_0_reads_as_by_the_java_consumer: V4_4_0 20,
}

/// What 1.1.1 has stored is read from 3.9.1 too, after an upgrade in place.
fn check(version: KafkaVersion, percent: usize) {
    let begun = Instant::now();
    let count = number("TROUPE_DIFFERENTIAL").map_or(RECORDS, |count| count as usize) * percent / 100;
    let seed = number("TROUPE_SEED").unwrap_or(SEED);
    println!("{version}: {count} records, TROUPE_SEED={seed}");
    // 4.x takes no timestamps of more than an hour ahead by default
    let ahead = ("log.message.timestamp.after.max.ms", i64::MAX.to_string());
    let cluster = Cluster::builder().kafka(version).broker_property(ahead.0, ahead.1).start().unwrap();
    let topics = topics::of(version);
    topics.iter().for_each(|topic| topic.create(&cluster));
    println!("{version}: started after {:.1?}", begun.elapsed());

    let journal = Writing::new(&cluster, topics.clone(), &mut Rng::with_seed(seed)).write(count);
    println!("{version}: written after {:.1?}\n{journal}", begun.elapsed());
    let compare = |read_committed| {
        let (now, delivered) = compare_readings(&cluster, &topics, &journal, read_committed);
        println!("{version}: {delivered} from {now} compared after {:.1?}", begun.elapsed());
    };
    compare(false);
    if has_transactions(version) {
        compare(true);
    }
    if version == KafkaVersion::V1_1_1 {
        cluster.broker(0).restart_as(KafkaVersion::V3_9_1).unwrap();
        topics.iter().for_each(|topic| cluster.wait_for_leaders(topic.name).unwrap());
        compare(true);
    }
}

/// Returns what was read in words, and from which release.
fn compare_readings(
    cluster: &Cluster,
    topics: &[Topic],
    journal: &Journal,
    read_committed: bool,
) -> (KafkaVersion, String) {
    let names: Vec<&str> = topics.iter().map(|topic| topic.name).collect();
    let reading = if read_committed { "read_committed" } else { "read_uncommitted" };
    let (by_java, by_troupe) = std::thread::scope(|scope| {
        let by_java = scope.spawn(|| read_by_java(cluster, &names, reading));
        let by_troupe = read_by_troupe(cluster, topics, journal, read_committed);
        (by_java.join().unwrap(), by_troupe)
    });
    let mut count = 0;
    for place in journal.places() {
        let key = (place.0.to_owned(), place.1);
        let lists = (by_java.get(&key), by_troupe.records.get(&key));
        let (java, troupe) = (lists.0.map_or(&[][..], Vec::as_slice), lists.1.map_or(&[][..], Vec::as_slice));
        let written = as_written(journal.readable(place, read_committed), java);
        compare::same(journal, place, ("written", &written), ("the Java consumer", java), reading);
        compare::same(journal, place, ("the Java consumer", java), ("Troupe", troupe), reading);
        count += java.len();
    }
    assert_eq!(by_troupe.error, None);
    assert_eq!(by_troupe.records.values().map(Vec::len).sum::<usize>(), count);
    (cluster.broker(0).version(), format!("{reading}: {count} records"))
}

fn read_by_troupe(cluster: &Cluster, topics: &[Topic], journal: &Journal, read_committed: bool) -> Delivered {
    let names: Vec<&str> = topics.iter().map(|topic| topic.name).collect();
    let places = || names.iter().flat_map(|topic| (0..PARTITIONS).map(move |partition| (*topic, partition)));
    let ends = places().map(|place| (place, journal.readable_end(place, read_committed))).collect();
    let count: usize = places().map(|place| journal.readable(place, read_committed).count()).sum();
    // the smaller size cuts batches, which then come whole all the same (KIP-74)
    let fetch_bytes = if read_committed { "16384" } else { "1048576" };
    let way = Way { read_committed, handled: read_committed, fetch_bytes };
    troupe::read(cluster, &names, &ends, count / 2, way)
}

/// By the consumer of 3.9.1, or the simple one where that cannot.
fn read_by_java(
    cluster: &Cluster,
    topics: &[&str],
    reading: &str,
) -> BTreeMap<(String, i32), Vec<JavaRecord>> {
    let lists = if cluster.broker(0).version() < KafkaVersion::V0_10_2_2 {
        let consume = |topic: &&str| ((*topic).to_owned(), cluster.java_consume(topic, &[]).unwrap());
        topics.iter().map(consume).collect()
    } else {
        cluster.java_consume_all(topics, &[("isolation.level", reading)]).unwrap()
    };
    let mut partitions: BTreeMap<_, Vec<JavaRecord>> = BTreeMap::new();
    for (topic, records) in lists {
        for record in records {
            partitions.entry((topic.clone(), record.partition)).or_default().push(record);
        }
    }
    partitions
}

/// What was written; where only a consumer can know, as it says: the type of a timestamp, and the broker's own.
fn as_written<'a>(written: impl Iterator<Item = &'a JavaRecord>, read: &[JavaRecord]) -> Vec<JavaRecord> {
    let mut read = read.iter();
    let fill = |record: &JavaRecord| {
        let mut record = record.clone();
        if let Some(read) = read.next() {
            record.timestamp = record.timestamp.or(read.timestamp);
            record.timestamp_type.clone_from(&read.timestamp_type);
        }
        record
    };
    written.map(fill).collect()
}

fn number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|error| panic!("{name}={value}: {error}")))
}
