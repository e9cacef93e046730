//! One partition's batches.

use std::collections::VecDeque;

use bytes::Bytes;
use kafka_troupe_proto::kafka::records::{NewRecord, RecordBatchWriter};

#[derive(Default)]
pub(super) struct Log {
    /// Next offset after each, and its bytes.
    batches: VecDeque<(i64, Bytes)>,
    start: i64,
    end: i64,
}

impl Log {
    pub(super) fn start(&self) -> i64 {
        self.start
    }

    pub(super) fn end(&self) -> i64 {
        self.end
    }

    /// Appends one batch; gives the offset after it.
    pub(super) fn append(&mut self, values: &[&str]) -> i64 {
        let mut batch = RecordBatchWriter::new(self.end);
        for value in values {
            batch.push(&NewRecord { timestamp: 0, key: None, value: Some(value.as_bytes()), headers: &[] });
        }
        if let (false, Ok(batch)) = (values.is_empty(), batch.finish()) {
            self.end += values.len() as i64;
            self.batches.push_back((self.end, batch));
        }
        self.end
    }

    pub(super) fn delete_before(&mut self, offset: i64) {
        while let Some((end, _)) = self.batches.front().filter(|(end, _)| *end <= offset) {
            self.start = *end;
            self.batches.pop_front();
        }
    }

    /// The batches from the one that holds `offset`, at most `most` bytes but for a first one that is larger.
    pub(super) fn read(&self, offset: i64, most: usize) -> Bytes {
        let mut read = Vec::new();
        let first = self.batches.partition_point(|(end, _)| *end <= offset);
        for (_, batch) in self.batches.iter().skip(first) {
            if !read.is_empty() && read.len() + batch.len() > most {
                break;
            }
            read.extend_from_slice(batch);
        }
        read.into()
    }
}
