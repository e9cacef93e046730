//! Claiming what the plan gives us, waiting for others to let go, and noticing what was taken from us.

use super::{Asked, ClaimAnswer, Effect, Holding, Machine, Owner, Phase, Progress, Reason};
use crate::TopicPartition;
use crate::zk::ConsumerThreadId;
use std::collections::BTreeSet;

impl Machine {
    pub(super) fn claim(&mut self, now: u64, out: &mut Vec<Effect>) {
        self.phase = Phase::Claiming;
        self.overtaken = 0;
        for (tp, thread) in self.plan.clone() {
            match self.held.get(&tp) {
                None => self.create(tp, thread, out),
                Some(Holding::Stopped { thread: holder }) if *holder == thread => self.start(tp, thread, out),
                Some(Holding::Stopped { .. }) => self.rethread(tp, thread, out),
                Some(_) => {}
            }
        }
        if !self.reasons.is_empty() {
            return self.read(now, out);
        }
        self.settle_when_claimed(now, out);
    }

    fn create(&mut self, partition: TopicPartition, thread: ConsumerThreadId, out: &mut Vec<Effect>) {
        let Some(session) = self.session else { return };
        let unsettled = Holding::Unsettled { thread: thread.clone(), asked: Asked::Write };
        self.held.insert(partition.clone(), unsettled);
        out.push(Effect::Claim { session, partition, thread });
    }

    /// A move between threads of ours: the node is set, never deleted and made again (rule 5).
    fn rethread(&mut self, partition: TopicPartition, thread: ConsumerThreadId, out: &mut Vec<Effect>) {
        let Some(session) = self.session else { return };
        let unsettled = Holding::Unsettled { thread: thread.clone(), asked: Asked::Write };
        self.held.insert(partition.clone(), unsettled);
        out.push(Effect::Rethread { session, partition, thread });
    }

    /// Each partition starts by itself as soon as it is claimed (rule 1); its position is read now (rule 7).
    fn start(&mut self, partition: TopicPartition, thread: ConsumerThreadId, out: &mut Vec<Effect>) {
        let Some(session) = self.session else { return };
        let (generation, appeared) = (self.generation, self.appeared.contains(&partition));
        self.held.insert(partition.clone(), Holding::Running { thread: thread.clone(), since: generation });
        out.push(Effect::ReadOwner { session, partition: partition.clone() });
        out.push(Effect::Start { generation, session, partition, thread, appeared });
    }

    pub(super) fn claimed(
        &mut self,
        now: u64,
        tp: TopicPartition,
        answer: ClaimAnswer,
        out: &mut Vec<Effect>,
    ) {
        let unsettled = match self.held.get(&tp) {
            Some(Holding::Unsettled { thread, .. }) => Some(thread.clone()),
            _ => None,
        };
        match (unsettled, answer) {
            (Some(thread), ClaimAnswer::Created) => self.own(now, tp, thread, out),
            (Some(_), ClaimAnswer::Held(owner)) => self.occupied(now, tp, owner, out),
            (Some(thread), ClaimAnswer::Unknown(why)) => {
                let Some(session) = self.session else { return };
                let generation = self.generation;
                out.push(Effect::Report(Progress::Retrying { generation, why: format!("{tp}: {why}") }));
                self.held.insert(tp.clone(), Holding::Unsettled { thread, asked: Asked::Read });
                out.push(Effect::ReadOwner { session, partition: tp });
            }
            // a create answered late may be a node that we hold (rule 3): read whose it is
            (None, ClaimAnswer::Created | ClaimAnswer::Unknown(_)) if !self.held.contains_key(&tp) => {
                let Some(session) = self.session else { return };
                out.push(Effect::ReadOwner { session, partition: tp });
            }
            (None, _) => {}
        }
    }

    /// The node is ours. Whether it is still wanted, the current plan says, or the next.
    fn own(&mut self, now: u64, tp: TopicPartition, thread: ConsumerThreadId, out: &mut Vec<Effect>) {
        let Some(session) = self.session else { return };
        match self.phase {
            Phase::Leaving => return self.give_back(session, tp, out),
            Phase::Claiming if self.plan.get(&tp) == Some(&thread) => self.start(tp, thread, out),
            Phase::Claiming if self.plan.contains_key(&tp) => {
                let planned = self.plan[&tp].clone();
                self.rethread(tp, planned, out);
            }
            _ => {
                self.held.insert(tp, Holding::Stopped { thread });
            }
        }
        self.settle_when_claimed(now, out);
    }

    /// Somebody's node is there: ours from an earlier thread or a lost reply, or another member's.
    fn occupied(&mut self, now: u64, tp: TopicPartition, owner: Owner, out: &mut Vec<Effect>) {
        if let Some(thread) = self.our_thread(&owner) {
            return self.own(now, tp, thread, out);
        }
        if self.phase == Phase::Leaving {
            return self.forget(now, &tp, out);
        }
        self.held.remove(&tp);
        if self.phase == Phase::Claiming
            && let Some(session) = self.session
        {
            self.waiting.insert(tp.clone(), owner.thread);
            out.push(Effect::ReadOwner { session, partition: tp });
        }
        self.settle_when_claimed(now, out);
    }

    /// Whom a node of our session names. It is ours whatever it says: another member's set that was planned in its
    /// last session, or an operator, may have written that. Text that is no thread is none that a plan has.
    pub(super) fn our_thread(&self, owner: &Owner) -> Option<ConsumerThreadId> {
        let no_thread = |_| ConsumerThreadId::new(&self.settings.consumer_id, u32::MAX);
        (Some(owner.session) == self.session)
            .then(|| ConsumerThreadId::parse(&owner.thread).unwrap_or_else(no_thread))
    }

    pub(super) fn owner_read(
        &mut self,
        now: u64,
        tp: TopicPartition,
        outcome: Result<Option<Owner>, String>,
        out: &mut Vec<Effect>,
    ) {
        match self.held.get(&tp).cloned() {
            Some(Holding::Unsettled { thread, asked: Asked::Read }) => {
                self.settled_by_read(now, tp, thread, outcome, out);
            }
            // the write in flight will say; a delete in flight needs no watch
            Some(Holding::Unsettled { .. } | Holding::Releasing) => {}
            Some(holding) => self.check_ours(now, tp, &holding, outcome, out),
            None => self.check_others(now, tp, outcome, out),
        }
    }

    fn settled_by_read(
        &mut self,
        now: u64,
        tp: TopicPartition,
        thread: ConsumerThreadId,
        outcome: Result<Option<Owner>, String>,
        out: &mut Vec<Effect>,
    ) {
        match outcome {
            Ok(Some(owner)) => match (self.our_thread(&owner), self.plan.get(&tp)) {
                (Some(found), Some(planned)) if self.phase == Phase::Claiming && found != *planned => {
                    self.held.insert(tp.clone(), Holding::Stopped { thread: found });
                    self.recover(now, format!("{tp} could not be moved to {thread}"), out);
                }
                _ => self.occupied(now, tp, owner, out),
            },
            _ if self.phase == Phase::Leaving => self.forget(now, &tp, out),
            // after the backoff, because whatever refused the create (an ACL, say) may refuse it again
            Ok(None) => {
                self.held.remove(&tp);
                match self.phase {
                    Phase::Claiming => self.recover(now, format!("{tp} could not be claimed"), out),
                    _ => self.settle_when_claimed(now, out),
                }
            }
            Err(why) => {
                self.held.insert(tp.clone(), Holding::Unsettled { thread, asked: Asked::Nothing });
                self.recover(now, format!("cannot tell who owns {tp}: {why}"), out);
            }
        }
    }

    /// A node that we hold: is it still ours (rule 4)?
    fn check_ours(
        &mut self,
        now: u64,
        tp: TopicPartition,
        holding: &Holding,
        outcome: Result<Option<Owner>, String>,
        out: &mut Vec<Effect>,
    ) {
        let why = match &outcome {
            Ok(Some(owner)) if self.our_thread(owner).as_ref() == holding.thread() => return,
            Ok(Some(owner)) => {
                format!("owner node of {tp} is now {} of session {}", owner.thread, owner.session)
            }
            Ok(None) => format!("owner node of {tp} was deleted"),
            Err(why) => {
                self.unwatched.insert(tp.clone());
                return self.recover(now, format!("cannot watch the owner of {tp}: {why}"), out);
            }
        };
        let partitions = BTreeSet::from([tp.clone()]);
        out.push(Effect::Drop { partitions: partitions.clone(), why: why.clone() });
        out.push(Effect::Report(Progress::Lost { partitions, why }));
        if self.phase == Phase::Leaving {
            return self.forget(now, &tp, out);
        }
        // ours with another thread is a move answered late: a node that we hold
        match outcome.ok().flatten().and_then(|owner| self.our_thread(&owner)) {
            Some(thread) => self.held.insert(tp, Holding::Stopped { thread }),
            None => self.held.remove(&tp),
        };
        self.trigger(now, Reason::PartitionsLost, out);
        self.claim_when_revoked(now, out);
    }

    /// A node that we do not hold: it may be free now, or ours by a create answered late (rule 3).
    fn check_others(
        &mut self,
        now: u64,
        tp: TopicPartition,
        outcome: Result<Option<Owner>, String>,
        out: &mut Vec<Effect>,
    ) {
        match outcome {
            Ok(Some(owner)) => match (self.our_thread(&owner), self.session) {
                (Some(_), Some(session)) if self.phase == Phase::Leaving => self.give_back(session, tp, out),
                (Some(thread), _) => {
                    self.held.insert(tp, Holding::Stopped { thread });
                    self.trigger(now, Reason::Failed, out);
                }
                (None, _) => {
                    self.waiting.entry(tp).and_modify(|holder| *holder = owner.thread);
                }
            },
            Ok(None) if self.waiting.remove(&tp).is_some() => {
                if let Some(thread) = self.plan.get(&tp).cloned() {
                    self.create(tp, thread, out);
                }
            }
            // a wait whose watch could not be set is ended by the timer
            Ok(None) | Err(_) => {}
        }
    }

    /// Stable when all that is planned is ours; else the timer bounds the wait for the others.
    pub(super) fn settle_when_claimed(&mut self, now: u64, out: &mut Vec<Effect>) {
        if self.phase == Phase::Reading {
            return self.plan_when_settled(now, out);
        }
        if self.phase != Phase::Claiming || self.held.values().any(Holding::is_unsettled) {
            return;
        }
        let generation = self.generation;
        if self.waiting.is_empty() {
            self.phase = Phase::Stable;
            self.unsettled_since = None;
            self.failing = false;
            out.push(Effect::Report(Progress::Settled { generation, owned: self.held.len() }));
        } else {
            let holders = self.waiting.clone();
            out.push(Effect::Report(Progress::Waiting { generation, holders }));
            out.push(Effect::SetTimer { generation, at: now + self.settings.backoff });
        }
    }
}
