//! Handlers that end as soon as they are made, or cannot be made: no record is at fault, and without them nothing of the
//! stream is handled.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::SystemTime;

use kafka_troupe_proto::health::GRACE;
use tokio::time::Instant;

use crate::clock;

/// A handler that has ended again and again, and was given nothing in between.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerEnding {
    /// When it ended first.
    pub since: SystemTime,
    /// How often it has.
    pub times: u32,
    /// Why the last time, as far as can be told.
    pub why: String,
}

/// The lives of a stream's handler.
#[derive(Default)]
pub(super) struct Endings {
    /// When the one that lives was made, and what the stream had handed over by then.
    made: Option<(Instant, u64)>,
    /// With what the making of it has panicked.
    panicked: Option<String>,
    last: Option<HandlerEnding>,
}

impl Endings {
    /// Makes a handler. A panic of the application's is its handler's, and not its stream's.
    pub(super) fn make(&mut self, handed_over: u64, make: impl FnOnce()) {
        self.made = Some((Instant::now(), handed_over));
        let made = catch_unwind(AssertUnwindSafe(make));
        self.panicked = made.err().map(|panic| format!("it cannot be made, that panics: {}", text(&*panic)));
    }

    /// It ended, and not with a record in hand.
    pub(super) fn ended(&mut self, handed_over: u64) {
        let did_well = |(at, before): (Instant, u64)| at.elapsed() >= GRACE || handed_over != before;
        if self.made.take().is_some_and(did_well) {
            self.last = None;
        }
        let why = self.panicked.take().unwrap_or_else(|| "it panicked, or stopped".to_owned());
        let last = self.last.get_or_insert_with(|| HandlerEnding {
            since: clock::now(),
            times: 0,
            why: String::new(),
        });
        (last.times, last.why) = (last.times.saturating_add(1), why);
    }

    /// The handler that ends, until one has lived for [`GRACE`] or was given something.
    pub(super) fn now(&self, handed_over: u64) -> Option<HandlerEnding> {
        let is_well = self.made.is_some_and(|(at, before)| at.elapsed() >= GRACE || handed_over != before);
        self.last.clone().filter(|_| !is_well)
    }
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "(without a text)".to_owned())
}
