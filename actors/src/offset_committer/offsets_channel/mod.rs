//! # The offsets channel: the one connection to the group's coordinator, which keeps its offsets in Kafka
//!
//! Takes single jobs (read this partition's offset; commit this one) and puts all that wait into the next request, so
//! that a thousand partitions that start at once are few requests. One request is in flight.
//!
//! - The coordinator is looked up at any broker that is known, and kept until a connection fails or it says that it is
//!   not the coordinator any more (`coordinator.rs`).
//! - What fails is tried again, `offsets.commit.max.retries` times, after `offsets.channel.backoff.ms`; not what cannot
//!   get better by that: a missing acl, or a group of Kafka's own consumers that is active under our name
//!   (`requests.rs`). No error is ever taken for "no offset".
//! - A commit is sent only while its claim's lease lives, and given up when that ends: the time for its answer ends with
//!   the lease, as far as heartbeats extend that meanwhile. Nothing else fences it: a request that was sent may be
//!   carried out later than we wait for it.
//! - While partitions are being given up ([`OffsetsChannel::flush_until`]) commits are tried again until their time is over
//!   and not longer; a commit in flight is waited for, a read is not.
//!
//! ## What a coordinator that is away holds up
//! A *try* is to connect and to be answered: up to `offsets.channel.socket.timeout.ms` (10 s) each, to connect for a
//! commit no longer than the lease has left. *All tries* are 1 + `offsets.commit.max.retries` (6), with
//! `offsets.channel.backoff.ms` (1 s) after each. What comes out then is an error that names group, partition,
//! coordinator and reason, and what to do.
//!
//! | wait | bound |
//! |---|---|
//! | start of a partition | all tries of a read, until the group is given up as `failing`; then once more |
//! | commit: automatic, asked for, by a handler | the commits before it, and all tries; nothing is tried when its turn comes after the time to give partitions up |
//! | position made by `auto.offset.reset` | all tries of a read, for which nobody else waits; then as a commit |
//! | seek | as a commit |
//! | last commit of what is given up | the drain time; then the commit in flight, and one try, for which 1 s at least is given to connect |
//! | shutdown | the drain time, two answers and 5 s; then the session ends all the same |
//! | status | nothing: no request is made for it |
//!
//! The task ends with the last handle, and when the actor ends in whose context it runs.

mod coordinator;
mod jobs;
mod requests;
mod task;

pub(crate) use requests::hint;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::config::{ConsumerConfig, OffsetsStorage};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::CommitError;
use crate::broker_connection::ConnectOptions;
use crate::fetcher_manager::BrokerAddress;
pub(super) use jobs::Commit;
use jobs::{CommitJob, Job, ReadJob};
use task::Task;

/// How offsets are stored in Kafka.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChannelSettings {
    /// `group.id`.
    pub group: Arc<str>,
    /// `client.id`, and `offsets.channel.socket.timeout.ms` (10 s) for connecting and each answer.
    pub connect: ConnectOptions,
    /// `offsets.commit.max.retries` (5).
    pub max_retries: u32,
    /// `offsets.channel.backoff.ms` (1 s): before what failed is tried again.
    pub backoff: Duration,
    /// `dual.commit.enabled` (true): in ZooKeeper as well.
    pub dual: bool,
}

impl ChannelSettings {
    /// By the properties; none when `offsets.storage` is zookeeper.
    pub fn of(config: &ConsumerConfig) -> Option<Self> {
        (config.offsets_storage == OffsetsStorage::Kafka).then(|| Self {
            group: config.group_id.as_str().into(),
            connect: ConnectOptions::new(&config.client_id, config.offsets_channel_socket_timeout),
            max_retries: config.offsets_commit_max_retries,
            backoff: config.offsets_channel_backoff,
            dual: config.dual_commit_enabled,
        })
    }

    fn timeout(&self) -> Duration {
        self.connect.socket_timeout
    }
}

/// What the channel is told.
enum Told {
    Brokers(Vec<BrokerAddress>),
    Read(ReadJob),
    Commit(CommitJob),
    /// Partitions are being given up: commits are tried again until then at most.
    Flushing(Instant),
    /// That is over.
    Flushed(Instant),
}

/// A handle of the channel.
#[derive(Clone)]
pub(super) struct OffsetsChannel {
    told: UnboundedSender<Told>,
    coordinator: Arc<Mutex<Option<String>>>,
}

impl OffsetsChannel {
    /// A channel, and the task that is to be run.
    pub(super) fn new(settings: ChannelSettings) -> (Self, impl Future<Output = ()>) {
        let (told, hears) = mpsc::unbounded_channel();
        let address = Arc::<Mutex<Option<String>>>::default();
        let task = Task::new(settings, hears, Arc::clone(&address));
        (Self { told, coordinator: address }, task.run())
    }

    /// The brokers that are registered now.
    pub(super) fn set_brokers(&self, brokers: Vec<BrokerAddress>) {
        self.tell(Told::Brokers(brokers));
    }

    /// `host:port` of the coordinator, while there is a connection to it.
    pub(super) fn coordinator(&self) -> Option<String> {
        self.coordinator.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The stored offset; none when there is none, or a negative one, which the old consumer stores.
    pub(super) async fn read(&self, partition: &TopicPartition) -> Result<Option<i64>, CommitError> {
        let (answer, answered) = oneshot::channel();
        self.tell(Told::Read(Job::new(partition.clone(), (), answer)));
        answered.await.unwrap_or(Err(CommitError::NotRunning))
    }

    /// Stores an offset.
    pub(super) async fn commit(&self, commit: Commit) -> Result<(), CommitError> {
        let (answer, answered) = oneshot::channel();
        self.tell(Told::Commit(Job::new(commit.claim.topic_partition.clone(), commit, answer)));
        answered.await.unwrap_or(Err(CommitError::NotRunning))
    }

    /// Others wait for partitions of ours: commits are tried again until then at most, as long as the guard lives.
    pub(super) fn flush_until(&self, until: Instant) -> FlushDeadline {
        self.tell(Told::Flushing(until));
        FlushDeadline { channel: self.clone(), until }
    }

    fn tell(&self, told: Told) {
        // a task that has ended answers nobody, who are told so
        let _ = self.told.send(told);
    }
}

/// See [`OffsetsChannel::flush_until`].
pub(super) struct FlushDeadline {
    channel: OffsetsChannel,
    until: Instant,
}

impl Drop for FlushDeadline {
    fn drop(&mut self) {
        self.channel.tell(Told::Flushed(self.until));
    }
}
