//! Making handlers: the user's own, by a factory, or ours that stands for an actor that exists.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use actix::prelude::*;
use kafka_troupe_proto::group::{Decision, FailurePolicy, InFlight};

use super::Driver;
use super::feed::{Feed, InBatches, OneByOne};
use crate::dead_letters::DeadLetters;
use crate::decoder::Decoder;
use crate::handler_result::HandlerError;
use crate::record::Record;
use crate::record_batch::RecordBatch;
use crate::stream_queue::in_flight::InFlightDriver;
use crate::stream_queue::{KnownFailures, ReadOptions, StreamParts, StreamQueue, Tally};
use crate::subscription::Detached;

/// What a subscription says about how its handler is fed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handling {
    pub(crate) on_failure: FailurePolicy,
    pub(crate) in_flight: InFlight,
    /// In batches.
    pub(crate) batched: bool,
}

impl Handling {
    /// What to do about a record that failed with this error, for the n-th time in a row. Errors of other records may
    /// come up as well: only what could not be decoded itself is undecodable.
    pub(in super::super) fn decide(&self, failures: u32, error: &HandlerError, is_its_own: bool) -> Decision {
        if error.is::<Detached>() {
            // no fault of the record's
            return Decision::StopStream;
        }
        self.on_failure.decide(failures, is_its_own && error.decode_error().is_some())
    }
}

/// Makes a user's handler actor, in the current arbiter, and sets its driver going.
#[derive(Clone)]
pub struct HandlerFactory {
    launch: Arc<dyn Fn(DriverParts) + Send + Sync>,
    handling: Arc<Handling>,
}

/// What one life of a handler is driven with.
pub(in super::super) struct DriverParts {
    pub(in super::super) queue: Addr<StreamQueue>,
    pub(in super::super) options: ReadOptions,
    pub(in super::super) tally: Tally,
    pub(in super::super) life: u64,
    /// Records with which earlier lives have ended.
    pub(in super::super) known: KnownFailures,
    /// Where a subscription names a dead-letter topic.
    pub(in super::super) letters: Option<DeadLetters>,
    pub(in super::super) handling: Arc<Handling>,
    /// How many records are with the handler, where several are in flight.
    pub(in super::super) running: Arc<AtomicU32>,
}

impl fmt::Debug for HandlerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerFactory").field("handling", &self.handling).finish_non_exhaustive()
    }
}

impl HandlerFactory {
    pub(crate) fn one_by_one<D: Decoder, H>(
        decoder: D,
        handling: Handling,
        make: impl Fn() -> H + Send + Sync + 'static,
    ) -> Self
    where
        H: Actor<Context = Context<H>> + Handler<Record<D::Output>>,
        <H as Handler<Record<D::Output>>>::Result: 'static,
    {
        if handling.in_flight.is_one() {
            return Self::feeding(OneByOne::new(decoder), handling, make);
        }
        let decoder = Arc::new(decoder);
        Self::driving(handling, make, move |parts| InFlightDriver::new(parts, Arc::clone(&decoder)))
    }

    pub(crate) fn in_batches<D: Decoder, H>(
        decoder: D,
        most: usize,
        handling: Handling,
        make: impl Fn() -> H + Send + Sync + 'static,
    ) -> Self
    where
        H: Actor<Context = Context<H>> + Handler<RecordBatch<D::Output>>,
        <H as Handler<RecordBatch<D::Output>>>::Result: 'static,
    {
        Self::feeding(InBatches::new(decoder, most), Handling { batched: true, ..handling }, make)
    }

    fn feeding<F, H>(feed: F, handling: Handling, make: impl Fn() -> H + Send + Sync + 'static) -> Self
    where
        F: Feed + Send + Sync,
        H: Actor<Context = Context<H>> + Handler<F::Message>,
        <H as Handler<F::Message>>::Result: 'static,
    {
        Self::driving(handling, make, move |parts| Driver::new(parts, feed.clone()))
    }

    fn driving<H, A>(
        handling: Handling,
        make: impl Fn() -> H + Send + Sync + 'static,
        drive: impl Fn(DriverParts) -> A + Send + Sync + 'static,
    ) -> Self
    where
        H: Actor<Context = Context<H>>,
        A: ActorFuture<H, Output = ()> + 'static,
    {
        let launch = move |parts: DriverParts| {
            H::create(|ctx| {
                ctx.spawn(drive(parts));
                make()
            });
        };
        Self { launch: Arc::new(launch), handling: Arc::new(handling) }
    }

    pub(crate) fn handling(&self) -> &Handling {
        &self.handling
    }

    pub(in super::super) fn launch(
        &self,
        queue: Addr<StreamQueue>,
        parts: &StreamParts,
        life: u64,
        known: KnownFailures,
        running: Arc<AtomicU32>,
    ) {
        let (options, letters) = (parts.options, parts.letters.clone());
        let (tally, handling) = (Tally::new(parts.commit_after.clone()), Arc::clone(&self.handling));
        (self.launch)(DriverParts { queue, options, tally, life, known, letters, handling, running });
    }
}
