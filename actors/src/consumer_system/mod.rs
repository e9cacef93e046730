//! # ConsumerSystem: one member of a group, assembled, supervised and observed
//!
//! - *Mailbox*: requests [`Metrics`], [`Commit`], [`Seek`], [`Shutdown`], `Started`; events [`ChildExited`],
//!   `CommitDue`, `Added` (a second member, which holds what was subscribed to later).
//! - *State*: what every child needs (`Parts`), a restart budget for each child, and the added members.
//! - *Supervision*: restarts each of its children after a panic: the [`ZkSession`] takes
//!   over the living client, the coordinator adopts the owner nodes of its session, the committer has no state, the
//!   fetcher manager is given all partitions anew, a stream goes on at the acknowledged position.
//! - *Talks to*: its children, and the added members.
//!
//! Arbiters (threads): one for control (session, topic metadata, coordinator, committer, manager, this actor), one for
//! fetchers, and one for each stream that has a handler, so that a handler that blocks delays nobody else.

mod added;
mod builder;
mod children;
mod handle;
mod metrics;
mod offsets;
mod ports;
mod seeking;
mod shutdown;
mod subscribed;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe_proto::config::ConsumerConfig;
use kafka_troupe_proto::schemas::status::v1::StatusSnapshot;
use kafka_troupe_proto::zk::ConsumerId;
use kafka_troupe_proto::zk::registration::Subscription;

pub use builder::{Builder, StartError};
pub use handle::ConsumerHandle;
pub use offsets::Offsets;
pub use seeking::{Seek, SeekError};

use crate::coordinator::{RebalanceCoordinator, WaitRegistered};
use crate::fetcher_manager::FetcherManager;
use crate::lease::Lease;
use crate::offset_committer::{CommitError, CommitOutcome, Inherited, OffsetCommitter, ToCommit};
use crate::rebalance_listener::RebalanceListener;
use crate::registry::TopicRegistry;
use crate::stream_queue::{CommitAfter, HandlerFactory, Streams};
use crate::supervise::{ChildExited, RestartBudget, Slot};
use crate::topic_metadata::TopicMetadata;
use crate::zk_session::{ClientHolder, WaitConnected, ZkSession};
use ports::Ports;

/// Asks for a [`StatusSnapshot`], gathered from the actors by message.
#[derive(Message)]
#[rtype(result = "StatusSnapshot")]
pub struct Metrics;

/// Commits offsets now: see [`Offsets`].
#[derive(Message)]
#[rtype(result = "Result<CommitOutcome, CommitError>")]
pub struct Commit(pub ToCommit);

/// Leave the group: stop, flush, release, close the session. Answered when done; the actor then ends, and with it the
/// wait of whoever asked a second time.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Shutdown;

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
    /// What one life of the committer leaves to the next.
    inherited: Arc<Inherited>,
}

/// See the [module's page](self).
pub struct ConsumerSystem {
    parts: Parts,
    budgets: BTreeMap<String, RestartBudget>,
    lives: BTreeMap<String, u64>,
    /// Members with subscriptions that came while this one ran.
    added: Vec<ConsumerHandle>,
    stopping: bool,
}

impl ConsumerSystem {
    /// Assembles one member of a group: its configuration, then its subscriptions, then
    /// [`start`](Builder::start).
    pub fn builder(config: ConsumerConfig) -> Builder {
        Builder::new(config)
    }

    fn new(parts: Parts) -> Self {
        Self { parts, budgets: BTreeMap::new(), lives: BTreeMap::new(), added: Vec::new(), stopping: false }
    }
}

impl Actor for ConsumerSystem {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        // before anything can be delivered
        self.parts.offsets.set(ctx.address());
        self.start_all(ctx);
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
