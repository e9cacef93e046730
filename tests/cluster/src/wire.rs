//! Writing and reading the primitive types of Kafka's protocol.

use std::io;

/// Appends primitive types to a body.
#[derive(Debug, Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn i8(&mut self, value: i8) {
        self.0.extend(value.to_be_bytes());
    }

    pub(crate) fn i16(&mut self, value: i16) {
        self.0.extend(value.to_be_bytes());
    }

    pub(crate) fn i32(&mut self, value: i32) {
        self.0.extend(value.to_be_bytes());
    }

    pub(crate) fn i64(&mut self, value: i64) {
        self.0.extend(value.to_be_bytes());
    }

    /// The length of an array or of bytes.
    pub(crate) fn len(&mut self, length: usize) {
        self.i32(i32::try_from(length).unwrap_or(i32::MAX));
    }

    pub(crate) fn string(&mut self, value: &str) {
        self.i16(i16::try_from(value.len()).unwrap_or(i16::MAX));
        self.0.extend(value.as_bytes());
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) {
        self.len(value.len());
        self.0.extend(value);
    }

    /// A zigzag variable-length integer, as in records.
    pub(crate) fn varint(&mut self, value: i64) {
        let mut rest = (value << 1).cast_unsigned() ^ (value >> 63).cast_unsigned();
        while rest >= 0x80 {
            self.0.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
    }
}

/// Takes primitive types from the front of a response.
#[derive(Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(io::ErrorKind::UnexpectedEof)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| io::ErrorKind::UnexpectedEof.into())
    }

    pub(crate) fn i8(&mut self) -> io::Result<i8> {
        self.array().map(i8::from_be_bytes)
    }

    pub(crate) fn i16(&mut self) -> io::Result<i16> {
        self.array().map(i16::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> io::Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> io::Result<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// Bytes; null reads as empty.
    pub(crate) fn bytes(&mut self) -> io::Result<&'a [u8]> {
        let length = usize::try_from(self.i32()?).unwrap_or(0);
        self.take(length)
    }

    /// A string; null reads as empty.
    pub(crate) fn string(&mut self) -> io::Result<String> {
        let length = usize::try_from(self.i16()?).unwrap_or(0);
        Ok(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    /// An array of what `element` reads; null reads as empty.
    pub(crate) fn vec<T>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> io::Result<T>,
    ) -> io::Result<Vec<T>> {
        (0..self.i32()?).map(|_| element(self)).collect()
    }
}
