//! Primitive types of the Kafka protocol, read from a frame and written to one.

mod error;
mod reader;
pub(crate) mod varint;
mod writer;

pub use error::{WireError, WireProblem};
pub use reader::Reader;
pub use writer::Writer;

#[cfg(test)]
mod tests;
