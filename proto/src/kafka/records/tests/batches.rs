use super::*;
use crate::kafka::compression::Compression;
use crate::kafka::records::{ControlType, PartialBatch, RecordsProblem, TimestampType, extent};

fn only_batch(set: Bytes) -> super::super::RecordBatch {
    let mut batches = RecordBatches::new(set, 0, DecodeOptions::default());
    batches.next_batch(&mut Decompressor::default()).expect("one batch").expect("a good batch")
}

#[test]
fn null_is_not_empty_and_headers_keep_their_order_and_repeats() {
    let headers: [(&str, Option<&[u8]>); 3] = [("a", Some(b"1")), ("b", None), ("a", Some(b""))];
    let mut writer = RecordBatchWriter::new(0);
    writer.push(&NewRecord { key: Some(b"k"), value: None, ..NewRecord::default() });
    writer.push(&NewRecord { key: None, value: Some(b"v"), ..NewRecord::default() });
    writer.push(&NewRecord { key: Some(b""), value: Some(b""), headers: &headers, ..NewRecord::default() });
    let batch = only_batch(writer.finish().unwrap());
    let mut cursor = batch.records();
    let mut next = || cursor.next().unwrap().unwrap();
    let (first, second, third) = (next(), next(), next());
    assert!(cursor.next().is_none() && cursor.next().is_none());
    let payload = &batch.payload;
    assert_eq!((first.key(payload), first.value(payload)), (Some(&b"k"[..]), None));
    assert_eq!((second.key(payload), second.value(payload)), (None, Some(&b"v"[..])));
    assert_eq!((third.key(payload), third.value(payload)), (Some(&b""[..]), Some(&b""[..])));
    assert_eq!((first.header_count, first.headers(payload).count()), (0, 0));
    let got: Vec<_> = third.headers(payload).map(|h| (h.name().into_owned(), h.value)).collect();
    assert_eq!(got, headers.map(|(key, value)| (key.to_owned(), value)));
}

#[test]
fn compaction_leaves_gaps_and_empty_batches_and_the_position_passes_them() {
    let mut gapped = RecordBatchWriter::new(10);
    gapped.push_at(12, &NewRecord::default());
    gapped.push_at(17, &NewRecord::default());
    let empty = RecordBatchWriter::new(30).end_at(40).finish().unwrap();
    let set = joined(&[gapped.end_at(20).finish().unwrap(), empty.clone()]);
    assert_eq!(offsets(set.clone(), 0), [12, 17]);
    assert_eq!(extent(&set).next_offset, Some(40));
    let batch = only_batch(empty);
    assert_eq!((batch.record_count, batch.next_offset, batch.records().position()), (0, 40, 40));
}

#[test]
fn control_batches_hold_no_records() {
    for (kind, expected) in [(0, ControlType::Abort), (1, ControlType::Commit), (7, ControlType::Other(7))] {
        let mut marker = RecordBatchWriter::new(5).transactional(9, 3).control();
        marker.push(&NewRecord { key: Some(&[0, 0, 0, kind]), value: Some(&[0; 6]), ..NewRecord::default() });
        let set = marker.finish().unwrap();
        assert_eq!(offsets(set.clone(), 0), [0; 0]);
        let batch = only_batch(set);
        assert!(batch.is_control && batch.is_transactional);
        assert_eq!((batch.producer_id, batch.producer_epoch, batch.next_offset), (9, 3, 6));
        assert_eq!(batch.control_type(), Some(expected));
    }
    assert_eq!(only_batch(batch(0, &[b"data"])).control_type(), None);
}

#[test]
fn the_broker_s_time_overrides_the_producer_s() {
    let plain = batch(0, &[b"a", b"b"]);
    assert_eq!(only_batch(plain.clone()).timestamp_type, TimestampType::Create);
    let appended = patched(&patched(&plain, 21, &[0, 0x08]), 35, &5000_i64.to_be_bytes());
    assert_eq!(only_batch(appended.clone()).timestamp_type, TimestampType::LogAppend);
    let times: Vec<_> = walk(appended, 0).0.into_iter().map(|(_, time, _)| time).collect();
    assert_eq!(times, [5000, 5000]);
}

#[test]
fn records_before_the_position_are_passed_over() {
    let set = joined(&[batch(0, &[b"a", b"b", b"c"]), batch(3, &[b"d", b"e"])]);
    for from in 0..6 {
        assert_eq!(offsets(set.clone(), from), (from..5).collect::<Vec<_>>());
    }
    // a batch wholly before the position is not even checked
    let mut damaged = set.to_vec();
    damaged[62] ^= 1;
    assert_eq!(offsets(damaged, 3), [3, 4]);
}

#[test]
fn a_cursor_tells_its_position_and_skips_under_way() {
    let batch = only_batch(batch(7, &[b"a", b"b", b"c", b"d"]));
    let mut cursor = batch.records();
    assert_eq!((cursor.position(), cursor.remaining()), (7, 4));
    cursor.next().unwrap().unwrap();
    assert_eq!((cursor.position(), cursor.remaining()), (8, 3));
    cursor.skip_below(10);
    assert_eq!(cursor.next().unwrap().unwrap().offset, 10);
    assert_eq!(cursor.position(), 11);
}

#[test]
fn a_set_cut_anywhere_gives_its_whole_batches_and_names_the_rest() {
    let set = joined(&[batch(0, &[b"a", b"b"]), batch(2, &[b"c"]), batch(3, &[b"d"])]);
    let whole = [0, batch(0, &[b"a", b"b"]).len(), set.len() - batch(3, &[b"d"]).len(), set.len()];
    for end in 0..=set.len() {
        let cut = set.slice(..end);
        let batches = whole.iter().rposition(|at| *at <= end).unwrap();
        assert_eq!(offsets(cut.clone(), 0).len(), [0, 2, 3, 4][batches], "cut at {end}");
        let extent = extent(&cut);
        assert_eq!((extent.entries, extent.complete_bytes), (batches, whole[batches]));
        assert_eq!(extent.next_offset, [None, Some(2), Some(3), Some(4)][batches]);
        assert_eq!(extent.is_oversize(), batches == 0 && end > 0, "cut at {end}");
        let present = end - whole[batches];
        assert_eq!(extent.partial.map(|partial| partial.present), (present > 0).then_some(present));
    }
}

#[test]
fn an_oversize_batch_is_told_with_offset_and_size() {
    let large = batch(41, &[&[7; 500]]);
    let mut batches = RecordBatches::new(large.slice(..100), 41, DecodeOptions::default());
    assert!(batches.next_batch(&mut Decompressor::default()).is_none());
    let expected = PartialBatch { present: 100, base_offset: Some(41), size: Some(large.len()) };
    assert_eq!(batches.partial(), Some(expected));
}

#[test]
fn a_flipped_bit_is_an_error_after_the_batches_before_it() {
    let (good, bad) = (batch(0, &[b"a", b"b"]), batch(2, &[b"c", b"d"]));
    for at in 17..bad.len() {
        let mut flipped = bad.to_vec();
        flipped[at] ^= 0x40;
        let (seen, error) = walk(joined(&[good.clone(), flipped.into(), batch(4, &[b"e"])]), 0);
        assert_eq!(seen.len(), 2, "flip at {at}");
        let error = error.expect("an error");
        assert_eq!(error.offset, 2, "flip at {at}: {error}");
        assert!(error.resume_at > 2, "flip at {at}: {error}");
    }
}

#[test]
fn one_may_step_over_a_damaged_batch() {
    let mut set = joined(&[batch(0, &[b"a", b"b"]), batch(2, &[b"c"])]).to_vec();
    set[70] ^= 1;
    let (_, error) = walk(set.clone(), 0);
    let error = error.expect("an error");
    assert!(matches!(*error.problem, RecordsProblem::Checksum { .. }));
    assert_eq!((error.offset, error.resume_at), (0, 2));
    assert!(error.to_string().starts_with("records from offset 0: checksum 0x"), "{error}");
    assert!(error.to_string().ends_with("; to step over them, set the position to 2"), "{error}");
    assert_eq!(offsets(set, error.resume_at), [2]);
}

#[test]
fn checksums_may_be_left_unchecked() {
    let mut set = batch(0, &[b"abc"]).to_vec();
    let last = set.len() - 2;
    set[last] = b'x';
    let (seen, error) = walk_with(set, 0, DecodeOptions::default().check_crcs(false));
    assert_eq!((seen, error), (vec![(0, 1000, Some(b"abx".to_vec()))], None));
}

#[test]
fn an_unknown_magic_is_named() {
    let mut set = batch(6, &[b"a"]).to_vec();
    set[16] = 3;
    let error = walk(set, 0).1.expect("an error");
    assert_eq!((error.offset, *error.problem), (6, RecordsProblem::Magic(3)));
}

#[test]
fn counts_and_deltas_that_lie_are_errors() {
    let set = batch(0, &[b"a", b"b"]);
    let lies: [(usize, &[u8]); 6] = [
        (57, &i32::MAX.to_be_bytes()), // more records than bytes
        (57, &(-1_i32).to_be_bytes()), // a negative count
        (57, &1_i32.to_be_bytes()),    // fewer records than bytes
        (57, &3_i32.to_be_bytes()),    // one more than there is
        (23, &0_i32.to_be_bytes()),    // an offset after the last
        (23, &(-1_i32).to_be_bytes()), // a negative last offset delta
    ];
    for (at, bytes) in lies {
        let error = walk(patched(&set, at, bytes), 0).1;
        assert!(error.is_some(), "{bytes:?} at {at}");
    }
    let beyond = patched(&set, 0, &i64::MAX.to_be_bytes());
    assert_eq!(*walk(beyond, 0).1.expect("an error").problem, RecordsProblem::Offset(1));
}

#[test]
fn the_codec_is_named_when_it_fails() {
    let set = writer(3, &[b"a"]).finish_compressed(Compression::Zstd, b"not zstd").unwrap();
    let error = walk(set, 0).1.expect("an error");
    assert!(error.to_string().starts_with("records from offset 3: corrupt zstd data: "), "{error}");
    let unknown = patched(&batch(3, &[b"a"]), 21, &[0, 7]);
    let error = walk(unknown, 0).1.expect("an error");
    assert!(error.to_string().contains("codec number 7 is unknown"), "{error}");
}
