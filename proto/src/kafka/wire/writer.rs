use super::{WireError, WireProblem, varint};
use bytes::{BufMut, BytesMut};

/// Writes a message into a growing buffer.
///
/// A value too long for its length field is remembered and comes out of [`Writer::finish`]: encoders stay free
/// of error handling.
///
/// Lengths and counts of strings and arrays are of fixed size, or varints after [`Self::begin_flexible`] (KIP-482).
#[derive(Debug, Default)]
pub struct Writer {
    out: BytesMut,
    failed: Option<WireError>,
    flexible: bool,
}

impl Writer {
    /// Appends to `out`, which may be a recycled buffer.
    pub fn new(out: BytesMut) -> Self {
        Self { out, failed: None, flexible: false }
    }

    /// From here on the message is of a flexible version: compact strings and arrays, tagged fields.
    pub fn begin_flexible(&mut self) {
        self.flexible = true;
    }

    /// Writes that a struct of a flexible message has no tagged fields; nothing in other messages.
    pub fn no_tagged_fields(&mut self) {
        if self.flexible {
            self.out.put_u8(0);
        }
    }

    /// Writes a UUID.
    pub fn uuid(&mut self, uuid: [u8; 16]) {
        self.out.put_slice(&uuid);
    }

    /// Bytes written, with those that the buffer already held.
    pub fn position(&self) -> usize {
        self.out.len()
    }

    /// The buffer, or the first value that did not fit its length field.
    pub fn finish(self) -> Result<BytesMut, WireError> {
        self.failed.map_or(Ok(self.out), Err)
    }

    /// Writes an int8.
    pub fn i8(&mut self, value: i8) {
        self.out.put_i8(value);
    }

    /// Writes a boolean as one byte.
    pub fn bool(&mut self, value: bool) {
        self.out.put_u8(value.into());
    }

    /// Writes a big-endian int16.
    pub fn i16(&mut self, value: i16) {
        self.out.put_i16(value);
    }

    /// Writes a big-endian int32.
    pub fn i32(&mut self, value: i32) {
        self.out.put_i32(value);
    }

    /// Writes a big-endian int64.
    pub fn i64(&mut self, value: i64) {
        self.out.put_i64(value);
    }

    /// Writes a zigzag varint; 32 and 64 bits look the same.
    pub fn varint(&mut self, value: i64) {
        varint::put(&mut self.out, value);
    }

    /// Writes a string of at most 32,767 bytes.
    pub fn string(&mut self, what: &'static str, text: &str) {
        match i16::try_from(text.len()) {
            Err(_) => self.fail(what, text.len()),
            Ok(length) if self.flexible => self.compact_length(length as usize),
            Ok(length) => self.out.put_i16(length),
        }
        self.out.put_slice(text.as_bytes());
    }

    /// Writes a string or null.
    pub fn nullable_string(&mut self, what: &'static str, text: Option<&str>) {
        match text {
            Some(text) => self.string(what, text),
            None if self.flexible => self.out.put_u8(0),
            None => self.out.put_i16(-1),
        }
    }

    /// Writes a byte string or null.
    pub fn nullable_bytes(&mut self, what: &'static str, bytes: Option<&[u8]>) {
        let Some(bytes) = bytes else { return self.null_length() };
        self.length(what, bytes.len());
        self.out.put_slice(bytes);
    }

    /// Writes an array.
    pub fn array<T>(&mut self, what: &'static str, all: &[T], mut element: impl FnMut(&mut Self, &T)) {
        self.length(what, all.len());
        for one in all {
            element(self, one);
        }
    }

    /// Writes an array or null.
    pub fn nullable_array<T>(
        &mut self,
        what: &'static str,
        all: Option<&[T]>,
        element: impl FnMut(&mut Self, &T),
    ) {
        match all {
            Some(all) => self.array(what, all, element),
            None => self.null_length(),
        }
    }

    /// Overwrites the int32 at `at` with the count of bytes that follow it.
    pub(crate) fn close_size(&mut self, what: &'static str, at: usize) {
        let length = self.out.len() - at - 4;
        match i32::try_from(length) {
            Ok(size) => self.out[at..at + 4].copy_from_slice(&size.to_be_bytes()),
            Err(_) => self.fail(what, length),
        }
    }

    fn length(&mut self, what: &'static str, length: usize) {
        match i32::try_from(length) {
            Err(_) => self.fail(what, length),
            Ok(_) if self.flexible => self.compact_length(length),
            Ok(length) => self.out.put_i32(length),
        }
    }

    fn compact_length(&mut self, length: usize) {
        varint::put_unsigned(&mut self.out, length as u64 + 1);
    }

    fn null_length(&mut self) {
        if self.flexible { self.out.put_u8(0) } else { self.out.put_i32(-1) }
    }

    fn fail(&mut self, what: &'static str, length: usize) {
        let at = self.out.len();
        self.failed.get_or_insert(WireError { what, at, problem: WireProblem::TooLong(length) });
    }
}
