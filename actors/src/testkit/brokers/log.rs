//! One partition's batches.

use std::collections::VecDeque;

use bytes::Bytes;
use kafka_troupe_proto::kafka::records::{NewRecord, RecordBatchWriter};

/// Where a batch says how long the rest is, and of which format.
pub(super) const SIZE: std::ops::Range<usize> = 8..12;
pub(super) const MAGIC: usize = 16;

/// Where a batch of magic 2 says how many offsets it takes, less one.
const LAST_OFFSET_DELTA: std::ops::Range<usize> = 23..27;

/// What is wrong with a batch, so that not even its extent can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Spoilt {
    /// Its magic is 99.
    Format,
    /// Its size is -1.
    Size,
}

#[derive(Default)]
pub(super) struct Log {
    /// Next offset after each, and its bytes.
    batches: VecDeque<(i64, Bytes)>,
    start: i64,
    end: i64,
}

impl Log {
    pub(super) fn start(&self) -> i64 {
        self.start
    }

    pub(super) fn end(&self) -> i64 {
        self.end
    }

    /// Appends one batch of keys and values; gives the offset after it.
    pub(super) fn append_keyed(&mut self, records: &[(Option<&str>, &str)], epoch: Option<i32>) -> i64 {
        let records: Vec<_> = records
            .iter()
            .map(|(key, value)| NewRecord {
                key: key.map(str::as_bytes),
                value: Some(value.as_bytes()),
                ..NewRecord::default()
            })
            .collect();
        self.append_all(&records, epoch)
    }

    /// Appends one batch; gives the offset after it.
    pub(super) fn append_all(&mut self, records: &[NewRecord<'_>], epoch: Option<i32>) -> i64 {
        let mut batch = RecordBatchWriter::new(self.end);
        records.iter().for_each(|record| batch.push(record));
        if let (false, Ok(batch)) = (records.is_empty(), batch.finish()) {
            let batch = epoch.map_or(batch.clone(), |epoch| of_epoch(&batch, epoch));
            self.end += records.len() as i64;
            self.batches.push_back((self.end, batch));
        }
        self.end
    }

    /// Appends a batch, or a message, as a client sent it: it gets the next offset and the leader's epoch.
    pub(super) fn append_entry(&mut self, entry: &[u8], epoch: Option<i32>) {
        let mut bytes = entry.to_vec();
        bytes[..SIZE.start].copy_from_slice(&self.end.to_be_bytes());
        let is_batch = bytes[MAGIC] == 2;
        let last = bytes.get(LAST_OFFSET_DELTA).filter(|_| is_batch).and_then(|last| last.try_into().ok());
        self.end += i64::from(last.map_or(0, i32::from_be_bytes)) + 1;
        let bytes = match epoch {
            Some(epoch) if is_batch => of_epoch(&bytes, epoch),
            _ => bytes.into(),
        };
        self.batches.push_back((self.end, bytes));
    }

    /// Flips a bit in the last byte of the batch that holds `offset`.
    pub(super) fn damage(&mut self, offset: i64) {
        if let Some((_, batch)) = self.batches.iter_mut().find(|(end, _)| offset < *end) {
            let mut bytes = batch.to_vec();
            if let Some(last) = bytes.last_mut() {
                *last ^= 1;
            }
            *batch = bytes.into();
        }
    }

    /// Makes the batch that holds `offset` one of a format that nobody knows, or of a size that cannot be.
    pub(super) fn spoil(&mut self, offset: i64, spoilt: Spoilt) {
        if let Some((_, batch)) = self.batches.iter_mut().find(|(end, _)| offset < *end) {
            let mut bytes = batch.to_vec();
            match spoilt {
                Spoilt::Format => bytes[MAGIC] = 99,
                Spoilt::Size => bytes[SIZE].copy_from_slice(&(-1i32).to_be_bytes()),
            }
            *batch = bytes.into();
        }
    }

    pub(super) fn delete_before(&mut self, offset: i64) {
        while let Some((end, _)) = self.batches.front().filter(|(end, _)| *end <= offset) {
            self.start = *end;
            self.batches.pop_front();
        }
    }

    /// The batches from the one that holds `offset`, at most `most` bytes but for a first one that is larger.
    pub(super) fn read(&self, offset: i64, most: usize) -> Bytes {
        let mut read = Vec::new();
        let first = self.batches.partition_point(|(end, _)| *end <= offset);
        for (_, batch) in self.batches.iter().skip(first) {
            if !read.is_empty() && read.len() + batch.len() > most {
                break;
            }
            read.extend_from_slice(batch);
        }
        read.into()
    }
}

/// What a leader writes into a batch, outside of what its checksum covers.
fn of_epoch(batch: &[u8], epoch: i32) -> Bytes {
    let mut batch = batch.to_vec();
    if let Some(place) = batch.get_mut(12..16) {
        place.copy_from_slice(&epoch.to_be_bytes());
    }
    batch.into()
}
