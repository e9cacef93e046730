//! The pulled stream: `futures::Stream` over records.

use std::fmt;
use std::future::Future;
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
use crate::record::{ConsumeError, Record};
use crate::supervise::Slot;

const PAUSE: Duration = Duration::from_millis(20);

/// One stream of a subscription, as [`futures::Stream`](Stream): in order per partition.
///
/// A record counts as handled when the *next* one is asked for, or [`ack`](Self::ack) is called; only then may
/// a commit cover it. The stream ends when its consumer system shuts down. An error item names a record that cannot be
/// read, and how to step over it. The stream goes on with its other partitions, and meets the error again whenever
/// the record was fetched again in vain: after 1 s, doubling up to 30 s.
///
/// Dropping the future of `next()` loses nothing (cancel-safe). Dropping the stream itself leaves its
/// partitions owned and unread until the system shuts down.
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
    paused: Option<Pin<Box<Sleep>>>,
    ended: bool,
}

impl KafkaStream {
    pub(crate) fn new(queue: Slot<StreamQueue>, options: ReadOptions, tally: Tally) -> Self {
        Self {
            queue,
            options,
            request: None,
            reader: None,
            tally,
            decompressor: options.decompressor(),
            paused: None,
            ended: false,
        }
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
        if let Some(reader) = &mut self.reader
            && reader.handled()
        {
            self.tally.add();
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

impl Stream for KafkaStream {
    type Item = Result<Record, ConsumeError>;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        this.handled();
        loop {
            if this.ended {
                return Poll::Ready(None);
            }
            if let Some(delay) = &mut this.paused {
                ready!(delay.as_mut().poll(task));
                this.paused = None;
            }
            if let Some(reader) = &mut this.reader {
                match reader.step(&mut this.decompressor, |record| Poll::Ready(Some(Ok(record)))) {
                    Step::HandedOver(item) => return item,
                    Step::Fenced => {
                        this.paused = Some(Box::pin(sleep(PAUSE)));
                        continue;
                    }
                    Step::Failed(error) => return Poll::Ready(Some(Err(this.failed(error)))),
                    Step::End | Step::Closed => this.reader = None,
                }
            }
            match ready!(this.poll_chunk(task)) {
                Ok(Some(chunk)) => this.reader = Some(ChunkReader::new(chunk, &this.options)),
                Ok(None) => this.ended = true,
                Err(_) => this.paused = Some(Box::pin(sleep(PAUSE))),
            }
        }
    }
}

impl fmt::Debug for KafkaStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.reader.as_ref().map(ChunkReader::place);
        f.debug_struct("KafkaStream").field("at", &at).field("ended", &self.ended).finish()
    }
}
