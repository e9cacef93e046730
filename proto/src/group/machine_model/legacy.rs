//! A Scala member, which is one blocking thread: each request is a step. It stops the world and releases all
//! at each rebalance, reads its positions before it claims, claims blindly, gives back all on any conflict, and
//! gives up after its fourth attempt. It deletes without looking whose node it is, takes a node with its own
//! thread id for its own whatever the session, and goes on in the next session with what it was doing.
//!
//! Left out: its lost replies (its client asks again by itself), a crash in the middle of its claims (its
//! session ends then, as after any crash), and that it goes on consuming for a while after an expiry.

use std::collections::{BTreeMap, BTreeSet};

use super::Group;
use super::state::{Path, Stage as DeliveryStage, State, id};
use crate::TopicPartition;
use crate::group::ClaimAnswer;
use crate::group::assignor::Plan;

const ATTEMPTS: u8 = 4;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Stage {
    #[default]
    Registering,
    Idle,
    Releasing,
    Reading,
    Positioning,
    Claiming,
    GivingBack,
    Sleeping,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scala {
    pub stage: Stage,
    pub dirty: bool,
    pub gave_up: bool,
    attempt: u8,
    /// What it thinks it owns.
    registry: Plan,
    /// What it consumes: the next record.
    pub serving: BTreeMap<TopicPartition, u8>,
    plan: Plan,
    positions: BTreeMap<TopicPartition, u8>,
    /// Requests of this stage that are still to be sent.
    left: BTreeSet<TopicPartition>,
    obtained: BTreeSet<TopicPartition>,
}

impl Scala {
    pub fn is_told(&mut self, path: &Path) {
        let watches = self.stage != Stage::Registering && matches!(path, Path::Ids | Path::Topics);
        self.dirty |= watches;
    }

    /// One that gave up is none of it: its user has to see to it.
    pub fn is_settled(&self) -> bool {
        self.stage == Stage::Idle && !self.dirty && !self.gave_up
    }

    pub fn has_step(&self) -> bool {
        match self.stage {
            Stage::Idle => self.dirty,
            stage => stage != Stage::Sleeping,
        }
    }

    pub fn owned(&self) -> impl Iterator<Item = (&TopicPartition, &crate::zk::ConsumerThreadId)> {
        self.registry.iter().filter(|(tp, _)| self.serving.contains_key(*tp))
    }
}

impl State {
    fn scala(&mut self, name: usize) -> &mut Scala {
        self.processes[name].scala.as_mut().expect("a Scala member")
    }

    pub fn scala_steps(&mut self, name: usize) {
        match self.scala(name).stage {
            Stage::Registering => {
                self.register(name);
                let scala = self.scala(name);
                (scala.stage, scala.dirty) = (Stage::Idle, true);
            }
            Stage::Idle => {
                let scala = self.scala(name);
                (scala.attempt, scala.dirty, scala.gave_up) = (0, false, false);
                self.scala_attempts(name);
            }
            Stage::Releasing => {
                self.scala_deletes(name);
                let scala = self.scala(name);
                if scala.left.is_empty() {
                    scala.stage = Stage::Reading;
                }
            }
            Stage::Reading => self.scala_plans(name),
            Stage::Positioning => {
                let stored = self.server.tree.stored.clone();
                let scala = self.scala(name);
                let position = |tp: &TopicPartition| (tp.clone(), stored.get(tp).copied().unwrap_or(0));
                scala.positions = scala.plan.keys().map(position).collect();
                scala.left = scala.plan.keys().cloned().collect();
                scala.stage = Stage::Claiming;
                self.scala_owns_when_done(name);
            }
            Stage::Claiming => self.scala_claims(name),
            Stage::GivingBack => {
                self.scala_deletes(name);
                self.scala_sleeps_when_done(name);
            }
            Stage::Sleeping => {}
        }
    }

    /// Its commit is unconditional; then what it thinks it owns is released, one by one.
    fn scala_attempts(&mut self, name: usize) {
        let scala = self.scala(name);
        scala.attempt += 1;
        scala.left = std::mem::take(&mut scala.registry).into_keys().collect();
        scala.stage = if scala.left.is_empty() { Stage::Reading } else { Stage::Releasing };
        let serving = std::mem::take(&mut scala.serving);
        self.server.tree.stored.extend(serving);
    }

    fn scala_deletes(&mut self, name: usize) {
        let session = self.processes[name].session;
        if let Some(tp) = self.scala(name).left.pop_first() {
            self.delete_blindly(Some(session), &tp);
        }
    }

    fn scala_plans(&mut self, name: usize) {
        let snapshot = self.server.tree.snapshot();
        let scala = self.scala(name);
        scala.obtained.clear();
        if snapshot.member(&id(name)).is_none() {
            return self.scala_sleeps_when_done(name);
        }
        scala.plan = crate::group::Strategy::Range.assign_to(&snapshot, &id(name));
        scala.stage = Stage::Positioning;
    }

    fn scala_claims(&mut self, name: usize) {
        let session = self.processes[name].session;
        let Some(tp) = self.scala(name).left.pop_first() else { return };
        let thread = self.scala(name).plan[&tp].clone();
        let obtained = match self.create(session, &tp, &thread) {
            ClaimAnswer::Held(owner) => owner.thread == thread.as_str(),
            answer => answer == ClaimAnswer::Created,
        };
        if obtained {
            self.scala(name).obtained.insert(tp);
        }
        self.scala_owns_when_done(name);
    }

    fn scala_owns_when_done(&mut self, name: usize) {
        let stored = self.server.tree.stored.clone();
        let scala = self.scala(name);
        if !scala.left.is_empty() {
            return;
        }
        let obtained = std::mem::take(&mut scala.obtained);
        if scala.plan.keys().any(|tp| !obtained.contains(tp)) {
            (scala.left, scala.stage) = (obtained, Stage::GivingBack);
            return self.scala_sleeps_when_done(name);
        }
        scala.registry = std::mem::take(&mut scala.plan);
        scala.serving = std::mem::take(&mut scala.positions);
        scala.stage = Stage::Idle;
        let behind = scala.serving.iter().filter(|(tp, next)| stored.get(*tp) > Some(*next));
        let behind: Vec<_> = behind.map(|(tp, _)| tp.clone()).collect();
        self.repeated.extend(behind);
    }

    fn scala_sleeps_when_done(&mut self, name: usize) {
        let faulty = self.faulty;
        let scala = self.scala(name);
        if !scala.left.is_empty() {
            return;
        }
        scala.stage = Stage::Sleeping;
        if scala.attempt == ATTEMPTS {
            (scala.stage, scala.gave_up) = (Stage::Idle, true);
            // else it begins anew at once: each of two stops in a row may take as long as rule 6 lets it, but the
            // second one's reason was told to this member as well
            if !faulty && !scala.dirty {
                self.broken.insert("rule 6");
            }
        }
    }

    /// Its backoff has passed: so have two seconds of each handler that was asked to finish.
    pub fn scala_wakes(&mut self, name: usize) {
        for process in &mut self.processes {
            for delivery in process.deliveries.values_mut() {
                if matches!(delivery.stage, DeliveryStage::Draining(_)) {
                    delivery.patience = delivery.patience.saturating_sub(1);
                }
            }
        }
        self.scala_attempts(name);
    }

    pub fn scala_record(&mut self, name: usize, tp: &TopicPartition) {
        let delivered = self.delivered.get(tp).copied().unwrap_or(0);
        let Some(next) = self.scala(name).serving.get_mut(tp) else { return };
        let gap = *next > delivered;
        *next += 1;
        let next = *next;
        self.delivered.insert(tp.clone(), next.max(delivered));
        if gap {
            self.broken.insert("INV-6: gap");
        }
    }

    /// Its registry is forgotten without commit or delete; what was under way goes on in the new session.
    pub fn scala_session_replaced(&mut self, name: usize) {
        let session = self.new_session();
        self.processes[name].session = session;
        let scala = self.scala(name);
        scala.registry.clear();
        scala.serving.clear();
        if scala.stage != Stage::Registering {
            scala.dirty = true;
            self.register(name);
        }
    }
}

/// What one may do now.
pub fn actions(group: &Group, state: &State, name: usize, busy: bool, actions: &mut Vec<super::Action>) {
    let process = &state.processes[name];
    let Some(scala) = process.scala.as_ref() else { return };
    if !state.server.sessions.contains(&process.session) {
        return;
    }
    let late = |delivery: &super::state::Delivery| {
        matches!(delivery.stage, DeliveryStage::Draining(_)) && delivery.patience == 0
    };
    let overdue = state.processes.iter().any(|process| process.deliveries.values().any(late));
    let bounded = !group.breaks(super::Mutation::UnboundedRevoke);
    match scala.stage {
        Stage::Sleeping if !(busy || (bounded && overdue)) => actions.push(super::Action::Wake(name)),
        _ if scala.has_step() => actions.push(super::Action::Scala(name)),
        _ => {}
    }
    for (tp, next) in &scala.serving {
        if *next < state.end(group, tp) {
            actions.push(super::Action::ScalaRecord(name, tp.clone()));
        }
    }
}
