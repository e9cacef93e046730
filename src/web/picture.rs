//! What the page shows of a group at one moment, made from what its systems and ZooKeeper tell.

mod member;
mod partition;
mod problems;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::source::Observation;
pub(super) use member::Member;
pub(super) use partition::Partition;
pub(super) use problems::{Problems, Said, problems};

/// Partitions of one group that are shown; more are only counted.
pub(super) const MOST_PARTITIONS: usize = 5_000;

/// One system and the last it told.
pub(super) struct Observed<'a> {
    pub(super) cluster: &'a str,
    pub(super) observation: &'a Observation,
    /// When it had shut down, in epoch milliseconds.
    pub(super) ended: Option<i64>,
    /// Whether it let the last question unanswered.
    pub(super) silent: bool,
}

impl Observed<'_> {
    /// Its cluster and group.
    fn named(&self) -> (&str, &str) {
        (self.cluster, &self.observation.status.group)
    }

    /// Whether it is shown as part of this group.
    pub(super) fn is_in(&self, group: &Group) -> bool {
        self.named() == (&*group.cluster, &*group.group)
    }
}

/// Groups by key.
pub(super) type Picture = BTreeMap<String, Group>;
/// By cluster and group, the key: the number of the system that first told of it, whichever tells later.
pub(super) type Keys = BTreeMap<(String, String), String>;

/// A consumer group: systems of one group and cluster are shown together.
#[derive(Serialize, Default, Clone, PartialEq, Debug)]
pub(super) struct Group {
    /// When its systems were asked, in epoch milliseconds, as all times here.
    pub(super) at: i64,
    pub(super) group: String,
    pub(super) cluster: String,
    /// When the last of its systems had shut down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<i64>,
    /// `healthy`, `rebalancing`, `leaving`, `suspended`, `failing`, `silent` or `ended`: of the system that stands worst.
    pub(super) health: &'static str,
    pub(super) why: Vec<String>,
    /// When ZooKeeper was read; absent where members elsewhere are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) read: Option<i64>,
    /// What could not be read of it.
    pub(super) unread: Vec<String>,
    pub(super) members: BTreeMap<String, Member>,
    pub(super) topics: BTreeMap<String, BTreeMap<i32, Partition>>,
    /// Partitions that are not shown.
    pub(super) left_out: usize,
    pub(super) rebalances: BTreeMap<String, Rebalance>,
    /// Members that came or went.
    pub(super) changes: BTreeMap<String, Change>,
    pub(super) errors: BTreeMap<String, Problem>,
    pub(super) totals: Totals,
}

/// Sums over the group.
#[derive(Serialize, Default, Clone, Copy, PartialEq, Debug)]
pub(super) struct Totals {
    /// Records between what is handled and the ends, of partitions whose end is known.
    pub(super) lag: i64,
    /// Records delivered by this process's members each second.
    pub(super) records: f64,
    /// Their bytes.
    pub(super) bytes: f64,
}

/// What one rebalance of a member of this process did.
#[derive(Serialize, Default, Clone, PartialEq, Debug)]
pub(super) struct Rebalance {
    pub(super) at: i64,
    pub(super) member: String,
    pub(super) generation: u64,
    pub(super) took: u64,
    pub(super) reasons: Vec<String>,
    pub(super) kept: u32,
    pub(super) released: u32,
    pub(super) claimed: u32,
    pub(super) moved: u32,
    /// `orders 7, held by billing_b-0`.
    pub(super) waited: Vec<String>,
    pub(super) outcome: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) error: String,
}

/// A member of any process that came, or went.
#[derive(Serialize, Default, Clone, PartialEq, Debug)]
pub(super) struct Change {
    /// When it came, exactly; when it was seen to have gone.
    pub(super) at: i64,
    pub(super) member: String,
    /// As it had, or has.
    pub(super) mark: usize,
    pub(super) came: bool,
}

/// Something that went wrong, where, and from when to when.
#[derive(Serialize, Default, Clone, PartialEq, Debug)]
pub(super) struct Problem {
    pub(super) at: i64,
    /// When it was no longer so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<i64>,
    pub(super) member: String,
    pub(super) place: String,
    pub(super) text: String,
}

/// The groups of these systems, without what only history knows: rates, trends, errors.
pub(super) fn picture(at: i64, systems: &[Option<Observed<'_>>], keys: &mut Keys) -> Picture {
    let mut picture = Picture::new();
    let known = || systems.iter().enumerate().filter_map(|(number, system)| Some((number, system.as_ref()?)));
    let runs: BTreeSet<_> = known().filter(|(_, it)| it.ended.is_none()).map(|(_, it)| it.named()).collect();
    for (number, system) in known() {
        let (cluster, group) = system.named();
        let named = (cluster.to_owned(), group.to_owned());
        let key = keys.entry(named).or_insert_with(|| number.to_string());
        let group = picture.entry(key.clone()).or_default();
        // what one that has shut down had is others' now, if there are any
        if system.ended.is_none() || !runs.contains(&system.named()) {
            group.add(at, system);
        }
    }
    for group in picture.values_mut() {
        group.cut();
        group.totals.lag = group.partitions().filter_map(|(_, _, partition)| partition.lag).sum();
    }
    picture
}

impl Group {
    fn add(&mut self, at: i64, system: &Observed<'_>) {
        let Observation { status, group } = system.observation;
        let first = self.members.is_empty();
        self.at = at;
        (self.group, self.cluster) = (status.group.clone(), system.cluster.to_owned());
        // ended when all have
        self.ended = if first { system.ended } else { self.ended.zip(system.ended).map(|(a, b)| a.max(b)) };
        if let Some(view) = group {
            self.read = self.read.max(Some(view.taken_ms));
            add_new(&mut self.unread, &view.errors);
            member::add_foreign(&mut self.members, view);
            partition::add_foreign(&mut self.topics, view);
        }
        self.judge(system);
        for status in std::iter::once(status).chain(&status.added) {
            let since = self.members.get(&status.consumer_id).and_then(|member| member.since);
            self.members.insert(status.consumer_id.clone(), Member { since, ..Member::of(status) });
            partition::add_own(&mut self.topics, status);
            self.note_rebalances(status);
        }
    }

    /// Keeps the worst word for it, and all reasons.
    fn judge(&mut self, system: &Observed<'_>) {
        let (word, why) = member::health(system);
        let rank = |word: &str| {
            ["", "ended", "healthy", "rebalancing", "leaving", "suspended", "silent", "failing"]
                .iter()
                .position(|known| *known == word)
        };
        if rank(word) > rank(self.health) {
            self.health = word;
        }
        add_new(&mut self.why, &why);
    }

    pub(super) fn partitions(&self) -> impl Iterator<Item = (&String, i32, &Partition)> {
        self.topics
            .iter()
            .flat_map(|(topic, all)| all.iter().map(move |(number, partition)| (topic, *number, partition)))
    }

    /// Leaves out what is too much for a page.
    fn cut(&mut self) {
        let mut room = MOST_PARTITIONS;
        for partitions in self.topics.values_mut() {
            while partitions.len() > room {
                partitions.pop_last();
                self.left_out += 1;
            }
            room -= partitions.len();
        }
        self.topics.retain(|_, partitions| !partitions.is_empty());
    }

    fn note_rebalances(&mut self, status: &crate::StatusSnapshot) {
        for trace in status.rebalances.iter().flat_map(|rebalances| &rebalances.last) {
            let rebalance = member::rebalance(&status.consumer_id, trace);
            self.rebalances.insert(rebalance.key(), rebalance);
        }
    }
}

/// Adds what another system of the group has not said.
fn add_new(known: &mut Vec<String>, said: &[String]) {
    for text in said {
        if !known.contains(text) {
            known.push(text.clone());
        }
    }
}

impl Rebalance {
    /// In the order of their beginnings.
    pub(super) fn key(&self) -> String {
        format!("{:013} {} {}", self.at, self.member, self.generation)
    }
}
