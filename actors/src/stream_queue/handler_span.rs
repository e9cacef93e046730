//! Hands over, inside a span that names the record where somebody wants it.
//!
//! Whether anybody does is one load of a static and a comparison, as long as no subscriber listens at this level; all
//! else is cold.

use actix::prelude::*;
use tracing::{Span, field};

use super::answer::{Answer, Later};
use crate::handler_result::HandlerResult;
use crate::record::Record;
use crate::record_batch::RecordBatch;

/// Of the spans: to be named in filters, whatever the modules here are called.
const TARGET: &str = "kafka_troupe::handler";

/// What can be handed over.
pub(crate) trait Spanned {
    /// Its span, with topic, partition and offset.
    fn span(&self) -> Span;
}

impl<T> Spanned for Record<T> {
    fn span(&self) -> Span {
        let span = tracing::debug_span!(
            target: TARGET,
            "handle",
            topic = self.topic(),
            partition = self.partition(),
            offset = self.offset(),
            error = field::Empty,
            otel.kind = field::Empty,
        );
        #[cfg(feature = "opentelemetry")]
        super::trace_headers::continue_trace(&span, self);
        span
    }
}

impl<T: 'static> Spanned for RecordBatch<T> {
    fn span(&self) -> Span {
        tracing::debug_span!(
            target: TARGET,
            "handle_batch",
            topic = self.topic(),
            partition = self.partition(),
            offset = self.first_offset(),
            records = self.len(),
            error = field::Empty,
        )
    }
}

/// Whether somebody listens to these spans.
#[inline(always)]
pub(super) fn is_wanted() -> bool {
    tracing::span_enabled!(target: TARGET, tracing::Level::DEBUG)
}

/// Has the handler called, and says how its answer comes.
#[inline(always)]
pub(super) fn hand_over<H, M>(act: &mut H, given: M, ctx: &mut Context<H>) -> Answer<H>
where
    M: Message<Result = HandlerResult> + Spanned,
    H: Actor<Context = Context<H>> + Handler<M>,
    <H as Handler<M>>::Result: 'static,
{
    if is_wanted() {
        return in_span(act, given, ctx);
    }
    Answer::of(act.handle(given, ctx), ctx)
}

#[cold]
#[inline(never)]
fn in_span<H, M>(act: &mut H, given: M, ctx: &mut Context<H>) -> Answer<H>
where
    M: Message<Result = HandlerResult> + Spanned,
    H: Actor<Context = Context<H>> + Handler<M>,
    <H as Handler<M>>::Result: 'static,
{
    let span = given.span();
    match span.in_scope(|| Answer::of(act.handle(given, ctx), ctx)) {
        Answer::Now(result) => {
            note(&span, &result);
            Answer::Now(result)
        }
        Answer::Later(later) => Answer::Later(Later::InSpan(Box::new((span, later)))),
    }
}

/// The span says why its record will come again.
pub(super) fn note(span: &Span, result: &HandlerResult) {
    if let Err(error) = result {
        span.record("error", field::display(error));
    }
}
