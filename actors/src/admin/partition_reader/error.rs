//! Why a partition cannot be read on.

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::ErrorCode;

use crate::record::ConsumeError;

/// Why a partition cannot be read on; the others can.
///
/// After [`Unavailable`](Self::Unavailable) it goes on by itself once a leader is there. After any other the partition
/// stands still until [`seek`](super::PartitionReader::seek) gives it another position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionReadError {
    /// The log does not have this offset: not any more, or not yet.
    #[error(
        "{partition} has no offset {offset}: its log goes from {log_start} to {log_end}; {}",
        go_on(.partition, .offset, .log_start, .log_end)
    )]
    OutOfRange {
        /// Which partition.
        partition: TopicPartition,
        /// What was asked for.
        offset: i64,
        /// The first offset of the log.
        log_start: i64,
        /// The offset after its last record.
        log_end: i64,
    },
    /// What the broker has cannot be read; says where to go on.
    #[error(transparent)]
    Unreadable(#[from] ConsumeError),
    /// A record, or a producer's batch, is larger than
    /// [`most_fetch_bytes`](super::PartitionReadOptions::most_fetch_bytes).
    #[error(
        "{partition}: what is at offset {offset} is larger than {most} bytes (most_fetch_bytes); raise that, or \
         go on at {}", .offset + 1
    )]
    TooLarge {
        /// Which partition.
        partition: TopicPartition,
        /// Where it stands.
        offset: i64,
        /// Bytes that were asked for at most.
        most: i32,
    },
    /// No leader answers, for as long as [`patience`](super::PartitionReadOptions::patience) says.
    #[error("{partition}: nobody answers who has its offset {}: {why}", .offset.map_or("yet".to_owned(), |it| it.to_string()))]
    Unavailable {
        /// Which partition.
        partition: TopicPartition,
        /// The next to read; none before the beginning was found.
        offset: Option<i64>,
        /// Why the last attempt failed.
        why: String,
    },
    /// The broker will not let it be read, however often it is asked.
    #[error("{partition}: {error}")]
    Refused {
        /// Which partition.
        partition: TopicPartition,
        /// The broker's code.
        error: ErrorCode,
    },
    /// The cluster does not have it.
    #[error("{partition}: there is no such partition: the topic {}", has(.partitions))]
    NoSuchPartition {
        /// Which partition.
        partition: TopicPartition,
        /// How many the topic has; 0 where it does not exist.
        partitions: usize,
    },
}

impl PartitionReadError {
    /// The partition that cannot be read on.
    pub fn partition(&self) -> TopicPartition {
        match self {
            Self::OutOfRange { partition, .. }
            | Self::TooLarge { partition, .. }
            | Self::Unavailable { partition, .. }
            | Self::Refused { partition, .. }
            | Self::NoSuchPartition { partition, .. } => partition.clone(),
            Self::Unreadable(error) => TopicPartition::new(error.topic.as_str(), error.partition),
        }
    }

    /// The offset at which it can go on, if there is one; what lies before it is not read then.
    pub fn resume_at(&self) -> Option<i64> {
        match self {
            Self::OutOfRange { offset, log_start, log_end, .. } => Some(*offset.clamp(log_start, log_end)),
            Self::Unreadable(error) => Some(error.resume_at),
            Self::TooLarge { offset, .. } => Some(offset + 1),
            Self::Unavailable { .. } | Self::Refused { .. } | Self::NoSuchPartition { .. } => None,
        }
    }
}

fn go_on(partition: &TopicPartition, offset: &i64, log_start: &i64, log_end: &i64) -> String {
    let TopicPartition { topic, partition, .. } = partition;
    format!("to go on at the nearest, seek({topic:?}, {partition}, {})", offset.clamp(log_start, log_end))
}

fn has(partitions: &usize) -> String {
    match partitions {
        0 => "does not exist".to_owned(),
        1 => "has 1, partition 0".to_owned(),
        count => format!("has {count}, 0 to {}", count - 1),
    }
}
