use super::*;
use crate::kafka::fetch::AbortedTransaction;
use crate::kafka::records::TransactionFilter;

fn data(base: i64, producer: i64) -> Bytes {
    writer(base, &[b"v"]).transactional(producer, 0).finish().expect("small enough")
}

fn marker(base: i64, producer: i64, kind: u8) -> Bytes {
    let mut writer = RecordBatchWriter::new(base).transactional(producer, 0).control();
    writer.push(&NewRecord { key: Some(&[0, 0, 0, kind]), ..NewRecord::default() });
    writer.finish().expect("small enough")
}

fn admitted(sets: &[Bytes], aborted: &[(i64, i64)]) -> Vec<i64> {
    admitted_from(0, sets, aborted)
}

fn admitted_from(from: i64, sets: &[Bytes], aborted: &[(i64, i64)]) -> Vec<i64> {
    let aborted = aborted.iter().map(|(producer_id, first)| AbortedTransaction::new(*producer_id, *first));
    let mut filter = TransactionFilter::new(aborted.collect());
    let mut batches = RecordBatches::new(joined(sets), from, DecodeOptions::default());
    let mut offsets = Vec::new();
    while let Some(batch) = batches.next_batch(&mut Decompressor::default()) {
        let batch = batch.expect("a good batch");
        if filter.admits(&batch) {
            offsets.push(batch.base_offset);
        }
    }
    offsets
}

#[test]
fn aborted_transactions_are_left_out_and_others_between_them_stay() {
    const ABORT: u8 = 0;
    const COMMIT: u8 = 1;
    let set = [
        data(0, 7),        // aborted at 3
        data(1, 8),        // committed at 4
        batch(2, &[b"v"]), // of no transaction
        marker(3, 7, ABORT),
        marker(4, 8, COMMIT),
        data(5, 7), // committed at 6
        marker(6, 7, COMMIT),
        data(7, 8), // aborted at 9
        data(8, 7), // still open, below the last stable offset by the broker's word
        marker(9, 8, ABORT),
    ];
    assert_eq!(admitted(&set, &[(8, 7), (7, 0)]), [1, 2, 5, 8]);
    assert_eq!(admitted(&set, &[]), [0, 1, 2, 5, 7, 8]);
}

#[test]
fn a_transaction_that_began_before_the_set_is_left_out_too() {
    assert_eq!(admitted(&[data(10, 7), marker(11, 7, 0), data(12, 7)], &[(7, 3)]), [12]);
}

#[test]
fn a_transaction_that_ended_before_the_position_takes_nothing_after_it() {
    // the set was fetched from 0, and is read again from 5: the marker at 3 lies before that
    let set = [data(0, 7), marker(3, 7, 0), data(5, 7), marker(6, 7, 1)];
    assert_eq!(admitted_from(5, &set, &[(7, 0)]), [5]);
    assert_eq!(admitted_from(1, &set, &[(7, 0)]), [5]);
}

#[test]
fn a_bad_marker_can_be_stepped_over() {
    let mut bad = marker(1, 7, 0).to_vec();
    bad[30] ^= 1;
    let set = joined(&[data(0, 7), bad.into(), batch(2, &[b"v"])]);
    let error = walk(set.clone(), 0).1.expect("an error");
    assert_eq!((error.offset, error.resume_at), (1, 2));
    assert_eq!(offsets(set, error.resume_at), [2]);
}
