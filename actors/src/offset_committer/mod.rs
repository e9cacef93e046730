//! # OffsetCommitter: what is stored of how far we are
//!
//! Commits acknowledged offsets: by itself every `auto.commit.interval.ms`, on demand, and once more for partitions
//! that are given up (INV-3). Where to, `stores` knows. In ZooKeeper every write is fenced by the version that was read
//! after the claim (rule 10); who finds it changed and is not the owner any more has lost the partition
//! (`zookeeper_store`). In Kafka the group's coordinator keeps them, and only the lease fences them (`kafka_store`,
//! `offsets_channel`).
//!
//! - *Mailbox*: requests [`ReadPosition`], [`CommitNow`], [`FlushGeneration`], [`CommitReset`], [`CommitSeek`],
//!   [`SetBrokers`], [`Describe`], [`Stop`].
//! - *State*: whose turn it is to write, and the brokers, both of which outlive a panic ([`Inherited`]); with Kafka the
//!   channel's queues, connection and deadlines, which do not: whoever waits there is told so. Offsets and versions
//!   live with the claims in the [`TopicRegistry`], so a restarted committer goes on where the last one stopped, and
//!   what it is asked about a claim that is gone changes nothing.
//! - *Supervision*: restarted by the `ConsumerSystem` after a panic.
//! - *Talks to*: the `ZkSession`; brokers, through the channel that runs in its context; the coordinator, with
//!   [`PartitionsLost`].
//!
//! Its answers wait for the stores, one commit after another (`pass`, whose methods take the turn): a commit that waits
//! for a seek (`seeking`) or a made position (`resetting`) writes what they left.

mod commit_span;
mod error;
mod kafka_store;
mod offsets_channel;
mod outcome;
mod pass;
mod resetting;
mod seeking;
mod stores;
mod turn;
mod zookeeper_store;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use actix::prelude::*;
use futures_util::future::LocalBoxFuture;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::zk::paths::GroupPaths;
use tokio::time::Instant;

pub use error::CommitError;
pub use offsets_channel::ChannelSettings;
pub(crate) use offsets_channel::hint;
pub use outcome::{CommitOutcome, CommittedOffset, ToCommit};
pub use resetting::CommitReset;
pub use seeking::CommitSeek;
pub use turn::Inherited;

use crate::coordinator::RebalanceCoordinator;
use crate::fetcher_manager::SetBrokers;
use crate::registry::{OwnedPartition, Position, TopicRegistry};
use crate::supervise::{ExitGuard, Slot};
use crate::zk_session::ZkSession;
use kafka_store::KafkaStore;
use offsets_channel::OffsetsChannel;
use pass::Pass;
use stores::Stores;
use zookeeper_store::ZookeeperStore;

/// Read where the group stopped in this partition. Asked after the claim (rule 7).
#[derive(Message)]
#[rtype(result = "Result<Stored, CommitError>")]
pub struct ReadPosition {
    /// Which.
    pub partition: TopicPartition,
    /// Which nodes tell whether the offset is of an earlier topic, if any do.
    pub topics: Option<TopicNodes>,
}

/// Nodes that tell one topic from a later one of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicNodes {
    /// Kafka's, below `/brokers/topics`: made with the topic.
    Kafka,
    /// The group's own; see [`topic_ids`](kafka_troupe_proto::zk::topic_ids).
    Group,
}

/// Where the group stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The offset and its version.
    pub position: Position,
    /// The transaction since which the present topic stands under its name, by its node: what is stored before it is of
    /// an earlier one. 0 without a node.
    pub since: Option<i64>,
}

/// Commit now.
#[derive(Message)]
#[rtype(result = "CommitOutcome")]
pub struct CommitNow {
    /// Which offsets.
    pub what: ToCommit,
    /// For the log.
    pub why: &'static str,
}

/// The last commit of partitions that have stopped (INV-3), when automatic commit is on; answered when it is
/// done or has failed for good, and no commit of theirs is under way any more.
#[derive(Message)]
#[rtype(result = "()")]
pub struct FlushGeneration {
    /// The claims.
    pub partitions: Vec<Arc<OwnedPartition>>,
    /// What fails is tried again until then at most: others wait.
    pub until: Instant,
}

/// End.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Stop;

/// How it stands.
#[derive(Message)]
#[rtype(result = "CommitterStatus")]
pub struct Describe;

/// Sent to the coordinator: a commit found that the partition is somebody else's.
#[derive(Message, Clone, Debug)]
#[rtype(result = "()")]
pub struct PartitionsLost {
    /// Which.
    pub partition: TopicPartition,
    /// What was found.
    pub why: String,
}

/// What the committer reports of itself.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CommitterStatus {
    /// Offsets written, each counted once where there are two stores.
    pub commits: u64,
    /// Offset nodes written (`ZooKeeperCommitsPerSec` of the old consumer).
    pub to_zookeeper: u64,
    /// Offsets written to Kafka (`KafkaCommitsPerSec`).
    pub to_kafka: u64,
    /// `host:port` of the coordinator that keeps offsets in Kafka, while there is a connection to it.
    pub coordinator: Option<String>,
    /// Commits that failed; their offsets are tried again at the next.
    pub failures: u64,
    /// Messages that this actor has handled.
    pub messages: u64,
    /// The last failure.
    pub last_error: Option<String>,
    /// Those whose last commit failed, also of partitions that were given up with that.
    pub failing: Vec<FailingCommit>,
}

/// A partition whose last commit failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FailingCommit {
    /// Which.
    pub partition: TopicPartition,
    /// Why: names the path or the broker.
    pub why: String,
    /// Since when they have failed.
    pub since: SystemTime,
    /// How often since.
    pub attempts: u32,
}

/// What a committer is made of.
pub struct CommitterParts {
    /// The group's znodes.
    pub paths: GroupPaths,
    /// Where offsets and versions are kept.
    pub registry: Arc<TopicRegistry>,
    /// The way to ZooKeeper.
    pub session: Slot<ZkSession>,
    /// How offsets are stored in Kafka; none when they are not.
    pub kafka: Option<ChannelSettings>,
    /// Told of lost partitions.
    pub coordinator: Slot<RebalanceCoordinator>,
    /// `auto.commit.enable` and `auto.commit.interval.ms`; none when it is off.
    pub interval: Option<Duration>,
    /// Offsets are committed without being asked for, by time or after so many records: so are positions that are made
    /// or sought, and partitions that are given up.
    pub automatic: bool,
    /// The same for all lives of a member's committer.
    pub inherited: Arc<Inherited>,
    /// Tells the parent of a panic.
    pub guard: ExitGuard,
}

/// See the [module's page](self).
pub struct OffsetCommitter {
    parts: CommitterParts,
    pass: Arc<Pass>,
    /// The offsets channel, until it runs.
    channel: Option<LocalBoxFuture<'static, ()>>,
    /// The commit of the last interval waits, or is under way.
    is_committing: bool,
    messages: u64,
}

impl OffsetCommitter {
    /// A committer that is not started yet.
    pub fn new(parts: CommitterParts) -> Self {
        let zookeeper = ZookeeperStore::new(parts.paths.clone(), parts.session.clone());
        let (stores, channel) = match parts.kafka.clone() {
            None => (Stores::zookeeper(zookeeper), None),
            Some(settings) => {
                let dual = settings.dual;
                let (channel, task) = OffsetsChannel::new(settings);
                let stores = Stores::kafka(zookeeper, KafkaStore::new(channel), dual);
                (stores, Some(Box::pin(task) as LocalBoxFuture<'static, ()>))
            }
        };
        stores.set_brokers(parts.inherited.brokers());
        let pass = Arc::new(Pass::new(stores, parts.coordinator.clone(), Arc::clone(&parts.inherited)));
        Self { parts, pass, channel, is_committing: false, messages: 0 }
    }

    fn commit(&mut self, what: ToCommit, why: &'static str) -> ResponseFuture<CommitOutcome> {
        let (pass, registry) = (Arc::clone(&self.pass), Arc::clone(&self.parts.registry));
        Box::pin(async move {
            match what {
                ToCommit::Acknowledged => pass.run(|| registry.committable(), why).await,
                ToCommit::Offsets(offsets) => pass.run_asked(offsets, &registry, why).await,
            }
        })
    }
}

impl Actor for OffsetCommitter {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if let Some(channel) = self.channel.take() {
            // here, so that its panic is ours
            ctx.spawn(channel.into_actor(self));
        }
        if let Some(interval) = self.parts.interval {
            ctx.run_interval(interval, |this, ctx| {
                // it waits for its turn as others do: a turn that is never free must not keep it from coming
                if !std::mem::replace(&mut this.is_committing, true) {
                    let commit = this.commit(ToCommit::Acknowledged, "auto.commit.interval.ms");
                    ctx.spawn(commit.into_actor(this).map(|_, this, _| this.is_committing = false));
                }
            });
        }
    }
}

impl Handler<ReadPosition> for OffsetCommitter {
    type Result = ResponseFuture<Result<Stored, CommitError>>;

    fn handle(&mut self, asked: ReadPosition, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        let pass = Arc::clone(&self.pass);
        Box::pin(async move { pass.stores.read(&asked.partition, asked.topics).await })
    }
}

impl Handler<CommitNow> for OffsetCommitter {
    type Result = ResponseFuture<CommitOutcome>;

    fn handle(&mut self, CommitNow { what, why }: CommitNow, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        self.commit(what, why)
    }
}

impl Handler<FlushGeneration> for OffsetCommitter {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, flush: FlushGeneration, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        let pass = Arc::clone(&self.pass);
        let automatic = self.parts.automatic;
        Box::pin(async move {
            let partitions = if automatic { flush.partitions } else { Vec::new() };
            pass.flush(partitions, flush.until).await;
        })
    }
}

impl Handler<Describe> for OffsetCommitter {
    type Result = MessageResult<Describe>;

    fn handle(&mut self, _: Describe, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        MessageResult(CommitterStatus { messages: self.messages, ..self.pass.describe() })
    }
}

impl Handler<SetBrokers> for OffsetCommitter {
    type Result = ();

    fn handle(&mut self, SetBrokers(brokers): SetBrokers, _: &mut Self::Context) {
        self.messages += 1;
        self.parts.inherited.set_brokers(&brokers);
        self.pass.stores.set_brokers(brokers);
    }
}

impl Handler<Stop> for OffsetCommitter {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.parts.guard.dismiss();
        ctx.stop();
    }
}
