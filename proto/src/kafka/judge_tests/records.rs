//! Of magic 2 only: the judge gives every message of magic 0 and 1 the offset 0.

use super::judge_text;
use crate::kafka::compression::Decompressor;
use crate::kafka::records::{DecodeOptions, NewRecord, RecordBatchWriter, RecordBatches, extent};
use bytes::{Bytes, BytesMut};
use indexmap::IndexMap;
use kafka_protocol::records::{
    Compression, Record, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

type Field = Option<Vec<u8>>;
type RecordTuple = (i64, Field, Field, Vec<(String, Field)>);

fn field() -> impl Strategy<Value = Field> {
    option::of(vec(any::<u8>(), 0..80))
}

fn records() -> impl Strategy<Value = Vec<RecordTuple>> {
    let headers = vec(("[a-z]{0,5}", field()), 0..3);
    vec((1_600_000_000_000..1_602_000_000_000i64, field(), field(), headers), 1..12)
}

fn judge_records(base: i64, records: &[RecordTuple]) -> Vec<Record> {
    records
        .iter()
        .enumerate()
        .map(|(index, (timestamp, key, value, headers))| Record {
            transactional: false,
            control: false,
            partition_leader_epoch: 3,
            producer_id: -1,
            producer_epoch: -1,
            timestamp_type: TimestampType::Creation,
            offset: base + index as i64,
            sequence: index as i32,
            timestamp: *timestamp,
            key: key.clone().map(Bytes::from),
            value: value.clone().map(Bytes::from),
            headers: headers
                .iter()
                .map(|(k, v)| (judge_text(k), v.clone().map(Bytes::from)))
                .collect::<IndexMap<_, _>>(),
        })
        .collect()
}

fn walk(set: Bytes, from: i64) -> Vec<(i64, RecordTuple)> {
    let mut decompressor = Decompressor::default();
    let mut batches = RecordBatches::new(set, from, DecodeOptions::default());
    let mut all = Vec::new();
    while let Some(batch) = batches.next_batch(&mut decompressor) {
        let batch = batch.expect("a good batch");
        let mut cursor = batch.records();
        while let Some(record) = cursor.next() {
            let record = record.expect("a good record");
            let bytes = |field: Option<&[u8]>| field.map(<[u8]>::to_vec);
            let headers = record.headers(&batch.payload).map(|h| (h.name().into_owned(), bytes(h.value)));
            let (key, value) = (bytes(record.key(&batch.payload)), bytes(record.value(&batch.payload)));
            all.push((record.offset, (record.timestamp, key, value, headers.collect())));
        }
    }
    assert_eq!(batches.partial(), None);
    all
}

/// The judge keeps headers in a map: a repeated key leaves its last value in its first place.
fn without_repeats(headers: &[(String, Field)]) -> Vec<(String, Field)> {
    headers.iter().cloned().collect::<IndexMap<_, _>>().into_iter().collect()
}

fn expected(base: i64, records: &[RecordTuple]) -> Vec<(i64, RecordTuple)> {
    records
        .iter()
        .enumerate()
        .map(|(index, (timestamp, key, value, headers))| {
            let headers = without_repeats(headers);
            (base + index as i64, (*timestamp, key.clone(), value.clone(), headers))
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn what_the_judge_writes_we_read(
        codec in 0..5usize,
        base in 0..1_000_000_000_000i64,
        skip in 0..12i64,
        records in records(),
    ) {
        let codecs =
            [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
        let options = RecordEncodeOptions { version: 2, compression: codecs[codec] };
        let mut set = BytesMut::new();
        let written = judge_records(base, &records);
        RecordBatchEncoder::encode(&mut set, &written, &options).expect("the judge encodes");
        prop_assert_eq!(extent(&set).next_offset, Some(base + records.len() as i64));
        let mut expected = expected(base, &records);
        expected.retain(|(offset, _)| *offset >= base + skip);
        prop_assert_eq!(walk(set.freeze(), base + skip), expected);
    }

    #[test]
    fn what_we_write_the_judge_reads(base in 0..1_000_000_000_000i64, mut records in records()) {
        // the judge takes a null header value for a length
        records.iter_mut().flat_map(|record| &mut record.3).for_each(|header| {
            header.1.get_or_insert_default();
        });
        let mut writer = RecordBatchWriter::new(base);
        for (timestamp, key, value, headers) in &records {
            let headers: Vec<_> = headers.iter().map(|(k, v)| (k.as_str(), v.as_deref())).collect();
            writer.push(&NewRecord {
                timestamp: *timestamp, key: key.as_deref(), value: value.as_deref(), headers: &headers,
            });
        }
        let set = writer.finish().expect("we encode");
        let judged = RecordBatchDecoder::decode(&mut set.clone()).expect("the judge decodes").records;
        let judged: Vec<_> = judged.into_iter().map(|r| {
            let headers = r.headers.iter().map(|(k, v)| (k.to_string(), v.as_deref().map(<[u8]>::to_vec)));
            let headers = headers.collect();
            (r.offset, (r.timestamp, r.key.map(Vec::from), r.value.map(Vec::from), headers))
        }).collect();
        prop_assert_eq!(judged, expected(base, &records));
    }
}
