//! Record batches of magic 2 (Kafka 0.11 up, KIP-98), uncompressed.

use crate::{ProduceRecord, wire::Writer};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of the batch's header, up to and with the record count.
const HEADER: usize = 61;
/// Offset of the bytes that the checksum covers.
const CHECKED: usize = 21;

/// Who produces, for the broker to drop what it already has when a batch is sent again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProducerId {
    pub(crate) id: i64,
    pub(crate) epoch: i16,
}

/// A batch of one partition that is being filled.
#[derive(Debug)]
pub(crate) struct Batch {
    bytes: Writer,
    count: i32,
    /// The record being written, whose length goes first.
    record: Writer,
}

impl Batch {
    pub(crate) fn new() -> Self {
        Self { bytes: Writer(vec![0; HEADER]), count: 0, record: Writer::default() }
    }

    pub(crate) fn count(&self) -> i32 {
        self.count
    }

    /// Bytes so far, with the header.
    pub(crate) fn size(&self) -> usize {
        self.bytes.0.len()
    }

    /// Appends a record with the batch's timestamp.
    pub(crate) fn push(&mut self, record: &ProduceRecord) {
        let size = |bytes: &[u8]| i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        let body = &mut self.record;
        body.0.clear();
        body.i8(0); // attributes
        body.varint(0); // timestamp delta
        body.varint(i64::from(self.count));
        body.varint(record.key.as_deref().map_or(-1, size));
        body.0.extend(record.key.as_deref().unwrap_or_default());
        body.varint(size(&record.value));
        body.0.extend(&record.value);
        body.varint(0); // headers
        self.bytes.varint(size(&self.record.0));
        self.bytes.0.extend(&self.record.0);
        self.count += 1;
    }

    /// Writes the header; `sequence` is the partition's number of records before this batch.
    pub(crate) fn seal(self, producer: ProducerId, sequence: i32) -> Vec<u8> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let mut checked = Writer::default();
        checked.i16(0);
        checked.i32(self.count - 1);
        checked.i64(now);
        checked.i64(now);
        checked.i64(producer.id);
        checked.i16(producer.epoch);
        checked.i32(sequence);
        checked.i32(self.count);
        let mut bytes = self.bytes.0;
        bytes[CHECKED..HEADER].copy_from_slice(&checked.0);
        let mut head = Writer::default();
        head.i64(0);
        head.len(bytes.len() - 12);
        head.i32(-1);
        head.i8(2);
        head.0.extend(crc32c::crc32c(&bytes[CHECKED..]).to_be_bytes());
        bytes[..CHECKED].copy_from_slice(&head.0);
        bytes
    }
}
