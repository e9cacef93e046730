//! Records to all partitions at a steady pace, numbered, with the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kafka_troupe::proto::kafka::records::{NewRecord, RecordBatchWriter};

use crate::link::Link;
use crate::member::now;
use crate::produce_request::{Produce, Produced, VERSION};
use crate::{Result, TOPIC};

/// Between requests. Each is for some of the partitions: bursts to all would make the members' work come in bursts.
const PACE: Duration = Duration::from_millis(20);

/// A producer that runs until it is ended.
pub struct Load {
    ended: Arc<AtomicBool>,
    /// Microseconds that the longest request took.
    longest: Arc<AtomicU64>,
    thread: JoinHandle<std::result::Result<(), String>>,
}

impl Load {
    /// `rate` records per second to each partition.
    pub fn start(port: u16, partitions: usize, rate: u32) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let longest = Arc::new(AtomicU64::new(0));
        let (end, took) = (Arc::clone(&ended), Arc::clone(&longest));
        let each = (partitions as f64 * f64::from(rate) * PACE.as_secs_f64()).ceil() as usize;
        let thread = std::thread::spawn(move || {
            produce(port, partitions, each.min(partitions), &end, &took).map_err(|error| error.to_string())
        });
        Self { ended, longest, thread }
    }

    pub fn begin(&self) {
        self.longest.store(0, Ordering::Relaxed);
    }

    /// What the longest request since [`Load::begin`] took.
    pub fn longest(&self) -> Duration {
        Duration::from_micros(self.longest.load(Ordering::Relaxed))
    }

    pub fn end(self) -> Result {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the producer has panicked")??;
        Ok(())
    }
}

fn produce(port: u16, partitions: usize, each: usize, ended: &AtomicBool, longest: &AtomicU64) -> Result {
    let mut link = Link::connect(port)?;
    let (mut due, mut buffer) = (Instant::now(), Vec::new());
    let mut turns = (0..).flat_map(|number: u64| (0..partitions).map(move |partition| (partition, number)));
    while !ended.load(Ordering::Relaxed) {
        let batches = turns
            .by_ref()
            .take(each)
            .map(|(partition, number)| Ok((i32::try_from(partition)?, batch(partition, number)?)));
        let request = Produce { topic: TOPIC, batches: batches.collect::<Result<_>>()? };
        let sent = Instant::now();
        link.send(&request, VERSION)?;
        let (Produced(errors), frame) = link.receive(VERSION, buffer)?;
        if let Some(error) = errors.iter().find(|error| **error != 0) {
            return Err(format!("the broker refuses a batch with error {error}").into());
        }
        longest.fetch_max(u64::try_from(sent.elapsed().as_micros())?, Ordering::Relaxed);
        buffer = Vec::from(frame);
        // one that is late does not hurry after
        due = (due + PACE).max(Instant::now());
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// Of one record: `partition:number:microseconds`.
fn batch(partition: usize, number: u64) -> Result<bytes::Bytes> {
    let (mut writer, at) = (RecordBatchWriter::new(0), now());
    let value = format!("{partition}:{number}:{at}");
    let record = NewRecord { timestamp: at / 1000, value: Some(value.as_bytes()), ..NewRecord::default() };
    writer.push(&record);
    Ok(writer.finish()?)
}
