use crate::{SLACK, alone, arbitrary, changed, peak_of};
use bytes::{Bytes, BytesMut};
use kafka_protocol::records::{Compression, Record, RecordBatchEncoder, RecordEncodeOptions, TimestampType};
use kafka_troupe_proto::kafka::compression::Decompressor;
use kafka_troupe_proto::kafka::records::{DecodeOptions, Range32, RecordBatches, extent};

/// What a batch may decompress to.
const LIMIT: usize = 64 << 10;
/// The stated limit: an output that grows is held twice while it is copied, and the decoder of gzip takes some 64 KiB.
const MOST: usize = 2 * LIMIT + (64 << 10) + SLACK;

fn record(offset: i64) -> Record {
    Record {
        transactional: false,
        control: false,
        partition_leader_epoch: 0,
        producer_id: -1,
        producer_epoch: -1,
        timestamp_type: TimestampType::Creation,
        offset,
        sequence: 0,
        timestamp: 1_600_000_000_000 + offset,
        key: Some(Bytes::from_static(b"key")),
        value: Some(Bytes::from(vec![b'v'; 40])),
        headers: Default::default(),
    }
}

/// A set of one batch (or wrapper) per magic and codec.
fn sets() -> Vec<Vec<u8>> {
    use Compression::{Gzip, Lz4, None, Snappy, Zstd};
    let records: Vec<_> = (0..3).map(record).collect();
    let all = [0, 1, 2].into_iter().flat_map(|version| [None, Gzip, Snappy, Lz4, Zstd].map(|c| (version, c)));
    // the judge knows nothing of the wrong check byte that lz4 has in magic 0, and zstd came with magic 2
    all.filter(|(version, codec)| *version == 2 || *codec != Zstd && (*version, *codec) != (0, Lz4))
        .map(|(version, compression)| {
            let mut set = BytesMut::new();
            let options = RecordEncodeOptions { version, compression };
            RecordBatchEncoder::encode(&mut set, &records, &options).expect("the judge encodes");
            set.to_vec()
        })
        .collect()
}

/// Walks all there is, without the checksums that would end it early. Answers how many records there were.
fn walk(set: Bytes, decompressor: &mut Decompressor) -> usize {
    let _ = extent(&set);
    let options = DecodeOptions::default().check_crcs(false);
    let mut batches = RecordBatches::new(set, i64::MIN, options);
    let mut steps = 0;
    while let Some(Ok(batch)) = batches.next_batch(decompressor) {
        let _ = batch.control_type();
        let mut cursor = batch.records();
        while let Some(Ok(record)) = cursor.next() {
            steps += 1 + record.headers(&batch.payload).count();
        }
        assert!(steps <= 2 * LIMIT, "an endless walk");
    }
    steps
}

fn stays_within(set: Vec<u8>) -> usize {
    let set = Bytes::from(set);
    let mut walked = 0;
    let peak = peak_of(|| {
        let mut decompressor = Decompressor::new(LIMIT);
        walked = walk(set, &mut decompressor);
        decompressor
    });
    assert!(peak <= MOST, "took {peak} of {MOST} bytes");
    walked
}

#[test]
fn record_sets_bound_their_memory_on_changed_bytes() {
    alone(|| {
        for set in sets() {
            assert_eq!(stays_within(set.clone()), 3, "not valid");
            changed(&set).for_each(|(_, set)| _ = stays_within(set));
        }
    });
}

#[test]
fn record_sets_bound_their_memory_on_arbitrary_bytes() {
    alone(|| {
        for (index, mut set) in arbitrary(3000).enumerate() {
            if set.len() > 61 {
                // else most end at the first size or magic
                let size = set.len() as i32 - 12;
                set[..8].copy_from_slice(&5_i64.to_be_bytes());
                set[8..12].copy_from_slice(&size.to_be_bytes());
                set[16] = (index % 3) as u8;
            }
            stays_within(set);
        }
    });
}

#[test]
fn b19_a_batch_of_zeros_takes_its_size_and_little_more() {
    const ZEROS: usize = 10_000_000;
    alone(|| {
        for compression in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
            let zeros = Record { value: Some(Bytes::from(vec![0; ZEROS])), ..record(0) };
            let mut set = BytesMut::new();
            let options = RecordEncodeOptions { version: 2, compression };
            RecordBatchEncoder::encode(&mut set, &[zeros], &options).expect("the judge encodes");
            let set = set.freeze();
            let mut decompressor = Decompressor::new(ZEROS + 100);
            let peak = peak_of(|| {
                let mut batches = RecordBatches::new(set, 0, DecodeOptions::default());
                let batch = batches.next_batch(&mut decompressor).expect("a batch").expect("a good batch");
                let value = batch.records().next().expect("a record").expect("a good record").value;
                assert_eq!(value.map(Range32::len), Some(ZEROS));
                batch
            });
            // gzip and zstd are told their size, lz4 and framed snappy grow block by block
            let grows = matches!(compression, Compression::Lz4 | Compression::Snappy);
            let most = if grows { 2 * ZEROS } else { ZEROS };
            assert!(peak <= most + (512 << 10), "{compression:?}: took {peak} bytes");
        }
    });
}
