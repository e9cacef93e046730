//! From where, to where, and in which portions.

use std::time::Duration;

use crate::stream_queue::ReadOptions;

/// Where reading a partition begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartAt {
    /// At the first record that the log still has. (Offset -2 of Kafka's tools.)
    #[default]
    Earliest,
    /// At the next record to come. (Offset -1 of Kafka's tools.)
    Latest,
    /// So many offsets before the end of the log, or at its beginning if it has fewer. Offsets that hold no record,
    /// such as those of markers of transactions, count as well.
    BeforeEnd(u64),
    /// At this offset; one that the log does not have is [`OutOfRange`](super::PartitionReadError::OutOfRange).
    Offset(i64),
    /// At the first record of this time or younger, in ms since 1970; at the end of the log if there is none. Brokers
    /// before 0.10.1 know times of segments only: it is an earlier record there, or the first.
    Time(i64),
}

/// Where reading a partition ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadUntil {
    /// Nowhere: what comes to the log is waited for.
    #[default]
    Forever,
    /// At the end that the log had when reading began, or has, once it was cut (an unclean election).
    LogEnd,
    /// Before this offset, which is waited for.
    Offset(i64),
}

/// How partitions are read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PartitionReadOptions {
    /// Where reading ends (never).
    pub until: ReadUntil,
    /// Checksums, transactions, decompression.
    pub read: ReadOptions,
    /// Bytes of one partition that are asked for at a time (1 MiB, `fetch.message.max.bytes`). Grows for a record that
    /// is larger.
    pub fetch_bytes: i32,
    /// How far that may grow (100 MiB): a larger record is
    /// [`TooLarge`](super::PartitionReadError::TooLarge).
    pub most_fetch_bytes: i32,
    /// How long a broker waits for records that are not there yet (500 ms, `fetch.wait.max.ms`).
    pub max_wait: Duration,
    /// How long a partition may be without a leader that answers before that is an error (60 s). Trying goes on.
    pub patience: Duration,
    /// Pause before leaders are looked for again (200 ms, `refresh.leader.backoff.ms`).
    pub backoff: Duration,
}

impl Default for PartitionReadOptions {
    fn default() -> Self {
        Self {
            until: ReadUntil::default(),
            read: ReadOptions::default(),
            fetch_bytes: 1 << 20,
            most_fetch_bytes: 100 << 20,
            max_wait: Duration::from_millis(500),
            patience: Duration::from_secs(60),
            backoff: Duration::from_millis(200),
        }
    }
}
