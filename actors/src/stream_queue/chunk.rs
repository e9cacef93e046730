//! What travels from a fetcher to a stream: one message per partition and response, never per record.

use std::sync::Arc;

use actix::Message;
use bytes::Bytes;
use kafka_troupe_proto::kafka::fetch::AbortedTransaction;

use crate::registry::{Joint, OwnedPartition, Round};

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
    /// Reading committed: whose batches among them to leave out.
    pub aborted: Vec<AbortedTransaction>,
    /// In which it was taken in.
    round: Round,
    /// Its stream has not taken it in.
    on_the_way: bool,
}

impl FetchedChunk {
    /// Takes the stream's credit.
    pub fn new(
        partition: Arc<OwnedPartition>,
        fetch_offset: i64,
        next_offset: i64,
        records: Bytes,
        aborted: Vec<AbortedTransaction>,
    ) -> Self {
        partition.credit.take(records.len());
        partition.sent();
        let round = partition.round();
        Self { partition, fetch_offset, next_offset, records, aborted, round, on_the_way: true }
    }

    /// It has come to its stream: says how it joins on to what came before, and moves the position on when it does.
    pub fn take_in(&mut self) -> Joint {
        self.round = self.partition.round();
        let joint = self.partition.take_in(self.fetch_offset, self.next_offset);
        self.arrive();
        joint
    }

    /// Its partition's round when it was taken in: handed over in no other.
    pub(super) fn round(&self) -> Round {
        self.round
    }

    /// Its partition has been neither given up nor halted since it was taken in.
    pub(super) fn is_current(&self) -> bool {
        self.partition.is_delivered_in(self.round)
    }

    /// After the position has moved.
    fn arrive(&mut self) {
        if std::mem::take(&mut self.on_the_way) {
            self.partition.arrived();
        }
    }
}

impl Drop for FetchedChunk {
    fn drop(&mut self) {
        // wherever it was dropped before its stream took it in
        self.arrive();
        self.partition.credit.give_back(self.records.len());
    }
}
