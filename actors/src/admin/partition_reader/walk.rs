//! The records of one answer, decoded one after the other.

use std::sync::Arc;

use bytes::Bytes;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::compression::Decompressor;
use kafka_troupe_proto::kafka::fetch::AbortedTransaction;
use kafka_troupe_proto::kafka::records::{
    RecordBatch, RecordBatches, RecordCursor, RecordsError, TransactionFilter,
};

use crate::record::{ReadFrom, Record, SharedBatch};
use crate::stream_queue::ReadOptions;

/// What a leader answered for one partition.
pub(super) struct Chunk {
    pub(super) partition: Arc<TopicPartition>,
    /// The first offset wanted.
    pub(super) from: i64,
    /// Where the partition goes on after it.
    pub(super) next: i64,
    pub(super) records: Bytes,
    /// Reading committed: whose batches among them to leave out.
    pub(super) aborted: Vec<AbortedTransaction>,
}

/// The place reached in one chunk.
pub(super) struct Walk {
    pub(super) partition: Arc<TopicPartition>,
    pub(super) next: i64,
    from: i64,
    /// The first offset not wanted.
    until: i64,
    batches: RecordBatches,
    filter: Option<TransactionFilter>,
    current: Option<(Arc<SharedBatch>, RecordCursor)>,
}

impl Walk {
    pub(super) fn new(chunk: Chunk, until: Option<i64>, options: &ReadOptions) -> Self {
        Self {
            batches: RecordBatches::new(chunk.records, chunk.from, options.decode),
            filter: options.read_committed.then(|| TransactionFilter::new(chunk.aborted)),
            partition: chunk.partition,
            next: chunk.next,
            from: chunk.from,
            until: until.unwrap_or(i64::MAX),
            current: None,
        }
    }

    /// The next record that is wanted; nothing at the end.
    pub(super) fn next(&mut self, decompressor: &mut Decompressor) -> Option<Result<Record, RecordsError>> {
        loop {
            if let Some((batch, cursor)) = &mut self.current
                && let Some(raw) = cursor.next()
            {
                let until = self.until;
                let wanted = raw.map(|raw| (raw.offset < until).then(|| Record::new(Arc::clone(batch), raw)));
                return wanted.transpose();
            }
            match self.batches.next_batch(decompressor)? {
                Ok(batch) if batch.base_offset >= self.until => return None,
                Ok(batch) => self.current = self.wanted(batch),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    fn wanted(&mut self, batch: RecordBatch) -> Option<(Arc<SharedBatch>, RecordCursor)> {
        // every batch passes the filter, also one before the place: a marker ends its transaction
        let admitted = self.filter.as_mut().is_none_or(|filter| filter.admits(&batch));
        if !admitted || batch.next_offset <= self.from {
            return None;
        }
        // of a control batch the cursor shows no records
        let cursor = batch.records();
        let from = ReadFrom::Partition(Arc::clone(&self.partition));
        Some((Arc::new(SharedBatch { batch, from }), cursor))
    }
}
