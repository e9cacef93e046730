//! A commit after so many records, whichever of a member's streams they came by.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

use actix::Message;

use crate::consumer_system::ConsumerSystem;
use crate::supervise::Slot;

/// A stream counts at most so many by itself before it tells the others: a shared counter per record would cost more
/// than walking the record.
const MOST_APART: u64 = 64;

/// So many records are acknowledged and not committed: told to the `ConsumerSystem`, once until it has committed.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct CommitDue;

/// [`Builder::commit_after`](crate::consumer_system::Builder::commit_after): what the streams of one member have
/// acknowledged since it last committed because of it.
pub struct CommitAfter {
    records: u32,
    acknowledged: AtomicU64,
    /// With all that streams may not have told, it is the number that was asked for.
    due: u64,
    /// What a stream counts before it tells.
    apart: u32,
    /// Until the commit that was asked for is done: what comes meanwhile is for the next.
    asked: AtomicBool,
    system: Slot<ConsumerSystem>,
}

impl CommitAfter {
    pub(crate) fn new(records: u32, streams: u32, system: Slot<ConsumerSystem>) -> Self {
        let (number, streams) = (u64::from(records), u64::from(streams.max(1)));
        let apart = (number / 16 / streams).clamp(1, MOST_APART);
        Self {
            records,
            acknowledged: AtomicU64::new(0),
            due: number - (apart - 1) * streams,
            apart: apart as u32,
            asked: AtomicBool::new(false),
            system,
        }
    }

    /// What was asked for.
    pub(crate) fn records(&self) -> u32 {
        self.records
    }

    fn add(&self, records: u32) {
        self.acknowledged.fetch_add(records.into(), AcqRel);
        if self.is_due() {
            self.system.do_send(CommitDue);
        }
    }

    /// Whether a commit is to be made now, by whoever is told so.
    fn is_due(&self) -> bool {
        self.acknowledged.load(SeqCst) >= self.due && !self.asked.swap(true, SeqCst)
    }

    /// A commit begins: it covers all that has been counted.
    pub(crate) fn begin(&self) {
        self.acknowledged.store(0, SeqCst);
    }

    /// It is done, well or not; whether the next is due.
    pub(crate) fn is_due_again(&self) -> bool {
        self.asked.store(false, SeqCst);
        self.is_due()
    }
}

/// What one stream has counted and not told.
#[derive(Default)]
pub(crate) struct Tally {
    count: u32,
    /// 0 when nobody wants to know.
    apart: u32,
    after: Option<Arc<CommitAfter>>,
}

impl Tally {
    pub(crate) fn new(after: Option<Arc<CommitAfter>>) -> Self {
        Self { count: 0, apart: after.as_ref().map_or(0, |after| after.apart), after }
    }

    /// One more is acknowledged.
    #[inline]
    pub(super) fn add(&mut self) {
        self.count = self.count.wrapping_add(1);
        if self.count == self.apart {
            self.tell();
        }
    }

    /// So many more are.
    pub(super) fn add_all(&mut self, records: u32) {
        self.count = self.count.saturating_add(records);
        if self.apart > 0 && self.count >= self.apart {
            self.tell();
        }
    }

    fn tell(&mut self) {
        let count = std::mem::take(&mut self.count);
        if let Some(after) = self.after.as_ref().filter(|_| count > 0) {
            after.add(count);
        }
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        // the next of this stream begins with none
        self.tell();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(records: u32, streams: u32) -> Arc<CommitAfter> {
        Arc::new(CommitAfter::new(records, streams, Slot::default()))
    }

    /// Nobody answers, so `asked` tells.
    fn asked(after: &CommitAfter) -> bool {
        after.asked.load(SeqCst)
    }

    #[test]
    fn it_is_due_by_the_last_of_the_records_however_they_are_spread_over_streams() {
        for (records, streams) in
            [(1, 1), (1, 9), (7, 2), (16, 1), (100, 1), (100, 3), (10_000, 2), (u32::MAX, 1)]
        {
            let after = after(records, streams);
            let spread = u64::from(after.apart - 1) * u64::from(streams);
            assert_eq!(after.due + spread, u64::from(records), "{records} records of {streams} streams");
            assert!(after.due >= u64::from(records) * 15 / 16, "{records} records of {streams} streams");
        }
        let after = after(1_000, 4);
        let mut tallies: Vec<_> = (0..4).map(|_| Tally::new(Some(Arc::clone(&after)))).collect();
        let first = (0..1_000).find(|number| {
            tallies[number % 4].add();
            asked(&after)
        });
        assert!(first.is_some_and(|number| number < 1_000), "{first:?}");
    }

    #[test]
    fn what_a_stream_has_counted_is_told_when_it_ends() {
        let after = after(1_600, 1);
        let mut tally = Tally::new(Some(Arc::clone(&after)));
        (0..10).for_each(|_| tally.add());
        assert_eq!(after.acknowledged.load(SeqCst), 0);
        drop(tally);
        assert_eq!(after.acknowledged.load(SeqCst), 10);
    }

    #[test]
    fn one_commit_is_asked_for_at_a_time_and_what_comes_meanwhile_is_for_the_next() {
        let after = after(2, 1);
        let mut tally = Tally::new(Some(Arc::clone(&after)));
        tally.add();
        assert!(!asked(&after));
        tally.add();
        assert!(asked(&after));
        after.begin();
        tally.add();
        assert!(!after.is_due_again());
        tally.add();
        assert!(asked(&after));
        after.begin();
        (0..5).for_each(|_| tally.add());
        assert!(after.is_due_again());
    }

    #[test]
    fn nothing_is_counted_when_it_is_off() {
        let mut tally = Tally::default();
        (0..1_000).for_each(|_| tally.add());
        assert!(tally.after.is_none());
        tally.count = u32::MAX;
        tally.add();
        assert_eq!(tally.count, 0);
    }
}
