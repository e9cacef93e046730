//! What of the positions is stored, or may be.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering::*};
use std::sync::{Mutex, PoisonError};

use super::{NO_OFFSET, OwnedPartition, Position};
use crate::clock;

/// What each store holds, as we last read or wrote it.
pub(super) struct StoredOffsets {
    zookeeper: AtomicI64,
    /// Version of the offset node; [`NO_VERSION`](super::NO_VERSION) when there is no node.
    version: AtomicI32,
    kafka: AtomicI64,
    /// The commit that was sent to Kafka last, answered or not: what may stand there is not taken back.
    sent_to_kafka: AtomicI64,
    /// When a commit succeeded last, in epoch milliseconds; 0 before.
    committed_ms: AtomicI64,
}

impl StoredOffsets {
    pub(super) fn new(position: &Position) -> Self {
        let stored = |offset: Option<i64>| AtomicI64::new(offset.unwrap_or(NO_OFFSET));
        Self {
            zookeeper: stored(position.in_zookeeper),
            version: AtomicI32::new(position.version),
            kafka: stored(position.in_kafka),
            sent_to_kafka: stored(None),
            committed_ms: AtomicI64::new(0),
        }
    }

    /// What is stored above this offset is to be written over.
    pub(super) fn forget_above(&self, offset: i64) {
        for stored in [&self.zookeeper, &self.kafka, &self.sent_to_kafka] {
            if offset < stored.load(Acquire) {
                stored.store(NO_OFFSET, Release);
            }
        }
    }
}

impl Clone for StoredOffsets {
    fn clone(&self) -> Self {
        let copy = |stored: &AtomicI64| AtomicI64::new(stored.load(Acquire));
        Self {
            zookeeper: copy(&self.zookeeper),
            version: AtomicI32::new(self.version.load(Acquire)),
            kafka: copy(&self.kafka),
            sent_to_kafka: copy(&self.sent_to_kafka),
            committed_ms: copy(&self.committed_ms),
        }
    }
}

impl OwnedPartition {
    /// What is stored, so that whoever reads it goes on there: the larger where there are two stores. Or
    /// [`NO_OFFSET`].
    pub fn committed(&self) -> i64 {
        self.in_zookeeper().max(self.in_kafka())
    }

    /// When its commit succeeded last under this claim, in epoch milliseconds, also one that had nothing new to store.
    pub fn committed_ms(&self) -> Option<i64> {
        Some(self.stored.committed_ms.load(Relaxed)).filter(|at| *at > 0)
    }

    /// Its commit has succeeded.
    pub(crate) fn set_committed_now(&self) {
        self.stored.committed_ms.store(clock::millis(clock::now()), Relaxed);
    }

    /// What the offset node holds, or [`NO_OFFSET`].
    pub fn in_zookeeper(&self) -> i64 {
        self.stored.zookeeper.load(Acquire)
    }

    /// What Kafka holds, or [`NO_OFFSET`].
    pub fn in_kafka(&self) -> i64 {
        self.stored.kafka.load(Acquire)
    }

    /// The offset node holds this now, in this version. A seek that was not answered is written over with that.
    pub fn set_in_zookeeper(&self, offset: i64, version: i32) {
        self.stored.zookeeper.store(offset, Release);
        self.stored.version.store(version, Release);
        self.forget_unanswered_seek();
    }

    /// Kafka holds this now. A seek that was not answered is written over with that.
    pub fn set_in_kafka(&self, offset: i64) {
        self.stored.kafka.store(offset, Release);
        self.stored.sent_to_kafka.store(NO_OFFSET, Release);
        self.forget_unanswered_seek();
    }

    /// What a commit of `offset` writes to Kafka: never less than what is stored, or may be.
    pub(crate) fn raised_for_kafka(&self, offset: i64) -> i64 {
        offset.max(self.committed()).max(self.stored.sent_to_kafka.load(Acquire))
    }

    /// A commit is about to be sent to Kafka.
    pub(crate) fn sending_to_kafka(&self, offset: i64) {
        self.stored.sent_to_kafka.store(offset, Release);
    }

    /// The version of the offset node that a commit must meet, or [`NO_VERSION`](super::NO_VERSION) when it must be
    /// created.
    pub fn offset_version(&self) -> i32 {
        self.stored.version.load(Acquire)
    }
}

/// A write of the stored offset of which it is not known whether it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// Of a position that was made: if it stands, it counts, for it must not be made twice in the same place.
    Reset { instead_of: i64, made: i64 },
    /// Of one that somebody asked for, who was told that it failed: if it stands, it is taken back.
    Seek(i64),
}

#[derive(Default)]
pub(super) struct Writing {
    /// And in which topic.
    unanswered: Mutex<Option<(u64, Unanswered)>>,
    superseded: AtomicBool,
    /// A position is being made and stored; one at a time.
    making: tokio::sync::Mutex<()>,
}

impl OwnedPartition {
    /// The write in the present topic that is not answered, if there is one.
    pub(crate) fn unanswered(&self) -> Option<Unanswered> {
        let unanswered = *self.writing.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        unanswered.filter(|(topic, _)| *topic == self.topic_number()).map(|(_, write)| write)
    }

    /// A write in the topic of this number is about to be sent, or what it has come to is known.
    pub(crate) fn set_unanswered(&self, topic: u64, write: Option<Unanswered>) {
        let write = write.map(|write| (topic, write));
        *self.writing.unanswered.lock().unwrap_or_else(PoisonError::into_inner) = write;
    }

    /// A position that was made in this one's place, and may be stored.
    pub(crate) fn made_before(&self, instead_of: i64) -> Option<i64> {
        match self.unanswered() {
            Some(Unanswered::Reset { instead_of: earlier, made }) if earlier == instead_of => Some(made),
            _ => None,
        }
    }

    /// It is written over. A position that was made is not forgotten with that.
    fn forget_unanswered_seek(&self) {
        if let Some(Unanswered::Seek(_)) = self.unanswered() {
            self.set_unanswered(self.topic_number(), None);
        }
    }

    /// The claim is committed no more: another position was stored than its own, or it is lost.
    pub(crate) fn supersede(&self) {
        self.writing.superseded.store(true, Release);
    }

    /// Whether it is.
    pub(crate) fn is_superseded(&self) -> bool {
        self.writing.superseded.load(Acquire)
    }

    /// Whether it may still be committed: its positions are of the present topic, and it was not superseded.
    pub(crate) fn may_commit(&self) -> bool {
        !self.is_of_earlier_topic() && !self.is_superseded()
    }

    /// Held while a position is stored and given to it.
    pub(crate) async fn making(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.writing.making.lock().await
    }

    /// It is the next claim in place of `claim`, of which this was told since it was renewed.
    pub(in crate::registry) fn succeed(&self, claim: &Self) {
        if self.topic_number() != claim.topic_number() {
            self.topic_remade();
        }
        if let Some(write) = claim.unanswered() {
            self.set_unanswered(self.topic_number(), Some(write));
        }
    }
}
