use super::*;

#[test]
fn every_codec_gives_back_what_was_put_in() {
    let mut plain = noise(100_000);
    plain.extend([0; 200_000]);
    for codec in CODECS {
        let compressed = compress(codec, &plain);
        assert!(decompress(codec, &compressed).unwrap() == plain, "{codec}");
    }
    let input = Bytes::from(plain);
    let same = Decompressor::default().decompress(Compression::None, &input, Lz4Header::Standard).unwrap();
    assert_eq!(same.as_ptr(), input.as_ptr());
}

#[test]
fn a_cut_stream_is_an_error_and_no_panic() {
    let plain = [noise(300), vec![7; 3000]].concat();
    for codec in CODECS {
        let compressed = compress(codec, &plain);
        for end in 1..compressed.len() {
            let cut = decompress(codec, &compressed[..end]);
            assert!(matches!(cut, Err(CompressionError::Corrupt { .. })), "{codec} cut at {end}: {cut:?}");
        }
    }
}

#[test]
fn gzip_takes_several_members() {
    let two = [gzip(b"one, "), gzip(b"two")].concat();
    assert_eq!(decompress(Compression::Gzip, &two).unwrap(), "one, two");
}

fn xerial(versions: [u8; 8], blocks: &[&[u8]]) -> Vec<u8> {
    let mut stream = b"\x82SNAPPY\0".to_vec();
    stream.extend(versions);
    for block in blocks {
        let compressed = snap::raw::Encoder::new().compress_vec(block).expect("in memory");
        stream.extend((compressed.len() as u32).to_be_bytes());
        stream.extend(compressed);
    }
    stream
}

#[test]
fn snappy_may_be_framed_or_bare_with_versions_of_any_order() {
    let plain = noise(3 << 15);
    let blocks: Vec<_> = plain.chunks(1 << 15).collect();
    for versions in [[0, 0, 0, 1, 0, 0, 0, 1], [1, 0, 0, 0, 1, 0, 0, 0]] {
        let framed = xerial(versions, &blocks);
        assert!(decompress(Compression::Snappy, &framed).unwrap() == plain);
        let cut = decompress(Compression::Snappy, &framed[..framed.len() - 1]);
        assert!(cut.unwrap_err().to_string().contains("the last block is cut"));
    }
    for length in [1, 10, 20, 5000] {
        let bare = snap::raw::Encoder::new().compress_vec(&plain[..length]).expect("in memory");
        assert!(decompress(Compression::Snappy, &bare).unwrap() == plain[..length]);
    }
}

#[test]
fn snappy_streams_may_follow_each_other() {
    let versions = [0, 0, 0, 1, 0, 0, 0, 1];
    let two = [xerial(versions, &[b"one, ", b"two, "]), xerial(versions, &[b"three"])].concat();
    assert_eq!(decompress(Compression::Snappy, &two).unwrap(), "one, two, three");
    assert!(decompress(Compression::Snappy, &two[..two.len() - 20]).is_err(), "a header is cut");
}

#[test]
fn the_old_clients_lz4_check_byte_passes_only_below_magic_2() {
    let block = lz4_blocks(b"some value, some value");
    let right = lz4_frame(0x60, &[&block]);
    assert_eq!(right[..7], [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82]);
    let mut old = right.clone();
    old[6] = 0x1a;
    let outcome = |frame: &[u8], header| {
        let frame = Bytes::copy_from_slice(frame);
        Decompressor::default().decompress(Compression::Lz4, &frame, header)
    };
    for (frame, header) in
        [(&right, Lz4Header::Standard), (&right, Lz4Header::KafkaLegacy), (&old, Lz4Header::KafkaLegacy)]
    {
        assert_eq!(outcome(frame, header).unwrap(), "some value, some value");
    }
    let refused = outcome(&old, Lz4Header::Standard).unwrap_err();
    assert_eq!(refused.to_string(), "corrupt lz4 data: header check byte 0x1a is wrong");
}

#[test]
fn lz4_blocks_may_be_stored_linked_and_checked() {
    let stored = |plain: &[u8]| [&(plain.len() as u32 | 1 << 31).to_le_bytes(), plain].concat();
    assert_eq!(decompress(Compression::Lz4, &lz4_frame(0x60, &[&stored(b"as it is")])).unwrap(), "as it is");

    let first = stored(b"a dictionary of its own, ");
    let linked =
        lz4_flex::block::compress_with_dict(b"a dictionary of its own", b"a dictionary of its own, ");
    let second = [&(linked.len() as u32).to_le_bytes()[..], &linked].concat();
    let frame = lz4_frame(0x40, &[&first, &second]);
    assert_eq!(
        decompress(Compression::Lz4, &frame).unwrap(),
        "a dictionary of its own, a dictionary of its own"
    );

    let block = stored(b"checked");
    let checksum = twox_hash::XxHash32::oneshot(0, b"checked").to_le_bytes();
    assert_eq!(decompress(Compression::Lz4, &lz4_frame(0x70, &[&block, &checksum])).unwrap(), "checked");
    let wrong = decompress(Compression::Lz4, &lz4_frame(0x70, &[&block, &[0; 4]])).unwrap_err();
    assert!(wrong.to_string().contains("a block's checksum is wrong"), "{wrong}");
}

#[test]
fn lz4_takes_content_size_content_checksum_and_several_frames() {
    let block = lz4_blocks(b"value");
    let mut frame = vec![0x04, 0x22, 0x4d, 0x18, 0x6c, 0x40, 5, 0, 0, 0, 0, 0, 0, 0];
    frame.push((twox_hash::XxHash32::oneshot(0, &frame[4..]) >> 8) as u8);
    frame.extend(&block);
    frame.extend([0; 4]);
    frame.extend(twox_hash::XxHash32::oneshot(0, b"value").to_le_bytes());
    let two = [frame, lz4_frame(0x60, &[&block])].concat();
    assert_eq!(decompress(Compression::Lz4, &two).unwrap(), "valuevalue");
}

#[test]
fn zstd_needs_no_content_size_and_takes_several_frames() {
    // a stream encoder that does not know what will come leaves the size out
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).expect("in memory");
    encoder.write_all(b"one, ").expect("in memory");
    let unsized_frame = encoder.finish().expect("in memory");
    assert_eq!(decompress(Compression::Zstd, &unsized_frame).unwrap(), "one, ");
    let two = [unsized_frame, compress(Compression::Zstd, b"two")].concat();
    assert_eq!(decompress(Compression::Zstd, &two).unwrap(), "one, two");
    let zeros = vec![0; 10 << 20];
    assert!(decompress(Compression::Zstd, &compress(Compression::Zstd, &zeros)).unwrap() == zeros);
}

#[test]
fn a_decompressor_goes_on_after_an_error() {
    let mut decompressor = Decompressor::default();
    for codec in CODECS {
        let compressed = compress(codec, &[5; 5000]);
        let mut damaged = compressed.clone();
        damaged.truncate(compressed.len() - 2);
        for _ in 0..2 {
            assert!(decompressor.decompress(codec, &damaged.clone().into(), Lz4Header::Standard).is_err());
            let good = decompressor.decompress(codec, &compressed.clone().into(), Lz4Header::Standard);
            assert_eq!(good.unwrap(), vec![5; 5000]);
        }
    }
}
