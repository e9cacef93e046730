//! ListOffsets 0 to 2: the offset at a time, or at an end of the log.

use super::error_code::ErrorCode;
use super::frame::{ApiKey, Request, Response, VersionRange};
use super::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use std::sync::Arc;

/// The time that stands for the end of the log (`auto.offset.reset=largest`).
pub const LATEST: i64 = -1;
/// The time that stands for the start of the log (`auto.offset.reset=smallest`).
pub const EARLIEST: i64 = -2;

/// Asks for one offset per partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOffsetsRequest {
    /// Sent from version 2: `LATEST` then means the last stable offset.
    pub read_committed: bool,
    /// What is asked for.
    pub topics: Vec<ListOffsetsTopic>,
}

/// The partitions asked for in one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListOffsetsTopic {
    /// Name.
    pub topic: Arc<str>,
    /// Partition numbers, each with a time in ms since 1970, or [`LATEST`], or [`EARLIEST`].
    pub partitions: Vec<(i32, i64)>,
}

/// The offsets found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListOffsetsResponse {
    /// How long to wait before the next request, in ms; 0 below version 2.
    pub throttle_ms: i32,
    /// By topic.
    pub topics: Vec<ListedTopic>,
}

/// The offsets found in one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedTopic {
    /// Name.
    pub topic: Arc<str>,
    /// By partition.
    pub partitions: Vec<ListedOffset>,
}

/// The offset found in one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedOffset {
    /// Number.
    pub partition: i32,
    /// Of this partition.
    pub error: ErrorCode,
    /// The record's time in ms, where a time was searched; `None` for an end of the log and in version 0.
    pub timestamp: Option<i64>,
    /// The offset, `None` if no record is that young. Version 0 answers with the start of a segment.
    pub offset: Option<i64>,
}

impl Request for ListOffsetsRequest {
    const API: ApiKey = ApiKey::ListOffsets;
    const NAME: &'static str = "ListOffsetsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 2);
    type Response = ListOffsetsResponse;

    fn encode(&self, version: i16, out: &mut Writer) {
        out.i32(-1); // replica_id: a consumer
        if version >= 2 {
            out.i8(self.read_committed.into());
        }
        out.array("ListOffsetsRequest.topics", &self.topics, |out, topic| {
            out.string("ListOffsetsRequest.topics.name", &topic.topic);
            out.array("ListOffsetsRequest.topics.partitions", &topic.partitions, |out, (partition, time)| {
                out.i32(*partition);
                out.i64(*time);
                if version == 0 {
                    out.i32(1); // max_num_offsets: one, so that there is no wrong one to take
                }
            });
        });
    }
}

impl Response for ListOffsetsResponse {
    fn decode(version: i16, body: Bytes) -> Result<Self, WireError> {
        ListOffsetsRequest::VERSIONS.check("ListOffsetsResponse", version)?;
        let mut r = Reader::new(body);
        let throttle_ms = if version >= 2 { r.i32("ListOffsetsResponse.throttle_time_ms")? } else { 0 };
        let topics = r.array("ListOffsetsResponse.topics", 6, |r| {
            Ok(ListedTopic {
                topic: r.string("ListOffsetsResponse.topics.name")?,
                partitions: r.array("ListOffsetsResponse.topics.partitions", 10, |r| listed(version, r))?,
            })
        })?;
        r.finish("ListOffsetsResponse")?;
        Ok(Self { throttle_ms, topics })
    }

    fn throttle_ms(&self) -> i32 {
        self.throttle_ms
    }
}

fn listed(version: i16, r: &mut Reader) -> Result<ListedOffset, WireError> {
    let partition = r.i32("ListOffsetsResponse.topics.partitions.partition_index")?;
    let error = r.i16("ListOffsetsResponse.topics.partitions.error_code")?.into();
    let (timestamp, offset) = if version == 0 {
        let what = "ListOffsetsResponse.topics.partitions.old_style_offsets";
        (None, r.array(what, 8, |r| r.i64(what))?.first().copied())
    } else {
        let timestamp = r.i64("ListOffsetsResponse.topics.partitions.timestamp")?;
        (Some(timestamp), Some(r.i64("ListOffsetsResponse.topics.partitions.offset")?))
    };
    let known = |value: &i64| *value >= 0;
    Ok(ListedOffset { partition, error, timestamp: timestamp.filter(known), offset: offset.filter(known) })
}
