use super::entry::{Entry, Shallow, int16, shallow};
use super::{PartialBatch, RecordBatch, RecordsError, batch, legacy};
use crate::kafka::compression::Decompressor;
use bytes::Bytes;

/// Of a batch of magic 2.
const ATTRIBUTES_AT: usize = 21;

/// How a record set is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecodeOptions {
    /// Check each batch's (or message's) checksum; default true. (`check.crcs` of the newer consumer; the old one
    /// always checks.)
    pub check_crcs: bool,
}

impl Default for DecodeOptions {
    fn default() -> Self {
        Self { check_crcs: true }
    }
}

impl DecodeOptions {
    /// With `check_crcs` as given.
    pub fn check_crcs(self, check_crcs: bool) -> Self {
        Self { check_crcs }
    }
}

/// The batches of one record set, decoded one at a time. Owns its bytes, so that an actor may keep it.
#[derive(Debug, Clone)]
pub struct RecordBatches {
    records: Bytes,
    at: usize,
    from: i64,
    options: DecodeOptions,
    ended: bool,
    partial: Option<PartialBatch>,
}

impl RecordBatches {
    /// Reads `records` from offset `from` on (the position: a broker answers with the whole batch that holds it).
    pub fn new(records: Bytes, from: i64, options: DecodeOptions) -> Self {
        Self { records, at: 0, from, options, ended: false, partial: None }
    }

    /// The next batch that reaches beyond the wanted offset; `None` at the end, for good, and after an error.
    ///
    /// Batches wholly before that offset are passed over without checksum or decompression, but for control batches:
    /// a [`super::TransactionFilter`] must see where transactions end.
    pub fn next_batch(
        &mut self,
        decompressor: &mut Decompressor,
    ) -> Option<Result<RecordBatch, RecordsError>> {
        while !self.ended {
            match self.step(decompressor) {
                Ok(Some(batch)) => return Some(Ok(batch)),
                Ok(None) => {}
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }

    /// The cut-off batch at the end of the set, once [`Self::next_batch`] has answered `None`.
    pub fn partial(&self) -> Option<PartialBatch> {
        self.partial
    }

    /// Bytes of the set not decoded yet.
    pub fn remaining(&self) -> usize {
        self.records.len() - self.at
    }

    fn step(&mut self, decompressor: &mut Decompressor) -> Result<Option<RecordBatch>, RecordsError> {
        let entry = match shallow(&self.records[self.at..])? {
            Shallow::Entry(entry) => entry,
            Shallow::Partial(partial) => {
                (self.partial, self.ended) = (Some(partial), true);
                return Ok(None);
            }
            Shallow::End => {
                self.ended = true;
                return Ok(None);
            }
        };
        let start = self.at;
        self.at += entry.size;
        let whole = self.records.slice(start..self.at);
        if entry.next_offset <= self.from {
            return Ok(self.passed_over(&whole, &entry, decompressor));
        }
        if entry.magic == 2 {
            return batch::decode(&whole, &entry, self.from, &self.options, decompressor).map(Some);
        }
        if let Some(row) = legacy::plain_row(&self.records.slice(start..), &entry, self.from, &self.options) {
            self.at = start + row.payload.len();
            return Ok(Some(row));
        }
        legacy::decode_wrapper(&whole, &entry, self.from, &self.options, decompressor)
    }

    /// Of what lies before the position, control batches are answered; not bad ones, which one has stepped over.
    fn passed_over(
        &self,
        bytes: &Bytes,
        entry: &Entry,
        decompressor: &mut Decompressor,
    ) -> Option<RecordBatch> {
        let attributes = int16(bytes, ATTRIBUTES_AT).filter(|_| entry.magic == 2)?;
        let control = attributes & batch::CONTROL != 0;
        control.then(|| batch::decode(bytes, entry, self.from, &self.options, decompressor).ok())?
    }
}
