//! What a record's bytes mean: a [`Decoder`] per subscription, so that handlers are given values.
//!
//! | decoder | makes |
//! |---|---|
//! | none | nothing: the handler reads the bytes of a [`Record`] |
//! | [`Utf8`] | a `String` |
//! | [`Json<T>`](Json) (feature `json`) | a `T: serde::Deserialize` |
//! | [`Protobuf<M>`](Protobuf) | an `M: prost::Message` |
//! | a closure, or a type of your own | what you like |
//! | [`decoder.as_value()`](Decoder::as_value) | what any of these does, or the [`DecodeError`], for the handler to look at |
//!
//! ```
//! use kafka_troupe_actors::{Decoder, Record};
//!
//! /// A temperature in text, by the unit that the first header names.
//! struct Celsius;
//!
//! impl Decoder for Celsius {
//!     type Output = f64;
//!
//!     fn decode(&self, record: &Record) -> Result<f64, Box<dyn std::error::Error + Send + Sync>> {
//!         let degrees: f64 = std::str::from_utf8(record.value().ok_or("no temperature")?)?.parse()?;
//!         let fahrenheit = record.headers().next().is_some_and(|header| header.key == b"fahrenheit");
//!         Ok(if fahrenheit { (degrees - 32.0) / 1.8 } else { degrees })
//!     }
//! }
//!
//! // the same as a closure
//! let kelvin = |record: &Record| record.text().parse::<f64>().map(|degrees| degrees - 273.15);
//! # fn takes(_: impl Decoder<Output = f64>) {}
//! # takes(Celsius);
//! # takes(kelvin);
//! ```

#[cfg(feature = "json")]
mod json;
mod protobuf;
mod utf8;

use std::error::Error;

#[cfg(feature = "json")]
pub use json::Json;
pub use protobuf::Protobuf;
pub use utf8::Utf8;

use crate::record::Record;

/// Makes values of a subscription's records, where the handler runs. A closure from `&Record` to a `Result` is one.
pub trait Decoder: Send + Sync + 'static {
    /// What a record is decoded to.
    type Output: 'static;

    /// Decodes one record: usually its value, but key, headers and topic are there as well.
    ///
    /// # Errors
    /// Whatever is wrong with it. The handler does not see the record then; the failure policy says what becomes of it
    /// ([`undecodable`](kafka_troupe_proto::group::FailurePolicy::undecodable)), and is told of a
    /// [`DecodeError`] with the record's coordinates.
    fn decode(&self, record: &Record) -> Result<Self::Output, Box<dyn Error + Send + Sync>>;

    /// The same decoder, but its error is a value too: the handler gets a `Result` with every record.
    #[expect(clippy::wrong_self_convention, reason = "it reads as what it does where subscriptions are made")]
    fn as_value(self) -> AsValue<Self>
    where
        Self: Sized,
    {
        AsValue(self)
    }
}

impl<F, T, E> Decoder for F
where
    F: Fn(&Record) -> Result<T, E> + Send + Sync + 'static,
    T: 'static,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    type Output = T;

    fn decode(&self, record: &Record) -> Result<T, Box<dyn Error + Send + Sync>> {
        self(record).map_err(Into::into)
    }
}

/// Decodes nothing: the decoder of a subscription that is given none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Undecoded;

impl Decoder for Undecoded {
    type Output = ();

    #[inline(always)]
    fn decode(&self, _: &Record) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}

/// Made by [`Decoder::as_value`].
#[derive(Clone, Copy, Debug, Default)]
pub struct AsValue<D>(D);

impl<D: Decoder> Decoder for AsValue<D> {
    type Output = Result<D::Output, DecodeError>;

    fn decode(&self, record: &Record) -> Result<Self::Output, Box<dyn Error + Send + Sync>> {
        Ok(self.0.decode(record).map_err(|error| DecodeError::new(record, &*error)))
    }
}

/// A record that is not what it was taken for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot decode the value of {topic}-{partition} at offset {offset}: {why}")]
#[non_exhaustive]
pub struct DecodeError {
    /// The record's topic.
    pub topic: String,
    /// The record's partition.
    pub partition: i32,
    /// The record's offset.
    pub offset: i64,
    /// What is wrong with it.
    pub why: String,
}

impl DecodeError {
    #[cold]
    pub(crate) fn new<T>(record: &Record<T>, why: &dyn std::fmt::Display) -> Self {
        let (topic, partition, offset) = (record.topic().to_owned(), record.partition(), record.offset());
        Self { topic, partition, offset, why: why.to_string() }
    }
}

/// The value, which a decoder of values needs.
fn value(record: &Record) -> Result<&[u8], &'static str> {
    record.value().ok_or("the value is null")
}
