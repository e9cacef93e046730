#![no_main]
//! A record of `__consumer_offsets`, and the assignment of each member that it has.

use bytes::Bytes;
use kafka_troupe_proto::kafka::offsets_topic::{ConsumerAssignment, OffsetsRecord, RecordValue, decode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Option<Vec<u8>>, Option<Vec<u8>>)| {
    let (key, value) = input;
    let value = value.map(Bytes::from);
    match decode(key.as_deref(), value.clone()) {
        OffsetsRecord::Group { value: RecordValue::Read(group), .. } => {
            for member in group.members {
                let _ = ConsumerAssignment::decode(member.assignment);
            }
        }
        OffsetsRecord::Offset { value: RecordValue::Unknown { bytes, .. }, .. }
        | OffsetsRecord::Offset { value: RecordValue::Damaged { bytes, .. }, .. }
        | OffsetsRecord::Group { value: RecordValue::Unknown { bytes, .. }, .. }
        | OffsetsRecord::Group { value: RecordValue::Damaged { bytes, .. }, .. } => {
            assert_eq!(Some(bytes), value, "not what came");
        }
        OffsetsRecord::Damaged { key: kept, .. } => {
            assert_eq!(kept.as_deref(), key.as_deref(), "not what came")
        }
        _ => {}
    }
    let _ = ConsumerAssignment::decode(value.unwrap_or_default());
});
