//! Whether the others do what the plan says.
//!
//! A Scala member gives up after its last failed attempt: it stays registered, so partitions fall to it, and nobody
//! reads them. A member that plans differently (another strategy, another generation of it) holds what falls to
//! others. Neither need be in our way, and no watch of ours would tell. So once the group has looked the same for
//! `rebalance.max.retries` x `rebalance.backoff.ms`, and for as long as others may learn of it
//! [late](PeerCheck::learning_late), the owner nodes are read and held against the plan.
//!
//! [`PeerCheck`] decides when to look and what to make of it; as the [`Machine`](super::Machine) it has no clock and
//! does no I/O. A healthy group is looked at once after each change of it. What is wrong is looked at again every
//! `rebalance.backoff.ms`, and only that.

mod faults;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use faults::{Likely, PeerFault, Problem};

use super::assignor::Plan;
use super::{GroupSnapshot, Owner, Settings};
use crate::TopicPartition;
use faults::{Wrong, faults};

/// Partition to what its owner node says, for those that have one.
pub type Owners = BTreeMap<TopicPartition, Owner>;

/// Owner nodes to be read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Look {
    /// Of all topics that have any and that [`PeerCheck::concerns`] us.
    All,
    /// Of these partitions.
    These(BTreeSet<TopicPartition>),
}

/// Finds members that have given up or plan differently. See the [module](self).
#[derive(Clone, Debug)]
pub struct PeerCheck {
    settings: Settings,
    /// See [`learning_late`](Self::learning_late).
    late: u64,
    /// The group as it was last read.
    snapshot: GroupSnapshot,
    /// The plan for it, of all members.
    plan: Arc<Plan>,
    /// When to look next.
    due: Option<u64>,
    /// When the look that is under way was asked for.
    asked: Option<u64>,
    /// What the last look found.
    suspected: BTreeMap<TopicPartition, Wrong>,
    /// What two looks found alike, and so is reported.
    lasting: BTreeMap<TopicPartition, Wrong>,
    /// The report.
    faults: Vec<PeerFault>,
}

impl PeerCheck {
    /// Nothing is known yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            late: 0,
            snapshot: GroupSnapshot::default(),
            plan: Arc::default(),
            due: None,
            asked: None,
            suspected: BTreeMap::new(),
            lasting: BTreeMap::new(),
            faults: Vec::new(),
        }
    }

    /// The others may learn so much later than we of what changed, in ms: members that poll for topics
    /// (`metadata.max.age.ms`) rather than be told. They get that time on top; 0 unless set.
    #[must_use]
    pub fn learning_late(self, late: u64) -> Self {
        Self { late, ..self }
    }

    /// Members that do not do what the plan says, and how.
    pub fn faults(&self) -> &[PeerFault] {
        &self.faults
    }

    /// What the whole group is to own, as it was last read.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// When to [`look`](Self::look) next, if at all, in the driver's milliseconds.
    pub fn due(&self) -> Option<u64> {
        self.due
    }

    /// The group was read. One that looks different gets its time to settle before it is looked at; a member that
    /// is gone is no fault any more.
    pub fn group_read(&mut self, now: u64, snapshot: &GroupSnapshot) {
        let settled = now + self.late + self.settings.max_retries * self.settings.backoff;
        if self.snapshot == *snapshot {
            // it was read for a reason, and that may have upset a peer
            self.due = self.due.or(self.asked.is_none().then_some(settled));
            return;
        }
        self.snapshot = snapshot.clone();
        self.plan = Arc::new(self.settings.strategy.assign(snapshot));
        self.suspected.clear();
        self.asked = None;
        self.faults.retain(|fault| snapshot.member(&fault.member).is_some());
        // without brokers nobody acts on its plan
        self.due = (snapshot.brokers > 0).then_some(settled);
    }

    /// What to read now, if it is time.
    pub fn look(&mut self, now: u64) -> Option<(u64, Look)> {
        if self.due.is_none_or(|due| due > now) {
            return None;
        }
        self.due = None;
        self.asked = Some(now);
        let look = if self.suspected.is_empty() { Look::All } else { Look::These(self.suspects()) };
        Some((now, look))
    }

    /// Whether the owner nodes of a topic say anything to us: its partitions are known, or nobody is to own any.
    pub fn concerns(&self, topic: &str) -> bool {
        !self.snapshot.partitions_of(topic).is_empty() || !self.is_subscribed(topic)
    }

    fn is_subscribed(&self, topic: &str) -> bool {
        self.snapshot.members.iter().any(|member| member.topics.contains_key(topic))
    }

    /// The answer to the [`look`](Self::look) that was asked for at `asked`; an error if the nodes could not be read.
    /// Whether [`faults`](Self::faults) are others now.
    pub fn owners_read<E>(&mut self, now: u64, asked: u64, outcome: Result<Owners, E>) -> bool {
        if self.asked != Some(asked) {
            // of a group that has changed since
            return false;
        }
        self.asked = None;
        let again = now + self.settings.backoff;
        let Ok(owners) = outcome else {
            self.due = Some(again);
            return false;
        };
        let found = self.wrong(&owners);
        let mut lasting = found.clone();
        lasting.retain(|tp, wrong| {
            [&self.suspected, &self.lasting].iter().any(|before| before.get(tp) == Some(wrong))
        });
        self.due = (!found.is_empty()).then_some(again);
        (self.suspected, self.lasting) = (found, lasting);
        let faults = faults(&self.lasting, &owners, &self.snapshot, self.settings.strategy);
        let changed = faults != self.faults;
        self.faults = faults;
        changed
    }

    fn wrong(&self, owners: &Owners) -> BTreeMap<TopicPartition, Wrong> {
        let mut found = faults::wrong(&self.plan, owners, &self.settings.consumer_id);
        // nodes of a topic that was deleted stay with members who name it
        found.retain(|tp, _| self.plan.contains_key(tp) || !self.is_subscribed(&tp.topic));
        if !self.suspected.is_empty() {
            // no others were read
            let suspects = self.suspects();
            found.retain(|tp, _| suspects.contains(tp));
        }
        found
    }

    /// What is wrong, and what else falls to the members concerned: to tell who holds nothing at all, and by what they
    /// plan.
    fn suspects(&self) -> BTreeSet<TopicPartition> {
        let of = |wrong: &Wrong| [wrong.planned.clone(), wrong.owner.clone()];
        let members: BTreeSet<String> = self.suspected.values().flat_map(of).flatten().collect();
        let theirs = self.plan.iter().filter(|(_, thread)| members.contains(thread.consumer()));
        theirs.map(|(tp, _)| tp).chain(self.suspected.keys()).cloned().collect()
    }
}

#[cfg(test)]
mod tests;
