//! The producer: numbered records in a steady stream, for the demo is about rebalances under load.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use troupe_cluster::{Client, ClusterError, ProduceRecord};

use crate::member::TOPIC;

pub const PARTITIONS: i32 = 8;
/// Bytes of a record: its number with leading zeros.
const SIZE: usize = 100;
/// How long producing takes.
const DURATION: Duration = Duration::from_secs(18);
/// Calls to the producer; what it buffers is sent at the end of each.
const SLICES: u64 = 180;

/// Record `n` goes to partition `n % 8`, so it must stand there at offset `n / 8`.
pub fn sequence_at(partition: i32, offset: i64) -> i64 {
    offset * i64::from(PARTITIONS) + i64::from(partition)
}

/// How many of the first `records` records go to `partition`.
pub fn share(records: u64, partition: i32) -> i64 {
    let rest = i64::try_from(records).unwrap_or(i64::MAX) - i64::from(partition);
    (rest + i64::from(PARTITIONS) - 1) / i64::from(PARTITIONS)
}

pub struct Producing {
    produced: Arc<AtomicU64>,
    thread: Option<JoinHandle<Result<(), ClusterError>>>,
}

impl Producing {
    pub fn start(client: Client, records: u64) -> Self {
        let produced = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&produced);
        let thread = thread::spawn(move || produce(&client, records, &counter));
        Self { produced, thread: Some(thread) }
    }

    /// Records that the broker has acknowledged.
    pub fn produced(&self) -> u64 {
        self.produced.load(Ordering::Relaxed)
    }

    /// The error that has ended it, if one has.
    pub fn check(&mut self) -> Result<(), Box<dyn Error>> {
        match self.thread.take_if(|thread| thread.is_finished()) {
            Some(thread) => Ok(thread.join().map_err(|_| "the producer panicked")??),
            None => Ok(()),
        }
    }
}

fn produce(client: &Client, records: u64, produced: &AtomicU64) -> Result<(), ClusterError> {
    let begun = Instant::now();
    for slice in 0..SLICES {
        let bounds = (records * slice / SLICES, records * (slice + 1) / SLICES);
        client.produce(TOPIC, (bounds.0..bounds.1).map(numbered))?;
        produced.store(bounds.1, Ordering::Relaxed);
        let due = DURATION.mul_f64((slice + 1) as f64 / SLICES as f64);
        thread::sleep(due.saturating_sub(begun.elapsed()));
    }
    Ok(())
}

fn numbered(number: u64) -> ProduceRecord {
    let partition = i32::try_from(number % u64::from(PARTITIONS.unsigned_abs())).ok();
    ProduceRecord { partition, ..ProduceRecord::value(format!("{number:0SIZE$}")) }
}
