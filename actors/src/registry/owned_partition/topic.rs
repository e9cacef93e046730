//! Of which topic and of which leaders' log the positions are.

use std::sync::atomic::Ordering::*;

use super::{NO_EPOCH, OwnedPartition};

impl OwnedPartition {
    /// It appeared while the group was running: its first position is made by `troupe.new.partitions.reset`.
    pub fn has_appeared(&self) -> bool {
        self.appeared.load(Acquire)
    }

    /// The positions are those of an earlier topic of this name: until one is made they are not committed.
    pub fn is_of_earlier_topic(&self) -> bool {
        self.topic.load(Acquire) & 1 == 1
    }

    /// How often the topic was made again since the partition was claimed.
    pub fn topic_number(&self) -> u64 {
        self.topic.load(Acquire) >> 1
    }

    /// The positions are those of the topic of this number, if that is the present one.
    pub(super) fn set_of_topic(&self, number: u64) {
        let _ = self.topic.compare_exchange((number << 1) | 1, number << 1, AcqRel, Acquire);
    }

    /// The topic was deleted and made again while we had it.
    pub fn topic_remade(&self) {
        self.appeared.store(true, Release);
        // the new topic counts its epochs from 0
        self.leader_epoch.store(NO_EPOCH, Release);
        self.last_epoch.store(NO_EPOCH, Release);
        let _ = self.topic.fetch_update(AcqRel, Acquire, |topic| Some((((topic >> 1) + 1) << 1) | 1));
    }

    /// Its topic is gone, or cannot be told from an earlier one: nothing is committed until there is a position in a
    /// later one.
    pub fn stop_commits(&self) {
        self.topic_remade();
    }

    /// The leader's epoch as metadata told it last, or [`NO_EPOCH`] (KIP-320).
    pub fn leader_epoch(&self) -> i32 {
        self.leader_epoch.load(Acquire)
    }

    /// Metadata said so.
    pub fn set_leader_epoch(&self, epoch: i32) {
        self.leader_epoch.store(epoch, Release);
    }

    /// The epoch in which the last batch that was fetched was written, or [`NO_EPOCH`]: tells a log that was truncated.
    pub fn last_epoch(&self) -> i32 {
        self.last_epoch.load(Acquire)
    }

    /// A batch of this epoch was fetched.
    pub fn set_last_epoch(&self, epoch: i32) {
        self.last_epoch.store(epoch, Release);
    }
}
