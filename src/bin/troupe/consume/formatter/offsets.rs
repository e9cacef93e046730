//! Kafka's formatters of the records of `__consumer_offsets`.

use kafka_troupe::Record;
use kafka_troupe::proto::kafka::offsets_topic::{OffsetsFormatter, decode};

use super::Formatter;

/// A line for each record of its kind, nothing for others.
pub struct Offsets(pub OffsetsFormatter);

impl Formatter for Offsets {
    fn write(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), String> {
        if let Some(line) = self.0.line(&decode(record.key(), record.value_bytes())) {
            out.extend_from_slice(line.as_bytes());
            out.push(b'\n');
        }
        Ok(())
    }
}
