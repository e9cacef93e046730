//! # ConsumerSystem: one member of a group, assembled, supervised and observed
//!
//! - *Mailbox*: requests [`Metrics`], [`Group`], [`Commit`], [`Seek`], [`Pause`], [`Resume`], [`PauseTopic`],
//!   [`ResumeTopic`], [`Shutdown`], `Started`; events [`ChildExited`],
//!   `CommitDue`, `Added` (a second member, which holds what was subscribed to later).
//! - *State*: what every child needs (`Parts`), a restart budget for each child, the added members, and which handlers
//!   are stuck (`stuck.rs`); `alive`, which ends the threads when this actor is gone, however it went (`life`).
//! - *Supervision*: restarts each of its children after a panic: the [`ZkSession`] takes
//!   over the living client, the coordinator adopts the owner nodes of its session, the committer has no state, the
//!   fetcher manager is given all partitions anew, a stream goes on at the acknowledged position, the writer of dead
//!   letters and the group reader begin anew.
//! - *Talks to*: its children, and the added members.
//!
//! Threads: one for control (session, topic metadata, coordinator, committer, manager, group reader, this actor) and one
//! for fetchers and dead letters, each an actix `System` of our own, so that they outlive the application's and can leave
//! the group when that ends (`life`); and for each stream that has a handler an arbiter in the application's `System`, so
//! that a handler that blocks delays nobody else. Where that of a stream has ended, the member leaves its group.

mod added;
mod builder;
mod children;
mod group;
mod handle;
mod life;
mod metrics;
mod offsets;
mod pausing;
mod ports;
mod seeking;
mod shutdown;
mod stuck;
mod subscribed;
mod terminated;
mod threads;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe_proto::config::ConsumerConfig;
use kafka_troupe_proto::schemas::status::v1::StatusSnapshot;
use kafka_troupe_proto::zk::ConsumerId;
use kafka_troupe_proto::zk::registration::Subscription;

pub use builder::{Builder, StartError};
pub use group::Group;
pub use handle::ConsumerHandle;
pub use life::ShutdownOutcome;
pub use offsets::Offsets;
pub use pausing::{Pause, PauseError, PauseTopic, Resume, ResumeTopic};
pub use seeking::{Seek, SeekError};
pub use shutdown::Shutdown;
pub use subscribed::Subscribed;
pub(crate) use subscribed::Topics;

use crate::broker_connection::ConnectOptions;
use crate::coordinator::{RebalanceCoordinator, WaitRegistered};
use crate::dead_letters::{DeadLetterWriter, DeadLetters};
use crate::fetcher_manager::{FetcherManager, KnownBrokers};
use crate::group_view::GroupReader;
use crate::lease::Lease;
use crate::offset_committer::{CommitError, CommitOutcome, Inherited, OffsetCommitter, ToCommit};
use crate::rebalance_listener::RebalanceListener;
use crate::registry::TopicRegistry;
use crate::stream_queue::{CommitAfter, HandlerFactory, Streams};
use crate::supervise::{ChildExited, RestartBudget, Slot};
use crate::topic_metadata::TopicMetadata;
use crate::zk_session::{ClientHolder, WaitConnected, ZkSession};
use life::Alive;
use ports::Ports;
use stuck::StuckHandlers;

/// Asks for a [`StatusSnapshot`], gathered from the actors by message.
#[derive(Message)]
#[rtype(result = "StatusSnapshot")]
pub struct Metrics;

/// Commits offsets now: see [`Offsets`].
#[derive(Message)]
#[rtype(result = "Result<CommitOutcome, CommitError>")]
pub struct Commit(pub ToCommit);

/// Answers when the member is registered, or with why it cannot be.
#[derive(Message)]
#[rtype(result = "Result<(), StartError>")]
struct Started;

/// What the children are made of, and what they share. All of it outlives every one of them.
struct Parts {
    config: Arc<ConsumerConfig>,
    consumer_id: ConsumerId,
    subscription: Subscription,
    registry: Arc<TopicRegistry>,
    lease: Arc<Lease>,
    streams: Arc<Streams>,
    /// Handler factories by stream name; streams without one are pulled.
    handlers: BTreeMap<String, HandlerFactory>,
    /// Where each stream lives, by name.
    stream_arbiters: BTreeMap<String, ArbiterHandle>,
    listener: Option<Arc<RebalanceListener>>,
    /// This actor, for whoever was given it before the start.
    offsets: Offsets,
    commit_after: Option<Arc<CommitAfter>>,
    control: ArbiterHandle,
    fetching: ArbiterHandle,
    ports: Ports,
    /// Keeps the ZooKeeper client beyond the life of its actor.
    holder: Arc<ClientHolder>,
    session: Slot<ZkSession>,
    /// Empty without `bootstrap.servers`.
    metadata: Slot<TopicMetadata>,
    coordinator: Slot<RebalanceCoordinator>,
    fetchers: Slot<FetcherManager>,
    committer: Slot<OffsetCommitter>,
    group_reader: Slot<GroupReader>,
    /// Empty where no subscription names a dead-letter topic.
    letters: Slot<DeadLetterWriter>,
    /// The dead-letter topics that subscriptions name.
    dead_letter_topics: Vec<String>,
    /// As the coordinator read them last.
    brokers: Arc<KnownBrokers>,
    /// What one life of the committer leaves to the next.
    inherited: Arc<Inherited>,
}

impl Parts {
    /// How brokers are spoken to: with `client.id` and `socket.timeout.ms`.
    fn connect(&self) -> ConnectOptions {
        let mut connect = ConnectOptions::new(&self.config.client_id, self.config.socket_timeout);
        connect.transport = self.ports.transport.clone();
        connect
    }

    /// The way of streams to the writer of dead letters, where there is one.
    fn dead_letters(&self) -> Option<DeadLetters> {
        let letters =
            || DeadLetters::new(self.letters.clone(), &self.config.group_id, self.consumer_id.as_str());
        (!self.dead_letter_topics.is_empty()).then(letters)
    }
}

/// See the [module's page](self).
pub struct ConsumerSystem {
    parts: Arc<Parts>,
    budgets: BTreeMap<String, RestartBudget>,
    lives: BTreeMap<String, u64>,
    /// Members with subscriptions that came while this one ran.
    added: Vec<ConsumerHandle>,
    stuck: StuckHandlers,
    stopping: bool,
    alive: Alive,
}

impl ConsumerSystem {
    /// Assembles one member of a group: its configuration, then its subscriptions, then
    /// [`start`](Builder::start).
    pub fn builder(config: ConsumerConfig) -> Builder {
        Builder::new(config)
    }

    fn new(parts: Parts, alive: Alive) -> Self {
        Self {
            parts: Arc::new(parts),
            budgets: BTreeMap::new(),
            lives: BTreeMap::new(),
            added: Vec::new(),
            stuck: StuckHandlers::default(),
            stopping: false,
            alive,
        }
    }
}

impl Actor for ConsumerSystem {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        // before anything can be delivered
        self.parts.offsets.set(ctx.address());
        self.start_all(ctx);
        self.look_for_stuck_handlers(ctx);
    }
}

impl Handler<Started> for ConsumerSystem {
    type Result = ResponseFuture<Result<(), StartError>>;

    fn handle(&mut self, _: Started, _: &mut Self::Context) -> Self::Result {
        let (session, coordinator) = (self.parts.session.clone(), self.parts.coordinator.clone());
        Box::pin(async move {
            let ended = |_| StartError::Group("an actor ended while starting".to_owned());
            session.send(WaitConnected).await.map_err(ended)??;
            coordinator.send(WaitRegistered).await.map_err(ended)?.map_err(StartError::Group)?;
            Ok(())
        })
    }
}

impl Handler<ChildExited> for ConsumerSystem {
    type Result = ();

    fn handle(&mut self, ChildExited { child, life }: ChildExited, ctx: &mut Self::Context) {
        if self.stopping || self.lives.get(&child) != Some(&life) {
            return;
        }
        let budget = self.budgets.entry(child.clone()).or_default();
        let delay = budget.next_delay().unwrap_or(Duration::from_secs(5));
        tracing::error!(
            child,
            ?delay,
            restarts = budget.restarts,
            why = "it ended unexpectedly",
            "restarting actor"
        );
        ctx.run_later(delay, move |this, ctx| {
            if !this.stopping {
                this.restart(&child, ctx);
            }
        });
    }
}
