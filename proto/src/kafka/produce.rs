//! Produce 3 (brokers from 0.11): appends record batches of magic 2.

use super::error_code::ErrorCode;
use super::frame::{ApiKey, Request, Response, VersionRange};
use super::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use std::sync::Arc;

/// Appends one batch per partition.
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
    /// Partition numbers, each with one batch (see [`super::records::RecordBatchWriter`]).
    pub partitions: Vec<(i32, Bytes)>,
}

/// Where the batches went.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProduceResponse {
    /// By topic.
    pub topics: Vec<ProducedTopic>,
    /// How long to wait before the next request, in ms.
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
    /// In ms, where the topic has `message.timestamp.type=LogAppendTime`.
    pub log_append_time: Option<i64>,
}

impl Request for ProduceRequest {
    const API: ApiKey = ApiKey::Produce;
    const NAME: &'static str = "ProduceRequest";
    const VERSIONS: VersionRange = VersionRange::new(3, 3);
    type Response = ProduceResponse;

    fn encode(&self, _version: i16, out: &mut Writer) {
        out.nullable_string("ProduceRequest.transactional_id", None);
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
        let topics = r.array("ProduceResponse.responses", 6, |r| {
            Ok(ProducedTopic {
                topic: r.string("ProduceResponse.responses.name")?,
                partitions: r.array("ProduceResponse.responses.partition_responses", 22, produced)?,
            })
        })?;
        let throttle_ms = r.i32("ProduceResponse.throttle_time_ms")?;
        r.finish("ProduceResponse")?;
        Ok(Self { topics, throttle_ms })
    }

    fn throttle_ms(&self) -> i32 {
        self.throttle_ms
    }
}

fn produced(r: &mut Reader) -> Result<ProducedBatch, WireError> {
    let known = |value: &i64| *value >= 0;
    Ok(ProducedBatch {
        partition: r.i32("ProduceResponse.responses.partition_responses.index")?,
        error: r.i16("ProduceResponse.responses.partition_responses.error_code")?.into(),
        base_offset: Some(r.i64("ProduceResponse.responses.partition_responses.base_offset")?).filter(known),
        log_append_time: Some(r.i64("ProduceResponse.responses.partition_responses.log_append_time_ms")?)
            .filter(known),
    })
}
