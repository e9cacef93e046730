//! A subscriber that keeps every span and event of this thread.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// Fields as text.
pub(super) type Fields = BTreeMap<String, String>;

/// One span.
#[derive(Clone, Debug)]
pub(super) struct Span {
    id: u64,
    pub(super) target: String,
    pub(super) name: String,
    pub(super) fields: Fields,
    pub(super) is_closed: bool,
    /// What was told directly in it: the message.
    pub(super) events: Vec<String>,
}

impl Span {
    #[track_caller]
    pub(super) fn field(&self, name: &str) -> &str {
        self.fields.get(name).unwrap_or_else(|| panic!("no field {name} in {self:?}"))
    }
}

/// All spans, in the order in which they began.
#[derive(Clone, Default)]
pub(super) struct Captured(Arc<Mutex<Vec<Span>>>);

impl Captured {
    /// From now on, until the guard is dropped, what is of this level or above.
    pub(super) fn begin(level: LevelFilter) -> (Self, DefaultGuard) {
        let captured = Self::default();
        let subscriber = tracing_subscriber::registry().with(captured.clone().with_filter(level));
        (captured, tracing::subscriber::set_default(subscriber))
    }

    fn spans(&self) -> MutexGuard<'_, Vec<Span>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of a name that have ended.
    pub(super) fn ended(&self, name: &str) -> Vec<Span> {
        self.spans().iter().filter(|span| span.name == name && span.is_closed).cloned().collect()
    }

    fn change(&self, id: &Id, change: impl FnOnce(&mut Span)) {
        // ids come again: the last one counts
        if let Some(span) = self.spans().iter_mut().rev().find(|span| span.id == id.into_u64()) {
            change(span);
        }
    }
}

struct ToText<'a>(&'a mut Fields);

impl Visit for ToText<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Captured {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Context<'_, S>) {
        let (metadata, mut fields) = (attributes.metadata(), Fields::new());
        attributes.record(&mut ToText(&mut fields));
        let (target, name) = (metadata.target().to_owned(), metadata.name().to_owned());
        let span = Span { id: id.into_u64(), target, name, fields, is_closed: false, events: Vec::new() };
        self.spans().push(span);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        self.change(id, |span| values.record(&mut ToText(&mut span.fields)));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::new();
        event.record(&mut ToText(&mut fields));
        if let Some(span) = context.event_span(event) {
            self.change(&span.id(), |span| span.events.extend(fields.remove("message")));
        }
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        self.change(&id, |span| span.is_closed = true);
    }
}
