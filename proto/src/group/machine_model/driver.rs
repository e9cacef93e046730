//! The driver of one machine: inputs in, effects to requests and deliveries, as its contract says.

use std::collections::BTreeSet;

use super::super::tests::checks::is_stale;
use super::state::{Delivery, Note, Stage, State};
use super::{Group, Mutation};
use crate::TopicPartition;
use crate::group::commit::{Resolution, resolve};
use crate::group::{ClaimAnswer, Effect, Input, Phase, SessionNumber};

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
            Some(Note::OwnerChanged(partition)) => {
                let session = self.processes[name].session;
                self.processes[name].calls.push_back(Effect::ReadOwner { session, partition });
            }
            Some(Note::Position { session, partition, next }) => {
                self.positioned(name, session, &partition, next);
            }
            None => {}
        }
    }

    fn positioned(&mut self, name: usize, session: SessionNumber, tp: &TopicPartition, next: u8) {
        match self.processes[name].deliveries.get_mut(tp) {
            Some(delivery) if delivery.stage == Stage::Positioning && delivery.session == session => {
                delivery.stage = Stage::Delivering;
                delivery.next = next;
            }
            _ => {}
        }
    }

    pub fn input(&mut self, group: &Group, name: usize, input: Input) {
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
            Effect::Start { session, ref partition, ref thread, .. } => {
                let (stage, next) = match group.breaks(Mutation::PositionBeforeClaim) {
                    true => (Stage::Delivering, process.early.get(partition).copied().unwrap_or(0)),
                    false => (Stage::Positioning, 0),
                };
                let delivery = Delivery { session, thread: thread.clone(), stage, next };
                let twice = process.deliveries.insert(partition.clone(), delivery).is_some();
                process.calls.push_back(effect);
                if twice && !group.breaks(Mutation::DeliverBeforeClaim) {
                    self.broken.insert("rule 1: started twice");
                }
            }
            effect => self.request(group, name, effect),
        }
    }

    fn request(&mut self, group: &Group, name: usize, effect: Effect) {
        let process = &mut self.processes[name];
        match &effect {
            Effect::Claim { session, partition, thread } if group.breaks(Mutation::DeliverBeforeClaim) => {
                let stage = Stage::Delivering;
                let delivery = Delivery { session: *session, thread: thread.clone(), stage, next: 0 };
                process.deliveries.insert(partition.clone(), delivery);
            }
            Effect::Claim { partition, .. } if group.breaks(Mutation::PositionBeforeClaim) => {
                let stored = self.server.stored.get(partition).copied().unwrap_or(0);
                process.early.insert(partition.clone(), stored);
            }
            Effect::ReadOwner { partition, .. } => {
                process.watched.insert(partition.clone());
            }
            _ => {}
        }
        process.calls.push_back(effect);
    }

    fn stop(
        &mut self,
        group: &Group,
        name: usize,
        tp: &TopicPartition,
        generation: crate::group::Generation,
    ) {
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
            Some(delivery) => delivery.stage = Stage::Draining(generation),
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

    pub fn commit(&mut self, group: &Group, name: usize, tp: &TopicPartition, delivery: &Delivery) {
        let unfenced = group.breaks(Mutation::UnfencedCommit);
        let live = self.processes[name].lease && self.processes[name].session == delivery.session;
        if !unfenced && !live {
            return;
        }
        let stored = self.server.stored.get(tp).copied().unwrap_or(0);
        let owner = self.server.owners.get(tp);
        let ours = i64::from(delivery.next);
        let fenced = resolve((Some(i64::from(stored)), 0), owner, delivery.session, &delivery.thread, ours);
        let value = match fenced {
            Resolution::Write { value, .. } => u8::try_from(value).expect("few records"),
            Resolution::Lost if unfenced => delivery.next,
            Resolution::Lost => return,
        };
        if value < stored || value > self.delivered.get(tp).copied().unwrap_or(0) {
            self.broken.insert("INV-4");
        }
        self.server.stored.insert(tp.clone(), value);
    }

    /// One record is handed over.
    pub fn record(&mut self, group: &Group, name: usize, tp: &TopicPartition) {
        let Some(delivery) = self.processes[name].deliveries.get_mut(tp) else { return };
        let delivered = self.delivered.entry(tp.clone()).or_insert(0);
        match delivery.next.cmp(delivered) {
            std::cmp::Ordering::Less if !self.faulty => {
                self.broken.insert("INV-6: twice");
            }
            std::cmp::Ordering::Greater => {
                self.broken.insert("INV-6: gap");
            }
            _ => {}
        }
        delivery.next += 1;
        *delivered = delivery.next.max(*delivered);
        let delivery = delivery.clone();
        if group.commits_each {
            self.commit(group, name, tp, &delivery);
        }
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
        process.deliveries.clear();
        process.watched.clear();
        process.timer = None;
    }
}
