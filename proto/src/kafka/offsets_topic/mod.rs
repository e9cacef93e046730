//! The records of `__consumer_offsets`, where brokers keep the offsets and the groups that they coordinate.
//!
//! ```
//! use bytes::Bytes;
//! use kafka_troupe_proto::kafka::offsets_topic::{OffsetsRecord, RecordValue, decode};
//!
//! let key = b"\0\x01\0\x05group\0\x06orders\0\0\0\x02";
//! let value = b"\0\x03\0\0\0\0\0\0\0\x37\0\0\0\x07\0\0\0\0\x01\xa2\x29\x5c\xaa\x2f";
//! match decode(Some(key), Some(Bytes::from_static(value))) {
//!     OffsetsRecord::Offset { group, partition, value: RecordValue::Read(committed) } => {
//!         assert_eq!((&*group, partition.to_string()), ("group", "orders-2".to_owned()));
//!         assert_eq!((committed.offset, committed.leader_epoch), (55, Some(7)));
//!     }
//!     other => panic!("{other:?}"),
//! }
//! ```
//!
//! # Non-obvious
//! - Nothing is an error that ends reading: what is unknown or damaged is a record like others, with its bytes. A
//!   broker is upgraded under its readers, and then writes versions that they have never seen.
//! - The version of the key is the kind of the record. Those from 3 on came with Kafka 4.0 (KIP-848, share and streams
//!   groups) and are [`OffsetsRecord::Unknown`].
//! - Bytes after the last known field are passed over, as by Kafka's own readers.
//! - A group is removed, and an offset deleted or expired, by a record without value: [`RecordValue::Tombstone`].
//! - The topic is internal: a wildcard of ours matches it only with `exclude.internal.topics=false`.

mod assignment;
mod committed_offset;
mod group_metadata;
#[cfg(test)]
mod tests;
mod text;

pub use assignment::ConsumerAssignment;
pub use committed_offset::CommittedOffset;
pub use group_metadata::{GroupMember, GroupMetadata};
pub use text::OffsetsFormatter;

use super::wire::{Reader, WireError, WireProblem};
use crate::TopicPartition;
use crate::java::{java_hash, java_index};
use bytes::Bytes;
use std::num::NonZeroU32;
use std::sync::Arc;

/// The topic's name.
pub const OFFSETS_TOPIC: &str = "__consumer_offsets";

/// What one record of the topic says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OffsetsRecord {
    /// The offset of a group in a partition: keys of version 0 (written by 0.8.2) and 1 (since 0.9).
    Offset {
        /// The group's name.
        group: Arc<str>,
        /// The partition that the offset is of.
        partition: TopicPartition,
        /// The offset.
        value: RecordValue<CommittedOffset>,
    },
    /// A group of Kafka's own protocol: keys of version 2, since 0.9.
    Group {
        /// The group's name.
        group: Arc<str>,
        /// Its state.
        value: RecordValue<GroupMetadata>,
    },
    /// A key of another version; its value is not looked at.
    Unknown {
        /// Version of the key, its first two bytes.
        version: i16,
        /// The whole key.
        key: Bytes,
        /// The whole value; none is a tombstone.
        value: Option<Bytes>,
    },
    /// A key that is not what its version says, or none.
    Damaged {
        /// The whole key.
        key: Option<Bytes>,
        /// The whole value; none is a tombstone.
        value: Option<Bytes>,
        /// What is wrong with the key.
        error: WireError,
    },
}

/// The value of a record whose key is understood.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordValue<T> {
    /// It could be read.
    Read(T),
    /// There is none: what the key names has been deleted or has expired.
    Tombstone,
    /// A version that we do not know.
    Unknown {
        /// Version of the value, its first two bytes.
        version: i16,
        /// The whole value.
        bytes: Bytes,
    },
    /// It is not what its version says.
    Damaged {
        /// The whole value.
        bytes: Bytes,
        /// What is wrong with it.
        error: WireError,
    },
}

impl<T> RecordValue<T> {
    /// What could be read, if it could.
    pub fn read(&self) -> Option<&T> {
        match self {
            Self::Read(value) => Some(value),
            Self::Tombstone | Self::Unknown { .. } | Self::Damaged { .. } => None,
        }
    }
}

/// Reads a record's key and value; what cannot be read is kept as such. See [`OffsetsRecord`].
pub fn decode(key: Option<&[u8]>, value: Option<Bytes>) -> OffsetsRecord {
    let error = match read_key(key) {
        Ok(Key::Offset(group, partition)) => {
            let value = read_value(value, CommittedOffset::decode);
            return OffsetsRecord::Offset { group, partition, value };
        }
        Ok(Key::Group(group)) => {
            return OffsetsRecord::Group { group, value: read_value(value, GroupMetadata::decode) };
        }
        Ok(Key::Unknown(version)) => {
            let key = Bytes::copy_from_slice(key.unwrap_or_default());
            return OffsetsRecord::Unknown { version, key, value };
        }
        Err(error) => error,
    };
    OffsetsRecord::Damaged { key: key.map(Bytes::copy_from_slice), value, error }
}

enum Key {
    Offset(Arc<str>, TopicPartition),
    Group(Arc<str>),
    Unknown(i16),
}

fn read_key(key: Option<&[u8]>) -> Result<Key, WireError> {
    let what = "OffsetsRecord.key";
    let key = key.ok_or(WireError { what, at: 0, problem: WireProblem::Length(-1) })?;
    let mut r = Reader::new(key);
    Ok(match r.i16("OffsetsRecord.key.version")? {
        0 | 1 => {
            let group = r.string("OffsetCommitKey.group")?;
            let topic = r.string("OffsetCommitKey.topic")?;
            Key::Offset(group, TopicPartition::new(topic, r.i32("OffsetCommitKey.partition")?))
        }
        2 => Key::Group(r.string("GroupMetadataKey.group")?),
        version => Key::Unknown(version),
    })
}

/// `read` answers nothing for a version that it does not know.
fn read_value<T>(
    value: Option<Bytes>,
    read: impl Fn(i16, Reader) -> Result<Option<T>, WireError>,
) -> RecordValue<T> {
    let Some(bytes) = value else { return RecordValue::Tombstone };
    let mut r = Reader::new(bytes.clone());
    let version = match r.i16("OffsetsRecord.value.version") {
        Ok(version) => version,
        Err(error) => return RecordValue::Damaged { bytes, error },
    };
    match read(version, r) {
        Ok(Some(value)) => RecordValue::Read(value),
        Ok(None) => RecordValue::Unknown { version, bytes },
        Err(error) => RecordValue::Damaged { bytes, error },
    }
}

/// The partition of the topic with all records of a group, whose leader is the group's coordinator.
///
/// `partitions` is how many the topic really has: the brokers' `offsets.topic.num.partitions` (default 50) counts only
/// when the topic is made. As Kafka since 0.8.2: by [`java_index`] of the name's [`java_hash`].
pub fn partition_for_group(group: &str, partitions: NonZeroU32) -> i32 {
    // an absolute value of 32 bits is at most `i32::MAX`, and a remainder is no more
    java_index(java_hash(group), partitions) as i32
}
