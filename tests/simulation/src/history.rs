//! What happened to each partition, and the rules that it is held against while it happens.
//!
//! Of stored offsets, as each store's readers see them:
//!
//! - ZooKeeper's never goes back.
//! - Kafka's is unfenced. What is written there in order does not go back either. It may go back to what was sent by
//!   who has given up the commit since, because its answer did not come in time, and is carried out late; or by who does
//!   not know yet that it has lost the partition, because its owner node was deleted by hand. So the *floor*, the least
//!   that a reader may go on from, is the last one written in order, or the least of those others since.
//! - Nothing is handed over again below the floor of the store that its owner reads; of both stores, the larger.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kafka_troupe_actors::testkit::{MemoryBrokers, MemoryZooKeeper, OffsetStored, Znode};
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::InFlight;
use kafka_troupe_proto::zk::paths::GroupPaths;

use tokio::time::Instant;

use crate::offsets_faults::LATEST;
use crate::storage::Storage;
use crate::trace::Trace;

/// The group of every run.
pub const GROUP: &str = "sim";

/// How often things happened, so that a run that shows nothing is seen as such.
pub type Counts = BTreeMap<&'static str, u64>;

/// What happened in a run; clones are the same.
#[derive(Clone)]
pub struct History {
    inner: Arc<Mutex<Inner>>,
    pub trace: Trace,
    zookeeper: MemoryZooKeeper,
    brokers: MemoryBrokers,
    paths: GroupPaths,
    /// Nothing is known where a partition begins: its first position says so.
    largest: bool,
}

#[derive(Default)]
struct Inner {
    partitions: BTreeMap<TopicPartition, Past>,
    counts: Counts,
    violation: Option<String>,
}

#[derive(Default)]
struct Past {
    /// All before this is handled.
    handled: i64,
    /// Handled beyond it.
    ahead: BTreeSet<i64>,
    committed: i64,
    /// The least that whoever reads Kafka alone may go on from.
    kafka_floor: i64,
    /// Who got a record of it last.
    last: String,
    /// When it was first committed or handed over.
    begun: Option<Instant>,
    /// Somebody deleted its owner node, whosever it was: until then its owner may not know.
    robbed_until: Option<Instant>,
    /// What was ever handed over, of what is not handled.
    given: BTreeSet<i64>,
    /// Of what was produced.
    keys: BTreeMap<i64, Option<&'static str>>,
}

/// Who is handed a record.
#[derive(Clone, Copy)]
pub struct Taker<'a> {
    pub member: &'a str,
    pub process: &'a str,
    pub storage: Storage,
    pub in_flight: InFlight,
}

impl Past {
    fn is_done(&self, offset: i64) -> bool {
        offset < self.handled || self.ahead.contains(&offset)
    }

    /// What may not be handed over before these, all of which are before it: without a window any that is not done,
    /// with one any that was not handed over, by key any of its key that is not done.
    fn first_before(&self, offset: i64, from: i64, in_flight: InFlight) -> Option<i64> {
        let key = self.keys.get(&offset).copied().flatten();
        let is_early = |at: &i64| match () {
            () if in_flight.is_one() => !self.is_done(*at),
            () if in_flight.is_by_key() => {
                key.is_some() && self.keys.get(at).copied().flatten() == key && !self.is_done(*at)
            }
            () => !self.is_done(*at) && !self.given.contains(at),
        };
        (from..offset).find(is_early)
    }

    /// The least that whoever reads these stores may go on from.
    fn floor(&self, storage: Storage) -> i64 {
        match storage {
            Storage::ZooKeeper => self.committed,
            Storage::Both => self.committed.max(self.kafka_floor),
            Storage::Kafka => self.kafka_floor,
        }
    }

    fn begin(&mut self) {
        self.begun.get_or_insert_with(Instant::now);
    }

    /// Whether a position that is stored now may stand for the end of the log, where nothing was known: also one that
    /// was sent before anybody else began, and is carried out late, for Kafka's store is unfenced.
    fn is_first_position(&self, late: bool) -> bool {
        self.begun.is_none_or(|begun| late && begun.elapsed() <= LATEST)
    }

    fn is_robbed(&self) -> bool {
        self.robbed_until.is_some_and(|until| Instant::now() < until)
    }

    fn handled(&mut self, offset: i64, log_start: i64) {
        self.ahead.insert(offset);
        self.handled = self.handled.max(log_start);
        self.ahead.retain(|ahead| *ahead >= self.handled);
        while self.ahead.remove(&self.handled) {
            self.handled += 1;
        }
        self.given = self.given.split_off(&self.handled);
        self.keys = self.keys.split_off(&self.handled);
    }
}

impl History {
    /// An empty one that watches the offset nodes.
    pub fn new(trace: Trace, zookeeper: &MemoryZooKeeper, brokers: &MemoryBrokers, largest: bool) -> Self {
        let history = Self {
            inner: Arc::default(),
            trace,
            zookeeper: zookeeper.clone(),
            brokers: brokers.clone(),
            paths: GroupPaths::new(GROUP),
            largest,
        };
        let observer = history.clone();
        zookeeper.observe(move |path, node| observer.changed(path, node));
        let observer = history.clone();
        brokers.observe_offsets(move |stored| observer.stored_in_kafka(stored));
        history
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts something.
    pub fn count(&self, what: &'static str) {
        self.add(what, 1);
    }

    /// Counts it so many times.
    pub fn add(&self, what: &'static str, times: u64) {
        *self.inner().counts.entry(what).or_default() += times;
    }

    pub fn counts(&self) -> Counts {
        self.inner().counts.clone()
    }

    pub fn counted(&self, what: &str) -> u64 {
        self.inner().counts.get(what).copied().unwrap_or_default()
    }

    /// A rule is broken.
    pub fn violated(&self, what: String) {
        self.trace.tell(format_args!("VIOLATION {what}"));
        self.inner().violation.get_or_insert(what);
    }

    /// The first rule that was broken.
    pub fn violation(&self) -> Option<String> {
        self.inner().violation.clone()
    }

    /// The first offset that is not handled.
    pub fn handled(&self, partition: &TopicPartition) -> i64 {
        let start = self.log_start(partition);
        self.inner().partitions.get(partition).map_or(0, |past| past.handled).max(start)
    }

    pub fn committed(&self, partition: &TopicPartition) -> i64 {
        self.inner().partitions.get(partition).map_or(0, |past| past.committed)
    }

    /// What the offset node holds.
    pub fn in_zookeeper(&self, partition: &TopicPartition) -> Option<i64> {
        let node = self.zookeeper.node(&self.paths.offset(partition))?;
        String::from_utf8_lossy(&node.data).parse().ok()
    }

    fn log_start(&self, partition: &TopicPartition) -> i64 {
        self.brokers.range(partition).map_or(0, |(start, _)| start)
    }

    /// A foreign tool or an old consumer deletes the owner node, whosever it is.
    pub fn rob(&self, partition: &TopicPartition, notice: Duration) {
        let until = Some(Instant::now() + notice);
        self.inner().partitions.entry(partition.clone()).or_default().robbed_until = until;
        self.zookeeper.remove(&self.paths.owner(partition));
    }

    /// Whether a process owns a partition: the node names it and is of a session of its own.
    pub fn owns(&self, member: &str, process: &str, partition: &TopicPartition) -> bool {
        self.zookeeper.node(&self.paths.owner(partition)).is_some_and(|node| {
            String::from_utf8_lossy(&node.data).starts_with(&format!("{GROUP}_{member}-"))
                && self.zookeeper.sessions_of(process).contains(&node.stat.ephemeral_owner)
        })
    }

    /// A record is handed to a handler of `member`. INV-1: its node is there and the process's. INV-6: nothing before it
    /// was passed over.
    pub fn handed_over(&self, taker: Taker<'_>, partition: &TopicPartition, offset: i64) {
        let Taker { member, process, storage, in_flight } = taker;
        self.trace.tell(format_args!("{member} gets {partition}@{offset}"));
        let past = self.inner().partitions.get(partition).map(|past| (past.is_robbed(), past.floor(storage)));
        let (is_robbed, floor) = past.unwrap_or_default();
        if !is_robbed && !self.owns(member, process, partition) {
            let owner = self.zookeeper.node(&self.paths.owner(partition));
            let owner = owner.map(|node| String::from_utf8_lossy(&node.data).into_owned());
            self.violated(format!("INV-1: {member} got {partition}@{offset}, whose owner is {owner:?}"));
        }
        let handled = self.handled(partition);
        let early = |past: &Past| past.first_before(offset, handled, in_flight);
        let early = self.inner().partitions.get(partition).map_or(Some(handled), early);
        if let Some(early) = early.filter(|early| *early < offset) {
            self.violated(format!(
                "INV-6: {member} got {partition}@{offset} before {early}, with {in_flight:?}; {handled} were handled"
            ));
        }
        if offset < floor && !is_robbed {
            self.violated(format!("{member} got {partition}@{offset} again, although {floor} was stored"));
        }
        let mut inner = self.inner();
        let past = inner.partitions.entry(partition.clone()).or_default();
        past.begin();
        past.given.insert(offset);
        let again = offset < past.handled || past.ahead.contains(&offset);
        let moved = !past.last.is_empty() && past.last != member;
        past.last = member.to_owned();
        for (what, happened) in [("records", true), ("again", again), ("moved", moved)] {
            *inner.counts.entry(what).or_default() += u64::from(happened);
        }
    }

    /// Records with these keys were produced, the last of them before `end`.
    pub fn produced(
        &self,
        partition: &TopicPartition,
        end: i64,
        keys: impl ExactSizeIterator<Item = Option<&'static str>>,
    ) {
        let first = end - keys.len() as i64;
        let mut inner = self.inner();
        let past = inner.partitions.entry(partition.clone()).or_default();
        past.keys.extend((first..).zip(keys));
    }

    /// Its handler is done with it.
    pub fn done(&self, member: &str, partition: &TopicPartition, offset: i64) {
        self.trace.tell(format_args!("{member} did {partition}@{offset}"));
        self.finished(partition, offset);
    }

    /// It was given up, and stands among the dead letters: as good as handled.
    pub fn buried(&self, partition: &TopicPartition, offset: i64) {
        self.trace.tell(format_args!("{partition}@{offset} stands among the dead letters"));
        let inner = self.inner();
        let past = inner.partitions.get(partition);
        let was_given = past.is_some_and(|past| past.given.contains(&offset) || past.is_done(offset));
        drop(inner);
        if !was_given {
            self.violated(format!("a dead letter of {partition}@{offset}, which nobody was handed"));
        }
        self.count("dead letters");
        self.finished(partition, offset);
    }

    fn finished(&self, partition: &TopicPartition, offset: i64) {
        let start = self.log_start(partition);
        self.inner().partitions.entry(partition.clone()).or_default().handled(offset, start);
    }

    /// A node changed. INV-4: an offset that is committed is handled, and never goes down.
    fn changed(&self, path: &str, node: Option<&Znode>) {
        let data = node.map(|node| String::from_utf8_lossy(&node.data).into_owned());
        let session = node.map_or(0, |node| node.stat.ephemeral_owner);
        if let Some(partition) = below(path, &self.paths.offsets()) {
            let offset = data.and_then(|text| text.parse().ok()).unwrap_or(-1);
            self.stored(&partition, offset);
        } else if let Some(partition) = below(path, &self.paths.owners()) {
            match data {
                Some(owner) => {
                    self.trace.tell(format_args!("{partition} is owned by {owner} of session {session}"));
                }
                None => self.trace.tell(format_args!("{partition} is owned by nobody")),
            }
            self.count(if node.is_some() { "claims" } else { "releases" });
        } else if let Some(id) = path.strip_prefix(&self.paths.ids()) {
            let id = id.trim_start_matches('/');
            match node {
                Some(_) => self.trace.tell(format_args!("{id} is registered by session {session}")),
                None => self.trace.tell(format_args!("{id} is not registered any more")),
            }
        }
    }

    fn stored(&self, partition: &TopicPartition, offset: i64) {
        self.trace.tell(format_args!("{partition} committed at {offset}"));
        let before = self.committed(partition);
        self.judge(partition, offset, before, false);
        let mut inner = self.inner();
        inner.partitions.entry(partition.clone()).or_default().committed = offset;
        *inner.counts.entry("commits").or_default() += 1;
    }

    fn stored_in_kafka(&self, OffsetStored { partition, offset, late, .. }: &OffsetStored) {
        let (offset, how) = (*offset, if *late { ", late" } else { "" });
        self.trace.tell(format_args!("{partition} committed in kafka at {offset}{how}"));
        let past = self.inner().partitions.get(partition).map(|past| (past.is_robbed(), past.kafka_floor));
        let (is_robbed, floor) = past.unwrap_or_default();
        let is_unfenced = *late || is_robbed;
        self.judge(partition, offset, if is_unfenced { 0 } else { floor }, *late);
        if is_unfenced && offset < floor {
            self.count("unfenced commits that went back");
        }
        let mut inner = self.inner();
        let past = inner.partitions.entry(partition.clone()).or_default();
        past.kafka_floor = if is_unfenced { floor.min(offset) } else { offset };
        *inner.counts.entry("commits in kafka").or_default() += 1;
    }

    /// INV-4: what is stored is handled, and not less than that.
    fn judge(&self, partition: &TopicPartition, offset: i64, least: i64, late: bool) {
        if self.largest {
            let mut inner = self.inner();
            let past = inner.partitions.entry(partition.clone()).or_default();
            if past.is_first_position(late) {
                past.handled = past.handled.max(offset);
            }
        }
        let handled = self.handled(partition);
        if offset > handled {
            self.violated(format!(
                "INV-4: {partition} committed at {offset}, but only {handled} were handled"
            ));
        }
        if offset < least {
            self.violated(format!("INV-4: {partition} committed at {offset} after {least}"));
        }
        self.inner().partitions.entry(partition.clone()).or_default().begin();
    }
}

/// The partition of a node `<root>/<topic>/<partition>`.
fn below(path: &str, root: &str) -> Option<TopicPartition> {
    let (topic, partition) = path.strip_prefix(root)?.strip_prefix('/')?.split_once('/')?;
    Some(TopicPartition::new(topic, partition.parse().ok()?))
}
