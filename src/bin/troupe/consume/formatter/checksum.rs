//! Kafka's `ChecksumMessageFormatter`, which it had up to 1.1.

use kafka_troupe::Record;
use kafka_troupe::proto::kafka::records::message_checksum;

use super::Formatter;
use super::layout::Layout;

/// What property `topic` says, and the checksum of the record as a message of magic 0 or 1.
pub struct Checksum(pub Layout);

impl Formatter for Checksum {
    fn write(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), String> {
        let topic = self.0.topic.as_ref().map(|topic| format!("{topic}:")).unwrap_or_default();
        let timestamp = record.timestamp().unwrap_or(-1);
        let checksum = message_checksum(record.timestamp_type(), timestamp, record.key(), record.value());
        out.extend_from_slice(format!("{topic}checksum:{checksum}\n").as_bytes());
        Ok(())
    }
}
