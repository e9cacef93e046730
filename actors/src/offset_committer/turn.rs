//! Whose turn it is to write, and what one life of the committer leaves to the next.

use std::sync::{Mutex, PoisonError};

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::time::Instant;

use crate::fetcher_manager::BrokerAddress;

/// What one life of a member's committer leaves to the next. What the last one began goes on after its panic, and the
/// next writes nothing beside it; the brokers are told again after the next rebalance only.
#[derive(Debug, Default)]
pub struct Inherited {
    pub(super) turn: Turn,
    brokers: Mutex<Vec<BrokerAddress>>,
}

impl Inherited {
    pub(super) fn set_brokers(&self, brokers: &[BrokerAddress]) {
        brokers.clone_into(&mut self.brokers.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn brokers(&self) -> Vec<BrokerAddress> {
        self.brokers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One commit at a time goes to the store; whoever comes meanwhile waits for it. Resets may go side by side, for each
/// is of a partition of its own: one after the other they would hold up the first start of a group for seconds.
#[derive(Debug, Default)]
pub(super) struct Turn {
    lock: RwLock<()>,
    /// Until when partitions that are given up may be waited for.
    flush_deadlines: Mutex<Vec<Instant>>,
}

impl Turn {
    /// To write with nobody beside us. None when the time is over in which partitions are given up: with each try of
    /// those who have waited here the release would come later.
    pub(super) async fn alone(&self) -> Option<RwLockWriteGuard<'_, ()>> {
        let turn = self.lock.write().await;
        (!self.is_late()).then_some(turn)
    }

    /// The same, beside others like us.
    pub(super) async fn side_by_side(&self) -> Option<RwLockReadGuard<'_, ()>> {
        let turn = self.lock.read().await;
        (!self.is_late()).then_some(turn)
    }

    /// For the last commit of partitions that others wait for.
    pub(super) async fn of_flush(&self) -> RwLockWriteGuard<'_, ()> {
        self.lock.write().await
    }

    /// Others wait for partitions of ours, as long as this is held.
    pub(super) fn flush_until(&self, until: Instant) -> FlushDeadline<'_> {
        self.flush_deadlines.lock().unwrap_or_else(PoisonError::into_inner).push(until);
        FlushDeadline { turn: self, until }
    }

    fn is_late(&self) -> bool {
        let deadlines = self.flush_deadlines.lock().unwrap_or_else(PoisonError::into_inner);
        deadlines.iter().min().is_some_and(|until| *until <= Instant::now())
    }
}

/// See [`Turn::flush_until`].
pub(super) struct FlushDeadline<'a> {
    turn: &'a Turn,
    until: Instant,
}

impl Drop for FlushDeadline<'_> {
    fn drop(&mut self) {
        let mut deadlines = self.turn.flush_deadlines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = deadlines.iter().position(|it| *it == self.until) {
            deadlines.swap_remove(at);
        }
    }
}
