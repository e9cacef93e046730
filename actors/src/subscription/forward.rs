//! Stands in a stream for an actor that exists: whatever it is given, it sends there, and answers as that does.

use actix::prelude::*;

use crate::handler_result::HandlerResult;

/// Sends to a recipient.
pub(super) struct Forward<M>(pub(super) Recipient<M>)
where
    M: Message<Result = HandlerResult> + Send + 'static;

impl<M: Message<Result = HandlerResult> + Send + 'static> Actor for Forward<M> {
    type Context = Context<Self>;
}

impl<M: Message<Result = HandlerResult> + Send + 'static> Handler<M> for Forward<M> {
    type Result = ResponseFuture<HandlerResult>;

    fn handle(&mut self, message: M, _: &mut Context<Self>) -> Self::Result {
        let recipient = self.0.clone();
        Box::pin(async move {
            match recipient.send(message).await {
                Ok(result) => result,
                Err(_) if recipient.connected() => Err("the handler ended while it had the record".into()),
                Err(_) => Err(Detached.into()),
            }
        })
    }
}

/// The actor that was to handle records has ended for good: no fault of any record.
#[derive(Debug, thiserror::Error)]
#[error("the actor that handles the records has ended, and its mailbox is closed")]
pub(crate) struct Detached;
