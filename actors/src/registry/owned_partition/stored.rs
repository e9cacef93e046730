//! What of the positions is stored, or may be.

use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::{Mutex, PoisonError};

use super::OwnedPartition;

/// A write of the offset node of which it is not known whether it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// Of a position that was made: if it stands, it counts, for it must not be made twice.
    Reset(i64),
    /// Of one that somebody asked for, who was told that it failed: if it stands, it is taken back.
    Seek(i64),
}

#[derive(Default)]
pub(super) struct Writing {
    unanswered: Mutex<Option<Unanswered>>,
    superseded: AtomicBool,
    /// A position is being made and stored; one at a time.
    making: tokio::sync::Mutex<()>,
}

impl OwnedPartition {
    /// The write that is not answered, if there is one.
    pub(crate) fn unanswered(&self) -> Option<Unanswered> {
        *self.writing.unanswered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A write is about to be sent, or what it has come to is known.
    pub(crate) fn set_unanswered(&self, write: Option<Unanswered>) {
        *self.writing.unanswered.lock().unwrap_or_else(PoisonError::into_inner) = write;
    }

    /// Another position was stored than that of this claim, which is committed no more.
    pub(crate) fn supersede(&self) {
        self.writing.superseded.store(true, Release);
    }

    /// Whether it may still be committed: its positions are of the present topic, and none was stored in their place.
    pub(crate) fn may_commit(&self) -> bool {
        !self.is_of_earlier_topic() && !self.writing.superseded.load(Acquire)
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
            self.set_unanswered(Some(write));
        }
    }
}
