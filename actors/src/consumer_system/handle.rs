//! A running member, as an application holds it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::config::ConsumerConfig;
use kafka_troupe_proto::health::Health;
use kafka_troupe_proto::schemas::group::v1::GroupView;
use kafka_troupe_proto::schemas::status::v1::StatusSnapshot;
use kafka_troupe_proto::zk::ConsumerId;
use tokio::time::timeout;

use super::life::Life;
use super::ports::Ports;
use super::subscribed::Subscribed;
use super::{Builder, ConsumerSystem, Group, Metrics, Offsets, Seek, SeekError};
use crate::group_view::GroupViewError;
use crate::offset_committer::{CommitError, CommitOutcome};
use crate::registry::TopicRegistry;
use crate::stream_queue::{CommitAfter, KafkaStream, ReadOptions, StreamHandle, Streams, Tally};

/// A system whose actor has not gathered a picture within that hangs for good: each of those whom it asks has 1 s, and
/// an added member 2 s.
const UNTIL_IT_HANGS: Duration = Duration::from_secs(5);

/// A running member, as its application holds it. Dropping it does not end the member: [`shutdown`](Self::shutdown)
/// does, and the end of the actix `System` that it was started in.
#[derive(Clone)]
pub struct ConsumerHandle {
    pub(super) system: Addr<ConsumerSystem>,
    pub(super) consumer_id: ConsumerId,
    pub(super) streams: Arc<Streams>,
    pub(super) pulled: Arc<[Subscribed]>,
    pub(super) life: Arc<Life>,
    pub(super) config: Arc<ConsumerConfig>,
    pub(super) ports: Ports,
    pub(super) offsets: Offsets,
    pub(super) commit_after: Option<Arc<CommitAfter>>,
    /// What it owns, also while nobody is there to tell.
    pub(super) registry: Arc<TopicRegistry>,
    /// How often [`subscribe`](Self::subscribe) was called.
    pub(super) added: Arc<AtomicU32>,
}

impl fmt::Debug for ConsumerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsumerHandle").field("consumer_id", &self.consumer_id).finish_non_exhaustive()
    }
}

impl ConsumerHandle {
    /// The actor's address, to send [`Metrics`] or [`Shutdown`](super::Shutdown) from other actors.
    pub fn address(&self) -> &Addr<ConsumerSystem> {
        &self.system
    }

    /// What it was configured with.
    pub fn config(&self) -> &ConsumerConfig {
        &self.config
    }

    /// The streams of a topic that was subscribed to with [`Builder::pull`], for one consumer each. Call it once per
    /// topic: a chunk goes to whichever stream of the same thread asked last.
    pub fn streams(&self, topic: &str) -> Vec<KafkaStream> {
        self.pulled(Some(topic))
    }

    /// The streams of the filter of [`Builder::pull_matching`], for one consumer each, as [`streams`](Self::streams)
    /// gives those of a topic.
    pub fn matching_streams(&self) -> Vec<KafkaStream> {
        self.pulled(None)
    }

    fn pulled(&self, topic: Option<&str>) -> Vec<KafkaStream> {
        let asked = self.pulled.iter().filter(|it| it.topics.name() == topic);
        let indices = asked.flat_map(|it| 0..it.streams);
        let streams = indices.filter_map(|index| self.streams.get(topic, index));
        let options = ReadOptions::from(&*self.config);
        let stream = |stream: &StreamHandle| {
            let tally = Tally::new(self.commit_after.clone());
            KafkaStream::new(stream.queue.clone(), options, tally, self.config.consumer_timeout)
        };
        streams.map(stream).collect()
    }

    /// Subscribes to more while running: give the builder its subscriptions and start it.
    ///
    /// Other members read a registration once and do not watch it, so what is added is registered by a second member
    /// of the group: with a consumer id of its own (`<consumer.id>.1` and so on, where one is configured), its own
    /// session, fetchers and streams. It is part of this system: [`metrics`](Self::metrics) show it,
    /// [`commit`](Self::commit) and [`shutdown`](Self::shutdown) include it. Its own handle gives its streams, and
    /// shuts down what was added alone.
    ///
    /// Where both subscribe to a topic, they share its partitions as any two members do. What is added has the same
    /// [`commit_after`](Builder::commit_after), counted by itself, unless it is given another.
    pub fn subscribe(&self) -> Builder {
        let mut config = ConsumerConfig::clone(&self.config);
        let number = self.added.fetch_add(1, Ordering::Relaxed) + 1;
        config.consumer_id = config.consumer_id.map(|id| format!("{id}.{number}"));
        let commit_after = self.commit_after.as_ref().map_or(0, |after| after.records());
        Builder::new(config).commit_after(commit_after).add_to(self.system.clone(), self.ports.clone())
    }

    /// How the member stands: session, partitions, streams, actors, rebalances.
    ///
    /// # Errors
    /// [`MailboxError`] when the system has shut down.
    pub async fn metrics(&self) -> Result<StatusSnapshot, MailboxError> {
        self.system.send(Metrics).await
    }

    /// The whole group as ZooKeeper shows it, members of other processes and makes too: who is registered, who owns
    /// which partition and since when, how far each is. Read when asked, once a second at most.
    ///
    /// # Errors
    /// [`GroupViewError`]: ZooKeeper does not answer, or the system has shut down. What else cannot be read, such as
    /// the end of a log, is left out, and named in [`GroupView::errors`].
    pub async fn group(&self) -> Result<GroupView, GroupViewError> {
        let ended = |_| GroupViewError::new(&self.config.group_id, "the consumer system has shut down");
        self.system.send(Group).await.map_err(ended)?
    }

    /// How the member and those [added](Self::subscribe) to it do, for routes of liveness and readiness: see
    /// [`health`](kafka_troupe_proto::health) for what makes it what. [`Health::Ended`] when the system does not
    /// answer any more, be it within 5 s.
    pub async fn health(&self) -> Health {
        match timeout(UNTIL_IT_HANGS, self.metrics()).await {
            Ok(Ok(snapshot)) => Health::of(&snapshot),
            _ => Health::Ended,
        }
    }

    /// Commits offsets from other places, such as other actors: see [`Builder::offsets`] for handlers.
    pub fn offsets(&self) -> Offsets {
        self.offsets.clone()
    }

    /// Commits what is acknowledged of every partition that is owned now or about to be released.
    ///
    /// # Errors
    /// As [`Offsets::commit`].
    pub async fn commit(&self) -> Result<CommitOutcome, CommitError> {
        self.offsets.commit().await
    }

    /// Commits these offsets: of each partition the next one to consume. Records go on to be delivered from where they
    /// were.
    ///
    /// # Errors
    /// As [`Offsets::commit_offsets`].
    pub async fn commit_offsets(
        &self,
        offsets: impl IntoIterator<Item = (TopicPartition, i64)>,
    ) -> Result<CommitOutcome, CommitError> {
        self.offsets.commit_offsets(offsets).await
    }

    /// Goes on with a partition at another offset, earlier or later: what was fetched before is dropped, the record in
    /// hand is waited for (at most `troupe.drain.timeout.ms`; of a [`KafkaStream`], [`ack`](KafkaStream::ack) it
    /// before), and the next record delivered is the first from `offset` on. By this a record that cannot be read is
    /// stepped over: see [`ConsumeError`](crate::ConsumeError). Stored at once if offsets are committed automatically,
    /// else by your next commit; a stored offset may go down by it. An offset that is not in the log goes by
    /// `auto.offset.reset`, as always.
    ///
    /// It takes topic and number as such, for that is how a [`Record`](crate::Record) and a
    /// [`ConsumeError`](crate::ConsumeError) name their place.
    ///
    /// # Errors
    /// [`SeekError`]: the partition is not this member's, or the position could not be stored. It then goes on as it
    /// was; see [`SeekError::NotStored`].
    pub async fn seek(&self, topic: &str, partition: i32, offset: i64) -> Result<(), SeekError> {
        let partition = TopicPartition::new(topic, partition);
        let seek = Seek { partition: partition.clone(), offset };
        self.system.send(seek).await.unwrap_or(Err(SeekError::NotRunning(partition)))
    }
}
