//! OffsetDelete 0 (brokers from 2.4): forgets offsets of a group, one by one, asked of its coordinator.

use super::error_code::ErrorCode;
use super::frame::{ApiKey, Request, Response, VersionRange};
use super::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use std::sync::Arc;

/// Names the offsets to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetDeleteRequest {
    /// Kafka property `group.id`.
    pub group: Arc<str>,
    /// Topics with partition numbers.
    pub topics: Vec<(Arc<str>, Vec<i32>)>,
}

/// What became of each.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OffsetDeleteResponse {
    /// Of the group: 69 for one that does not exist, 68 for one with members that are no consumers.
    pub error: ErrorCode,
    /// How long to wait before the next request, in ms.
    pub throttle_ms: i32,
    /// By topic.
    pub topics: Vec<DeletedTopic>,
}

/// What became of the offsets of one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeletedTopic {
    /// Name.
    pub topic: Arc<str>,
    /// Partition numbers with their outcome: 86 while a member subscribes to the topic.
    pub partitions: Vec<(i32, ErrorCode)>,
}

impl Request for OffsetDeleteRequest {
    const API: ApiKey = ApiKey::OffsetDelete;
    const NAME: &'static str = "OffsetDeleteRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    type Response = OffsetDeleteResponse;

    fn encode(&self, _version: i16, out: &mut Writer) {
        out.string("OffsetDeleteRequest.group_id", &self.group);
        out.array("OffsetDeleteRequest.topics", &self.topics, |out, (topic, partitions)| {
            out.string("OffsetDeleteRequest.topics.name", topic);
            out.array("OffsetDeleteRequest.topics.partitions", partitions, |out, partition| {
                out.i32(*partition);
            });
        });
    }
}

impl Response for OffsetDeleteResponse {
    fn decode(version: i16, body: Bytes) -> Result<Self, WireError> {
        OffsetDeleteRequest::VERSIONS.check("OffsetDeleteResponse", version)?;
        let mut r = Reader::new(body);
        let error = r.i16("OffsetDeleteResponse.error_code")?.into();
        let throttle_ms = r.i32("OffsetDeleteResponse.throttle_time_ms")?;
        let topics = r.array("OffsetDeleteResponse.topics", 6, |r| {
            Ok(DeletedTopic {
                topic: r.string("OffsetDeleteResponse.topics.name")?,
                partitions: r.array("OffsetDeleteResponse.topics.partitions", 6, |r| {
                    let partition = r.i32("OffsetDeleteResponse.topics.partitions.partition_index")?;
                    Ok((partition, r.i16("OffsetDeleteResponse.topics.partitions.error_code")?.into()))
                })?,
            })
        })?;
        r.finish("OffsetDeleteResponse")?;
        Ok(Self { error, throttle_ms, topics })
    }

    fn throttle_ms(&self) -> i32 {
        self.throttle_ms
    }
}
