//! The shared topic registry: what this member owns right now, partition by partition.
//!
//! The coordinator puts a partition in when its position is known and takes it out when it is stopped;
//! fetchers, streams, the committer and the metrics read it. An [`OwnedPartition`] belongs to one claim: a
//! partition that comes back is a new one, so whatever still holds the old one (a chunk in flight, a late
//! acknowledgement) changes nothing any more.

mod claim;
mod owned_partition;
mod pausing;

use std::sync::{Arc, Weak};

use dashmap::DashMap;
use kafka_troupe_proto::TopicPartition;

pub use claim::{Claim, Position};
pub use owned_partition::{
    Gate, Halt, HaltReason, Joint, NO_EPOCH, NO_OFFSET, NO_VERSION, OwnedPartition, Round, UnwrittenLetter,
};
pub(crate) use owned_partition::{LetterUnderWay, Unanswered};
use pausing::Pauses;

/// Partition to what is known of it; shared by all actors of one member.
#[derive(Default)]
pub struct TopicRegistry {
    partitions: DashMap<TopicPartition, Arc<OwnedPartition>>,
    /// Given up, but the last flush is not done.
    retired: DashMap<TopicPartition, Arc<OwnedPartition>>,
    /// The last flush is under way, or was.
    flushed: DashMap<TopicPartition, Weak<OwnedPartition>>,
    paused: Pauses,
    /// Records and bytes handed over under claims that have ended.
    past: DashMap<TopicPartition, (u64, u64)>,
}

impl TopicRegistry {
    /// Adds a partition, in place of an earlier claim of it. One of a topic that is paused is.
    pub fn insert(&self, partition: Arc<OwnedPartition>) {
        let mut paused = self.paused.lock();
        paused.apply(&partition);
        if let Some(earlier) = self.partitions.insert(partition.topic_partition.clone(), partition) {
            self.remember(&earlier);
        }
    }

    /// Puts a [renewed](OwnedPartition::renewed) claim in the place of `claim`; `false`, and nothing done, when that is
    /// not the current one any more.
    pub fn renew(&self, claim: &Arc<OwnedPartition>, renewed: Arc<OwnedPartition>) -> bool {
        let _pausing = self.paused.lock();
        let Some(mut current) = self.partitions.get_mut(&claim.topic_partition) else { return false };
        let is_current = Arc::ptr_eq(&current, claim);
        if is_current {
            self.remember(claim);
            renewed.succeed(claim);
            renewed.pause_as(claim);
            *current = renewed;
        }
        is_current
    }

    /// The current claim of a partition.
    pub fn get(&self, topic_partition: &TopicPartition) -> Option<Arc<OwnedPartition>> {
        self.partitions.get(topic_partition).map(|entry| Arc::clone(&entry))
    }

    /// Takes a partition out. It can still be committed, until [`settle`](Self::settle) or [`forget`](Self::forget).
    pub fn retire(&self, topic_partition: &TopicPartition) -> Option<Arc<OwnedPartition>> {
        let (_, partition) = self.partitions.remove(topic_partition)?;
        self.paused.keep(&partition);
        self.remember(&partition);
        self.retired.insert(topic_partition.clone(), Arc::clone(&partition));
        Some(partition)
    }

    /// The last flush of retired claims is due: gives those that were not [forgotten](Self::forget) meanwhile.
    pub fn settle(&self, retired: Vec<Arc<OwnedPartition>>) -> Vec<Arc<OwnedPartition>> {
        let is_still = |claim: &Arc<OwnedPartition>| {
            self.flushed.insert(claim.topic_partition.clone(), Arc::downgrade(claim));
            self.retired.remove_if(&claim.topic_partition, |_, retired| Arc::ptr_eq(retired, claim)).is_some()
        };
        retired.into_iter().filter(is_still).collect()
    }

    /// A partition is lost: nothing of it is committed any more, also not by a flush or commit that is tried again.
    pub fn forget(&self, topic_partition: &TopicPartition) {
        self.released(topic_partition);
        let retired = self.retired.remove(topic_partition).map(|(_, partition)| partition);
        let flushed = self.flushed.remove(topic_partition).and_then(|(_, partition)| partition.upgrade());
        retired.iter().chain(&flushed).for_each(|partition| partition.supersede());
    }

    /// A partition is another member's to claim: that this one has paused it counts no more.
    pub fn released(&self, topic_partition: &TopicPartition) {
        self.paused.forget(topic_partition);
    }

    /// A topic was made again: its partition's position is that of an earlier one, and not committed until there is
    /// another. Also that of one that is given up and not flushed.
    pub fn topic_remade(&self, topic_partition: &TopicPartition) {
        for partitions in [&self.partitions, &self.retired] {
            if let Some(partition) = partitions.get(topic_partition) {
                partition.topic_remade();
            }
        }
        if let Some(partition) = self.being_flushed(topic_partition) {
            partition.topic_remade();
        }
    }

    /// Its last flush may still wait for its turn, or be tried again.
    fn being_flushed(&self, topic_partition: &TopicPartition) -> Option<Arc<OwnedPartition>> {
        self.flushed.get(topic_partition).and_then(|partition| partition.upgrade())
    }

    /// Whether an offset of it may still be written: of one that is owned, or given up and not flushed.
    pub fn may_be_written(&self, topic_partition: &TopicPartition) -> bool {
        let flushed = || self.being_flushed(topic_partition).is_some();
        self.partitions.contains_key(topic_partition)
            || self.retired.contains_key(topic_partition)
            || flushed()
    }

    /// The claim of one of those.
    pub fn committable_one(&self, topic_partition: &TopicPartition) -> Option<Arc<OwnedPartition>> {
        let retired = || self.retired.get(topic_partition).map(|entry| Arc::clone(&entry));
        self.get(topic_partition).or_else(retired)
    }

    /// Those that are given up and whose last flush is not done.
    pub fn unflushed(&self) -> Vec<Arc<OwnedPartition>> {
        let mut unflushed = in_order(&[&self.retired]);
        unflushed.extend(self.flushed.iter().filter_map(|partition| partition.upgrade()));
        unflushed
    }

    fn remember(&self, partition: &OwnedPartition) {
        let mut past = self.past.entry(partition.topic_partition.clone()).or_default();
        *past = added(*past, partition.counted());
    }

    /// Records and bytes handed over since the start.
    pub fn counted(&self) -> (u64, u64) {
        let past = self.past.iter().map(|entry| *entry).fold((0, 0), added);
        self.partitions.iter().map(|entry| entry.counted()).fold(past, added)
    }

    /// Those of one partition, under its present claim and earlier ones.
    pub fn counted_of(&self, partition: &OwnedPartition) -> (u64, u64) {
        let past = self.past.get(&partition.topic_partition).map_or((0, 0), |past| *past);
        added(past, partition.counted())
    }

    /// All partitions owned now, in order.
    pub fn all(&self) -> Vec<Arc<OwnedPartition>> {
        in_order(&[&self.partitions])
    }

    /// All that may be committed, in order: those owned now, and those whose last flush is not done.
    pub fn committable(&self) -> Vec<Arc<OwnedPartition>> {
        in_order(&[&self.partitions, &self.retired])
    }
}

fn added((records, bytes): (u64, u64), (more_records, more_bytes): (u64, u64)) -> (u64, u64) {
    (records + more_records, bytes + more_bytes)
}

fn in_order(maps: &[&DashMap<TopicPartition, Arc<OwnedPartition>>]) -> Vec<Arc<OwnedPartition>> {
    let entries = maps.iter().flat_map(|map| map.iter());
    let mut all: Vec<_> = entries.map(|entry| Arc::clone(&entry)).collect();
    all.sort_by(|a, b| a.topic_partition.cmp(&b.topic_partition));
    all
}

#[cfg(test)]
mod tests;
