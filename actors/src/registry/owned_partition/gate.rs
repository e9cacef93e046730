//! The gate before each record: who may pass, and who waits for whom.

use std::sync::atomic::Ordering::*;
use std::time::Duration;

use super::{OwnedPartition, Round};
use crate::lease::{Lease, LeaseCheck};

/// Whether a record may be handed over now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Yes; [`OwnedPartition::leave`] must follow when its handler is done.
    Open,
    /// Not now: the lease has ended and may come back.
    Fenced,
    /// Not of this chunk: the partition is halted, or was since the chunk came. It is fetched again from the acknowledged
    /// position.
    Halted,
    /// Never again: the partition is given up.
    Closed,
}

impl OwnedPartition {
    /// Asks to hand over a record (or batch) of a chunk that was taken in in this round. After [`Gate::Open`],
    /// [`leave`](Self::leave) must follow; before that, more records may follow one by one, each after
    /// [`gate_again`](Self::gate_again).
    pub fn enter(&self, round: Round) -> Gate {
        self.in_hand.store(true, SeqCst);
        let gate = self.gate(round);
        if gate != Gate::Open {
            self.leave();
        }
        gate
    }

    /// Whether a record of a chunk of this round could be handed over now.
    pub(crate) fn gate(&self, round: Round) -> Gate {
        self.gate_if(round, |lease| lease.is_live_in(self.epoch))
    }

    /// Between [`enter`](Self::enter) and [`leave`](Self::leave): whether one more may be handed over.
    #[inline]
    pub fn gate_again(&self, round: Round, checked: &mut LeaseCheck) -> Gate {
        self.gate_if(round, |lease| lease.is_still_live_in(self.epoch, checked))
    }

    #[inline]
    fn gate_if(&self, round: Round, is_leased: impl FnOnce(&Lease) -> bool) -> Gate {
        if let Some(shut) = self.halting.shut_in(round) {
            shut
        } else if is_leased(&self.lease) {
            Gate::Open
        } else {
            Gate::Fenced
        }
    }

    /// The record that was handed over is done with.
    pub fn leave(&self) {
        self.in_hand.store(false, SeqCst);
        if self.halting.is_shut() {
            self.moved.notify_waiters();
        }
    }

    /// Another member may be handling its records: it is given up, or the lease has ended.
    pub fn is_fenced(&self) -> bool {
        self.is_closed() || !self.is_leased()
    }

    /// Waits until no record is in a handler's hand; `false` when it still is after `limit` (it is cut off:
    /// the next owner handles it again, and its late acknowledgement changes nothing).
    pub async fn drained(&self, limit: Duration) -> bool {
        tokio::time::timeout(limit, self.idle()).await.is_ok()
    }

    /// The same, however long it takes. Of one that is neither halted nor closed, it may never be told.
    pub(crate) async fn idle(&self) {
        self.told(|| !self.is_in_hand()).await;
    }

    /// Waits until it is halted or given up.
    pub(crate) async fn shut(&self) {
        self.told(|| self.halting.is_shut()).await;
    }

    /// Waits until nothing more is handed over of what was taken in in this round.
    pub(crate) async fn over(&self, round: Round) {
        self.told(|| !self.is_delivered_in(round)).await;
    }

    /// Whether a record is in a handler's hand.
    pub fn is_in_hand(&self) -> bool {
        self.in_hand.load(SeqCst)
    }

    async fn told(&self, holds: impl Fn() -> bool) {
        loop {
            let mut notified = std::pin::pin!(self.moved.notified());
            notified.as_mut().enable();
            if holds() {
                return;
            }
            notified.await;
        }
    }
}
