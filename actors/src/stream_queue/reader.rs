//! Turns a chunk into records and hands them over, one at a time, where the user's code runs.

use std::sync::Arc;

use kafka_troupe_proto::kafka::compression::Decompressor;
use kafka_troupe_proto::kafka::records::{DecodeOptions, RawRecord, RecordBatches, RecordCursor};

use super::FetchedChunk;
use super::hand::Hand;
use crate::record::{ConsumeError, Record, SharedBatch};
use crate::registry::{Gate, OwnedPartition};

/// The place reached in one chunk.
pub(super) struct ChunkReader {
    chunk: FetchedChunk,
    hand: Hand,
    batches: RecordBatches,
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
    pub(super) fn new(chunk: FetchedChunk) -> Self {
        let from = chunk.fetch_offset.max(chunk.partition.delivered());
        let batches = RecordBatches::new(chunk.records.clone(), from, DecodeOptions::default());
        let hand = Hand::new(Arc::clone(&chunk.partition));
        Self { chunk, hand, batches, current: None, in_hand: None }
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
                        Err(why) => return self.failed(&why),
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

    /// Goes on to the next batch, or says why there is none.
    #[inline(never)]
    fn next_batch<T>(&mut self, decompressor: &mut Decompressor) -> Option<Step<T>> {
        self.current = None;
        match self.batches.next_batch(decompressor) {
            Some(Ok(batch)) => {
                // of a control batch the cursor shows no records
                let cursor = batch.records();
                let partition = Arc::clone(&self.chunk.partition);
                self.current = Some((Arc::new(SharedBatch { batch, partition }), cursor));
                None
            }
            Some(Err(error)) => Some(self.failed(&error.to_string())),
            None => Some(self.finish()),
        }
    }

    /// The record that was handed over, if any, is handled.
    #[inline]
    pub(super) fn handled(&mut self) {
        if let Some(record) = self.in_hand.take() {
            self.chunk.partition.ack(record.offset + 1);
            self.chunk.partition.count(record.size);
        }
    }

    /// The record that was handed over comes next.
    pub(super) fn again(&mut self) {
        if let (Some(record), Some((batch, cursor))) = (self.in_hand.take(), &mut self.current) {
            *cursor = batch.batch.records();
            cursor.skip_below(record.offset);
        }
    }

    /// Nothing is in hand until the next step.
    pub(super) fn release(&mut self) {
        self.hand.release();
    }

    /// All of it is handled, with the control records and compacted gaps that end it.
    fn finish<T>(&self) -> Step<T> {
        let partition = &self.chunk.partition;
        partition.advance_delivered(self.chunk.next_offset);
        partition.ack(self.chunk.next_offset);
        Step::End
    }

    #[cold]
    fn failed<T>(&self, why: &str) -> Step<T> {
        let tp = &self.chunk.partition.topic_partition;
        let offset = self.chunk.partition.delivered();
        let (topic, why) = (tp.topic.to_string(), why.to_owned());
        Step::Failed(ConsumeError { topic, partition: tp.partition, offset, why })
    }
}

/// The next record of any kind: of the old formats, after some that are passed over, or malformed.
#[inline(never)]
fn next_unusual(cursor: &mut RecordCursor) -> Result<Option<RawRecord>, String> {
    cursor.next().transpose().map_err(|error| error.to_string())
}
