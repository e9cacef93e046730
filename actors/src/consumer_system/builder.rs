//! Assembling a member, and the handle by which an application holds it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fmt, io};

use actix::dev::ToEnvelope;
use actix::prelude::*;
use kafka_troupe_proto::config::ConsumerConfig;
use kafka_troupe_proto::zk::ConsumerId;
use kafka_troupe_proto::zk::topic_filter::TopicFilter;

use super::added::Added;
use super::life::{Alive, Guard, Life, current_system};
use super::ports::Ports;
use super::subscribed::{self, Subscribed};
use super::{ConsumerHandle, ConsumerSystem, Offsets, Parts, Shutdown, Started};
use crate::lease::Lease;
use crate::rebalance_listener::{
    BeforeReleasingPartitions, BeforeStartingPartitions, OwnershipLost, RebalanceListener,
};
use crate::record::Record;
use crate::registry::TopicRegistry;
use crate::stream_queue::{CommitAfter, Credit, HandlerFactory, Streams};
use crate::subscription::Subscription;
use crate::supervise::Slot;
use crate::zk_session::{ClientHolder, ZkError, port::ZkConnector};

/// Why a member could not start. Nothing of it is left running.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// ZooKeeper cannot be used: names the connect string, or the path.
    #[error(transparent)]
    ZooKeeper(#[from] ZkError),
    /// The member could not register: names the path.
    #[error("could not join the group: {0}")]
    Group(String),
    /// The subscriptions make no sense.
    #[error("{0}")]
    Subscription(String),
    /// No actix `System` runs on this thread.
    #[error(
        "no actix System runs on this thread, and handlers live in one: start the consumer system under \
         #[actix::main], or inside actix::System::new().block_on(..)"
    )]
    NoSystem,
    /// The operating system gives no thread.
    #[error("no thread for the consumer system: {0}")]
    Thread(#[source] io::Error),
}

/// Assembles a [`ConsumerSystem`].
///
/// One registration in ZooKeeper holds either topics by name or one filter, so a filter excludes every other
/// subscription here, as it did in the old consumer; [`ConsumerHandle::subscribe`] adds more.
pub struct Builder {
    config: ConsumerConfig,
    subscribed: Vec<Subscribed>,
    ports: Ports,
    listener: Option<RebalanceListener>,
    listener_start_limit: Duration,
    offsets: Offsets,
    /// In records; 0: not by their number.
    commit_after: u32,
    /// The running system that this is added to.
    to: Option<Addr<ConsumerSystem>>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("subscribed", &self.subscribed).finish_non_exhaustive()
    }
}

impl Builder {
    pub(super) fn new(config: ConsumerConfig) -> Self {
        Self {
            config,
            subscribed: Vec::new(),
            ports: Ports::default(),
            listener: None,
            listener_start_limit: RebalanceListener::START_LIMIT,
            offsets: Offsets::default(),
            commit_after: 0,
            to: None,
        }
    }

    pub(super) fn add_to(mut self, system: Addr<ConsumerSystem>, ports: Ports) -> Self {
        (self.to, self.ports) = (Some(system), ports);
        self
    }

    /// Adds a subscription: what to read, decoded by what, handled by whom, one by one or in batches, and what becomes of
    /// what fails.
    pub fn subscription(mut self, subscription: Subscribed) -> Self {
        self.subscribed.push(subscription);
        self
    }

    /// Subscribes handler actors to a topic: `streams` of them, each made by `make` on a thread of its own. Each gets
    /// the records of its partitions one by one, in order per partition; a record is acknowledged when its handler is
    /// done. One that failed is handled again before the next, 10 times; then its partition stops, unless a
    /// [`Subscription`] with another [failure policy](Subscription::on_failure) says otherwise. A handler that panics
    /// or stops is made anew.
    pub fn handle<H>(
        self,
        topic: impl Into<String>,
        streams: u32,
        make: impl Fn() -> H + Send + Sync + 'static,
    ) -> Self
    where
        H: Actor<Context = Context<H>> + Handler<Record>,
        <H as Handler<Record>>::Result: 'static,
    {
        self.subscription(Subscription::topic(topic).streams(streams).handle(make))
    }

    /// Subscribes handler actors to every topic that a filter allows (`createMessageStreamsByFilter`), those that are
    /// created later too: `streams` of them in all, each with partitions of every topic. A topic that appears while
    /// the member runs is read from its beginning. Kafka's own topics are left out, unless `exclude.internal.topics`
    /// is false.
    pub fn handle_matching<H>(
        self,
        filter: TopicFilter,
        streams: u32,
        make: impl Fn() -> H + Send + Sync + 'static,
    ) -> Self
    where
        H: Actor<Context = Context<H>> + Handler<Record>,
        <H as Handler<Record>>::Result: 'static,
    {
        self.subscription(Subscription::matching(filter).streams(streams).handle(make))
    }

    /// Subscribes streams to be pulled: take them with [`ConsumerHandle::streams`].
    pub fn pull(self, topic: impl Into<String>, streams: u32) -> Self {
        self.subscription(Subscription::topic(topic).streams(streams).pull())
    }

    /// Subscribes streams to be pulled to every topic that a filter allows, as
    /// [`handle_matching`](Self::handle_matching) does: take them with [`ConsumerHandle::matching_streams`].
    pub fn pull_matching(self, filter: TopicFilter, streams: u32) -> Self {
        self.subscription(Subscription::matching(filter).streams(streams).pull())
    }

    /// An actor that is asked before partitions are released and before they start, and told when they are lost
    /// (`setConsumerRebalanceListener`): see [`rebalance_listener`](crate::rebalance_listener). None by default; a
    /// member that is [added](ConsumerHandle::subscribe) has its own.
    pub fn rebalance_listener<A>(mut self, listener: Addr<A>) -> Self
    where
        A: Handler<BeforeReleasingPartitions> + Handler<BeforeStartingPartitions> + Handler<OwnershipLost>,
        A::Context: ToEnvelope<A, BeforeReleasingPartitions>
            + ToEnvelope<A, BeforeStartingPartitions>
            + ToEnvelope<A, OwnershipLost>,
    {
        self.listener = Some(RebalanceListener::new(&listener));
        self
    }

    /// How long the start of partitions waits for the rebalance listener (default 30 s); then they start anyway, with a
    /// warning. Long: more time to load state. Short: a listener that hangs keeps partitions that nobody else may read
    /// for less time. (The time for a release is `troupe.drain.timeout.ms`, because others wait for it.)
    pub fn rebalance_listener_timeout(mut self, before_start: Duration) -> Self {
        self.listener_start_limit = before_start;
        self
    }

    /// Commits offsets, for handlers and other actors: it can be given to them now, and commits once the member runs.
    ///
    /// Of an [added](ConsumerHandle::subscribe) member, it commits that member's partitions; that of the first commits
    /// those of all.
    pub fn offsets(&self) -> Offsets {
        self.offsets.clone()
    }

    /// Has what is acknowledged committed at the latest when so many `records` were acknowledged, on all streams of the
    /// member together, since it was last committed because of this; up to a sixteenth earlier, as each stream counts
    /// by itself for a while. 0, the default, is never. One commit at a time: what is acknowledged while one is under
    /// way is for the next.
    ///
    /// It comes beside `auto.commit.interval.ms`, or, with `auto.commit.enable=false`, in its place: whatever else
    /// automatic commit does, such as the commit of partitions that are given up, is done then as well.
    ///
    /// After a crash, these are handled again: at most `records`, what was acknowledged while commits were under way,
    /// and the record that each stream had in hand; `records` more for each commit before it that failed.
    pub fn commit_after(mut self, records: u32) -> Self {
        self.commit_after = records;
        self
    }

    /// Another ZooKeeper client than the default one.
    pub fn connector(mut self, connector: Arc<dyn ZkConnector>) -> Self {
        self.ports.connector = connector;
        self
    }

    /// Brokers in memory, which know the member by its `client.id`, and all actors on the thread that starts the
    /// member: one that runs a paused clock.
    #[cfg(feature = "testkit")]
    pub fn in_memory(mut self, brokers: crate::testkit::MemoryBrokers) -> Self {
        let client = self.config.client_id.clone();
        self.ports.transport = crate::broker_connection::Transport::Memory { brokers, client };
        self.ports.threads = super::ports::Threads::Here;
        self
    }

    /// Starts the member and waits until it is registered in its group. Must be called inside an actix `System`, in
    /// which handlers live, each on a thread of its own.
    ///
    /// When that `System` ends first, whether it is stopped or its main future returns, the member leaves its group as
    /// by [`ConsumerHandle::shutdown`], and the end of the `System` waits for it, at most
    /// `troupe.shutdown.timeout.ms`. (Not so when the process exits without it, by `std::process::exit`, or by a signal
    /// that nobody handles: see [`ConsumerHandle::run_until_terminated`].)
    ///
    /// A start that is dropped before it is done, as by a time-out, leaves nothing running either.
    ///
    /// # Errors
    /// [`StartError`]: no actix `System`, no ensemble at the connect string, a missing chroot, a consumer id in use, a
    /// subscription that makes no sense. Nothing is left running then. A topic or broker that is missing is no error:
    /// it may come, and a warning names it.
    pub async fn start(self) -> Result<ConsumerHandle, StartError> {
        self.check()?;
        let application = current_system()?;
        let life = Life::new();
        let laid_out =
            self.lay_out(&life).and_then(|streams| Ok((streams, self.ports.threads.start(&life)?)));
        let ((streams, handlers, stream_arbiters), places) = laid_out.map_err(|error| {
            life.end();
            StartError::Thread(error)
        })?;
        let commit_after = self.counting().map(Arc::new);
        let lease = Arc::new(Lease::new());
        let config = Arc::new(self.config);
        let registry = Arc::new(TopicRegistry::default());
        let consumer_id = consumer_id(&config);
        #[cfg(feature = "testkit")]
        self.ports.introduce(&config.group_id, &registry);
        let parts = Parts {
            consumer_id: consumer_id.clone(),
            config: Arc::clone(&config),
            subscription: subscribed::registered(&self.subscribed),
            registry: Arc::clone(&registry),
            holder: ClientHolder::new(Arc::clone(&lease)),
            lease,
            streams: Arc::clone(&streams),
            handlers,
            stream_arbiters,
            listener: self.listener.map(|listener| Arc::new(listener.waiting_for(self.listener_start_limit))),
            offsets: self.offsets.clone(),
            commit_after: commit_after.clone(),
            control: places.control.clone(),
            fetching: places.fetching,
            ports: self.ports.clone(),
            session: Slot::default(),
            metadata: Slot::default(),
            coordinator: Slot::default(),
            fetchers: Slot::default(),
            committer: Slot::default(),
            group_reader: Slot::default(),
            letters: Slot::default(),
            dead_letter_topics: subscribed::dead_letter_topics(&self.subscribed),
            brokers: Arc::default(),
            inherited: Arc::default(),
        };
        let (control, ended) = places.thread.unzip();
        let alive = Alive::new(Arc::clone(&life), Arc::clone(&streams), control);
        let system = ConsumerSystem::start_in_arbiter(&places.control, |_| ConsumerSystem::new(parts, alive));
        if let Some(alive) = ended {
            let (system, life, limit) = (system.clone(), Arc::clone(&life), config.shutdown_timeout);
            Guard { system, life, alive, limit }.watch(&application);
        }
        let pulled = self.subscribed.into_iter().filter(|it| it.handler.is_none()).collect();
        let handle = ConsumerHandle {
            system,
            consumer_id,
            streams,
            pulled,
            life,
            config,
            ports: self.ports,
            offsets: self.offsets,
            commit_after,
            registry,
            added: Arc::default(),
        };
        let mut given_up = GivenUp(Some(handle.system.clone()));
        match join(&handle, self.to).await {
            Ok(()) => {
                given_up.0 = None;
                Ok(handle)
            }
            Err(error) => {
                handle.shutdown().await;
                Err(error)
            }
        }
    }

    fn check(&self) -> Result<(), StartError> {
        subscribed::check(&self.subscribed).map_err(StartError::Subscription)
    }

    fn counting(&self) -> Option<CommitAfter> {
        let streams = self.subscribed.iter().map(|it| it.streams).sum();
        (self.commit_after > 0).then(|| CommitAfter::new(self.commit_after, streams, self.offsets.system()))
    }

    /// Thread = queue = stream; a stream with a handler has a thread of its own.
    fn lay_out(&self, life: &Life) -> io::Result<LaidOut> {
        let (mut streams, mut handlers, mut places) = (Streams::default(), BTreeMap::new(), BTreeMap::new());
        for Subscribed { topics, streams: count, handler } in &self.subscribed {
            for index in 0..*count {
                let chunks = self.config.queued_max_message_chunks as usize;
                let credit = Credit::new(chunks, self.config.queued_max_bytes as usize);
                let name = streams.add(topics.name(), index, credit);
                let place = match handler {
                    Some(handler) => {
                        handlers.insert(name.clone(), handler.clone());
                        Some(self.ports.threads.of_stream(&name, life)?)
                    }
                    None => Arbiter::try_current(),
                };
                places.extend(place.map(|place| (name, place)));
            }
        }
        Ok((Arc::new(streams), handlers, places))
    }
}

/// Streams; the handlers and the arbiters of those that have them, by name.
type LaidOut = (Arc<Streams>, BTreeMap<String, HandlerFactory>, BTreeMap<String, ArbiterHandle>);

/// Dropped with a start that nobody waits for any more, it has the member leave: nobody holds it.
struct GivenUp(Option<Addr<ConsumerSystem>>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        if let Some(system) = &self.0 {
            system.do_send(Shutdown { within: None, why: "its start was given up, or failed" });
        }
    }
}

/// Registers; a system that is running takes the new one under its wing before.
async fn join(handle: &ConsumerHandle, to: Option<Addr<ConsumerSystem>>) -> Result<(), StartError> {
    let ended = |_| StartError::Group("the consumer system has shut down".to_owned());
    if let Some(system) = to {
        system.send(Added(handle.clone())).await.map_err(ended)??;
    }
    handle.address().send(Started).await.map_err(ended)?
}

/// `<group>_<host>-<millis>-<hex8>`, or `<group>_<consumer.id>`.
fn consumer_id(config: &ConsumerConfig) -> ConsumerId {
    if let Some(id) = &config.consumer_id {
        return ConsumerId::configured(&config.group_id, id);
    }
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    // the machine's clock, whatever tests hold: no two members have the same id
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    // the hasher's keys are the operating system's random numbers
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), millis);
    ConsumerId::generate(&config.group_id, &host, u64::try_from(millis).unwrap_or_default(), random)
}
