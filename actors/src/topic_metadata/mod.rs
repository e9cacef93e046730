//! # TopicMetadata: topics, partitions and brokers, as the brokers tell them
//!
//! Takes the place of `/brokers` in ZooKeeper when `bootstrap.servers` is set. Polls by Metadata requests, every
//! `metadata.max.age.ms`, when the group is read, and when fetching fails, and tells what changed, as a watch would.
//!
//! - *Mailbox*: requests [`ReadTopics`], [`PollNow`], [`Outdated`], [`Describe`], [`Stop`]. Internal: a poll's end.
//! - *State*: the last [`Picture`] and its age; the connection that is kept between polls; who waits for a poll.
//! - *Supervision*: restarted by the `ConsumerSystem` after a panic; a new life knows nothing, asks at once, and tells
//!   the first answer as a change.
//! - *Talks to*: brokers (Metadata, on one connection that is kept); whoever is told of changes: the
//!   `RebalanceCoordinator`.
//!
//! # Rules
//! * A poll that fails changes nothing: what was known stays, and a reader gets it. Before the first answer a reader
//!   gets an error, and tries again.
//! * The broker that answered last is asked first, then the other `bootstrap.servers`, then the brokers that were
//!   learnt. After a failure of all, again after `refresh.leader.backoff.ms`, doubling up to `metadata.max.age.ms`.
//! * What a broker does not know any more (a topic, partitions) may be missing because it lags behind: it is gone when
//!   another broker says so too, after `refresh.leader.backoff.ms`; or, where no other answers, after 5 s. An address
//!   is known to be another broker's when brokers tell it as such: a bootstrap name may be one more name of any of
//!   them. (`what_the_only_broker_does_not_know_for_a_moment_is_not_gone`)
//! * An answer that names no brokers is none: that broker knows nothing yet.
//!   (`a_broker_that_knows_of_no_brokers_is_passed_over`)
//! * Topics are never created by our asking: all are asked for, none by name.

mod addresses;
mod asking;
mod picture;

use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe_proto::config::{ConsumerConfig, ServerAddress};
use kafka_troupe_proto::kafka::metadata::TopicId;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::broker_connection::{BrokerConnection, ConnectOptions};
use crate::supervise::ExitGuard;
use addresses::{Addresses, Missing};
use asking::{Answered, ask};
pub use picture::{Changes, KnownTopic, Picture};

/// What is known younger than this need not be asked for again.
const FRESH: Duration = Duration::from_secs(1);
/// How long a reader waits for a poll when something is known already.
const READER_PATIENCE: Duration = Duration::from_secs(1);
/// The longest wait for one broker; `socket.timeout.ms` if that is shorter.
const BROKER_PATIENCE: Duration = Duration::from_secs(10);

/// Topics and brokers, as of at most a second ago if a broker answers, else as they were known last. An error before
/// the first answer.
#[derive(Message)]
#[rtype(result = "Result<Arc<Picture>, String>")]
pub struct ReadTopics;

/// Something is wrong with a topic, it may have been deleted: look now. The next poll is not waited for, but two do not
/// follow faster than `refresh.leader.backoff.ms`.
#[derive(Message)]
#[rtype(result = "()")]
pub struct PollNow;

/// The group knows that this topic was made again, and this id is the earlier one's: who tells it is asked last, until
/// somebody tells another.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Outdated {
    /// Its name.
    pub topic: Arc<str>,
    /// As it was told.
    pub id: TopicId,
}

/// How it stands.
#[derive(Message)]
#[rtype(result = "TopicMetadataStatus")]
pub struct Describe;

/// End.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Stop;

/// What the actor reports of itself.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TopicMetadataStatus {
    /// Messages that this actor has handled.
    pub messages: u64,
    /// Polls that were answered.
    pub polls: u64,
    /// How old what is known is; none before the first answer.
    pub age: Option<Duration>,
    /// Why the last poll failed, while polls fail.
    pub last_error: Option<String>,
}

/// What it is made of.
pub struct TopicMetadataParts {
    /// `bootstrap.servers`.
    pub servers: Vec<ServerAddress>,
    /// How brokers are dialled.
    pub connect: ConnectOptions,
    /// `metadata.max.age.ms`.
    pub interval: Duration,
    /// `refresh.leader.backoff.ms`: pause after the first failure.
    pub backoff: Duration,
    /// Told of each change.
    pub tell: Box<dyn Fn(Changes) + Send>,
    /// Tells the parent of a panic.
    pub guard: ExitGuard,
}

impl TopicMetadataParts {
    /// As configured.
    pub fn new(
        config: &ConsumerConfig,
        connect: ConnectOptions,
        tell: impl Fn(Changes) + Send + 'static,
        guard: ExitGuard,
    ) -> Self {
        Self {
            servers: config.bootstrap_servers.addresses().to_vec(),
            connect,
            interval: config.metadata_max_age,
            backoff: config.refresh_leader_backoff,
            tell: Box::new(tell),
            guard,
        }
    }
}

/// See the [module's page](self).
pub struct TopicMetadata {
    parts: TopicMetadataParts,
    /// What is known, and since when.
    known: Option<(Arc<Picture>, Instant)>,
    /// Kept between polls; with the poll while one is under way.
    connection: Option<(ServerAddress, BrokerConnection)>,
    addresses: Addresses,
    polling: bool,
    /// Another poll is wanted at once after the one that is under way.
    wanted: bool,
    /// Something was missing in the last answer.
    missing: Option<Missing>,
    /// Polls that failed in a row.
    failures: u32,
    /// Why the last one did, so that it is told once.
    last_error: Option<String>,
    /// Who waits for the poll that is under way.
    waiting: Vec<oneshot::Sender<()>>,
    /// Wakes us for the next poll.
    alarm: Option<SpawnHandle>,
    polls: u64,
    messages: u64,
}

impl TopicMetadata {
    /// An actor that is not started yet.
    pub fn new(mut parts: TopicMetadataParts) -> Self {
        parts.connect.socket_timeout = parts.connect.socket_timeout.min(BROKER_PATIENCE);
        Self {
            addresses: Addresses::new(parts.servers.clone()),
            parts,
            known: None,
            connection: None,
            polling: false,
            wanted: false,
            missing: None,
            failures: 0,
            last_error: None,
            waiting: Vec::new(),
            alarm: None,
            polls: 0,
            messages: 0,
        }
    }

    fn is_fresh(&self) -> bool {
        self.known.as_ref().is_some_and(|(_, at)| at.elapsed() < FRESH)
    }

    fn poll(&mut self, ctx: &mut Context<Self>) {
        if std::mem::replace(&mut self.polling, true) {
            return;
        }
        if let Some(alarm) = self.alarm.take() {
            ctx.cancel_future(alarm);
        }
        let known = self.known.as_ref().map(|(picture, _)| Arc::clone(picture));
        let addresses = self.addresses.in_turn(known.as_deref(), self.missing.as_ref());
        let kept = self.connection.take().filter(|(address, _)| addresses.first() == Some(address));
        let asked = ask(kept.map(|(_, kept)| kept), addresses, self.parts.connect.clone(), known);
        ctx.spawn(asked.into_actor(self).map(|outcome, this, ctx| {
            this.polling = false;
            match outcome.map(|answered| this.answered(answered)) {
                Ok(true) => {
                    let wanted = std::mem::take(&mut this.wanted);
                    this.end_poll(if wanted { this.parts.backoff } else { this.parts.interval }, ctx);
                }
                Ok(false) => this.poll_in(this.parts.backoff, ctx),
                Err(why) => this.failed(why, ctx),
            }
        }));
    }

    /// Whether the answer counts: one in which something is missing that was there may be wrong.
    fn answered(&mut self, Answered { picture, address, connection }: Answered) -> bool {
        let known = self.known.as_ref().map(|(picture, _)| picture);
        if known.is_some_and(|known| picture.lacks(known)) {
            let now = Instant::now();
            let missing = self.missing.get_or_insert_with(|| Missing::since(now));
            if !missing.is_told(picture.broker_at(&address), now) {
                return false;
            }
        }
        if self.addresses.answered(address.clone(), &picture) {
            self.connection = Some((address, connection));
        }
        self.take(picture);
        true
    }

    fn take(&mut self, picture: Picture) {
        let changes = picture.changes(self.known.as_ref().map(|(known, _)| known.as_ref()));
        if self.last_error.take().is_some() {
            tracing::info!("topics and brokers are known again");
        }
        (self.missing, self.failures) = (None, 0);
        self.polls += 1;
        self.known = Some((Arc::new(picture), Instant::now()));
        if !changes.is_empty() {
            (self.parts.tell)(changes);
        }
    }

    fn failed(&mut self, why: String, ctx: &mut Context<Self>) {
        if self.last_error.is_none() {
            let known = self.known.is_some();
            tracing::warn!(
                why,
                known,
                "topics and brokers cannot be asked for; what is known stays, trying again"
            );
        }
        self.last_error = Some(why);
        self.missing = None;
        let pause = self.parts.backoff.saturating_mul(1 << self.failures.min(16));
        self.failures += 1;
        self.end_poll(pause.min(self.parts.interval), ctx);
    }

    fn end_poll(&mut self, next: Duration, ctx: &mut Context<Self>) {
        for waiting in self.waiting.drain(..) {
            // who waited may have gone
            let _ = waiting.send(());
        }
        self.poll_in(next, ctx);
    }

    fn poll_soon(&mut self, ctx: &mut Context<Self>) {
        // one that is under way was asked before: the one after it counts
        self.wanted = self.polling;
        if !self.polling && self.last_error.is_none() {
            let since = self.known.as_ref().map_or(Duration::MAX, |(_, at)| at.elapsed());
            self.poll_in(self.parts.backoff.saturating_sub(since), ctx);
        }
    }

    fn poll_in(&mut self, next: Duration, ctx: &mut Context<Self>) {
        if let Some(alarm) = self.alarm.take() {
            ctx.cancel_future(alarm);
        }
        self.alarm = Some(ctx.run_later(next, |this, ctx| {
            this.alarm = None;
            this.poll(ctx);
        }));
    }

    fn read(&self) -> Result<Arc<Picture>, String> {
        match (&self.known, &self.last_error) {
            (Some((picture, _)), _) => Ok(Arc::clone(picture)),
            (None, Some(why)) => {
                Err(format!("no broker of bootstrap.servers tells which topics there are: {why}"))
            }
            (None, None) => Err("the brokers of bootstrap.servers have not answered yet".to_owned()),
        }
    }
}

impl Actor for TopicMetadata {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.poll(ctx);
    }
}

impl Handler<ReadTopics> for TopicMetadata {
    type Result = ResponseActFuture<Self, Result<Arc<Picture>, String>>;

    fn handle(&mut self, _: ReadTopics, ctx: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        if self.is_fresh() {
            return Box::pin(fut::ready(self.read()));
        }
        let (done, polled) = oneshot::channel();
        self.waiting.push(done);
        self.poll(ctx);
        let polled = tokio::time::timeout(READER_PATIENCE, polled);
        Box::pin(polled.into_actor(self).map(|_, this, _| this.read()))
    }
}

impl Handler<PollNow> for TopicMetadata {
    type Result = ();

    fn handle(&mut self, _: PollNow, ctx: &mut Self::Context) {
        self.messages += 1;
        self.poll_soon(ctx);
    }
}

impl Handler<Outdated> for TopicMetadata {
    type Result = ();

    fn handle(&mut self, Outdated { topic, id }: Outdated, ctx: &mut Self::Context) {
        self.messages += 1;
        self.addresses.is_outdated(topic, id, self.known.as_ref().map(|(known, _)| known.as_ref()));
        self.poll_soon(ctx);
    }
}

impl Handler<Describe> for TopicMetadata {
    type Result = MessageResult<Describe>;

    fn handle(&mut self, _: Describe, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        MessageResult(TopicMetadataStatus {
            messages: self.messages,
            polls: self.polls,
            age: self.known.as_ref().map(|(_, at)| at.elapsed()),
            last_error: self.last_error.clone(),
        })
    }
}

impl Handler<Stop> for TopicMetadata {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.parts.guard.dismiss();
        ctx.stop();
    }
}

#[cfg(test)]
mod tests;
