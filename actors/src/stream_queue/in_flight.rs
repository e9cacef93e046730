//! Drives a handler that has several records in flight ([`InFlight`]), from inside its own context. The sibling of
//! `driver.rs`, which has one and needs none of this.
//!
//! - Which record begins: [`Lanes`]. How far each partition is acknowledged, and held: `claims.rs`.
//! - Before each hand-over, also of a record that failed, the gate of its partition is asked (INV-1).
//! - A chunk is given back when the last of its records is done, so what is in flight keeps room in the stream's queue.
//! - What is answered after its partition was given up, stopped or set back is of no effect. It counts as in flight
//!   until then, and in its lane.

mod claims;
mod failed;
mod slots;
mod taken;
mod walk;

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context as Task, Poll, Waker, ready};
use std::time::Duration;

use actix::dev::Request;
use actix::fut::ActorFuture;
use actix::prelude::*;
use kafka_troupe_proto::group::Lanes;
use kafka_troupe_proto::kafka::compression::Decompressor;
use tokio::time::{Sleep, sleep};

use super::answer::Answer;
use super::driver::{DriverParts, Handling};
use super::{
    ChunkFailed, FetchedChunk, HandlerGone, KnownFailures, NextChunk, ReadOptions, StreamQueue, Tally,
    handler_span,
};
use crate::dead_letters::DeadLetters;
use crate::decoder::Decoder;
use crate::handler_result::HandlerResult;
use crate::record::Record;
use crate::registry::Gate;
use claims::{Claims, Origin};
use slots::Slots;
use taken::{Awaited, Outcome, Pending, Taken};
use walk::{Walk, Walked};

/// After so many steps in a row the handler's mailbox gets its turn.
const STEPS_PER_TURN: u32 = 256;
/// How often a fenced stream looks whether its lease is back.
const FENCED_RETRY: Duration = Duration::from_millis(20);

/// Where the next record comes from.
enum Source {
    /// A chunk was asked for.
    Asking(Pin<Box<Request<StreamQueue, NextChunk>>>),
    Reading(Box<Walk>),
}

impl Source {
    fn ask(queue: &Addr<StreamQueue>) -> Self {
        Self::Asking(Box::pin(queue.send(NextChunk)))
    }

    fn origin(&self) -> Option<Origin> {
        match self {
            Self::Asking(_) => None,
            Self::Reading(walk) => Some(walk.origin),
        }
    }
}

pub(super) struct InFlightDriver<H: Actor, D: Decoder> {
    decoder: Arc<D>,
    queue: Addr<StreamQueue>,
    life: u64,
    handling: Arc<Handling>,
    options: ReadOptions,
    tally: Tally,
    /// Its buffers are used again for every batch.
    decompressor: Decompressor,
    source: Source,
    /// No record is taken before this is over: the lease has ended and may come back.
    fenced: Option<Pin<Box<Sleep>>>,
    lanes: Lanes<Taken>,
    pending: Slots<Pending<H>>,
    claims: Claims,
    /// Records with which earlier lives have ended.
    known: KnownFailures,
    letters: Option<DeadLetters>,
    /// The record with which the handler is being called.
    called: Option<Taken>,
    /// The one whose answer is being polled.
    polled: Option<usize>,
    /// The stream ended as it should.
    ended: bool,
}

impl<H: Actor, D: Decoder> InFlightDriver<H, D> {
    pub(super) fn new(parts: DriverParts, decoder: Arc<D>) -> Self {
        let DriverParts { queue, options, tally, life, known, letters, handling, running } = parts;
        Self {
            decoder,
            source: Source::ask(&queue),
            queue,
            life,
            lanes: Lanes::new(handling.in_flight),
            handling,
            options,
            tally,
            decompressor: options.decompressor(),
            fenced: None,
            pending: Slots::default(),
            claims: Claims::new(running),
            known,
            letters,
            called: None,
            polled: None,
            ended: false,
        }
    }

    fn ask(&mut self) {
        self.source = Source::ask(&self.queue);
    }

    fn read(&mut self, chunk: FetchedChunk) {
        match self.claims.meet(&chunk) {
            Some(origin) => self.source = Source::Reading(Box::new(Walk::new(chunk, origin, &self.options))),
            None => self.ask(),
        }
    }

    /// The next record of the chunk that is read, if it begins now.
    fn take(&mut self) -> Option<Taken> {
        let Source::Reading(walk) = &mut self.source else { return None };
        let origin = walk.origin;
        match walk.next(&mut self.decompressor) {
            Walked::Record(record, size) if self.claims.take(origin, record.offset()) => {
                let chunk = Rc::clone(&walk.chunk);
                let lane = self.handling.in_flight.lane(&chunk.partition.topic_partition, record.key());
                let known = self.known.take_at(&chunk.partition, record.offset());
                let failures = known.as_ref().map_or(0, |it| it.failures);
                let ended_handler = known.is_some_and(|it| it.ended_handler);
                let taken =
                    Taken { origin, record, size, lane, failures, ended_handler, burial: None, chunk };
                return self.lanes.take(lane, taken);
            }
            Walked::Record(..) => {}
            Walked::Passed(next) => self.claims.pass(origin, next),
            Walked::End(next) => {
                self.claims.pass(origin, next);
                self.ask();
            }
            Walked::Failed(error) => {
                let unreadable = self.claims.unreadable(origin, error);
                self.tell(unreadable);
                self.ask();
            }
        }
        None
    }

    fn tell(&self, unreadable: Option<ChunkFailed>) {
        if let Some(unreadable) = unreadable {
            self.queue.do_send(unreadable);
        }
    }

    /// A record is with the handler no longer. Gives the one that begins in its place.
    fn answered(&mut self, taken: Taken, result: HandlerResult) -> Option<Taken> {
        self.claims.answered(taken.origin);
        match result {
            Ok(()) => {
                self.finish(&taken);
                self.let_go(taken)
            }
            Err(error) => self.failed(taken, &error),
        }
    }

    /// A record is done; whether that is of any effect.
    fn finish(&mut self, taken: &Taken) -> bool {
        let acknowledged = self.claims.finish(taken.origin, taken.record.offset(), taken.size);
        if taken.failures > 0 {
            // of those before it some may be in flight yet, so the acknowledged position does not tell
            taken.chunk.partition.set_not_retried(taken.record.offset());
        }
        self.tally.add_all(acknowledged.unwrap_or(0));
        acknowledged.is_some()
    }

    /// A record is in flight no longer. Gives the one that begins in its place.
    fn let_go(&mut self, taken: Taken) -> Option<Taken> {
        let unreadable = self.claims.let_go(taken.origin);
        self.tell(unreadable);
        self.lanes.finish(taken.lane)
    }

    fn wait(&mut self, taken: Taken, what: Awaited<H>) {
        self.pending.insert(Pending { taken, what });
    }

    /// Nothing more happens until the next poll.
    fn rest(&mut self) -> Poll<()> {
        self.claims.rest(self.source.origin());
        Poll::Pending
    }
}

enum Flow {
    GoOn,
    End,
}

impl<H, D: Decoder> InFlightDriver<H, D>
where
    H: Actor<Context = Context<H>> + Handler<Record<D::Output>>,
    <H as Handler<Record<D::Output>>>::Result: 'static,
{
    /// Hands a record over; then, if it is done at once, the one in its place, and so on.
    fn begin(&mut self, taken: Taken, act: &mut H, ctx: &mut Context<H>) {
        let mut next = Some(taken);
        while let Some(taken) = next {
            next = self.hand_over(taken, act, ctx);
        }
    }

    fn hand_over(&mut self, taken: Taken, act: &mut H, ctx: &mut Context<H>) -> Option<Taken> {
        match self.claims.open(taken.origin) {
            Gate::Open => {}
            Gate::Fenced => {
                self.wait_for(FENCED_RETRY, taken);
                return None;
            }
            Gate::Halted | Gate::Closed => return self.let_go(taken),
        }
        if taken.ended_handler {
            self.claims.answered(taken.origin);
            return self.failed_before(taken);
        }
        if taken.burial.is_some() {
            self.write_letter(taken);
            return None;
        }
        let record = taken.record.clone();
        // first: its decoder may end the handler as well
        self.called = Some(taken);
        let record = record.decode_with(&*self.decoder);
        let answer = record.map(|record| handler_span::hand_over(act, record, ctx));
        let taken = self.called.take()?;
        match answer {
            Err(error) => self.answered(taken, Err(error.into())),
            Ok(Answer::Now(result)) => self.answered(taken, result),
            Ok(Answer::Later(later)) => {
                self.wait(taken, Awaited::Answer(later));
                None
            }
        }
    }

    /// Looks at a record in flight that was woken.
    fn look(&mut self, slot: usize, waker: &Waker, act: &mut H, ctx: &mut Context<H>) {
        let mut task = Task::from_waker(waker);
        self.polled = Some(slot);
        let outcome = match self.pending.get_mut(slot) {
            Some(pending) => pending.what.poll(act, ctx, &mut task),
            None => Poll::Pending,
        };
        self.polled = None;
        let Poll::Ready(outcome) = outcome else { return };
        let Some(Pending { taken, .. }) = self.pending.take(slot) else { return };
        let next = match outcome {
            Outcome::Answer(result) => self.answered(taken, result),
            Outcome::Time => Some(taken),
            Outcome::Letter(result) => self.letter_answered(taken, result),
        };
        if let Some(next) = next {
            self.begin(next, act, ctx);
        }
    }

    /// Takes the next record of the stream, or what must come before.
    fn go_on(&mut self, act: &mut H, ctx: &mut Context<H>, task: &mut Task<'_>) -> Poll<Flow> {
        if let Some(fenced) = &mut self.fenced {
            ready!(fenced.as_mut().poll(task));
            self.fenced = None;
        }
        match &mut self.source {
            Source::Asking(request) => match ready!(request.as_mut().poll(task)) {
                Ok(Some(chunk)) => self.read(chunk),
                _ => return Poll::Ready(Flow::End),
            },
            Source::Reading(walk) => match self.claims.gate(walk.origin) {
                Gate::Open => {
                    if let Some(taken) = self.take() {
                        self.begin(taken, act, ctx);
                    }
                }
                Gate::Closed | Gate::Halted => self.ask(),
                Gate::Fenced => self.fenced = Some(Box::pin(sleep(FENCED_RETRY))),
            },
        }
        Poll::Ready(Flow::GoOn)
    }

    /// One step; pending when there is something to wait for.
    fn advance(&mut self, act: &mut H, ctx: &mut Context<H>, task: &mut Task<'_>) -> Poll<Flow> {
        if let Some((slot, waker)) = self.pending.next_woken() {
            self.look(slot, &waker, act, ctx);
            return Poll::Ready(Flow::GoOn);
        }
        if self.lanes.has_room() { self.go_on(act, ctx, task) } else { Poll::Pending }
    }
}

impl<H, D: Decoder> ActorFuture<H> for InFlightDriver<H, D>
where
    H: Actor<Context = Context<H>> + Handler<Record<D::Output>>,
    <H as Handler<Record<D::Output>>>::Result: 'static,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, act: &mut H, ctx: &mut Context<H>, task: &mut Task<'_>) -> Poll<()> {
        let this = &mut *self;
        this.pending.register(task.waker());
        for _ in 0..STEPS_PER_TURN {
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

impl<H: Actor, D: Decoder> Drop for InFlightDriver<H, D> {
    fn drop(&mut self) {
        let failed = self.failures();
        // first of all what is with the handler, then the holds: the next life begins at what is not acknowledged
        self.pending = Slots::default();
        self.claims.clear();
        if !self.ended {
            self.queue.do_send(HandlerGone { life: self.life, failed });
        }
    }
}
