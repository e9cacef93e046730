//! What keys, values and values of headers are printed as.

mod binary;
mod java_numbers;
mod protobuf;

use std::borrow::Cow;

use serde::de::IgnoredAny;

pub use binary::base64;
use protobuf::Protobuf;

/// How bytes that are not null are made text.
#[derive(Clone, Debug)]
pub enum Decoder {
    /// The bytes as they are; in JSON text, or base64 where they are not UTF-8.
    Utf8,
    /// Text in which what is not UTF-8 is replaced by U+FFFD: Java's `StringDeserializer`.
    Text,
    /// Java's `BytesDeserializer`: what is not printable ASCII as `\xNN`.
    Escaped,
    Json,
    Hex,
    Base64,
    Boolean,
    Short,
    Integer,
    Long,
    Float,
    Double,
    Uuid,
    Protobuf(Protobuf),
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub enum Decoded<'a> {
    Bytes(&'a [u8]),
    Text(Cow<'a, str>),
    /// A value in JSON.
    Json(String),
}

/// Names of the decoders that need no more; those of Java's classes have `Deserializer` behind them.
const NAMES: &[(&str, &str, Decoder)] = &[
    ("utf8", "ByteArray", Decoder::Utf8),
    ("utf8", "ByteBuffer", Decoder::Utf8),
    ("utf8", "Default", Decoder::Utf8),
    ("string", "String", Decoder::Text),
    ("escaped", "Bytes", Decoder::Escaped),
    ("json", "", Decoder::Json),
    ("hex", "", Decoder::Hex),
    ("base64", "", Decoder::Base64),
    ("boolean", "Boolean", Decoder::Boolean),
    ("short", "Short", Decoder::Short),
    ("integer", "Integer", Decoder::Integer),
    ("long", "Long", Decoder::Long),
    ("float", "Float", Decoder::Float),
    ("double", "Double", Decoder::Double),
    ("uuid", "UUID", Decoder::Uuid),
];

impl Decoder {
    /// By our name, a Java class, or `protobuf:FILE#MESSAGE`.
    pub fn named(name: &str) -> Result<Self, String> {
        let name = name.trim();
        if let Some(schema) = name.strip_prefix("protobuf:") {
            return Protobuf::of(schema).map(Self::Protobuf);
        }
        let java = java_name(name);
        let found = NAMES.iter().find(|(ours, class, _)| *ours == name || java == Some(*class));
        found.map(|(.., decoder)| decoder.clone()).ok_or_else(|| {
            let mut known: Vec<&str> = NAMES.iter().map(|(name, ..)| *name).collect();
            known.dedup();
            let known = known.join(", ");
            format!(
                "no decoder `{name}`; there are {known}, protobuf:FILE#MESSAGE (FILE is a descriptor set), and \
                 org.apache.kafka.common.serialization.*Deserializer of these"
            )
        })
    }

    /// The bytes as text; the error says what they are not.
    pub fn decode<'a>(&self, bytes: &'a [u8]) -> Result<Decoded<'a>, String> {
        Ok(match self {
            Self::Utf8 => Decoded::Bytes(bytes),
            Self::Text => Decoded::Text(String::from_utf8_lossy(bytes)),
            Self::Escaped => Decoded::Text(binary::escaped(bytes).into()),
            Self::Json => Decoded::Json(compact_json(bytes)?),
            Self::Hex => Decoded::Text(binary::hex(bytes).into()),
            Self::Base64 => Decoded::Text(base64(bytes).into()),
            Self::Boolean => Decoded::Json(boolean(bytes)?.to_string()),
            Self::Short => Decoded::Json(i16::from_be_bytes(sized(bytes, "a short")?).to_string()),
            Self::Integer => Decoded::Json(i32::from_be_bytes(sized(bytes, "an integer")?).to_string()),
            Self::Long => Decoded::Json(i64::from_be_bytes(sized(bytes, "a long")?).to_string()),
            Self::Float => number(java_numbers::float(f32::from_be_bytes(sized(bytes, "a float")?))),
            Self::Double => number(java_numbers::double(f64::from_be_bytes(sized(bytes, "a double")?))),
            Self::Uuid => Decoded::Text(uuid(bytes)?.into()),
            Self::Protobuf(message) => Decoded::Json(message.decode(bytes)?),
        })
    }
}

impl Decoded<'_> {
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Text(text) => text.as_bytes(),
            Self::Json(json) => json.as_bytes(),
        }
    }

    /// As a JSON value; bytes that are no text are marked by an object around them.
    pub fn to_json(&self) -> String {
        match self {
            Self::Bytes(bytes) => match str::from_utf8(bytes) {
                Ok(text) => quoted(text),
                Err(_) => format!(r#"{{"base64":"{}"}}"#, base64(bytes)),
            },
            Self::Text(text) => quoted(text),
            Self::Json(json) => json.clone(),
        }
    }
}

/// A JSON string.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The part of a Java class's name, or of an old Scala one, that says what it decodes.
fn java_name(class: &str) -> Option<&str> {
    let java = class.strip_prefix("org.apache.kafka.common.serialization.");
    let scala = class.strip_prefix("kafka.serializer.");
    java.and_then(|name| name.strip_suffix("Deserializer"))
        .or_else(|| scala.and_then(|name| name.strip_suffix("Decoder")))
        .filter(|name| !name.is_empty())
}

fn sized<const N: usize>(bytes: &[u8], what: &str) -> Result<[u8; N], String> {
    bytes.try_into().map_err(|_| format!("{} bytes are not {what}, which has {N}", bytes.len()))
}

fn boolean(bytes: &[u8]) -> Result<bool, String> {
    match sized(bytes, "a boolean")? {
        [0] => Ok(false),
        [1] => Ok(true),
        [other] => Err(format!("byte {other} is not a boolean, which is 0 or 1")),
    }
}

/// A number that JSON has no form for is text.
fn number<'a>(text: String) -> Decoded<'a> {
    if text.ends_with(|last: char| last.is_ascii_digit()) {
        Decoded::Json(text)
    } else {
        Decoded::Text(text.into())
    }
}

fn uuid(bytes: &[u8]) -> Result<String, String> {
    let text = str::from_utf8(bytes).ok().filter(|text| {
        let groups = text
            .split('-')
            .map(|group| group.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(group.len()));
        groups.eq([8, 4, 4, 4, 12].map(Some))
    });
    text.map(str::to_ascii_lowercase).ok_or_else(|| format!("{} bytes are not a UUID's text", bytes.len()))
}

/// JSON in one line, with its numbers and the order of its keys as they are.
fn compact_json(bytes: &[u8]) -> Result<String, String> {
    let text = str::from_utf8(bytes).map_err(|error| format!("not JSON: {error}"))?;
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| format!("not JSON: {error}"))?;
    let (mut quoted, mut escaped) = (false, false);
    Ok(text
        .chars()
        .filter(|&character| {
            let quote = character == '"' && !escaped;
            escaped = quoted && character == '\\' && !escaped;
            quoted ^= quote;
            quoted || !matches!(character, ' ' | '\t' | '\n' | '\r')
        })
        .collect())
}

#[cfg(test)]
mod tests;
