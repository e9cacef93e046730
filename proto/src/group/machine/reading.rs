//! Reading the group, and deciding what to keep, give up and claim.

use std::collections::BTreeSet;
use std::mem;

use super::{Asked, Effect, GroupSnapshot, Holding, Machine, Phase, Progress, Reason};
use crate::TopicPartition;

/// Only ZooKeeper tells of none: Metadata without brokers is no answer.
const NO_BROKERS: &str = "no broker in /brokers/ids can be used: none is registered (those without ZooKeeper are named in \
    bootstrap.servers), or none has a PLAINTEXT listener (see the warnings)";

impl Machine {
    /// Begins a new generation. Claims still in flight are settled before its snapshot is acted on (rule 3).
    pub(super) fn read(&mut self, now: u64, out: &mut Vec<Effect>) {
        self.bump();
        self.phase = Phase::Reading;
        self.snapshot = None;
        self.unsettled_since.get_or_insert(now);
        let reasons = mem::take(&mut self.reasons);
        out.push(Effect::Report(Progress::Started { generation: self.generation, reasons }));
        self.settle_unanswered(out);
        out.push(Effect::ReadGroup { generation: self.generation });
    }

    fn settle_unanswered(&mut self, out: &mut Vec<Effect>) {
        let Some(session) = self.session else { return };
        let mut read: BTreeSet<_> = mem::take(&mut self.unwatched);
        for (partition, holding) in &mut self.held {
            if let Holding::Unsettled { asked: asked @ Asked::Nothing, .. } = holding {
                *asked = Asked::Read;
                read.insert(partition.clone());
            }
        }
        out.extend(read.into_iter().map(|partition| Effect::ReadOwner { session, partition }));
    }

    pub(super) fn group_read(
        &mut self,
        now: u64,
        outcome: Result<GroupSnapshot, String>,
        out: &mut Vec<Effect>,
    ) {
        if self.phase != Phase::Reading {
            return;
        }
        match outcome {
            Ok(snapshot) => {
                self.snapshot = Some(snapshot);
                self.plan_when_settled(now, out);
            }
            Err(why) => self.back_off(now, why, out),
        }
    }

    /// Acts on the snapshot once no claim is in flight; reads again first if anything changed meanwhile.
    pub(super) fn plan_when_settled(&mut self, now: u64, out: &mut Vec<Effect>) {
        if self.phase != Phase::Reading || self.held.values().any(Holding::is_unsettled) {
            return;
        }
        let Some(snapshot) = self.snapshot.take() else { return };
        if self.is_overtaken() {
            return self.read(now, out);
        }
        if snapshot.member(&self.settings.consumer_id).is_none() {
            return self.register(out);
        }
        if snapshot.brokers == 0 {
            return self.back_off(now, NO_BROKERS.to_owned(), out);
        }
        self.plan = self.settings.strategy.assign_to(&snapshot, &self.settings.consumer_id);
        self.note_appeared(&snapshot);
        self.report_plan(out);
        self.revoke(now, out);
    }

    fn note_appeared(&mut self, snapshot: &GroupSnapshot) {
        let now: BTreeSet<_> = snapshot
            .member(&self.settings.consumer_id)
            .into_iter()
            .flat_map(|member| member.topics.keys())
            .flat_map(|topic| {
                let numbers = snapshot.partitions_of(topic).iter();
                numbers.map(|partition| TopicPartition::new(topic.clone(), *partition))
            })
            .collect();
        self.appeared.retain(|tp| now.contains(tp));
        if let Some(known) = &self.known {
            self.appeared.extend(now.difference(known).cloned());
        }
        self.known = Some(now);
    }

    fn report_plan(&self, out: &mut Vec<Effect>) {
        let planned = |tp: &TopicPartition, holding: &Holding| (self.plan.get(tp), holding.thread().cloned());
        let (mut kept, mut released, mut moved) = (0, 0, 0);
        for (tp, holding) in &self.held {
            match planned(tp, holding) {
                (Some(to), Some(from)) if *to == from => kept += 1,
                (Some(_), Some(_)) => moved += 1,
                _ => released += 1,
            }
        }
        let claimed = self.plan.keys().filter(|tp| !self.held.contains_key(*tp)).count();
        let generation = self.generation;
        out.push(Effect::Report(Progress::Planned { generation, kept, released, claimed, moved }));
    }

    pub(super) fn start_failed(
        &mut self,
        now: u64,
        started: super::Generation,
        partition: &TopicPartition,
        why: String,
        out: &mut Vec<Effect>,
    ) {
        if let Some(holding @ Holding::Running { .. }) = self.held.get_mut(partition) {
            let Holding::Running { thread, since } = holding else { return };
            if *since != started {
                return;
            }
            *holding = Holding::Stopped { thread: thread.clone() };
            self.recover(now, format!("{partition}: {why}"), out);
        }
    }

    /// After a failed step on one partition: reads again, after the backoff. A revocation under way goes on
    /// first, because others wait for what it gives up.
    pub(super) fn recover(&mut self, now: u64, why: String, out: &mut Vec<Effect>) {
        match self.phase {
            Phase::Stable | Phase::Claiming | Phase::Reading => self.back_off(now, why, out),
            Phase::Revoking => {
                self.reasons.insert(Reason::Failed);
                out.push(Effect::Report(Progress::Retrying { generation: self.generation, why }));
            }
            Phase::BackingOff | Phase::Idle | Phase::Leaving => {
                self.reasons.insert(Reason::Failed);
            }
        }
    }
}

impl Holding {
    pub(super) fn is_unsettled(&self) -> bool {
        matches!(self, Self::Unsettled { .. })
    }

    /// The thread that the node names, as far as we know; none when it is being deleted.
    pub(super) fn thread(&self) -> Option<&crate::zk::ConsumerThreadId> {
        match self {
            Self::Unsettled { thread, .. }
            | Self::Running { thread, .. }
            | Self::Stopping { thread, .. }
            | Self::Stopped { thread } => Some(thread),
            Self::Releasing => None,
        }
    }
}
