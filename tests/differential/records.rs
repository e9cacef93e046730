//! Random records.

use fastrand::Rng;
use troupe_cluster::JavaRecord;

use crate::topics::PARTITIONS;

/// The middle of the timestamps, in 2023: the run's own time would make it another with each run.
const PRESENT: i64 = 1_700_000_000_000;
/// In 2100.
const FUTURE: i64 = 4_102_444_800_000;
const YEAR: i64 = 365 * 24 * 60 * 60 * 1000;
const NAMES: [&str; 6] = ["", "a", "b", "trace-id", "ключ", "a name with spaces, commas: and\ttabs"];

/// A record for any partition, without timestamp and headers.
pub fn plain(rng: &mut Rng) -> JavaRecord {
    let key = match rng.u32(..10) {
        0..4 => None,
        4 => Some(Vec::new()),
        _ => Some(bytes(rng, 40)),
    };
    let value = match rng.u32(..10) {
        0 => None,
        1 => Some(Vec::new()),
        _ => {
            let most = size(rng);
            Some(bytes(rng, most))
        }
    };
    JavaRecord { partition: rng.i32(0..PARTITIONS), key, value, ..JavaRecord::default() }
}

/// Mostly small, with a tail to 100 KB.
fn size(rng: &mut Rng) -> usize {
    match rng.u32(..1000) {
        0..600 => rng.usize(1..=64),
        600..900 => rng.usize(64..=512),
        900..990 => rng.usize(512..=4_096),
        990..998 => rng.usize(4_096..=20_000),
        _ => rng.usize(20_000..=100_000),
    }
}

/// Of this length or for small ones somewhat less; what compresses well, and what does not.
fn bytes(rng: &mut Rng, most: usize) -> Vec<u8> {
    let length = if most <= 64 { rng.usize(1..=most) } else { most };
    if rng.bool() {
        std::iter::repeat_with(|| rng.u8(..)).take(length).collect()
    } else {
        let word = rng.u16(..).to_string();
        word.bytes().cycle().take(length).collect()
    }
}

/// The beginning of time, the present or the far future.
pub fn timestamp(rng: &mut Rng) -> i64 {
    match rng.u32(..6) {
        0 => 0,
        1 => FUTURE + rng.i64(0..YEAR),
        _ => PRESENT + rng.i64(-YEAR..YEAR),
    }
}

/// None for most; names may be empty or come twice, values may be null or empty.
pub fn headers(rng: &mut Rng) -> Vec<(String, Option<Vec<u8>>)> {
    let count = if rng.u32(..5) < 3 { 0 } else { rng.usize(1..=5) };
    let header = |rng: &mut Rng| {
        let name = NAMES[rng.usize(..NAMES.len())].to_owned();
        let value = match rng.u32(..4) {
            0 => None,
            1 => Some(Vec::new()),
            _ => Some(bytes(rng, 200)),
        };
        (name, value)
    };
    (0..count).map(|_| header(rng)).collect()
}
