use super::{WireError, WireProblem, varint};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// Reads a message from its frame, field by field.
///
/// Each read names the field that it reads, for the error. Nothing is reserved that the frame does not hold.
/// A frame is [`Bytes`], or any byte slice where no byte string is to be kept.
///
/// Lengths and counts of strings and arrays are of fixed size, or varints once [`Self::flexible`] says so (KIP-482).
#[derive(Debug, Clone)]
pub struct Reader<B = Bytes> {
    frame: B,
    at: usize,
    flexible: bool,
}

type Read<T> = Result<T, WireError>;

macro_rules! fixed {
    ($($name:ident -> $type:ident, $doc:literal;)*) => {$(
        #[doc = $doc]
        pub fn $name(&mut self, what: &'static str) -> Read<$type> {
            self.array_of(what).map($type::from_be_bytes)
        }
    )*};
}

impl<B: AsRef<[u8]>> Reader<B> {
    /// Reads `frame` from its start.
    pub fn new(frame: B) -> Self {
        Self { frame, at: 0, flexible: false }
    }

    /// Whether the message is of a flexible version: compact strings and arrays, tagged fields.
    pub fn flexible(self, flexible: bool) -> Self {
        Self { flexible, ..self }
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.frame.as_ref().len() - self.at
    }

    fixed! {
        i8 -> i8, "Reads an int8.";
        i16 -> i16, "Reads a big-endian int16.";
        i32 -> i32, "Reads a big-endian int32.";
        i64 -> i64, "Reads a big-endian int64.";
    }

    /// Reads a boolean: any byte but 0 is true.
    pub fn bool(&mut self, what: &'static str) -> Read<bool> {
        self.i8(what).map(|byte| byte != 0)
    }

    /// Reads a string of at most 32,767 bytes; null is an error.
    pub fn string(&mut self, what: &'static str) -> Read<Arc<str>> {
        let at = self.at;
        self.nullable_string(what)?.ok_or(WireError { what, at, problem: WireProblem::Length(-1) })
    }

    /// Reads a string or null.
    pub fn nullable_string(&mut self, what: &'static str) -> Read<Option<Arc<str>>> {
        let at = self.at;
        let length = self.length(what, |r| r.i16(what).map(i64::from))?;
        let Some(range) = self.sized(what, at, length)? else { return Ok(None) };
        match std::str::from_utf8(&self.frame.as_ref()[range]) {
            Ok("") => Ok(Some(Arc::default())), // takes no memory
            Ok(text) => Ok(Some(Arc::from(text))),
            Err(_) => Err(WireError { what, at, problem: WireProblem::Utf8 }),
        }
    }

    /// Reads an array; null is an error. See [`Self::nullable_array`].
    pub fn array<T>(
        &mut self,
        what: &'static str,
        least: usize,
        element: impl FnMut(&mut Self) -> Read<T>,
    ) -> Read<Vec<T>> {
        let at = self.at;
        let array = self.nullable_array(what, least, element)?;
        array.ok_or(WireError { what, at, problem: WireProblem::Length(-1) })
    }

    /// Reads an array, or null, whose elements take at least `least` bytes each on the wire.
    ///
    /// A count that cannot fit in the rest of the frame is an error, and no more memory is reserved at once
    /// than the frame has bytes left.
    pub fn nullable_array<T>(
        &mut self,
        what: &'static str,
        least: usize,
        mut element: impl FnMut(&mut Self) -> Read<T>,
    ) -> Read<Option<Vec<T>>> {
        let Some(count) = self.array_len(what, least)? else { return Ok(None) };
        let mut all = Vec::with_capacity(count.min(self.remaining() / size_of::<T>().max(1)));
        for _ in 0..count {
            all.push(element(self)?);
        }
        Ok(Some(all))
    }

    /// Reads an element count, `None` for null, that fits in the rest of the frame at `least` bytes each.
    pub fn array_len(&mut self, what: &'static str, least: usize) -> Read<Option<usize>> {
        let at = self.at;
        let count = self.length(what, |r| r.i32(what).map(i64::from))?;
        if count == -1 {
            return Ok(None);
        }
        let Ok(count) = usize::try_from(count) else {
            return Err(WireError { what, at, problem: WireProblem::Length(count) });
        };
        let left = self.remaining();
        if count.saturating_mul(least.max(1)) > left {
            return Err(WireError { what, at, problem: WireProblem::Count { count, left } });
        }
        Ok(Some(count))
    }

    /// Passes over the tagged fields that end each struct of a flexible message; does nothing in others.
    pub fn tagged_fields(&mut self, what: &'static str) -> Read<()> {
        self.each_tagged_field(what, |_, _| ())
    }

    /// Tells the tag of each tagged field, and where in the frame it lies.
    fn each_tagged_field(
        &mut self,
        what: &'static str,
        mut told: impl FnMut(usize, Range<usize>),
    ) -> Read<()> {
        if !self.flexible {
            return Ok(());
        }
        let at = self.at;
        let (count, left) = (self.unsigned(what)?, self.remaining());
        if count.saturating_mul(2) > left {
            return Err(WireError { what, at, problem: WireProblem::Count { count, left } });
        }
        for _ in 0..count {
            let tag = self.unsigned(what)?;
            let size = self.unsigned(what)?;
            let start = self.advance(what, size)?;
            told(tag, start..start + size);
        }
        Ok(())
    }

    /// Reads a UUID.
    pub fn uuid(&mut self, what: &'static str) -> Read<[u8; 16]> {
        self.array_of(what)
    }

    /// Reads a zigzag varint of 32 bits.
    pub fn varint(&mut self, what: &'static str) -> Read<i32> {
        self.variable(what, varint::varint)
    }

    /// Reads a zigzag varint of 64 bits.
    pub fn varlong(&mut self, what: &'static str) -> Read<i64> {
        self.variable(what, varint::varlong)
    }

    /// Ends the message: anything left is an error, since then the fields were not what we took them for.
    pub fn finish(self, what: &'static str) -> Read<()> {
        match self.remaining() {
            0 => Ok(()),
            left => Err(WireError { what, at: self.at, problem: WireProblem::TrailingBytes(left) }),
        }
    }

    /// A length: of the flexible form (one more than it says, 0 for null), or as `fixed` reads it.
    fn length(&mut self, what: &'static str, fixed: impl Fn(&mut Self) -> Read<i64>) -> Read<i64> {
        if self.flexible { Ok(self.unsigned(what)? as i64 - 1) } else { fixed(self) }
    }

    fn unsigned(&mut self, what: &'static str) -> Read<usize> {
        self.variable(what, varint::unsigned).map(|value| value as usize)
    }

    fn variable<T>(
        &mut self,
        what: &'static str,
        read: impl Fn(&[u8], usize) -> Option<(T, usize)>,
    ) -> Read<T> {
        let (value, after) = read(self.frame.as_ref(), self.at).ok_or(WireError {
            what,
            at: self.at,
            problem: WireProblem::Varint,
        })?;
        self.at = after;
        Ok(value)
    }

    fn sized(&mut self, what: &'static str, at: usize, length: i64) -> Read<Option<Range<usize>>> {
        if length == -1 {
            return Ok(None);
        }
        let Ok(length) = usize::try_from(length) else {
            return Err(WireError { what, at, problem: WireProblem::Length(length) });
        };
        let start = self.advance(what, length)?;
        Ok(Some(start..start + length))
    }

    fn array_of<const N: usize>(&mut self, what: &'static str) -> Read<[u8; N]> {
        let start = self.advance(what, N)?;
        let mut array = [0; N];
        array.copy_from_slice(&self.frame.as_ref()[start..start + N]);
        Ok(array)
    }

    fn advance(&mut self, what: &'static str, needed: usize) -> Read<usize> {
        let (at, left) = (self.at, self.remaining());
        if needed > left {
            return Err(WireError { what, at, problem: WireProblem::Truncated { needed, left } });
        }
        self.at += needed;
        Ok(at)
    }
}

impl Reader<Bytes> {
    /// What is not read yet.
    pub fn rest(self) -> Bytes {
        self.frame.slice(self.at..)
    }

    /// Reads a byte string as a slice of the frame; null is an error.
    pub fn bytes(&mut self, what: &'static str) -> Read<Bytes> {
        let at = self.at;
        self.nullable_bytes(what)?.ok_or(WireError { what, at, problem: WireProblem::Length(-1) })
    }

    /// Reads a byte string, as a slice of the frame, or null.
    pub fn nullable_bytes(&mut self, what: &'static str) -> Read<Option<Bytes>> {
        let at = self.at;
        let length = self.length(what, |r| r.i32(what).map(i64::from))?;
        Ok(self.sized(what, at, length)?.map(|range| self.frame.slice(range)))
    }

    /// As [`Self::tagged_fields`], but answers the field with this tag, as a slice of the frame.
    pub fn tagged_field(&mut self, what: &'static str, tag: usize) -> Read<Option<Bytes>> {
        let mut found = None;
        self.each_tagged_field(what, |its, range| {
            if its == tag {
                found = Some(range);
            }
        })?;
        Ok(found.map(|range| self.frame.slice(range)))
    }
}
