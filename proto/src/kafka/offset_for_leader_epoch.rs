//! OffsetForLeaderEpoch 3 (brokers from 2.3): where a leader's epoch ended (KIP-320).
//!
//! A log that was truncated after an unclean election, and has grown again since, looks fine by its offsets alone.
//! A position that was read under epoch e is past the end that the new leader gives for e: so much was lost.

use super::error_code::ErrorCode;
use super::frame::{ApiKey, Request, Response, VersionRange};
use super::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use std::sync::Arc;

/// Asks leaders where an epoch of each partition ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OffsetForLeaderEpochRequest {
    /// What is asked for.
    pub topics: Vec<EpochTopic>,
}

/// The partitions asked for in one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpochTopic {
    /// Name.
    pub topic: Arc<str>,
    /// Which, and for what epoch.
    pub partitions: Vec<EpochPartition>,
}

/// One partition asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochPartition {
    /// Number.
    pub partition: i32,
    /// The leader's epoch as metadata told it, or -1 to have none checked.
    pub current_leader_epoch: i32,
    /// The epoch whose end is asked for: that of the last record read.
    pub leader_epoch: i32,
}

/// The ends found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OffsetForLeaderEpochResponse {
    /// How long to wait before the next request, in ms.
    pub throttle_ms: i32,
    /// By topic.
    pub topics: Vec<EpochEndTopic>,
}

/// The ends found in one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EpochEndTopic {
    /// Name.
    pub topic: Arc<str>,
    /// By partition.
    pub partitions: Vec<EpochEnd>,
}

/// The end found in one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EpochEnd {
    /// Of this partition: 74 and 75 speak of `current_leader_epoch`.
    pub error: ErrorCode,
    /// Number.
    pub partition: i32,
    /// The largest epoch in the leader's log up to the one asked for; `None` if it knows of none.
    pub leader_epoch: Option<i32>,
    /// The offset after the last record of that epoch; `None` if unknown.
    pub end_offset: Option<i64>,
}

impl Request for OffsetForLeaderEpochRequest {
    const API: ApiKey = ApiKey::OffsetForLeaderEpoch;
    const NAME: &'static str = "OffsetForLeaderEpochRequest";
    const VERSIONS: VersionRange = VersionRange::new(3, 3);
    type Response = OffsetForLeaderEpochResponse;

    fn encode(&self, _version: i16, out: &mut Writer) {
        out.i32(-1); // replica_id: a consumer
        out.array("OffsetForLeaderEpochRequest.topics", &self.topics, |out, topic| {
            out.string("OffsetForLeaderEpochRequest.topics.topic", &topic.topic);
            out.array("OffsetForLeaderEpochRequest.topics.partitions", &topic.partitions, |out, asked| {
                out.i32(asked.partition);
                out.i32(asked.current_leader_epoch);
                out.i32(asked.leader_epoch);
            });
        });
    }
}

impl Response for OffsetForLeaderEpochResponse {
    fn decode(version: i16, body: Bytes) -> Result<Self, WireError> {
        OffsetForLeaderEpochRequest::VERSIONS.check("OffsetForLeaderEpochResponse", version)?;
        let mut r = Reader::new(body);
        let throttle_ms = r.i32("OffsetForLeaderEpochResponse.throttle_time_ms")?;
        let topics = r.array("OffsetForLeaderEpochResponse.topics", 6, |r| {
            Ok(EpochEndTopic {
                topic: r.string("OffsetForLeaderEpochResponse.topics.topic")?,
                partitions: r.array("OffsetForLeaderEpochResponse.topics.partitions", 18, end)?,
            })
        })?;
        r.finish("OffsetForLeaderEpochResponse")?;
        Ok(Self { throttle_ms, topics })
    }

    fn throttle_ms(&self) -> i32 {
        self.throttle_ms
    }
}

fn end(r: &mut Reader) -> Result<EpochEnd, WireError> {
    Ok(EpochEnd {
        error: r.i16("OffsetForLeaderEpochResponse.topics.partitions.error_code")?.into(),
        partition: r.i32("OffsetForLeaderEpochResponse.topics.partitions.partition")?,
        leader_epoch: Some(r.i32("OffsetForLeaderEpochResponse.topics.partitions.leader_epoch")?)
            .filter(|epoch| *epoch >= 0),
        end_offset: Some(r.i64("OffsetForLeaderEpochResponse.topics.partitions.end_offset")?)
            .filter(|offset| *offset >= 0),
    })
}
