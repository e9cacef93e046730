//! A record in flight, and what is waited for before it is done.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context as Task, Poll};
use std::time::Duration;

use actix::prelude::*;
use tokio::time::timeout;

use super::claims::Origin;
use super::failed::Burial;
use crate::dead_letters::{DeadLetterError, Written};
use crate::handler_result::HandlerResult;
use crate::record::Record;
use crate::stream_queue::FetchedChunk;
use crate::stream_queue::answer::Later;
use crate::stream_queue::driver::LetterWritten;

/// A record that was taken from the stream, until it is done.
pub(super) struct Taken {
    pub(super) origin: Origin,
    pub(super) record: Record,
    pub(super) size: u64,
    pub(super) lane: Option<u64>,
    /// How often it has failed.
    pub(super) failures: u32,
    /// The last time by ending its handler: the policy is asked before it is handed over again.
    pub(super) ended_handler: bool,
    /// It is given up, and to be written.
    pub(super) burial: Option<Box<Burial>>,
    /// Keeps its room in the queue.
    pub(super) chunk: Rc<FetchedChunk>,
}

/// A record in flight that is waited for.
pub(super) struct Pending<H: Actor> {
    pub(super) taken: Taken,
    pub(super) what: Awaited<H>,
}

pub(super) enum Awaited<H: Actor> {
    /// The handler's answer.
    Answer(Later<H>),
    /// The time to hand it over (again): it failed, or the lease has ended and may come back.
    /// Or not: its partition is halted or given up, and it is to keep no room from others.
    Time(Pin<Box<dyn Future<Output = ()>>>),
    /// Its dead letter is being written.
    Letter(LetterWritten),
}

/// What came of what was waited for.
pub(super) enum Outcome {
    Answer(HandlerResult),
    Time,
    Letter(Result<Written, DeadLetterError>),
}

impl<H: Actor> Awaited<H> {
    pub(super) fn after(delay: Duration, taken: &Taken) -> Self {
        let (partition, round) = (Arc::clone(&taken.chunk.partition), taken.chunk.round());
        Self::Time(Box::pin(async move {
            // an error: the time is over
            let _ = timeout(delay, partition.over(round)).await;
        }))
    }

    pub(super) fn poll(&mut self, act: &mut H, ctx: &mut Context<H>, task: &mut Task<'_>) -> Poll<Outcome>
    where
        H: Actor<Context = Context<H>>,
    {
        match self {
            Self::Answer(later) => later.poll(act, ctx, task).map(Outcome::Answer),
            Self::Time(time) => time.as_mut().poll(task).map(|()| Outcome::Time),
            Self::Letter(letter) => letter.as_mut().poll(task).map(Outcome::Letter),
        }
    }
}
