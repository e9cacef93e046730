//! What the properties of Kafka's formatters say.

use kafka_troupe::{Record, TimestampType};

use crate::consume::decoder::Decoder;

/// What is printed of a record, and how.
pub struct Layout {
    pub timestamp: bool,
    pub partition: bool,
    pub offset: bool,
    pub headers: bool,
    pub key: bool,
    pub value: bool,
    /// Between what is printed.
    pub separator: String,
    /// Behind the last.
    pub end: String,
    pub between_headers: String,
    pub null: String,
    pub key_decoder: Decoder,
    pub value_decoder: Decoder,
    pub headers_decoder: Decoder,
    /// Before a checksum.
    pub topic: Option<String>,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            timestamp: false,
            partition: false,
            offset: false,
            headers: false,
            key: false,
            value: true,
            separator: "\t".to_owned(),
            end: "\n".to_owned(),
            between_headers: ",".to_owned(),
            null: "null".to_owned(),
            key_decoder: Decoder::Utf8,
            value_decoder: Decoder::Utf8,
            headers_decoder: Decoder::Utf8,
            topic: None,
        }
    }
}

impl Layout {
    /// Sets a property, if it is a formatter's.
    pub fn set(&mut self, key: &str, value: &str) -> Result<bool, String> {
        if let Some(flag) = self.flag(key) {
            *flag = boolean(value).ok_or_else(|| format!("{key}: must be true or false, not `{value}`"))?;
        } else if let Some(text) = self.text(key) {
            value.clone_into(text);
        } else if let Some(decoder) = self.decoder(key) {
            *decoder = Decoder::named(value).map_err(|why| format!("{key}: {why}"))?;
        } else if key == "topic" {
            self.topic = Some(value.to_owned());
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn flag(&mut self, key: &str) -> Option<&mut bool> {
        Some(match key {
            "print.timestamp" => &mut self.timestamp,
            "print.partition" => &mut self.partition,
            "print.offset" => &mut self.offset,
            "print.headers" => &mut self.headers,
            "print.key" => &mut self.key,
            "print.value" => &mut self.value,
            _ => return None,
        })
    }

    fn text(&mut self, key: &str) -> Option<&mut String> {
        Some(match key {
            "key.separator" => &mut self.separator,
            "line.separator" => &mut self.end,
            "headers.separator" => &mut self.between_headers,
            "null.literal" => &mut self.null,
            _ => return None,
        })
    }

    fn decoder(&mut self, key: &str) -> Option<&mut Decoder> {
        Some(match key {
            "key.deserializer" => &mut self.key_decoder,
            "value.deserializer" => &mut self.value_decoder,
            "headers.deserializer" => &mut self.headers_decoder,
            _ => return None,
        })
    }

    /// The same, but all bytes in hex.
    pub fn in_hex(self) -> Self {
        let (key_decoder, value_decoder, headers_decoder) = (Decoder::Hex, Decoder::Hex, Decoder::Hex);
        Self { key_decoder, value_decoder, headers_decoder, ..self }
    }
}

/// As in Java: white space and case do not count.
fn boolean(text: &str) -> Option<bool> {
    match text.trim() {
        text if text.eq_ignore_ascii_case("true") => Some(true),
        text if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// As Java's `TimestampType` and the time read beside each other; none in message format 0.
pub fn timestamp(record: &Record) -> Option<String> {
    let kind = match record.timestamp_type() {
        TimestampType::Create => "CreateTime",
        TimestampType::LogAppend => "LogAppendTime",
        _ => return None,
    };
    Some(format!("{kind}:{}", record.timestamp().unwrap_or(-1)))
}
