//! Fills the topic: one batch for every partition in each request.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use kafka_troupe::proto::kafka::frame::{ApiKey, Request, Response, VersionRange};
use kafka_troupe::proto::kafka::records::{NewRecord, RecordBatchWriter};
use kafka_troupe::proto::kafka::wire::{Reader, WireError, Writer};

use crate::link::Link;
use crate::{PARTITIONS, Result, TOPIC};

const VERSION: i16 = 3;
/// What a record takes in a batch besides its value of 100 B or so.
const OVERHEAD: usize = 9;
const BATCH_HEADER: usize = 61;

struct Produce {
    /// Of partitions 0, 1 and so on.
    batches: Vec<Bytes>,
}

impl Request for Produce {
    const API: ApiKey = ApiKey::Produce;
    const NAME: &'static str = "ProduceRequest";
    const VERSIONS: VersionRange = VersionRange::new(VERSION, VERSION);
    type Response = Produced;

    fn encode(&self, _: i16, out: &mut Writer) {
        out.nullable_string("transactional_id", None);
        out.i16(1); // acks: of the leader
        out.i32(30_000);
        out.array("topics", &[TOPIC], |out, topic| {
            out.string("topic", topic);
            let numbered: Vec<_> = (0..).zip(&self.batches).collect();
            out.array("partitions", &numbered, |out, (partition, batch)| {
                out.i32(*partition);
                out.nullable_bytes("records", Some(batch));
            });
        });
    }
}

/// The error of each partition; 0 is none.
struct Produced(Vec<i16>);

impl Response for Produced {
    fn decode(_: i16, body: Bytes) -> std::result::Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let topics = reader.array("topics", 6, |r| {
            r.string("topic")?;
            r.array("partitions", 22, |r| {
                r.i32("partition")?;
                let error = r.i16("error")?;
                r.i64("base_offset")?;
                r.i64("log_append_time")?;
                Ok(error)
            })
        })?;
        Ok(Self(topics.concat()))
    }
}

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
        let mut request = Produce { batches: Vec::new() };
        for _ in 0..PARTITIONS {
            let mut writer = RecordBatchWriter::new(0);
            for _ in 0..count {
                letters.fill(&mut value);
                writer.push(&NewRecord { timestamp, value: Some(&value), ..NewRecord::default() });
            }
            request.batches.push(writer.finish()?);
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
