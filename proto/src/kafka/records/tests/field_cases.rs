//! The field cases of decoding by their numbers, where one set shows them; `compression` has what concerns codecs alone.

use super::*;
use crate::kafka::compression::Compression;
use crate::kafka::records::{RecordsProblem, TimestampType, extent};
use std::io::Write;

const GZIP: u8 = 1;
const SNAPPY: u8 = 2;
const LZ4: u8 = 3;
const LOG_APPEND: u8 = 8;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("in memory");
    encoder.finish().expect("in memory")
}

/// One stored block, in a frame whose header ends with this check byte.
fn lz4(bytes: &[u8], check: u8) -> Vec<u8> {
    let stored = (bytes.len() as u32 | 1 << 31).to_le_bytes();
    [&[0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, check][..], &stored, bytes, &[0; 4]].concat()
}

const RIGHT_CHECK: u8 = 0x82;
const OLD_CHECK: u8 = 0x1a;

/// Messages with these offsets, and timestamps of 100 more.
fn messages(magic: i8, offsets: &[i64]) -> Bytes {
    let all: Vec<_> = offsets.iter().map(|at| message(magic, *at, 0, at + 100, Some(b"v"))).collect();
    joined(&all)
}

fn times(set: &Bytes) -> Vec<(TimestampType, Vec<i64>)> {
    let mut batches = RecordBatches::new(set.clone(), 0, DecodeOptions::default());
    let mut all = Vec::new();
    while let Some(batch) = batches.next_batch(&mut Decompressor::default()) {
        let batch = batch.expect("a good batch");
        let mut cursor = batch.records();
        let mut times = Vec::new();
        while let Some(record) = cursor.next() {
            times.push(record.expect("a good record").timestamp);
        }
        all.push((batch.timestamp_type, times));
    }
    all
}

#[test]
fn b12_an_entry_cut_at_every_byte_is_no_data_and_no_error() {
    let small: Vec<_> = (0..4).map(|offset| message(0, offset, 0, 0, Some(&[7; 300]))).collect();
    let large = message(0, 4, 0, 0, Some(&[8; 5000]));
    let set = joined(&[joined(&small), large.clone()]);
    let mut whole = 0;
    for end in 0..=set.len() {
        let cut = set.slice(..end);
        let seen = offsets(cut.clone(), 0).len();
        assert!(seen >= whole, "fewer messages at {end}");
        whole = seen;
        let next = extent(&cut).next_offset;
        assert_eq!(next, (seen > 0).then_some(seen as i64), "cut at {end}");
    }
    assert_eq!(whole, 5);
    // asked for from 4, with a fetch size of 1,000: nothing that any refetch of that size cures
    let oversize = extent(&large[..1000]);
    assert!(oversize.is_oversize());
    assert_eq!(oversize.partial.and_then(|partial| partial.size), Some(large.len()));
}

#[test]
fn b14_three_formats_in_one_reply() {
    let headers: [(&str, Option<&[u8]>); 1] = [("h", Some(b"1"))];
    let mut writer = RecordBatchWriter::new(10);
    for offset in 10..15 {
        writer.push(&NewRecord { timestamp: offset + 100, headers: &headers, ..NewRecord::default() });
    }
    let compressed = gzip(writer.payload());
    let set = joined(&[
        messages(0, &[0, 1]),
        message(0, 4, GZIP, 0, Some(&gzip(&messages(0, &[2, 3, 4])))),
        message(1, 7, GZIP, 7, Some(&gzip(&messages(1, &[0, 1, 2])))),
        messages(1, &[8, 9]),
        writer.finish_compressed(Compression::Gzip, &compressed).expect("small"),
    ]);
    assert_eq!(offsets(set.clone(), 0), (0..15).collect::<Vec<_>>());
    assert_eq!(extent(&set).next_offset, Some(15));
    let none = |count| (TimestampType::None, vec![-1; count]);
    let expected = [
        none(2),
        none(3),
        (TimestampType::Create, vec![100, 101, 102]),
        (TimestampType::Create, vec![108, 109]),
        (TimestampType::Create, vec![110, 111, 112, 113, 114]),
    ];
    assert_eq!(times(&set), expected);
    let mut batches = RecordBatches::new(set, 0, DecodeOptions::default());
    let mut with_headers = Vec::new();
    while let Some(Ok(batch)) = batches.next_batch(&mut Decompressor::default()) {
        let mut cursor = batch.records();
        while let Some(Ok(record)) = cursor.next() {
            with_headers.extend(record.headers(&batch.payload).map(|_| record.offset));
        }
    }
    assert_eq!(with_headers, [10, 11, 12, 13, 14]);
}

#[test]
fn b16_the_old_lz4_check_byte_passes_by_the_magic_of_the_entry() {
    for magic in [0, 1] {
        let inner = messages(magic, &[40, 41, 42]);
        for check in [RIGHT_CHECK, OLD_CHECK] {
            let set = message(magic, 42, LZ4, 0, Some(&lz4(&inner, check)));
            assert_eq!(offsets(set, 0), [40, 41, 42], "magic {magic}, check byte {check:#x}");
        }
    }
    let writer = writer(40, &[b"a", b"b"]);
    let batch = |check| {
        let compressed = lz4(writer.payload(), check);
        writer.clone().finish_compressed(Compression::Lz4, &compressed).expect("small")
    };
    assert_eq!(offsets(batch(RIGHT_CHECK), 0), [40, 41]);
    let error = walk(batch(OLD_CHECK), 0).1.expect("an error").to_string();
    assert!(error.starts_with("records from offset 40: corrupt lz4 data: header check byte 0x1a"), "{error}");
}

#[test]
fn b17_snappy_framed_and_bare_of_any_length() {
    for count in [1, 2, 2000] {
        let offsets_of: Vec<_> = (0..count).collect();
        let inner = messages(0, &offsets_of);
        let compress = |bytes: &[u8]| snap::raw::Encoder::new().compress_vec(bytes).expect("in memory");
        let bare = compress(&inner);
        let framed = |versions: [u8; 8]| {
            let blocks = inner.chunks(32 << 10).map(|block| {
                let block = compress(block);
                [&(block.len() as u32).to_be_bytes()[..], &block].concat()
            });
            [b"\x82SNAPPY\0".to_vec(), versions.to_vec(), blocks.collect::<Vec<_>>().concat()].concat()
        };
        let (big, little) = (framed([0, 0, 0, 1, 0, 0, 0, 1]), framed([1, 0, 0, 0, 1, 0, 0, 0]));
        for value in [&bare, &big, &little] {
            assert_eq!(offsets(message(0, count - 1, SNAPPY, 0, Some(value)), 0), offsets_of);
        }
        let cut = message(0, count - 1, SNAPPY, 0, Some(&big[..big.len() - 1]));
        assert!(walk(cut, 0).1.expect("an error").to_string().contains("the last block is cut"));
    }
}

#[test]
fn b18_offsets_and_times_within_wrappers() {
    let wrapper = |magic, attributes, time, inner: &[i64]| {
        message(magic, 42, GZIP | attributes, time, Some(&gzip(&messages(magic, inner))))
    };
    // a: relative offsets count back from the last; b: also after compaction; c: absolute in magic 0
    assert_eq!(offsets(wrapper(1, 0, 7, &[0, 1, 2]), 0), [40, 41, 42]);
    assert_eq!(offsets(wrapper(1, 0, 7, &[0, 2]), 0), [40, 42]);
    assert_eq!(offsets(wrapper(0, 0, 0, &[40, 41, 42]), 0), [40, 41, 42]);
    // d: the broker's time stands for that of each record, in magic 1 and in magic 2
    let appended = wrapper(1, LOG_APPEND, 777, &[0, 1, 2]);
    assert_eq!(times(&appended), [(TimestampType::LogAppend, vec![777; 3])]);
    let batch = patched(&patched(&batch(0, &[b"a", b"b"]), 21, &[0, LOG_APPEND]), 35, &777_i64.to_be_bytes());
    assert_eq!(times(&batch), [(TimestampType::LogAppend, vec![777; 2])]);
    // e: from 41 on, the first is 41, and the position after it 42
    for set in [wrapper(1, 0, 7, &[0, 1, 2]), wrapper(0, 0, 0, &[40, 41, 42])] {
        let mut batches = RecordBatches::new(set, 41, DecodeOptions::default());
        let batch = batches.next_batch(&mut Decompressor::default()).expect("one").expect("a good one");
        let mut cursor = batch.records();
        assert_eq!(cursor.next().expect("one").expect("a good one").offset, 41);
        assert_eq!(cursor.position(), 42);
    }
}

#[test]
fn b19_zstd_without_size_in_several_frames_and_of_zeros() {
    let mut writer = writer(0, &[b"a"]);
    writer.push(&NewRecord { value: Some(&vec![0; 10_000_000]), ..NewRecord::default() });
    let stream = |bytes: &[u8]| {
        let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).expect("in memory");
        encoder.write_all(bytes).expect("in memory");
        encoder.finish().expect("in memory")
    };
    let half = writer.payload().len() / 2;
    let two = [stream(&writer.payload()[..half]), stream(&writer.payload()[half..])].concat();
    for compressed in [stream(writer.payload()), two] {
        let set = writer.clone().finish_compressed(Compression::Zstd, &compressed).expect("small");
        let mut batches = RecordBatches::new(set.clone(), 0, DecodeOptions::default());
        let batch = batches.next_batch(&mut Decompressor::default()).expect("one").expect("a good one");
        let mut cursor = batch.records();
        let mut sizes = Vec::new();
        while let Some(record) = cursor.next() {
            sizes.push(record.expect("a good record").size());
        }
        assert_eq!(sizes, [1, 10_000_000]);
        let mut bounded = RecordBatches::new(set, 0, DecodeOptions::default());
        let error = bounded.next_batch(&mut Decompressor::new(1 << 20)).expect("one").unwrap_err();
        assert!(error.to_string().contains("more than the limit of 1048576 bytes"), "{error}");
        assert_eq!((error.offset, error.resume_at), (0, 2));
    }
}

#[test]
fn b20_a_flipped_value_byte_is_an_error_that_can_be_stepped_over() {
    let plain: Vec<_> = (0..5).map(|offset| message(1, offset, 0, 0, Some(b"value"))).collect();
    let batches: Vec<_> = (0..5).map(|offset| batch(offset, &[b"value"])).collect();
    for mut set in [plain, batches] {
        let mut damaged = set[3].to_vec();
        let at = damaged.len() - 3; // within the value in both formats
        damaged[at] ^= 1;
        set[3] = damaged.into();
        let set = joined(&set);
        let (seen, error) = walk(set.clone(), 0);
        let error = error.expect("an error");
        assert_eq!(seen.iter().map(|seen| seen.0).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((error.offset, error.resume_at), (3, 4));
        assert!(matches!(*error.problem, RecordsProblem::Checksum { .. }), "{error}");
        // it stays there however often it is read, until one steps over it
        assert_eq!(walk(set.clone(), 3).1, Some(error.clone()));
        assert_eq!(offsets(set, error.resume_at), [4]);
    }
}

#[test]
fn b20_a_thousand_random_good_messages_pass_top_bit_of_the_checksum_or_not() {
    let mut state = 0x2545_f491_u32;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    for magic in [0, 1, 2] {
        let set: Vec<_> = (0..1000)
            .map(|offset| {
                let value: Vec<_> = (0..random() % 60).map(|_| random() as u8).collect();
                if magic == 2 { batch(offset, &[&value]) } else { message(magic, offset, 0, 5, Some(&value)) }
            })
            .collect();
        let checksum_at = if magic == 2 { 17 } else { 12 };
        assert!((400..600).contains(&set.iter().filter(|one| one[checksum_at] >= 0x80).count()));
        assert_eq!(offsets(joined(&set), 0).len(), 1000, "magic {magic}");
    }
}
