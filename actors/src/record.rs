//! What a handler or puller is given: one [`Record`], a view into the response as it came from the broker.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use kafka_troupe_proto::TopicPartition;
pub use kafka_troupe_proto::kafka::records::{Header, TimestampType};
use kafka_troupe_proto::kafka::records::{RawRecord, RecordBatch};

use crate::decoder::{DecodeError, Decoder, Protobuf};
use crate::handler_result::HandlerResult;
use crate::registry::OwnedPartition;

/// One record: its batch, shared with the batch's other records, and where it stands in it. Cheap to clone;
/// a clone keeps the response it came in alive.
///
/// With a [`Decoder`](crate::Decoder), `T` is what it made of the record: see [`decoded`](Self::decoded). The bytes are
/// there all the same.
#[derive(Clone)]
pub struct Record<T = ()> {
    batch: Arc<SharedBatch>,
    raw: RawRecord,
    decoded: T,
}

/// What the records of one batch share.
pub(crate) struct SharedBatch {
    pub(crate) batch: RecordBatch,
    pub(crate) from: ReadFrom,
}

/// Where records come from.
pub(crate) enum ReadFrom {
    /// A partition that the group's member owned.
    Claim(Arc<OwnedPartition>),
    /// A partition that is read without a group.
    Partition(Arc<TopicPartition>),
}

impl From<Arc<OwnedPartition>> for ReadFrom {
    fn from(claim: Arc<OwnedPartition>) -> Self {
        Self::Claim(claim)
    }
}

impl ReadFrom {
    fn topic_partition(&self) -> &TopicPartition {
        match self {
            Self::Claim(claim) => &claim.topic_partition,
            Self::Partition(partition) => partition,
        }
    }

    fn claim(&self) -> Option<&Arc<OwnedPartition>> {
        match self {
            Self::Claim(claim) => Some(claim),
            Self::Partition(_) => None,
        }
    }
}

impl Record {
    #[inline]
    pub(crate) fn new(batch: Arc<SharedBatch>, raw: RawRecord) -> Self {
        Self { batch, raw, decoded: () }
    }

    /// The record with what a decoder makes of it: what a subscription does with its own, for a record that was pulled.
    ///
    /// # Errors
    /// [`DecodeError`], which names the record.
    ///
    /// ```
    /// # use kafka_troupe_actors::{DecodeError, Record, decoder::Utf8};
    /// fn print(record: Record) -> Result<(), DecodeError> {
    ///     let record = record.decode_with(&Utf8)?;
    ///     println!("{}: {}", record.offset(), record.decoded());
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub fn decode_with<D: Decoder + ?Sized>(self, decoder: &D) -> Result<Record<D::Output>, DecodeError> {
        match decoder.decode(&self) {
            Ok(decoded) => Ok(Record { batch: self.batch, raw: self.raw, decoded }),
            Err(error) => Err(DecodeError::new(&self, &*error)),
        }
    }
}

impl<T> Record<T> {
    /// What the subscription's decoder made of the record.
    #[inline]
    pub fn decoded(&self) -> &T {
        &self.decoded
    }

    /// The same, to keep.
    #[inline]
    pub fn into_decoded(self) -> T {
        self.decoded
    }

    /// The record without it.
    pub fn undecoded(&self) -> Record {
        Record::new(Arc::clone(&self.batch), self.raw)
    }

    /// The claim under which it was read; none without a group.
    pub(crate) fn claim(&self) -> Option<&Arc<OwnedPartition>> {
        self.batch.from.claim()
    }

    /// The topic's name.
    pub fn topic(&self) -> &str {
        &self.batch.from.topic_partition().topic
    }

    /// The partition's number.
    pub fn partition(&self) -> i32 {
        self.batch.from.topic_partition().partition
    }

    /// The record's offset.
    #[inline]
    pub fn offset(&self) -> i64 {
        self.raw.offset
    }

    /// Milliseconds since 1970: the producer's time or the broker's, as [`timestamp_type`](Self::timestamp_type)
    /// says; none in message format 0, or where the producer gave none.
    #[inline]
    pub fn timestamp(&self) -> Option<i64> {
        (self.raw.timestamp >= 0).then_some(self.raw.timestamp)
    }

    /// Whose time [`timestamp`](Self::timestamp) is, as the topic's `message.timestamp.type` said when the record was
    /// written.
    pub fn timestamp_type(&self) -> TimestampType {
        self.batch.batch.timestamp_type
    }

    /// The key; none is not the same as empty.
    #[inline]
    pub fn key(&self) -> Option<&[u8]> {
        self.raw.key(&self.batch.batch.payload)
    }

    /// The value; none (a tombstone) is not the same as empty.
    #[inline]
    pub fn value(&self) -> Option<&[u8]> {
        self.raw.value(&self.batch.batch.payload)
    }

    /// The value as a slice that can be kept, without copying.
    pub fn value_bytes(&self) -> Option<Bytes> {
        self.value().map(|value| self.batch.batch.payload.slice_ref(value))
    }

    /// The value as text; a value that is not UTF-8 has its wrong bytes replaced by U+FFFD.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.value().unwrap_or_default())
    }

    /// The value as a Protobuf message.
    ///
    /// # Errors
    /// [`DecodeError`], which names the record, when the value is absent or no such message.
    pub fn decode<M: prost::Message + Default + 'static>(&self) -> Result<M, DecodeError> {
        self.undecoded().decode_with(&Protobuf::<M>::new()).map(Record::into_decoded)
    }

    /// Headers in the order they were written; a key may come twice, a value may be null.
    pub fn headers(&self) -> impl Iterator<Item = Header<'_>> {
        self.raw.headers(&self.batch.batch.payload)
    }

    /// The partition is not ours any more, or its lease has ended: another member may be handling this
    /// record. To be asked before an effect that must not happen twice. Never so of a record that was read without a
    /// group.
    pub fn is_fenced(&self) -> bool {
        self.claim().is_some_and(|claim| claim.is_fenced())
    }
}

impl<T> fmt::Debug for Record<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Record({}-{}@{})", self.topic(), self.partition(), self.offset())
    }
}

impl<T: 'static> actix::Message for Record<T> {
    type Result = HandlerResult;
}

/// A record, or a batch, that cannot be read: damaged, of an unknown format, or in a codec that is not built in. What
/// came before it has been delivered; nothing after it is, and nothing is skipped: it is fetched again after a pause,
/// which grows to 30 s, until the data or the position changes.
///
/// To step over it, give the partition another position: [`seek`](crate::ConsumerHandle::seek) to
/// [`resume_at`](Self::resume_at).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot read {topic}-{partition} at offset {offset}: {why}; to step over it, seek({topic:?}, {partition}, {resume_at})"
)]
#[non_exhaustive]
pub struct ConsumeError {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The first offset that cannot be read.
    pub offset: i64,
    /// Where reading may go on: after the damaged record or batch, as far as its header can be trusted.
    pub resume_at: i64,
    /// What is wrong.
    pub why: String,
}

impl ConsumeError {
    pub(crate) fn new(partition: &TopicPartition, offset: i64, resume_at: i64, why: String) -> Self {
        let TopicPartition { topic, partition, .. } = partition;
        Self { topic: topic.to_string(), partition: *partition, offset, resume_at, why }
    }
}
