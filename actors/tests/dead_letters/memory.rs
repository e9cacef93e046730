//! On brokers in memory and a clock that stands: leaders that move, answers that are lost, topics that are not there.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe_actors::broker_connection::Transport;
use kafka_troupe_actors::dead_letters::{DeadLetterProblem, DeadLetterWriter, Write};
use kafka_troupe_actors::fetcher_manager::BrokerAddress;
use kafka_troupe_actors::testkit::{Generation, MemoryBrokers, StoredRecord, clock::on_paused_clock};
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::ErrorCode;
use kafka_troupe_proto::schemas::dead_letter::v1::DeadLetter;
use tokio::time::{Instant, timeout};

use super::{Outcome, TOPIC, letter, start, status};

/// Of a broker that does not answer.
const SILENCE: Duration = Duration::from_secs(30);
const PRODUCE: i16 = 0;

struct World {
    brokers: MemoryBrokers,
    writer: Addr<DeadLetterWriter>,
}

/// Two brokers; each leads one of two partitions.
fn world(test: impl AsyncFnOnce(World)) {
    on_paused_clock(async {
        let brokers = MemoryBrokers::new(2);
        brokers.create_topic(TOPIC, 2);
        let address = |id: i32| BrokerAddress { id, host: format!("broker-{id}"), port: 9092 };
        let transport = Transport::Memory { brokers: brokers.clone(), client: "letters".into() };
        let writer = start(&[address(0), address(1)], |connect| connect.transport = transport, SILENCE);
        test(World { brokers, writer }).await;
    });
}

impl World {
    fn send(&self, letter: DeadLetter) -> impl Future<Output = Outcome> + use<> {
        let sent = self.writer.send(Write { topic: TOPIC.into(), letter });
        async { sent.await.expect("it lives") }
    }

    /// What stands in a partition: offset, key, letter.
    fn stored(&self, partition: i32) -> Vec<(i64, Option<Vec<u8>>, DeadLetter)> {
        let records = self.brokers.records(&TopicPartition::new(TOPIC, partition)).expect("whole records");
        let letter = |it: &StoredRecord| it.dead_letter().expect("a dead letter");
        records.iter().map(|it| (it.offset, it.key.as_ref().map(|key| key.to_vec()), letter(it))).collect()
    }
}

#[test]
fn a_letter_is_answered_when_it_stands_in_the_topic_of_brokers_of_every_generation() {
    use Generation::{Kafka0_8_2, Kafka0_9, Kafka1_1, Kafka2_4, Kafka4, Latest};
    for (generation, version) in
        [(Kafka0_8_2, 0), (Kafka0_9, 0), (Kafka1_1, 3), (Kafka2_4, 3), (Latest, 3), (Kafka4, 3)]
    {
        world(async move |world| {
            (0..2).for_each(|broker| world.brokers.set_generation(broker, generation));
            let seen = Arc::<Mutex<Vec<i16>>>::default();
            let told = Arc::clone(&seen);
            world.brokers.set_watch(Arc::new(move |request| {
                if request.api == PRODUCE {
                    told.lock().expect("no panic").push(request.version);
                }
            }));
            let keyed = DeadLetter { key: Some(b"k".as_slice().into()), value: None, ..letter(7, 5) };
            for (letter, offset) in [(letter(7, 4), 0), (keyed.clone(), 1)] {
                let written = world.send(letter).await.expect("it is written");
                // 7 modulo 2
                assert_eq!((written.partition, written.offset), (1, Some(offset)), "{generation:?}");
            }
            assert_eq!(world.stored(1), [(0, None, letter(7, 4)), (1, Some(b"k".to_vec()), keyed)]);
            assert!(world.stored(0).is_empty());
            assert_eq!(*seen.lock().expect("no panic"), [version; 2], "{generation:?}");
            assert_eq!(Vec::from_iter(world.brokers.acks_seen()), [-1], "all in-sync replicas");
            let status = status(&world.writer).await;
            assert_eq!((status.written, status.failures, status.last_error.as_str()), (2, 0, ""));
        });
    }
}

#[test]
fn a_leader_that_moves_is_found_and_the_letter_is_written_there() {
    world(async |world| {
        world.send(letter(0, 1)).await.expect("it is written");
        world.brokers.set_leader(&TopicPartition::new(TOPIC, 0), Some(1));
        world.send(letter(0, 2)).await.expect("it is written");
        // nobody leads it for a second
        world.brokers.set_leader(&TopicPartition::new(TOPIC, 0), None);
        let sent = tokio::spawn(world.send(letter(0, 3)));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!sent.is_finished());
        world.brokers.set_leader(&TopicPartition::new(TOPIC, 0), Some(0));
        sent.await.expect("no panic").expect("it is written");
        let offsets: Vec<_> = world.stored(0).into_iter().map(|(_, _, letter)| letter.offset).collect();
        assert_eq!(offsets, [1, 2, 3]);
        let status = status(&world.writer).await;
        assert!(status.written == 3 && status.failures >= 2 && status.last_error.is_empty(), "{status:?}");
    });
}

#[test]
fn a_broker_that_went_down_is_told_and_the_letter_is_written_when_it_is_back() {
    world(async |world| {
        world.brokers.stop(1);
        let error = world.send(letter(1, 9)).await.expect_err("nobody leads it");
        assert!(matches!(error.problem, DeadLetterProblem::NoLeader { .. }), "{error}");
        assert!(error.to_string().contains("orders-1 at offset 9 is not in topic orders.dead"), "{error}");
        assert!(status(&world.writer).await.last_error.contains("no leader"));
        world.send(letter(0, 1)).await.expect("others are not concerned");
        world.brokers.start(1);
        world.brokers.elect();
        world.send(letter(1, 9)).await.expect("it is written");
        assert_eq!(world.stored(1).len(), 1);
    });
}

#[test]
fn a_topic_that_is_missing_is_named_with_what_to_do_and_written_to_once_it_is_made() {
    use Generation::{Kafka0_8_2, Latest};
    for generation in [Kafka0_8_2, Latest] {
        world(async move |world| {
            (0..2).for_each(|broker| world.brokers.set_generation(broker, generation));
            world.brokers.delete_topic(TOPIC);
            let error = world.send(letter(3, 1)).await.expect_err("there is no such topic");
            assert!(matches!(error.problem, DeadLetterProblem::UnknownTopic { .. }), "{error}");
            let told = error.to_string();
            assert!(
                told.contains("topic orders.dead: broker 0 at broker-0:9092") && told.contains("create it"),
                "{told}"
            );
            assert_eq!(status(&world.writer).await.last_error, told);
            world.brokers.create_topic(TOPIC, 3);
            assert_eq!(world.send(letter(3, 1)).await.expect("it is written").partition, 0);
        });
    }
}

#[test]
fn what_a_broker_refuses_says_what_to_raise_or_to_grant() {
    world(async |world| {
        let large = DeadLetter { value: Some(vec![7; 1000].into()), ..letter(0, 1) };
        for (code, parts) in [
            (10, ["max.message.bytes", "envelope is larger"]),
            (18, ["max.message.bytes", "segment.bytes"]),
            (29, ["grant Write", "principal"]),
            (87, ["broker-0:9092 refuses it", "87 (InvalidRecord)"]),
        ] {
            world.brokers.refuse_produce(TOPIC, Some(ErrorCode::from(code)));
            let before = Instant::now();
            let error = world.send(large.clone()).await.expect_err("it is refused");
            assert!(before.elapsed().is_zero(), "it is told at once");
            assert!(parts.iter().all(|part| error.to_string().contains(part)), "{error}");
            if let DeadLetterProblem::TooLarge { bytes, .. } = error.problem {
                assert!((1000..1200).contains(&bytes), "{bytes}");
            }
        }
        // passes by itself
        world.brokers.refuse_produce(TOPIC, Some(ErrorCode::NotEnoughReplicas));
        let sent = tokio::spawn(world.send(letter(0, 2)));
        tokio::time::sleep(Duration::from_millis(500)).await;
        world.brokers.refuse_produce(TOPIC, None);
        sent.await.expect("no panic").expect("it is written");
        assert_eq!(world.stored(0).len(), 1);
    });
}

#[test]
fn a_letter_whose_answer_is_lost_is_written_again_and_stands_there_twice() {
    world(async |world| {
        // an answer takes its time, in which the connection breaks
        world.brokers.set_pace(Arc::new(|| Duration::from_millis(10)));
        let (brokers, cuts) = (world.brokers.clone(), AtomicU32::new(0));
        world.brokers.set_watch(Arc::new(move |request| {
            if request.api == PRODUCE && cuts.fetch_add(1, SeqCst) == 0 {
                brokers.cut("letters");
            }
        }));
        world.send(letter(0, 1)).await.expect("it is written");
        let stored = world.stored(0);
        assert!(stored.len() == 2 && stored.iter().all(|(_, _, it)| *it == letter(0, 1)));
        assert_eq!(status(&world.writer).await.written, 1);
    });
}

#[test]
fn a_connection_that_was_closed_for_being_idle_is_no_failure() {
    world(async |world| {
        world.send(letter(0, 1)).await.expect("it is written");
        world.brokers.cut("letters");
        let before = Instant::now();
        world.send(letter(0, 2)).await.expect("it is written");
        assert!(before.elapsed().is_zero(), "without a pause");
        assert_eq!(status(&world.writer).await.failures, 0);
    });
}

#[test]
fn a_broker_that_is_silent_holds_up_only_the_partitions_that_it_leads() {
    world(async |world| {
        world.send(letter(1, 1)).await.expect("it is written");
        world.brokers.set_generation(1, Generation::Silent);
        let silent = tokio::spawn(world.send(letter(1, 2)));
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(!silent.is_finished());
        let quick = timeout(Duration::from_secs(5), world.send(letter(0, 3))).await;
        quick.expect("in time").expect("it is written");
        let error = silent.await.expect("no panic").expect_err("it is silent");
        assert!(error.to_string().contains("socket.timeout.ms"), "{error}");
    });
}
