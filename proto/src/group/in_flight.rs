//! Several records of a stream with its handler at once: how many, in which order, and what may be acknowledged
//! meanwhile.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::TopicPartition;

/// So many times the records in flight may wait behind others of their key. More would keep more of the handler busy
/// where keys are not even; and have more come again that was done meanwhile, for these have not even begun when their
/// partition is given up.
const WAITING_PER_IN_FLIGHT: usize = 4;

/// How many records of one stream are *in flight* at once: handed to the handler and not done, those that failed and
/// wait to be handled again with them. One, unless told otherwise.
///
/// More than one is for handlers that wait for something (`ResponseFuture`, `ResponseActFuture`) and for actors that
/// records are sent to: the next record begins while the ones before wait. A handler that answers at once is not made
/// any faster.
///
/// | | begin | end | one that failed |
/// |---|---|---|---|
/// | [`one`](Self::one) | in order | in order | is handled again before the next begins |
/// | [`window`](Self::window) | in order | in any order | is handled again while later ones go on |
/// | [`by_key`](Self::by_key) | in order within a key | in order within a key | is handled again before the next of its key begins; those of other keys go on |
///
/// The order of a partition's records is thus kept by `one` only, that of the records of one partition and key also by
/// `by_key`. Records of different partitions have no order in any of them.
///
/// What is acknowledged, and committed, is always the longest row of handled records without a gap. So after a crash, a
/// handler that panics or a partition that is stopped, everything from the first record on that was not done comes
/// again, **also records behind it that were done**. With `one` that is at most the record in hand (and what was done
/// since the last commit). With more in flight it is whatever was done while the first of them took its time, for a
/// record that hangs does not stop the others: give handlers a limit to their time.
///
/// A partition that moves away or is paused is waited for, as long as `troupe.drain.timeout.ms` allows: what its handler
/// has may end, and counts. So with `window` nothing comes again then, but for what had failed and what took too long;
/// with `by_key` also what waited for another of its key, with what was done behind it.
///
/// A chunk keeps its room in the stream's queue (`queued.max.message.chunks`) until the last of its records is done, so
/// the queue should hold a few more chunks than records are expected to take long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    most: usize,
    by_key: bool,
}

impl InFlight {
    /// One record after the other: the default.
    pub const fn one() -> Self {
        Self { most: 1, by_key: false }
    }

    /// At most `n` at once (0 is taken for 1), which begin in order and end in any order.
    pub const fn window(n: usize) -> Self {
        Self { most: if n == 0 { 1 } else { n }, by_key: false }
    }

    /// At most `n` at once (0 is taken for 1), but of those with the same key and partition one after the other, also
    /// when one is handled again. Records without a key have no order.
    pub const fn by_key(n: usize) -> Self {
        Self { by_key: n > 1, ..Self::window(n) }
    }

    /// The most that are in flight at once; never 0.
    pub const fn most(&self) -> usize {
        self.most
    }

    /// Whether records of one key are handled one after the other.
    pub const fn is_by_key(&self) -> bool {
        self.by_key
    }

    /// Whether the order of each partition is kept.
    pub const fn is_one(&self) -> bool {
        self.most == 1
    }

    /// The lane of a record: those of the same lane are handled one after the other. None when it is free. Keys may share
    /// a lane.
    pub fn lane(&self, partition: &TopicPartition, key: Option<&[u8]>) -> Option<u64> {
        let key = key.filter(|_| self.by_key)?;
        let mut lane = DefaultHasher::new();
        (&partition.topic, partition.partition, key).hash(&mut lane);
        Some(lane.finish())
    }
}

impl Default for InFlight {
    fn default() -> Self {
        Self::one()
    }
}

/// How far one claim of a partition is handled, when its records are taken from the log in order and are done in any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetTracker {
    reached: i64,
    unfinished: BTreeSet<i64>,
}

impl OffsetTracker {
    /// Everything before `position` is handled.
    pub const fn new(position: i64) -> Self {
        Self { reached: position, unfinished: BTreeSet::new() }
    }

    /// The record at this offset is taken from the log. Offsets between it and the ones before hold no record to be
    /// handled. `false`, and of no effect, when it lies before what was [reached](Self::reached).
    pub fn take(&mut self, offset: i64) -> bool {
        let is_next = offset >= self.reached;
        if is_next {
            self.reached = offset + 1;
            self.unfinished.insert(offset);
        }
        is_next
    }

    /// Nothing before `next` is still to be taken: control records, aborted ones, compacted gaps.
    pub fn pass(&mut self, next: i64) {
        self.reached = self.reached.max(next);
    }

    /// The record is done with; `false` when it was not in flight.
    pub fn finish(&mut self, offset: i64) -> bool {
        self.unfinished.remove(&offset)
    }

    /// Everything before this offset is handled or needs no handling: the first that is unfinished, or what was reached.
    pub fn acked(&self) -> i64 {
        self.unfinished.first().copied().unwrap_or(self.reached)
    }

    /// The next offset to be taken.
    pub const fn reached(&self) -> i64 {
        self.reached
    }

    /// How many were taken and are not done.
    pub fn unfinished(&self) -> usize {
        self.unfinished.len()
    }
}

/// Which of the records taken from a stream begin: at most so many at once, and of the same lane one after the other.
///
/// A record is in flight from when it begins until it is [finished](Self::finish), however often it fails: so a retry
/// keeps its lane, and a handler that fails on everything stops its stream.
#[derive(Clone, Debug)]
pub struct Lanes<R> {
    most: usize,
    in_flight: usize,
    /// Of each lane that has a record in flight, those that wait for its end.
    busy: BTreeMap<u64, VecDeque<R>>,
    waiting: usize,
}

impl<R> Lanes<R> {
    /// Nothing is in flight.
    pub const fn new(limit: InFlight) -> Self {
        Self { most: limit.most, in_flight: 0, busy: BTreeMap::new(), waiting: 0 }
    }

    /// Whether the next record is to be taken from the stream.
    pub fn has_room(&self) -> bool {
        self.in_flight < self.most && self.waiting < self.most.saturating_mul(WAITING_PER_IN_FLIGHT)
    }

    /// Takes the next record of the stream, while there [is room](Self::has_room): it is given back when it begins now,
    /// else it waits for the end of those of its lane.
    pub fn take(&mut self, lane: Option<u64>, record: R) -> Option<R> {
        if let Some(lane) = lane {
            if let Some(behind) = self.busy.get_mut(&lane) {
                behind.push_back(record);
                self.waiting += 1;
                return None;
            }
            self.busy.insert(lane, VecDeque::new());
        }
        self.in_flight += 1;
        Some(record)
    }

    /// A record of this lane is done with; gives the one that begins in its place, older than any that is not taken yet.
    pub fn finish(&mut self, lane: Option<u64>) -> Option<R> {
        if let Some(lane) = lane {
            if let Some(next) = self.busy.get_mut(&lane).and_then(VecDeque::pop_front) {
                self.waiting -= 1;
                return Some(next);
            }
            self.busy.remove(&lane);
        }
        self.in_flight -= 1;
        None
    }

    /// How many are in flight.
    pub const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// How many were taken and wait for one of their lane.
    pub const fn waiting(&self) -> usize {
        self.waiting
    }
}

#[cfg(test)]
mod tests;
