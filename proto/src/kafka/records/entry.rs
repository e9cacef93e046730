//! The shallow walk: entries of a record set, without looking inside.

use super::{RecordsError, RecordsProblem};

/// Offset and size, which every entry begins with.
pub(super) const ENTRY_HEAD: usize = 12;
/// Up to and with the magic, which stands at the same place in all formats.
const MAGIC_AT: usize = 16;
/// Size of a batch without records, after the entry head.
const LEAST_BATCH: i32 = 49;
/// Size of a message of magic 0 without key and value, after the entry head.
const LEAST_MESSAGE: i32 = 14;
/// Magic 1 adds a timestamp.
const LEAST_TIMED_MESSAGE: i32 = 22;

/// One whole entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) base_offset: i64,
    pub(super) next_offset: i64,
    pub(super) magic: i8,
    /// -1 below magic 2.
    pub(super) leader_epoch: i32,
    /// Bytes with the entry head.
    pub(super) size: usize,
}

/// The last entry of a record set, cut off because the response was full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartialBatch {
    /// Bytes of it that are there.
    pub present: usize,
    /// Its base offset, if that much is there. (A wrapper of magic 0 or 1 carries its last offset.)
    pub base_offset: Option<i64>,
    /// Bytes of the whole, if that much is there.
    pub size: Option<usize>,
}

/// What a record set covers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordSetExtent {
    /// The offset to fetch next, `None` without a whole entry: last base offset + last offset delta + 1.
    pub next_offset: Option<i64>,
    /// Leader epoch of the last whole entry; -1 where there is none, and below magic 2.
    pub leader_epoch: i32,
    /// Bytes of whole entries.
    pub complete_bytes: usize,
    /// Whole entries (batches, or messages of magic 0 and 1).
    pub entries: usize,
    /// The cut-off entry at the end.
    pub partial: Option<PartialBatch>,
    /// The entry that ended the walk: what is before it is good, `next_offset` is that of before.
    pub error: Option<RecordsError>,
}

impl RecordSetExtent {
    /// Bytes, but no whole entry: the batch is larger than the fetch size, and fetching it again will not help.
    pub fn is_oversize(&self) -> bool {
        self.entries == 0 && self.partial.is_some()
    }
}

pub(super) enum Shallow {
    End,
    Partial(PartialBatch),
    Entry(Entry),
}

/// Walks the entries of `records` without checksums or decompression: a few bytes touched per entry.
pub fn extent(records: &[u8]) -> RecordSetExtent {
    let mut extent = RecordSetExtent {
        next_offset: None,
        leader_epoch: -1,
        complete_bytes: 0,
        entries: 0,
        partial: None,
        error: None,
    };
    loop {
        match shallow(&records[extent.complete_bytes..]) {
            Ok(Shallow::Entry(entry)) => {
                extent.next_offset = Some(entry.next_offset);
                extent.leader_epoch = entry.leader_epoch;
                extent.complete_bytes += entry.size;
                extent.entries += 1;
            }
            Ok(Shallow::Partial(partial)) => {
                extent.partial = Some(partial);
                return extent;
            }
            Ok(Shallow::End) => return extent,
            Err(error) => {
                extent.error = Some(error);
                return extent;
            }
        }
    }
}

pub(super) fn shallow(bytes: &[u8]) -> Result<Shallow, RecordsError> {
    if bytes.is_empty() {
        return Ok(Shallow::End);
    }
    let mut partial = PartialBatch { present: bytes.len(), base_offset: None, size: None };
    let Some(base_offset) = int64(bytes, 0) else { return Ok(Shallow::Partial(partial)) };
    partial.base_offset = Some(base_offset);
    let bad = |problem| RecordsError::new(base_offset, base_offset, problem);
    if base_offset < 0 {
        return Err(bad(RecordsProblem::Offset(base_offset)));
    }
    let Some(size) = int32(bytes, 8) else { return Ok(Shallow::Partial(partial)) };
    if size < LEAST_MESSAGE {
        return Err(bad(RecordsProblem::Size { size, least: LEAST_MESSAGE }));
    }
    let whole = ENTRY_HEAD + size as usize;
    partial.size = Some(whole);
    if bytes.len() < whole {
        return Ok(Shallow::Partial(partial));
    }
    let magic = bytes[MAGIC_AT] as i8;
    let least = match magic {
        0 => LEAST_MESSAGE,
        1 => LEAST_TIMED_MESSAGE,
        2 => LEAST_BATCH,
        _ => return Err(bad(RecordsProblem::Magic(magic))),
    };
    if size < least {
        return Err(bad(RecordsProblem::Size { size, least }));
    }
    let last_offset_delta = if magic == 2 { int32(bytes, 23).unwrap_or(-1) } else { 0 };
    let next_offset = u32::try_from(last_offset_delta)
        .ok()
        .and_then(|delta| base_offset.checked_add(i64::from(delta) + 1))
        .ok_or_else(|| bad(RecordsProblem::Offset(last_offset_delta.into())))?;
    let leader_epoch = if magic == 2 { int32(bytes, 12).unwrap_or(-1) } else { -1 };
    Ok(Shallow::Entry(Entry { base_offset, next_offset, magic, leader_epoch, size: whole }))
}

pub(super) fn int16(bytes: &[u8], at: usize) -> Option<i16> {
    Some(i16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn int32(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn int64(bytes: &[u8], at: usize) -> Option<i64> {
    Some(i64::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
