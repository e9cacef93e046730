//! What to read, and how it is handled.
//!
//! | handled | by | what a record costs, beside the 12 ns of walking it |
//! |---|---|---|
//! | [one by one](Subscription::handle) | actors that a factory makes, called in their own context | some 25 ns; 45 with a future that is ready, 550 with one that waits, 350 where a window of 16 does |
//! | [in batches](Subscription::handle_batches) | the same, which walk the batch themselves | some 25 ns; 18 where records are lent |
//! | [one by one](Subscription::send_to) | an actor that exists, through its mailbox | 0.4 us in the same thread, 10 to 40 us between threads, 1 us with 64 in flight |
//! | [in batches](Subscription::send_batches_to) | the same | some 60 to 130 ns between threads |
//! | when they are [pulled](Subscription::pull) | whoever holds the [`KafkaStream`](crate::KafkaStream) | some 40 ns; 13 in batches |
//!
//! (Processor time, of records of 100 B in batches of 500; `benches/RESULTS.md` has more. Their ratios are what counts.)
//!
//! Whichever it is, records of a partition come in order, the next one when the one before is done, and only what is done
//! is committed; [`Subscription::in_flight`] is the exception from the first.
//!
//! ```
//! use actix::prelude::*;
//! use kafka_troupe_actors::consumer_system::Builder;
//! use kafka_troupe_actors::{HandlerResult, Record, Subscription, decoder::Utf8};
//!
//! struct Words(u64);
//!
//! impl Actor for Words {
//!     type Context = Context<Self>;
//! }
//!
//! impl Handler<Record<String>> for Words {
//!     type Result = HandlerResult;
//!
//!     fn handle(&mut self, line: Record<String>, _: &mut Context<Self>) -> HandlerResult {
//!         self.0 += line.decoded().split_whitespace().count() as u64;
//!         Ok(())
//!     }
//! }
//!
//! fn subscribe(builder: Builder) -> Builder {
//!     builder.subscription(Subscription::topic("lines").streams(4).decoder(Utf8).handle(|| Words(0)))
//! }
//! ```

mod forward;

use std::fmt;

use actix::prelude::*;
use kafka_troupe_proto::group::{FailurePolicy, InFlight};
use kafka_troupe_proto::zk::topic_filter::TopicFilter;

pub use crate::consumer_system::Subscribed;
use crate::consumer_system::Topics;
use crate::decoder::{Decoder, Undecoded};
use crate::record::Record;
use crate::record_batch::RecordBatch;
use crate::stream_queue::{HandlerFactory, Handling};
pub(crate) use forward::Detached;
use forward::Forward;

/// What to read, and how it is handled; complete once it is said by whom, and then given to
/// [`Builder::subscription`](crate::consumer_system::Builder::subscription).
///
/// A topic is read by a number of *streams*: each is a thread, reads whole partitions, and hands them over in order.
#[must_use = "it says nothing yet by whom the records are handled"]
pub struct Subscription<D = Undecoded> {
    topics: Topics,
    streams: u32,
    decoder: D,
    handling: Handling,
}

impl<D> fmt::Debug for Subscription<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Subscription");
        shown.field("topics", &self.topics).field("streams", &self.streams).field("handling", &self.handling);
        shown.finish_non_exhaustive()
    }
}

impl Subscription {
    /// One topic.
    pub fn topic(name: impl Into<String>) -> Self {
        Self::of(Topics::Named(name.into()))
    }

    /// Every topic that a filter allows (`createMessageStreamsByFilter`), those that are created later too, on the same
    /// streams. A topic that appears while the member runs is read from its beginning. Kafka's own topics are left out,
    /// unless `exclude.internal.topics` is false.
    pub fn matching(filter: TopicFilter) -> Self {
        Self::of(Topics::Matching(filter))
    }

    fn of(topics: Topics) -> Self {
        Self { topics, streams: 1, decoder: Undecoded, handling: Handling::default() }
    }

    /// The streams are pulled by the application: take them with
    /// [`ConsumerHandle::streams`](crate::ConsumerHandle::streams). What is pulled is decoded by
    /// [`Record::decode_with`]; neither the failure policy nor a window applies.
    pub fn pull(self) -> Subscribed {
        Subscribed { topics: self.topics, streams: self.streams, handler: None }
    }
}

impl<D: Decoder> Subscription<D> {
    /// How many streams (1): handlers at work at once, each on a thread of its own. More than there are partitions are
    /// idle.
    pub fn streams(mut self, streams: u32) -> Self {
        self.streams = streams;
        self
    }

    /// What the records are decoded with (nothing: the handler reads bytes).
    pub fn decoder<E: Decoder>(self, decoder: E) -> Subscription<E> {
        let Self { topics, streams, handling, .. } = self;
        Subscription { topics, streams, decoder, handling }
    }

    /// What becomes of a record that could not be handled or decoded (10 retries, then its partition stops).
    pub fn on_failure(mut self, policy: FailurePolicy) -> Self {
        self.handling.on_failure = policy;
        self
    }

    /// How many records of a stream are with its handler at once ([`InFlight::one`]). More are of use to handlers that
    /// answer with a future, and to an actor behind a mailbox; what it does to the order, [`InFlight`] says. Not for
    /// batches, of which a stream has one in hand: with more than one, `start` refuses them.
    pub fn in_flight(mut self, in_flight: InFlight) -> Self {
        self.handling.in_flight = in_flight;
        self
    }

    /// Handled one by one, by actors of the application's that `make` makes: one for each stream, on the stream's
    /// thread, and another whenever one has panicked or stopped. A record is acknowledged when its handler has answered
    /// `Ok`, be that at once or by a future (`ResponseFuture`, `ResponseActFuture`, ..); the next one comes after that.
    ///
    /// The actor is called in its own context without a mailbox, so it costs next to nothing. It has a mailbox all the
    /// same, for other messages, which gets its turn every 256 records and whenever the handler waits.
    pub fn handle<H>(self, make: impl Fn() -> H + Send + Sync + 'static) -> Subscribed
    where
        H: Actor<Context = Context<H>> + Handler<Record<D::Output>>,
        <H as Handler<Record<D::Output>>>::Result: 'static,
    {
        let Self { topics, streams, decoder, handling } = self;
        let handler = Some(HandlerFactory::one_by_one(decoder, handling, make));
        Subscribed { topics, streams, handler }
    }

    /// Handled in batches of at most `most` records of one partition, by actors as in [`handle`](Self::handle). What is
    /// there is handed over; no batch is waited for to fill. A batch is acknowledged as a whole; a handler that fails
    /// somewhere in it says where by [`HandlerError::at`](crate::HandlerError::at).
    pub fn handle_batches<H>(self, most: usize, make: impl Fn() -> H + Send + Sync + 'static) -> Subscribed
    where
        H: Actor<Context = Context<H>> + Handler<RecordBatch<D::Output>>,
        <H as Handler<RecordBatch<D::Output>>>::Result: 'static,
    {
        let Self { topics, streams, decoder, handling } = self;
        let handler = Some(HandlerFactory::in_batches(decoder, most, handling, make));
        Subscribed { topics, streams, handler }
    }

    /// Handled one by one by an actor that exists, through its mailbox: it may run anywhere, and serve others besides.
    /// Each record is sent when there is room for it, and is acknowledged when it is answered with `Ok`; with the
    /// default of one [in flight](Self::in_flight) that is a round trip between threads for each record, 10 to 40 us of
    /// processor time.
    ///
    /// An actor that has ended cannot be made anew: its streams stop, nothing is acknowledged, and its partitions are
    /// reported as failed. Behind actix' `Supervisor`, one that stops itself (`ctx.stop()`) goes on; one that panics
    /// does not, for the panic ends the supervisor too, and closes the mailbox.
    pub fn send_to(self, recipient: Recipient<Record<D::Output>>) -> Subscribed
    where
        D::Output: Send,
    {
        self.handle(move || Forward(recipient.clone()))
    }

    /// Handled in batches, as [`handle_batches`](Self::handle_batches) makes them, by an actor that exists, as in
    /// [`send_to`](Self::send_to): a round trip for each batch, so much cheaper for each record.
    pub fn send_batches_to(self, most: usize, recipient: Recipient<RecordBatch<D::Output>>) -> Subscribed
    where
        D::Output: Send,
    {
        self.handle_batches(most, move || Forward(recipient.clone()))
    }
}
