//! The trace that a record's producer was in goes on in its handler's span (W3C Trace Context).

use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::TraceContextExt;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::record::Record;

/// The headers of a record, as far as they are text: `traceparent` and `tracestate`. Of one that is there twice the last
/// counts, as in Kafka's own `lastHeader`.
struct TextHeaders<'a>(Vec<(&'a str, &'a str)>);

impl<'a> TextHeaders<'a> {
    fn of<T>(record: &'a Record<T>) -> Self {
        let text = |bytes: &'a [u8]| std::str::from_utf8(bytes).ok();
        let pairs = record.headers().filter_map(|header| Some((text(header.key)?, text(header.value?)?)));
        Self(pairs.collect())
    }
}

impl Extractor for TextHeaders<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(its, _)| its.eq_ignore_ascii_case(key)).map(|(_, value)| *value)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.iter().map(|(key, _)| *key).collect()
    }
}

/// Makes the span a child of the one that the record's headers name, if they do. Before it is entered.
pub(super) fn continue_trace<T>(span: &Span, record: &Record<T>) {
    span.record("otel.kind", "consumer");
    let parent =
        TraceContextPropagator::new().extract_with_context(&Context::new(), &TextHeaders::of(record));
    if parent.span().span_context().is_valid() {
        // an error: no layer of OpenTelemetry listens
        let _ = span.set_parent(parent);
    }
}
