//! How the members stand, as they tell it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kafka_troupe::StatusSnapshot;
use kafka_troupe::proto::schemas::rebalance::v1::RebalanceTrace;

use crate::producing::PARTITIONS;

/// What the demo knows of a member's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Running,
    Killed,
    Left,
}

/// One member and the last it told.
#[derive(Debug, Clone)]
pub struct Member {
    pub name: String,
    pub pid: u32,
    pub state: State,
    pub snapshot: StatusSnapshot,
}

impl Member {
    /// How many partitions it owns and reads.
    pub fn owned(&self) -> usize {
        if self.state == State::Running { self.snapshot.partitions.len() } else { 0 }
    }

    /// How many rebalances it has done.
    pub fn rebalances(&self) -> u64 {
        self.snapshot.rebalances.as_ref().map_or(0, |rebalances| rebalances.count)
    }

    /// Its rebalances, first one first.
    pub fn traces(&self) -> impl DoubleEndedIterator<Item = &RebalanceTrace> {
        self.snapshot.rebalances.iter().flat_map(|rebalances| rebalances.last.iter().rev())
    }
}

/// All members, in the order they came.
#[derive(Default)]
pub struct Board(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    members: Vec<Member>,
    /// Per partition, the furthest position that any member acknowledged.
    acked: Vec<i64>,
}

impl Board {
    pub fn add(&self, name: &str, pid: u32) {
        let (state, snapshot) = (State::Running, StatusSnapshot::default());
        self.lock().members.push(Member { name: name.to_owned(), pid, state, snapshot });
    }

    pub fn update(&self, name: &str, snapshot: StatusSnapshot) {
        let mut inner = self.lock();
        inner.acked.resize(PARTITIONS as usize, 0);
        for partition in &snapshot.partitions {
            if let Some(acked) = inner.acked.get_mut(partition.partition as usize) {
                *acked = partition.acked.max(*acked);
            }
        }
        if let Some(member) = inner.members.iter_mut().find(|member| member.name == name) {
            member.snapshot = snapshot;
        }
    }

    pub fn set_state(&self, name: &str, state: State) {
        if let Some(member) = self.lock().members.iter_mut().find(|member| member.name == name) {
            member.state = state;
        }
    }

    pub fn members(&self) -> Vec<Member> {
        self.lock().members.clone()
    }

    /// How many partitions a member owns and reads.
    pub fn owned_by(&self, name: &str) -> usize {
        self.lock().members.iter().find(|member| member.name == name).map_or(0, Member::owned)
    }

    /// Whether a member has handled more than it has committed.
    pub fn is_ahead_of_commits(&self, name: &str) -> bool {
        let inner = self.lock();
        let member = inner.members.iter().find(|member| member.name == name);
        member.is_some_and(|member| member.snapshot.partitions.iter().any(|of| of.committed < Some(of.acked)))
    }

    /// Records acknowledged, each counted once.
    pub fn acked(&self) -> u64 {
        self.lock().acked.iter().map(|acked| acked.unsigned_abs()).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
