use super::FetchRequest;
use crate::kafka::error_code::ErrorCode;
use crate::kafka::frame::{Request, Response};
use crate::kafka::wire::{Reader, WireError};
use bytes::Bytes;
use std::sync::Arc;

/// The record sets read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchResponse {
    /// What concerns the whole response.
    pub head: FetchHead,
    /// By topic; within a session only partitions with news.
    pub topics: Vec<FetchedTopic>,
}

/// What concerns the whole response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchHead {
    /// How long to wait before the next request, in ms; 0 below version 1.
    pub throttle_ms: i32,
    /// Of the whole request, from version 7: 70 and 71 ask for a new session.
    pub error: ErrorCode,
    /// From version 7: the session to go on with, 0 for none.
    pub session_id: i32,
}

/// The record sets of one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchedTopic {
    /// Name.
    pub topic: Arc<str>,
    /// By partition.
    pub partitions: Vec<FetchedPartition>,
}

/// The record set of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchedPartition {
    /// Number.
    pub partition: i32,
    /// Of this partition.
    pub error: ErrorCode,
    /// The offset after the last record that every in-sync replica has; -1 with an error.
    pub high_watermark: i64,
    /// From version 4: the offset before which every transaction has ended.
    pub last_stable_offset: Option<i64>,
    /// From version 5: the first offset of the log.
    pub log_start_offset: Option<i64>,
    /// From version 4 and only when reading committed: whose batches to leave out, and from where.
    pub aborted: Vec<AbortedTransaction>,
    /// From version 11: the replica to read from instead.
    pub preferred_read_replica: Option<i32>,
    /// Zero or more batches, the last perhaps cut off; a slice of the response. See
    /// [`crate::kafka::records`].
    pub records: Bytes,
}

/// A transaction that was aborted within the record set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AbortedTransaction {
    /// Its producer.
    pub producer_id: i64,
    /// Its first offset; it ends at the producer's next abort marker.
    pub first_offset: i64,
}

impl AbortedTransaction {
    /// Of this producer, from this offset on.
    pub const fn new(producer_id: i64, first_offset: i64) -> Self {
        Self { producer_id, first_offset }
    }
}

impl Response for FetchResponse {
    fn decode(version: i16, body: Bytes) -> Result<Self, WireError> {
        FetchRequest::VERSIONS.check("FetchResponse", version)?;
        let mut r = Reader::new(body);
        let head = head(version, &mut r)?;
        let topics = r.array("FetchResponse.topics", 6, |r| {
            Ok(FetchedTopic {
                topic: r.string("FetchResponse.topics.topic")?,
                partitions: r.array("FetchResponse.topics.partitions", 18, |r| {
                    let mut partition = partition_head(version, r)?;
                    let records = r.nullable_bytes("FetchResponse.topics.partitions.records")?;
                    partition.records = records.unwrap_or_default();
                    Ok(partition)
                })?,
            })
        })?;
        r.finish("FetchResponse")?;
        Ok(Self { head, topics })
    }

    fn throttle_ms(&self) -> i32 {
        self.head.throttle_ms
    }
}

/// Reads what stands before the topics.
pub(super) fn head<B: AsRef<[u8]>>(version: i16, r: &mut Reader<B>) -> Result<FetchHead, WireError> {
    let sessions = version >= 7;
    Ok(FetchHead {
        throttle_ms: if version >= 1 { r.i32("FetchResponse.throttle_time_ms")? } else { 0 },
        error: if sessions { r.i16("FetchResponse.error_code")? } else { 0 }.into(),
        session_id: if sessions { r.i32("FetchResponse.session_id")? } else { 0 },
    })
}

/// Reads all of a partition that stands before the size of its records.
pub(super) fn partition_head<B: AsRef<[u8]>>(
    version: i16,
    r: &mut Reader<B>,
) -> Result<FetchedPartition, WireError> {
    let mut head = FetchedPartition {
        partition: r.i32("FetchResponse.topics.partitions.partition_index")?,
        error: r.i16("FetchResponse.topics.partitions.error_code")?.into(),
        high_watermark: r.i64("FetchResponse.topics.partitions.high_watermark")?,
        last_stable_offset: None,
        log_start_offset: None,
        aborted: Vec::new(),
        preferred_read_replica: None,
        records: Bytes::new(),
    };
    if version >= 4 {
        head.last_stable_offset = known(r.i64("FetchResponse.topics.partitions.last_stable_offset")?);
    }
    if version >= 5 {
        head.log_start_offset = known(r.i64("FetchResponse.topics.partitions.log_start_offset")?);
    }
    if version >= 4 {
        let aborted =
            r.nullable_array("FetchResponse.topics.partitions.aborted_transactions", 16, aborted)?;
        head.aborted = aborted.unwrap_or_default();
    }
    if version >= 11 {
        let replica = r.i32("FetchResponse.topics.partitions.preferred_read_replica")?;
        head.preferred_read_replica = Some(replica).filter(|id| *id >= 0);
    }
    Ok(head)
}

fn known(offset: i64) -> Option<i64> {
    Some(offset).filter(|offset| *offset >= 0)
}

fn aborted<B: AsRef<[u8]>>(r: &mut Reader<B>) -> Result<AbortedTransaction, WireError> {
    Ok(AbortedTransaction {
        producer_id: r.i64("FetchResponse.topics.partitions.aborted_transactions.producer_id")?,
        first_offset: r.i64("FetchResponse.topics.partitions.aborted_transactions.first_offset")?,
    })
}
