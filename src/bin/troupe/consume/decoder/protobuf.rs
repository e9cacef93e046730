//! Messages of a type that a descriptor set tells, as JSON.

use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};

/// A type of message.
#[derive(Clone, Debug)]
pub struct Protobuf(MessageDescriptor);

impl Protobuf {
    /// `FILE#package.Message`: the file is a `FileDescriptorSet` with all that it imports, as `protoc
    /// --include_imports --descriptor_set_out` writes it.
    pub fn of(schema: &str) -> Result<Self, String> {
        let (file, message) = schema
            .rsplit_once('#')
            .ok_or_else(|| format!("protobuf:{schema}: must be protobuf:FILE#package.Message"))?;
        let bytes = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
        let pool = DescriptorPool::decode(bytes.as_slice()).map_err(|error| {
            format!("{file}: no descriptor set (protoc --include_imports --descriptor_set_out): {error}")
        })?;
        let found = pool.get_message_by_name(message);
        found.map(Self).ok_or_else(|| {
            let known: Vec<_> = pool.all_messages().map(|message| message.full_name().to_owned()).collect();
            format!("{file}: no message {message}; there are {}", known.join(", "))
        })
    }

    /// The message as JSON, by Protobuf's own rules.
    pub fn decode(&self, bytes: &[u8]) -> Result<String, String> {
        let not = |error: &dyn std::fmt::Display| format!("not a {}: {error}", self.0.full_name());
        let message = DynamicMessage::decode(self.0.clone(), bytes).map_err(|error| not(&error))?;
        serde_json::to_string(&message).map_err(|error| not(&error))
    }
}
