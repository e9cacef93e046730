//! # OffsetCommitter: what is stored of how far we are
//!
//! Commits acknowledged offsets to ZooKeeper: by itself every `auto.commit.interval.ms`, on demand, and once
//! more for partitions that are given up (INV-3). Every write is fenced by the version that was read after
//! the claim (rule 10); who finds it changed and is not the owner any more has lost the partition.
//!
//! - *Mailbox*: requests [`ReadPosition`], [`CommitNow`], [`FlushGeneration`], [`CommitReset`], [`CommitSeek`],
//!   [`Describe`], [`Stop`].
//! - *State*: none that matters: offsets and versions live with the claims in the
//!   [`TopicRegistry`], so a restarted committer goes on where the last one stopped, and what it is asked about a
//!   claim that is gone changes nothing.
//! - *Supervision*: restarted by the `ConsumerSystem` after a panic.
//! - *Talks to*: the `ZkSession`; the coordinator, with [`PartitionsLost`].

mod seeking;
mod store;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use actix::prelude::*;
use futures_util::future::join_all;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::zk::paths::GroupPaths;

pub use seeking::CommitSeek;
pub use store::OffsetStore;

use crate::coordinator::RebalanceCoordinator;
use crate::registry::{OwnedPartition, Position, TopicRegistry};
use crate::supervise::{ExitGuard, Slot};
use crate::zk_session::ZkSession;

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

/// Commit what is acknowledged, of every partition owned now or about to be released; answers how many offsets were
/// written.
#[derive(Message)]
#[rtype(result = "Result<usize, CommitError>")]
pub struct CommitNow {
    /// For the log.
    pub why: &'static str,
}

/// The last commit of partitions that have stopped (INV-3), when automatic commit is on; answered when it is
/// done or has failed for good.
#[derive(Message)]
#[rtype(result = "()")]
pub struct FlushGeneration(pub Vec<Arc<OwnedPartition>>);

/// A position made by `auto.offset.reset`: stored before its first record is delivered, when automatic commit
/// is on (rule 8), and then the partition's. Answers the position that counts: this one, what was stored since the
/// partition was claimed, or the one that it was given meanwhile.
#[derive(Message)]
#[rtype(result = "Result<i64, CommitError>")]
pub struct CommitReset {
    /// The claim.
    pub partition: Arc<OwnedPartition>,
    /// The position in whose place it is made, or [`NO_OFFSET`](crate::registry::NO_OFFSET). If the partition has moved
    /// from there, somebody has made one already, whose asker may have ended before it was answered; but not where the
    /// topic was made again and the partition [has none yet](OwnedPartition::is_of_earlier_topic).
    pub instead_of: i64,
    /// The topic in which it is made, by its [number](OwnedPartition::topic_number).
    pub topic: u64,
    /// Its new position.
    pub offset: i64,
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
    /// Offset nodes written.
    pub commits: u64,
    /// Commits that failed; their offsets are tried again at the next.
    pub failures: u64,
    /// Messages that this actor has handled.
    pub messages: u64,
    /// The last failure.
    pub last_error: Option<String>,
}

/// Why offsets could not be read or stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The store did not answer as hoped.
    #[error("offset of {partition}: {why}")]
    Store {
        /// Which.
        partition: TopicPartition,
        /// Names the path and the reason.
        why: String,
    },
    /// The lease has ended: the partition may be another member's by now.
    #[error("offset of {0}: not committed, the session's lease has ended")]
    Fenced(TopicPartition),
    /// Another member owns the partition.
    #[error("offset of {partition}: not committed, the partition is lost: {why}")]
    Lost {
        /// Which.
        partition: TopicPartition,
        /// What was found.
        why: String,
    },
    /// The committer was not there to answer (it is being restarted).
    #[error("the offset committer is not running")]
    NotRunning,
}

/// What a committer is made of.
pub struct CommitterParts {
    /// The group's znodes.
    pub paths: GroupPaths,
    /// Where offsets and versions are kept.
    pub registry: Arc<TopicRegistry>,
    /// Where they are stored.
    pub session: Slot<ZkSession>,
    /// Told of lost partitions.
    pub coordinator: Slot<RebalanceCoordinator>,
    /// `auto.commit.enable` and `auto.commit.interval.ms`; none when it is off.
    pub interval: Option<Duration>,
    /// Tells the parent of a panic.
    pub guard: ExitGuard,
}

/// See the [module's page](self).
pub struct OffsetCommitter {
    parts: CommitterParts,
    pass: Arc<Pass>,
    messages: u64,
}

/// One commit at a time goes to the store; whoever comes meanwhile waits for it. Resets may go side by side, for each
/// is of a partition of its own: one after the other they would hold up the first start of a group for seconds.
struct Pass {
    store: OffsetStore,
    coordinator: Slot<RebalanceCoordinator>,
    turn: tokio::sync::RwLock<()>,
    commits: AtomicU64,
    failures: AtomicU64,
    last_error: Mutex<Option<String>>,
}

impl Pass {
    /// Commits each partition's acknowledged offset; unchanged ones are not written again. Which they are is asked when
    /// it is our turn: a seek that we waited for has put another claim in place.
    async fn run(
        &self,
        partitions: impl FnOnce() -> Vec<Arc<OwnedPartition>>,
        why: &str,
    ) -> Result<usize, CommitError> {
        let _turn = self.turn.write().await;
        let partitions = partitions();
        let results = join_all(partitions.iter().map(|partition| self.store.commit(partition))).await;
        let mut written = 0;
        let mut first_error = None;
        for result in results {
            match result {
                Ok(wrote) => written += usize::from(wrote),
                Err(error) => first_error = first_error.or(Some(self.failed(error, why))),
            }
        }
        self.commits.fetch_add(written as u64, Relaxed);
        tracing::debug!(written, why, "offsets committed");
        first_error.map_or(Ok(written), Err)
    }

    fn failed(&self, error: CommitError, why: &str) -> CommitError {
        tracing::warn!(%error, why, "commit failed");
        self.failures.fetch_add(1, Relaxed);
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        if let CommitError::Lost { partition, why } = &error {
            self.coordinator.do_send(PartitionsLost { partition: partition.clone(), why: why.clone() });
        }
        error
    }
}

impl OffsetCommitter {
    /// A committer that is not started yet.
    pub fn new(parts: CommitterParts) -> Self {
        let pass = Arc::new(Pass {
            store: OffsetStore::new(parts.paths.clone(), parts.session.clone()),
            coordinator: parts.coordinator.clone(),
            turn: tokio::sync::RwLock::default(),
            commits: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            last_error: Mutex::default(),
        });
        Self { parts, pass, messages: 0 }
    }

    fn commit_all(&mut self, why: &'static str) -> ResponseFuture<Result<usize, CommitError>> {
        let (pass, registry) = (Arc::clone(&self.pass), Arc::clone(&self.parts.registry));
        Box::pin(async move { pass.run(|| registry.committable(), why).await })
    }
}

impl Actor for OffsetCommitter {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if let Some(interval) = self.parts.interval {
            ctx.run_interval(interval, |this, ctx| {
                if this.pass.turn.try_write().is_ok() {
                    let commit = this.commit_all("auto.commit.interval.ms");
                    ctx.spawn(commit.into_actor(this).map(|_, _, _| ()));
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
        Box::pin(async move {
            match asked.topics {
                Some(nodes) => pass.store.read_with_topic(&asked.partition, nodes).await,
                None => Ok(Stored { position: pass.store.read(&asked.partition).await?, since: None }),
            }
        })
    }
}

impl Handler<CommitNow> for OffsetCommitter {
    type Result = ResponseFuture<Result<usize, CommitError>>;

    fn handle(&mut self, CommitNow { why }: CommitNow, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        self.commit_all(why)
    }
}

impl Handler<FlushGeneration> for OffsetCommitter {
    type Result = ResponseFuture<()>;

    fn handle(
        &mut self,
        FlushGeneration(partitions): FlushGeneration,
        _: &mut Self::Context,
    ) -> Self::Result {
        self.messages += 1;
        let pass = Arc::clone(&self.pass);
        let automatic = self.parts.interval.is_some();
        Box::pin(async move {
            if automatic {
                // a failure is logged by the pass; what it leaves uncommitted is delivered again
                let _ = pass.run(|| partitions, "the partitions are given up").await;
            }
        })
    }
}

impl Handler<CommitReset> for OffsetCommitter {
    type Result = ResponseFuture<Result<i64, CommitError>>;

    fn handle(
        &mut self,
        CommitReset { partition, instead_of, topic, offset }: CommitReset,
        _: &mut Self::Context,
    ) -> Self::Result {
        self.messages += 1;
        let pass = Arc::clone(&self.pass);
        let automatic = self.parts.interval.is_some();
        Box::pin(async move {
            let _turn = pass.turn.read().await;
            let _making = partition.making().await;
            if let Some(answer) = overtaken(&partition, instead_of, topic) {
                return answer;
            }
            let position = match automatic {
                true => pass.store.reset(&partition, offset).await,
                false => Ok(offset),
            };
            let position = position.map_err(|error| pass.failed(error, "auto.offset.reset"))?;
            if let Some(answer) = overtaken(&partition, instead_of, topic) {
                return answer;
            }
            // at once: whoever asked may have ended, and must not have it made again
            partition.reset_in(topic, position);
            Ok(position)
        })
    }
}

/// The answer for a position that was asked for something that is so no more: none is made then, or another was. What
/// moved a partition whose topic was made again was a chunk that was on its way, and it still has no position.
fn overtaken(partition: &OwnedPartition, from: i64, topic: u64) -> Option<Result<i64, CommitError>> {
    let now = partition.fetched();
    let why = match () {
        () if partition.is_closed() => "given up meanwhile".to_owned(),
        () if partition.topic_number() != topic => "its topic was made again meanwhile".to_owned(),
        () if partition.is_on_the_way() => "a chunk is on its way to its stream".to_owned(),
        () if now == from => return None,
        () if !partition.is_of_earlier_topic() => return Some(Ok(now)),
        () => format!("it has moved from {from} to {now} meanwhile, in the earlier topic"),
    };
    Some(Err(CommitError::Store { partition: partition.topic_partition.clone(), why }))
}

impl Handler<Describe> for OffsetCommitter {
    type Result = MessageResult<Describe>;

    fn handle(&mut self, _: Describe, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        MessageResult(CommitterStatus {
            commits: self.pass.commits.load(Relaxed),
            failures: self.pass.failures.load(Relaxed),
            messages: self.messages,
            last_error: self.pass.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        })
    }
}

impl Handler<Stop> for OffsetCommitter {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.parts.guard.dismiss();
        ctx.stop();
    }
}
