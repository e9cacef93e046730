//! A decoded batch: the header's fields and the uncompressed bytes of its records.

use super::cursor::{Form, RecordCursor};
use super::entry::{Entry, int16, int32, int64};
use super::{DecodeOptions, RecordsError, RecordsProblem};
use crate::kafka::compression::{Compression, Decompressor, Lz4Header};
use bytes::Bytes;

/// Bytes of a batch's header, with the entry head.
pub(super) const BATCH_HEADER: usize = 61;
/// The checksum of a batch covers all from here on.
pub(super) const CHECKED_FROM: usize = 21;
pub(super) const LOG_APPEND: i16 = 0x08;
pub(super) const TRANSACTIONAL: i16 = 0x10;
pub(super) const CONTROL: i16 = 0x20;
/// Length, attributes, two deltas, key and value length, header count: one byte each.
const LEAST_RECORD: usize = 7;

/// What a record's timestamp means (Kafka property `message.timestamp.type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimestampType {
    /// The format has none (magic 0); it reads -1.
    None,
    /// The producer's.
    Create,
    /// The broker's, at the append.
    LogAppend,
}

/// What a control batch says about the transaction of its producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ControlType {
    /// It was aborted.
    Abort,
    /// It was committed.
    Commit,
    /// Anything else.
    Other(i16),
}

/// One batch of magic 2, one wrapper of magic 0 or 1, or a row of plain messages of one of these magics.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RecordBatch {
    /// The format: 0, 1 or 2.
    pub magic: i8,
    /// Offset of the first record, as far as known without decoding; compaction may have removed that record.
    pub base_offset: i64,
    /// The offset to go on with after the batch, also where its last records are compacted away.
    pub next_offset: i64,
    /// Epoch of the leader that appended it; -1 below magic 2.
    pub leader_epoch: i32,
    /// The codec it came in.
    pub compression: Compression,
    /// What the records' timestamps mean.
    pub timestamp_type: TimestampType,
    /// Written in a transaction of `producer_id`.
    pub is_transactional: bool,
    /// Holds a marker ([`Self::control_type`]) and no records.
    pub is_control: bool,
    /// The highest timestamp in ms; -1 where there is none, and for plain messages.
    pub max_timestamp: i64,
    /// The producer, where idempotent or transactional; else -1.
    pub producer_id: i64,
    /// Epoch of the producer; else -1.
    pub producer_epoch: i16,
    /// Sequence number of the first record; else -1.
    pub base_sequence: i32,
    /// Records in the payload, as the header claims; 0 where all are compacted away.
    pub record_count: u32,
    /// The uncompressed bytes of the records, into which [`super::RawRecord`] points.
    pub payload: Bytes,
    pub(super) from: i64,
    pub(super) form: Form,
}

impl RecordBatch {
    /// Walks the records from the wanted offset on; none in a control batch.
    pub fn records(&self) -> RecordCursor {
        let count = if self.is_control { 0 } else { self.record_count };
        self.walk(count)
    }

    /// What a control batch says; `None` for other batches, or if its marker is malformed.
    pub fn control_type(&self) -> Option<ControlType> {
        let marker = self.is_control.then(|| self.walk(self.record_count).from(i64::MIN).next())??;
        let key = marker.ok()?.key(&self.payload)?;
        Some(match int16(key, 2)? {
            0 => ControlType::Abort,
            1 => ControlType::Commit,
            other => ControlType::Other(other),
        })
    }

    fn walk(&self, count: u32) -> RecordCursor {
        let payload = if count == 0 { Bytes::new() } else { self.payload.clone() };
        RecordCursor::new(payload, count, self.form, self.base_offset, self.next_offset).from(self.from)
    }
}

/// Decodes a batch of magic 2; `bytes` is the whole entry.
pub(super) fn decode(
    bytes: &Bytes,
    entry: &Entry,
    from: i64,
    options: &DecodeOptions,
    decompressor: &mut Decompressor,
) -> Result<RecordBatch, RecordsError> {
    let bad = |problem| RecordsError::new(entry.base_offset.max(from), entry.next_offset, problem);
    if options.check_crcs {
        check(bytes).map_err(bad)?;
    }
    let cut = || bad(RecordsProblem::Record("the batch header is cut"));
    let attributes = int16(bytes, 21).ok_or_else(cut)?;
    let base_timestamp = int64(bytes, 27).ok_or_else(cut)?;
    let max_timestamp = int64(bytes, 35).ok_or_else(cut)?;
    let count = int32(bytes, 57).ok_or_else(cut)?;
    let compression = Compression::from_attributes(attributes).map_err(|e| bad(e.into()))?;
    let payload = decompressor
        .decompress(compression, &bytes.slice(BATCH_HEADER..), Lz4Header::Standard)
        .map_err(|e| bad(e.into()))?;
    let record_count = u32::try_from(count)
        .ok()
        .filter(|count| *count as usize <= payload.len() / LEAST_RECORD)
        .ok_or_else(|| bad(RecordsProblem::Count { count, bytes: payload.len() }))?;
    let log_append = attributes & LOG_APPEND != 0;
    Ok(RecordBatch {
        magic: 2,
        base_offset: entry.base_offset,
        next_offset: entry.next_offset,
        leader_epoch: int32(bytes, 12).ok_or_else(cut)?,
        compression,
        timestamp_type: if log_append { TimestampType::LogAppend } else { TimestampType::Create },
        is_transactional: attributes & TRANSACTIONAL != 0,
        is_control: attributes & CONTROL != 0,
        max_timestamp,
        producer_id: int64(bytes, 43).ok_or_else(cut)?,
        producer_epoch: int16(bytes, 51).ok_or_else(cut)?,
        base_sequence: int32(bytes, 53).ok_or_else(cut)?,
        record_count,
        payload,
        from,
        form: Form::Batch { base_timestamp, log_append_time: log_append.then_some(max_timestamp) },
    })
}

fn check(bytes: &[u8]) -> Result<(), RecordsProblem> {
    let stored = int32(bytes, 17).unwrap_or_default() as u32;
    let computed = crc32c::crc32c(&bytes[CHECKED_FROM..]);
    if stored == computed { Ok(()) } else { Err(RecordsProblem::Checksum { stored, computed }) }
}
