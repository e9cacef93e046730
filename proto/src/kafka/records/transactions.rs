use super::{ControlType, RecordBatch};
use crate::kafka::fetch::AbortedTransaction;
use std::collections::BTreeSet;

/// Tells the batches of aborted transactions, for reading committed (`isolation.level=read_committed`).
///
/// One per record set, made of what the response says about it; every batch that [`super::RecordBatches`] answers must
/// pass through in order. Past a bad entry, fetch again instead of reading on in the same set: it may have been a
/// marker.
#[derive(Debug, Clone, Default)]
pub struct TransactionFilter {
    /// Latest first, so that the next to begin is at the end.
    to_begin: Vec<AbortedTransaction>,
    aborting: BTreeSet<i64>,
}

impl TransactionFilter {
    /// A filter for the record set that came with `aborted`.
    pub fn new(mut aborted: Vec<AbortedTransaction>) -> Self {
        aborted.sort_by_key(|transaction| std::cmp::Reverse(transaction.first_offset));
        Self { to_begin: aborted, aborting: BTreeSet::new() }
    }

    /// Whether the batch's records count: not those of an aborted transaction, and no markers.
    pub fn admits(&mut self, batch: &RecordBatch) -> bool {
        while let Some(next) = self.to_begin.pop_if(|next| next.first_offset < batch.next_offset) {
            self.aborting.insert(next.producer_id);
        }
        if batch.is_control {
            if batch.control_type() == Some(ControlType::Abort) {
                self.aborting.remove(&batch.producer_id);
            }
            return false;
        }
        !(batch.is_transactional && self.aborting.contains(&batch.producer_id))
    }
}
