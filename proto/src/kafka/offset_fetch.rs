//! OffsetFetch 1 and 2: reads positions stored in Kafka.

use super::error_code::ErrorCode;
use super::frame::{ApiKey, Request, Response, VersionRange};
use super::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use std::sync::Arc;

/// Asks for a group's positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetFetchRequest {
    /// Kafka property `group.id`.
    pub group: Arc<str>,
    /// Topics with partition numbers; `None` for all that the group ever stored (version 2; version 1 asks for
    /// nothing then).
    pub topics: Option<Vec<(Arc<str>, Vec<i32>)>>,
}

/// The positions found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OffsetFetchResponse {
    /// By topic.
    pub topics: Vec<FetchedOffsets>,
    /// Of the whole request, from version 2: then `topics` is empty, which does not mean "no offset".
    pub error: ErrorCode,
}

/// The positions found in one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchedOffsets {
    /// Name.
    pub topic: Arc<str>,
    /// By partition.
    pub partitions: Vec<FetchedOffset>,
}

/// The position found in one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchedOffset {
    /// Number.
    pub partition: i32,
    /// The next offset to consume; `None` if none is stored, or a negative one (the old consumer stores -1).
    /// Means nothing with an error.
    pub offset: Option<i64>,
    /// Free text stored with it.
    pub metadata: Option<Arc<str>>,
    /// Of this partition. In version 1 also of the request (14, 15, 16), repeated for each.
    pub error: ErrorCode,
}

impl Request for OffsetFetchRequest {
    const API: ApiKey = ApiKey::OffsetFetch;
    const NAME: &'static str = "OffsetFetchRequest";
    const VERSIONS: VersionRange = VersionRange::new(1, 2);
    type Response = OffsetFetchResponse;

    fn encode(&self, version: i16, out: &mut Writer) {
        out.string("OffsetFetchRequest.group_id", &self.group);
        let all = if version < 2 { Some(&[][..]) } else { None };
        let topics = self.topics.as_deref().or(all);
        out.nullable_array("OffsetFetchRequest.topics", topics, |out, (topic, partitions)| {
            out.string("OffsetFetchRequest.topics.name", topic);
            out.array("OffsetFetchRequest.topics.partition_indexes", partitions, |out, partition| {
                out.i32(*partition);
            });
        });
    }
}

impl Response for OffsetFetchResponse {
    fn decode(version: i16, body: Bytes) -> Result<Self, WireError> {
        OffsetFetchRequest::VERSIONS.check("OffsetFetchResponse", version)?;
        let mut r = Reader::new(body);
        let topics = r.array("OffsetFetchResponse.topics", 6, |r| {
            Ok(FetchedOffsets {
                topic: r.string("OffsetFetchResponse.topics.name")?,
                partitions: r.array("OffsetFetchResponse.topics.partitions", 16, fetched)?,
            })
        })?;
        let error = if version >= 2 { r.i16("OffsetFetchResponse.error_code")? } else { 0 };
        r.finish("OffsetFetchResponse")?;
        Ok(Self { topics, error: error.into() })
    }
}

fn fetched(r: &mut Reader) -> Result<FetchedOffset, WireError> {
    Ok(FetchedOffset {
        partition: r.i32("OffsetFetchResponse.topics.partitions.partition_index")?,
        offset: Some(r.i64("OffsetFetchResponse.topics.partitions.committed_offset")?)
            .filter(|offset| *offset >= 0),
        metadata: r.nullable_string("OffsetFetchResponse.topics.partitions.metadata")?,
        error: r.i16("OffsetFetchResponse.topics.partitions.error_code")?.into(),
    })
}
