//! What must hold at every moment, and at the end.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{Holding, Machine};
use super::delivery::Stage;
use super::peer::{Kind, Peer};
use super::server::OwnerChange;
use super::world::{DRAIN, Event, World};
use crate::TopicPartition;
use crate::group::{ClaimAnswer, Effect, GroupSnapshot, Input, Phase, Progress, SessionNumber, Strategy};

/// An answer to a machine that does not wait for it any more.
pub fn is_stale(input: &Input, machine: &Machine) -> bool {
    match input {
        Input::Registered { generation, .. }
        | Input::GroupRead { generation, .. }
        | Input::TimerRang { generation } => *generation != machine.generation(),
        Input::Claimed { session, .. }
        | Input::Released { session, .. }
        | Input::OwnerRead { session, .. } => Some(*session) != machine.session(),
        Input::StartFailed { generation, partition, .. } => {
            !matches!(machine.held.get(partition), Some(Holding::Running { since, .. }) if since == generation)
        }
        _ => false,
    }
}

impl World {
    pub fn has_scala(&self) -> bool {
        self.peers.iter().any(|peer| matches!(peer.kind, Kind::Scala(_)))
    }

    /// That something happened at all in some seed, else a check of it says nothing.
    pub fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_insert(0) += 1;
    }

    pub fn note_rare(&mut self, before: &Machine, input: &Input) {
        let current = matches!(before.phase(), Phase::Claiming);
        match input {
            Input::Claimed { answer: ClaimAnswer::Created, .. } if before.phase() == Phase::Leaving => {
                self.saw("a create answered while leaving");
            }
            Input::Claimed { answer: ClaimAnswer::Created, .. } if !current => self.saw("a late create"),
            Input::Claimed { answer: ClaimAnswer::Unknown(_), .. } => self.saw("a lost claim"),
            Input::Released { outcome: Err(_), .. } => self.saw("a lost release"),
            Input::StartFailed { .. } => self.saw("a failed start"),
            Input::Trigger(_) if before.phase() == Phase::Revoking => self.saw("a trigger while revoking"),
            Input::Trigger(_) if current => self.saw("a trigger while claiming"),
            input if is_stale(input, before) => self.saw("a stale result"),
            _ => {}
        }
    }

    pub fn note_progress(&mut self, progress: &Progress) {
        match progress {
            Progress::Waiting { .. } => self.saw("a wait for another's node"),
            Progress::Planned { kept, moved, released, .. } if *kept > 0 && moved + released > 0 => {
                self.saw("a partition that flows on in a rebalance");
            }
            Progress::Failing { .. } if self.clean && !self.has_scala() => {
                self.fail("failing is reported although nothing failed")
            }
            _ => {}
        }
    }

    /// Whether this peer may hand over a record of the partition now, and would.
    fn is_serving(&self, peer: usize, tp: &TopicPartition) -> Option<SessionNumber> {
        let peer = &self.peers[peer];
        let Kind::Troupe(driver) = &peer.kind else { return None };
        let delivery = driver.deliveries.get(tp)?;
        let live = peer.alive && delivery.session == peer.link.session && self.now < peer.link.lease_end;
        (live && delivery.stage != Stage::Positioning).then_some(delivery.session)
    }

    /// Before an effect is performed.
    pub fn check_effect(&mut self, peer: usize, before: Phase, effect: &Effect) {
        let driver = self.driver(peer);
        let machine = &driver.machine;
        let wrong = match effect {
            Effect::Release { session, partition } if driver.deliveries.contains_key(partition) => {
                format!("INV-2, INV-3: {partition} of {session} is released but not stopped")
            }
            Effect::Rethread { partition, .. } if driver.deliveries.contains_key(partition) => {
                format!("INV-2: {partition} moves but is not stopped")
            }
            Effect::Release { session, .. }
            | Effect::Claim { session, .. }
            | Effect::Rethread { session, .. }
            | Effect::ReadOwner { session, .. }
            | Effect::Start { session, .. }
                if Some(*session) != machine.session() =>
            {
                format!("INV-7: {effect:?} of an old session")
            }
            Effect::Claim { .. } | Effect::Rethread { .. } | Effect::Start { .. }
                if !matches!(before, Phase::Reading | Phase::Revoking | Phase::Claiming) =>
            {
                format!("rule 2: {effect:?} in {before:?}")
            }
            Effect::Stop { partitions, deadline, .. } => {
                return self.check_stop(peer, partitions, *deadline);
            }
            Effect::Drop { partitions, why } if why != "session expired" => {
                let (session, partitions) = (machine.session(), partitions.clone());
                return self.check_drop(peer, session, partitions.into_iter().collect());
            }
            _ => return,
        };
        self.fail(&wrong);
    }

    /// Only what moves may be stopped, and with its bound.
    fn check_stop(&mut self, peer: usize, partitions: &BTreeSet<TopicPartition>, deadline: u64) {
        if deadline != self.now + DRAIN {
            self.fail("rule 6: a stop without its bound");
        }
        let driver = self.driver(peer);
        let kept = |tp: &&TopicPartition| {
            let running = driver.deliveries.get(*tp).map(|delivery| &delivery.thread);
            running.is_none() || driver.machine.plan.get(*tp) == running
        };
        if let Some(tp) = partitions.iter().find(kept) {
            self.fail(&format!("rule 1: {tp} stays but is stopped"));
        }
    }

    /// Only what is not ours any more may be dropped.
    fn check_drop(&mut self, peer: usize, session: Option<SessionNumber>, partitions: Vec<TopicPartition>) {
        for tp in partitions {
            let thread = self.driver(peer).deliveries.get(&tp).map(|d| d.thread.as_str().to_owned());
            let node = self.server.owner(&tp);
            if node.is_some_and(|node| Some(node.session) == session && Some(node.thread) == thread) {
                self.fail(&format!("rule 1: {tp} is ours but dropped"));
            }
        }
    }

    /// After each step: what the machine says runs is what was started.
    pub fn check_deliveries(&mut self, peer: usize) {
        let driver = self.driver(peer);
        let running: BTreeMap<_, _> = driver.machine.running().collect();
        let started: BTreeMap<_, _> = driver
            .deliveries
            .iter()
            .filter(|(_, delivery)| delivery.stage != Stage::Draining)
            .map(|(tp, delivery)| (tp, &delivery.thread))
            .collect();
        if running != started {
            let what = format!("the machine runs {running:?}, started are {started:?}");
            self.fail(&what);
        }
    }

    pub fn check_delivery_begins(&mut self, peer: usize, tp: &TopicPartition) {
        let Some(session) = self.is_serving(peer, tp) else { return };
        let Some(delivery) = self.driver(peer).deliveries.get(tp).cloned() else { return };
        let ours = self
            .server
            .owner(tp)
            .is_some_and(|node| node.session == session && node.thread == delivery.thread.as_str());
        if !ours && !self.usurped.contains_key(&(session, tp.clone())) {
            self.fail(&format!("INV-1: peer {peer} delivers {tp} but does not own it"));
        }
        let delivered = self.delivered.get(tp).copied().unwrap_or(0);
        if delivery.next > delivered {
            self.fail(&format!("a gap in {tp}: {delivered} to {}", delivery.next));
        }
        if self.clean && !self.has_scala() && delivery.next != delivered {
            self.fail(&format!("{tp} is delivered again from {}, not {delivered}", delivery.next));
        }
        self.check_alone(peer, tp);
    }

    fn check_alone(&self, peer: usize, tp: &TopicPartition) {
        let usurped = |session| self.usurped.contains_key(&(session, tp.clone()));
        if self.is_serving(peer, tp).is_none_or(usurped) {
            return;
        }
        for other in (0..self.peers.len()).filter(|other| *other != peer) {
            if self.is_serving(other, tp).is_some_and(|session| !usurped(session)) {
                self.fail(&format!("INV-6: peers {peer} and {other} both deliver {tp}"));
            }
        }
    }

    /// The lease is live again: everything that it covers must still be ours.
    pub fn check_fence_reopened(&mut self, peer: usize) {
        for tp in self.driver(peer).deliveries.keys().cloned().collect::<Vec<_>>() {
            self.check_alone(peer, &tp);
        }
    }

    /// An owner node changed: whoever delivers by the old one must have stopped, unless it was taken from it.
    pub fn check_change(&mut self, change: OwnerChange) {
        let OwnerChange { partition, before, after, by, expiry } = change;
        if let Some(node) = &after {
            self.usurped.remove(&(node.session, partition.clone()));
        }
        let Some(node) = before else { return };
        let holder = self.peers.iter().position(|peer| peer.link.session == node.session);
        let serving = holder.is_some_and(|peer| self.is_serving(peer, &partition) == Some(node.session));
        if serving && by == Some(node.session) {
            self.fail(&format!("INV-2: {partition} is delivered while its owner releases it"));
        }
        if serving && expiry {
            self.fail(&format!("rule 9: {partition} is delivered beyond the lease"));
        }
        if !expiry && by != Some(node.session) {
            self.usurped.insert((node.session, partition.clone()), self.now);
            let since = self.now;
            self.soon(1_000, 1_000, Event::Usurped { session: node.session, partition, since });
        }
    }

    /// INV-4: what a machine's driver commits was delivered, and never goes down. (A Scala member's may: it
    /// reads its position before it claims.)
    pub fn check_commit(&self, session: SessionNumber, tp: &TopicPartition, before: Option<i64>, after: i64) {
        if self.scalas.contains(&session) {
            return;
        }
        if before.is_some_and(|before| after < before) {
            self.fail(&format!("INV-4: committed of {tp} goes down from {before:?} to {after}"));
        }
        if after > self.delivered.get(tp).copied().unwrap_or(0) {
            self.fail(&format!("INV-4: {after} of {tp} is committed but was not delivered"));
        }
    }

    /// Rule 4: who is connected learns soon that its node was taken.
    pub fn check_told(&mut self, session: SessionNumber, tp: &TopicPartition, since: u64) {
        let Some(peer) = self.peers.iter().position(|peer| peer.link.session == session) else { return };
        let untouched = self.peers[peer].link.disturbed < since;
        let still = self.usurped.get(&(session, tp.clone())) == Some(&since);
        if still && untouched && self.is_serving(peer, tp).is_some() {
            self.fail(&format!("rule 4: peer {peer} still delivers {tp}, taken at {since}"));
        }
    }

    /// At the end: all stable, and everything owned and delivered exactly once, by the assignment rule.
    pub fn check_settled(&self) {
        let members = self.peers.iter().filter(|peer| self.is_member(peer)).map(Peer::member);
        let snapshot =
            GroupSnapshot { members: members.collect(), partitions: self.server.topics(), brokers: 1 };
        let planned: BTreeMap<_, _> = Strategy::Range
            .assign(&snapshot)
            .into_iter()
            .map(|(tp, thread)| (tp, thread.as_str().to_owned()))
            .collect();
        let owned: BTreeMap<_, _> =
            self.server.owners().map(|(tp, node)| (tp.clone(), node.thread)).collect();
        if planned != owned {
            self.fail(&format!("INV-6: planned {planned:?}, owned {owned:?}"));
        }
        for (number, peer) in self.peers.iter().enumerate().filter(|(_, peer)| peer.alive) {
            let settled = match &peer.kind {
                Kind::Troupe(_) => self.is_settled(number),
                Kind::Scala(scala) => scala.is_settled(),
            };
            if !settled {
                self.fail(&format!("peer {number} is not settled"));
            }
        }
    }

    fn is_member(&self, peer: &Peer) -> bool {
        peer.alive
    }
}
