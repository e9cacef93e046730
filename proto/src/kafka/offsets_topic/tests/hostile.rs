//! Bytes that nobody wrote: never a panic, and what was kept is what came. `tests/memory` counts what it takes.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// Short, of small bytes, and with a version that we know, or else most end at once.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let body = prop_oneof![vec(any::<u8>(), 0..80), vec(0..4_u8, 0..80)];
    (prop_oneof![4 => 0..6_u8, 1 => any::<u8>()], body)
        .prop_map(|(version, body)| [vec![0, version], body].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn arbitrary_bytes_never_panic_and_are_kept_unless_read(key in bytes(), value in bytes()) {
        let all = Bytes::from(value.clone());
        match decode(Some(&key), Some(all.clone())) {
            OffsetsRecord::Offset { value, .. } => kept(&all, value),
            OffsetsRecord::Group { value, .. } => kept(&all, value),
            OffsetsRecord::Unknown { version, key: kept, value } => {
                prop_assert_eq!((&kept[..2], &kept[..]), (&version.to_be_bytes()[..], &key[..]));
                prop_assert_eq!(value, Some(all));
            }
            OffsetsRecord::Damaged { key: kept, value, .. } => {
                prop_assert_eq!((kept, value), (Some(Bytes::from(key)), Some(all)));
            }
        }
        let _ = offset_value(&value);
        let _ = group_value(&value);
        let _ = ConsumerAssignment::decode(value.into());
    }
}

fn kept<T: std::fmt::Debug>(all: &Bytes, value: RecordValue<T>) {
    match value {
        RecordValue::Unknown { bytes, .. } | RecordValue::Damaged { bytes, .. } => assert_eq!(bytes, all),
        RecordValue::Tombstone => panic!("there is a value"),
        RecordValue::Read(_) => {}
    }
}
