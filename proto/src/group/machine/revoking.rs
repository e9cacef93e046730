//! Giving up what the plan drops, before anything is claimed (rule 2), and leaving for good.

use std::collections::BTreeSet;

use super::{Asked, Effect, Generation, Holding, Machine, Phase, Reason, SessionNumber};
use crate::TopicPartition;

impl Machine {
    /// Stops what moves away or to another thread of ours; what stays is not touched (rule 1).
    pub(super) fn revoke(&mut self, now: u64, out: &mut Vec<Effect>) {
        self.phase = Phase::Revoking;
        self.stop_unplanned(now, out);
        self.release_stopped(out);
        self.claim_when_revoked(now, out);
    }

    fn stop_unplanned(&mut self, now: u64, out: &mut Vec<Effect>) {
        let mut partitions = BTreeSet::new();
        for (tp, holding) in &mut self.held {
            if let Holding::Running { thread, .. } = holding
                && self.plan.get(tp) != Some(thread)
            {
                *holding = Holding::Stopping { thread: thread.clone(), asked: self.generation };
                partitions.insert(tp.clone());
            }
        }
        if !partitions.is_empty() {
            let deadline = now + self.settings.drain;
            out.push(Effect::Stop { generation: self.generation, partitions, deadline });
        }
    }

    fn release_stopped(&mut self, out: &mut Vec<Effect>) {
        let Some(session) = self.session else { return };
        for (tp, holding) in &mut self.held {
            if matches!(holding, Holding::Stopped { .. }) && !self.plan.contains_key(tp) {
                *holding = Holding::Releasing;
                out.push(Effect::Release { session, partition: tp.clone() });
            }
        }
    }

    pub(super) fn stopped(
        &mut self,
        now: u64,
        generation: Generation,
        partitions: &BTreeSet<TopicPartition>,
        out: &mut Vec<Effect>,
    ) {
        let Some(session) = self.session else { return };
        for tp in partitions {
            match self.held.get(tp) {
                Some(Holding::Stopping { thread, asked }) if *asked == generation => {
                    let stopped = Holding::Stopped { thread: thread.clone() };
                    self.held.insert(tp.clone(), stopped);
                }
                _ => continue,
            }
            // whether or not the group is being read again, or could not be: others wait for it
            if !self.plan.contains_key(tp) {
                self.held.insert(tp.clone(), Holding::Releasing);
                out.push(Effect::Release { session, partition: tp.clone() });
            }
        }
        self.claim_when_revoked(now, out);
    }

    pub(super) fn released(
        &mut self,
        now: u64,
        tp: &TopicPartition,
        outcome: Result<(), String>,
        out: &mut Vec<Effect>,
    ) {
        if self.held.get(tp) != Some(&Holding::Releasing) {
            return;
        }
        self.held.remove(tp);
        if let Err(why) = outcome
            && self.phase != Phase::Leaving
        {
            // whether the node is still ours is read at the next rebalance; its data does not matter then
            let thread = crate::zk::ConsumerThreadId::new(&self.settings.consumer_id, 0);
            self.held.insert(tp.clone(), Holding::Unsettled { thread, asked: Asked::Nothing });
            self.recover(now, format!("could not release {tp}: {why}"), out);
        }
        self.claim_when_revoked(now, out);
    }

    /// Once everything is given up: claims, or reads again when a trigger came meanwhile (rule 2).
    pub(super) fn claim_when_revoked(&mut self, now: u64, out: &mut Vec<Effect>) {
        let busy = |holding: &Holding| matches!(holding, Holding::Stopping { .. } | Holding::Releasing);
        match self.phase {
            Phase::Leaving if self.held.is_empty() && self.session.take().is_some() => {
                out.push(Effect::Leave);
            }
            Phase::Revoking if self.held.values().any(busy) => {}
            Phase::Revoking if self.reasons.contains(&Reason::Failed) => {
                self.back_off(now, "not everything could be given up".to_owned(), out);
            }
            Phase::Revoking => match self.is_overtaken() {
                true => self.read(now, out),
                false => self.claim(now, out),
            },
            _ => {}
        }
    }

    /// Stops and releases everything; [`Effect::Leave`] when done.
    pub(super) fn leave(&mut self, now: u64, out: &mut Vec<Effect>) {
        if self.phase == Phase::Leaving {
            return;
        }
        self.bump();
        self.phase = Phase::Leaving;
        self.plan.clear();
        if self.session.is_none() {
            return out.push(Effect::Leave);
        }
        self.stop_unplanned(now, out);
        self.release_stopped(out);
        self.held.retain(|_, holding| !matches!(holding, Holding::Unsettled { asked: Asked::Nothing, .. }));
        self.claim_when_revoked(now, out);
    }

    /// A node of ours that turned up while leaving.
    pub(super) fn give_back(&mut self, session: SessionNumber, tp: TopicPartition, out: &mut Vec<Effect>) {
        self.held.insert(tp.clone(), Holding::Releasing);
        out.push(Effect::Release { session, partition: tp });
    }

    /// A node that is not ours after all, while leaving.
    pub(super) fn forget(&mut self, now: u64, tp: &TopicPartition, out: &mut Vec<Effect>) {
        self.held.remove(tp);
        self.claim_when_revoked(now, out);
    }
}
