//! Turns a chunk into records and hands them over, one at a time, where the user's code runs.

use std::sync::Arc;

use kafka_troupe_proto::kafka::compression::{CompressionError, Decompressor};
use kafka_troupe_proto::kafka::records::{
    RawRecord, RecordBatch, RecordBatches, RecordCursor, RecordsError, RecordsProblem, TransactionFilter,
};

use super::hand::Hand;
use super::{FetchedChunk, ReadOptions};
use crate::record::{ConsumeError, Record, SharedBatch};
use crate::registry::{Gate, OwnedPartition};

/// The place reached in one chunk.
pub(super) struct ChunkReader {
    chunk: FetchedChunk,
    hand: Hand,
    batches: RecordBatches,
    /// Reading committed.
    filter: Option<TransactionFilter>,
    /// The first offset to hand over.
    from: i64,
    current: Option<(Arc<SharedBatch>, RecordCursor)>,
    in_hand: Option<InHand>,
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
    /// Nothing now: the lease has ended, and may come back.
    Fenced,
    /// The rest belongs to the next owner.
    Closed,
    /// The rest cannot be read.
    Failed(ConsumeError),
    /// All of it is handled.
    End,
}

impl ChunkReader {
    pub(super) fn new(mut chunk: FetchedChunk, options: &ReadOptions) -> Self {
        let from = chunk.fetch_offset.max(chunk.partition.delivered());
        let aborted = std::mem::take(&mut chunk.aborted);
        let filter = options.read_committed.then(|| TransactionFilter::new(aborted));
        // control batches before `from` come as well: an abort marker that the filter does not see would have it leave
        // out what the same producer committed later
        let batches = RecordBatches::new(chunk.records.clone(), from, options.decode);
        let hand = Hand::new(Arc::clone(&chunk.partition));
        Self { chunk, hand, batches, filter, from, current: None, in_hand: None }
    }

    pub(super) fn partition(&self) -> &Arc<OwnedPartition> {
        &self.chunk.partition
    }

    /// Where it is, for logs: the record in hand, or the next.
    pub(super) fn place(&self) -> String {
        let partition = &self.chunk.partition;
        let offset = self.in_hand.map_or_else(|| partition.delivered(), |record| record.offset);
        format!("{}@{offset}", partition.topic_partition)
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
            && let Some(end) = self.next_batch(decompressor)
        {
            return end;
        }
        loop {
            match self.hand.open() {
                Gate::Open => {}
                Gate::Fenced => return Step::Fenced,
                Gate::Closed => return Step::Closed,
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
                    return Step::HandedOver(hand_over(Record::new(Arc::clone(batch), raw)));
                }
            }
            if let Some(end) = self.next_batch(decompressor) {
                return end;
            }
        }
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
                    self.current = Some((Arc::new(SharedBatch { batch, partition }), cursor));
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
    fn pass(&self, next: i64) {
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

    /// Nothing is in hand until the next step.
    pub(super) fn release(&mut self) {
        self.hand.release();
    }

    #[cold]
    fn failed<T>(&self, error: &RecordsError) -> Step<T> {
        let partition = &self.chunk.partition;
        if partition.is_closed() {
            return Step::Closed;
        }
        let why = why(&error.problem);
        Step::Failed(ConsumeError::new(&partition.topic_partition, error.offset, error.resume_at, why))
    }
}

/// What is wrong, and the property by which it may be put right.
fn why(problem: &RecordsProblem) -> String {
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
