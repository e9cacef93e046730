use super::{FetchDecoder, FetchPart, FetchRequest, FetchResponse};
use crate::kafka::frame::{Response, encode_request};
use crate::kafka::wire::{WireError, WireProblem, Writer};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

/// A version 4 response with one partition whose records claim `size` bytes, of which `present` follow.
fn response(aborted: i32, size: i32, present: usize) -> Bytes {
    let mut out = Writer::default();
    out.i32(0);
    out.i32(1);
    out.string("topic", "t");
    out.i32(1);
    out.i32(3);
    out.i16(0);
    out.i64(10);
    out.i64(9);
    out.i32(aborted);
    out.i32(size);
    (0..present).for_each(|_| out.i8(0));
    out.finish().expect("short strings").freeze()
}

fn drive(decoder: &mut FetchDecoder, body: &[u8]) -> Result<Vec<FetchPart>, WireError> {
    let (mut at, mut parts) = (0, Vec::new());
    while let Some((part, consumed)) = decoder.next(&body[at..])? {
        at += consumed;
        if let FetchPart::Partition { records_size, .. } = &part {
            at += records_size;
        }
        parts.push(part);
        if parts.last() == Some(&FetchPart::End) {
            return Ok(parts);
        }
    }
    panic!("more is asked for than there is, after {parts:?}");
}

#[test]
fn parts_come_in_order() {
    let body = response(-1, 5, 5);
    let parts = drive(&mut FetchDecoder::new(4, body.len()).unwrap(), &body).unwrap();
    assert!(matches!(&parts[0], FetchPart::Head(head) if head.session_id == 0));
    assert_eq!(parts[1], FetchPart::Topic("t".into()));
    assert!(
        matches!(&parts[2], FetchPart::Partition { partition, records_size: 5 } if partition.partition == 3)
    );
    assert_eq!(parts[3..], [FetchPart::End]);
}

#[test]
fn records_beyond_the_body_are_refused_before_anything_is_reserved_for_them() {
    let body = response(-1, i32::MAX, 5);
    let error = drive(&mut FetchDecoder::new(4, body.len()).unwrap(), &body).unwrap_err();
    assert_eq!((error.what, error.at), ("FetchResponse.topics.partitions.records", 41));
    assert_eq!(error.problem, WireProblem::Length(i32::MAX.into()));
    let error = FetchResponse::decode(4, body).unwrap_err();
    assert_eq!(
        error.to_string(),
        "FetchResponse.topics.partitions.records at byte 45: needs 2147483647 bytes, 5 are left"
    );
}

#[test]
fn a_count_of_aborted_transactions_is_bounded_by_the_body() {
    let body = response(i32::MAX, 0, 0);
    let error = drive(&mut FetchDecoder::new(4, body.len()).unwrap(), &body).unwrap_err();
    assert!(matches!(error.problem, WireProblem::Count { .. }), "{error}");
}

#[test]
fn bytes_after_the_last_partition_are_an_error() {
    let body = response(-1, 2, 4);
    let error = drive(&mut FetchDecoder::new(4, body.len()).unwrap(), &body).unwrap_err();
    assert_eq!(error.problem, WireProblem::TrailingBytes(2));
    assert!(FetchResponse::decode(4, body).is_err());
}

#[test]
fn versions_that_we_do_not_speak_are_refused() {
    let request = FetchRequest {
        max_wait_ms: 0,
        min_bytes: 0,
        max_bytes: 0,
        read_committed: false,
        session_id: 0,
        session_epoch: super::NO_SESSION_EPOCH,
        topics: Vec::new(),
        forgotten: Vec::new(),
        rack: "".into(),
    };
    let error = encode_request(&request, 12, 0, "").unwrap_err();
    assert_eq!(error.to_string(), "FetchRequest at byte 0: version 12 is outside 0 to 11");
    assert!(FetchDecoder::new(-1, 0).is_err());
    assert!(FetchResponse::decode(12, Bytes::new()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn arbitrary_bytes_end_the_walk(body in vec(any::<u8>(), 0..200), version in 0..=11i16) {
        let mut decoder = FetchDecoder::new(version, body.len()).expect("a version of ours");
        let whole = FetchResponse::decode(version, body.clone().into());
        // both refuse, or both accept, but for a null array, which only the whole decode refuses
        let walked = drive(&mut decoder, &body);
        prop_assert!(whole.is_err() || walked.is_ok());
    }
}
