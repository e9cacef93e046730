//! # DeadLetterWriter: records that a handler gave up on, kept in Kafka
//!
//! Produces [`DeadLetter`]s, which hold all of the record and why it was given up, to the dead-letter topics that
//! subscriptions name, and answers when *all in-sync replicas* have one (`acks=all`). Whoever gives a record up
//! acknowledges it only then, so a commit never covers a record that is neither handled nor kept.
//!
//! - *Mailbox*: requests [`Write`], [`Describe`], [`Stop`]. Streams send through [`DeadLetters`].
//! - *State*: who leads the partitions of the dead-letter topics, as it was told last, and a connection to each of these
//!   brokers (`writing`). None of it outlives a panic, and none of it has to.
//! - *Supervision*: restarted by the `ConsumerSystem` after a panic. A letter that is being written then is answered
//!   with an error, and is written again by whoever wants it kept.
//! - *Talks to*: brokers (Metadata, Produce). Only there while a subscription names a dead-letter topic.
//!
//! # Rules
//! * **At least once.** A letter whose answer was lost, or came too late, may stand in the topic, and is written again:
//!   it may stand there twice, and never not at all. Topic, partition and offset of the envelope tell.
//! * Nothing is given up here: what cannot be written is answered with an error that says what to do about it, and the
//!   stream writes it again, with its policy's pause, without end. Its partition waits, no other does.
//! * The dead letter's key is the record's; its partition the record's number modulo the partitions of the dead-letter
//!   topic, so that letters of one partition stand in their order. Its timestamp is the time at which it was given up:
//!   by the record's own, retention might delete it at once. It has no headers: the envelope holds the record's.
//! * It makes no topics: one that nobody made with intent would have the broker's default retention.
//! * One request is in flight to each broker; one that is silent holds up the letters of the partitions that it leads.
//!
//! | brokers | Produce | message format |
//! |---|---|---|
//! | 0.8, 0.9 | 0 | 0, without a timestamp |
//! | 0.10 | 2 | 1 |
//! | 0.11 and later | 3 | 2 |

mod envelope;
mod error;
mod writing;

use std::sync::Arc;

use actix::prelude::*;
use kafka_troupe_proto::schemas::dead_letter::v1::DeadLetter;
use kafka_troupe_proto::schemas::status::v1 as status;

pub use envelope::DeadLetters;
pub use error::{DeadLetterError, DeadLetterProblem};
pub use writing::WriteSettings;
use writing::Writing;

use crate::fetcher_manager::KnownBrokers;
use crate::supervise::ExitGuard;

/// Write this dead letter; answered when all in-sync replicas have it, or with why they may not.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Result<Written, DeadLetterError>")]
pub struct Write {
    /// The dead-letter topic.
    pub topic: Arc<str>,
    /// The record and why it was given up.
    pub letter: DeadLetter,
}

/// Where a dead letter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// The partition of the dead-letter topic.
    pub partition: i32,
    /// Its offset there, if the broker told.
    pub offset: Option<i64>,
}

/// How it stands.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "WriterStatus")]
pub struct Describe;

/// End. Letters that wait are answered by nobody.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct Stop;

/// What the writer reports of itself.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct WriterStatus {
    /// For the member's status.
    pub letters: status::DeadLetters,
    /// Messages that this actor has handled.
    pub messages: u64,
}

/// What a writer is made of.
pub struct WriterParts {
    /// The topics that the subscriptions name, for the status.
    pub topics: Vec<String>,
    /// How it is written.
    pub settings: WriteSettings,
    /// The brokers to ask for leaders.
    pub brokers: Arc<KnownBrokers>,
    /// Tells the parent of a panic.
    pub guard: ExitGuard,
}

/// See the [module's page](self).
pub struct DeadLetterWriter {
    writing: Arc<Writing>,
    guard: ExitGuard,
    messages: u64,
}

impl DeadLetterWriter {
    /// A writer that is not started yet.
    pub fn new(parts: WriterParts) -> Self {
        let WriterParts { topics, settings, brokers, guard } = parts;
        Self { writing: Arc::new(Writing::new(topics, settings, brokers)), guard, messages: 0 }
    }
}

impl Actor for DeadLetterWriter {
    type Context = Context<Self>;
}

impl Handler<Write> for DeadLetterWriter {
    type Result = ResponseFuture<Result<Written, DeadLetterError>>;

    fn handle(&mut self, write: Write, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        let writing = Arc::clone(&self.writing);
        Box::pin(async move { writing.write(write).await })
    }
}

impl Handler<Describe> for DeadLetterWriter {
    type Result = MessageResult<Describe>;

    fn handle(&mut self, _: Describe, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        MessageResult(WriterStatus { letters: self.writing.describe(), messages: self.messages })
    }
}

impl Handler<Stop> for DeadLetterWriter {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.guard.dismiss();
        ctx.stop();
    }
}
