//! The pulled stream: `futures::Stream` over records.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix::MailboxError;
use actix::dev::Request;
use futures_util::Stream;
use tokio::time::{Sleep, sleep};

use kafka_troupe_proto::kafka::compression::Decompressor;

use super::reader::{ChunkReader, Step};
use super::{ChunkFailed, FetchedChunk, NextChunk, ReadOptions, StreamQueue, Tally};
use crate::decoder::Undecoded;
use crate::record::{ConsumeError, Record};
use crate::record_batch::RecordBatch;
use crate::supervise::Slot;

const PAUSE: Duration = Duration::from_millis(20);

/// One stream of a subscription, as [`futures::Stream`](Stream): in order per partition.
///
/// A record counts as handled when the *next* one is asked for, or [`ack`](Self::ack) is called; only then may
/// a commit cover it. The stream ends when its consumer system shuts down. An error item names a record that cannot be
/// read, and how to step over it. The stream goes on with its other partitions, and meets the error again whenever
/// the record was fetched again in vain: after 1 s, doubling up to 30 s.
///
/// Cancel-safe: dropping the future of `next()` or [`next_batch`](Self::next_batch), at any point where it waits, loses
/// nothing and acknowledges nothing but what was given out before it, so that it may stand in a loop of `select!` or
/// under a time-out. What has arrived meanwhile is the next to be given out. Dropping the stream itself leaves its
/// partitions owned and unread until the system shuts down; a record that was given out last and not
/// [acknowledged](Self::ack) is not handled then.
///
/// For threads without a runtime there is [`blocking`](Self::blocking), for speed `next_batch`.
pub struct KafkaStream {
    queue: Slot<StreamQueue>,
    options: ReadOptions,
    request: Option<Pin<Box<Request<StreamQueue, NextChunk>>>>,
    reader: Option<ChunkReader>,
    tally: Tally,
    /// Its buffers are used again for every batch.
    decompressor: Decompressor,
    /// Waits before it goes on: a record cannot be given out now (the lease has ended, and may come back), or the
    /// queue has died and not come back yet.
    pub(super) paused: Option<Pin<Box<Sleep>>>,
    /// `consumer.timeout.ms`, of a [blocking](Self::blocking) iterator.
    pub(super) timeout: Option<Duration>,
    ended: bool,
}

impl KafkaStream {
    pub(crate) fn new(
        queue: Slot<StreamQueue>,
        options: ReadOptions,
        tally: Tally,
        timeout: Option<Duration>,
    ) -> Self {
        Self {
            queue,
            options,
            request: None,
            reader: None,
            tally,
            decompressor: options.decompressor(),
            paused: None,
            timeout,
            ended: false,
        }
    }

    /// The stream of a queue that has no member around it.
    pub fn of(queue: Slot<StreamQueue>, options: ReadOptions) -> Self {
        Self::new(queue, options, Tally::default(), None)
    }

    /// The record that was given out last is handled.
    pub fn ack(&mut self) {
        self.handled();
        if let Some(reader) = &mut self.reader {
            reader.release();
        }
    }

    #[inline]
    fn handled(&mut self) {
        if let Some(reader) = &mut self.reader {
            match reader.handled() {
                true => self.tally.add(),
                false => self.tally.add_all(reader.portion_handled()),
            }
        }
    }

    /// The next record, if it can be given out without waiting: needs no runtime.
    #[inline]
    pub(super) fn next_at_hand(&mut self) -> Option<Result<Record, ConsumeError>> {
        self.handled();
        if self.paused.is_some() {
            return None;
        }
        match self.reader.as_mut()?.step(&mut self.decompressor, |record| Some(Ok(record))) {
            Step::HandedOver(item) => item,
            Step::Failed(error) => Some(Err(self.failed(error))),
            // the latter says nothing: no failures are counted of what is pulled
            Step::Fenced | Step::FailedBefore => None,
            Step::End | Step::Closed => {
                self.reader = None;
                None
            }
        }
    }

    /// The next chunk; an error when the queue has died and not come back yet.
    fn poll_chunk(&mut self, task: &mut Context<'_>) -> Poll<Result<Option<FetchedChunk>, MailboxError>> {
        if self.request.is_none() {
            // an empty slot: the system has shut down
            let Some(queue) = self.queue.get() else { return Poll::Ready(Ok(None)) };
            self.request = Some(Box::pin(queue.send(NextChunk)));
        }
        let Some(request) = &mut self.request else { return Poll::Pending };
        let answer = ready!(request.as_mut().poll(task));
        self.request = None;
        Poll::Ready(match answer {
            // a queue that panics lets go of the answer; the stream has ended only if no other life is to come
            Ok(None) if self.queue.get().is_some() => Err(MailboxError::Closed),
            answer => answer,
        })
    }

    fn failed(&mut self, error: ConsumeError) -> ConsumeError {
        if let Some(reader) = self.reader.take() {
            let partition = Arc::clone(reader.partition());
            self.queue.do_send(ChunkFailed { partition, error: error.clone() });
        }
        error
    }
}

impl KafkaStream {
    /// The next records of one partition together: what is there of it, at most `most`. For consumers that are fast, as
    /// it spares what each item of the stream costs; a batch is not waited for to fill. All of it counts as handled
    /// when more is asked for, or by [`ack`](Self::ack), whether it was walked or not. None at the end of the stream; an
    /// error as the stream's items are.
    ///
    /// Cancel-safe, as `next()` is, and both may be used in turn.
    pub async fn next_batch(&mut self, most: usize) -> Option<Result<RecordBatch, ConsumeError>> {
        let most = u32::try_from(most).unwrap_or(u32::MAX).max(1);
        poll_fn(|task| {
            self.poll_with(task, |reader, decompressor| {
                let partition = Arc::clone(reader.partition());
                reader.step_portion(decompressor, most, |portion| {
                    Poll::Ready(Some(Ok(RecordBatch::new(partition, portion, Arc::new(Undecoded)))))
                })
            })
        })
        .await
    }

    /// What is asked for first: what was given out last is handled.
    #[inline(always)]
    fn poll_with<T>(
        &mut self,
        task: &mut Context<'_>,
        mut step: impl FnMut(&mut ChunkReader, &mut Decompressor) -> Step<PollItem<T>>,
    ) -> PollItem<T> {
        self.handled();
        loop {
            if self.ended {
                return Poll::Ready(None);
            }
            if let Some(delay) = &mut self.paused {
                ready!(delay.as_mut().poll(task));
                self.paused = None;
            }
            if let Some(reader) = &mut self.reader {
                match step(reader, &mut self.decompressor) {
                    Step::HandedOver(item) => return item,
                    Step::Fenced => {
                        self.paused = Some(Box::pin(sleep(PAUSE)));
                        continue;
                    }
                    Step::Failed(error) => return Poll::Ready(Some(Err(self.failed(error)))),
                    // which says nothing: no failures are counted of what is pulled
                    Step::FailedBefore => {
                        reader.again();
                        continue;
                    }
                    Step::End | Step::Closed => self.reader = None,
                }
            }
            match ready!(self.poll_chunk(task)) {
                Ok(Some(chunk)) => self.reader = Some(ChunkReader::new(chunk, &self.options)),
                Ok(None) => self.ended = true,
                Err(_) => self.paused = Some(Box::pin(sleep(PAUSE))),
            }
        }
    }
}

type PollItem<T> = Poll<Option<Result<T, ConsumeError>>>;

impl Stream for KafkaStream {
    type Item = Result<Record, ConsumeError>;

    #[inline]
    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_with(task, |reader, decompressor| {
            reader.step(decompressor, |record| Poll::Ready(Some(Ok(record))))
        })
    }
}

impl fmt::Debug for KafkaStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.reader.as_ref().map(ChunkReader::place);
        f.debug_struct("KafkaStream").field("at", &at).field("ended", &self.ended).finish()
    }
}
