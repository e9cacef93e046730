//! Why a dead letter could not be written.

use std::sync::Arc;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::{Disposition, ErrorCode};

/// A dead letter could not be written, or its answer was lost. It is written again; its partition waits until it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the dead letter of {partition} at offset {offset} is not in topic {topic}: {problem}")]
#[non_exhaustive]
pub struct DeadLetterError {
    /// The dead-letter topic.
    pub topic: Arc<str>,
    /// Where the record that was given up was read.
    pub partition: TopicPartition,
    /// Its offset there.
    pub offset: i64,
    /// What went wrong.
    pub problem: DeadLetterProblem,
}

/// What went wrong with a dead letter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeadLetterProblem {
    /// The brokers know no such topic.
    #[error(
        "{brokers} knows no topic of that name, or an acl hides it: create it in that cluster; it is tried again"
    )]
    UnknownTopic {
        /// Who was asked.
        brokers: String,
    },
    /// Its partition has no leader, or the brokers do not say yet.
    #[error("no leader of its partition: {why}")]
    NoLeader {
        /// As the brokers say.
        why: String,
    },
    /// A broker's limit is lower than what the letter takes.
    #[error(
        "{bytes} bytes are too large for it ({error}); the envelope is larger than the record, so the topic's max.message.bytes (or the brokers' message.max.bytes, and replica.fetch.max.bytes) must be that of the topic that was read and at least 64 KiB more"
    )]
    TooLarge {
        /// Of the record that holds the envelope.
        bytes: usize,
        /// As the broker says.
        error: ErrorCode,
    },
    /// An acl is missing.
    #[error("{error}; grant Write (and Describe) on topic {topic} to this client's principal")]
    NotAuthorized {
        /// The dead-letter topic.
        topic: Arc<str>,
        /// As the broker says.
        error: ErrorCode,
    },
    /// The leader refused it.
    #[error("{broker} refuses it: {error}")]
    Refused {
        /// The leader.
        broker: String,
        /// As the broker says.
        error: ErrorCode,
    },
    /// No answer came. The letter may stand there all the same.
    #[error("{why}; it may have been written all the same")]
    NoAnswer {
        /// Names the broker.
        why: String,
    },
    /// No broker could be asked.
    #[error("no broker could be asked for the leader: {why}")]
    Unreached {
        /// Names the brokers.
        why: String,
    },
    /// The writer is being restarted, or the system has shut down.
    #[error("its writer is not running, or ended meanwhile")]
    NotRunning,
}

impl DeadLetterProblem {
    /// As a rule it passes by itself; with any other, somebody must do something first.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Refused { error, .. } => error.disposition() != Disposition::Fatal,
            Self::NoLeader { .. } | Self::NoAnswer { .. } | Self::Unreached { .. } | Self::NotRunning => true,
            Self::UnknownTopic { .. } | Self::TooLarge { .. } | Self::NotAuthorized { .. } => false,
        }
    }
}
