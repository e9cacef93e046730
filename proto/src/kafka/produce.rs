//! Produce 0 to 3: appends records.
//!
//! | version | brokers | records | brings |
//! |---|---|---|---|
//! | 0 | 0.8 | messages of magic 0 | |
//! | 1 | 0.9 | messages of magic 0 | throttle time |
//! | 2 | 0.10 | messages of magic 1 | times by which the broker appended |
//! | 3 | 0.11 and later | batches of magic 2 | transactions |
//!
//! A broker refuses records of another magic than its version's ([`magic_of`]).

use super::error_code::ErrorCode;
use super::frame::{ApiKey, Request, Response, VersionRange};
use super::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use std::sync::Arc;

/// The format of the records that a Produce request of this version holds.
pub const fn magic_of(version: i16) -> i8 {
    match version {
        ..=1 => 0,
        2 => 1,
        _ => 2,
    }
}

/// Appends one batch (or message set) per partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProduceRequest {
    /// -1 for all in-sync replicas, 1 for the leader (Kafka property `acks`). Not 0: a broker does not answer it.
    pub acks: i16,
    /// How long the broker may wait for the replicas, in ms (Kafka property `request.timeout.ms`).
    pub timeout_ms: i32,
    /// By topic.
    pub topics: Vec<ProduceTopic>,
}

/// Batches for one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProduceTopic {
    /// Name.
    pub topic: Arc<str>,
    /// Partition numbers, each with its records in the format of the version: see [`magic_of`],
    /// [`super::records::RecordBatchWriter`] and [`super::records::write_messages`].
    pub partitions: Vec<(i32, Bytes)>,
}

/// Where the batches went.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProduceResponse {
    /// By topic.
    pub topics: Vec<ProducedTopic>,
    /// How long to wait before the next request, in ms; 0 in version 0.
    pub throttle_ms: i32,
}

/// Where the batches of one topic went.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProducedTopic {
    /// Name.
    pub topic: Arc<str>,
    /// By partition.
    pub partitions: Vec<ProducedBatch>,
}

/// Where one batch went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProducedBatch {
    /// Partition number.
    pub partition: i32,
    /// Of this partition.
    pub error: ErrorCode,
    /// Offset of its first record; `None` with an error.
    pub base_offset: Option<i64>,
    /// In ms, from version 2 where the topic has `message.timestamp.type=LogAppendTime`.
    pub log_append_time: Option<i64>,
}

impl Request for ProduceRequest {
    const API: ApiKey = ApiKey::Produce;
    const NAME: &'static str = "ProduceRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 3);
    type Response = ProduceResponse;

    fn encode(&self, version: i16, out: &mut Writer) {
        if version >= 3 {
            out.nullable_string("ProduceRequest.transactional_id", None);
        }
        out.i16(self.acks);
        out.i32(self.timeout_ms);
        out.array("ProduceRequest.topic_data", &self.topics, |out, topic| {
            out.string("ProduceRequest.topic_data.name", &topic.topic);
            let what = "ProduceRequest.topic_data.partition_data";
            out.array(what, &topic.partitions, |out, (partition, records)| {
                out.i32(*partition);
                out.nullable_bytes("ProduceRequest.topic_data.partition_data.records", Some(records));
            });
        });
    }
}

impl Response for ProduceResponse {
    fn decode(version: i16, body: Bytes) -> Result<Self, WireError> {
        ProduceRequest::VERSIONS.check("ProduceResponse", version)?;
        let mut r = Reader::new(body);
        let size = if version >= 2 { 22 } else { 14 };
        let topics = r.array("ProduceResponse.responses", 6, |r| {
            let topic = r.string("ProduceResponse.responses.name")?;
            let what = "ProduceResponse.responses.partition_responses";
            Ok(ProducedTopic { topic, partitions: r.array(what, size, |r| produced(version, r))? })
        })?;
        let throttle_ms = if version >= 1 { r.i32("ProduceResponse.throttle_time_ms")? } else { 0 };
        r.finish("ProduceResponse")?;
        Ok(Self { topics, throttle_ms })
    }

    fn throttle_ms(&self) -> i32 {
        self.throttle_ms
    }
}

fn produced(version: i16, r: &mut Reader) -> Result<ProducedBatch, WireError> {
    let known = |value: &i64| *value >= 0;
    Ok(ProducedBatch {
        partition: r.i32("ProduceResponse.responses.partition_responses.index")?,
        error: r.i16("ProduceResponse.responses.partition_responses.error_code")?.into(),
        base_offset: Some(r.i64("ProduceResponse.responses.partition_responses.base_offset")?).filter(known),
        log_append_time: match version {
            2.. => Some(r.i64("ProduceResponse.responses.partition_responses.log_append_time_ms")?),
            _ => None,
        }
        .filter(known),
    })
}
