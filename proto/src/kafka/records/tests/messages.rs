//! Magic 0 and 1: field case B18 (wrapper offsets and times), B14 (mixed formats), B20 (checksums).

use super::super::write_messages;
use super::*;
use crate::kafka::records::{RecordsProblem, TimestampType, extent};
use kafka_protocol::records::RecordBatchDecoder;
use std::io::Write;

const GZIP: u8 = 1;
const LOG_APPEND: u8 = 8;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("in memory");
    encoder.finish().expect("in memory")
}

/// A gzip wrapper at `offset` around messages with these stored offsets and timestamps of 100 more.
fn wrapper(magic: i8, offset: i64, attributes: u8, timestamp: i64, inner: &[i64]) -> Bytes {
    let inner: Vec<_> = inner.iter().map(|at| message(magic, *at, 0, at + 100, Some(b"v"))).collect();
    message(magic, offset, GZIP | attributes, timestamp, Some(&gzip(&joined(&inner))))
}

#[test]
fn plain_messages_read_as_the_judge_reads_them() {
    for magic in [0, 1] {
        let set = joined(&[
            message(magic, 3, 0, 33, Some(b"abc")),
            message(magic, 4, 0, 44, None),
            message(magic, 9, 0, 99, Some(b"")),
        ]);
        let judged = RecordBatchDecoder::decode_all(&mut set.clone()).expect("the judge decodes");
        let judged: Vec<Seen> = judged
            .into_iter()
            .flat_map(|set| set.records)
            .map(|record| (record.offset, record.timestamp, record.value.map(Vec::from)))
            .collect();
        assert_eq!(walk(set.clone(), 0), (judged, None));
        assert_eq!(extent(&set).next_offset, Some(10));
        assert_eq!(offsets(set, 4), [4, 9]);
    }
}

#[test]
fn inner_offsets_of_magic_1_count_back_from_the_last() {
    assert_eq!(offsets(wrapper(1, 42, 0, 7, &[0, 1, 2]), 0), [40, 41, 42]);
    assert_eq!(offsets(wrapper(1, 42, 0, 7, &[0, 2]), 0), [40, 42]);
    assert_eq!(offsets(wrapper(1, 42, 0, 7, &[5]), 0), [42]);
}

#[test]
fn inner_offsets_of_magic_0_are_absolute() {
    assert_eq!(offsets(wrapper(0, 42, 0, 0, &[40, 41, 42]), 0), [40, 41, 42]);
    assert_eq!(offsets(wrapper(0, 42, 0, 0, &[40, 42]), 0), [40, 42]);
}

#[test]
fn a_position_within_a_wrapper_gives_nothing_again() {
    assert_eq!(offsets(wrapper(1, 42, 0, 7, &[0, 1, 2]), 41), [41, 42]);
    assert_eq!(offsets(wrapper(0, 42, 0, 7, &[40, 41, 42]), 42), [42]);
    assert_eq!(offsets(wrapper(1, 42, 0, 7, &[0, 1, 2]), 43), [0; 0]);
    assert_eq!(extent(&wrapper(1, 42, 0, 7, &[0, 1, 2])).next_offset, Some(43));
}

#[test]
fn the_broker_s_time_on_a_wrapper_overrides_those_within() {
    let times = |set: Bytes| walk(set, 0).0.into_iter().map(|(_, time, _)| time).collect::<Vec<_>>();
    assert_eq!(times(wrapper(1, 42, LOG_APPEND, 7, &[0, 1])), [7, 7]);
    assert_eq!(times(wrapper(1, 42, 0, 7, &[0, 1])), [100, 101]);
    assert_eq!(times(wrapper(0, 42, 0, 7, &[41, 42])), [-1, -1]);
}

#[test]
fn a_wrapper_has_the_fields_of_a_batch() {
    let set = wrapper(1, 42, LOG_APPEND, 7, &[0, 2]);
    let mut batches = RecordBatches::new(set, 0, DecodeOptions::default());
    let batch = batches.next_batch(&mut Decompressor::default()).unwrap().unwrap();
    assert_eq!((batch.magic, batch.base_offset, batch.next_offset, batch.record_count), (1, 40, 43, 2));
    assert_eq!((batch.timestamp_type, batch.max_timestamp), (TimestampType::LogAppend, 7));
    assert_eq!((batch.producer_id, batch.leader_epoch, batch.is_control), (-1, -1, false));
}

#[test]
fn formats_may_mix_within_a_set() {
    let value = Some(&b"v"[..]);
    let mut sets: Vec<_> = (0..3).map(|offset| message(0, offset, 0, 0, value)).collect();
    sets.push(wrapper(0, 4, 0, 0, &[3, 4]));
    sets.extend((5..8).map(|offset| message(1, offset, 0, offset, value)));
    sets.push(wrapper(1, 9, 0, 7, &[0, 1]));
    sets.push(batch(10, &[b"a", b"b", b"c", b"d", b"e"]));
    assert_eq!(offsets(joined(&sets), 0), (0..15).collect::<Vec<_>>());
    for from in 0..15 {
        assert_eq!(offsets(joined(&sets), from), (from..15).collect::<Vec<_>>());
    }
}

#[test]
fn a_damaged_message_ends_the_walk_at_its_offset_and_can_be_stepped_over() {
    let mut set: Vec<_> = (0..5).map(|offset| message(1, offset, 0, 0, Some(b"value"))).collect();
    let mut damaged = set[3].to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    set[3] = damaged.into();
    let (seen, error) = walk(joined(&set), 0);
    let error = error.expect("an error");
    assert_eq!(seen.len(), 3);
    assert_eq!((error.offset, error.resume_at), (3, 4));
    assert!(matches!(*error.problem, RecordsProblem::Checksum { .. }));
    assert_eq!(offsets(joined(&set), error.resume_at), [4]);
}

#[test]
fn checksums_with_the_top_bit_set_pass() {
    let messages = (0..1000_i64).map(|offset| message(1, offset, 0, offset * 7919, Some(b"some value")));
    let set: Vec<_> = messages.collect();
    assert!(set.iter().any(|message| message[12] >= 0x80), "no such checksum among them");
    assert_eq!(offsets(joined(&set), 0).len(), 1000);
}

#[test]
fn a_wrapper_within_a_wrapper_is_an_error() {
    let inner = wrapper(1, 0, 0, 0, &[0]);
    let set = message(1, 5, GZIP, 0, Some(&gzip(&inner)));
    assert!(walk(set, 0).1.expect("an error").to_string().contains("a wrapper within a wrapper"));
}

#[test]
fn a_wrapper_without_value_or_with_a_cut_inner_set_is_an_error() {
    assert!(walk(message(1, 5, GZIP, 0, None), 0).1.is_some());
    let inner = message(1, 0, 0, 0, Some(b"abc"));
    let cut = message(1, 5, GZIP, 0, Some(&gzip(&inner[..inner.len() - 1])));
    assert!(walk(cut, 0).1.expect("an error").to_string().contains("the inner set is cut"));
    let nothing = message(1, 5, GZIP, 0, Some(&gzip(b"")));
    assert_eq!(walk(nothing, 0), (vec![], None));
}

#[test]
fn a_set_cut_anywhere_gives_its_whole_messages() {
    let one = message(1, 0, 0, 0, Some(b"value"));
    let set = joined(&[one.clone(), message(1, 1, 0, 0, Some(b"other"))]);
    for end in 0..set.len() {
        assert_eq!(offsets(set.slice(..end), 0).len(), end / one.len(), "cut at {end}");
    }
}

#[test]
fn messages_that_are_written_are_read_as_they_were() {
    for (magic, timestamp) in [(0, -1), (1, 1234)] {
        let records = [
            NewRecord { timestamp: 1234, key: None, value: Some(b"first"), headers: &[] },
            NewRecord { timestamp: 1234, key: Some(b"key"), value: None, headers: &[] },
            NewRecord { timestamp: 1234, key: Some(b""), value: Some(b""), headers: &[] },
        ];
        let set = write_messages(magic, &records).expect("small enough");
        let (seen, error) = walk(set.clone(), 0);
        assert_eq!(error, None);
        let values = [Some(b"first".to_vec()), None, Some(Vec::new())];
        let expected: Vec<_> = (0..).zip(values).map(|(offset, value)| (offset, timestamp, value)).collect();
        assert_eq!(seen, expected);
        // as the tests' own writer, which real brokers were held against
        assert_eq!(
            set[..message(magic, 0, 0, 1234, Some(b"first")).len()],
            message(magic, 0, 0, 1234, Some(b"first"))
        );
    }
}
