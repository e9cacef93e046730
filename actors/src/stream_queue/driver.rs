//! Drives a user's handler from inside its own context: no message per record, and order, acknowledgement and
//! retry come by themselves, since the next record (or batch) is taken when the one before is done.

mod burying;
mod factory;
mod failed;
mod feed;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};
use std::time::Duration;

use actix::dev::Request;
use actix::fut::ActorFuture;
use actix::prelude::*;
use kafka_troupe_proto::kafka::compression::Decompressor;
use tokio::time::{sleep, timeout};

use super::answer::{Answer, Later};
use super::failing::FailedWith;
use super::reader::{ChunkReader, Step};
use super::{
    ChunkFailed, FetchedChunk, HandlerGone, KnownFailures, NextChunk, ReadOptions, StreamQueue, Tally,
    handler_span,
};
use crate::dead_letters::DeadLetters;
use crate::decoder::DecodeError;
use crate::handler_result::HandlerResult;
use burying::Burial;
pub(super) use burying::LetterWritten;
pub(super) use factory::DriverParts;
pub use factory::HandlerFactory;
pub(crate) use factory::Handling;
use feed::Feed;

/// After so many records (or batches) in a row the handler's mailbox gets its turn.
const RECORDS_PER_TURN: u32 = 256;
/// How often a fenced stream looks whether its lease is back.
const FENCED_RETRY: Duration = Duration::from_millis(20);

/// Where the driver stands. Whatever it is, dropping it (the handler is gone) tells the queue.
enum State<H: Actor> {
    /// A chunk was asked for.
    Asking(Pin<Box<Request<StreamQueue, NextChunk>>>),
    /// In a chunk, before the next record, or before one that failed.
    Reading,
    /// A record is with the handler.
    Handling(Later<H>),
    /// The record comes (again) later: it failed, or the lease has ended and may come back. Or not: its partition is
    /// halted or given up, and does not hold up the others until then.
    Paused(Pin<Box<dyn Future<Output = ()>>>),
    /// Before the next dead letter.
    Burying,
    /// A dead letter is being written.
    Writing(LetterWritten),
}

struct Driver<H: Actor, F: Feed> {
    queue: Addr<StreamQueue>,
    life: u64,
    options: ReadOptions,
    handling: Arc<Handling>,
    feed: F,
    reader: Option<ChunkReader>,
    tally: Tally,
    /// Its buffers are used again for every batch.
    decompressor: Decompressor,
    state: State<H>,
    /// The record that failed last, until it is done.
    failing: Option<FailedWith>,
    /// Records with which earlier lives have ended.
    known: KnownFailures,
    /// What is given up and not written yet.
    burial: Option<Burial>,
    letters: Option<DeadLetters>,
    /// The stream ended as it should.
    ended: bool,
}

impl<H: Actor, F: Feed> Driver<H, F> {
    fn new(parts: DriverParts, feed: F) -> Self {
        let DriverParts { queue, options, tally, life, known, letters, handling, .. } = parts;
        let state = State::Asking(Box::pin(queue.send(NextChunk)));
        Self {
            queue,
            life,
            options,
            handling,
            feed,
            reader: None,
            tally,
            decompressor: options.decompressor(),
            state,
            failing: None,
            known,
            burial: None,
            letters,
            ended: false,
        }
    }

    fn ask(&mut self) {
        self.reader = None;
        self.state = State::Asking(Box::pin(self.queue.send(NextChunk)));
    }

    fn begin(&mut self, chunk: FetchedChunk) {
        let mut reader = ChunkReader::new(chunk, &self.options);
        if let Some(known) = self.known.of(reader.partition()) {
            reader.stop_before(known.offset, known.records);
        }
        self.reader = Some(reader);
        self.state = State::Reading;
    }

    #[inline]
    fn answered(&mut self, result: HandlerResult) {
        match result {
            Ok(()) => {
                if let Some(reader) = &mut self.reader {
                    F::handled(reader, &mut self.tally);
                }
                if self.failing.is_some() {
                    self.failing = None;
                }
            }
            Err(error) => self.failed(&error),
        }
    }

    fn pause(&mut self, delay: Duration) {
        let partition = self.reader.as_ref().map(|reader| Arc::clone(reader.partition()));
        self.state = State::Paused(Box::pin(async move {
            match partition {
                Some(partition) => {
                    // an error: the time is over
                    let _ = timeout(delay, partition.shut()).await;
                }
                None => sleep(delay).await,
            }
        }));
    }
}

impl<H, F: Feed> Driver<H, F>
where
    H: Actor<Context = Context<H>> + Handler<F::Message>,
    <H as Handler<F::Message>>::Result: 'static,
{
    /// Hands over the next record of the chunk, or asks for another chunk.
    #[inline]
    fn read(&mut self, act: &mut H, ctx: &mut Context<H>) {
        if handler_span::is_wanted() {
            return self.read_in_span(act, ctx);
        }
        let Some(reader) = &mut self.reader else { return self.ask() };
        let hand_over = |given| Answer::of(act.handle(given, ctx), ctx);
        let step = self.feed.step(reader, &mut self.decompressor, hand_over);
        self.stepped(step);
    }

    /// Apart: a record that may go two ways is written down before, which costs as much as half its walk.
    #[cold]
    #[inline(never)]
    fn read_in_span(&mut self, act: &mut H, ctx: &mut Context<H>) {
        let Some(reader) = &mut self.reader else { return self.ask() };
        let hand_over = |given| handler_span::hand_over(act, given, ctx);
        let step = self.feed.step(reader, &mut self.decompressor, hand_over);
        self.stepped(step);
    }

    #[inline(always)]
    fn stepped(&mut self, step: Step<Result<Answer<H>, DecodeError>>) {
        match step {
            Step::HandedOver(Ok(Answer::Now(result))) => self.answered(result),
            Step::HandedOver(Ok(Answer::Later(later))) => self.state = State::Handling(later),
            Step::HandedOver(Err(error)) => self.failed(&error.into()),
            Step::FailedBefore => self.failed_before(),
            Step::Fenced => self.pause(FENCED_RETRY),
            Step::Failed(error) => {
                if let Some(reader) = &self.reader {
                    let partition = Arc::clone(reader.partition());
                    self.queue.do_send(ChunkFailed { partition, error });
                }
                self.ask();
            }
            Step::End | Step::Closed => self.ask(),
        }
    }

    /// One step; pending when there is something to wait for, ready at the end of the stream.
    #[inline]
    fn advance(&mut self, act: &mut H, ctx: &mut Context<H>, task: &mut Task<'_>) -> Poll<Flow> {
        match &mut self.state {
            State::Reading => self.read(act, ctx),
            State::Asking(request) => match ready!(request.as_mut().poll(task)) {
                Ok(Some(chunk)) => self.begin(chunk),
                _ => return Poll::Ready(Flow::End),
            },
            State::Handling(later) => {
                let result = ready!(later.poll(act, ctx, task));
                self.state = State::Reading;
                self.answered(result);
            }
            State::Paused(delay) => {
                ready!(delay.as_mut().poll(task));
                self.state = if self.burial.is_some() { State::Burying } else { State::Reading };
            }
            State::Burying => self.write_letter(),
            State::Writing(letter) => {
                let result = ready!(letter.as_mut().poll(task));
                self.written(result);
            }
        }
        Poll::Ready(Flow::GoOn)
    }

    /// No record is with the handler until the next poll: whoever waits for that need wait no longer.
    fn rest(&mut self) -> Poll<()> {
        if !matches!(self.state, State::Handling(_) | State::Writing(_))
            && let Some(reader) = &mut self.reader
        {
            reader.release();
        }
        Poll::Pending
    }
}

enum Flow {
    GoOn,
    End,
}

impl<H, F: Feed> ActorFuture<H> for Driver<H, F>
where
    H: Actor<Context = Context<H>> + Handler<F::Message>,
    <H as Handler<F::Message>>::Result: 'static,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, act: &mut H, ctx: &mut Context<H>, task: &mut Task<'_>) -> Poll<()> {
        let this = &mut *self;
        for _ in 0..RECORDS_PER_TURN {
            match this.advance(act, ctx, task) {
                Poll::Ready(Flow::GoOn) => {}
                Poll::Ready(Flow::End) => {
                    this.ended = true;
                    ctx.stop();
                    return Poll::Ready(());
                }
                Poll::Pending => return this.rest(),
            }
            // a handler that waits for something of its own, or stops, gets no more records
            if ctx.waiting() {
                break;
            }
        }
        task.waker().wake_by_ref();
        this.rest()
    }
}

impl<H: Actor, F: Feed> Drop for Driver<H, F> {
    fn drop(&mut self) {
        let failed = self.ends_with().into_iter().collect();
        // first of all: the next life begins at the record that this one has in hand
        self.reader = None;
        if !self.ended {
            self.queue.do_send(HandlerGone { life: self.life, failed });
        }
    }
}
