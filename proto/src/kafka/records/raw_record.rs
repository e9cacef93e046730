use crate::kafka::wire::varint::varint;
use std::borrow::Cow;
use std::num::NonZeroU32;

/// A range of bytes within a batch's payload, in 8 bytes also as an `Option`: no field of a record ends at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range32 {
    start: u32,
    end: NonZeroU32,
}

impl Range32 {
    /// `start..end`; `None` if `end` is 0 or a bound exceeds 32 bits.
    #[inline]
    pub(super) fn new(start: usize, end: usize) -> Option<Self> {
        Some(Self { start: u32::try_from(start).ok()?, end: NonZeroU32::new(u32::try_from(end).ok()?)? })
    }

    /// The bytes of `payload` in the range. Panics if it is another batch's payload and shorter.
    #[inline]
    pub fn of(self, payload: &[u8]) -> &[u8] {
        &payload[self.start as usize..self.end.get() as usize]
    }

    /// Length in bytes.
    #[inline]
    pub fn len(self) -> usize {
        (self.end.get() - self.start) as usize
    }

    /// Whether the length is 0.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// As a range, for [`bytes::Bytes::slice`].
    #[inline]
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end.get() as usize
    }
}

/// One record: its numbers, and where its bytes lie in the payload of its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawRecord {
    /// Its offset in the partition.
    pub offset: i64,
    /// In ms since 1970; what it means stands in the batch. -1 where the format has none.
    pub timestamp: i64,
    /// Null is `None`, which is not the same as empty.
    pub key: Option<Range32>,
    /// Null (a tombstone) is `None`, which is not the same as empty.
    pub value: Option<Range32>,
    pub(super) headers: Option<Range32>,
    /// Headers of the record; always 0 below magic 2.
    pub header_count: u32,
}

impl RawRecord {
    /// The key, out of the payload of the record's batch.
    #[inline]
    pub fn key(self, payload: &[u8]) -> Option<&[u8]> {
        self.key.map(|range| range.of(payload))
    }

    /// The value, out of the payload of the record's batch.
    #[inline]
    pub fn value(self, payload: &[u8]) -> Option<&[u8]> {
        self.value.map(|range| range.of(payload))
    }

    /// Bytes of key and value.
    #[inline]
    pub fn size(self) -> u64 {
        (self.key.map_or(0, Range32::len) + self.value.map_or(0, Range32::len)) as u64
    }

    /// The headers in their order, out of the payload of the record's batch.
    pub fn headers(self, payload: &[u8]) -> Headers<'_> {
        Headers { bytes: self.headers.map_or(&[], |range| range.of(payload)), left: self.header_count }
    }
}

/// One header of a record. A key may occur more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header<'a> {
    /// The key's bytes: UTF-8 by rule, which brokers do not check.
    pub key: &'a [u8],
    /// Null is `None`.
    pub value: Option<&'a [u8]>,
}

impl<'a> Header<'a> {
    /// The key as text; what is not UTF-8 is replaced, as the Java client does.
    pub fn name(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.key)
    }
}

/// The headers of a record, in order.
#[derive(Debug, Clone)]
pub struct Headers<'a> {
    bytes: &'a [u8],
    left: u32,
}

impl<'a> Iterator for Headers<'a> {
    type Item = Header<'a>;

    fn next(&mut self) -> Option<Header<'a>> {
        self.left = self.left.checked_sub(1)?;
        // the cursor has checked the framing, so this ends early only with another batch's payload
        let (header, after) = header(self.bytes, 0)?;
        self.bytes = &self.bytes[after..];
        Some(header)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left as usize))
    }
}

/// Reads the header at `at`; answers it and the position after it.
pub(super) fn header(bytes: &[u8], at: usize) -> Option<(Header<'_>, usize)> {
    let (key_length, at) = varint(bytes, at)?;
    let after_key = at.checked_add(usize::try_from(key_length).ok()?)?;
    let key = bytes.get(at..after_key)?;
    let (value_length, at) = varint(bytes, after_key)?;
    if value_length == -1 {
        return Some((Header { key, value: None }, at));
    }
    let after = at.checked_add(usize::try_from(value_length).ok()?)?;
    Some((Header { key, value: Some(bytes.get(at..after)?) }, after))
}
