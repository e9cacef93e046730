//! What handlers did, seen from outside, and what must be true of it at every moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use kafka_troupe_actors::Record;
use kafka_troupe_proto::group::InFlight;
use tokio::time::{Duration, Instant};

type Place = (i32, i64);

/// Shared by all handlers of a test.
#[derive(Clone, Default)]
pub struct Journal(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    /// By member: what its handlers have in flight.
    running: BTreeMap<String, BTreeMap<Place, Option<String>>>,
    /// How often each record began.
    begun: BTreeMap<Place, u32>,
    done: BTreeSet<Place>,
    /// Keys, of all that ever began.
    keys: BTreeMap<Place, Option<String>>,
    most: usize,
    /// In which order records were done.
    order: Vec<Place>,
    first: Option<Instant>,
    last: Option<Instant>,
    wrong: Vec<String>,
}

impl Journal {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// A member's handler begins a record, which is over when this is dropped.
    pub fn begin(&self, member: &str, limit: InFlight, record: &Record) -> Running {
        let place = (record.partition(), record.offset());
        let key = record.key().map(|key| String::from_utf8_lossy(key).into_owned());
        let mut inner = self.inner();
        inner.check_key(member, limit, place, key.as_ref());
        let running = inner.running.entry(member.to_owned()).or_default();
        running.insert(place, key.clone());
        let count = running.len();
        if count > limit.most() {
            inner.wrong.push(format!("{count} in flight at {member}, with {limit:?}"));
        }
        inner.most = inner.most.max(count);
        *inner.begun.entry(place).or_default() += 1;
        inner.keys.insert(place, key);
        inner.first.get_or_insert_with(Instant::now);
        Running { journal: self.clone(), member: member.to_owned(), place }
    }

    /// An offset node was written.
    pub fn committed(&self, partition: i32, offset: i64) {
        let mut inner = self.inner();
        let handled = inner.handled(partition);
        if offset > handled {
            inner.wrong.push(format!("{partition}: committed {offset}, but handled up to {handled} only"));
        }
    }

    /// The first offset of a partition that was never done.
    pub fn handled(&self, partition: i32) -> i64 {
        self.inner().handled(partition)
    }

    /// Records in the order in which they were done, with repetitions.
    pub fn order(&self) -> Vec<Place> {
        self.inner().order.clone()
    }

    /// The most that one member had in flight.
    pub fn most(&self) -> usize {
        self.inner().most
    }

    /// From the first begin to the last end.
    pub fn took(&self) -> Duration {
        let inner = self.inner();
        inner.first.zip(inner.last).map_or(Duration::ZERO, |(first, last)| last - first)
    }

    /// How often a record began.
    pub fn begun(&self, partition: i32, offset: i64) -> u32 {
        self.inner().begun.get(&(partition, offset)).copied().unwrap_or_default()
    }

    /// How many were begun more often than once.
    pub fn again(&self) -> usize {
        self.inner().begun.values().filter(|count| **count > 1).count()
    }

    /// Nothing was wrong.
    pub fn check(&self) {
        let inner = self.inner();
        assert!(inner.wrong.is_empty(), "{:#?}", &inner.wrong[..inner.wrong.len().min(10)]);
    }
}

impl Inner {
    fn handled(&self, partition: i32) -> i64 {
        (0..).find(|offset| !self.done.contains(&(partition, *offset))).unwrap_or_default()
    }

    /// Whatever came between, those of one key before it are done, and none of them is with the same member's handler.
    fn check_key(&mut self, member: &str, limit: InFlight, place: Place, key: Option<&String>) {
        if key.is_none() || !(limit.is_by_key() || limit.is_one()) {
            return;
        }
        let same =
            |(partition, _): &Place, other: &Option<String>| *partition == place.0 && other.as_ref() == key;
        let beside = self.running.get(member).into_iter().flatten().find(|(at, key)| same(at, key));
        if let Some((at, _)) = beside {
            self.wrong.push(format!("{place:?} of {key:?} began at {member} while {at:?} was in flight"));
        }
        let early = self.keys.iter().filter(|(at, key)| at.1 < place.1 && same(at, key));
        let early: Vec<_> = early.map(|(at, _)| *at).filter(|at| !self.done.contains(at)).collect();
        if !early.is_empty() {
            self.wrong.push(format!("{place:?} of {key:?} began before {early:?}"));
        }
    }
}

/// A record with a handler.
pub struct Running {
    journal: Journal,
    member: String,
    place: Place,
}

impl Running {
    /// It is handled.
    pub fn done(self) {
        let mut inner = self.journal.inner();
        inner.done.insert(self.place);
        inner.order.push(self.place);
        inner.last = Some(Instant::now());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(running) = self.journal.inner().running.get_mut(&self.member) {
            running.remove(&self.place);
        }
    }
}
