use super::{Reader, WireProblem, Writer, varint};
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

fn reader(bytes: &'static [u8]) -> Reader {
    Reader::new(Bytes::from_static(bytes))
}

#[test]
fn an_error_names_field_place_and_reason() {
    let mut r = reader(&[0, 1, 0, 9, b'a']);
    assert_eq!(r.i16("Message.first"), Ok(1));
    let error = r.string("Message.name").unwrap_err();
    assert_eq!(error.to_string(), "Message.name at byte 4: needs 9 bytes, 1 are left");
}

#[test]
fn lengths_below_null_and_null_where_a_value_is_needed_are_errors() {
    assert_eq!(reader(&[0xff, 0xff]).nullable_string("s"), Ok(None));
    assert_eq!(reader(&[0xff, 0xff]).string("s").unwrap_err().problem, WireProblem::Length(-1));
    assert_eq!(reader(&[0xff, 0xfe]).nullable_string("s").unwrap_err().problem, WireProblem::Length(-2));
    assert_eq!(reader(&[0xff; 4]).bytes("b").unwrap_err().problem, WireProblem::Length(-1));
    let null = reader(&[0xff; 4]).array("a", 1, |r| r.i8("a")).unwrap_err();
    assert_eq!(null.problem, WireProblem::Length(-1));
    assert_eq!(reader(&[0, 1, 0xff]).string("s").unwrap_err().problem, WireProblem::Utf8);
}

#[test]
fn a_count_beyond_the_frame_reserves_nothing() {
    let error = reader(&[0x7f, 0xff, 0xff, 0xff, 0]).array("a", 0, |r| r.i64("a.x")).unwrap_err();
    assert_eq!(error.problem, WireProblem::Count { count: i32::MAX as usize, left: 1 });
    let error = reader(&[0, 0, 0, 2, 0, 0, 0]).array("a", 2, |r| r.i16("a.x")).unwrap_err();
    assert_eq!(error.problem, WireProblem::Count { count: 2, left: 3 });
}

#[test]
fn a_flexible_message_counts_one_more_and_null_is_0() {
    let flexible = |bytes| reader(bytes).flexible(true);
    assert_eq!(flexible(&[3, b'a', b'b']).string("s").unwrap(), "ab".into());
    assert_eq!(flexible(&[0]).nullable_string("s"), Ok(None));
    assert_eq!(flexible(&[0]).string("s").unwrap_err().problem, WireProblem::Length(-1));
    assert_eq!(flexible(&[2, 7]).bytes("b").unwrap(), [7][..]);
    assert_eq!(flexible(&[3, 7, 8]).array("a", 1, |r| r.i8("a.x")), Ok(vec![7, 8]));
    let error = flexible(&[0xff, 0xff, 0xff, 0xff, 0x0f, 0]).array("a", 0, |r| r.i8("a.x")).unwrap_err();
    assert_eq!(error.problem, WireProblem::Count { count: u32::MAX as usize - 1, left: 1 });
    assert!(flexible(&[0xff, 0xff, 0xff, 0xff, 0x1f, 0]).string("s").is_err(), "33 bits");
}

#[test]
fn tagged_fields_are_passed_over_within_the_frame() {
    let mut r = reader(&[2, 0, 3, 9, 9, 9, 0x80, 1, 0, 5]).flexible(true);
    assert_eq!(r.tagged_fields("t"), Ok(()));
    assert_eq!(r.i8("after"), Ok(5));
    let problem = |bytes| reader(bytes).flexible(true).tagged_fields("t").unwrap_err().problem;
    assert_eq!(problem(&[2, 0, 0]), WireProblem::Count { count: 2, left: 2 });
    assert_eq!(problem(&[1, 0, 9, 1]), WireProblem::Truncated { needed: 9, left: 1 });
    assert_eq!(reader(&[7]).tagged_fields("none in a fixed message"), Ok(()));
}

#[test]
fn byte_strings_are_slices_of_the_frame() {
    let frame = Bytes::from(vec![0, 0, 0, 3, 1, 2, 3]);
    let bytes = Reader::new(frame.clone()).bytes("b").unwrap();
    assert_eq!(bytes.as_ptr(), frame[4..].as_ptr());
}

#[test]
fn bytes_after_the_last_field_are_an_error() {
    let mut r = reader(&[1, 2]);
    assert_eq!(r.bool("b"), Ok(true));
    assert_eq!(r.finish("Message").unwrap_err().problem, WireProblem::TrailingBytes(1));
}

#[test]
fn a_text_too_long_for_its_length_comes_out_at_the_end() {
    let mut w = Writer::default();
    w.string("Message.name", &"x".repeat(40_000));
    w.i32(1);
    let error = w.finish().unwrap_err();
    assert_eq!((error.what, error.problem), ("Message.name", WireProblem::TooLong(40_000)));
}

#[test]
fn varints_that_do_not_end_or_overflow_are_errors() {
    assert!(reader(&[0x80]).varint("v").is_err());
    assert!(reader(&[0xff; 11]).varlong("v").is_err());
    assert!(reader(&[0x80, 0x80, 0x80, 0x80, 0x10]).varint("v").is_err());
    assert_eq!(reader(&[0xff, 0xff, 0xff, 0xff, 0x0f]).varint("v"), Ok(i32::MIN));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn varints_survive_the_round_trip(value: i64, shift in 0..64u32) {
        let value = value >> shift;
        let mut out = BytesMut::new();
        varint::put(&mut out, value);
        let mut r = Reader::new(out.clone().freeze());
        prop_assert_eq!(r.varlong("v"), Ok(value));
        prop_assert_eq!(r.finish("v"), Ok(()));
        let narrow = Reader::new(out.freeze()).varint("v");
        prop_assert_eq!(narrow.ok(), i32::try_from(value).ok());
    }

    #[test]
    fn arbitrary_varints_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..12), at in 0..14usize) {
        if let Some((_, after)) = varint::varint(&bytes, at) {
            prop_assert!(after > at && after <= bytes.len());
        }
        if let Some((_, after)) = varint::varlong(&bytes, at) {
            prop_assert!(after > at && after <= bytes.len());
        }
    }
}
