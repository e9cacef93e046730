//! The driver of one machine: inputs in, effects to requests and deliveries, as its contract says.

use std::collections::BTreeSet;

use super::super::Machine;
use super::super::tests::checks::is_stale;
use super::faults::{lost, session_of};
use super::legacy::Scala;
use super::state::{Delivery, Note, PATIENCE, Stage, State, settings};
use super::{Group, Mutation};
use crate::TopicPartition;
use crate::group::{ClaimAnswer, Effect, Generation, Input, Phase};

impl State {
    /// The next thing that the client has for this process.
    pub fn take(&mut self, group: &Group, name: usize) {
        match self.processes[name].inbox.pop_front() {
            Some(Note::Input(Input::StartFailed { generation, partition, why })) => {
                let deliveries = &mut self.processes[name].deliveries;
                if deliveries.get(&partition).is_some_and(|it| it.stage == Stage::Positioning) {
                    deliveries.remove(&partition);
                    self.input(group, name, Input::StartFailed { generation, partition, why });
                }
            }
            Some(Note::Input(input)) => self.input(group, name, input),
            // what is listed is read again when it is adopted
            Some(Note::OwnerChanged(_)) if self.processes[name].listing.is_some() => {}
            Some(Note::OwnerChanged(partition)) => {
                let session = self.processes[name].session;
                self.processes[name].calls.push_back(Effect::ReadOwner { session, partition });
            }
            Some(Note::Position { session, partition, next }) => {
                self.positioned(group, name, session, &partition, next);
            }
            None => {}
        }
    }

    pub fn input(&mut self, group: &Group, name: usize, input: Input) {
        if self.processes[name].listing.is_some() {
            return self.told_while_listing(group, name, input);
        }
        let Some(input) = self.bent(group, name, input) else { return };
        let before = self.processes[name].machine.clone();
        let effects = self.processes[name].machine.step(0, input.clone());
        let machine = &self.processes[name].machine;
        if is_stale(&input, &before) && (*machine != before || !effects.is_empty()) {
            self.broken.insert("INV-10");
        }
        for effect in effects {
            self.check_effect(name, before.phase(), &effect);
            self.perform(group, name, effect);
        }
    }

    /// The input as a broken driver tells it.
    fn bent(&self, group: &Group, name: usize, input: Input) -> Option<Input> {
        let machine = &self.processes[name].machine;
        match (group.mutation, input) {
            (Some(Mutation::WaitOnOldPlan), Input::Trigger(_)) if machine.phase() == Phase::Claiming => None,
            (Some(Mutation::TriggerWhileRevokingForgotten), Input::Trigger(_))
                if machine.phase() == Phase::Revoking =>
            {
                None
            }
            (Some(Mutation::ReconnectUntold), Input::Reconnected) => None,
            (Some(Mutation::LateCreateForgotten), Input::Claimed { answer: ClaimAnswer::Created, .. })
                if machine.phase() != Phase::Claiming =>
            {
                None
            }
            (Some(Mutation::OldSessionCounts), Input::Claimed { session, partition, answer }) => {
                let session = machine.session().unwrap_or(session);
                Some(Input::Claimed { session, partition, answer })
            }
            (_, input) => Some(input),
        }
    }

    fn perform(&mut self, group: &Group, name: usize, effect: Effect) {
        let process = &mut self.processes[name];
        match effect {
            Effect::Stop { generation, partitions, .. } => {
                for tp in partitions {
                    self.stop(group, name, &tp, generation);
                }
            }
            Effect::Drop { partitions, .. } => {
                process.deliveries.retain(|tp, _| !partitions.contains(tp));
            }
            Effect::SetTimer { generation, .. } => process.timer = Some(generation),
            Effect::Report(_) => {}
            Effect::Leave => self.leave(name),
            Effect::Rethread { session, partition, thread } if group.breaks(Mutation::MoveByDelete) => {
                process.calls.push_back(Effect::Release { session, partition: partition.clone() });
                process.calls.push_back(Effect::Claim { session, partition, thread });
            }
            Effect::Start { session, ref partition, ref thread, appeared, .. } => {
                let (stage, next) = match group.breaks(Mutation::PositionBeforeClaim) {
                    true => (Stage::Delivering, process.early.get(partition).copied().unwrap_or(0)),
                    false => (Stage::Positioning, 0),
                };
                let fresh = Delivery::new(session, thread.clone(), stage);
                let delivery = Delivery { next, appeared, ..fresh };
                let twice = process.deliveries.insert(partition.clone(), delivery).is_some();
                process.calls.push_back(effect);
                if twice && !group.breaks(Mutation::DeliverBeforeClaim) {
                    self.broken.insert("rule 1: started twice");
                }
            }
            effect => self.request(group, name, effect),
        }
        self.refuse(name);
    }

    /// What is asked for in a session that the client has no more is not sent.
    fn refuse(&mut self, name: usize) {
        let process = &mut self.processes[name];
        let session = process.session;
        let ended = |call: &Effect| session_of(call).is_some_and(|it| it != session);
        while process.calls.back().is_some_and(ended) {
            process.late.extend(process.calls.pop_back().and_then(lost));
        }
    }

    fn request(&mut self, group: &Group, name: usize, effect: Effect) {
        let process = &mut self.processes[name];
        match &effect {
            Effect::Claim { session, partition, thread } if group.breaks(Mutation::DeliverBeforeClaim) => {
                let delivery = Delivery::new(*session, thread.clone(), Stage::Delivering);
                process.deliveries.insert(partition.clone(), delivery);
            }
            Effect::Claim { partition, .. } if group.breaks(Mutation::PositionBeforeClaim) => {
                let stored = self.server.tree.stored.get(partition).copied().unwrap_or(0);
                process.early.insert(partition.clone(), stored);
            }
            Effect::ReadOwner { partition, .. } => {
                process.watched.insert(partition.clone());
            }
            _ => {}
        }
        process.calls.push_back(effect);
    }

    fn stop(&mut self, group: &Group, name: usize, tp: &TopicPartition, generation: Generation) {
        if group.breaks(Mutation::ReleaseWithoutStop) {
            let partitions = BTreeSet::from([tp.clone()]);
            let stopped = Input::Stopped { generation, partitions };
            return self.processes[name].inbox.push_back(Note::Input(stopped));
        }
        if group.breaks(Mutation::StopEverything) {
            for delivery in self.processes[name].deliveries.values_mut() {
                delivery.stage = Stage::Draining(generation);
            }
        }
        match self.processes[name].deliveries.get_mut(tp) {
            Some(delivery) => {
                delivery.stage = Stage::Draining(generation);
                delivery.patience = PATIENCE;
            }
            None => {
                self.broken.insert("rule 1: stopped but not started");
            }
        }
    }

    /// The handler is done: its position is flushed, by the fence of rule 10, and then the stop is answered.
    pub fn drained(&mut self, group: &Group, name: usize, tp: &TopicPartition) {
        let Some(delivery) = self.processes[name].deliveries.remove(tp) else { return };
        let Stage::Draining(generation) = delivery.stage else { return };
        if !group.breaks(Mutation::FlushForgotten) {
            self.commit(group, name, tp, &delivery);
        }
        let partitions = BTreeSet::from([tp.clone()]);
        self.input(group, name, Input::Stopped { generation, partitions });
    }

    fn leave(&mut self, name: usize) {
        self.processes[name].alive = false;
        let session = self.processes[name].session;
        self.lose_watches(name);
        self.end_session(session);
        self.rest(name);
    }

    /// Nothing of a dead process is left to tell states apart.
    pub fn rest(&mut self, name: usize) {
        let process = &mut self.processes[name];
        process.calls.clear();
        process.inbox.clear();
        process.late.clear();
        process.orphans = 0;
        process.listing = None;
        process.view = None;
        process.cut_off = false;
        process.deliveries.clear();
        process.watched.clear();
        process.timer = None;
        process.early.clear();
        process.cached.clear();
        process.machine = Machine::new(settings(name));
        if let Some(scala) = &mut process.scala {
            **scala = Scala::default();
        }
    }
}
