//! Single records: those that people met, and those of real brokers that the specification quotes.

use super::*;

fn committed(version: i16, offset: i64) -> CommittedOffset {
    CommittedOffset {
        version,
        offset,
        leader_epoch: None,
        metadata: "".into(),
        commit_timestamp: None,
        expire_timestamp: None,
        topic_id: None,
    }
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits: String = hex.split(' ').collect();
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex");
    (0..digits.len()).step_by(2).map(byte).collect()
}

#[test]
fn b25_the_leader_epoch_of_version_3_stands_before_the_metadata() {
    let time = Some(1_600_000_000_000);
    let it = CommittedOffset { leader_epoch: Some(7), commit_timestamp: time, ..committed(3, 55) };
    assert_eq!(offset_value(&encode_offset(&it, Order::Right)), RecordValue::Read(it.clone()));
    assert_ne!(offset_value(&encode_offset(&it, Order::EpochLast)), RecordValue::Read(it));
}

#[test]
fn b25_a_time_to_expire_of_minus_1_is_none() {
    let it = CommittedOffset { commit_timestamp: Some(5), ..committed(1, 55) };
    let bytes = encode_offset(&it, Order::Right);
    assert_eq!(bytes[20..], [0xff; 8]);
    assert_eq!(offset_value(&bytes), RecordValue::Read(it));
}

#[test]
fn b25_a_group_without_members_has_neither_protocol_nor_leader() {
    let value = unhex("0003 0008 636f6e73756d6572 00000002 ffff ffff 000001a2295dea9d 00000000");
    let expected = GroupMetadata {
        version: 3,
        protocol_type: "consumer".into(),
        generation: 2,
        protocol: None,
        leader: None,
        state_timestamp: Some(0x01a2_295d_ea9d),
        members: Vec::new(),
    };
    assert_eq!(group_value(&value), RecordValue::Read(expected));
}

#[test]
fn records_of_the_old_consumer_on_brokers_of_1_1_1_and_3_9_1() {
    let key = unhex("0001 0005 6c6373676b 0004 6c637341 00000000");
    let record = decode(Some(&key), None);
    let (group, partition) = ("lcsgk".into(), TopicPartition::new("lcsA", 0));
    assert_eq!(record, OffsetsRecord::Offset { group, partition, value: RecordValue::Tombstone });
    let value = unhex("0001 000000000000000a 0000 000001a2295ca8c2 000001a22e8304c2");
    let expected = CommittedOffset {
        commit_timestamp: Some(0x01a2_295c_a8c2),
        expire_timestamp: Some(0x01a2_2e83_04c2),
        ..committed(1, 10)
    };
    assert_eq!(offset_value(&value), RecordValue::Read(expected));
    let value = unhex("0003 000000000000000a ffffffff 0000 000001a2295caa2f");
    let expected = CommittedOffset { commit_timestamp: Some(0x01a2_295c_aa2f), ..committed(3, 10) };
    assert_eq!(offset_value(&value), RecordValue::Read(expected));
}

#[test]
fn b25_a_version_that_we_do_not_know_is_kept_with_its_bytes() {
    for version in [i16::MIN, -1, 5, 6, i16::MAX] {
        let mut bytes = encode_offset(&committed(3, 55), Order::Right);
        bytes[..2].copy_from_slice(&version.to_be_bytes());
        let kept = Bytes::from(bytes.clone());
        assert_eq!(offset_value(&bytes), RecordValue::Unknown { version, bytes: kept.clone() });
        assert_eq!(group_value(&bytes), RecordValue::Unknown { version, bytes: kept });
    }
}

#[test]
fn a_kind_of_record_that_we_do_not_know_is_kept_with_its_bytes() {
    for version in [i16::MIN, -1, 3, 4, 16, 23, i16::MAX] {
        let key = Bytes::from(group_key(version, "g"));
        for value in [None, Some(Bytes::from_static(&[0, 0, 1]))] {
            let expected = OffsetsRecord::Unknown { version, key: key.clone(), value: value.clone() };
            assert_eq!(decode(Some(&key), value), expected);
        }
    }
}

#[test]
fn a_key_or_value_that_is_damaged_is_kept_with_its_bytes() {
    let value = Some(Bytes::from_static(b"value"));
    let whole = offset_key(1, "group", "topic", 3);
    let absent = [None].into_iter();
    for key in absent.chain((0..whole.len()).map(|end| Some(&whole[..end]))) {
        match decode(key, value.clone()) {
            OffsetsRecord::Damaged { key: kept, value: kept_value, error } => {
                assert_eq!((kept.as_deref(), kept_value), (key, value.clone()));
                assert!(error.to_string().contains("Key.") || error.what.starts_with("OffsetsRecord.key"));
            }
            other => panic!("{key:?}: {other:?}"),
        }
    }
    let RecordValue::Damaged { bytes, error } = offset_value(&[0, 3, 0, 0]) else { panic!("it is cut") };
    assert_eq!(&bytes[..], [0, 3, 0, 0]);
    assert_eq!(error.to_string(), "OffsetCommitValue.offset at byte 2: needs 8 bytes, 2 are left");
}

#[test]
fn nothing_else_of_a_topic_id_than_16_bytes_is_one() {
    let with_tag = |size: usize| {
        let mut bytes = encode_offset(&committed(4, 55), Order::Right);
        assert_eq!(bytes.pop(), Some(0));
        bytes.extend([1, 0, size as u8]);
        bytes.extend(vec![0; size]);
        offset_value(&bytes)
    };
    assert_eq!(with_tag(16), RecordValue::Read(committed(4, 55)), "all zeros are none");
    for size in [0, 15, 17] {
        assert!(matches!(with_tag(size), RecordValue::Damaged { .. }), "{size}");
    }
}

#[test]
fn b25_assignments_without_bytes_or_user_data_are_read() {
    assert_eq!(ConsumerAssignment::decode(Bytes::new()), Ok(ConsumerAssignment::default()));
    let bytes = encode_assignment(0, &[("t".into(), vec![2, 0])], None);
    let partitions = vec![TopicPartition::new("t", 2), TopicPartition::new("t", 0)];
    let mut expected = ConsumerAssignment { version: 0, partitions, user_data: None };
    assert_eq!(ConsumerAssignment::decode(bytes.clone().into()).as_ref(), Ok(&expected));
    // a later version, with a field that it has added
    let later: Bytes = [&[0, 9], &bytes[2..], b"new"].concat().into();
    expected.version = 9;
    assert_eq!(ConsumerAssignment::decode(later), Ok(expected));
    assert!(ConsumerAssignment::decode(Bytes::from_static(&[0xff; 20])).is_err());
}
