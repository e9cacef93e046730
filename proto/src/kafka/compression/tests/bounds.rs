use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

#[test]
fn output_up_to_the_limit_passes_and_one_byte_more_does_not() {
    for codec in CODECS {
        for plain in [vec![0; 200_000], noise(200_000)] {
            let compressed = Bytes::from(compress(codec, &plain));
            let bounded =
                |limit| Decompressor::new(limit).decompress(codec, &compressed, Lz4Header::Standard);
            assert!(bounded(plain.len()).unwrap() == plain, "{codec}");
            let expected = CompressionError::TooLarge { codec, limit: plain.len() - 1 };
            assert_eq!(bounded(plain.len() - 1), Err(expected), "{codec}");
            assert!(bounded(0).is_err(), "{codec}");
        }
    }
}

#[test]
fn an_error_names_codec_and_limit() {
    let compressed = Bytes::from(gzip(&[0; 5000]));
    let error = Decompressor::new(1000).decompress(Compression::Gzip, &compressed, Lz4Header::Standard);
    assert_eq!(error.unwrap_err().to_string(), "gzip data decompresses to more than the limit of 1000 bytes");
}

#[test]
fn a_snappy_length_that_lies_reserves_nothing() {
    let lie = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, b'x'];
    let error = decompress(Compression::Snappy, &lie).unwrap_err();
    assert!(error.to_string().contains("claims more than its bytes can hold"), "{error}");
}

#[test]
fn one_buffer_does_for_batches_that_are_dropped_in_between() {
    for codec in CODECS {
        let mut decompressor = Decompressor::default();
        let compressed = Bytes::from(compress(codec, &[3; 5000]));
        let mut next = || decompressor.decompress(codec, &compressed, Lz4Header::Standard).unwrap();
        let first = next().as_ptr();
        let second = next();
        assert_eq!(second.as_ptr(), first, "{codec}");
        let held = (0..9).map(|_| next()).collect::<Vec<_>>();
        assert!(
            held.iter().all(|buffer| buffer.as_ptr() != first),
            "{codec}: a buffer in use was used again"
        );
        assert!(held.iter().all(|buffer| *buffer == vec![3; 5000]), "{codec}");
        assert_eq!(second, vec![3; 5000], "{codec}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn arbitrary_and_mutated_input_stays_below_the_limit(
        arbitrary in vec(any::<u8>(), 1..100),
        plain in vec(any::<u8>(), 1..200),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut decompressor = Decompressor::new(500);
        for codec in CODECS {
            let mut mutated = compress(codec, &plain);
            for (at, byte) in &changes {
                let at = at.index(mutated.len());
                mutated[at] = *byte;
            }
            for input in [&mutated, &arbitrary] {
                let input = Bytes::copy_from_slice(input);
                for header in [Lz4Header::Standard, Lz4Header::KafkaLegacy] {
                    if let Ok(output) = decompressor.decompress(codec, &input, header) {
                        prop_assert!(output.len() <= 500);
                    }
                }
            }
        }
    }
}

#[test]
fn b19_a_zstd_frame_of_a_huge_window_takes_no_memory_for_it() {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 22).expect("in memory");
    encoder.window_log(27).expect("as level 22 has it");
    encoder.write_all(b"a small value").expect("in memory");
    let frame = Bytes::from(encoder.finish().expect("in memory"));
    let mut decompressor = Decompressor::default();
    let output = decompressor.decompress(Compression::Zstd, &frame, Lz4Header::Standard);
    assert_eq!(output.unwrap(), "a small value");
    assert!(decompressor.zstd.size() < 256 << 10, "{} bytes", decompressor.zstd.size());
}
