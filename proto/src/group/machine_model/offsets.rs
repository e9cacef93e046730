//! Positions, records and commits, as stream, committer and fetchers have them: the machine knows nothing of
//! these, so this small protocol is what rules 6, 7, 8, 10 and 12 are checked in. A commit is one atomic
//! step here (that it is set-if-version, and reads the offset before the owner, is left to the seeded world and
//! to the tests of the committer); making a position is two, asking a broker and storing the answer.
//!
//! A record that was handed over counts as handled, but for the last one of a delivery that is cut off.

use super::state::{Delivery, Stage, State};
use super::{Group, Mutation, Reset};
use crate::TopicPartition;
use crate::group::SessionNumber;
use crate::group::commit::{Resolution, resolve};

impl State {
    /// One past the last record of a partition.
    pub fn end(&self, group: &Group, tp: &TopicPartition) -> u8 {
        self.ends.get(tp).copied().unwrap_or(group.records)
    }

    pub fn positioned(
        &mut self,
        group: &Group,
        name: usize,
        session: SessionNumber,
        tp: &TopicPartition,
        next: Option<u8>,
    ) {
        let Some(delivery) = self.processes[name].deliveries.get_mut(tp) else { return };
        if delivery.stage != Stage::Positioning || delivery.session != session {
            return;
        }
        if next.is_none() && group.reset.is_some() {
            delivery.stage = Stage::Resolving;
            return;
        }
        let next = next.unwrap_or(0);
        delivery.next = next;
        delivery.stage = Stage::Delivering;
        self.check_begins(group, tp, next);
    }

    /// Where the next record is due. A group that begins at the end of a log begins there; nothing of what is
    /// added later may be passed over.
    fn due(&self, group: &Group, tp: &TopicPartition, next: u8) -> u8 {
        let anywhere = group.reset == Some(Reset::Largest) && tp.partition < group.partitions;
        self.delivered.get(tp).copied().unwrap_or(if anywhere { next } else { 0 })
    }

    /// Nothing that was not handled may be passed over; but a position that is not in the log will be seen to.
    fn check_begins(&mut self, group: &Group, tp: &TopicPartition, next: u8) {
        if next > self.due(group, tp, next) && !self.remade.contains(tp) {
            self.broken.insert("INV-6: gap");
        }
    }

    /// A fetch finds that the position is not in the log.
    pub fn is_out_of_range(&self, group: &Group, tp: &TopicPartition, delivery: &Delivery) -> bool {
        group.reset.is_some() && delivery.stage == Stage::Delivering && delivery.next > self.end(group, tp)
    }

    /// A broker says where the log begins or ends.
    pub fn resolve(&mut self, group: &Group, name: usize, tp: &TopicPartition) {
        let end = self.end(group, tp);
        let Some(delivery) = self.processes[name].deliveries.get_mut(tp) else { return };
        let new = delivery.appeared && delivery.stage == Stage::Resolving;
        let from_start = new && !group.breaks(Mutation::AppearedAtEnd);
        let next = match group.reset {
            Some(Reset::Largest) if !from_start => end,
            _ => 0,
        };
        delivery.handed = false;
        delivery.stage = Stage::Storing(next);
        if group.breaks(Mutation::ResetNotStored) {
            self.reset(group, name, tp, next);
        }
    }

    fn reset(&mut self, group: &Group, name: usize, tp: &TopicPartition, next: u8) {
        self.remade.remove(tp);
        if let Some(delivery) = self.processes[name].deliveries.get_mut(tp) {
            delivery.next = next;
            delivery.stage = Stage::Delivering;
        }
        self.check_begins(group, tp, next);
    }

    /// An explicit reset (rule 12): fenced as any commit, but it may be lower than what is stored.
    pub fn store_reset(&mut self, group: &Group, name: usize, tp: &TopicPartition) {
        let process = &self.processes[name];
        let Some(delivery) = process.deliveries.get(tp) else { return };
        let Stage::Storing(next) = delivery.stage else { return };
        let live = process.lease && !process.cut_off && process.session == delivery.session;
        if !live || !self.owns(delivery, tp) {
            return;
        }
        let stored = self.server.tree.stored.get(tp).copied().unwrap_or(0);
        let value = if group.breaks(Mutation::ResetNeverLowers) { next.max(stored) } else { next };
        self.server.tree.stored.insert(tp.clone(), value);
        self.see(name);
        self.reset(group, name, tp, next);
    }

    /// One record is handed over.
    pub fn record(&mut self, group: &Group, name: usize, tp: &TopicPartition) {
        let Some(next) = self.processes[name].deliveries.get(tp).map(|delivery| delivery.next) else {
            return;
        };
        let due = self.due(group, tp, next);
        match next.cmp(&due) {
            std::cmp::Ordering::Less if !self.faulty && !self.repeated.contains(tp) => {
                self.broken.insert("INV-6: twice");
            }
            std::cmp::Ordering::Greater => {
                self.broken.insert("INV-6: gap");
            }
            _ => {}
        }
        let Some(delivery) = self.processes[name].deliveries.get_mut(tp) else { return };
        delivery.next += 1;
        delivery.handed = true;
        let delivery = delivery.clone();
        self.delivered.insert(tp.clone(), delivery.next.max(due));
        if group.commits_each {
            self.commit(group, name, tp, &delivery);
        }
    }

    /// The deadline of its stop: the record in the handler's hand is to be handled again (rule 6).
    pub fn cut_handler(&mut self, group: &Group, name: usize, tp: &TopicPartition) {
        let Some(delivery) = self.processes[name].deliveries.get_mut(tp) else { return };
        if let Some(delivered) = self.delivered.get_mut(tp).filter(|it| **it == delivery.next) {
            *delivered -= 1;
        }
        if !group.breaks(Mutation::CutIsAcked) {
            delivery.next -= 1;
        }
        self.drained(group, name, tp);
    }

    pub fn commit(&mut self, group: &Group, name: usize, tp: &TopicPartition, delivery: &Delivery) {
        let unfenced = group.breaks(Mutation::UnfencedCommit);
        let process = &self.processes[name];
        let live = process.lease && process.session == delivery.session;
        if (!unfenced && !live) || !delivery.handed || process.cut_off {
            return;
        }
        let stored = self.server.tree.stored.get(tp).copied();
        let owner = self.server.tree.owners.get(tp);
        let ours = i64::from(delivery.next);
        let known = stored.filter(|_| !group.breaks(Mutation::CommitLowers)).map(i64::from);
        let value = match resolve((known, 0), owner, delivery.session, &delivery.thread, ours) {
            Resolution::Write { value, .. } => u8::try_from(value).expect("few records"),
            Resolution::Lost if unfenced => delivery.next,
            Resolution::Lost => return,
        };
        let beyond = value > self.delivered.get(tp).copied().unwrap_or(0) && !self.remade.contains(tp);
        if stored.is_some_and(|stored| value < stored) || beyond {
            self.broken.insert("INV-4");
        }
        self.server.tree.stored.insert(tp.clone(), value);
        self.see(name);
    }
}
