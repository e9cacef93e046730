//! What a claim is made of.

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::{Generation, SessionNumber};
use kafka_troupe_proto::zk::ConsumerThreadId;

use super::NO_VERSION;
use crate::lease::SessionEpoch;

/// A stored offset as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The next offset to consume, the larger where two stores are in use; none when nothing (or -1) is stored.
    pub offset: Option<i64>,
    /// What the offset node holds, if it counts: after a while with Kafka alone it is behind.
    pub in_zookeeper: Option<i64>,
    /// What Kafka holds.
    pub in_kafka: Option<i64>,
    /// The offset node's version, or [`NO_VERSION`](super::NO_VERSION).
    pub version: i32,
    /// It was stored for an earlier topic of this name, which has been deleted since.
    pub earlier_topic: bool,
}

impl Position {
    /// Nothing is stored.
    pub const NONE: Self =
        Self { offset: None, in_zookeeper: None, in_kafka: None, version: NO_VERSION, earlier_topic: false };

    /// By what both stores hold, as far as it counts.
    pub(crate) fn of(in_zookeeper: Option<i64>, in_kafka: Option<i64>, version: i32) -> Self {
        Self { offset: in_zookeeper.max(in_kafka), in_zookeeper, in_kafka, version, earlier_topic: false }
    }
}

/// What a claim is made of, besides its counters.
pub struct Claim {
    /// Which partition.
    pub topic_partition: TopicPartition,
    /// The rebalance that starts it.
    pub generation: Generation,
    /// The claiming session.
    pub session: SessionNumber,
    /// The same, by the session actor's count.
    pub epoch: SessionEpoch,
    /// Who consumes it.
    pub thread: ConsumerThreadId,
    /// It appeared while the group was running.
    pub appeared: bool,
    /// The stored offset, read after the claim.
    pub position: Position,
}
