use std::error::Error;
use std::fmt;
use std::marker::PhantomData;

use super::{Decoder, value};
use crate::record::Record;

/// The value as a Protobuf message, its whole. Null (a tombstone) is an error; empty is a message of defaults.
pub struct Protobuf<M>(PhantomData<fn() -> M>);

impl<M: prost::Message + Default + 'static> Protobuf<M> {
    /// The message's type is all that it needs.
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<M: prost::Message + Default + 'static> Decoder for Protobuf<M> {
    type Output = M;

    fn decode(&self, record: &Record) -> Result<M, Box<dyn Error + Send + Sync>> {
        Ok(M::decode(value(record)?)?)
    }
}

impl<M: prost::Message + Default + 'static> Default for Protobuf<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M> fmt::Debug for Protobuf<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Protobuf<{}>", std::any::type_name::<M>())
    }
}
