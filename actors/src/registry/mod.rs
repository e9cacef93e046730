//! The shared topic registry: what this member owns right now, partition by partition.
//!
//! The coordinator puts a partition in when its position is known and takes it out when it is stopped;
//! fetchers, streams, the committer and the metrics read it. An [`OwnedPartition`] belongs to one claim: a
//! partition that comes back is a new one, so whatever still holds the old one (a chunk in flight, a late
//! acknowledgement) changes nothing any more.

mod owned_partition;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dashmap::DashMap;
use kafka_troupe_proto::TopicPartition;

pub use owned_partition::{Claim, Gate, Joint, NO_OFFSET, NO_VERSION, OwnedPartition, Position};

/// Partition to what is known of it; shared by all actors of one member.
#[derive(Default)]
pub struct TopicRegistry {
    partitions: DashMap<TopicPartition, Arc<OwnedPartition>>,
    /// Records and bytes handed over under claims that have ended.
    past: (AtomicU64, AtomicU64),
}

impl TopicRegistry {
    /// Adds a partition, in place of an earlier claim of it.
    pub fn insert(&self, partition: Arc<OwnedPartition>) {
        if let Some(earlier) = self.partitions.insert(partition.topic_partition.clone(), partition) {
            self.remember(&earlier);
        }
    }

    /// The current claim of a partition.
    pub fn get(&self, topic_partition: &TopicPartition) -> Option<Arc<OwnedPartition>> {
        self.partitions.get(topic_partition).map(|entry| Arc::clone(&entry))
    }

    /// Takes a partition out.
    pub fn remove(&self, topic_partition: &TopicPartition) -> Option<Arc<OwnedPartition>> {
        let (_, partition) = self.partitions.remove(topic_partition)?;
        self.remember(&partition);
        Some(partition)
    }

    fn remember(&self, partition: &OwnedPartition) {
        let (records, bytes) = partition.counted();
        self.past.0.fetch_add(records, Relaxed);
        self.past.1.fetch_add(bytes, Relaxed);
    }

    /// Records and bytes handed over since the start.
    pub fn counted(&self) -> (u64, u64) {
        self.partitions.iter().map(|entry| entry.counted()).fold(
            (self.past.0.load(Relaxed), self.past.1.load(Relaxed)),
            |(records, bytes), (more_records, more_bytes)| (records + more_records, bytes + more_bytes),
        )
    }

    /// All partitions owned now, in order.
    pub fn all(&self) -> Vec<Arc<OwnedPartition>> {
        let mut all: Vec<_> = self.partitions.iter().map(|entry| Arc::clone(&entry)).collect();
        all.sort_by(|a, b| a.topic_partition.cmp(&b.topic_partition));
        all
    }
}

#[cfg(test)]
mod tests;
