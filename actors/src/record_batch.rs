//! Records of one partition, handed over together and walked lazily.

use std::fmt;
use std::iter::Cloned;
use std::slice;
use std::sync::{Arc, OnceLock};
use std::vec;

use kafka_troupe_proto::kafka::records::{RawRecord, RecordCursor, RecordsError};

use crate::decoder::{DecodeError, Decoder};
use crate::handler_result::HandlerResult;
use crate::record::{Record, SharedBatch};
use crate::registry::OwnedPartition;

/// Records of one partition, in order: what is there of it now, and at most as many as the subscription says. A batch is
/// never waited for to fill, and may span several of the producer's batches. Records are read as they are walked, so a
/// batch costs next to nothing until then.
///
/// Handled means all of it, walked or not. A handler that fails at one record says so by
/// [`HandlerError::at`](crate::HandlerError::at), or does it by [`try_for_each`](Self::try_for_each); then all before it
/// is handled. After any other error, the failure policy is applied to the whole batch.
///
/// ```
/// use actix::prelude::*;
/// use kafka_troupe_actors::{HandlerResult, RecordBatch};
///
/// #[derive(Default)]
/// struct Sums {
///     bytes: usize,
/// }
///
/// impl Actor for Sums {
///     type Context = Context<Self>;
/// }
///
/// impl Handler<RecordBatch<String>> for Sums {
///     type Result = HandlerResult;
///
///     fn handle(&mut self, batch: RecordBatch<String>, _: &mut Context<Self>) -> HandlerResult {
///         for record in &batch {
///             self.bytes += record?.decoded().len(); // an undecodable record: those before it are handled
///         }
///         println!("{}-{} up to {}", batch.topic(), batch.partition(), batch.next_offset());
///         Ok(())
///     }
/// }
/// ```
pub struct RecordBatch<T = ()> {
    partition: Arc<OwnedPartition>,
    portion: Portion,
    decoder: Arc<dyn Decoder<Output = T>>,
}

/// The same, before a decoder is there.
pub(crate) struct Portion {
    pub(crate) segments: Vec<Segment>,
    pub(crate) first: i64,
    pub(crate) next: i64,
    pub(crate) records: u32,
    /// The first record that cannot be read, once somebody has met it.
    pub(crate) fault: Arc<OnceLock<RecordsError>>,
}

/// Some records in a row of one of the producer's batches.
#[derive(Clone)]
pub(crate) struct Segment {
    pub(crate) batch: Arc<SharedBatch>,
    pub(crate) cursor: RecordCursor,
    pub(crate) records: u32,
}

impl<T: 'static> RecordBatch<T> {
    pub(crate) fn new(
        partition: Arc<OwnedPartition>,
        portion: Portion,
        decoder: Arc<dyn Decoder<Output = T>>,
    ) -> Self {
        Self { partition, portion, decoder }
    }

    /// The topic's name.
    pub fn topic(&self) -> &str {
        &self.partition.topic_partition.topic
    }

    /// The partition's number.
    pub fn partition(&self) -> i32 {
        self.partition.topic_partition.partition
    }

    /// How many records it has; never 0.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.portion.records as usize
    }

    /// The offset of the first record, or one before it.
    pub fn first_offset(&self) -> i64 {
        self.portion.first
    }

    /// The offset after the batch: where the partition goes on, and what is committed once the batch is handled.
    pub fn next_offset(&self) -> i64 {
        self.portion.next
    }

    /// As [`Record::is_fenced`].
    pub fn is_fenced(&self) -> bool {
        self.partition.is_fenced()
    }

    /// Walks the records in order; each is decoded on the way, and one that cannot be is an error item. May be called
    /// again, and decodes again.
    pub fn iter(&self) -> Iter<'_, T> {
        let walk = Walk::new(self.portion.segments.iter().cloned(), &self.portion.fault);
        Iter { walk, decoder: &*self.decoder }
    }

    /// Calls `each` with every record in order, until one fails: the error then says at which record, so that all before
    /// it is handled. A record that cannot be decoded is such an error, too. The cheapest way to walk: the record is
    /// lent.
    ///
    /// ```
    /// # use kafka_troupe_actors::{HandlerResult, RecordBatch};
    /// # fn parse(_: &str) -> Result<u64, std::num::ParseIntError> { Ok(0) }
    /// fn sum(batch: RecordBatch<String>, sum: &mut u64) -> HandlerResult {
    ///     batch.try_for_each(|record| {
    ///         *sum += record.decoded().parse::<u64>()?;
    ///         Ok(())
    ///     })
    /// }
    /// ```
    ///
    /// # Errors
    /// The first of `each`, or of the decoder, with its record's place.
    pub fn try_for_each(&self, mut each: impl FnMut(&Record<T>) -> HandlerResult) -> HandlerResult {
        for record in self {
            let record = record?;
            each(&record).map_err(|error| error.at_record(&record))?;
        }
        Ok(())
    }
}

impl RecordBatch {
    /// Walks the records of a batch that is not decoded, where nothing can fail.
    pub fn records(&self) -> impl Iterator<Item = Record> + use<'_> {
        Walk::new(self.portion.segments.iter().cloned(), &self.portion.fault)
    }
}

impl<T: 'static> actix::Message for RecordBatch<T> {
    type Result = HandlerResult;
}

impl<T: 'static> fmt::Debug for RecordBatch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Portion { first, next, .. } = self.portion;
        write!(f, "RecordBatch({}-{}@{first}..{next})", self.topic(), self.partition())
    }
}

impl<T: 'static> IntoIterator for RecordBatch<T> {
    type Item = Result<Record<T>, DecodeError>;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        let Self { portion: Portion { segments, fault, .. }, decoder, .. } = self;
        IntoIter { walk: Walk::new(segments.into_iter(), &fault), decoder }
    }
}

impl<'a, T: 'static> IntoIterator for &'a RecordBatch<T> {
    type Item = Result<Record<T>, DecodeError>;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// Made by [`RecordBatch::iter`].
pub struct Iter<'a, T> {
    walk: Walk<Cloned<slice::Iter<'a, Segment>>>,
    decoder: &'a dyn Decoder<Output = T>,
}

impl<T: 'static> Iterator for Iter<'_, T> {
    type Item = Result<Record<T>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.walk.next().map(|record| record.decode_with(self.decoder))
    }
}

/// Made by the [`into_iter`](RecordBatch::into_iter) of a [`RecordBatch`], of which it keeps all that is not walked yet.
pub struct IntoIter<T> {
    walk: Walk<vec::IntoIter<Segment>>,
    decoder: Arc<dyn Decoder<Output = T>>,
}

impl<T: 'static> Iterator for IntoIter<T> {
    type Item = Result<Record<T>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.walk.next().map(|record| record.decode_with(&*self.decoder))
    }
}

/// Walks segments, and ends at a record that cannot be read, which the stream then knows of.
struct Walk<I> {
    segments: I,
    current: Option<Segment>,
    fault: Arc<OnceLock<RecordsError>>,
}

impl<I: Iterator<Item = Segment>> Walk<I> {
    fn new(mut segments: I, fault: &Arc<OnceLock<RecordsError>>) -> Self {
        let current = segments.next();
        Self { segments, current, fault: Arc::clone(fault) }
    }

    /// The next of the current segment's.
    #[inline]
    fn raw(&mut self) -> Option<RawRecord> {
        let segment = self.current.as_mut()?;
        segment.records = segment.records.checked_sub(1)?;
        segment.cursor.next_usual().or_else(|| self.unusual())
    }

    /// One of an old format, or malformed.
    #[inline(never)]
    fn unusual(&mut self) -> Option<RawRecord> {
        match self.current.as_mut()?.cursor.next()? {
            Ok(raw) => Some(raw),
            Err(error) => {
                // what comes after lies past it
                self.segments.by_ref().for_each(drop);
                let _ = self.fault.set(error);
                None
            }
        }
    }
}

impl<I: Iterator<Item = Segment>> Iterator for Walk<I> {
    type Item = Record;

    #[inline]
    fn next(&mut self) -> Option<Record> {
        loop {
            if let Some(raw) = self.raw()
                && let Some(segment) = &self.current
            {
                return Some(Record::new(Arc::clone(&segment.batch), raw));
            }
            self.current = Some(self.segments.next()?);
        }
    }
}
