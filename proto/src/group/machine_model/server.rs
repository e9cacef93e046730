//! The abstract ZooKeeper: each request is one atomic step, watches fire once and in order with the answers.

use super::state::{Note, State};
use super::{Group, Mutation};
use crate::TopicPartition;
use crate::group::{ClaimAnswer, Effect, Input, Owner, Reason, SessionNumber};
use crate::zk::ConsumerThreadId;

impl State {
    /// Executes one request of a process; the answer is `None` when it answers nothing.
    pub fn execute(&mut self, group: &Group, name: usize, call: Effect) -> Option<Note> {
        let input = match call {
            Effect::Register { generation } => {
                let session = self.processes[name].session;
                if self.server.ids.insert(name, session) != Some(session) {
                    self.fire_ids();
                }
                Input::Registered { generation, outcome: Ok(session) }
            }
            Effect::ReadGroup { generation } => {
                self.server.ids_watches.insert(name);
                Input::GroupRead { generation, outcome: Ok(self.snapshot(group.partitions)) }
            }
            Effect::Release { session, partition } => {
                if self.is_of(session, &partition) {
                    self.check_released(name, session, &partition);
                    self.delete(&partition);
                }
                Input::Released { session, partition, outcome: Ok(()) }
            }
            Effect::Claim { session, partition, thread } => {
                let answer = self.create(session, &partition, &thread);
                Input::Claimed { session, partition, answer }
            }
            Effect::Rethread { session, partition, thread } => {
                let answer = self.rethread(session, &partition, &thread);
                Input::Claimed { session, partition, answer }
            }
            Effect::ReadOwner { session, partition } => {
                if group.mutation != Some(Mutation::OwnersUnwatched) {
                    self.server.owner_watches.insert((name, partition.clone()));
                }
                let outcome = Ok(self.server.owners.get(&partition).cloned());
                Input::OwnerRead { session, partition, outcome }
            }
            Effect::Start { session, partition, .. } => {
                let next = self.server.stored.get(&partition).copied().unwrap_or(0);
                return Some(Note::Position { session, partition, next });
            }
            _ => return None,
        };
        Some(Note::Input(input))
    }

    fn is_of(&self, session: SessionNumber, tp: &TopicPartition) -> bool {
        self.server.owners.get(tp).is_some_and(|owner| owner.session == session)
    }

    pub fn create(
        &mut self,
        session: SessionNumber,
        tp: &TopicPartition,
        thread: &ConsumerThreadId,
    ) -> ClaimAnswer {
        if let Some(owner) = self.server.owners.get(tp) {
            return ClaimAnswer::Held(owner.clone());
        }
        let owner = Owner { session, thread: thread.as_str().to_owned() };
        self.server.owners.insert(tp.clone(), owner);
        self.stolen.remove(&(session, tp.clone()));
        self.fire_owner(tp);
        ClaimAnswer::Created
    }

    fn rethread(
        &mut self,
        session: SessionNumber,
        tp: &TopicPartition,
        thread: &ConsumerThreadId,
    ) -> ClaimAnswer {
        if !self.is_of(session, tp) {
            let why = "not ours".to_owned();
            let holder = self.server.owners.get(tp).cloned();
            return holder.map_or(ClaimAnswer::Unknown(why), ClaimAnswer::Held);
        }
        let owner = Owner { session, thread: thread.as_str().to_owned() };
        self.server.owners.insert(tp.clone(), owner);
        self.fire_owner(tp);
        ClaimAnswer::Created
    }

    pub fn delete(&mut self, tp: &TopicPartition) {
        self.server.owners.remove(tp);
        self.fire_owner(tp);
    }

    pub fn end_session(&mut self, session: SessionNumber) {
        self.server.sessions.remove(&session);
        let ids = self.server.ids.len();
        self.server.ids.retain(|_, holder| *holder != session);
        if self.server.ids.len() < ids {
            self.fire_ids();
        }
        let theirs: Vec<_> =
            self.server.owners.iter().filter(|(_, owner)| owner.session == session).collect();
        for tp in theirs.into_iter().map(|(tp, _)| tp.clone()).collect::<Vec<_>>() {
            self.delete(&tp);
        }
    }

    fn fire_ids(&mut self) {
        for name in std::mem::take(&mut self.server.ids_watches) {
            let note = Note::Input(Input::Trigger(Reason::ConsumersChanged));
            self.processes[name].inbox.push_back(note);
        }
    }

    fn fire_owner(&mut self, tp: &TopicPartition) {
        for name in 0..self.processes.len() {
            if self.server.owner_watches.remove(&(name, tp.clone())) {
                self.processes[name].inbox.push_back(Note::OwnerChanged(tp.clone()));
            }
        }
    }

    pub fn lose_watches(&mut self, name: usize) {
        self.server.ids_watches.remove(&name);
        self.server.owner_watches.retain(|(watcher, _)| *watcher != name);
    }
}
