//! On real brokers of every format: Kafka's own producer writes records, a member gives them up, and Kafka's own
//! consumer reads what became of them.

use std::time::Duration;

use actix::prelude::*;
use futures_util::StreamExt as _;
use kafka_troupe_actors::dead_letters::{DeadLetterProblem, DeadLetterWriter, DeadLetters, Write, Written};
use kafka_troupe_actors::fetcher_manager::BrokerAddress;
use kafka_troupe_actors::supervise::Slot;
use kafka_troupe_actors::{ConsumerHandle, ConsumerSystem};
use kafka_troupe_proto::config::ConsumerConfig;
use kafka_troupe_proto::schemas::dead_letter::v1::DeadLetter;
use prost::Message as _;
use tokio::time::{Instant, sleep};
use troupe_cluster::{Cluster, JavaRecord, KafkaVersion, ZooKeeperVersion};

use super::{TOPIC, letter, start};

const PATIENCE: Duration = Duration::from_secs(60);

fn cluster(version: KafkaVersion, brokers: usize, properties: &[(&str, &str)]) -> Cluster {
    let zookeeper = match version {
        old if old <= KafkaVersion::V1_1_1 => ZooKeeperVersion::V3_4_10,
        _ => ZooKeeperVersion::V3_8_4,
    };
    let builder = Cluster::builder().kafka(version).zookeeper(zookeeper).brokers(brokers);
    let set = |builder: troupe_cluster::ClusterBuilder, (key, value): &(&str, &str)| {
        builder.broker_property(*key, *value)
    };
    properties.iter().fold(builder, set).start().expect("a cluster")
}

fn addresses(cluster: &Cluster) -> Vec<BrokerAddress> {
    let address =
        |it: &troupe_cluster::Broker| BrokerAddress { id: it.id(), host: it.host().into(), port: it.port() };
    cluster.brokers().iter().map(address).collect()
}

fn writer_of(cluster: &Cluster) -> Addr<DeadLetterWriter> {
    start(&addresses(cluster), |_| {}, Duration::from_secs(10))
}

macro_rules! on_each_format {
    ($($name:ident: $version:ident,)*) => {
        $(#[test]
        fn $name() {
            System::new().block_on(a_record_comes_back_as_it_was(KafkaVersion::$version));
        })*
    };
}

on_each_format! {
    a_record_comes_back_as_it_was_from_0_8_2_2: V0_8_2_2,
    a_record_comes_back_as_it_was_from_0_9_0_1: V0_9_0_1,
    a_record_comes_back_as_it_was_from_0_10_2_2: V0_10_2_2,
    a_record_comes_back_as_it_was_from_1_1_1: V1_1_1,
    a_record_comes_back_as_it_was_from_3_9_1: V3_9_1,
    a_record_comes_back_as_it_was_from_4_1_1: V4_1_1,
}

/// As far as the version's records go.
fn records(version: KafkaVersion) -> Vec<JavaRecord> {
    let bytes = |bytes: &[u8]| Some(bytes.to_vec());
    let headers =
        vec![("h".to_owned(), bytes(b"\x00\xff")), ("h".to_owned(), None), ("é".to_owned(), bytes(b""))];
    let record = |offset: i64, key, value| JavaRecord {
        partition: 1,
        offset,
        timestamp: (version >= KafkaVersion::V0_10_2_2).then_some(1_600_000_000_000 + offset),
        key,
        value,
        headers: if version >= KafkaVersion::V0_11_0_3 { headers.clone() } else { Vec::new() },
        ..JavaRecord::default()
    };
    vec![
        record(0, None, bytes(b"\x00binary\xff")),
        record(1, bytes(b"key"), None),
        record(2, bytes(b""), bytes(b"")),
        record(3, bytes(b"key"), bytes(&[b'x'; 10_000])),
    ]
}

async fn a_record_comes_back_as_it_was(version: KafkaVersion) {
    let cluster = cluster(version, 1, &[]);
    cluster.create_topic("orders", 2, 1).expect("a topic");
    cluster.create_topic(TOPIC, 3, 1).expect("a topic");
    let producer_version = if version.is_kraft() { KafkaVersion::V3_9_1 } else { version };
    let mut producer = cluster.java_producer(producer_version, &[]).expect("a producer");
    let sent = records(version);
    sent.iter().for_each(|record| producer.send("orders", record).expect("it is sent"));
    producer.flush().expect("it is written");

    let member = member(&cluster).await;
    let slot = Slot::default();
    slot.set(writer_of(&cluster));
    let letters = DeadLetters::new(slot, "g", "g_m");
    let mut stream = member.streams("orders").remove(0);
    for attempts in 1..=4 {
        let record = stream.next().await.expect("no end").expect("it can be read");
        let reason = format!("cannot handle number {attempts}");
        let written = letters.write(&TOPIC.into(), &record, &reason, attempts).await;
        let Written { partition, offset, .. } = written.expect("it is written");
        assert_eq!((partition, offset), (1, Some(i64::from(attempts) - 1)), "{version}");
    }
    member.shutdown().await;
    let read = cluster.java_consume(TOPIC, &[]).expect("it is read");
    assert_eq!(read.len(), 4);
    for ((kept, record), attempts) in read.iter().zip(&sent).zip(1..) {
        check(kept, record, attempts, version);
    }
}

async fn member(cluster: &Cluster) -> ConsumerHandle {
    let config = ConsumerConfig::builder()
        .zookeeper_connect(cluster.zookeeper_connect())
        .group_id("g")
        .property("auto.offset.reset", "smallest");
    let config = match cluster.broker(0).version().is_kraft() {
        true => config.property("bootstrap.servers", &cluster.bootstrap()),
        false => config,
    };
    let system = ConsumerSystem::builder(config.build().expect("a configuration"));
    system.pull("orders", 1).start().await.expect("it starts")
}

fn check(kept: &JavaRecord, record: &JavaRecord, attempts: u32, version: KafkaVersion) {
    let letter = DeadLetter::decode(kept.value.as_deref().expect("an envelope")).expect("a dead letter");
    assert_eq!((kept.partition, &kept.key, kept.headers.len()), (1, &record.key, 0), "{version}");
    assert_eq!((letter.topic.as_str(), letter.partition, letter.offset), ("orders", 1, record.offset));
    assert_eq!(letter.timestamp, record.timestamp, "{version}");
    assert_eq!(letter.key.as_deref(), record.key.as_deref(), "null and empty stay apart");
    assert_eq!(letter.value.as_deref(), record.value.as_deref(), "null and empty stay apart");
    let headers: Vec<_> =
        letter.headers.into_iter().map(|it| (it.key, it.value.map(|value| value.to_vec()))).collect();
    assert_eq!(headers, record.headers, "{version}");
    assert_eq!((letter.reason, letter.attempts), (format!("cannot handle number {attempts}"), attempts));
    assert_eq!((letter.group.as_str(), letter.consumer_id.as_str()), ("g", "g_m"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    assert!((0..600_000).contains(&(now.as_millis() as i64 - letter.given_up_ms)), "{}", letter.given_up_ms);
    if version >= KafkaVersion::V0_10_2_2 {
        assert_eq!(kept.timestamp, Some(letter.given_up_ms), "its own time, not the record's: {version}");
    }
}

/// Writes until it is written, as a stream does; gives the errors on the way.
async fn insist(writer: &Addr<DeadLetterWriter>, letter: &DeadLetter) -> Vec<DeadLetterProblem> {
    let (until, mut problems) = (Instant::now() + PATIENCE, Vec::new());
    loop {
        let write = Write { topic: TOPIC.into(), letter: letter.clone() };
        match writer.send(write).await.expect("it lives") {
            Ok(_) => return problems,
            Err(error) => problems.push(error.problem),
        }
        assert!(Instant::now() < until, "{problems:?}");
        sleep(Duration::from_millis(100)).await;
    }
}

/// Offsets of the records whose letters stand there, as Kafka's consumer reads them.
fn kept(cluster: &Cluster) -> Vec<i64> {
    let read = cluster.java_consume(TOPIC, &[]).expect("it is read");
    let letter =
        |it: &JavaRecord| DeadLetter::decode(it.value.as_deref().expect("an envelope")).expect("a letter");
    read.iter().map(|it| letter(it).offset).collect()
}

/// With two in-sync replicas wanted and one left, `acks=1` would be written and lost with its broker.
#[test]
fn no_letter_is_lost_when_brokers_are_killed_for_all_in_sync_replicas_have_it() {
    System::new().block_on(async {
        let cluster = cluster(KafkaVersion::V3_9_1, 2, &[("min.insync.replicas", "2")]);
        cluster.create_topic(TOPIC, 1, 2).expect("a topic");
        let writer = writer_of(&cluster);
        insist(&writer, &letter(0, 0)).await;
        cluster.broker(1).kill().expect("it runs");
        let refused =
            writer.send(Write { topic: TOPIC.into(), letter: letter(0, 1) }).await.expect("it lives");
        refused.expect_err("one replica is left of two that must have it");
        cluster.broker(1).restart().expect("it starts");
        let again = insist(&writer, &letter(0, 1)).await;
        println!("on the way: {again:?}");
        let kept = kept(&cluster);
        assert!(kept.contains(&0) && kept.contains(&1), "{kept:?}");
    });
}

#[test]
fn letters_are_written_while_their_leader_is_killed_and_another_takes_over() {
    System::new().block_on(async {
        let cluster = cluster(KafkaVersion::V1_1_1, 2, &[]);
        cluster.create_topic(TOPIC, 2, 2).expect("a topic");
        let writer = writer_of(&cluster);
        for offset in 0..20 {
            if offset == 10 {
                cluster.broker(0).kill().expect("it runs");
            }
            insist(&writer, &letter(offset as i32, offset)).await;
        }
        cluster.broker(0).restart().expect("it starts");
        cluster.wait_for_leaders(TOPIC).expect("leaders");
        let kept = kept(&cluster);
        assert!((0..20).all(|offset| kept.contains(&offset)), "{kept:?}");
    });
}

/// Brokers that make topics which they are asked for must not make this one.
#[test]
fn a_missing_topic_is_told_and_not_made_and_written_to_once_it_is_there() {
    for version in [KafkaVersion::V0_8_2_2, KafkaVersion::V3_9_1] {
        System::new().block_on(async {
            let cluster = cluster(version, 1, &[("auto.create.topics.enable", "true")]);
            let writer = writer_of(&cluster);
            let write = || writer.send(Write { topic: TOPIC.into(), letter: letter(4, 1) });
            for _ in 0..2 {
                let error = write().await.expect("it lives").expect_err("there is no such topic");
                assert!(matches!(error.problem, DeadLetterProblem::UnknownTopic { .. }), "{error}");
            }
            assert!(!cluster.client().topics().expect("topics").contains(&TOPIC.to_owned()));
            cluster.create_topic(TOPIC, 3, 1).expect("a topic");
            let problems = insist(&writer, &letter(4, 1)).await;
            println!("{version}: {problems:?}");
            assert_eq!(kept(&cluster), [1]);
        });
    }
}

#[test]
fn an_envelope_that_is_too_large_says_what_to_raise() {
    for version in [KafkaVersion::V0_8_2_2, KafkaVersion::V3_9_1] {
        System::new().block_on(async {
            let cluster = cluster(version, 1, &[("message.max.bytes", "20000")]);
            cluster.create_topic(TOPIC, 1, 1).expect("a topic");
            let writer = writer_of(&cluster);
            let large = DeadLetter { value: Some(vec![7; 20_000].into()), ..letter(0, 1) };
            insist(&writer, &letter(0, 0)).await;
            let answer = writer.send(Write { topic: TOPIC.into(), letter: large }).await.expect("it lives");
            let error = answer.expect_err("it is too large");
            assert!(matches!(error.problem, DeadLetterProblem::TooLarge { .. }), "{version}: {error}");
            assert!(error.to_string().contains("message.max.bytes"), "{error}");
            insist(&writer, &letter(0, 2)).await;
            assert_eq!(kept(&cluster), [0, 2]);
        });
    }
}
