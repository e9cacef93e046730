//! Transactions of Kafka's own producer, interleaved: what is committed, aborted and open.

use std::time::Duration;

use futures_util::StreamExt;
use kafka_troupe::{ConsumerHandle, ConsumerSystem, KafkaStream};
use tokio::time::timeout;
use troupe_cluster::{Cluster, JavaProducer, JavaRecord, KafkaVersion};

use crate::support::clusters::shared;
use crate::support::system::{config, run};
use crate::support::wait::{PATIENCE, until, until_async};
use crate::support::zk_log::GroupHistory;

crate::on_each_version!(committed_aborted_and_open_transactions_of_interleaved_producers);

/// Acknowledged before it returns.
fn send(producer: &mut JavaProducer, topic: &str, values: &[&str]) {
    for value in values {
        let record = JavaRecord { value: Some(value.as_bytes().to_vec()), ..JavaRecord::default() };
        producer.send(topic, &record).expect("it is sent");
    }
    assert_eq!(producer.flush().expect("it is acknowledged"), values.len() as u64);
}

/// The marker is appended some time after the producer was told that its transaction has ended.
fn wait_for_end(cluster: &Cluster, topic: &str, end: i64) {
    until("a marker", || match cluster.log_end_offsets(topic) {
        Ok(ends) if ends == [end] => Ok(()),
        other => Err(format!("{other:?}")),
    });
}

struct Reader {
    group: &'static str,
    system: ConsumerHandle,
    stream: KafkaStream,
}

impl Reader {
    async fn start(cluster: &Cluster, topic: &str, group: &'static str, isolation: &str) -> Self {
        let config = config(cluster, group, "m", &[("isolation.level", isolation)]);
        let system = ConsumerSystem::builder(config).pull(topic, 1).start().await.expect("it starts");
        let stream = system.streams(topic).remove(0);
        Self { group, system, stream }
    }

    /// The offsets and values of what comes next.
    async fn take(&mut self, count: usize) -> Vec<(i64, String)> {
        let mut taken = Vec::new();
        while taken.len() < count {
            let record = timeout(PATIENCE, self.stream.next()).await.expect("in time").expect("no end");
            let record = record.expect("it can be read");
            taken.push((record.offset(), record.text().into_owned()));
        }
        taken
    }

    /// Nothing more comes, the position is there and stored, and nothing is left to read.
    async fn expect_rest_at(&mut self, cluster: &Cluster, topic: &str, position: i64) {
        let more = timeout(Duration::from_secs(1), self.stream.next()).await;
        assert!(more.is_err(), "{more:?} comes after {position}");
        until_async("a position that is stored", async || {
            let partitions = self.system.metrics().await.expect("it runs").partitions;
            let (acked, lag) = (partitions[0].acked, partitions[0].lag);
            let stored = GroupHistory::of(cluster, self.group).committed(topic).get(&0).copied();
            let is_there = (acked, lag, stored) == (position, Some(0), Some(position));
            if is_there { Ok(()) } else { Err(format!("acked {acked}, lag {lag:?}, stored {stored:?}")) }
        })
        .await;
    }
}

fn expected(records: &[(i64, &str)]) -> Vec<(i64, String)> {
    records.iter().map(|(offset, value)| (*offset, (*value).to_owned())).collect()
}

/// The plain producer, and the one whose transaction is open.
fn write(cluster: &Cluster, version: KafkaVersion, topic: &str) -> (JavaProducer, JavaProducer) {
    cluster.create_topic(topic, 1, 1).unwrap();
    let producer = |properties: &[(&str, &str)]| cluster.java_producer(version, properties).unwrap();
    let mut plain = producer(&[]);
    let (mut a, mut b) = (producer(&[("transactional.id", "a")]), producer(&[("transactional.id", "b")]));

    a.begin().unwrap();
    send(&mut a, topic, &["a0", "a1"]);
    b.begin().unwrap();
    send(&mut b, topic, &["b2"]);
    send(&mut plain, topic, &["p3"]);
    send(&mut a, topic, &["a4"]);
    a.abort().unwrap();
    wait_for_end(cluster, topic, 6);
    send(&mut b, topic, &["b6"]);
    b.commit().unwrap();
    wait_for_end(cluster, topic, 8);
    a.begin().unwrap();
    send(&mut a, topic, &["a8"]);
    a.commit().unwrap();
    wait_for_end(cluster, topic, 10);
    b.begin().unwrap();
    send(&mut b, topic, &["b10"]);
    send(&mut plain, topic, &["p11"]);
    (plain, b)
}

const WRITTEN: [(i64, &str); 9] =
    [(0, "a0"), (1, "a1"), (2, "b2"), (3, "p3"), (4, "a4"), (6, "b6"), (8, "a8"), (10, "b10"), (11, "p11")];

fn committed_aborted_and_open_transactions_of_interleaved_producers(version: KafkaVersion) {
    let (cluster, topic) = (shared(version), "transactions");
    let (mut plain, mut b) = write(cluster, version, topic);
    run(async {
        let mut uncommitted = Reader::start(cluster, topic, "uncommitted", "read_uncommitted").await;
        assert_eq!(uncommitted.take(9).await, expected(&WRITTEN));
        uncommitted.expect_rest_at(cluster, topic, 12).await;

        let mut committed = Reader::start(cluster, topic, "committed", "read_committed").await;
        assert_eq!(committed.take(4).await, expected(&[(2, "b2"), (3, "p3"), (6, "b6"), (8, "a8")]));
        // the open transaction begins there
        committed.expect_rest_at(cluster, topic, 10).await;
        for (from, rest) in [(1, 2), (4, 6), (5, 6), (6, 6), (7, 8)] {
            committed.system.seek(topic, 0, from).await.expect("it is ours");
            assert_eq!(committed.take(1).await[0].0, rest, "from {from}");
        }
        committed.expect_rest_at(cluster, topic, 10).await;
        b.abort().unwrap();
        wait_for_end(cluster, topic, 13);
        send(&mut plain, topic, &["p13"]);
        assert_eq!(committed.take(2).await, expected(&[(11, "p11"), (13, "p13")]));
        committed.expect_rest_at(cluster, topic, 14).await;
        assert_eq!(uncommitted.take(1).await, expected(&[(13, "p13")]));

        committed.system.shutdown().await;
        uncommitted.system.shutdown().await;
    });
}
