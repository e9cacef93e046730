//! The records of a chunk, one by one, without a word on what becomes of them.

use std::rc::Rc;
use std::sync::Arc;

use kafka_troupe_proto::kafka::compression::Decompressor;
use kafka_troupe_proto::kafka::records::{
    RecordBatch, RecordBatches, RecordCursor, RecordsError, TransactionFilter,
};

use super::claims::Origin;
use crate::record::{ConsumeError, Record, SharedBatch};
use crate::stream_queue::{FetchedChunk, ReadOptions, reader};

/// A chunk that is being read.
pub(super) struct Walk {
    pub(super) chunk: Rc<FetchedChunk>,
    pub(super) origin: Origin,
    batches: RecordBatches,
    /// Reading committed.
    filter: Option<TransactionFilter>,
    /// The first offset to hand over.
    from: i64,
    current: Option<(Arc<SharedBatch>, RecordCursor)>,
}

/// What comes next in a chunk.
pub(super) enum Walked {
    /// A record, and the bytes of its key and value.
    Record(Record, u64),
    /// Nothing that is to be handed over lies before this offset.
    Passed(i64),
    /// The rest cannot be read.
    Failed(ConsumeError),
    /// That was all, up to this offset.
    End(i64),
}

impl Walk {
    pub(super) fn new(mut chunk: FetchedChunk, origin: Origin, options: &ReadOptions) -> Self {
        let from = chunk.fetch_offset.max(chunk.partition.delivered());
        let aborted = std::mem::take(&mut chunk.aborted);
        let filter = options.read_committed.then(|| TransactionFilter::new(aborted));
        // with control batches before `from`: the filter must see where transactions end
        let batches = RecordBatches::new(chunk.records.clone(), from, options.decode);
        Self { chunk: Rc::new(chunk), origin, batches, filter, from, current: None }
    }

    pub(super) fn next(&mut self, decompressor: &mut Decompressor) -> Walked {
        loop {
            if let Some((batch, cursor)) = &mut self.current {
                match cursor.next().transpose() {
                    Ok(Some(raw)) => return Walked::Record(Record::new(Arc::clone(batch), raw), raw.size()),
                    Err(error) => return self.failed(&error),
                    Ok(None) => {}
                }
                let next = batch.batch.next_offset;
                self.current = None;
                return Walked::Passed(next);
            }
            match self.batches.next_batch(decompressor) {
                Some(Ok(batch)) if self.is_wanted(&batch) => {
                    let (cursor, partition) = (batch.records(), Arc::clone(&self.chunk.partition));
                    self.current = Some((Arc::new(SharedBatch { batch, from: partition.into() }), cursor));
                }
                Some(Ok(batch)) => return Walked::Passed(batch.next_offset),
                Some(Err(error)) => return self.failed(&error),
                None => return Walked::End(self.chunk.next_offset),
            }
        }
    }

    #[cold]
    fn failed(&self, error: &RecordsError) -> Walked {
        let (partition, why) = (&self.chunk.partition.topic_partition, reader::why(&error.problem));
        Walked::Failed(ConsumeError::new(partition, error.offset, error.resume_at, why))
    }

    fn is_wanted(&mut self, batch: &RecordBatch) -> bool {
        self.filter.as_mut().is_none_or(|filter| filter.admits(batch)) && batch.next_offset > self.from
    }
}
