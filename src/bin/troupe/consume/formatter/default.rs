//! Kafka's `DefaultMessageFormatter`.

use kafka_troupe::Record;

use super::Formatter;
use super::layout::{Layout, timestamp};
use crate::consume::decoder::Decoder;

/// Timestamp, partition, offset, headers, key, value: the order of 2.7 and later, and of those before as far as they print
/// these (1.1: timestamp, key and value). Only 2.5 and 2.6 differ: they have the partition's bare number behind the value.
pub struct Default(pub Layout);

impl Formatter for Default {
    fn write(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), String> {
        let layout = &self.0;
        let mut line = Line { out, separator: &layout.separator, begun: false };
        if layout.timestamp {
            line.field(timestamp(record).as_deref().unwrap_or("NO_TIMESTAMP").as_bytes());
        }
        if layout.partition {
            line.field(format!("Partition:{}", record.partition()).as_bytes());
        }
        if layout.offset {
            line.field(format!("Offset:{}", record.offset()).as_bytes());
        }
        if layout.headers {
            line.field(&self.headers(record)?);
        }
        if layout.key {
            self.decoded(&layout.key_decoder, record.key(), |key| line.field(key))
                .map_err(|why| format!("key: {why}"))?;
        }
        if layout.value {
            let value = record.value();
            self.decoded(&layout.value_decoder, value, |value| line.field(value))
                .map_err(|why| format!("value: {why}"))?;
        }
        // nothing at all has no end either
        if line.begun {
            line.out.extend_from_slice(layout.end.as_bytes());
        }
        Ok(())
    }
}

impl Default {
    fn headers(&self, record: &Record) -> Result<Vec<u8>, String> {
        let layout = &self.0;
        let mut text = Vec::new();
        let mut line = Line { out: &mut text, separator: &layout.between_headers, begun: false };
        for header in record.headers() {
            let name = header.name();
            line.field(format!("{name}:").as_bytes());
            self.decoded(&layout.headers_decoder, header.value, |value| line.out.extend_from_slice(value))
                .map_err(|why| format!("header {name}: {why}"))?;
        }
        if !line.begun {
            line.field(b"NO_HEADERS");
        }
        Ok(text)
    }

    /// Null is not decoded. (Java decodes the bytes of the literal in its place: four, which are an integer.)
    fn decoded(
        &self,
        decoder: &Decoder,
        bytes: Option<&[u8]>,
        put: impl FnOnce(&[u8]),
    ) -> Result<(), String> {
        match bytes {
            Some(bytes) => put(decoder.decode(bytes)?.as_bytes()),
            None => put(self.0.null.as_bytes()),
        }
        Ok(())
    }
}

/// Fields with a separator between.
struct Line<'a> {
    out: &'a mut Vec<u8>,
    separator: &'a str,
    begun: bool,
}

impl Line<'_> {
    fn field(&mut self, text: &[u8]) {
        if std::mem::replace(&mut self.begun, true) {
            self.out.extend_from_slice(self.separator.as_bytes());
        }
        self.out.extend_from_slice(text);
    }
}
