//! Wire codecs, znode formats and the group protocol of Troupe: pure functions of bytes and values.
//!
//! No async, clock, randomness, logging or I/O lives here, so that the same code is run by the actors,
//! by the model checker and by the simulation.
//!
//! - [`kafka`]: requests, responses and record batches, byte for byte.
//! - [`zk`]: paths and texts of znodes, topic filters.
//! - [`group`]: assignment, the rebalance, what becomes of failures.
//! - [`config`]: the properties, with defaults and checks.
//! - [`schemas`]: messages that leave the process: status, rebalances, dead letters, the group.
//! - [`health`]: how a member does, by its status.
//! - [`offset_lines`]: files with an offset in each line: what is wrong with which.
//! - [`java`]: Java's arithmetic, where Kafka shares things out by it.
#![deny(missing_docs)]

pub mod config;
pub mod group;
pub mod health;
pub mod java;
pub mod kafka;
pub mod offset_lines;
pub mod schemas;
mod topic_partition;
pub mod zk;

pub use topic_partition::TopicPartition;
