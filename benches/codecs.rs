//! What decompression costs: a batch of 1 MiB of JSON-like text through the decompressor of the hot path, beside a copy
//! of as many bytes, which nothing can beat.
//!
//! ```text
//! cargo bench --bench codecs
//! ```

use bytes::Bytes;
use kafka_troupe::proto::kafka::compression::{Compression, Decompressor, Lz4Header};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use std::hint::black_box;
use std::io::Write;
use std::time::{Duration, Instant};

const SIZE: usize = 1 << 20;
const RUN: Duration = Duration::from_millis(700);
const RUNS: usize = 5;

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("nothing to test: this is run by `cargo bench --bench codecs`");
        return;
    }
    let plain = text();
    println!("| codec | ratio | MB/CPU s of output | of a copy |\n|---|---|---|---|");
    let mut copy = vec![0; SIZE];
    let floor = best(|| black_box(&mut copy).copy_from_slice(black_box(&plain)));
    row("copy", SIZE, floor, floor);
    for (codec, compressed) in [
        (Compression::Gzip, gzip(&plain)),
        (Compression::Snappy, snappy(&plain)),
        (Compression::Lz4, lz4(&plain)),
        (Compression::Zstd, zstd::encode_all(&plain[..], 3).expect("in memory")),
    ] {
        let (compressed, mut decompressor) = (Bytes::from(compressed), Decompressor::default());
        let mut run = || decompressor.decompress(codec, &compressed, Lz4Header::Standard).expect("good data");
        assert!(run() == plain, "{codec}");
        row(&codec.to_string(), compressed.len(), best(|| _ = black_box(run())), floor);
    }
}

/// The best of some runs, in MB per second of processor time: what disturbs a run only slows it.
fn best(mut once: impl FnMut()) -> f64 {
    let run = |_| {
        let (begun, used, mut count) = (Instant::now(), cpu_seconds(), 0);
        while begun.elapsed() < RUN {
            once();
            count += 1;
        }
        f64::from(count) * SIZE as f64 / 1e6 / (cpu_seconds() - used)
    };
    (0..RUNS).map(run).fold(0.0, f64::max)
}

fn cpu_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("our own usage");
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

fn row(name: &str, compressed: usize, speed: f64, floor: f64) {
    let ratio = SIZE as f64 / compressed as f64;
    println!("| {name} | {ratio:.1} | {speed:.0} | {:.1} % |", 100.0 * speed / floor);
}

/// Events as services log them, with numbers that do not repeat.
fn text() -> Vec<u8> {
    let (mut text, mut state) = (Vec::with_capacity(SIZE + 200), 0x2545_f491_4f6c_dd1d_u64);
    while text.len() < SIZE {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let (user, amount) = (state % 5000, state >> 40);
        let kind = ["view", "click", "order", "refund"][(state >> 20) as usize % 4];
        let line = format!(
            "{{\"id\":\"{state:016x}\",\"user\":\"user-{user}\",\"type\":\"{kind}\",\"amount\":{amount}}}\n"
        );
        text.extend(line.as_bytes());
    }
    text.truncate(SIZE);
    text
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(plain).expect("in memory");
    encoder.finish().expect("in memory")
}

/// Framed in blocks of 32 KiB, as Kafka's Java clients do.
fn snappy(plain: &[u8]) -> Vec<u8> {
    let mut stream = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".to_vec();
    for block in plain.chunks(32 << 10) {
        let block = snap::raw::Encoder::new().compress_vec(block).expect("in memory");
        stream.extend((block.len() as u32).to_be_bytes());
        stream.extend(block);
    }
    stream
}

fn lz4(plain: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(plain).expect("in memory");
    encoder.finish().expect("in memory")
}
