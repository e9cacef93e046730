//! OffsetCommit 1 and 2: stores positions in Kafka.
//!
//! Without generation and member (-1 and empty) the broker takes a commit only while no group of Kafka's own
//! protocol is active under that name; nothing fences it.

use super::error_code::ErrorCode;
use super::frame::{ApiKey, Request, Response, VersionRange};
use super::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use std::sync::Arc;

/// Positions to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetCommitRequest {
    /// Kafka property `group.id`.
    pub group: Arc<str>,
    /// -1 outside Kafka's own group protocol.
    pub generation: i32,
    /// Empty outside Kafka's own group protocol.
    pub member: Arc<str>,
    /// By topic.
    pub topics: Vec<CommitTopic>,
}

/// Positions in one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitTopic {
    /// Name.
    pub topic: Arc<str>,
    /// By partition.
    pub partitions: Vec<CommitPartition>,
}

/// The position in one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitPartition {
    /// Number.
    pub partition: i32,
    /// The next offset to consume.
    pub offset: i64,
    /// Free text of at most `offset.metadata.max.bytes`; empty as a rule.
    pub metadata: Arc<str>,
}

/// The outcome by partition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OffsetCommitResponse {
    /// By topic.
    pub topics: Vec<CommittedTopic>,
}

/// The outcome in one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommittedTopic {
    /// Name.
    pub topic: Arc<str>,
    /// Partition numbers with their outcome.
    pub partitions: Vec<(i32, ErrorCode)>,
}

impl Request for OffsetCommitRequest {
    const API: ApiKey = ApiKey::OffsetCommit;
    const NAME: &'static str = "OffsetCommitRequest";
    const VERSIONS: VersionRange = VersionRange::new(1, 2);
    type Response = OffsetCommitResponse;

    fn encode(&self, version: i16, out: &mut Writer) {
        out.string("OffsetCommitRequest.group_id", &self.group);
        out.i32(self.generation);
        out.string("OffsetCommitRequest.member_id", &self.member);
        if version >= 2 {
            out.i64(-1); // retention_time_ms: the broker's own
        }
        out.array("OffsetCommitRequest.topics", &self.topics, |out, topic| {
            out.string("OffsetCommitRequest.topics.name", &topic.topic);
            out.array("OffsetCommitRequest.topics.partitions", &topic.partitions, |out, partition| {
                out.i32(partition.partition);
                out.i64(partition.offset);
                if version == 1 {
                    out.i64(-1); // commit_timestamp: the broker's clock
                }
                out.string("OffsetCommitRequest.topics.partitions.metadata", &partition.metadata);
            });
        });
    }
}

impl Response for OffsetCommitResponse {
    fn decode(version: i16, body: Bytes) -> Result<Self, WireError> {
        OffsetCommitRequest::VERSIONS.check("OffsetCommitResponse", version)?;
        let mut r = Reader::new(body);
        let topics = r.array("OffsetCommitResponse.topics", 6, |r| {
            Ok(CommittedTopic {
                topic: r.string("OffsetCommitResponse.topics.name")?,
                partitions: r.array("OffsetCommitResponse.topics.partitions", 6, |r| {
                    let partition = r.i32("OffsetCommitResponse.topics.partitions.partition_index")?;
                    Ok((partition, r.i16("OffsetCommitResponse.topics.partitions.error_code")?.into()))
                })?,
            })
        })?;
        r.finish("OffsetCommitResponse")?;
        Ok(Self { topics })
    }
}
