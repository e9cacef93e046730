//! Turns a chunk into records and hands them over, one at a time or in portions, where the user's code runs.

mod portion;

use std::sync::Arc;

use kafka_troupe_proto::kafka::compression::{CompressionError, Decompressor};
use kafka_troupe_proto::kafka::records::{
    RawRecord, RecordBatch, RecordBatches, RecordCursor, RecordsError, RecordsProblem, TransactionFilter,
};

use super::hand::Hand;
use super::{FetchedChunk, ReadOptions};
use crate::record::{ConsumeError, Record, SharedBatch};
use crate::registry::{Gate, NO_OFFSET, OwnedPartition};
use portion::PortionInHand;

/// The place reached in one chunk.
pub(super) struct ChunkReader {
    chunk: FetchedChunk,
    options: ReadOptions,
    hand: Hand,
    batches: RecordBatches,
    /// Reading committed.
    filter: Option<TransactionFilter>,
    /// The first offset to hand over.
    from: i64,
    current: Option<(Arc<SharedBatch>, RecordCursor)>,
    in_hand: Option<InHand>,
    portion_in_hand: Option<PortionInHand>,
    /// What could not be read behind the portion that was handed over last.
    unread: Option<RecordsError>,
    /// The offset of the record that is not to be handed over before its failures are looked at.
    known: i64,
    /// The offset of a batch that failed, and how many records it had: it does not come as a larger one.
    known_batch: (i64, u32),
}

/// The record that was handed over and is not handled.
#[derive(Clone, Copy)]
struct InHand {
    offset: i64,
    size: u64,
}

/// What came next in a chunk.
pub(super) enum Step<T> {
    /// A record was handed over, with this outcome; [`ChunkReader::handled`] or [`ChunkReader::again`] follows.
    HandedOver(T),
    /// The record (or batch) that is [known](ChunkReader::stop_before) to fail comes next, and counts as in hand: as if
    /// it had just failed.
    FailedBefore,
    /// Nothing now: the lease has ended, and may come back.
    Fenced,
    /// The rest belongs to the next owner; or the partition is halted, and it is fetched again when that is over.
    Closed,
    /// The rest cannot be read.
    Failed(ConsumeError),
    /// All of it is handled.
    End,
}

impl ChunkReader {
    pub(super) fn new(chunk: FetchedChunk, options: &ReadOptions) -> Self {
        let from = chunk.fetch_offset.max(chunk.partition.delivered());
        let filter = filter(&chunk, options);
        // control batches before `from` come as well: an abort marker that the filter does not see would have it leave
        // out what the same producer committed later
        let batches = RecordBatches::new(chunk.records.clone(), from, options.decode);
        let hand = Hand::new(Arc::clone(&chunk.partition), chunk.round());
        Self {
            chunk,
            options: *options,
            hand,
            batches,
            filter,
            from,
            current: None,
            in_hand: None,
            portion_in_hand: None,
            unread: None,
            known: NO_OFFSET,
            known_batch: (NO_OFFSET, 0),
        }
    }

    pub(super) fn partition(&self) -> &Arc<OwnedPartition> {
        &self.chunk.partition
    }

    /// Where it is, for logs: the record in hand, or the next.
    pub(super) fn place(&self) -> String {
        let partition = &self.chunk.partition;
        let offset = self.first_in_hand().unwrap_or_else(|| partition.delivered());
        format!("{}@{offset}", partition.topic_partition)
    }

    /// The record at this offset, or the batch of so many that begins there, is known to fail: [`Step::FailedBefore`]
    /// comes once before it.
    pub(super) fn stop_before(&mut self, offset: i64, records: u32) {
        (self.known, self.known_batch) = (offset, (offset, records));
    }

    /// How many records are in hand.
    pub(super) fn records_in_hand(&self) -> u32 {
        self.portion_in_hand.as_ref().map_or(1, |portion| portion.records)
    }

    /// The offset behind what is in hand.
    pub(super) fn next_in_hand(&self) -> Option<i64> {
        let record = self.in_hand.map(|record| record.offset + 1);
        record.or_else(|| self.portion_in_hand.as_ref().map(|portion| portion.next))
    }

    /// The first offset that was handed over and is not handled.
    pub(super) fn first_in_hand(&self) -> Option<i64> {
        let record = self.in_hand.map(|record| record.offset);
        record.or_else(|| self.portion_in_hand.as_ref().map(|portion| portion.first))
    }

    /// Hands over the next record by `hand_over`: a record that is given to a closure is written once, where the
    /// user's code reads it. (Copying what was just written stalls the processor, for as long as the walk takes.)
    #[inline(always)]
    pub(super) fn step<T>(
        &mut self,
        decompressor: &mut Decompressor,
        hand_over: impl FnOnce(Record) -> T,
    ) -> Step<T> {
        if self.current.is_none()
            && let Some(end) = self.first_batch(decompressor)
        {
            return end;
        }
        loop {
            match self.hand.open() {
                Gate::Open => {}
                Gate::Fenced => return Step::Fenced,
                Gate::Closed | Gate::Halted => return Step::Closed,
            }
            if let Some((batch, cursor)) = &mut self.current {
                let raw = match cursor.next_usual() {
                    Some(raw) => Some(raw),
                    None => match next_unusual(cursor) {
                        Ok(raw) => raw,
                        Err(error) => return self.failed(&error),
                    },
                };
                if let Some(raw) = raw {
                    self.in_hand = Some(InHand { offset: raw.offset, size: raw.size() });
                    self.chunk.partition.advance_delivered(raw.offset + 1);
                    if raw.offset == self.known {
                        self.known = NO_OFFSET;
                        return Step::FailedBefore;
                    }
                    return Step::HandedOver(hand_over(Record::new(Arc::clone(batch), raw)));
                }
            }
            if let Some(end) = self.next_batch(decompressor) {
                return end;
            }
        }
    }

    #[inline(never)]
    fn first_batch<T>(&mut self, decompressor: &mut Decompressor) -> Option<Step<T>> {
        // what it passes over is acknowledged
        match self.hand.open() {
            Gate::Open => {}
            Gate::Fenced => return Some(Step::Fenced),
            Gate::Closed | Gate::Halted => return Some(Step::Closed),
        }
        // a portion that was handed over before has met it
        if let Some(error) = self.unread.take() {
            return Some(self.failed(&error));
        }
        self.next_batch(decompressor)
    }

    /// Goes on to the next batch, or says why there is none. All before it is handled.
    #[inline(never)]
    fn next_batch<T>(&mut self, decompressor: &mut Decompressor) -> Option<Step<T>> {
        if let Some((batch, _)) = self.current.take() {
            self.pass(batch.batch.next_offset);
        }
        loop {
            match self.batches.next_batch(decompressor) {
                Some(Ok(batch)) if self.is_wanted(&batch) => {
                    // of a control batch the cursor shows no records
                    let cursor = batch.records();
                    let partition = Arc::clone(&self.chunk.partition);
                    self.current = Some((Arc::new(SharedBatch { batch, from: partition.into() }), cursor));
                    return None;
                }
                Some(Ok(batch)) => self.pass(batch.next_offset),
                Some(Err(error)) => return Some(self.failed(&error)),
                None => {
                    self.pass(self.chunk.next_offset);
                    return Some(Step::End);
                }
            }
        }
    }

    fn is_wanted(&mut self, batch: &RecordBatch) -> bool {
        self.filter.as_mut().is_none_or(|filter| filter.admits(batch)) && batch.next_offset > self.from
    }

    /// All before `next` is handled, with control records, aborted ones and compacted gaps.
    pub(super) fn pass(&self, next: i64) {
        self.chunk.partition.advance_delivered(next);
        self.chunk.partition.ack(next);
    }

    /// The record that was handed over is handled; whether there was one.
    #[inline]
    pub(super) fn handled(&mut self) -> bool {
        let Some(record) = self.in_hand.take() else { return false };
        self.chunk.partition.ack(record.offset + 1);
        self.chunk.partition.count(record.size);
        true
    }

    /// The record that was handed over comes next.
    pub(super) fn again(&mut self) {
        if let (Some(record), Some((batch, cursor))) = (self.in_hand.take(), &mut self.current) {
            *cursor = batch.batch.records().from(record.offset);
        }
    }

    /// The record that was handed over is given up: the next one follows.
    pub(super) fn give_up(&mut self) {
        if let Some(record) = self.in_hand.take() {
            self.pass(record.offset + 1);
        }
    }

    /// Whether its record may be dealt with now; it is in hand then.
    pub(super) fn gate(&mut self) -> Gate {
        self.hand.open()
    }

    /// The records from `offset` on and before `next`, read anew, and where the chunk goes on after them: at `next`, or
    /// at one that cannot be read.
    #[cold]
    pub(super) fn records_between(
        &self,
        decompressor: &mut Decompressor,
        offset: i64,
        next: i64,
    ) -> (Vec<Record>, i64) {
        let mut batches = RecordBatches::new(self.chunk.records.clone(), offset, self.options.decode);
        let (mut filter, mut records) = (filter(&self.chunk, &self.options), Vec::new());
        while let Some(batch) = batches.next_batch(decompressor) {
            let batch = match batch {
                Ok(batch) if batch.base_offset < next => batch,
                Ok(_) => break,
                Err(error) => return (records, next.min(error.offset)),
            };
            if filter.as_mut().is_some_and(|filter| !filter.admits(&batch)) || batch.next_offset <= offset {
                continue;
            }
            // of a control batch the cursor shows no records
            let (mut cursor, partition) = (batch.records(), Arc::clone(&self.chunk.partition));
            let batch = Arc::new(SharedBatch { batch, from: partition.into() });
            loop {
                match next_unusual(&mut cursor) {
                    Ok(Some(raw)) if raw.offset < next => records.push(Record::new(Arc::clone(&batch), raw)),
                    Ok(_) => break,
                    Err(error) => return (records, next.min(error.offset)),
                }
            }
        }
        (records, next)
    }

    /// Goes on at an offset, whatever was read before.
    fn restart_at(&mut self, offset: i64) {
        let restarted = RecordBatches::new(self.chunk.records.clone(), offset, self.options.decode);
        (self.batches, self.from, self.current, self.unread) = (restarted, offset, None, None);
        self.filter = filter(&self.chunk, &self.options);
    }

    /// Nothing is in hand until the next step.
    pub(super) fn release(&mut self) {
        self.hand.release();
    }

    #[cold]
    fn failed<T>(&self, error: &RecordsError) -> Step<T> {
        let partition = &self.chunk.partition;
        if !self.chunk.is_current() {
            return Step::Closed;
        }
        let why = why(&error.problem);
        Step::Failed(ConsumeError::new(&partition.topic_partition, error.offset, error.resume_at, why))
    }
}

fn filter(chunk: &FetchedChunk, options: &ReadOptions) -> Option<TransactionFilter> {
    options.read_committed.then(|| TransactionFilter::new(chunk.aborted.clone()))
}

/// What is wrong, and the property by which it may be put right.
pub(crate) fn why(problem: &RecordsProblem) -> String {
    match problem {
        RecordsProblem::Compression(CompressionError::TooLarge { .. }) => {
            format!("{problem}: raise troupe.decompressed.batch.max.bytes")
        }
        _ => problem.to_string(),
    }
}

/// The next record of any kind: of the old formats, after some that are passed over, or malformed.
#[inline(never)]
fn next_unusual(cursor: &mut RecordCursor) -> Result<Option<RawRecord>, RecordsError> {
    cursor.next().transpose()
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
