//! Whole records, as a handler of this process gets them.

use std::sync::{Arc, Mutex, PoisonError};

use kafka_troupe::{ConsumerHandle, ConsumerSystem, HandlerResult, Record, StatusSnapshot};
use troupe_cluster::{Cluster, JavaRecord};

use super::system::{Log, Recorder, config};
use super::wait::until_async;

/// What came, in order, written as Kafka's own clients write it.
#[derive(Clone, Default)]
pub struct Kept(Arc<Mutex<Vec<(String, JavaRecord)>>>);

impl Kept {
    /// What a handler does to keep all that it is given.
    pub fn keeper(&self) -> impl Fn(&Record) -> HandlerResult + Clone + Send + Sync + Unpin + use<> {
        let kept = self.clone();
        move |record| {
            let mut records = kept.0.lock().unwrap_or_else(PoisonError::into_inner);
            records.push((record.topic().to_owned(), as_java(record)));
            Ok(())
        }
    }

    pub fn of(&self, topic: &str, partition: i32) -> Vec<JavaRecord> {
        let records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let its = records.iter().filter(|(its, record)| its == topic && record.partition == partition);
        its.map(|(_, record)| record.clone()).collect()
    }

    /// The values of a partition.
    pub fn texts(&self, topic: &str, partition: i32) -> Vec<String> {
        let values = self.of(topic, partition).into_iter().map(|record| record.value.unwrap_or_default());
        values.map(|value| String::from_utf8_lossy(&value).into_owned()).collect()
    }

    /// Waits until a partition has given so many records.
    pub async fn wait_for(&self, topic: &str, partition: i32, count: usize) -> Vec<JavaRecord> {
        until_async(&format!("{count} records of {topic}-{partition}"), async || {
            let records = self.of(topic, partition);
            if records.len() >= count { Ok(records) } else { Err(format!("{}", records.len())) }
        })
        .await
    }
}

/// The type of its timestamp is not told.
fn as_java(record: &Record) -> JavaRecord {
    let headers =
        record.headers().map(|header| (header.name().into_owned(), header.value.map(<[u8]>::to_vec)));
    JavaRecord {
        partition: record.partition(),
        offset: record.offset(),
        timestamp: record.timestamp(),
        timestamp_type: String::new(),
        key: record.key().map(<[u8]>::to_vec),
        value: record.value().map(<[u8]>::to_vec),
        headers: headers.collect(),
    }
}

/// A member of this process that keeps all records of a topic, by one handler. The group is named like the topic.
pub struct Reading {
    pub member: ConsumerHandle,
    pub kept: Kept,
    pub log: Log,
}

impl Reading {
    pub async fn start(cluster: &Cluster, topic: &str, member: &str, more: &[(&str, &str)]) -> Self {
        let (kept, log) = (Kept::default(), Log::default());
        let handler = Recorder::factory(member, &log, kept.keeper());
        let system = ConsumerSystem::builder(config(cluster, topic, member, more)).handle(topic, 1, handler);
        Self { member: system.start().await.expect("a member starts"), kept, log }
    }

    pub async fn status(&self) -> StatusSnapshot {
        self.member.metrics().await.expect("the member runs")
    }

    /// Fetch requests that all brokers have answered.
    pub async fn requests(&self) -> u64 {
        self.status().await.brokers.iter().map(|broker| broker.requests).sum()
    }

    /// Waits until its status is as wished.
    pub async fn wait_for_status<T>(&self, what: &str, look: impl Fn(&StatusSnapshot) -> Option<T>) -> T {
        until_async(what, async || {
            let status = self.status().await;
            look(&status).ok_or_else(|| format!("{status:?}"))
        })
        .await
    }
}
