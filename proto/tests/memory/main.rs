//! What a peer sends cannot make us take memory beyond the bytes that came and a stated limit, nor panic, nor loop:
//! arbitrary bytes, and each byte of valid messages changed, for every response decoder, for record
//! sets and for the records of the offsets topic.
//!
//! Counted by an allocator, without what zstd takes in C (see `compression`'s own tests).

mod offsets_topic;
#[cfg(all(feature = "gzip", feature = "lz4", feature = "snappy", feature = "zstd"))]
mod records;
mod responses;
mod samples;

use peak_alloc::PeakAlloc;
use std::sync::{Mutex, PoisonError};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;
/// The counter is one for all threads.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
/// What the test harness may take meanwhile.
const SLACK: usize = 16 << 10;

fn alone<T>(run: impl FnOnce() -> T) -> T {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    run()
}

/// The most that was held at once beyond what was held before.
fn peak_of<T>(run: impl FnOnce() -> T) -> usize {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let result = run();
    let peak = MEMORY.peak_usage();
    drop(result);
    peak.saturating_sub(before)
}

/// Each byte replaced by those that make lengths and counts lie most.
fn changed(valid: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> {
    (0..valid.len()).flat_map(move |at| {
        let old = valid[at];
        [0, 1, 0x7f, 0x80, 0xff, old ^ 0x80, old.wrapping_add(1)].into_iter().map(move |byte| {
            let mut bytes = valid.to_vec();
            bytes[at] = byte;
            (at, bytes)
        })
    })
}

/// Arbitrary bytes, the same in each run; small ones among them, since high bytes end most messages at once.
fn arbitrary(count: usize) -> impl Iterator<Item = Vec<u8>> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..count).map(move |index| {
        let length = (next() % 400) as usize;
        let mask = if index % 2 == 0 { 0xff } else { 0x03 };
        (0..length).map(|_| next() as u8 & mask).collect()
    })
}
