//! Since when, and why, nothing of a partition can be fetched.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::OwnedPartition;
use crate::clock;

/// Set by the manager of the fetchers, cleared by a fetcher at each answer.
#[derive(Default)]
pub(super) struct Unfetched {
    /// Whether there is anything to clear: what the lock holds is looked at after a failure only.
    is_set: AtomicBool,
    last: Mutex<Option<(SystemTime, String)>>,
}

impl Unfetched {
    fn last(&self) -> MutexGuard<'_, Option<(SystemTime, String)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OwnedPartition {
    /// It could not be fetched, or has no leader to fetch it from.
    pub(crate) fn set_unfetched(&self, why: &str) {
        let mut last = self.unfetched.last();
        let since = last.as_ref().map_or_else(clock::now, |(since, _)| *since);
        *last = Some((since, why.to_owned()));
        self.unfetched.is_set.store(true, Relaxed);
    }

    /// A fetch of it was answered, or it is not asked for because its stream has no room.
    pub(crate) fn set_fetched_well(&self) {
        if self.unfetched.is_set.load(Relaxed) {
            let mut last = self.unfetched.last();
            *last = None;
            self.unfetched.is_set.store(false, Relaxed);
        }
    }

    /// Since when it could not be fetched, and why the last try failed; none while it can.
    pub fn unfetched(&self) -> Option<(SystemTime, String)> {
        self.unfetched.last().clone()
    }
}
