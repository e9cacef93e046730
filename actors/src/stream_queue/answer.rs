//! What a handler answers, without a channel where its type tells how to get at it.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as Task, Poll};

use actix::dev::MessageResponse;
use actix::prelude::*;
use tokio::sync::oneshot;
use tracing::Span;

use super::handler_span::note;
use crate::handler_result::HandlerResult;

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
    /// Any of these, in whose span it is polled.
    InSpan(Box<(Span, Self)>),
}

impl<H: Actor<Context = Context<H>>> Answer<H> {
    #[inline]
    pub(super) fn of<M>(response: H::Result, ctx: &mut Context<H>) -> Self
    where
        M: Message<Result = HandlerResult>,
        H: Handler<M>,
        H::Result: 'static,
    {
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
            Self::InSpan(traced) => {
                let (span, later) = &mut **traced;
                let result = span.in_scope(|| later.poll(act, ctx, task));
                if let Poll::Ready(result) = &result {
                    note(span, result);
                }
                result
            }
            Self::Channel(result) => Pin::new(result)
                .poll(task)
                .map(|answer| answer.unwrap_or_else(|_| Err("the handler dropped its answer".into()))),
        }
    }
}
