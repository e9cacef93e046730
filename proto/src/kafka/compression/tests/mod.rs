//! Field cases B16 (lz4 check byte), B17 (snappy frames), B19 (zstd without size, several frames), and the bounds.

mod bounds;
mod codecs;

use super::{Compression, CompressionError, Decompressor, Lz4Header};
use bytes::Bytes;
use std::io::Write;

const CODECS: [Compression; 4] =
    [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

fn decompress(codec: Compression, input: &[u8]) -> Result<Bytes, CompressionError> {
    Decompressor::default().decompress(codec, &Bytes::copy_from_slice(input), Lz4Header::Standard)
}

fn compress(codec: Compression, plain: &[u8]) -> Vec<u8> {
    match codec {
        Compression::None => plain.to_vec(),
        Compression::Gzip => gzip(plain),
        Compression::Snappy => snap::raw::Encoder::new().compress_vec(plain).expect("in memory"),
        Compression::Lz4 => lz4_frame(0x60, &[&lz4_blocks(plain)]),
        Compression::Zstd => zstd::encode_all(plain, 3).expect("in memory"),
    }
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(plain).expect("in memory");
    encoder.finish().expect("in memory")
}

/// Blocks of 64 KiB with their sizes, each compressed by itself, or stored where that is shorter.
fn lz4_blocks(plain: &[u8]) -> Vec<u8> {
    let mut blocks = Vec::new();
    for block in plain.chunks(64 << 10) {
        let compressed = lz4_flex::block::compress(block);
        if compressed.len() < block.len() {
            blocks.extend((compressed.len() as u32).to_le_bytes());
            blocks.extend(compressed);
        } else {
            blocks.extend((block.len() as u32 | 1 << 31).to_le_bytes());
            blocks.extend(block);
        }
    }
    blocks
}

/// A frame with these flags and 64 KiB blocks; the parts are blocks with their sizes.
fn lz4_frame(flags: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut frame = vec![0x04, 0x22, 0x4d, 0x18, flags, 0x40];
    frame.push((twox_hash::XxHash32::oneshot(0, &frame[4..]) >> 8) as u8);
    frame.extend(parts.concat());
    frame.extend([0; 4]);
    frame
}

/// Incompressible, so that its length survives every codec.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    (0..length).map(step).collect()
}
