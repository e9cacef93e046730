//! Fills the topic: one batch for every partition in each request.

use std::time::{SystemTime, UNIX_EPOCH};

use kafka_troupe::proto::kafka::records::{NewRecord, RecordBatchWriter};

use crate::link::Link;
use crate::produce_request::{Produce, Produced, VERSION};
use crate::{PARTITIONS, Result, TOPIC};

/// What a record takes in a batch besides its value of 100 B or so.
const OVERHEAD: usize = 9;
const BATCH_HEADER: usize = 61;

/// Values of random letters, the same in each run.
struct Letters(u64);

impl Letters {
    fn fill(&mut self, value: &mut [u8]) {
        for chunk in value.chunks_mut(8) {
            // xorshift64
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            for (letter, random) in chunk.iter_mut().zip(self.0.to_le_bytes()) {
                *letter = b'A' + random % 26;
            }
        }
    }
}

/// Writes `per_partition` records of `size` bytes to each partition, in batches of about `batch` bytes.
pub fn produce(port: u16, per_partition: i64, size: usize, batch: usize) -> Result {
    let mut link = Link::connect(port)?;
    let mut letters = Letters(0x2545_f491_4f6c_dd1d);
    let mut value = vec![0; size];
    let in_batch = i64::try_from((batch.saturating_sub(BATCH_HEADER) / (size + OVERHEAD)).max(1))?;
    // an old one would be deleted by the broker's retention
    let timestamp = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
    let (mut left, mut buffer) = (per_partition, Vec::new());
    while left > 0 {
        let count = left.min(in_batch);
        let mut request = Produce { topic: TOPIC, batches: Vec::new() };
        for partition in 0..PARTITIONS {
            let mut writer = RecordBatchWriter::new(0);
            for _ in 0..count {
                letters.fill(&mut value);
                writer.push(&NewRecord { timestamp, value: Some(&value), ..NewRecord::default() });
            }
            request.batches.push((partition, writer.finish()?));
        }
        link.send(&request, VERSION)?;
        let (Produced(errors), frame) = link.receive(VERSION, buffer)?;
        if let Some(error) = errors.iter().find(|error| **error != 0) {
            return Err(format!("the broker refuses a batch with error {error}").into());
        }
        buffer = Vec::from(frame);
        left -= count;
    }
    Ok(())
}
