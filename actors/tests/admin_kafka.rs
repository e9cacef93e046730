//! Offsets that are stored in Kafka from outside a group, over brokers in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kafka_troupe_actors::admin::{AdminError, KafkaAdmin};
use kafka_troupe_actors::broker_connection::{ConnectOptions, Transport};
use kafka_troupe_actors::testkit::{MemoryBrokers, clock::on_paused_clock};
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::config::ServerAddress;

/// Number of the request.
const OFFSET_COMMIT: i16 = 8;

/// How long a broker takes to answer.
const PACE: Duration = Duration::from_millis(10);

fn key() -> TopicPartition {
    TopicPartition::new("orders", 0)
}

/// What the group has when the answer to a commit of 5 was lost and `meanwhile` was stored, and how the commit came out.
fn after_a_lost_answer(meanwhile: Option<i64>) -> (Option<i64>, Result<(), AdminError>) {
    let mut seen = None;
    on_paused_clock(async {
        let brokers = MemoryBrokers::new(1);
        brokers.create_topic("orders", 1);
        brokers.create_topic("__consumer_offsets", 1);
        brokers.store_offset("g", &key(), 100);
        let mut options = ConnectOptions::new("admin", Duration::from_secs(10));
        options.transport = Transport::Memory { brokers: brokers.clone(), client: "admin".to_owned() };
        let servers = vec![ServerAddress::new("broker-0", 9092)];
        let admin = KafkaAdmin::connect(servers, options).await.expect("it is up");
        brokers.set_pace(Arc::new(|| PACE));
        let (lossy, is_first) = (brokers.clone(), AtomicBool::new(true));
        brokers.set_watch(Arc::new(move |request| {
            if request.api == OFFSET_COMMIT && is_first.swap(false, Ordering::Relaxed) {
                let lossy = lossy.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(PACE / 2).await;
                    lossy.cut("admin");
                    // what was on its way is stored by then
                    tokio::time::sleep(2 * PACE).await;
                    meanwhile.into_iter().for_each(|offset| lossy.store_offset("g", &key(), offset));
                });
            }
        }));
        let committed = admin.commit("g", &[(key(), 5)]).await;
        let committed = committed.map(|told| assert_eq!(told[&key()], Ok(())));
        seen = Some((brokers.stored_offset("g", &key()), committed));
    });
    seen.expect("it ran")
}

#[test]
fn a_commit_whose_answer_was_lost_is_sent_again() {
    assert!(matches!(after_a_lost_answer(None), (Some(5), Ok(()))));
}

#[test]
fn what_a_member_has_committed_since_is_not_taken_back() {
    let (stored, committed) = after_a_lost_answer(Some(200));
    let why = committed.expect_err("somebody else has committed").to_string();
    assert!(why.contains("orders-0 meanwhile"), "{why}");
    assert_eq!(stored, Some(200));
}
