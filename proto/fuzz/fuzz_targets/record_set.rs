#![no_main]
//! A record set of any format and codec, from any position.

use bytes::Bytes;
use kafka_troupe_proto::kafka::compression::Decompressor;
use kafka_troupe_proto::kafka::records::{DecodeOptions, RecordBatches, TransactionFilter, extent};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (i64, bool, Vec<u8>)| {
    let (from, check_crcs, set) = input;
    let set = Bytes::from(set);
    assert!(extent(&set).complete_bytes <= set.len());
    let mut decompressor = Decompressor::new(1 << 20);
    let mut filter = TransactionFilter::default();
    let mut batches = RecordBatches::new(set, from, DecodeOptions::default().check_crcs(check_crcs));
    while let Some(Ok(batch)) = batches.next_batch(&mut decompressor) {
        filter.admits(&batch);
        let mut cursor = batch.records();
        while let Some(Ok(record)) = cursor.next() {
            assert!(record.offset >= from && record.offset < batch.next_offset);
            assert_eq!(record.headers(&batch.payload).count(), record.header_count as usize);
            let _ = (record.key(&batch.payload), record.value(&batch.payload));
        }
    }
});
