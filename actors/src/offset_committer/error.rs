//! Why offsets could not be read or stored.

use kafka_troupe_proto::TopicPartition;

/// Why offsets could not be read or stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The store did not answer as hoped.
    #[error("offset of {partition}: {why}")]
    Store {
        /// Which.
        partition: TopicPartition,
        /// Names the path and the reason.
        why: String,
    },
    /// The lease has ended: the partition may be another member's by now.
    #[error("offset of {0}: not committed, the session's lease has ended")]
    Fenced(TopicPartition),
    /// Another member owns the partition.
    #[error("offset of {partition}: not committed, the partition is lost: {why}")]
    Lost {
        /// Which.
        partition: TopicPartition,
        /// What was found.
        why: String,
    },
    /// The partition is not this member's.
    #[error("offset of {0}: not committed, this member does not own it; the one that does commits it")]
    NotOwned(TopicPartition),
    /// Offsets begin at 0.
    #[error("offset of {partition}: {offset} is none that could be committed, they begin at 0")]
    Negative {
        /// Which.
        partition: TopicPartition,
        /// What was asked for.
        offset: i64,
    },
    /// A stored offset goes down by an explicit reset only.
    #[error(
        "offset of {partition}: {stored} is stored, which {offset} would take back; to read again from there, seek"
    )]
    Backwards {
        /// Which.
        partition: TopicPartition,
        /// What is stored.
        stored: i64,
        /// What was asked for.
        offset: i64,
    },
    /// A commit past what was handed over would skip records that nobody has seen.
    #[error("offset of {partition}: {}", skipped(*delivered, *offset))]
    NotDelivered {
        /// Which.
        partition: TopicPartition,
        /// The next offset to hand over; negative while the partition has no position yet.
        delivered: i64,
        /// What was asked for.
        offset: i64,
    },
    /// There is nobody to commit: the system was not started yet, has shut down, or its committer is being restarted
    /// and does not come back.
    #[error("nothing is committed: the consumer system, or its offset committer, is not running")]
    NotRunning,
}

fn skipped(delivered: i64, offset: i64) -> String {
    match delivered {
        ..0 => format!("it has no position yet, so {offset} could skip records; to begin there, seek"),
        _ => format!(
            "records from {delivered} on were not delivered yet, so {offset} would skip some; to pass them over, seek"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_delivered_is_told_also_where_there_is_no_position_yet() {
        let told = |delivered| {
            let partition = TopicPartition::new("t", 0);
            CommitError::NotDelivered { partition, delivered, offset: 7 }.to_string()
        };
        assert!(told(3).contains("records from 3 on"), "{}", told(3));
        assert!(told(-1).contains("no position yet") && !told(-1).contains("-1"), "{}", told(-1));
    }
}
