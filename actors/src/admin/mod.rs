//! # Conversations with the servers outside any group
//!
//! For tools and for applications that look after groups: plain async structs, no actors. Nobody joins a group here
//! or holds an ephemeral node, and looking makes no topic.
//!
//! - [`ZooKeeperAdmin`]: groups that are coordinated through ZooKeeper, their offsets there, and the brokers and topics
//!   that stand in it.
//! - [`KafkaAdmin`]: topics, logs, groups and offsets, asked of brokers.
//! - [`PartitionReader`]: the records of partitions.

mod error;
mod kafka;
mod kafka_describe;
mod kafka_groups;
mod kafka_logs;
mod kafka_offsets;
mod partition_reader;
mod zookeeper;

pub use error::AdminError;
pub use kafka::KafkaAdmin;
pub use kafka_groups::{KafkaGroup, KafkaGroupListing, KafkaMember};
pub use kafka_logs::LogOffsets;
pub use kafka_offsets::Committed;
pub use partition_reader::{
    PartitionReadError, PartitionReadOptions, PartitionReader, ReadProgress, ReadUntil, StartAt,
};
pub use zookeeper::{OffsetNode, ZooKeeperAdmin};
