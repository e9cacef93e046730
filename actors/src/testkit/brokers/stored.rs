//! Records as they stand in a partition, appended and read one by one, and fetches that fail.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::compression::Decompressor;
use kafka_troupe_proto::kafka::error_code::ErrorCode;
use kafka_troupe_proto::kafka::records::{
    DecodeOptions, NewRecord, RawRecord, RecordBatch, RecordBatches, RecordsError,
};
use kafka_troupe_proto::schemas::dead_letter::v1::DeadLetter;
use prost::Message;

use super::{MemoryBrokers, State};
use crate::registry::{OwnedPartition, TopicRegistry};

/// A record as it stands in a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredRecord {
    /// The partition's number.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    /// Milliseconds since 1970; 0 when its producer gave none.
    pub timestamp: i64,
    /// None for null.
    pub key: Option<Bytes>,
    /// None for null.
    pub value: Option<Bytes>,
    /// In order; a key may repeat, and a value be null.
    pub headers: Vec<(String, Option<Bytes>)>,
}

impl StoredRecord {
    fn new(partition: i32, raw: RawRecord, payload: &Bytes) -> Self {
        let copy = |bytes: &[u8]| Bytes::copy_from_slice(bytes);
        let headers = raw.headers(payload).map(|header| (header.name().into_owned(), header.value.map(copy)));
        Self {
            partition,
            offset: raw.offset,
            timestamp: raw.timestamp,
            key: raw.key(payload).map(copy),
            value: raw.value(payload).map(copy),
            headers: headers.collect(),
        }
    }

    /// The value as text; what is not UTF-8 is replaced, null is nothing.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.value.as_deref().unwrap_or_default()).into_owned()
    }

    /// The value as what a failure policy has written to a dead-letter topic; none if it is something else.
    pub fn dead_letter(&self) -> Option<DeadLetter> {
        self.value.clone().and_then(|value| DeadLetter::decode(value).ok())
    }

    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        let header = self.headers.iter().find(|(its, _)| its == name);
        header.and_then(|(_, value)| value.as_deref())
    }
}

/// Members whose brokers these are, with their groups.
#[derive(Default)]
pub(super) struct Members(Vec<(String, Weak<TopicRegistry>)>);

/// Fetches that are answered with an error: of which partition, with which, and how many more.
#[derive(Default)]
pub(super) struct Refused(Vec<(TopicPartition, i16, u32)>);

impl Refused {
    /// What the next fetch of this partition is answered with, if not with records.
    pub(super) fn take(&mut self, topic: &str, partition: i32) -> Option<i16> {
        let is_its = |it: &TopicPartition| &*it.topic == topic && it.partition == partition;
        let (_, code, left) = self.0.iter_mut().find(|(its, _, left)| *left > 0 && is_its(its))?;
        *left -= 1;
        Some(*code)
    }
}

impl MemoryBrokers {
    /// Appends a record, as a batch of its own, to a partition that exists; gives its offset.
    pub fn append_record(&self, partition: &TopicPartition, record: &NewRecord<'_>) -> Option<i64> {
        let end = self.with(partition, |it| it.log.append_all(std::slice::from_ref(record), it.epoch));
        self.0.changed.notify_waiters();
        end.map(|end| end - 1)
    }

    /// The records that a partition holds, in order; none of one that does not exist.
    ///
    /// # Errors
    /// [`RecordsError`]: one that was damaged.
    pub fn records(&self, partition: &TopicPartition) -> Result<Vec<StoredRecord>, RecordsError> {
        let log = |it: &mut super::Partition| (it.log.start(), it.log.read(it.log.start(), usize::MAX));
        let (start, log) = self.with(partition, log).unwrap_or_default();
        let mut batches = RecordBatches::new(log, start, DecodeOptions::default());
        let (mut decompressor, mut records) = (Decompressor::default(), Vec::new());
        while let Some(batch) = batches.next_batch(&mut decompressor) {
            walk(partition.partition, &batch?, &mut records)?;
        }
        Ok(records)
    }

    /// The next `times` fetches of a partition from its leader are answered with an error.
    pub fn refuse_fetches(&self, partition: &TopicPartition, error: ErrorCode, times: u32) {
        self.state().refused.0.push((partition.clone(), error.code(), times));
    }

    /// What the members of a group own, as they know it, in the order in which they started.
    pub fn owned(&self, group: &str) -> Vec<Arc<OwnedPartition>> {
        let state = self.state();
        let members = state.members.0.iter().filter(|(its, _)| its == group);
        members.filter_map(|(_, registry)| registry.upgrade()).flat_map(|registry| registry.all()).collect()
    }

    /// A member reads from these brokers.
    pub(crate) fn introduce(&self, group: &str, registry: &Arc<TopicRegistry>) {
        let State { members: Members(members), .. } = &mut *self.state();
        members.retain(|(_, registry)| registry.strong_count() > 0);
        members.push((group.to_owned(), Arc::downgrade(registry)));
    }
}

fn walk(partition: i32, batch: &RecordBatch, to: &mut Vec<StoredRecord>) -> Result<(), RecordsError> {
    let mut cursor = batch.records();
    let payload = cursor.payload().clone();
    while let Some(raw) = cursor.next() {
        to.push(StoredRecord::new(partition, raw?, &payload));
    }
    Ok(())
}
