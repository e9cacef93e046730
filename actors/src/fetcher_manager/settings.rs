//! How fetching is done: the properties, as checked at build.

use std::sync::Arc;
use std::time::Duration;

use kafka_troupe_proto::config::{ConsumerConfig, IsolationLevel, OffsetReset};

use crate::broker_connection::ConnectOptions;
use crate::supervise::Slot;
use crate::topic_metadata::TopicMetadata;

/// The settings of all fetchers of one member.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FetchSettings {
    /// `client.id` and `socket.timeout.ms`.
    pub connect: ConnectOptions,
    /// `num.consumer.fetchers` (1): fetchers, each with a connection, that share the partitions of one broker.
    pub fetchers: u32,
    /// `fetch.wait.max.ms` (100): how long a broker waits for [`min_bytes`](Self::min_bytes).
    pub wait_max: Duration,
    /// `fetch.min.bytes` (1): bytes that end the wait.
    pub min_bytes: i32,
    /// `fetch.message.max.bytes` (1 MiB): bytes of one partition in one response; a first batch above it comes whole.
    pub partition_max_bytes: i32,
    /// `troupe.fetch.message.max.bytes.limit` (`fetch.message.max.bytes`): how far a partition's fetch may grow for a
    /// batch that is larger, with brokers before 0.10.1.
    pub partition_max_bytes_limit: i32,
    /// `troupe.fetch.response.max.bytes` (8 MiB): bytes of one response. Below 4 MiB costs brokers and us processor
    /// time per byte; above 8 MiB only memory grows.
    pub response_max_bytes: i32,
    /// `client.rack` (none, empty): brokers may tell us to read from a replica in it (KIP-392).
    pub rack: Arc<str>,
    /// `refresh.leader.backoff.ms` (200): before a failed partition's leader is looked up again.
    pub leader_backoff: Duration,
    /// `auto.offset.reset` (largest): where a partition starts that has no offset, or one that is not in the log.
    pub offset_reset: OffsetReset,
    /// `troupe.new.partitions.reset` (smallest): where one starts that appeared while the group was running.
    pub new_partitions_reset: OffsetReset,
    /// `isolation.level` (read_uncommitted): with read_committed, the end of a log is where the first transaction
    /// begins that is still open.
    pub isolation: IsolationLevel,
    /// Asked to look when partitions fail: their topic may be gone, or another. Empty without `bootstrap.servers`.
    pub metadata: Slot<TopicMetadata>,
}

impl From<&ConsumerConfig> for FetchSettings {
    fn from(config: &ConsumerConfig) -> Self {
        // the wire has signed lengths
        let bytes = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
        Self {
            connect: ConnectOptions::new(&config.client_id, config.socket_timeout),
            fetchers: config.num_consumer_fetchers,
            wait_max: config.fetch_wait_max,
            min_bytes: bytes(config.fetch_min_bytes),
            partition_max_bytes: bytes(config.fetch_message_max_bytes),
            partition_max_bytes_limit: bytes(config.fetch_message_max_bytes_limit),
            response_max_bytes: bytes(config.fetch_response_max_bytes),
            rack: config.client_rack.as_deref().unwrap_or_default().into(),
            leader_backoff: config.refresh_leader_backoff,
            offset_reset: config.auto_offset_reset,
            new_partitions_reset: config.new_partitions_reset,
            isolation: config.isolation_level,
            metadata: Slot::default(),
        }
    }
}

impl FetchSettings {
    /// Whether open and aborted transactions are left out.
    pub(crate) fn read_committed(&self) -> bool {
        self.isolation == IsolationLevel::ReadCommitted
    }
}
