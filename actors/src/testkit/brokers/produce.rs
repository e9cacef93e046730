//! Records that clients append.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::messages as wire;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::ErrorCode;
use kafka_troupe_proto::kafka::produce::magic_of;

use super::answers::UNKNOWN_TOPIC_OR_PARTITION;
use super::{MemoryBrokers, State};

const CORRUPT_MESSAGE: i16 = 2;
/// What a broker says of records in another format than the request's version has.
const INVALID_RECORD: i16 = 87;

impl MemoryBrokers {
    /// Until the next call, whatever is produced to a topic is answered with this error, and not written.
    pub fn refuse_produce(&self, topic: &str, error: Option<ErrorCode>) {
        let mut state = self.state();
        match error {
            Some(error) => state.not_written.insert(topic.into(), error.code()),
            None => state.not_written.remove(topic),
        };
    }

    /// Which `acks` clients have asked for; -1 is all in-sync replicas.
    pub fn acks_seen(&self) -> BTreeSet<i16> {
        self.state().acks_seen.clone()
    }

    /// Shows what clients append to `observer`, before they are answered: the partition, and the offset of the first
    /// record. The observer may ask the brokers.
    pub fn observe_produced(&self, observer: impl Fn(&TopicPartition, i64) + Send + Sync + 'static) {
        self.state().produce_observer = Some(Arc::new(observer));
    }

    /// Appends, and wakes fetches that wait for it; none is the answer to one that wants none (`acks=0`).
    pub(super) fn produce(
        &self,
        broker: i32,
        request: wire::ProduceRequest,
        version: i16,
    ) -> Option<wire::ProduceResponse> {
        let mut state = self.state();
        state.acks_seen.insert(request.acks);
        let topics: Vec<_> =
            request.topic_data.into_iter().map(|topic| state.append_all(broker, topic, version)).collect();
        let throttle = if version >= 1 { state.throttle_ms } else { 0 };
        let observer = state.produce_observer.clone();
        drop(state);
        self.0.changed.notify_waiters();
        if let Some(observer) = observer {
            show(&topics, &*observer);
        }
        let answer = wire::ProduceResponse::default().with_responses(topics).with_throttle_time_ms(throttle);
        (request.acks != 0).then_some(answer)
    }
}

impl State {
    fn append_all(
        &mut self,
        broker: i32,
        topic: wire::produce_request::TopicProduceData,
        version: i16,
    ) -> wire::produce_response::TopicProduceResponse {
        let partitions = topic.partition_data.iter().map(|data| {
            let appended = self.append(broker, &topic.name, data, version);
            let (code, offset) = appended.map_or_else(|code| (code, -1), |offset| (0, offset));
            wire::produce_response::PartitionProduceResponse::default()
                .with_index(data.index)
                .with_error_code(code)
                .with_base_offset(offset)
                .with_log_append_time_ms(-1)
        });
        let partitions = partitions.collect();
        wire::produce_response::TopicProduceResponse::default()
            .with_name(topic.name)
            .with_partition_responses(partitions)
    }

    /// The offset of the first record.
    fn append(
        &mut self,
        broker: i32,
        topic: &wire::TopicName,
        data: &wire::produce_request::PartitionProduceData,
        version: i16,
    ) -> Result<i64, i16> {
        self.led(broker, topic, data.index)?;
        if let Some(code) = self.not_written.get(topic.as_str()) {
            return Err(*code);
        }
        let index = usize::try_from(data.index).map_err(|_| UNKNOWN_TOPIC_OR_PARTITION)?;
        let topics = self.topics.get_mut(topic.as_str());
        let partition = topics.and_then(|it| it.get_mut(index)).ok_or(UNKNOWN_TOPIC_OR_PARTITION)?;
        let first = partition.log.end();
        let mut records = data.records.clone().unwrap_or_default();
        while !records.is_empty() {
            let entry = entry(&mut records).ok_or(CORRUPT_MESSAGE)?;
            if entry[super::log::MAGIC] != magic_of(version).unsigned_abs() {
                return Err(INVALID_RECORD);
            }
            partition.log.append_entry(&entry, partition.epoch);
        }
        Ok(first)
    }
}

/// Tells of each partition that was appended to.
fn show(topics: &[wire::produce_response::TopicProduceResponse], observer: &dyn Fn(&TopicPartition, i64)) {
    for topic in topics {
        for appended in topic.partition_responses.iter().filter(|it| it.error_code == 0) {
            observer(&TopicPartition::new(topic.name.as_str(), appended.index), appended.base_offset);
        }
    }
}

/// Who is told of the partition and the first offset.
pub(super) type Observer = Arc<dyn Fn(&TopicPartition, i64) + Send + Sync>;

/// Takes the next batch, or message, off a record set.
fn entry(records: &mut Bytes) -> Option<Bytes> {
    let size = records.get(super::log::SIZE)?;
    let size = u32::from_be_bytes(size.try_into().ok()?) as usize + super::log::SIZE.end;
    (super::log::MAGIC < size && size <= records.len()).then(|| records.split_to(size))
}

/// Topics to which nothing is written, and what is answered.
pub(super) type NotWritten = std::collections::BTreeMap<Arc<str>, i16>;
