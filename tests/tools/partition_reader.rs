//! `PartitionReader` against real brokers: codecs, transactions, large records, and a leader that is killed.

use std::collections::BTreeSet;
use std::time::Duration;

use kafka_troupe::TopicPartition;
use kafka_troupe::actors::broker_connection::ConnectOptions;
use kafka_troupe::actors::fetcher_manager::BrokerAddress;
use kafka_troupe::admin::{PartitionReadOptions, PartitionReader, ReadUntil, StartAt};
use troupe_cluster::{Cluster, JavaProducer, JavaRecord, KafkaVersion, KafkaVersion::*, ProduceRecord};

use crate::{eventually, on_0_8_2_2, on_1_1_1, on_3_9_1, on_4_1_1};

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(crate::PATIENCE, work).await.expect("in time") })
}

async fn open(
    cluster: &Cluster,
    keys: &[(TopicPartition, StartAt)],
    options: PartitionReadOptions,
) -> PartitionReader {
    let brokers = cluster.brokers().iter().map(|broker| BrokerAddress {
        id: -1 - broker.id(),
        host: broker.host().to_owned(),
        port: broker.port(),
    });
    let connect = ConnectOptions::new("reader", Duration::from_secs(10));
    PartitionReader::start(brokers.collect(), connect, keys.iter().cloned(), options).await
}

/// All up to the end, as offset and value.
async fn all(mut reader: PartitionReader) -> Vec<(i64, String)> {
    let mut read = Vec::new();
    while let Some(record) = reader.next().await {
        let record = record.expect("it can be read");
        read.push((record.offset(), record.text().into_owned()));
    }
    read
}

fn to_the_end() -> PartitionReadOptions {
    let mut options = PartitionReadOptions::default();
    options.until = ReadUntil::LogEnd;
    options
}

fn send(producer: &mut JavaProducer, topic: &str, values: &[String]) {
    for value in values {
        let record = JavaRecord { value: Some(value.as_bytes().to_vec()), ..JavaRecord::default() };
        producer.send(topic, &record).unwrap();
    }
    assert_eq!(producer.flush().unwrap(), values.len() as u64);
}

/// Every codec of the release, and among them a record that is larger than what is asked for at a time.
fn reads_what_the_release_writes(cluster: &Cluster, version: KafkaVersion, codecs: &[&str]) {
    let topic = "codecs";
    cluster.create_topic(topic, 1, 1).unwrap();
    cluster.wait_for_leaders(topic).unwrap();
    let mut producer = cluster.java_producer(version, &[]).unwrap();
    let mut written = Vec::new();
    for codec in codecs {
        producer.configure(&[("compression.type", codec), ("linger.ms", "50")]).unwrap();
        let mut values: Vec<_> = (0..200).map(|n| format!("{codec} {n}")).collect();
        values.push(format!("{codec} {}", "large ".repeat(100_000)));
        send(&mut producer, topic, &values);
        written.extend(values);
    }
    let mut options = to_the_end();
    options.fetch_bytes = 2_000;
    let key = TopicPartition::new(topic, 0);
    let read = block_on(async { all(open(cluster, &[(key, StartAt::Earliest)], options).await).await });
    let expected: Vec<_> = (0..).zip(written).collect();
    assert!(read == expected, "{} of {} records", read.len(), expected.len());
}

#[test]
fn reads_what_0_8_2_2_writes() {
    reads_what_the_release_writes(on_0_8_2_2(), V0_8_2_2, &["none", "gzip", "snappy", "lz4"]);
}

#[test]
fn reads_what_1_1_1_writes() {
    reads_what_the_release_writes(on_1_1_1(), V1_1_1, &["none", "gzip", "snappy", "lz4"]);
}

#[test]
fn reads_what_3_9_1_writes() {
    reads_what_the_release_writes(on_3_9_1(), V3_9_1, &["none", "gzip", "snappy", "lz4", "zstd"]);
}

#[test]
fn reads_what_4_1_1_writes() {
    reads_what_the_release_writes(on_4_1_1(), V4_1_1, &["none", "gzip", "snappy", "lz4", "zstd"]);
}

fn transactions(cluster: &Cluster, version: KafkaVersion) {
    let (topic, key) = ("reader-transactions", TopicPartition::new("reader-transactions", 0));
    cluster.create_topic(topic, 1, 1).unwrap();
    cluster.wait_for_leaders(topic).unwrap();
    let mut producer = cluster.java_producer(version, &[("transactional.id", "reader")]).unwrap();
    for (value, is_kept) in [("aborted", false), ("kept", true), ("aborted too", false)] {
        producer.begin().unwrap();
        send(&mut producer, topic, &[value.to_owned()]);
        match is_kept {
            true => producer.commit().map(drop).unwrap(),
            false => producer.abort().unwrap(),
        }
    }
    eventually("the last marker", || match cluster.log_end_offsets(topic) {
        Ok(ends) if ends == [6] => Ok(()),
        other => Err(format!("{other:?}")),
    });
    producer.begin().unwrap();
    send(&mut producer, topic, &["open".to_owned()]);
    let read = |read_committed: bool, start: StartAt| {
        let mut options = to_the_end();
        options.read.read_committed = read_committed;
        let keys = [(key.clone(), start)];
        block_on(async { all(open(cluster, &keys, options).await).await })
    };
    assert_eq!(read(true, StartAt::Earliest), [(2, "kept".to_owned())]);
    // behind the end that is told, and not out of range
    assert_eq!(read(true, StartAt::Offset(7)), []);
    let offsets: Vec<_> = read(false, StartAt::Earliest).into_iter().map(|(offset, _)| offset).collect();
    assert_eq!(offsets, [0, 2, 4, 6]);
    producer.abort().unwrap();
}

#[test]
fn committed_reads_leave_out_what_was_aborted_or_is_open_on_1_1_1() {
    transactions(on_1_1_1(), V1_1_1);
}

#[test]
fn committed_reads_leave_out_what_was_aborted_or_is_open_on_3_9_1() {
    transactions(on_3_9_1(), V3_9_1);
}

#[test]
fn committed_reads_leave_out_what_was_aborted_or_is_open_on_4_1_1() {
    transactions(on_4_1_1(), V4_1_1);
}

#[test]
fn a_leader_that_is_killed_in_the_middle_costs_no_record_and_none_comes_twice() {
    let cluster = Cluster::builder().kafka(V3_9_1).brokers(2).start().unwrap();
    let topic = "killed";
    cluster.create_topic(topic, 4, 2).unwrap();
    cluster.wait_for_leaders(topic).unwrap();
    let numbers = |from: usize, to: usize| (from..to).map(|n| ProduceRecord::value(n.to_string()));
    cluster.produce(topic, numbers(0, 20_000)).unwrap();
    let keys: Vec<_> = (0..4).map(|it| (TopicPartition::new(topic, it), StartAt::Earliest)).collect();
    let mut options = PartitionReadOptions::default();
    options.fetch_bytes = 10_000;
    block_on(async {
        let mut reader = open(&cluster, &keys, options).await;
        let (mut read, mut places) = (BTreeSet::new(), BTreeSet::new());
        while read.len() < 25_000 {
            let record = reader.next().await.expect("no end").expect("it can be read");
            assert!(places.insert((record.partition(), record.offset())), "{record:?} comes twice");
            read.insert(record.text().parse::<usize>().expect("a number"));
            if places.len() == 5_000 {
                cluster.broker(0).kill().unwrap();
            }
            if places.len() == 15_000 {
                cluster.broker(0).restart().unwrap();
                cluster.produce(topic, numbers(20_000, 25_000)).unwrap();
            }
        }
        assert_eq!((read.len(), places.len()), (25_000, 25_000));
    });
}
