//! Starting and restarting the children.

use std::sync::Arc;

use actix::prelude::*;
use kafka_troupe_proto::config::OffsetsStorage;

use super::{ConsumerSystem, Shutdown};
use crate::coordinator::{ActorRestarted, CoordinatorParts, RebalanceCoordinator};
use crate::dead_letters::{DeadLetterWriter, WriteSettings, WriterParts};
use crate::fetcher_manager::{Assigned, FetchSettings, FetcherManager, ResetStore, StartFetching};
use crate::group_view::{GroupReader, ReaderParts};
use crate::offset_committer::{ChannelSettings, CommitterParts, OffsetCommitter};
use crate::registry::OwnedPartition;
use crate::stream_queue::{ReadOptions, StreamHandle, StreamParts, StreamQueue};
use crate::supervise::ExitGuard;
use crate::topic_metadata::{Changes, TopicMetadata, TopicMetadataParts};
use crate::zk_session::{SessionConfig, ZkSession};
use kafka_troupe_proto::zk::paths::GroupPaths;

// their names, also in status; `proto::health` knows those that a member needs
pub(super) const SESSION: &str = "zk-session";
pub(super) const METADATA: &str = "topic-metadata";
pub(super) const COORDINATOR: &str = "rebalance-coordinator";
pub(super) const FETCHERS: &str = "fetcher-manager";
pub(super) const COMMITTER: &str = "offset-committer";
pub(super) const LETTERS: &str = "dead-letter-writer";
pub(super) const GROUP_READER: &str = "group-reader";
pub(super) const STREAM: &str = "stream-queue/";

impl ConsumerSystem {
    pub(super) fn start_all(&mut self, ctx: &mut Context<Self>) {
        self.start_session(ctx);
        self.start_committer(ctx);
        self.start_fetchers(ctx);
        self.start_letters(ctx);
        self.start_group_reader(ctx);
        let streams = Arc::clone(&self.parts.streams);
        for stream in streams.all() {
            self.start_stream(stream, ctx);
        }
        self.start_metadata(ctx);
        self.start_coordinator(ctx);
    }

    pub(super) fn restart(&mut self, child: &str, ctx: &mut Context<Self>) {
        match child {
            SESSION => {
                self.start_session(ctx);
                self.parts.coordinator.do_send(ActorRestarted);
            }
            METADATA => self.start_metadata(ctx),
            COORDINATOR => self.start_coordinator(ctx),
            FETCHERS => {
                self.start_fetchers(ctx);
                self.fetch_again(|_| true);
                self.parts.coordinator.do_send(ActorRestarted);
            }
            COMMITTER => {
                self.start_committer(ctx);
                if self.parts.config.offsets_storage == OffsetsStorage::Kafka {
                    // it needs to know the brokers
                    self.parts.coordinator.do_send(ActorRestarted);
                }
            }
            LETTERS => self.start_letters(ctx),
            GROUP_READER => self.start_group_reader(ctx),
            stream => self.restart_stream(stream, ctx),
        }
    }

    #[cfg(feature = "chaos")]
    pub(crate) fn crash(&self, child: &str) {
        use crate::chaos::{Crash, CrashFetchers};
        match child {
            SESSION => self.parts.session.do_send(Crash),
            METADATA => self.parts.metadata.do_send(Crash),
            COORDINATOR => self.parts.coordinator.do_send(Crash),
            FETCHERS => self.parts.fetchers.do_send(Crash),
            COMMITTER => self.parts.committer.do_send(Crash),
            LETTERS => self.parts.letters.do_send(Crash),
            GROUP_READER => self.parts.group_reader.do_send(Crash),
            "consumer-system" => panic!("the consumer system was told to panic"),
            "broker-fetchers" => self.parts.fetchers.do_send(CrashFetchers),
            stream => {
                let its = |queue: &&StreamHandle| stream.strip_prefix(STREAM) == Some(&queue.name);
                self.parts.streams.all().filter(its).for_each(|stream| stream.queue.do_send(Crash));
            }
        }
    }

    /// Its fetchers go with the manager, its handlers with their streams, when they find all gates closed.
    #[cfg(feature = "chaos")]
    pub(crate) fn vanish(&self) {
        use crate::chaos::Vanish;
        let parts = &self.parts;
        parts.registry.all().iter().for_each(|partition| partition.close());
        parts.session.do_send(Vanish);
        parts.metadata.do_send(Vanish);
        parts.coordinator.do_send(Vanish);
        parts.fetchers.do_send(Vanish);
        parts.committer.do_send(Vanish);
        parts.letters.do_send(Vanish);
        parts.group_reader.do_send(Vanish);
        for stream in parts.streams.all() {
            stream.queue.do_send(Vanish);
            stream.queue.clear();
        }
    }

    fn guard(&mut self, child: &str, ctx: &mut Context<Self>) -> ExitGuard {
        let life = self.lives.entry(child.to_owned()).or_default();
        *life += 1;
        ExitGuard::new(child, *life, ctx.address().recipient())
    }

    fn start_session(&mut self, ctx: &mut Context<Self>) {
        let guard = self.guard(SESSION, ctx);
        let parts = &self.parts;
        let config = &parts.config;
        let session = SessionConfig {
            servers: config.zookeeper_connect.clone(),
            session_timeout: config.zookeeper_session_timeout,
            connection_timeout: config.zookeeper_connection_timeout,
            operation_timeout: config.zookeeper_session_timeout,
        };
        let (connector, holder) = (Arc::clone(&parts.ports.connector), Arc::clone(&parts.holder));
        parts.session.set(ZkSession::start(&parts.control, session, connector, holder, Some(guard)));
    }

    /// Without `bootstrap.servers` there is none.
    fn start_metadata(&mut self, ctx: &mut Context<Self>) {
        if self.parts.config.bootstrap_servers.is_empty() {
            return;
        }
        let guard = self.guard(METADATA, ctx);
        let parts = &self.parts;
        let coordinator = parts.coordinator.clone();
        let tell = move |changes| coordinator.do_send::<Changes>(changes);
        let metadata = TopicMetadataParts::new(&parts.config, parts.connect(), tell, guard);
        let start = move |_: &mut Context<TopicMetadata>| TopicMetadata::new(metadata);
        parts.metadata.set(TopicMetadata::start_in_arbiter(&parts.control, start));
    }

    fn start_coordinator(&mut self, ctx: &mut Context<Self>) {
        let guard = self.guard(COORDINATOR, ctx);
        let parts = &self.parts;
        let coordinator = CoordinatorParts {
            config: Arc::clone(&parts.config),
            consumer_id: parts.consumer_id.clone(),
            subscription: parts.subscription.clone(),
            registry: Arc::clone(&parts.registry),
            lease: Arc::clone(&parts.lease),
            streams: Arc::clone(&parts.streams),
            session: parts.session.clone(),
            metadata: parts.metadata.clone(),
            fetchers: parts.fetchers.clone(),
            committer: parts.committer.clone(),
            brokers: Arc::clone(&parts.brokers),
            listener: parts.listener.clone(),
            guard,
        };
        let start = move |_: &mut Context<RebalanceCoordinator>| RebalanceCoordinator::new(coordinator);
        parts.coordinator.set(RebalanceCoordinator::start_in_arbiter(&parts.control, start));
    }

    fn start_committer(&mut self, ctx: &mut Context<Self>) {
        let guard = self.guard(COMMITTER, ctx);
        let parts = &self.parts;
        let mut kafka = ChannelSettings::of(&parts.config);
        if let Some(kafka) = &mut kafka {
            kafka.connect.transport = parts.ports.transport.clone();
        }
        let committer = CommitterParts {
            kafka,
            paths: GroupPaths::new(&parts.config.group_id),
            registry: Arc::clone(&parts.registry),
            session: parts.session.clone(),
            coordinator: parts.coordinator.clone(),
            interval: parts.config.auto_commit_enable.then_some(parts.config.auto_commit_interval),
            automatic: parts.config.auto_commit_enable || parts.commit_after.is_some(),
            inherited: Arc::clone(&parts.inherited),
            guard,
        };
        let start = move |_: &mut Context<OffsetCommitter>| OffsetCommitter::new(committer);
        parts.committer.set(OffsetCommitter::start_in_arbiter(&parts.control, start));
    }

    fn start_fetchers(&mut self, ctx: &mut Context<Self>) {
        let guard = self.guard(FETCHERS, ctx);
        let parts = &self.parts;
        let mut settings = FetchSettings::from(&*parts.config);
        settings.connect = parts.connect();
        settings.metadata = parts.metadata.clone();
        let (store, arbiter) = (ResetStore::slot(parts.committer.clone()), parts.fetching.clone());
        let start =
            move |_: &mut Context<FetcherManager>| FetcherManager::new(settings, store, arbiter, guard);
        parts.fetchers.set(FetcherManager::start_in_arbiter(&parts.control, start));
    }

    /// Where no subscription names a dead-letter topic there is none.
    fn start_letters(&mut self, ctx: &mut Context<Self>) {
        if self.parts.dead_letter_topics.is_empty() {
            return;
        }
        let guard = self.guard(LETTERS, ctx);
        let parts = &self.parts;
        let mut settings = WriteSettings::from(&*parts.config);
        settings.connect = parts.connect();
        let (topics, brokers) = (parts.dead_letter_topics.clone(), Arc::clone(&parts.brokers));
        let writer = WriterParts { topics, settings, brokers, guard };
        let start = move |_: &mut Context<DeadLetterWriter>| DeadLetterWriter::new(writer);
        parts.letters.set(DeadLetterWriter::start_in_arbiter(&parts.fetching, start));
    }

    fn start_group_reader(&mut self, ctx: &mut Context<Self>) {
        let guard = self.guard(GROUP_READER, ctx);
        let parts = &self.parts;
        let reader = ReaderParts {
            config: Arc::clone(&parts.config),
            consumer_id: parts.consumer_id.to_string(),
            session: parts.session.clone(),
            metadata: parts.metadata.clone(),
            brokers: Arc::clone(&parts.brokers),
            connect: parts.connect(),
            guard,
        };
        let start = move |_: &mut Context<GroupReader>| GroupReader::new(reader);
        parts.group_reader.set(GroupReader::start_in_arbiter(&parts.control, start));
    }

    fn start_stream(&mut self, stream: &StreamHandle, ctx: &mut Context<Self>) {
        let guard = self.guard(&format!("{STREAM}{}", stream.name), ctx);
        let parts = StreamParts {
            name: stream.name.clone(),
            credit: Arc::clone(&stream.credit),
            options: ReadOptions::from(&*self.parts.config),
            handler: self.parts.handlers.get(&stream.name).cloned(),
            commit_after: self.parts.commit_after.clone(),
            letters: self.parts.dead_letters(),
            registry: Arc::clone(&self.parts.registry),
            fetchers: self.parts.fetchers.clone(),
            guard,
        };
        let its = self.parts.stream_arbiters.get(&stream.name).filter(|arbiter| arbiter.alive());
        let arbiter = its.unwrap_or(&self.parts.control);
        let start = move |_: &mut Context<StreamQueue>| StreamQueue::new(parts);
        stream.queue.set(StreamQueue::start_in_arbiter(arbiter, start));
    }

    /// The stream's partitions are claimed once more, so that whatever the old life still holds is of no effect.
    fn restart_stream(&mut self, child: &str, ctx: &mut Context<Self>) {
        let streams = Arc::clone(&self.parts.streams);
        let name = child.strip_prefix(STREAM).unwrap_or(child);
        let Some(stream) = streams.all().find(|stream| stream.name == name) else { return };
        if self.has_lost_its_arbiter(name) {
            tracing::error!(stream = name, "the arbiter of its handler has ended");
            return ctx.notify(Shutdown { within: None, why: "the arbiter of a handler has ended" });
        }
        self.start_stream(stream, ctx);
        let is_its = |partition: &OwnedPartition| Arc::ptr_eq(&partition.credit, &stream.credit);
        for partition in self.parts.registry.all().iter().filter(|partition| is_its(partition)) {
            partition.close();
            self.parts.registry.renew(partition, Arc::new(partition.renewed()));
        }
        self.fetch_again(is_its);
    }

    /// Where the stream lived has ended, and with it all that its handler needs: what it owns is for others. One that is
    /// pulled can live elsewhere.
    fn has_lost_its_arbiter(&self, stream: &str) -> bool {
        let has_ended = |arbiter: &ArbiterHandle| !arbiter.alive();
        self.parts.handlers.contains_key(stream)
            && self.parts.stream_arbiters.get(stream).is_some_and(has_ended)
    }

    /// Has the fetchers go on with what is owned.
    pub(super) fn fetch_again(&self, which: impl Fn(&OwnedPartition) -> bool) {
        let assigned = self.parts.registry.all().into_iter().filter(|partition| which(partition)).filter_map(
            |partition| {
                let stream =
                    self.parts.streams.of(&partition.topic_partition.topic, partition.thread.index())?;
                let stream = stream.queue.get()?.recipient();
                Some(Assigned { partition, stream })
            },
        );
        self.parts.fetchers.do_send(StartFetching(assigned.collect()));
    }
}
