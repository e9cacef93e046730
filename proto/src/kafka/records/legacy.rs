//! Messages of magic 0 and 1.
//!
//! A wrapper is a message whose value is a compressed inner set; its own offset is that of its *last* inner message.
//! Inner offsets are absolute in magic 0, and in magic 1 relative, to be read from the last one back: compaction may
//! have removed any of them, so neither the first nor the count tells anything.

use super::batch::{LOG_APPEND, TimestampType};
use super::cursor::Form;
use super::entry::{ENTRY_HEAD, Entry, Shallow, int32, int64, shallow};
use super::{DecodeOptions, Range32, RawRecord, RecordBatch, RecordsError, RecordsProblem};
use crate::kafka::compression::{Compression, Decompressor, Lz4Header};
use bytes::Bytes;

/// One message, as positions within its set.
pub(super) struct Message {
    pub(super) offset: i64,
    pub(super) attributes: i16,
    pub(super) timestamp: i64,
    pub(super) key: Option<(usize, usize)>,
    pub(super) value: Option<(usize, usize)>,
    pub(super) end: usize,
}

impl Message {
    pub(super) fn record(&self, offset: i64, log_append_time: Option<i64>) -> RawRecord {
        let range = |bounds: Option<(usize, usize)>| bounds.and_then(|(start, end)| Range32::new(start, end));
        RawRecord {
            offset,
            timestamp: log_append_time.unwrap_or(self.timestamp),
            key: range(self.key),
            value: range(self.value),
            headers: None,
            header_count: 0,
        }
    }
}

/// Reads the message at `at`, which must be whole.
pub(super) fn message(set: &[u8], at: usize) -> Result<Message, &'static str> {
    let bytes = set.get(at..).unwrap_or_default();
    let size =
        int32(bytes, 8).and_then(|size| usize::try_from(size).ok()).ok_or("its size is cut or negative")?;
    let bytes = bytes.get(..ENTRY_HEAD + size).ok_or("it runs past the end of its set")?;
    let magic = *bytes.get(16).ok_or("its magic is cut")?;
    let timed = match magic {
        0 => false,
        1 => true,
        _ => return Err("its magic differs from its set's"),
    };
    let timestamp = if timed { int64(bytes, 18).ok_or("its timestamp is cut")? } else { -1 };
    let (key, after_key) = sized(bytes, if timed { 26 } else { 18 }).ok_or("its key is cut")?;
    let (value, end) = sized(bytes, after_key).ok_or("its value is cut")?;
    if end != bytes.len() {
        return Err("bytes follow its value");
    }
    let shift = |range: Option<(usize, usize)>| range.map(|(start, end)| (start + at, end + at));
    Ok(Message {
        offset: int64(bytes, 0).ok_or("its offset is cut")?,
        attributes: i16::from(bytes[17]),
        timestamp,
        key: shift(key),
        value: shift(value),
        end: at + end,
    })
}

/// A checksum problem of the message at `at..end`.
pub(super) fn check(set: &[u8], at: usize, end: usize) -> Result<(), RecordsProblem> {
    let stored = int32(set, at + ENTRY_HEAD).unwrap_or_default() as u32;
    let computed = crc32fast::hash(&set[at + ENTRY_HEAD + 4..end]);
    if stored == computed { Ok(()) } else { Err(RecordsProblem::Checksum { stored, computed }) }
}

fn sized(bytes: &[u8], at: usize) -> Option<(Option<(usize, usize)>, usize)> {
    let length = int32(bytes, at)?;
    let start = at + 4;
    if length == -1 {
        return Some((None, start));
    }
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    (end <= bytes.len()).then_some((Some((start, end)), end))
}

fn attributes(message: &[u8]) -> i16 {
    message.get(17).copied().unwrap_or_default().into()
}

fn timestamp_type(magic: i8, attributes: i16) -> TimestampType {
    match (magic, attributes & LOG_APPEND) {
        (0, _) => TimestampType::None,
        (_, 0) => TimestampType::Create,
        _ => TimestampType::LogAppend,
    }
}

/// The row of plain messages of one magic and timestamp type that `set` begins with; `None` if it begins with a
/// wrapper.
pub(super) fn plain_row(
    set: &Bytes,
    first: &Entry,
    from: i64,
    options: &DecodeOptions,
) -> Option<RecordBatch> {
    let kind = attributes(set) & (7 | LOG_APPEND);
    if kind & 7 != 0 {
        return None;
    }
    let (mut end, mut next_offset, mut count) = (first.size, first.next_offset, 1);
    while let Ok(Shallow::Entry(entry)) = shallow(&set[end..]) {
        if entry.magic != first.magic || attributes(&set[end..]) & (7 | LOG_APPEND) != kind {
            break;
        }
        (end, next_offset, count) = (end + entry.size, entry.next_offset, count + 1);
    }
    let form = Form::Messages { shift: 0, log_append_time: None, check_crcs: options.check_crcs };
    Some(RecordBatch {
        base_offset: first.base_offset,
        next_offset,
        record_count: count,
        timestamp_type: timestamp_type(first.magic, kind),
        ..messages(first.magic, set.slice(..end), from, form)
    })
}

/// Decodes a wrapper; `bytes` is the whole entry. `None` if it holds nothing at all.
pub(super) fn decode_wrapper(
    bytes: &Bytes,
    entry: &Entry,
    from: i64,
    options: &DecodeOptions,
    decompressor: &mut Decompressor,
) -> Result<Option<RecordBatch>, RecordsError> {
    let bad = |problem| RecordsError::new(entry.base_offset, entry.next_offset, problem);
    if options.check_crcs {
        check(bytes, 0, bytes.len()).map_err(bad)?;
    }
    let wrapper = message(bytes, 0).map_err(|what| bad(RecordsProblem::Record(what)))?;
    let compression = Compression::from_attributes(wrapper.attributes).map_err(|e| bad(e.into()))?;
    let (start, end) =
        wrapper.value.ok_or_else(|| bad(RecordsProblem::Record("a wrapper without inner set")))?;
    let inner = decompressor
        .decompress(compression, &bytes.slice(start..end), Lz4Header::KafkaLegacy)
        .map_err(|e| bad(e.into()))?;
    let Some((first, last, count)) = inner_extent(&inner).map_err(bad)? else { return Ok(None) };
    let relative = entry.magic == 1;
    let shift = if relative { entry.base_offset.wrapping_sub(last) } else { 0 };
    let timestamp_type = timestamp_type(entry.magic, wrapper.attributes);
    let log_append_time = (timestamp_type == TimestampType::LogAppend).then_some(wrapper.timestamp);
    let form = Form::Messages { shift, log_append_time, check_crcs: options.check_crcs };
    Ok(Some(RecordBatch {
        base_offset: first.wrapping_add(shift),
        next_offset: entry.next_offset,
        record_count: count,
        compression,
        timestamp_type,
        max_timestamp: wrapper.timestamp,
        ..messages(entry.magic, inner, from, form)
    }))
}

/// First and last stored offset and count of an inner set's messages.
fn inner_extent(inner: &[u8]) -> Result<Option<(i64, i64, u32)>, RecordsProblem> {
    let mut extent: Option<(i64, i64, u32)> = None;
    let mut at = 0;
    loop {
        match shallow(&inner[at..]).map_err(|error| *error.problem)? {
            Shallow::End => return Ok(extent),
            Shallow::Partial(_) => return Err(RecordsProblem::Record("the inner set is cut")),
            Shallow::Entry(entry) => {
                let (first, _, count) = extent.unwrap_or((entry.base_offset, 0, 0));
                extent = Some((first, entry.base_offset, count + 1));
                at += entry.size;
            }
        }
    }
}

fn messages(magic: i8, payload: Bytes, from: i64, form: Form) -> RecordBatch {
    RecordBatch {
        magic,
        base_offset: 0,
        next_offset: 0,
        leader_epoch: -1,
        compression: Compression::None,
        timestamp_type: TimestampType::None,
        is_transactional: false,
        is_control: false,
        max_timestamp: -1,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        record_count: 0,
        payload,
        from,
        form,
    }
}
