//! What fetching looks like from outside, for the metrics.

use std::time::Duration;

use actix::{Message, MessageResponse};
use kafka_troupe_proto::TopicPartition;

use super::placements::Placements;

/// How does fetching stand?
#[derive(Message)]
#[rtype(result = "FetchingStatus")]
pub struct Describe;

/// How fetching stands.
#[derive(Clone, Debug, MessageResponse)]
#[non_exhaustive]
pub struct FetchingStatus {
    /// Messages that the manager has handled.
    pub messages: u64,
    /// The fetchers of the brokers that have been fetched from, by broker and fetcher.
    pub brokers: Vec<BrokerStatus>,
    /// Partitions that no fetcher has now.
    pub waiting: Vec<WaitingPartition>,
}

/// One of a broker's fetchers. Counters go on over its restarts.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BrokerStatus {
    /// `broker.id`.
    pub broker: i32,
    /// Which of the broker's fetchers: the old consumer's `fetcherId`, from 0.
    pub fetcher: u32,
    /// As in the metrics: `broker-fetcher/<broker>`, or `broker-fetcher/<fetcher>-<broker>` where there are several.
    pub name: String,
    /// `host:port`.
    pub address: String,
    /// Whether the last request was answered and the fetcher still runs.
    pub connected: bool,
    /// Partitions that it fetches.
    pub partitions: usize,
    /// Fetch requests answered.
    pub requests: u64,
    /// Bytes of record sets received.
    pub bytes: u64,
    /// Fetch requests and connections that failed.
    pub errors: u64,
    /// Time between requests and their answers, in all.
    pub waited: Duration,
    /// How often the fetcher came back after a panic.
    pub restarts: u64,
    /// The last failure of its connection, in words.
    pub last_error: Option<String>,
}

/// A partition that is not being fetched.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WaitingPartition {
    /// Which.
    pub partition: TopicPartition,
    /// It is not tried again until it is started anew.
    pub failed: bool,
    /// The last that went wrong with it, if anything.
    pub why: Option<String>,
}

pub(super) fn waiting(placements: &Placements) -> Vec<WaitingPartition> {
    let waiting = placements.not_fetching().map(|(partition, failed, why)| WaitingPartition {
        partition: partition.clone(),
        failed,
        why: why.map(str::to_owned),
    });
    waiting.collect()
}
