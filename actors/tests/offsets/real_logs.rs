//! Partition 0 of topic `t` of real brokers, read by a manager that stores positions in a ZooKeeper in memory.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use actix::prelude::*;
use kafka_troupe_actors::broker_connection::ConnectOptions;
use kafka_troupe_actors::fetcher_manager::{
    Assigned, BrokerAddress, Describe, FetchSettings, FetcherManager, FetchingStatus, SetBrokers,
    StartFetching, StopFetching, WaitingPartition,
};
use kafka_troupe_actors::registry::{Joint, OwnedPartition};
use kafka_troupe_actors::stream_queue::FetchedChunk;
use kafka_troupe_actors::testkit::{MemoryZooKeeper, fetch_settings};
use kafka_troupe_proto::config::OffsetReset;
use kafka_troupe_proto::kafka::compression::Decompressor;
use kafka_troupe_proto::kafka::records::{DecodeOptions, RecordBatches};
use troupe_cluster::{Cluster, ProduceRecord};

use crate::member::{Member, guard, partition};
use crate::other::Other;

/// Longer than any step of a real broker takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Offset, value, and what was stored when it arrived.
pub type Arrived = (i64, String, Option<i64>);

/// Handles at once what it gets.
struct Stream {
    arrived: Arc<Mutex<Vec<Arrived>>>,
    other: Other,
}

impl Actor for Stream {
    type Context = Context<Self>;
}

impl Handler<FetchedChunk> for Stream {
    type Result = ();

    fn handle(&mut self, mut chunk: FetchedChunk, _: &mut Context<Self>) {
        let from = chunk.partition.fetched();
        if chunk.take_in() != Joint::Next {
            return;
        }
        let partition = &chunk.partition;
        let stored = self.other.stored().map(|(offset, _)| offset);
        let mut batches = RecordBatches::new(chunk.records.clone(), from, DecodeOptions::default());
        while let Some(batch) = batches.next_batch(&mut Decompressor::default()) {
            let batch = batch.expect("a whole batch");
            let mut records = batch.records();
            while let Some(record) = records.next() {
                let record = record.expect("a whole record");
                let value = record.value(&batch.payload).unwrap_or_default();
                let value = String::from_utf8(value.to_vec()).expect("text");
                self.arrived.lock().unwrap().push((record.offset, value, stored));
            }
        }
        partition.advance_delivered(chunk.next_offset);
        partition.ack(chunk.next_offset);
    }
}

/// One member that reads.
pub struct Reader {
    pub member: Member,
    pub other: Other,
    pub claimed: Arc<OwnedPartition>,
    pub manager: Addr<FetcherManager>,
    stream: Addr<Stream>,
    arrived: Arc<Mutex<Vec<Arrived>>>,
}

pub fn settings(reset: OffsetReset) -> FetchSettings {
    let mut settings = fetch_settings(ConnectOptions::new("test", Duration::from_secs(10)));
    settings.offset_reset = reset;
    settings
}

/// `count` records that begin with a word.
pub fn produce(cluster: &Cluster, word: &str, count: usize) {
    let records = (0..count).map(|number| ProduceRecord::value(format!("{word} {number}")));
    cluster.produce("t", records).unwrap();
}

pub fn brokers(cluster: &Cluster) -> Vec<BrokerAddress> {
    let address = |broker: &troupe_cluster::Broker| BrokerAddress {
        id: broker.id(),
        host: "127.0.0.1".to_owned(),
        port: broker.port(),
    };
    cluster.brokers().iter().map(address).collect()
}

/// Looks again and again at what a cluster does by itself.
pub fn eventually(what: &str, wished: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !wished() {
        assert!(Instant::now() < deadline, "not {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

impl Reader {
    /// Begins at the stored offset, or at none.
    pub async fn start(cluster: &Cluster, settings: FetchSettings, stored: Option<i64>) -> Self {
        let ensemble = MemoryZooKeeper::default();
        let other = Other::connect(&ensemble);
        stored.into_iter().for_each(|offset| other.commit(offset));
        let member = Member::join(&ensemble, "a", true).await;
        let claimed = member.claim().await;
        let arrived = Arc::default();
        let stream = Stream { arrived: Arc::clone(&arrived), other: other.clone() }.start();
        let store = member.committer.clone().into();
        let manager = FetcherManager::new(settings, store, Arbiter::current(), guard()).start();
        manager.do_send(SetBrokers(brokers(cluster)));
        let reader = Self { member, other, claimed, manager, stream, arrived };
        reader.fetch();
        reader
    }

    /// Fetches, again from where it was.
    pub fn fetch(&self) {
        let stream = self.stream.clone().recipient();
        let assigned = Assigned { partition: self.claimed.clone(), stream };
        self.manager.do_send(StartFetching(vec![assigned]));
    }

    /// Fetches no more.
    pub async fn stop_fetching(&self) {
        self.manager.send(StopFetching(vec![partition()])).await.unwrap();
    }

    /// Waits until records with this word have arrived, and gives their offsets with what was stored then.
    pub async fn offsets(&self, word: &str, count: usize) -> Vec<(i64, Option<i64>)> {
        let of_word = || {
            let arrived = self.arrived.lock().unwrap();
            let of_word = arrived.iter().filter(|(_, value, _)| value.starts_with(word));
            of_word.map(|(offset, _, stored)| (*offset, *stored)).collect::<Vec<_>>()
        };
        self.until(&format!("{count} x {word}"), || of_word().len() >= count).await;
        of_word()
    }

    /// How many have arrived.
    pub fn count(&self) -> usize {
        self.arrived.lock().unwrap().len()
    }

    pub async fn describe(&self) -> FetchingStatus {
        self.manager.send(Describe).await.unwrap()
    }

    /// Waits until the partition waits for this reason.
    pub async fn until_waiting_for(&self, why: &str) {
        self.until_status(why, |waiting| waiting.why.as_deref().is_some_and(|reason| reason.contains(why)))
            .await;
    }

    /// Waits until the partition, which was just started, waits again for whatever reason.
    pub async fn until_looked_up(&self) {
        self.until_status("looked up", |waiting| waiting.why.is_some()).await;
    }

    async fn until_status(&self, what: &str, wished: impl Fn(&WaitingPartition) -> bool) {
        self.until_described(what, |status| status.waiting.iter().any(&wished)).await;
    }

    async fn until_described(&self, what: &str, wished: impl Fn(&FetchingStatus) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let status = self.describe().await;
            if wished(&status) {
                return;
            }
            assert!(Instant::now() < deadline, "not {what}: {status:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn until(&self, what: &str, wished: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !wished() {
            if Instant::now() > deadline {
                panic!("not {what}: {:?}, {:?}", self.describe().await, self.arrived.lock().unwrap());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
