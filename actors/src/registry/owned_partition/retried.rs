//! Records that failed and are tried again: their partition does not get past them, and nothing else tells.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tokio::time::Instant;

use super::OwnedPartition;
use crate::clock;

/// A record that has failed and comes again.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Retried {
    /// The record's offset.
    pub offset: i64,
    /// How often it has failed.
    pub attempts: u32,
    /// When it failed first, on the calendar.
    pub since: SystemTime,
    /// The same, by the clock of timers.
    pub began: Instant,
    /// Why, as the handler said it last.
    pub why: String,
}

/// Set by drivers, by offset. That one is done shows by the acknowledged position, so nothing is cleared for it.
#[derive(Default)]
pub(super) struct Retrying(Mutex<BTreeMap<i64, Retried>>);

impl Retrying {
    fn all(&self) -> MutexGuard<'_, BTreeMap<i64, Retried>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OwnedPartition {
    /// This record has failed, and comes again.
    pub(crate) fn set_retried(&self, offset: i64, attempts: u32, why: &str) {
        let mut all = self.retrying.all();
        let (began, since) =
            all.get(&offset).map_or_else(|| (Instant::now(), clock::now()), |it| (it.began, it.since));
        all.insert(offset, Retried { offset, attempts, since, began, why: why.to_owned() });
    }

    /// This one does not come again: it is done, or given up.
    pub(crate) fn set_not_retried(&self, offset: i64) {
        self.retrying.all().remove(&offset);
    }

    /// They say nothing of the log from a new position on.
    pub(super) fn forget_retried(&self) {
        self.retrying.all().clear();
    }

    /// The first record that failed and is tried again; none of a partition that is halted.
    pub fn retried(&self) -> Option<Retried> {
        let acked = self.acked();
        let mut all = self.retrying.all();
        all.retain(|offset, _| *offset >= acked);
        all.values().next().filter(|_| !self.is_halted()).cloned()
    }
}
