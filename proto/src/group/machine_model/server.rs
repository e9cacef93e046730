//! The abstract ZooKeeper: each request is one atomic step, watches fire once and in order with the answers.

use super::follower::is_read;
use super::state::{Note, Path, Registration, State};
use super::{Group, Mutation};
use crate::TopicPartition;
use crate::group::{ClaimAnswer, Effect, GroupSnapshot, Input, Owner, SessionNumber};
use crate::zk::ConsumerThreadId;

impl State {
    /// Executes one request of a process; the answer is `None` when it answers nothing.
    pub fn execute(&mut self, group: &Group, name: usize, call: Effect) -> Option<Note> {
        if is_read(&call) {
            return self.read(group, name, call);
        }
        let answer = self.write(name, call);
        self.see(name);
        answer.map(Note::Input)
    }

    fn write(&mut self, name: usize, call: Effect) -> Option<Input> {
        Some(match call {
            Effect::Register { generation } => {
                let session = self.processes[name].session;
                self.register(name);
                Input::Registered { generation, outcome: Ok(session) }
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
            _ => return None,
        })
    }

    fn read(&mut self, group: &Group, name: usize, call: Effect) -> Option<Note> {
        Some(match call {
            Effect::ReadGroup { generation } => {
                self.watch(name, Path::Ids);
                self.watch(name, Path::Topics);
                let outcome = self.read_group(group, name);
                Note::Input(Input::GroupRead { generation, outcome })
            }
            Effect::ReadOwner { session, partition } => {
                if !group.breaks(Mutation::OwnersUnwatched) {
                    self.watch(name, Path::Owner(partition.clone()));
                }
                let outcome = Ok(self.look(name).owners.get(&partition).cloned());
                Note::Input(Input::OwnerRead { session, partition, outcome })
            }
            Effect::Start { session, partition, .. } => {
                let next = self.look(name).stored.get(&partition).copied();
                Note::Position { session, partition, next }
            }
            _ => return None,
        })
    }

    /// A record that cannot be read is passed over (rule 11).
    fn read_group(&mut self, group: &Group, name: usize) -> Result<GroupSnapshot, String> {
        if group.unreadable && group.breaks(Mutation::UnreadableStops) {
            return Err("a registration cannot be read".to_owned());
        }
        let mut tree = self.look(name).clone();
        if group.breaks(Mutation::CachedByName) {
            for (id, registration) in &mut tree.ids {
                let cached = &mut self.processes[name].cached;
                registration.streams = *cached.entry(*id).or_insert(registration.streams);
            }
        }
        Ok(tree.snapshot())
    }

    pub fn register(&mut self, name: usize) {
        let process = &self.processes[name];
        let registration = Registration { session: process.session, streams: process.streams };
        if self.server.tree.ids.insert(name, registration.clone()) != Some(registration) {
            self.fire(&Path::Ids);
        }
    }

    pub fn is_of(&self, session: SessionNumber, tp: &TopicPartition) -> bool {
        self.server.tree.owners.get(tp).is_some_and(|owner| owner.session == session)
    }

    pub fn create(
        &mut self,
        session: SessionNumber,
        tp: &TopicPartition,
        thread: &ConsumerThreadId,
    ) -> ClaimAnswer {
        if let Some(owner) = self.server.tree.owners.get(tp) {
            return ClaimAnswer::Held(owner.clone());
        }
        let owner = Owner { session, thread: thread.as_str().to_owned() };
        self.server.tree.owners.insert(tp.clone(), owner);
        self.stolen.remove(&(session, tp.clone()));
        self.fire(&Path::Owner(tp.clone()));
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
            let holder = self.server.tree.owners.get(tp).cloned();
            return holder.map_or(ClaimAnswer::Unknown(why), ClaimAnswer::Held);
        }
        let owner = Owner { session, thread: thread.as_str().to_owned() };
        self.server.tree.owners.insert(tp.clone(), owner);
        self.fire(&Path::Owner(tp.clone()));
        ClaimAnswer::Created
    }

    pub fn delete(&mut self, tp: &TopicPartition) {
        self.server.tree.owners.remove(tp);
        self.fire(&Path::Owner(tp.clone()));
    }

    /// By somebody else, who does not look whose it is.
    pub fn delete_blindly(&mut self, by: Option<SessionNumber>, tp: &TopicPartition) {
        let Some(session) = self.server.tree.owners.get(tp).map(|owner| owner.session) else { return };
        if by != Some(session) {
            self.stolen.insert((session, tp.clone()));
        }
        self.delete(tp);
    }

    pub fn set_blindly(&mut self, tp: &TopicPartition, thread: &ConsumerThreadId) {
        let Some(owner) = self.server.tree.owners.get_mut(tp) else { return };
        thread.as_str().clone_into(&mut owner.thread);
        self.stolen.insert((owner.session, tp.clone()));
        self.fire(&Path::Owner(tp.clone()));
    }

    pub fn end_session(&mut self, session: SessionNumber) {
        self.server.sessions.remove(&session);
        let ids = self.server.tree.ids.len();
        self.server.tree.ids.retain(|_, it| it.session != session);
        if self.server.tree.ids.len() < ids {
            self.fire(&Path::Ids);
        }
        let theirs = self.server.tree.owners.iter().filter(|(_, owner)| owner.session == session);
        for tp in theirs.map(|(tp, _)| tp.clone()).collect::<Vec<_>>() {
            self.delete(&tp);
        }
    }

    pub fn lose_watches(&mut self, name: usize) {
        self.server.watches.retain(|(watcher, _)| *watcher != name);
    }
}
