//! Wire codecs, znode formats and the group protocol of Troupe: pure functions of bytes and values.
//!
//! No async, clock, randomness, logging or I/O lives here, so that the same code is run by the actors,
//! by the model checker and by the simulation.
#![deny(missing_docs)]

pub mod config;
pub mod group;
pub mod java;
pub mod kafka;
pub mod schemas;
mod topic_partition;
pub mod zk;

pub use topic_partition::TopicPartition;
