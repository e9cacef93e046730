//! A record as one JSON object in one line.

use kafka_troupe::Record;

use super::Formatter;
use super::layout::Layout;
use crate::consume::decoder::{Decoder, quoted};

/// All that the record has, whatever the layout leaves out; keys and values as their decoders say.
pub struct Json(pub Layout);

impl Formatter for Json {
    fn write(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), String> {
        let Layout { key_decoder, value_decoder, headers_decoder, .. } = &self.0;
        let headers = record.headers().map(|header| {
            let name = header.name();
            let value = json(headers_decoder, header.value).map_err(|why| format!("header {name}: {why}"))?;
            Ok(format!(r#"{{"key":{},"value":{value}}}"#, quoted(&name)))
        });
        let headers = headers.collect::<Result<Vec<_>, String>>()?.join(",");
        let timestamp = record.timestamp().map_or("null".to_owned(), |at| at.to_string());
        let (topic, partition, offset) = (quoted(record.topic()), record.partition(), record.offset());
        let key = json(key_decoder, record.key()).map_err(|why| format!("key: {why}"))?;
        let value = json(value_decoder, record.value()).map_err(|why| format!("value: {why}"))?;
        let line = format!(
            r#"{{"topic":{topic},"partition":{partition},"offset":{offset},"timestamp":{timestamp},"headers":[{headers}],"key":{key},"value":{value}}}"#
        );
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
        Ok(())
    }

    fn is_json(&self) -> bool {
        true
    }
}

fn json(decoder: &Decoder, bytes: Option<&[u8]>) -> Result<String, String> {
    bytes.map_or(Ok("null".to_owned()), |bytes| Ok(decoder.decode(bytes)?.to_json()))
}
