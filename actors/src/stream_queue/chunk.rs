//! What travels from a fetcher to a stream: one message per partition and response, never per record.

use std::sync::Arc;

use actix::Message;
use bytes::Bytes;

use crate::registry::OwnedPartition;

/// The records that one fetch returned for one partition, as they came from the broker: a slice of the
/// response, decoded where the user's code runs. Holds its stream's [`Credit`](super::Credit) until dropped.
#[derive(Message)]
#[rtype(result = "()")]
pub struct FetchedChunk {
    /// The claim under which it was fetched.
    pub partition: Arc<OwnedPartition>,
    /// The offset that was asked for; earlier records in the first batch are skipped.
    pub fetch_offset: i64,
    /// Where the next fetch goes on: after the last complete batch.
    pub next_offset: i64,
    /// Record batches (or message sets), whole ones.
    pub records: Bytes,
}

impl FetchedChunk {
    /// Takes the stream's credit.
    pub fn new(partition: Arc<OwnedPartition>, fetch_offset: i64, next_offset: i64, records: Bytes) -> Self {
        partition.credit.take(records.len());
        Self { partition, fetch_offset, next_offset, records }
    }
}

impl Drop for FetchedChunk {
    fn drop(&mut self) {
        self.partition.credit.give_back(self.records.len());
    }
}
