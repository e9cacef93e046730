//! What brokers of a release can be asked.

use crate::{KafkaVersion, connection::Api};

/// How records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// A message set of magic 0 (to 0.9) or 1 (0.10).
    MessageSet(i8),
    /// A record batch of magic 2 (0.11 up).
    Batch,
}

/// A release and all that differs by it: nothing is negotiated, since a cluster knows what it runs. Its requests serve
/// later brokers too, as far as they have ZooKeeper or the release is 1.0 or later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation(KafkaVersion);

impl Generation {
    /// What all brokers of a cluster can be asked, when this is the oldest of them.
    pub(crate) fn of(oldest: KafkaVersion) -> Self {
        Self(oldest)
    }

    pub(crate) fn metadata(self) -> Api {
        Api::METADATA.at(i16::from(self.0 >= KafkaVersion::V0_10_2_2))
    }

    pub(crate) fn list_offsets(self) -> Api {
        Api::LIST_OFFSETS.at(i16::from(self.0 >= KafkaVersion::V0_10_2_2))
    }

    pub(crate) fn produce(self) -> Api {
        Api::PRODUCE.at(match self.format() {
            Format::MessageSet(0) => 0,
            Format::MessageSet(_) => 2,
            Format::Batch => 3,
        })
    }

    pub(crate) fn format(self) -> Format {
        match self.0 {
            KafkaVersion::V0_8_2_2 | KafkaVersion::V0_9_0_1 => Format::MessageSet(0),
            KafkaVersion::V0_10_2_2 => Format::MessageSet(1),
            _ => Format::Batch,
        }
    }

    /// Whether topics can be created, deleted and given partitions by request; else that is written to ZooKeeper, as
    /// Kafka's own tools of the time do. Partitions by request are the last to come, in 1.0.
    pub(crate) fn changes_topics_by_request(self) -> bool {
        self.0 >= KafkaVersion::V1_1_1
    }
}
