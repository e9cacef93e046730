use super::{Compression, CompressionError};
use bytes::{Bytes, BytesMut};

/// Buffers above this are not kept: one huge batch must not hold its memory for good.
const KEPT_SIZE: usize = 1 << 20;
/// One buffer is being filled while the user may still hold some before it.
const KEPT_BUFFERS: usize = 4;
const FIRST_ROOM: usize = 16 << 10;

/// Output buffers that are used again once nobody holds a slice of them.
#[derive(Debug, Default)]
pub(super) struct Pool {
    kept: Vec<Bytes>,
}

impl Pool {
    pub(super) fn take(&mut self) -> BytesMut {
        // the one used last is the warmest in the caches
        let free = self.kept.iter().rposition(Bytes::is_unique);
        let buffer = free.map(|index| self.kept.remove(index).try_into_mut());
        buffer.and_then(Result::ok).unwrap_or_default()
    }

    /// Keeps the buffer with all that was ever written to it, so that it need not be zeroed again.
    pub(super) fn keep(&mut self, output: Output) -> Bytes {
        let filled = output.filled;
        let whole = output.buffer.freeze();
        let slice = whole.slice(..filled);
        if whole.len() <= KEPT_SIZE {
            if self.kept.len() == KEPT_BUFFERS {
                self.kept.remove(0);
            }
            self.kept.push(whole);
        }
        slice
    }
}

/// Output that grows up to a limit. Initialised up to its length, filled up to `filled`.
#[derive(Debug)]
pub(super) struct Output {
    buffer: BytesMut,
    filled: usize,
    limit: usize,
    codec: Compression,
}

impl Output {
    pub(super) fn new(codec: Compression, buffer: BytesMut, limit: usize) -> Self {
        Self { buffer, filled: 0, limit, codec }
    }

    /// Room for `wanted` bytes, or as much as the limit leaves if that is less; an error if it leaves none.
    pub(super) fn room(&mut self, wanted: usize) -> Result<&mut [u8], CompressionError> {
        self.split_room(wanted).map(|(_, room)| room)
    }

    /// Like [`Self::room`], with what is filled already before it.
    pub(super) fn split_room(&mut self, wanted: usize) -> Result<(&[u8], &mut [u8]), CompressionError> {
        let end = self.filled.saturating_add(wanted).min(self.limit);
        if end == self.filled && wanted > 0 {
            return Err(self.too_large());
        }
        if self.buffer.len() < end {
            self.grow(end.max((2 * self.buffer.len()).min(self.limit)));
        }
        let (filled, room) = self.buffer.split_at_mut(self.filled);
        Ok((filled, &mut room[..end - self.filled]))
    }

    /// All the room there is, at least some: doubles when full. For codecs that write as much as fits.
    ///
    /// One byte more than the limit is given, to tell an output that fits exactly from one that goes on.
    pub(super) fn growing_room(&mut self, at_least: usize) -> Result<&mut [u8], CompressionError> {
        if self.filled > self.limit {
            return Err(self.too_large());
        }
        if self.filled == self.buffer.len() || self.buffer.len() < at_least {
            let doubled = (2 * self.filled).max(at_least).max(FIRST_ROOM);
            self.grow(doubled.min(self.limit + 1));
        }
        let end = self.buffer.len().min(self.limit + 1);
        Ok(&mut self.buffer[self.filled..end])
    }

    /// Not by the buffer's own growth, which may go to twice the limit; fresh memory comes zeroed for nothing.
    fn grow(&mut self, length: usize) {
        let mut larger = BytesMut::zeroed(length);
        larger[..self.filled].copy_from_slice(&self.buffer[..self.filled]);
        self.buffer = larger;
    }

    /// Counts `written` bytes of the room as filled.
    pub(super) fn fill(&mut self, written: usize) -> Result<(), CompressionError> {
        self.filled += written;
        if self.filled > self.limit { Err(self.too_large()) } else { Ok(()) }
    }

    pub(super) fn too_large(&self) -> CompressionError {
        CompressionError::TooLarge { codec: self.codec, limit: self.limit }
    }
}
