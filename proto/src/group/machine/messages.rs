//! What goes into the machine and what comes out of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::TopicPartition;
use crate::group::GroupSnapshot;
use crate::zk::ConsumerThreadId;

/// A ZooKeeper session id, as it stands in `ephemeralOwner`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionNumber(pub i64);

impl fmt::Display for SessionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

/// Counts our rebalances; every asynchronous result carries the one it was asked in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Who an owner node says it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The node's `ephemeralOwner`.
    pub session: SessionNumber,
    /// The node's data: a consumer thread id.
    pub thread: String,
}

impl Owner {
    /// Whether this is that thread's claim, made in that session.
    pub fn is(&self, session: SessionNumber, thread: &ConsumerThreadId) -> bool {
        self.session == session && self.thread == thread.as_str()
    }
}

/// Why a rebalance is wanted. Triggers coalesce into one set of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// We registered (first, or after a session expiry).
    Joined,
    /// The children of `ids` changed.
    ConsumersChanged,
    /// The partitions of a subscribed topic changed.
    PartitionsChanged,
    /// The list of topics changed.
    TopicsChanged,
    /// The list of brokers changed.
    BrokersChanged,
    /// The ZooKeeper connection came back: watches may have been missed.
    Reconnected,
    /// A partition of ours was taken or its owner node deleted.
    PartitionsLost,
    /// A claim, release, read or position read failed.
    Failed,
    /// A foreign owner node did not go away in time.
    StillWaiting,
    /// The coordinator was restarted after a panic.
    Restarted,
}

impl Reason {
    /// The name for logs and traces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Joined => "joined",
            Self::ConsumersChanged => "consumers_changed",
            Self::PartitionsChanged => "partitions_changed",
            Self::TopicsChanged => "topics_changed",
            Self::BrokersChanged => "brokers_changed",
            Self::Reconnected => "reconnected",
            Self::PartitionsLost => "partitions_lost",
            Self::Failed => "failed",
            Self::StillWaiting => "still_waiting",
            Self::Restarted => "restarted",
        }
    }
}

/// What creating an owner node came to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClaimAnswer {
    /// The node is there and its `ephemeralOwner` is the session that planned it.
    Created,
    /// Somebody's node is there.
    Held(Owner),
    /// Not known: the answer did not come, or was an error. (A node that was in the way but gone when it was to
    /// be read is no error: create again.)
    Unknown(String),
}

/// What happened. Results name the generation (or session) in which they were asked for, and are told in the
/// order in which ZooKeeper gave them: a read that was answered before a create is not told after it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Input {
    /// A new ZooKeeper session is up.
    SessionStarted,
    /// The same session is connected again.
    Reconnected,
    /// The session is gone, and all its nodes with it.
    SessionExpired,
    /// Answer to [`Effect::Register`].
    Registered {
        /// Asked in.
        generation: Generation,
        /// The session that holds our `ids` node, or why there is none.
        outcome: Result<SessionNumber, String>,
    },
    /// Our `ids` node is gone although the session lives.
    RegistrationMissing,
    /// Something changed that the plan depends on.
    Trigger(Reason),
    /// Answer to [`Effect::ReadGroup`].
    GroupRead {
        /// Asked in.
        generation: Generation,
        /// The snapshot, or why it could not be read.
        outcome: Result<GroupSnapshot, String>,
    },
    /// Answer to [`Effect::Stop`]: delivery has stopped, handlers are done or cut off, offsets flushed.
    Stopped {
        /// Asked in.
        generation: Generation,
        /// The partitions that were stopped.
        partitions: BTreeSet<TopicPartition>,
    },
    /// Answer to [`Effect::Release`].
    Released {
        /// The session that held the node.
        session: SessionNumber,
        /// The partition.
        partition: TopicPartition,
        /// `Err`: it is not known whether the node is gone.
        outcome: Result<(), String>,
    },
    /// Answer to [`Effect::Claim`] and [`Effect::Rethread`].
    Claimed {
        /// The session in which it was asked for.
        session: SessionNumber,
        /// The partition.
        partition: TopicPartition,
        /// What it came to.
        answer: ClaimAnswer,
    },
    /// Answer to [`Effect::ReadOwner`], and what a watch on an owner node led to.
    OwnerRead {
        /// The session in which it was asked for.
        session: SessionNumber,
        /// The partition.
        partition: TopicPartition,
        /// Who holds it now, nobody, or not known.
        outcome: Result<Option<Owner>, String>,
    },
    /// Answer to [`Effect::Start`] when the position could not be read.
    StartFailed {
        /// Asked in.
        generation: Generation,
        /// The partition.
        partition: TopicPartition,
        /// Why.
        why: String,
    },
    /// The timer of [`Effect::SetTimer`] rang.
    TimerRang {
        /// Set in.
        generation: Generation,
    },
    /// Give everything up and leave.
    Shutdown,
}

/// What is to be done. The driver does these in order, and never waits for one before the next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effect {
    /// Create our `ids` node.
    Register {
        /// To be named in the answer.
        generation: Generation,
    },
    /// Read members, topics and brokers, each read and watched in one operation.
    ReadGroup {
        /// To be named in the answer.
        generation: Generation,
    },
    /// Stop fetching, let handlers finish or cut them off at the deadline, flush offsets; then answer.
    Stop {
        /// To be named in the answer.
        generation: Generation,
        /// Which.
        partitions: BTreeSet<TopicPartition>,
        /// When handlers are cut off, in the driver's milliseconds.
        deadline: u64,
    },
    /// Delete the owner node, if it is still of this session: read it, delete that version. A node that is
    /// absent or another's counts as released.
    Release {
        /// Only in this session.
        session: SessionNumber,
        /// The partition.
        partition: TopicPartition,
    },
    /// Create the owner node.
    Claim {
        /// Only in this session.
        session: SessionNumber,
        /// The partition.
        partition: TopicPartition,
        /// The node's data.
        thread: ConsumerThreadId,
    },
    /// Set the owner node to another of our threads, if it is still of this session: read it, set that version.
    Rethread {
        /// Only in this session.
        session: SessionNumber,
        /// The partition.
        partition: TopicPartition,
        /// The node's new data.
        thread: ConsumerThreadId,
    },
    /// Read the owner node and watch it, whether it is there or not; read it again when the watch fires and
    /// after a reconnect. The first request on a new connection is one that passes the leader (the
    /// heartbeat): else a lagging follower may hide a write of ours that got through.
    ReadOwner {
        /// Only in this session.
        session: SessionNumber,
        /// The partition.
        partition: TopicPartition,
    },
    /// Read the position (now, after the claim), then start delivery.
    Start {
        /// To be named in the answer.
        generation: Generation,
        /// The claiming session.
        session: SessionNumber,
        /// The partition.
        partition: TopicPartition,
        /// Who consumes it.
        thread: ConsumerThreadId,
        /// It appeared while the group was running (see `troupe.new.partitions.reset`).
        appeared: bool,
    },
    /// Stop delivery at once; commit nothing, delete nothing: they are not ours any more (INV-7). A stop of
    /// theirs that is under way need not be answered.
    Drop {
        /// Which.
        partitions: BTreeSet<TopicPartition>,
        /// Why.
        why: String,
    },
    /// Answer [`Input::TimerRang`] then. A later one replaces it.
    SetTimer {
        /// To be named in the answer.
        generation: Generation,
        /// When, in the driver's milliseconds.
        at: u64,
    },
    /// For logs, metrics and listeners.
    Report(Progress),
    /// Everything is given up: close the session. Said once; nothing follows.
    Leave,
}

/// How a rebalance goes, for logs, traces, metrics and listeners.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Progress {
    /// A rebalance begins.
    Started {
        /// Its number.
        generation: Generation,
        /// Why.
        reasons: BTreeSet<Reason>,
    },
    /// The new plan is known.
    Planned {
        /// Its number.
        generation: Generation,
        /// Stay as they are and keep flowing.
        kept: usize,
        /// Go away from us.
        released: usize,
        /// Come to us.
        claimed: usize,
        /// Move between threads of ours.
        moved: usize,
    },
    /// All that is planned is owned.
    Settled {
        /// Its number.
        generation: Generation,
        /// How many partitions we own now.
        owned: usize,
    },
    /// Owner nodes of others are in the way.
    Waiting {
        /// Its number.
        generation: Generation,
        /// Partition to the thread that holds it.
        holders: BTreeMap<TopicPartition, String>,
    },
    /// Whole ownership has not been reached for `rebalance.max.retries` x `rebalance.backoff.ms`.
    /// It goes on trying.
    Failing {
        /// Its number.
        generation: Generation,
        /// What is in the way.
        why: String,
    },
    /// Partitions were taken from us.
    Lost {
        /// Which.
        partitions: BTreeSet<TopicPartition>,
        /// Why.
        why: String,
    },
    /// A step failed and is settled by a read, or tried again after the backoff.
    Retrying {
        /// Its number.
        generation: Generation,
        /// What failed.
        why: String,
    },
}
