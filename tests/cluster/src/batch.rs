//! Records as a broker stores them, uncompressed: record batches of magic 2 (Kafka 0.11 up, KIP-98), or the message
//! sets of magic 0 and 1 of before.

use crate::{ProduceRecord, generation::Format, wire::Writer};
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

impl ProducerId {
    /// Nobody that a broker remembers.
    pub(crate) const NONE: Self = Self { id: -1, epoch: -1 };
}

/// A batch of one partition that is being filled.
#[derive(Debug)]
pub(crate) struct Batch {
    format: Format,
    bytes: Writer,
    count: i32,
    /// The record being written, whose length goes first.
    record: Writer,
}

impl Batch {
    pub(crate) fn new(format: Format) -> Self {
        let header = if format == Format::Batch { HEADER } else { 0 };
        Self { format, bytes: Writer(vec![0; header]), count: 0, record: Writer::default() }
    }

    pub(crate) fn count(&self) -> i32 {
        self.count
    }

    /// Bytes so far, with the header.
    pub(crate) fn size(&self) -> usize {
        self.bytes.0.len()
    }

    /// Appends a record with the batch's timestamp, or a message with its own.
    pub(crate) fn push(&mut self, record: &ProduceRecord) {
        match self.format {
            Format::MessageSet(magic) => self.push_message(magic, record),
            Format::Batch => self.push_record(record),
        }
        self.count += 1;
    }

    fn push_message(&mut self, magic: i8, record: &ProduceRecord) {
        let message = &mut self.record;
        message.0.clear();
        message.i8(magic);
        message.i8(0); // attributes
        if magic > 0 {
            message.i64(now());
        }
        match &record.key {
            Some(key) => message.bytes(key),
            None => message.i32(-1),
        }
        message.bytes(&record.value);
        self.bytes.i64(i64::from(self.count));
        self.bytes.len(message.0.len() + 4);
        self.bytes.0.extend(crc32fast::hash(&message.0).to_be_bytes());
        self.bytes.0.extend(&message.0);
    }

    fn push_record(&mut self, record: &ProduceRecord) {
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
    }

    /// Writes the header, which a message set has not; `sequence` is the partition's number of records before this
    /// batch.
    pub(crate) fn seal(self, producer: ProducerId, sequence: i32) -> Vec<u8> {
        if self.format != Format::Batch {
            return self.bytes.0;
        }
        let now = now();
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

/// Milliseconds since 1970.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    i64::try_from(now).unwrap_or(i64::MAX)
}
