mod golden;
mod hostile;
mod partitions;
mod round_trip;
mod samples;
mod text;
mod writer;

use super::*;
use writer::{Order, encode_assignment, encode_group, encode_offset, group_key, offset_key};

/// The value of a record with a good key of offsets.
fn offset_value(value: &[u8]) -> RecordValue<CommittedOffset> {
    match decode(Some(&offset_key(1, "g", "t", 0)), Some(Bytes::copy_from_slice(value))) {
        OffsetsRecord::Offset { value, .. } => value,
        other => panic!("{other:?}"),
    }
}

/// The value of a record with a good key of groups.
fn group_value(value: &[u8]) -> RecordValue<GroupMetadata> {
    match decode(Some(&group_key(2, "g")), Some(Bytes::copy_from_slice(value))) {
        OffsetsRecord::Group { value, .. } => value,
        other => panic!("{other:?}"),
    }
}
