//! What a handler answers.

use std::error::Error;
use std::fmt;

use crate::decoder::DecodeError;
use crate::record::Record;

/// What a handler answers: done, or why not; then the subscription's
/// [failure policy](kafka_troupe_proto::group::FailurePolicy) says what becomes of the record.
pub type HandlerResult = Result<(), HandlerError>;

/// Any error, as a handler's answer; made by `?`.
///
/// A handler of batches says at which record it failed with [`at`](Self::at); all before that record is then handled.
pub struct HandlerError(Box<dyn Error + Send + Sync>);

impl HandlerError {
    /// An error of this record, out of a batch: all before it is handled, the failure policy is applied to this one, and
    /// what follows comes again with the next batch.
    ///
    /// ```
    /// # use kafka_troupe_actors::{HandlerError, HandlerResult, RecordBatch};
    /// # fn insert(_: Option<&[u8]>) -> std::io::Result<()> { Ok(()) }
    /// fn insert_all(batch: RecordBatch) -> HandlerResult {
    ///     for record in batch.records() {
    ///         insert(record.value()).map_err(|error| HandlerError::at(&record, error))?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn at<T>(record: &Record<T>, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let (topic, partition) = (record.topic().to_owned(), record.partition());
        Self(Box::new(At { topic, partition, offset: record.offset(), error: error.into() }))
    }

    /// The same, but an error that has a place already keeps it.
    pub(crate) fn at_record<T>(self, record: &Record<T>) -> Self {
        if self.place().is_some() { self } else { Self::at(record, self.0) }
    }

    /// The record at which it happened, where the error says so: topic, partition and offset.
    pub fn place(&self) -> Option<(&str, i32, i64)> {
        if let Some(At { topic, partition, offset, .. }) = self.0.downcast_ref() {
            return Some((topic, *partition, *offset));
        }
        let DecodeError { topic, partition, offset, .. } = self.decode_error()?;
        Some((topic, *partition, *offset))
    }

    /// That a record could not be decoded, if that is it.
    pub fn decode_error(&self) -> Option<&DecodeError> {
        self.source_of().downcast_ref()
    }

    /// Whether this is what happened.
    pub(crate) fn is<E: Error + 'static>(&self) -> bool {
        self.source_of().is::<E>()
    }

    /// What happened, without the place.
    fn source_of(&self) -> &(dyn Error + Send + Sync + 'static) {
        self.0.downcast_ref::<At>().map_or(&*self.0, |at| &*at.error)
    }
}

/// An error, and the record at which it happened.
#[derive(Debug)]
struct At {
    topic: String,
    partition: i32,
    offset: i64,
    error: Box<dyn Error + Send + Sync>,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, partition, offset, error } = self;
        write!(f, "{topic}-{partition} at offset {offset}: {error}")
    }
}

impl Error for At {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.error)
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
