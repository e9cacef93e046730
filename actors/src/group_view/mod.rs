//! # GroupReader: the whole group, other members too, for people who look at it
//!
//! Who is registered, who owns which partition and since when, how far each is: for a dashboard, and for whoever wants
//! to know why a partition is read by nobody. It decides nothing.
//!
//! - *Mailbox*: requests [`ReadGroup`], [`Describe`], [`Stop`].
//! - *State*: the last [`GroupView`], for [`FRESH`].
//! - *Supervision*: restarted by the `ConsumerSystem` after a panic; it has nothing to lose.
//! - *Talks to*: the `ZkSession` (nodes of the group, without watches); `TopicMetadata` with `bootstrap.servers`; brokers
//!   (ends of logs; with `offsets.storage=kafka` offsets), on connections that live for one view.
//!
//! # Rules
//! * It reads only when it is asked, and once a second at most, whoever asks. So a page that nobody looks at costs
//!   nothing.
//! * Nodes are read over a port (`nodes`), by the same code ([`ZooKeeperAdmin::view`](crate::admin::ZooKeeperAdmin::view))
//!   where no member runs.
//! * A few reads are under way at a time (`nodes`), out of the many that a session takes: a group of a thousand
//!   partitions takes a little longer to look at, and no claim or heartbeat waits for it.
//! * All of it takes [`PATIENCE`] at most, else it is an error: a ZooKeeper that answers slowly holds nobody for long.
//! * Everybody's names and records are shown as they stand, what cannot be read of them as an error beside them.
//! * The reads are not atomic: what moves meanwhile may show half.

pub(crate) mod assembled;
pub(crate) mod brokers;
mod member;
pub(crate) mod nodes;
pub(crate) mod reading;

use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe_proto::config::ConsumerConfig;
use kafka_troupe_proto::schemas::group::v1::GroupView;
use tokio::time::Instant;

use crate::broker_connection::ConnectOptions;
use crate::fetcher_manager::KnownBrokers;
use crate::supervise::{ExitGuard, Slot};
use crate::topic_metadata::TopicMetadata;
use crate::zk_session::ZkSession;
use member::MembersReading;

/// How long a view is given again without being read anew.
pub const FRESH: Duration = Duration::from_secs(1);

/// How long the reads of a view may take together.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Read the whole group; one that was read less than [`FRESH`] ago is given again.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Result<GroupView, GroupViewError>")]
pub struct ReadGroup {
    /// The members that belong to the system which asks, by id.
    pub own: Vec<String>,
}

/// The group could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("group {group} cannot be shown: {why}")]
#[non_exhaustive]
pub struct GroupViewError {
    /// The group.
    pub group: String,
    /// Names the node and the reason.
    pub why: String,
}

impl GroupViewError {
    pub(crate) fn new(group: &str, why: impl Into<String>) -> Self {
        Self { group: group.to_owned(), why: why.into() }
    }
}

/// How many messages this actor has handled.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "u64")]
pub struct Describe;

/// End.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct Stop;

/// What a reader is made of.
pub struct ReaderParts {
    /// The member's configuration.
    pub config: Arc<ConsumerConfig>,
    /// The member's id.
    pub consumer_id: String,
    /// The way to ZooKeeper.
    pub session: Slot<ZkSession>,
    /// Tells topics; empty without `bootstrap.servers`.
    pub metadata: Slot<TopicMetadata>,
    /// The brokers to ask for ends of logs.
    pub brokers: Arc<KnownBrokers>,
    /// How these are dialled.
    pub connect: ConnectOptions,
    /// Tells the parent of a panic.
    pub guard: ExitGuard,
}

/// The last read, and when it ended.
type Last = Option<(Instant, Result<GroupView, GroupViewError>)>;

/// See the [module's page](self).
pub struct GroupReader {
    reading: Arc<MembersReading>,
    /// Held while the group is read: who asks meanwhile gets the same.
    last: Arc<tokio::sync::Mutex<Last>>,
    guard: ExitGuard,
    messages: u64,
}

impl GroupReader {
    /// A reader that is not started yet.
    pub fn new(parts: ReaderParts) -> Self {
        let (reading, guard) = MembersReading::new(parts);
        Self { reading: Arc::new(reading), last: Arc::default(), guard, messages: 0 }
    }
}

impl Actor for GroupReader {
    type Context = Context<Self>;
}

impl Handler<ReadGroup> for GroupReader {
    type Result = ResponseFuture<Result<GroupView, GroupViewError>>;

    fn handle(&mut self, ReadGroup { own }: ReadGroup, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        let (reading, last) = (Arc::clone(&self.reading), Arc::clone(&self.last));
        Box::pin(async move {
            let mut last = last.lock().await;
            let view = match &*last {
                Some((at, view)) if at.elapsed() < FRESH => view.clone(),
                _ => {
                    let view = tokio::time::timeout(PATIENCE, reading.read()).await;
                    let view = view.unwrap_or_else(|_| Err(reading.took_too_long()));
                    *last = Some((Instant::now(), view.clone()));
                    view
                }
            };
            view.map(|view| assembled::with_own(view, &own))
        })
    }
}

impl Handler<Describe> for GroupReader {
    type Result = u64;

    fn handle(&mut self, _: Describe, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        self.messages
    }
}

impl Handler<Stop> for GroupReader {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.guard.dismiss();
        ctx.stop();
    }
}
