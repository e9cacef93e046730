use crate::{SLACK, alone, arbitrary, changed, peak_of};
use bytes::Bytes;
use kafka_troupe_proto::kafka::offsets_topic::{ConsumerAssignment, OffsetsRecord, RecordValue, decode};
use kafka_troupe_proto::kafka::wire::Writer;

/// The stated limit: what is read takes at most this much per byte that it is read from.
const PER_BYTE: usize = 24;
/// Keys of offsets by 0.8.2 and since, of a group, and of a kind that we do not know.
const KEYS: [&[u8]; 4] =
    [b"\0\0\0\x01g\0\x01t\0\0\0\x03", b"\0\x01\0\x01g\0\x01t\0\0\0\x03", OF_A_GROUP, b"\0\x03\0\x01g"];
const OF_A_GROUP: &[u8] = b"\0\x02\0\x01g";
/// How many versions of values we know.
const VALUES: i16 = 5;

fn written(version: i16, write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut w = Writer::default();
    w.i16(version);
    if version >= 4 {
        w.begin_flexible();
    }
    write(&mut w);
    w.finish().expect("short texts").to_vec()
}

fn group(version: i16, members: usize) -> Vec<u8> {
    written(version, |w| {
        w.string("protocol_type", "consumer");
        w.i32(5);
        w.nullable_string("protocol", Some("range"));
        w.nullable_string("leader", None);
        if version >= 2 {
            w.i64(-1);
        }
        w.array("members", &vec![(); members], |w, ()| {
            w.string("member_id", "");
            if version >= 3 {
                w.nullable_string("group_instance_id", Some(""));
            }
            w.string("client_id", "");
            w.string("client_host", "");
            if version >= 1 {
                w.i32(6000);
            }
            w.i32(6000);
            w.nullable_bytes("subscription", Some(&[]));
            w.nullable_bytes("assignment", Some(&[]));
            w.no_tagged_fields();
        });
        w.no_tagged_fields();
    })
}

fn assignment(count: usize) -> Vec<u8> {
    written(0, |w| {
        w.array("topics", &vec![(); count], |w, ()| {
            w.string("topic", "");
            w.array("partitions", &[1], |w, partition| w.i32(*partition));
        });
        w.nullable_bytes("user_data", None);
    })
}

/// Whether the value was read.
fn stays_within(key: &[u8], value: Vec<u8>) -> bool {
    let (limit, value) = (PER_BYTE * (key.len() + value.len()) + SLACK, Bytes::from(value));
    let mut record = None;
    let peak = peak_of(|| record = Some(decode(Some(key), Some(value.clone()))));
    assert!(peak <= limit, "took {peak} of {limit} bytes: {key:?} {value:?}");
    match record {
        Some(OffsetsRecord::Offset { value: RecordValue::Read(_), .. }) => true,
        Some(OffsetsRecord::Group { value: RecordValue::Read(_), .. }) => true,
        Some(_) | None => false,
    }
}

fn assignment_stays_within(bytes: Vec<u8>) -> bool {
    let (limit, bytes) = (PER_BYTE * bytes.len() + SLACK, Bytes::from(bytes));
    let mut read = false;
    let peak = peak_of(|| {
        let assignment = ConsumerAssignment::decode(bytes);
        read = assignment.is_ok();
        assignment
    });
    assert!(peak <= limit, "took {peak} of {limit} bytes");
    read
}

/// Keys and values of real brokers of every generation, those that we can read.
fn real_records() -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    let all = include_str!("../../src/kafka/offsets_topic/tests/golden/records.txt").lines();
    all.filter_map(|line| match line.split('\t').collect::<Vec<_>>()[..] {
        [_, _, key, value, ..] if key[..4] <= *"0002" && value != "-" => Some((unhex(key), unhex(value))),
        _ => None,
    })
}

fn unhex(hex: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
    (0..hex.len()).step_by(2).map(byte).collect()
}

#[test]
fn the_decoder_of_the_offsets_topic_bounds_its_memory_on_changed_bytes() {
    alone(|| {
        // no release that we asked writes each version of a group
        let groups = (0..VALUES).map(|version| (OF_A_GROUP.to_vec(), group(version, 2)));
        for (key, value) in real_records().chain(groups) {
            assert!(stays_within(&key, value.clone()), "{key:?} {value:?} is not valid");
            changed(&value).for_each(|(_, value)| _ = stays_within(&key, value));
            changed(&key).for_each(|(_, key)| _ = stays_within(&key, value.clone()));
        }
        assert!(assignment_stays_within(assignment(2)), "not valid");
        changed(&assignment(2)).for_each(|(_, bytes)| _ = assignment_stays_within(bytes));
    });
}

#[test]
fn the_decoder_of_the_offsets_topic_bounds_its_memory_on_arbitrary_bytes() {
    alone(|| {
        for (index, bytes) in arbitrary(3000).enumerate() {
            // else most end at the version
            let versioned = [&(index as i16 % (VALUES + 1)).to_be_bytes()[..], &bytes].concat();
            for key in KEYS {
                stays_within(key, versioned.clone());
            }
            stays_within(&versioned, bytes);
            assignment_stays_within(versioned);
        }
    });
}

#[test]
fn the_decoder_of_the_offsets_topic_bounds_its_memory_on_many_small_entries() {
    alone(|| {
        for version in 0..VALUES {
            assert!(stays_within(OF_A_GROUP, group(version, 3000)), "version {version}");
        }
        assert!(assignment_stays_within(assignment(3000)));
    });
}
