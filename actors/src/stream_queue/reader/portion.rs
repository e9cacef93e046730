//! Many records at once, for handlers of batches: handed over unread, and walked by the handler.

use std::sync::{Arc, OnceLock};

use kafka_troupe_proto::kafka::compression::Decompressor;
use kafka_troupe_proto::kafka::records::{RecordCursor, RecordsError};

use super::{ChunkReader, Step, next_unusual};
use crate::record::SharedBatch;
use crate::record_batch::{Portion, Segment};
use crate::registry::{Gate, NO_OFFSET};

/// The producer's batches are decompressed for a portion until they come to this: a portion ends early then.
const MOST_BYTES: usize = 4 << 20;

/// The portion that was handed over and is not handled.
pub(super) struct PortionInHand {
    pub(super) first: i64,
    pub(super) next: i64,
    pub(super) records: u32,
    /// With the framing of its records.
    bytes: u64,
    /// Set by whoever walks it.
    fault: Arc<OnceLock<RecordsError>>,
}

/// What was gathered, and of how many bytes.
struct Gathered {
    segments: Vec<Segment>,
    next: i64,
    records: u32,
    bytes: usize,
}

impl ChunkReader {
    /// Hands over what there is, at most `most` records: like [`step`](Self::step).
    pub(in super::super) fn step_portion<T>(
        &mut self,
        decompressor: &mut Decompressor,
        most: u32,
        hand_over: impl FnOnce(Portion) -> T,
    ) -> Step<T> {
        if let Some(error) = self.unread.take() {
            return self.failed(&error);
        }
        match self.hand.open() {
            Gate::Open => {}
            Gate::Fenced => return Step::Fenced,
            Gate::Closed | Gate::Halted => return Step::Closed,
        }
        let first = self.from;
        let most = if first == self.known_batch.0 { most.min(self.known_batch.1) } else { most };
        let Gathered { segments, next, records, bytes } = self.gather(decompressor, most);
        if records == 0 {
            self.pass(next);
            return self.unread.take().map_or(Step::End, |error| self.failed(&error));
        }
        self.chunk.partition.advance_delivered(next);
        let fault = Arc::new(OnceLock::new());
        let bytes = bytes as u64;
        self.portion_in_hand = Some(PortionInHand { first, next, records, bytes, fault: Arc::clone(&fault) });
        if first == self.known {
            self.known = NO_OFFSET;
            return Step::FailedBefore;
        }
        Step::HandedOver(hand_over(Portion { segments, first, next, records, fault }))
    }

    /// Takes whole batches of the producer's while they fit, and part of one that alone is too large.
    fn gather(&mut self, decompressor: &mut Decompressor, most: u32) -> Gathered {
        let mut gathered = Gathered { segments: Vec::new(), next: self.from, records: 0, bytes: 0 };
        while gathered.records < most && gathered.bytes < MOST_BYTES {
            let Some((batch, cursor)) = self.current.take() else {
                if self.decode_next(decompressor, &mut gathered.next) {
                    continue;
                } else {
                    break;
                };
            };
            let records = wanted(&cursor, &batch, self.from);
            let left = most - gathered.records;
            if records <= left {
                gathered.next = batch.batch.next_offset;
                gathered.add(batch, cursor, records);
            } else if gathered.records == 0 {
                self.cut(batch, cursor, left, &mut gathered);
                break;
            } else {
                self.current = Some((batch, cursor));
                break;
            }
        }
        gathered
    }

    /// Goes on to the next batch that is wanted; whether there is one. `next`: where all before is seen.
    fn decode_next(&mut self, decompressor: &mut Decompressor, next: &mut i64) -> bool {
        match self.batches.next_batch(decompressor) {
            Some(Ok(batch)) if self.is_wanted(&batch) => {
                let (cursor, partition) = (batch.records(), Arc::clone(&self.chunk.partition));
                self.current = Some((Arc::new(SharedBatch { batch, from: partition.into() }), cursor));
                true
            }
            Some(Ok(batch)) => {
                *next = batch.next_offset.max(*next);
                true
            }
            Some(Err(error)) => {
                self.unread = Some(error);
                false
            }
            None => {
                *next = self.chunk.next_offset;
                false
            }
        }
    }

    /// Takes the first `left` records of a batch.
    fn cut(&mut self, batch: Arc<SharedBatch>, mut cursor: RecordCursor, left: u32, gathered: &mut Gathered) {
        let start = cursor.clone();
        let mut records = 0;
        while records < left {
            match cursor.next_usual() {
                Some(_) => {}
                None => match next_unusual(&mut cursor) {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(error) => {
                        self.unread = Some(error);
                        break;
                    }
                },
            }
            records += 1;
        }
        gathered.next = self.unread.as_ref().map_or_else(|| cursor.position(), |error| error.offset);
        gathered.add(Arc::clone(&batch), start, records);
        // what lies behind an error is not read
        self.current = self.unread.is_none().then_some((batch, cursor));
    }

    /// The portion that was handed over is handled: how many records it had.
    pub(in super::super) fn portion_handled(&mut self) -> u32 {
        let Some(PortionInHand { next, records, bytes, fault, .. }) = self.portion_in_hand.take() else {
            return 0;
        };
        match fault.get() {
            None => {
                self.chunk.partition.ack(next);
                self.from = self.from.max(next);
            }
            Some(error) => {
                self.restart_at(error.offset);
                self.pass(error.offset);
                (self.unread, self.current) = (Some(error.clone()), None);
            }
        }
        self.chunk.partition.count_all(records.into(), bytes);
        records
    }

    /// The portion was not handled: all of it, or the record at `place`, all before which is handled then. Gives the
    /// first offset that was not, and the one after what failed.
    pub(in super::super) fn portion_failed(&mut self, place: Option<i64>) -> Option<(i64, i64)> {
        let PortionInHand { first, next, .. } = *self.portion_in_hand.as_ref()?;
        let Some(place) = place.filter(|place| (first..next).contains(place)) else {
            return Some((first, next));
        };
        self.pass(place);
        Some((place, place + 1))
    }

    /// What was not handled comes again, from this offset on.
    pub(in super::super) fn go_on_at(&mut self, offset: i64) {
        self.portion_in_hand = None;
        self.pass(offset);
        self.restart_at(offset);
    }
}

impl Gathered {
    fn add(&mut self, batch: Arc<SharedBatch>, cursor: RecordCursor, records: u32) {
        if records > 0 {
            let all = batch.batch.record_count.max(1);
            self.bytes += cursor.payload().len() * records as usize / all as usize;
            self.records += records;
            self.segments.push(Segment { batch, cursor, records });
        }
    }
}

/// How many records the cursor will give. (The header counts those as well that lie before the position.)
fn wanted(cursor: &RecordCursor, batch: &SharedBatch, from: i64) -> u32 {
    if batch.batch.base_offset >= from {
        return cursor.remaining();
    }
    let mut ahead = cursor.clone();
    // one that cannot be read counts, so that somebody meets it
    ahead.next().map_or(0, |_| ahead.remaining() + 1)
}
