//! Over brokers in memory, on a clock that stands.

use std::time::Duration;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::ErrorCode;
use tokio::time::Instant;

use super::*;
use crate::broker_connection::Transport;
use crate::testkit::clock::on_paused_clock;
use crate::testkit::{Generation, MemoryBrokers, Spoilt};

fn orders(partition: i32) -> TopicPartition {
    TopicPartition::new("orders", partition)
}

/// Two brokers and a topic of two partitions: "a" to "e" in the first, in two batches.
fn brokers() -> MemoryBrokers {
    let brokers = MemoryBrokers::new(2);
    brokers.create_topic("orders", 2);
    brokers.append(&orders(0), &["a", "b", "c"]);
    brokers.append(&orders(0), &["d", "e"]);
    brokers
}

async fn read(
    brokers: &MemoryBrokers,
    partitions: impl IntoIterator<Item = (TopicPartition, StartAt)>,
    until: ReadUntil,
) -> PartitionReader {
    let mut connect = ConnectOptions::new("reader", Duration::from_secs(5));
    connect.transport = Transport::Memory { brokers: brokers.clone(), client: "reader".to_owned() };
    let seeds = (0..2).map(|id| BrokerAddress { id: -1 - id, host: format!("broker-{id}"), port: 9092 });
    let options = PartitionReadOptions { until, ..PartitionReadOptions::default() };
    PartitionReader::start(seeds.collect(), connect, partitions, options).await
}

/// What comes next: a record as `value@offset`, an error as its text.
async fn next(reader: &mut PartitionReader) -> Option<String> {
    Some(match reader.next().await? {
        Ok(record) => format!("{}@{}", record.text(), record.offset()),
        Err(error) => error.to_string(),
    })
}

async fn rest(reader: &mut PartitionReader) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(read) = next(reader).await {
        all.push(read);
    }
    all
}

#[test]
fn it_begins_where_it_is_told_and_ends_at_the_end_that_it_saw() {
    on_paused_clock(async {
        let brokers = brokers();
        for (start, expected) in [
            (StartAt::Earliest, &["a@0", "b@1", "c@2", "d@3", "e@4"][..]),
            (StartAt::Latest, &[]),
            (StartAt::BeforeEnd(2), &["d@3", "e@4"]),
            (StartAt::BeforeEnd(100), &["a@0", "b@1", "c@2", "d@3", "e@4"]),
            (StartAt::Offset(4), &["e@4"]),
            (StartAt::Offset(5), &[]),
        ] {
            let mut reader = read(&brokers, [(orders(0), start)], ReadUntil::LogEnd).await;
            assert_eq!(rest(&mut reader).await, expected, "{start:?}");
            let (_, progress) = reader.progress().next().expect("it was found");
            assert_eq!((progress.position, progress.log_end), (5, 5), "{start:?}");
        }
        // what comes to the log meanwhile is behind the end
        let mut reader = read(&brokers, [(orders(0), StartAt::Earliest)], ReadUntil::LogEnd).await;
        brokers.append(&orders(0), &["f"]);
        assert_eq!(rest(&mut reader).await.last().map(String::as_str), Some("e@4"));
        let mut reader = read(&brokers, [(orders(0), StartAt::Offset(1))], ReadUntil::Offset(3)).await;
        assert_eq!(rest(&mut reader).await, ["b@1", "c@2"]);
    });
}

/// As after an unclean election: what was behind is gone, and nothing comes in its place.
#[test]
fn a_log_that_is_cut_meanwhile_ends_where_it_ends_now() {
    on_paused_clock(async {
        let brokers = brokers();
        let mut reader = read(&brokers, [(orders(0), StartAt::Earliest)], ReadUntil::LogEnd).await;
        brokers.delete_topic("orders");
        brokers.create_topic("orders", 2);
        brokers.append(&orders(0), &["a", "b", "c"]);
        let begun = Instant::now();
        let all = tokio::time::timeout(Duration::from_secs(60), rest(&mut reader)).await.expect("an end");
        assert_eq!(all, ["a@0", "b@1", "c@2"]);
        let (_, progress) = reader.progress().next().expect("it was found");
        assert_eq!((progress.position, progress.log_end), (3, 3));
        // a leader that was just elected is given time to find out how far its followers are
        assert!(begun.elapsed() >= Duration::from_secs(5), "{:?}", begun.elapsed());
        // an offset that was named is waited for
        let mut reader = read(&brokers, [(orders(0), StartAt::Earliest)], ReadUntil::Offset(5)).await;
        let all = tokio::time::timeout(Duration::from_secs(60), rest(&mut reader)).await;
        assert!(all.is_err(), "{all:?}");
    });
}

#[test]
fn what_comes_later_is_waited_for() {
    on_paused_clock(async {
        let brokers = brokers();
        let partitions = [(orders(0), StartAt::Latest), (orders(1), StartAt::Latest)];
        let mut reader = read(&brokers, partitions, ReadUntil::Forever).await;
        let nothing = tokio::time::timeout(Duration::from_secs(20), reader.next()).await;
        assert!(nothing.is_err(), "there is nothing");
        brokers.append(&orders(0), &["f"]);
        brokers.append(&orders(1), &["g"]);
        let mut both = vec![next(&mut reader).await, next(&mut reader).await];
        both.sort();
        assert_eq!(both, [Some("f@5".to_owned()), Some("g@0".to_owned())]);
        let fetches = brokers.fetches(&orders(0));
        assert!(fetches < 50, "{fetches} fetches in 20 s");
    });
}

#[test]
fn an_offset_that_the_log_does_not_have_is_said_with_what_it_has() {
    on_paused_clock(async {
        let brokers = brokers();
        brokers.delete_before(&orders(0), 3);
        for (offset, nearest) in [(0, 3), (6, 5)] {
            let mut reader = read(&brokers, [(orders(0), StartAt::Offset(offset))], ReadUntil::Forever).await;
            let error = reader.next().await.expect("an error").expect_err("out of range");
            assert_eq!(
                error.to_string(),
                format!(
                    "orders-0 has no offset {offset}: its log goes from 3 to 5; to go on at the nearest, \
                     seek(\"orders\", 0, {nearest})"
                )
            );
            assert_eq!(error.resume_at(), Some(nearest));
            assert!(reader.next().await.is_none(), "it stands still");
            reader.seek("orders", 0, 3);
            assert_eq!(next(&mut reader).await.as_deref(), Some("d@3"));
        }
        // also where the log is cut under a reader
        let mut reader = read(&brokers, [(orders(1), StartAt::Earliest)], ReadUntil::Forever).await;
        brokers.append(&orders(1), &["a"]);
        brokers.append(&orders(1), &["b"]);
        brokers.delete_before(&orders(1), 1);
        let error = reader.next().await.expect("an error").expect_err("out of range");
        assert_eq!((error.resume_at(), error.partition()), (Some(1), orders(1)));
    });
}

#[test]
fn a_leader_that_moves_or_restarts_is_followed() {
    on_paused_clock(async {
        let brokers = brokers();
        let mut reader = read(&brokers, [(orders(0), StartAt::Earliest)], ReadUntil::Forever).await;
        assert_eq!(next(&mut reader).await.as_deref(), Some("a@0"));
        for round in 0..4 {
            brokers.set_leader(&orders(0), Some(round % 2));
            brokers.append(&orders(0), &[&format!("r{round}")]);
        }
        brokers.stop(0);
        brokers.set_leader(&orders(0), Some(1));
        let read: Vec<_> = [next(&mut reader).await, next(&mut reader).await].into_iter().flatten().collect();
        assert_eq!(read, ["b@1", "c@2"]);
        for expected in ["d@3", "e@4", "r0@5", "r1@6", "r2@7", "r3@8"] {
            assert_eq!(next(&mut reader).await.as_deref(), Some(expected));
        }
        brokers.stop(1);
        let waits = tokio::time::timeout(Duration::from_secs(30), reader.next()).await;
        assert!(waits.is_err(), "nobody is up");
        brokers.start(1);
        brokers.set_leader(&orders(0), Some(1));
        brokers.append(&orders(0), &["last"]);
        assert_eq!(next(&mut reader).await.as_deref(), Some("last@9"));
    });
}

#[test]
fn a_partition_without_leader_is_an_error_after_the_patience_and_goes_on_by_itself() {
    on_paused_clock(async {
        let brokers = brokers();
        let partitions = [(orders(0), StartAt::Earliest), (orders(1), StartAt::Earliest)];
        brokers.append(&orders(1), &["other"]);
        let mut reader = read(&brokers, partitions, ReadUntil::Forever).await;
        brokers.set_leader(&orders(0), None);
        let began = Instant::now();
        let mut read = Vec::new();
        while let Some(Ok(record)) = reader.next().await {
            read.push(format!("{}@{}", record.partition(), record.offset()));
        }
        // what had come before is not lost, and the other is read
        assert!(read.contains(&"1@0".to_owned()), "{read:?}");
        assert!(began.elapsed() >= Duration::from_secs(60), "{:?}", began.elapsed());
        brokers.set_leader(&orders(0), Some(1));
        brokers.append(&orders(0), &["f"]);
        while next(&mut reader).await.as_deref() != Some("f@5") {}
    });
}

#[test]
fn a_partition_that_is_left_keeps_the_others_from_no_end() {
    on_paused_clock(async {
        let brokers = brokers();
        brokers.append(&orders(1), &["other"]);
        let partitions = [(orders(0), StartAt::Earliest), (orders(1), StartAt::Earliest)];
        let mut reader = read(&brokers, partitions, ReadUntil::LogEnd).await;
        brokers.set_leader(&orders(0), None);
        let mut read = Vec::new();
        while let Some(next) = reader.next().await {
            match next {
                Ok(record) => read.push(format!("{}@{}", record.partition(), record.offset())),
                Err(error) => reader.leave(&error.partition()),
            }
        }
        assert_eq!(read, ["1@0"]);
    });
}

#[test]
fn a_partition_that_does_not_exist_is_said_at_once_and_made_by_nobody() {
    on_paused_clock(async {
        let brokers = brokers();
        for generation in [Generation::Kafka0_8_2, Generation::Latest] {
            (0..2).for_each(|broker| brokers.set_generation(broker, generation));
            for (topic, partition, says) in [
                ("orders", 2, "orders-2: there is no such partition: the topic has 2, 0 to 1"),
                ("absent", 0, "absent-0: there is no such partition: the topic does not exist"),
            ] {
                let wanted = [(TopicPartition::new(topic, partition), StartAt::Earliest)];
                let began = Instant::now();
                let mut reader = read(&brokers, wanted, ReadUntil::LogEnd).await;
                assert_eq!(rest(&mut reader).await, [says]);
                assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
            }
        }
        assert_eq!(brokers.topics().len(), 1);
    });
}

#[test]
fn a_refusal_is_said_and_the_other_partition_is_read() {
    on_paused_clock(async {
        let brokers = brokers();
        brokers.append(&orders(1), &["other"]);
        brokers.refuse_fetches(&orders(0), ErrorCode::TopicAuthorizationFailed, 1);
        let partitions = [(orders(0), StartAt::Earliest), (orders(1), StartAt::Earliest)];
        let mut reader = read(&brokers, partitions, ReadUntil::LogEnd).await;
        let mut all = rest(&mut reader).await;
        all.sort();
        let [first, second] = &all[..] else { panic!("{all:?}") };
        assert_eq!(
            first,
            "orders-0: broker error 29 (TopicAuthorizationFailed): We may not read (or write) the topic: an ACL is missing"
        );
        assert_eq!(second, "other@0");
    });
}

#[test]
fn what_cannot_be_read_is_said_with_where_to_go_on() {
    on_paused_clock(async {
        for spoilt in [None, Some(Spoilt::Format), Some(Spoilt::Size)] {
            let brokers = brokers();
            brokers.append(&orders(0), &["f"]);
            match spoilt {
                None => brokers.damage(&orders(0), 3),
                Some(spoilt) => brokers.spoil(&orders(0), 3, spoilt),
            }
            let mut reader = read(&brokers, [(orders(0), StartAt::Offset(1))], ReadUntil::LogEnd).await;
            assert_eq!(next(&mut reader).await.as_deref(), Some("b@1"));
            assert_eq!(next(&mut reader).await.as_deref(), Some("c@2"));
            let error = reader.next().await.expect("an error").expect_err("damaged");
            let PartitionReadError::Unreadable(ConsumeError { offset, resume_at, .. }) = &error else {
                panic!("{error}")
            };
            // how far a batch goes whose head is not understood cannot be told
            assert_eq!((*offset, *resume_at), (3, if spoilt.is_none() { 5 } else { 4 }), "{error}");
            assert!(reader.next().await.is_none(), "it stands still");
            reader.seek("orders", 0, 5);
            assert_eq!(rest(&mut reader).await, ["f@5"]);
        }
    });
}

#[test]
fn a_fetch_that_fails_for_a_while_loses_nothing() {
    on_paused_clock(async {
        let brokers = brokers();
        for error in
            [ErrorCode::NotLeaderOrFollower, ErrorCode::KafkaStorageError, ErrorCode::UnknownServerError]
        {
            brokers.refuse_fetches(&orders(0), error, 3);
            let began = Instant::now();
            let mut reader = read(&brokers, [(orders(0), StartAt::Earliest)], ReadUntil::LogEnd).await;
            assert_eq!(rest(&mut reader).await.len(), 5, "{error}");
            assert!(began.elapsed() >= Duration::from_millis(600), "it pauses: {:?}", began.elapsed());
        }
    });
}
