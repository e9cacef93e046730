//! Brokers in memory: logs, leaders, and who is up.
//!
//! They answer what a consumer asks (ApiVersions, Metadata, ListOffsets, Fetch, for stored offsets FindCoordinator,
//! OffsetCommit, OffsetFetch, and for dead letters Produce), in the encoding of the library `kafka-protocol`, over byte streams of
//! this process. With [`register`](MemoryBrokers::register) they show themselves
//! and their topics in a ZooKeeper in memory, as real ones do.

mod answers;
mod connection;
mod coordinator;
mod epochs;
mod generation;
mod log;
mod produce;
mod sessions;
mod stored;
mod znodes;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::zk::paths;
use tokio::io::DuplexStream;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::{MemoryZooKeeper, Pace, pause_until};
use coordinator::Coordinator;
pub use coordinator::{OffsetStored, OffsetsFault};
pub use generation::Generation;
use log::Log;
pub use log::Spoilt;
use sessions::Sessions;
pub use stored::StoredRecord;
use stored::{Members, Refused};

/// Bytes under way between a client and a broker before its writer waits.
const WINDOW: usize = 64 << 10;
/// Every broker's port; their host names differ.
const PORT: u16 = 9092;

/// A cluster; clones are the same one.
#[derive(Clone, Default)]
pub struct MemoryBrokers(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Wakes fetches that wait for data.
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// Whether each is up.
    brokers: BTreeMap<i32, bool>,
    topics: BTreeMap<Arc<str>, Vec<Partition>>,
    /// Which topic each is; no two have the same.
    topic_ids: BTreeMap<Arc<str>, u64>,
    topics_made: u64,
    /// A broker, and a topic that it has not heard of.
    unheard: Option<(i32, Arc<str>)>,
    /// It has not heard of any broker.
    lonely: Option<i32>,
    zookeeper: Option<MemoryZooKeeper>,
    connections: Vec<Connection>,
    /// How often somebody dialled, also in vain.
    dials: u64,
    pace: Option<Pace>,
    /// Of brokers that are not of the latest.
    generations: BTreeMap<i32, Generation>,
    watch: Option<RequestWatch>,
    sessions: Sessions,
    coordinator: Coordinator,
    refused: Refused,
    members: Members,
    /// Topics to which nothing is appended, and what is answered.
    not_written: produce::NotWritten,
    /// By Produce requests.
    acks_seen: BTreeSet<i16>,
    produce_observer: Option<produce::Observer>,
    throttle_ms: i32,
    /// Fetches are answered at once.
    is_hasty: bool,
}

/// A request that reached a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestSeen {
    /// Which broker.
    pub broker: i32,
    /// The API's number.
    pub api: i16,
    /// Its version.
    pub version: i16,
    /// Of the whole, without the size.
    pub bytes: usize,
}

/// Told of each request before it is answered.
pub type RequestWatch = Arc<dyn Fn(RequestSeen) + Send + Sync>;

#[derive(Default)]
struct Partition {
    leader: Option<i32>,
    epoch: Option<i32>,
    log: Log,
    /// How often it was fetched from.
    fetches: u64,
}

struct Connection {
    broker: i32,
    client: String,
    task: AbortHandle,
}

impl MemoryBrokers {
    /// A cluster of brokers `0..count`, all up.
    pub fn new(count: i32) -> Self {
        let brokers = Self::default();
        let mut state = brokers.state();
        state.brokers = (0..count).map(|id| (id, true)).collect();
        let first = state.up().next();
        state.coordinator.elect(first);
        drop(state);
        brokers
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows brokers and topics in `zookeeper`, now and when they change.
    pub fn register(&self, zookeeper: &MemoryZooKeeper) {
        self.state().zookeeper = Some(zookeeper.clone());
        self.show();
    }

    /// Has each dial and each answer take its time.
    pub fn set_pace(&self, pace: Pace) {
        self.state().pace = Some(pace);
    }

    /// Has each request told.
    pub fn set_watch(&self, watch: RequestWatch) {
        self.state().watch = Some(watch);
    }

    /// Makes a broker one of another generation, which ends its connections, as an upgrade in place does.
    pub fn set_generation(&self, broker: i32, generation: Generation) {
        let mut state = self.state();
        state.generations.insert(broker, generation);
        state.sessions.forget(broker);
        state.cut(|connection| connection.broker == broker);
    }

    /// Has each answer say that the client is throttled, which is then up to the client.
    pub fn set_throttle(&self, time: Duration) {
        self.state().throttle_ms = i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
    }

    /// Has fetches answered at once, whatever they ask for.
    pub fn set_hasty(&self, is_hasty: bool) {
        self.state().is_hasty = is_hasty;
    }

    /// Has a broker lose its fetch sessions.
    pub fn forget_sessions(&self, broker: i32) {
        self.state().sessions.forget(broker);
    }

    /// How often a partition was fetched from.
    pub fn fetches(&self, partition: &TopicPartition) -> u64 {
        self.with(partition, |it| it.fetches).unwrap_or_default()
    }

    /// Tells of a request; says what the broker is that got it.
    fn saw(&self, seen: RequestSeen) -> Generation {
        let state = self.state();
        let (watch, generation) = (state.watch.clone(), state.generations.get(&seen.broker).copied());
        drop(state);
        if let Some(watch) = watch {
            watch(seen);
        }
        generation.unwrap_or_default()
    }

    /// Creates a topic, or adds partitions until it has so many; brokers lead them in turn.
    pub fn create_topic(&self, name: &str, partitions: usize) {
        let mut state = self.state();
        let up: Vec<_> = state.up().collect();
        if !state.topics.contains_key(name) {
            state.topics_made += 1;
            let id = state.topics_made;
            state.topic_ids.insert(name.into(), id);
        }
        let topic = state.topics.entry(name.into()).or_default();
        while topic.len() < partitions {
            let leader = up.get(topic.len() % up.len().max(1)).copied();
            topic.push(Partition { leader, ..Partition::default() });
        }
        drop(state);
        self.show();
    }

    /// Deletes a topic with its records; one that is created by this name afterwards is another.
    pub fn delete_topic(&self, name: &str) {
        let mut state = self.state();
        state.topics.remove(name);
        state.topic_ids.remove(name);
        let State { coordinator, generations, .. } = &mut *state;
        coordinator.forget_topic(name, generations);
        let zookeeper = state.zookeeper.clone();
        drop(state);
        if let Some(zookeeper) = zookeeper {
            zookeeper.remove(&paths::topic(name));
        }
        self.0.changed.notify_waiters();
    }

    /// Until the next call a broker has not heard of a topic that the others know.
    pub fn keep_from(&self, broker: i32, topic: &str) {
        self.state().unheard = Some((broker, topic.into()));
    }

    /// Until the next call a broker has not heard of any broker, as one that has just started.
    pub fn keep_brokers_from(&self, broker: Option<i32>) {
        self.state().lonely = broker;
    }

    /// Topics and how many partitions each has.
    pub fn topics(&self) -> BTreeMap<Arc<str>, usize> {
        self.state().topics.iter().map(|(name, partitions)| (Arc::clone(name), partitions.len())).collect()
    }

    /// Appends a batch to a partition that exists; gives the offset after it.
    pub fn append(&self, partition: &TopicPartition, values: &[&str]) -> i64 {
        let records: Vec<_> = values.iter().map(|value| (None, *value)).collect();
        self.append_keyed(partition, &records)
    }

    /// The same, with the records' keys.
    pub fn append_keyed(&self, partition: &TopicPartition, records: &[(Option<&str>, &str)]) -> i64 {
        let end = self.with(partition, |it| it.log.append_keyed(records, it.epoch)).unwrap_or_default();
        self.0.changed.notify_waiters();
        end
    }

    /// Deletes the records before `offset`, as far as they are whole batches.
    pub fn delete_before(&self, partition: &TopicPartition, offset: i64) {
        self.with(partition, |it| it.log.delete_before(offset));
    }

    /// Flips a bit in the last byte of the batch that holds `offset`; a second time, the batch is whole again.
    pub fn damage(&self, partition: &TopicPartition, offset: i64) {
        self.with(partition, |it| it.log.damage(offset));
    }

    /// Spoils the head of the batch that holds `offset`, for good.
    pub fn spoil(&self, partition: &TopicPartition, offset: i64, spoilt: Spoilt) {
        self.with(partition, |it| it.log.spoil(offset, spoilt));
    }

    /// First and next offset.
    pub fn range(&self, partition: &TopicPartition) -> Option<(i64, i64)> {
        self.with(partition, |it| (it.log.start(), it.log.end()))
    }

    /// Makes a broker the leader, or nobody.
    pub fn set_leader(&self, partition: &TopicPartition, leader: Option<i32>) {
        self.with(partition, |it| it.leader = leader);
        self.0.changed.notify_waiters();
    }

    /// Gives each partition without a leader to a broker that is up, and the groups a coordinator.
    pub fn elect(&self) {
        let mut state = self.state();
        let up: Vec<_> = state.up().collect();
        let leaderless = state.topics.values_mut().flat_map(|topic| topic.iter_mut().enumerate());
        for (index, partition) in leaderless.filter(|(_, it)| it.leader.is_none()) {
            partition.leader = up.get(index % up.len().max(1)).copied();
        }
        state.coordinator.elect(up.first().copied());
    }

    /// Brokers that are up.
    pub fn up(&self) -> Vec<i32> {
        self.state().up().collect()
    }

    /// Takes a broker down: its connections break, nobody leads its partitions, nor coordinates groups in its place,
    /// and it is dialled in vain.
    pub fn stop(&self, broker: i32) {
        let mut state = self.state();
        state.brokers.insert(broker, false);
        state.cut(|connection| connection.broker == broker);
        state.sessions.forget(broker);
        state.coordinator.lose(broker);
        let partitions = state.topics.values_mut().flatten();
        partitions.filter(|it| it.leader == Some(broker)).for_each(|it| it.leader = None);
        drop(state);
        self.show();
    }

    /// Brings it up (again).
    pub fn start(&self, broker: i32) {
        self.state().brokers.insert(broker, true);
        self.show();
    }

    /// Breaks the connections of a client.
    pub fn cut(&self, client: &str) {
        self.state().cut(|connection| connection.client == client);
    }

    /// How often brokers were dialled, also in vain.
    pub fn dials(&self) -> u64 {
        self.state().dials
    }

    fn with<T>(&self, partition: &TopicPartition, what: impl FnOnce(&mut Partition) -> T) -> Option<T> {
        let mut state = self.state();
        let topic = state.topics.get_mut(&partition.topic)?;
        topic.get_mut(usize::try_from(partition.partition).ok()?).map(what)
    }

    /// Dials a broker.
    pub(crate) async fn dial(&self, host: &str, port: u16, client: &str) -> io::Result<DuplexStream> {
        let arrival = self.state().arrival();
        pause_until(arrival).await;
        let mut state = self.state();
        state.dials += 1;
        let broker = state.up().find(|id| host == host_of(*id) && port == PORT);
        let broker = broker.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionRefused))?;
        let (ours, theirs) = tokio::io::duplex(WINDOW);
        let task = tokio::spawn(connection::serve(self.clone(), broker, theirs)).abort_handle();
        state.connections.retain(|connection| !connection.task.is_finished());
        state.connections.push(Connection { broker, client: client.to_owned(), task });
        Ok(ours)
    }
}

impl State {
    fn up(&self) -> impl Iterator<Item = i32> {
        self.brokers.iter().filter(|(_, up)| **up).map(|(id, _)| *id)
    }

    /// When what is sent now is there.
    fn arrival(&self) -> Instant {
        Instant::now() + self.pace.as_ref().map_or(Duration::ZERO, |pace| pace())
    }

    fn cut(&mut self, which: impl Fn(&Connection) -> bool) {
        for connection in self.connections.extract_if(.., |connection| which(connection)) {
            connection.task.abort();
        }
    }
}

fn host_of(broker: i32) -> String {
    format!("broker-{broker}")
}

impl fmt::Debug for MemoryBrokers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBrokers").field("up", &self.up()).finish_non_exhaustive()
    }
}
