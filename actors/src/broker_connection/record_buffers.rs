//! Recycled buffers for record sets: a fresh large buffer costs more (mapping, page faults) than reading into it.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// Record sets up to this size get memory of their own: they are not worth holding a large buffer for, which a
/// slow stream would do.
const SMALL: usize = 16 << 10;

/// Bytes of the buffers that are looked after. When more is in the streams' hands, the oldest is forgotten, and
/// freed by the last of its readers.
const KEPT_BYTES: usize = 32 << 20;

/// Buffers whose record sets are still held somewhere, or free again.
///
/// A buffer is handed out by [`take`](Self::take), comes back by [`freeze`](Self::freeze), and is free again when
/// every slice of the frozen part has been dropped.
#[derive(Debug, Default)]
pub(super) struct RecordBuffers {
    /// Least recently used first.
    kept: VecDeque<RecordBuffer>,
    kept_bytes: usize,
}

/// Memory for one record set, behind earlier ones that still have readers.
#[derive(Debug)]
pub(super) struct RecordBuffer {
    pub(super) bytes: BytesMut,
    /// Of the whole allocation, as far as we have seen it.
    allocated: usize,
}

impl RecordBuffers {
    /// An empty buffer with room for `size` bytes if one is free, else a new one with room for `at_first` of them.
    pub(super) fn take(&mut self, size: usize, at_first: usize) -> RecordBuffer {
        if size > SMALL
            && let Some(index) = self.kept.iter_mut().position(|buffer| buffer.bytes.try_reclaim(size))
            && let Some(buffer) = self.kept.remove(index)
        {
            self.kept_bytes -= buffer.allocated;
            return buffer;
        }
        RecordBuffer { bytes: BytesMut::with_capacity(size.min(at_first)), allocated: 0 }
    }

    /// Gives away what the buffer holds, and keeps its memory in view.
    pub(super) fn freeze(&mut self, mut buffer: RecordBuffer) -> Bytes {
        buffer.allocated = buffer.allocated.max(buffer.bytes.capacity());
        let records = buffer.bytes.split().freeze();
        if buffer.allocated > SMALL {
            self.kept_bytes += buffer.allocated;
            self.kept.push_back(buffer);
        }
        while self.kept_bytes > KEPT_BYTES
            && let Some(oldest) = self.kept.pop_front()
        {
            self.kept_bytes -= oldest.allocated;
        }
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 1_000_000;

    fn record_set(buffers: &mut RecordBuffers, size: usize) -> Bytes {
        let mut buffer = buffers.take(size, size);
        assert!(buffer.bytes.is_empty() && buffer.bytes.capacity() >= size);
        buffer.bytes.resize(size, 7);
        buffers.freeze(buffer)
    }

    #[test]
    fn memory_comes_back_when_the_last_slice_is_dropped() {
        let mut buffers = RecordBuffers::default();
        let first = record_set(&mut buffers, SIZE);
        let start = first.as_ptr();
        let slice = first.slice(50_000..);
        drop(first);
        let second = record_set(&mut buffers, SIZE);
        assert_ne!(second.as_ptr(), start, "a slice was alive");
        assert_eq!(slice[0], 7);
        drop(slice);
        assert_eq!(record_set(&mut buffers, SIZE).as_ptr(), start);
    }

    #[test]
    fn what_slow_readers_hold_is_not_kept_for_ever() {
        let mut buffers = RecordBuffers::default();
        let held: Vec<Bytes> = (0..100).map(|_| record_set(&mut buffers, SIZE)).collect();
        assert!(buffers.kept_bytes <= KEPT_BYTES && buffers.kept.len() > 20);
        assert!(held.iter().all(|records| records.len() == SIZE));
    }

    #[test]
    fn a_small_record_set_holds_no_large_buffer() {
        let mut buffers = RecordBuffers::default();
        drop(record_set(&mut buffers, SIZE));
        let small = record_set(&mut buffers, 100);
        assert_eq!((buffers.kept.len(), small.len()), (1, 100));
    }

    #[test]
    fn little_is_reserved_at_first_for_a_size_not_yet_proven() {
        assert_eq!(RecordBuffers::default().take(1 << 30, 4096).bytes.capacity(), 4096);
    }
}
