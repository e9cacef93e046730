//! What a handler is given at once: a record, or many.

use std::sync::Arc;

use actix::Message;
use kafka_troupe_proto::kafka::compression::Decompressor;

use crate::decoder::{DecodeError, Decoder};
use crate::handler_result::HandlerResult;
use crate::record::Record;
use crate::record_batch::RecordBatch;
use crate::stream_queue::Tally;
use crate::stream_queue::handler_span::Spanned;
use crate::stream_queue::reader::{ChunkReader, Step};

/// How a driver feeds its handler from a chunk.
pub(in super::super) trait Feed: Clone + Unpin + 'static {
    /// What the handler is given.
    type Message: Message<Result = HandlerResult> + Spanned + 'static;

    /// Hands over what comes next.
    fn step<T>(
        &self,
        reader: &mut ChunkReader,
        decompressor: &mut Decompressor,
        hand_over: impl FnOnce(Self::Message) -> T,
    ) -> Step<Result<T, DecodeError>>;

    /// What was handed over is handled.
    fn handled(reader: &mut ChunkReader, tally: &mut Tally);

    /// What was handed over failed, at this offset if the handler says so, all before which is handled then. Gives the
    /// first offset that was not, and the one after what failed.
    fn failed(reader: &mut ChunkReader, place: Option<i64>) -> Option<(i64, i64)>;

    /// What was handed over comes again, from this offset on, or is passed over up to it.
    fn go_on_at(reader: &mut ChunkReader, offset: i64);
}

/// Records, one by one.
pub(super) struct OneByOne<D>(Arc<D>);

impl<D> OneByOne<D> {
    pub(super) fn new(decoder: D) -> Self {
        Self(Arc::new(decoder))
    }
}

impl<D> Clone for OneByOne<D> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<D: Decoder> Feed for OneByOne<D> {
    type Message = Record<D::Output>;

    #[inline(always)]
    fn step<T>(
        &self,
        reader: &mut ChunkReader,
        decompressor: &mut Decompressor,
        hand_over: impl FnOnce(Self::Message) -> T,
    ) -> Step<Result<T, DecodeError>> {
        reader.step(decompressor, |record| record.decode_with(&*self.0).map(hand_over))
    }

    #[inline(always)]
    fn handled(reader: &mut ChunkReader, tally: &mut Tally) {
        if reader.handled() {
            tally.add();
        }
    }

    fn failed(reader: &mut ChunkReader, _: Option<i64>) -> Option<(i64, i64)> {
        reader.first_in_hand().map(|offset| (offset, offset + 1))
    }

    fn go_on_at(reader: &mut ChunkReader, offset: i64) {
        match reader.first_in_hand() {
            Some(failed) if failed < offset => reader.give_up(),
            _ => reader.again(),
        }
    }
}

/// Batches of records.
pub(super) struct InBatches<T> {
    decoder: Arc<dyn Decoder<Output = T>>,
    most: u32,
}

impl<T> InBatches<T> {
    pub(super) fn new(decoder: impl Decoder<Output = T>, most: usize) -> Self {
        Self { decoder: Arc::new(decoder), most: u32::try_from(most).unwrap_or(u32::MAX).max(1) }
    }
}

impl<T> Clone for InBatches<T> {
    fn clone(&self) -> Self {
        Self { decoder: Arc::clone(&self.decoder), most: self.most }
    }
}

impl<O: 'static> Feed for InBatches<O> {
    type Message = RecordBatch<O>;

    fn step<T>(
        &self,
        reader: &mut ChunkReader,
        decompressor: &mut Decompressor,
        hand_over: impl FnOnce(Self::Message) -> T,
    ) -> Step<Result<T, DecodeError>> {
        let partition = Arc::clone(reader.partition());
        reader.step_portion(decompressor, self.most, |portion| {
            Ok(hand_over(RecordBatch::new(partition, portion, Arc::clone(&self.decoder))))
        })
    }

    fn handled(reader: &mut ChunkReader, tally: &mut Tally) {
        tally.add_all(reader.portion_handled());
    }

    fn failed(reader: &mut ChunkReader, place: Option<i64>) -> Option<(i64, i64)> {
        reader.portion_failed(place)
    }

    fn go_on_at(reader: &mut ChunkReader, offset: i64) {
        reader.go_on_at(offset);
    }
}
