//! Arbitrary and mutated bytes: no panic, no endless walk, no more records than bytes can hold.

use super::*;
use crate::kafka::compression::Compression;
use crate::kafka::records::extent;
use proptest::collection::vec;
use proptest::prelude::*;

fn survives(set: Vec<u8>, from: i64) {
    let set = Bytes::from(set);
    let extent = extent(&set);
    assert!(extent.complete_bytes <= set.len());
    for check_crcs in [true, false] {
        let (seen, _) = walk_with(set.clone(), from, DecodeOptions::default().check_crcs(check_crcs));
        assert!(seen.len() <= (1 << 20) / 7, "more records than the decompression limit has room for");
        assert!(seen.iter().all(|(offset, ..)| *offset >= from));
    }
}

fn sample() -> Vec<u8> {
    let payload = writer(0, &[b"some", b"values", b"values", b"values"]).payload().to_vec();
    let snappy = snap::raw::Encoder::new().compress_vec(&payload).unwrap();
    let zstd = zstd::encode_all(&payload[..], 1).unwrap();
    let compressed = |base, codec, bytes: &[u8]| {
        writer(base, &[b"some", b"values", b"values", b"values"]).finish_compressed(codec, bytes).unwrap()
    };
    let sets = [
        message(0, 0, 0, 0, Some(b"v0")),
        message(1, 1, 0, 5, None),
        message(
            1,
            2,
            2,
            5,
            Some(&snap::raw::Encoder::new().compress_vec(&message(1, 0, 0, 5, None)).unwrap()),
        ),
        batch(3, &[b"plain", b"batch"]),
        compressed(5, Compression::Snappy, &snappy),
        compressed(9, Compression::Zstd, &zstd),
    ];
    assert_eq!(offsets(joined(&sets), 0), (0..13).collect::<Vec<_>>());
    joined(&sets).to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn arbitrary_bytes_with_a_plausible_head(mut set in vec(any::<u8>(), 17..300), magic in 0..=2u8, from in 0..9i64) {
        let size = (set.len() - 12) as i32;
        set[..8].copy_from_slice(&1_i64.to_be_bytes());
        set[8..12].copy_from_slice(&size.to_be_bytes());
        set[16] = magic;
        survives(set, from);
    }

    #[test]
    fn mutated_sets(changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), from in 0..14i64) {
        let mut set = sample();
        for (at, byte) in changes {
            let at = at.index(set.len());
            set[at] = byte;
        }
        survives(set, from);
    }
}

#[test]
fn cut_sets() {
    let set = sample();
    let mut records = 0;
    for end in 0..=set.len() {
        let (seen, error) = walk(set[..end].to_vec(), 0);
        assert_eq!(error, None, "cut at {end}");
        assert!(seen.len() >= records, "fewer records at {end}");
        records = seen.len();
    }
}
