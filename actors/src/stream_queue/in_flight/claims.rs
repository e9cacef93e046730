//! The partitions of which something is in flight: how far each is handled, and the hold on it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use kafka_troupe_proto::group::OffsetTracker;

use crate::lease::LeaseCheck;
use crate::record::ConsumeError;
use crate::registry::{Gate, OwnedPartition, Round};
use crate::stream_queue::{ChunkFailed, FetchedChunk};

/// Where a record was taken from: a claim, by its number here, and the round of the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    claim: u64,
    round: Round,
}

/// By number, in the order in which they were met.
#[derive(Default)]
pub(super) struct Claims {
    met: u64,
    claims: BTreeMap<u64, Claim>,
    /// Records of all of them with the handler, for the stream's status.
    running: Arc<AtomicU32>,
}

/// One claim. Its hold lasts while records of it are with the handler (INV-2): whoever closes or halts the partition
/// waits for all of them, but not for those that failed and wait to be handled again. So a new round begins when none is
/// with the handler, and what was taken in an earlier one is of no effect.
struct Claim {
    partition: Arc<OwnedPartition>,
    round: Round,
    /// Of this round.
    tracker: OffsetTracker,
    /// Done behind one that is not, in this round.
    ahead: BTreeSet<i64>,
    /// Records with the handler.
    running: usize,
    /// Records taken and neither done nor dropped, also of earlier rounds.
    taken: usize,
    entered: bool,
    checked: LeaseCheck,
    /// It cannot be read on; told when nothing before it is in flight, for then it is fetched from where it stands again.
    unreadable: Option<ConsumeError>,
}

impl Claim {
    fn new(partition: Arc<OwnedPartition>, round: Round) -> Self {
        let tracker = OffsetTracker::new(partition.delivered());
        let checked = LeaseCheck::default();
        let ahead = BTreeSet::new();
        Self {
            partition,
            round,
            tracker,
            ahead,
            running: 0,
            taken: 0,
            entered: false,
            checked,
            unreadable: None,
        }
    }

    fn open(&mut self) -> Gate {
        if self.entered {
            return self.partition.gate_again(self.round, &mut self.checked);
        }
        let gate = self.partition.enter(self.round);
        self.entered = gate == Gate::Open;
        gate
    }

    fn release(&mut self) {
        if std::mem::take(&mut self.entered) {
            self.partition.leave();
        }
    }

    fn acknowledge(&self) {
        self.partition.ack(self.tracker.acked());
    }

    /// How many records are acknowledged now that this one is done, itself or those that were done before it.
    fn acknowledged_with(&mut self, offset: i64) -> u32 {
        let acked = self.tracker.acked();
        if offset >= acked {
            self.ahead.insert(offset);
            return 0;
        }
        if self.ahead.is_empty() {
            return 1;
        }
        let still = self.ahead.split_off(&acked);
        let before = std::mem::replace(&mut self.ahead, still);
        u32::try_from(before.len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    fn tell_unreadable(&mut self) -> Option<ChunkFailed> {
        if self.taken > 0 {
            return None;
        }
        let error = self.unreadable.take()?;
        Some(ChunkFailed { partition: Arc::clone(&self.partition), error })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.release();
    }
}

impl Claims {
    pub(super) fn new(running: Arc<AtomicU32>) -> Self {
        Self { running, ..Self::default() }
    }

    /// The claim of a chunk that comes next in the stream; none if it is not to be read: it is stale, or lies past what
    /// was reached, behind what could not be read, and is fetched again.
    pub(super) fn meet(&mut self, chunk: &FetchedChunk) -> Option<Origin> {
        let (partition, round) = (&chunk.partition, chunk.round());
        if !chunk.is_current() || chunk.fetch_offset > partition.delivered() {
            return None;
        }
        let known = self.claims.iter_mut().find(|(_, claim)| Arc::ptr_eq(&claim.partition, partition));
        let Some((number, claim)) = known else {
            self.met += 1;
            self.claims.insert(self.met, Claim::new(Arc::clone(partition), round));
            return Some(Origin { claim: self.met, round });
        };
        if claim.round != round {
            (claim.round, claim.tracker) = (round, OffsetTracker::new(partition.delivered()));
            claim.ahead.clear();
            claim.unreadable = None;
        }
        Some(Origin { claim: *number, round })
    }

    /// If the claim is still in that round, halted or not.
    fn current(&mut self, origin: Origin) -> Option<&mut Claim> {
        let claim = self.claims.get_mut(&origin.claim)?;
        (claim.round == origin.round && claim.partition.round() == origin.round).then_some(claim)
    }

    /// Whether records may be taken from it now.
    pub(super) fn gate(&mut self, origin: Origin) -> Gate {
        let Some(claim) = self.current(origin) else { return Gate::Halted };
        let gate = claim.open();
        if gate != Gate::Open && claim.running == 0 {
            claim.release();
        }
        gate
    }

    /// A record is taken from the log, in order; `false` when it was before.
    pub(super) fn take(&mut self, origin: Origin, offset: i64) -> bool {
        let Some(claim) = self.current(origin) else { return false };
        let is_next = claim.tracker.take(offset);
        if is_next {
            claim.taken += 1;
            claim.partition.advance_delivered(offset + 1);
        }
        is_next
    }

    /// Nothing before `next` is still to be taken.
    pub(super) fn pass(&mut self, origin: Origin, next: i64) {
        if let Some(claim) = self.current(origin) {
            claim.tracker.pass(next);
            claim.partition.advance_delivered(next);
            claim.acknowledge();
        }
    }

    /// Asks to hand over a record that was taken (INV-1). After [`Gate::Open`], [`answered`](Self::answered) follows.
    pub(super) fn open(&mut self, origin: Origin) -> Gate {
        let running = Arc::clone(&self.running);
        let Some(claim) = self.current(origin) else { return Gate::Halted };
        let gate = claim.open();
        if gate == Gate::Open {
            claim.running += 1;
            running.fetch_add(1, Relaxed);
        }
        gate
    }

    /// A record is not with the handler any more. The hold lasts until [`rest`](Self::rest).
    pub(super) fn answered(&mut self, origin: Origin) {
        if let Some(claim) = self.claims.get_mut(&origin.claim) {
            claim.running -= 1;
            self.running.fetch_sub(1, Relaxed);
        }
    }

    /// A record is done: how many are acknowledged by that. None if it is of no effect.
    pub(super) fn finish(&mut self, origin: Origin, offset: i64, size: u64) -> Option<u32> {
        let claim = self.current(origin)?;
        claim.tracker.finish(offset).then(|| {
            claim.acknowledge();
            claim.partition.count(size);
            claim.acknowledged_with(offset)
        })
    }

    /// A record that was taken is done or dropped. Gives what cannot be read, if that was the last before it.
    pub(super) fn let_go(&mut self, origin: Origin) -> Option<ChunkFailed> {
        let claim = self.claims.get_mut(&origin.claim)?;
        claim.taken -= 1;
        claim.tell_unreadable()
    }

    /// The rest of a chunk cannot be read; given back when nothing before it is in flight.
    pub(super) fn unreadable(&mut self, origin: Origin, error: ConsumeError) -> Option<ChunkFailed> {
        let claim = self.current(origin)?;
        claim.unreadable = Some(error);
        claim.tell_unreadable()
    }

    /// Nothing is handed over until the next poll: who waits for a partition of which nothing is with the handler need
    /// wait no longer.
    pub(super) fn rest(&mut self, reading: Option<Origin>) {
        for claim in self.claims.values_mut().filter(|claim| claim.running == 0) {
            claim.release();
        }
        let is_read = |number: &u64| reading.is_some_and(|origin| origin.claim == *number);
        self.claims.retain(|number, claim| claim.taken > 0 || is_read(number));
    }

    /// Of which something is in flight, or read.
    pub(super) fn partitions(&self) -> impl Iterator<Item = &Arc<OwnedPartition>> {
        self.claims.values().map(|claim| &claim.partition)
    }

    pub(super) fn clear(&mut self) {
        self.claims.clear();
        self.running.store(0, Relaxed);
    }
}
