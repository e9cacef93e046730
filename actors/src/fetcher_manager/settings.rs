//! How fetching is done: the properties, as checked at build.

use std::time::Duration;

use kafka_troupe_proto::config::{ConsumerConfig, OffsetReset};

use crate::broker_connection::ConnectOptions;

/// The settings of all fetchers of one member.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FetchSettings {
    /// `client.id` and `socket.timeout.ms`.
    pub connect: ConnectOptions,
    /// `fetch.wait.max.ms` (100): how long a broker waits for [`min_bytes`](Self::min_bytes).
    pub wait_max: Duration,
    /// `fetch.min.bytes` (1): bytes that end the wait.
    pub min_bytes: i32,
    /// `fetch.message.max.bytes` (1 MiB): bytes of one partition in one response; a first batch above it comes whole.
    pub partition_max_bytes: i32,
    /// `troupe.fetch.response.max.bytes` (8 MiB): bytes of one response. Below 4 MiB costs brokers and us processor
    /// time per byte; above 8 MiB only memory grows.
    pub response_max_bytes: i32,
    /// `refresh.leader.backoff.ms` (200): before a failed partition's leader is looked up again.
    pub leader_backoff: Duration,
    /// `auto.offset.reset` (largest): where a partition starts that has no offset, or one that is not in the log.
    pub offset_reset: OffsetReset,
    /// `troupe.new.partitions.reset` (smallest): where one starts that appeared while the group was running.
    pub new_partitions_reset: OffsetReset,
}

impl FetchSettings {
    /// The defaults.
    pub fn new(connect: ConnectOptions) -> Self {
        Self {
            connect,
            wait_max: Duration::from_millis(100),
            min_bytes: 1,
            partition_max_bytes: 1 << 20,
            response_max_bytes: 8 << 20,
            leader_backoff: Duration::from_millis(200),
            offset_reset: OffsetReset::Largest,
            new_partitions_reset: OffsetReset::Smallest,
        }
    }
}

impl From<&ConsumerConfig> for FetchSettings {
    fn from(config: &ConsumerConfig) -> Self {
        // the wire has signed lengths
        let bytes = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
        Self {
            connect: ConnectOptions::new(&config.client_id, config.socket_timeout),
            wait_max: config.fetch_wait_max,
            min_bytes: bytes(config.fetch_min_bytes),
            partition_max_bytes: bytes(config.fetch_message_max_bytes),
            response_max_bytes: bytes(config.fetch_response_max_bytes),
            leader_backoff: config.refresh_leader_backoff,
            offset_reset: config.auto_offset_reset,
            new_partitions_reset: config.new_partitions_reset,
        }
    }
}
