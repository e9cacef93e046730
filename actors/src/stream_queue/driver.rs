//! Drives a user's handler from inside its own context: no message per record, and order, acknowledgement and
//! retry come by themselves, since the next record is taken when the one before is done.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};
use std::time::Duration;

use actix::dev::Request;
use actix::fut::ActorFuture;
use actix::prelude::*;
use tokio::time::{Sleep, sleep};

use kafka_troupe_proto::kafka::compression::Decompressor;

use super::answer::{Answer, Later};
use super::reader::{ChunkReader, Step};
use super::{ChunkFailed, HandlerGone, NextChunk, ReadOptions, StreamQueue, Tally};
use crate::record::{HandlerError, HandlerResult, Record};

/// After so many records in a row the handler's mailbox gets its turn.
const RECORDS_PER_TURN: u32 = 256;
/// How often a fenced stream looks whether its lease is back.
const FENCED_RETRY: Duration = Duration::from_millis(20);
/// A failed record is handled again after this, doubling up to [`RETRY_MOST`].
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MOST: Duration = Duration::from_secs(10);

/// Makes a user's handler actor, in the current arbiter, and sets its driver going.
#[derive(Clone)]
pub struct HandlerFactory {
    launch: Arc<dyn Fn(Addr<StreamQueue>, ReadOptions, Tally, u64) + Send + Sync>,
}

impl HandlerFactory {
    /// `make` is called for the first handler and for each that replaces one that panicked or stopped.
    pub fn new<H>(make: impl Fn() -> H + Send + Sync + 'static) -> Self
    where
        H: Actor<Context = Context<H>> + Handler<Record>,
        <H as Handler<Record>>::Result: 'static,
    {
        let launch = move |queue: Addr<StreamQueue>, options, tally, life| {
            H::create(|ctx| {
                ctx.spawn(Driver::new(queue, options, tally, life));
                make()
            });
        };
        Self { launch: Arc::new(launch) }
    }

    pub(super) fn launch(&self, queue: Addr<StreamQueue>, options: ReadOptions, tally: Tally, life: u64) {
        (self.launch)(queue, options, tally, life);
    }
}

/// Where the driver stands. Whatever it is, dropping it (the handler is gone) tells the queue.
enum State<H: Actor> {
    /// A chunk was asked for.
    Asking(Pin<Box<Request<StreamQueue, NextChunk>>>),
    /// In a chunk, before the next record, or before one that failed.
    Reading,
    /// A record is with the handler.
    Handling(Later<H>),
    /// The record comes (again) later: it failed, or the lease has ended and may come back.
    Paused(Pin<Box<Sleep>>),
}

struct Driver<H: Actor> {
    queue: Addr<StreamQueue>,
    life: u64,
    options: ReadOptions,
    reader: Option<ChunkReader>,
    tally: Tally,
    /// Its buffers are used again for every batch.
    decompressor: Decompressor,
    state: State<H>,
    /// How often the current record has failed.
    failures: u32,
    /// The stream ended as it should.
    ended: bool,
}

impl<H: Actor> Driver<H> {
    fn new(queue: Addr<StreamQueue>, options: ReadOptions, tally: Tally, life: u64) -> Self {
        let state = State::Asking(Box::pin(queue.send(NextChunk)));
        Self {
            queue,
            life,
            options,
            reader: None,
            tally,
            decompressor: options.decompressor(),
            state,
            failures: 0,
            ended: false,
        }
    }

    fn ask(&mut self) {
        self.reader = None;
        self.state = State::Asking(Box::pin(self.queue.send(NextChunk)));
    }

    #[inline]
    fn answered(&mut self, result: HandlerResult) {
        match result {
            Ok(()) => {
                self.failures = 0;
                if let Some(reader) = &mut self.reader
                    && reader.handled()
                {
                    self.tally.add();
                }
            }
            Err(error) => self.failed(&error),
        }
    }

    #[cold]
    fn failed(&mut self, error: &HandlerError) {
        let delay = RETRY_FIRST.saturating_mul(1 << self.failures.min(10)).min(RETRY_MOST);
        self.failures += 1;
        let record = self.reader.as_ref().map(ChunkReader::place);
        tracing::warn!(record, %error, attempt = self.failures, ?delay, "handler failed; the record comes again");
        if let Some(reader) = &mut self.reader {
            reader.again();
        }
        self.pause(delay);
    }

    fn pause(&mut self, delay: Duration) {
        self.state = State::Paused(Box::pin(sleep(delay)));
    }
}

impl<H> Driver<H>
where
    H: Actor<Context = Context<H>> + Handler<Record>,
    <H as Handler<Record>>::Result: 'static,
{
    /// Hands over the next record of the chunk, or asks for another chunk.
    #[inline]
    fn read(&mut self, act: &mut H, ctx: &mut Context<H>) {
        let Some(reader) = &mut self.reader else { return self.ask() };
        match reader.step(&mut self.decompressor, |record| act.handle(record, ctx)) {
            Step::HandedOver(response) => match Answer::of(response, ctx) {
                Answer::Now(result) => self.answered(result),
                Answer::Later(later) => self.state = State::Handling(later),
            },
            Step::Fenced => self.pause(FENCED_RETRY),
            Step::Failed(error) => {
                let partition = Arc::clone(reader.partition());
                self.queue.do_send(ChunkFailed { partition, error });
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
                Ok(Some(chunk)) => {
                    self.reader = Some(ChunkReader::new(chunk, &self.options));
                    self.state = State::Reading;
                }
                _ => return Poll::Ready(Flow::End),
            },
            State::Handling(later) => {
                let result = ready!(later.poll(act, ctx, task));
                self.state = State::Reading;
                self.answered(result);
            }
            State::Paused(delay) => {
                ready!(delay.as_mut().poll(task));
                self.state = State::Reading;
            }
        }
        Poll::Ready(Flow::GoOn)
    }

    /// No record is with the handler until the next poll: whoever waits for that need wait no longer.
    fn rest(&mut self) -> Poll<()> {
        if !matches!(self.state, State::Handling(_))
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

impl<H> ActorFuture<H> for Driver<H>
where
    H: Actor<Context = Context<H>> + Handler<Record>,
    <H as Handler<Record>>::Result: 'static,
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

impl<H: Actor> Drop for Driver<H> {
    fn drop(&mut self) {
        // first of all: the next life begins at the record that this one has in hand
        self.reader = None;
        if !self.ended {
            self.queue.do_send(HandlerGone { life: self.life });
        }
    }
}
