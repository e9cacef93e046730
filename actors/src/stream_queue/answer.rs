//! What a handler answers, without a channel where its type tells how to get at it.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as Task, Poll};

use actix::dev::MessageResponse;
use actix::prelude::*;
use tokio::sync::oneshot;

use crate::record::{HandlerResult, Record};

/// A handler's answer, or how it will come.
pub(super) enum Answer<H: Actor> {
    /// `type Result = HandlerResult`.
    Now(HandlerResult),
    /// The handler is at work.
    Later(Later<H>),
}

/// How an answer comes. The futures are polled by the driver itself, which needs neither a task nor a channel.
pub(super) enum Later<H: Actor> {
    Future(ResponseFuture<HandlerResult>),
    ActorFuture(ResponseActFuture<H, HandlerResult>),
    /// Any other response, such as `AtomicResponse`.
    Channel(oneshot::Receiver<HandlerResult>),
}

impl<H> Answer<H>
where
    H: Actor<Context = Context<H>> + Handler<Record>,
    <H as Handler<Record>>::Result: 'static,
{
    #[inline]
    pub(super) fn of(response: <H as Handler<Record>>::Result, ctx: &mut Context<H>) -> Self {
        let mut response = Some(response);
        if let Some(result) = taken::<HandlerResult>(&mut response) {
            return Self::Now(result);
        }
        Self::Later(match taken::<ResponseFuture<HandlerResult>>(&mut response) {
            Some(future) => Later::Future(future),
            None => match taken::<ResponseActFuture<H, HandlerResult>>(&mut response) {
                Some(future) => Later::ActorFuture(future),
                None => {
                    let (answer, result) = oneshot::channel();
                    if let Some(response) = response {
                        response.handle(ctx, Some(answer));
                    }
                    Later::Channel(result)
                }
            },
        })
    }
}

/// The response, if it is a `T`.
fn taken<T: 'static>(response: &mut dyn Any) -> Option<T> {
    response.downcast_mut::<Option<T>>().and_then(Option::take)
}

impl<H: Actor<Context = Context<H>>> Later<H> {
    pub(super) fn poll(
        &mut self,
        act: &mut H,
        ctx: &mut Context<H>,
        task: &mut Task<'_>,
    ) -> Poll<HandlerResult> {
        match self {
            Self::Future(future) => future.as_mut().poll(task),
            Self::ActorFuture(future) => future.as_mut().poll(act, ctx, task),
            Self::Channel(result) => Pin::new(result)
                .poll(task)
                .map(|answer| answer.unwrap_or_else(|_| Err("the handler dropped its answer".into()))),
        }
    }
}
