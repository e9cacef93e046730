//! A stream's hold on a partition while it hands over its records one after the other.

use std::sync::Arc;

use crate::lease::LeaseCheck;
use crate::registry::{Gate, OwnedPartition, Round};

/// Records of a partition may be in hand while this holds it: from the first [`open`](Self::open) that found the gate
/// open to [`release`](Self::release) or drop.
///
/// The gate is entered once for a row of records, since entering and leaving are full memory barriers, which cost
/// more than walking a record. INV-1: before each record the gate is looked at again. INV-2: whoever closes the gate
/// waits until the hold is over (`drained`), and a stream that finds it closed lets go at once; one that has no next
/// record to ask for lets go before it waits.
pub(super) struct Hand {
    partition: Arc<OwnedPartition>,
    /// Of the chunk that it is read from.
    round: Round,
    held: bool,
    checked: LeaseCheck,
}

impl Hand {
    pub(super) fn new(partition: Arc<OwnedPartition>, round: Round) -> Self {
        Self { partition, round, held: false, checked: LeaseCheck::default() }
    }

    /// Asks to hand over the next record; the one before is done with.
    #[inline]
    pub(super) fn open(&mut self) -> Gate {
        if !self.held {
            let gate = self.partition.enter(self.round);
            self.held = gate == Gate::Open;
            return gate;
        }
        let gate = self.partition.gate_again(self.round, &mut self.checked);
        if gate != Gate::Open {
            self.release();
        }
        gate
    }

    /// No record is in hand.
    pub(super) fn release(&mut self) {
        if std::mem::take(&mut self.held) {
            self.partition.leave();
        }
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.release();
    }
}
