//! Reads partitions without a group, as the old simple consumer did: nothing is claimed, nothing is committed.
//!
//! | file | what |
//! |---|---|
//! | `reading` | how far one partition is (pure) |
//! | `asking` | leaders, ends of logs, fetches: one at a time per broker, brokers beside each other |
//! | `turn` | what is asked for next, and what an answer changes |
//! | `walk` | the records of one answer, decoded by the same code as streams use |

mod asking;
mod error;
mod options;
mod reading;
mod turn;
mod walk;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::compression::Decompressor;

use super::KafkaAdmin;
use crate::broker_connection::{BrokerConnection, ConnectOptions};
use crate::fetcher_manager::BrokerAddress;
use crate::record::{ConsumeError, Record};
use crate::stream_queue::why_unreadable;
use asking::Event;
pub use error::PartitionReadError;
pub use options::{PartitionReadOptions, ReadUntil, StartAt};
pub use reading::ReadProgress;
use reading::Reading;
use walk::{Chunk, Walk};

/// Reads partitions without a group, as the old simple consumer did: nothing is claimed, nothing is committed. Records of
/// one partition come in order; among partitions, as their leaders answer.
///
/// ```no_run
/// # use kafka_troupe_actors::admin::{PartitionReadOptions, PartitionReader, ReadUntil, StartAt};
/// # use kafka_troupe_actors::broker_connection::ConnectOptions;
/// # use kafka_troupe_actors::fetcher_manager::BrokerAddress;
/// # use kafka_troupe_proto::TopicPartition;
/// # use std::time::Duration;
/// # async fn read() -> Result<(), Box<dyn std::error::Error>> {
/// let broker = BrokerAddress { id: -1, host: "localhost".to_owned(), port: 9092 };
/// let connect = ConnectOptions::new("reader", Duration::from_secs(30));
/// let mut options = PartitionReadOptions::default();
/// options.until = ReadUntil::LogEnd;
/// let partitions = [(TopicPartition::new("orders", 0), StartAt::Earliest)];
/// let mut reader = PartitionReader::start(vec![broker], connect, partitions, options).await;
/// while let Some(record) = reader.next().await {
///     println!("{:?}", record?.value());
/// }
/// # Ok(())
/// # }
/// ```
pub struct PartitionReader {
    options: PartitionReadOptions,
    connect: ConnectOptions,
    /// Who is asked for leaders: those given, and those learnt.
    brokers: Vec<BrokerAddress>,
    readings: BTreeMap<TopicPartition, Reading>,
    /// Idle ones, by broker.
    connections: BTreeMap<i32, BrokerConnection>,
    /// Brokers that are being asked.
    asked: BTreeSet<i32>,
    /// Leaders are being looked for.
    is_finding: bool,
    under_way: FuturesUnordered<BoxFuture<'static, Event>>,
    chunks: VecDeque<Chunk>,
    walk: Option<Walk>,
    decompressor: Decompressor,
    errors: VecDeque<PartitionReadError>,
    /// How many fetches each broker was sent: whose turn it is to stand first in one.
    fetches: BTreeMap<i32, usize>,
}

impl KafkaAdmin {
    /// As [`PartitionReader::start`], with the brokers and options of this.
    pub async fn read_partitions(
        &self,
        partitions: impl IntoIterator<Item = (TopicPartition, StartAt)>,
        options: PartitionReadOptions,
    ) -> PartitionReader {
        PartitionReader::start(self.brokers(), self.options.clone(), partitions, options).await
    }
}

impl PartitionReader {
    /// Finds out who leads the partitions and where their logs begin and end; waits for that at most
    /// [`patience`](PartitionReadOptions::patience). `brokers` are asked in turn; their ids do not matter.
    ///
    /// Never fails: what cannot be read is told by [`next`](Self::next).
    pub async fn start(
        brokers: Vec<BrokerAddress>,
        connect: ConnectOptions,
        partitions: impl IntoIterator<Item = (TopicPartition, StartAt)>,
        options: PartitionReadOptions,
    ) -> Self {
        let reading = |(key, start): (TopicPartition, StartAt)| {
            (key.clone(), Reading::new(key, start, options.fetch_bytes))
        };
        let mut reader = Self {
            readings: partitions.into_iter().map(reading).collect(),
            decompressor: options.read.decompressor(),
            options,
            connect,
            brokers,
            connections: BTreeMap::new(),
            asked: BTreeSet::new(),
            is_finding: false,
            under_way: FuturesUnordered::new(),
            chunks: VecDeque::new(),
            walk: None,
            errors: VecDeque::new(),
            fetches: BTreeMap::new(),
        };
        while !reader.readings.values().all(Reading::is_begun) {
            reader.turn().await;
        }
        reader
    }

    /// The next record, or why one partition cannot be read on; nothing when all are read to their ends, or stand still
    /// after an error. May be dropped and called again.
    pub async fn next(&mut self) -> Option<Result<Record, PartitionReadError>> {
        loop {
            if let Some(error) = self.errors.pop_front() {
                return Some(Err(error));
            }
            if let Some(read) = self.step() {
                return Some(read);
            }
            if self.readings.values().all(|reading| reading.is_over(self.options.until)) {
                return None;
            }
            self.turn().await;
        }
    }

    /// Goes on at another offset, also after an error. What has come of the partition is dropped.
    pub fn seek(&mut self, topic: &str, partition: i32, offset: i64) {
        let key = TopicPartition::new(topic, partition);
        self.drop_chunks(&key);
        if let Some(reading) = self.readings.get_mut(&key) {
            reading.seek(offset);
        }
    }

    /// Reads no more of a partition, so that one that is not to be had ends nothing for the others.
    pub fn leave(&mut self, partition: &TopicPartition) {
        self.drop_chunks(partition);
        if let Some(reading) = self.readings.get_mut(partition) {
            reading.stop();
        }
    }

    /// How far each partition is read whose log was found.
    pub fn progress(&self) -> impl Iterator<Item = (&TopicPartition, ReadProgress)> {
        self.readings.iter().filter_map(|(key, reading)| Some((key, reading.progress()?)))
    }

    /// The next record of what has come.
    fn step(&mut self) -> Option<Result<Record, PartitionReadError>> {
        loop {
            let Some(walk) = &mut self.walk else {
                let chunk = self.chunks.pop_front()?;
                let until = self.readings.get(&*chunk.partition)?.until(self.options.until);
                self.walk = Some(Walk::new(chunk, until, &self.options.read));
                continue;
            };
            let reading = self.readings.get_mut(&*walk.partition)?;
            match walk.next(&mut self.decompressor) {
                Some(Ok(record)) => {
                    reading.advance(record.offset() + 1);
                    return Some(Ok(record));
                }
                Some(Err(error)) => {
                    reading.stop();
                    let why = why_unreadable(&error.problem);
                    let error = ConsumeError::new(&walk.partition, error.offset, error.resume_at, why);
                    self.end_walk();
                    return Some(Err(error.into()));
                }
                None => {
                    reading.advance(walk.next);
                    self.end_walk();
                }
            }
        }
    }

    fn end_walk(&mut self) {
        if let Some(walk) = self.walk.take()
            && let Some(reading) = self.readings.get_mut(&*walk.partition)
        {
            reading.is_queued = false;
        }
    }

    fn drop_chunks(&mut self, key: &TopicPartition) {
        self.chunks.retain(|chunk| *chunk.partition != *key);
        if self.walk.as_ref().is_some_and(|walk| *walk.partition == *key) {
            self.walk = None;
        }
    }
}
