//! The rebalance of one member, decided as data: [`Machine::step`] takes an [`Input`] and gives [`Effect`]s.
//!
//! ```text
//!          Registered            GroupRead            all stopped and released      all claimed
//!  Idle ──────────────▶ Reading ───────────▶ Revoking ───────────────────▶ Claiming ───────────▶ Stable
//!   ▲                    ▲ ▲ ▲                  │ (a trigger: read again)     │ (a trigger: read again) │
//!   │ SessionExpired     │ │ └──────────────────┴─────────────────────────────┴─────────────────────────┘
//!   └── (any phase)      │ └─ TimerRang, or a trigger ── BackingOff ◀── something failed
//! ```
//!
//! What a partition goes through is told by [`Holding`]; the phase only says what the whole waits for. The
//! same function is run by the coordinator actor, a model checker and a simulation, so it has no clock
//! (`now` is an argument, in milliseconds of the driver) and only ordered collections.

mod claiming;
mod messages;
mod reading;
mod revoking;

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

pub use messages::{ClaimAnswer, Effect, Generation, Input, Owner, Progress, Reason, SessionNumber};

use super::assignor::Plan;
use super::{GroupSnapshot, Strategy};
use crate::TopicPartition;
use crate::zk::ConsumerThreadId;

/// What the machine must know of its configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Our consumer id: the name of our node under `ids`.
    pub consumer_id: String,
    /// `partition.assignment.strategy`.
    pub strategy: Strategy,
    /// `rebalance.backoff.ms`.
    pub backoff: u64,
    /// `rebalance.max.retries`: after so many backoffs without whole ownership, `failing` is reported.
    pub max_retries: u64,
    /// How long handlers get to finish when a partition moves away, in ms (rule 6).
    pub drain: u64,
}

/// What the member as a whole is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// For a session, or to be registered in it.
    Idle,
    /// For the group's znodes to be read, and for claims still in flight to be answered.
    Reading,
    /// For delivery to stop and owner nodes to be deleted.
    Revoking,
    /// For owner nodes to be created, some after another member deleted its own.
    Claiming,
    /// For a trigger.
    Stable,
    /// For the backoff to pass.
    BackingOff,
    /// For everything to be given up, for good.
    Leaving,
}

/// What we know of one owner node that is ours or may be. Kept per session (rule 3): every outcome of a
/// create updates it, whatever the generation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Holding {
    /// It is not known whether the node is ours.
    Unsettled { thread: ConsumerThreadId, asked: Asked },
    /// The node is ours; delivery runs, or will as soon as the position is read.
    Running { thread: ConsumerThreadId, since: Generation },
    /// The node is ours and delivery is being stopped.
    Stopping { thread: ConsumerThreadId, asked: Generation },
    /// The node is ours and nothing is delivered from it.
    Stopped { thread: ConsumerThreadId },
    /// A delete is in flight, or its outcome is being read.
    Releasing,
}

/// Which answer will settle an [`Holding::Unsettled`] node. A read that was sent before the create must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Asked {
    /// A create or a move between threads is in flight.
    Write,
    /// A read, sent after the write, is in flight.
    Read,
    /// Nothing: the last answer was an error. The next rebalance reads it.
    Nothing,
}

/// So many reads in a row may be overtaken by a trigger; the next is acted on all the same, or members that
/// come and go faster than the group is read would keep everybody from ever giving up or claiming anything.
const OVERTAKEN_MAX: u32 = 4;

/// One member's side of the group protocol.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    settings: Settings,
    /// The session that holds our registration; `None` until registered, and once left.
    session: Option<SessionNumber>,
    phase: Phase,
    generation: Generation,
    /// Triggers that came since the last read began: the coalesced dirty flag.
    reasons: BTreeSet<Reason>,
    /// Owner nodes that are ours or may be, in this session.
    held: BTreeMap<TopicPartition, Holding>,
    /// Reads in a row that were overtaken by a trigger before their plan was claimed.
    overtaken: u32,
    /// The latest read, while it waits for unsettled nodes.
    snapshot: Option<GroupSnapshot>,
    /// What is to be ours.
    plan: Plan,
    /// Planned, but another's node is there: who it is.
    waiting: BTreeMap<TopicPartition, String>,
    /// Owner nodes of ours whose watch could not be set.
    unwatched: BTreeSet<TopicPartition>,
    /// The partitions of our topics at the last plan; `None` before the first.
    known: Option<BTreeSet<TopicPartition>>,
    /// Those that were not there at the first plan: they appeared under a running group.
    appeared: BTreeSet<TopicPartition>,
    /// Since when whole ownership is missing; `None` when stable.
    unsettled_since: Option<u64>,
    /// `Failing` was reported for this spell.
    failing: bool,
}

impl Machine {
    /// A member before its first session.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            session: None,
            phase: Phase::Idle,
            generation: Generation(0),
            reasons: BTreeSet::new(),
            held: BTreeMap::new(),
            overtaken: 0,
            snapshot: None,
            plan: Plan::new(),
            waiting: BTreeMap::new(),
            unwatched: BTreeSet::new(),
            known: None,
            appeared: BTreeSet::new(),
            unsettled_since: None,
            failing: false,
        }
    }

    /// A member whose coordinator was restarted: it is registered in `session`, and these owner nodes were
    /// found, by reads that watch, sent after everything that the old coordinator sent; those of another session are
    /// left out. Nothing is delivered from them yet. It begins with the next trigger ([`Reason::Restarted`]).
    pub fn adopt(
        settings: Settings,
        session: SessionNumber,
        generation: Generation,
        nodes: impl IntoIterator<Item = (TopicPartition, Owner)>,
    ) -> Self {
        let phase = Phase::BackingOff;
        let mut machine = Self { session: Some(session), phase, generation, ..Self::new(settings) };
        for (tp, owner) in nodes {
            if let Some(thread) = machine.our_thread(&owner) {
                machine.held.insert(tp, Holding::Stopped { thread });
            }
        }
        machine
    }

    /// What the member as a whole is waiting for.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The number of the current rebalance.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// The session that holds our registration.
    pub fn session(&self) -> Option<SessionNumber> {
        self.session
    }

    /// Partitions whose owner node is ours and from which records may be delivered.
    pub fn running(&self) -> impl Iterator<Item = (&TopicPartition, &ConsumerThreadId)> {
        self.held.iter().filter_map(|(tp, holding)| match holding {
            Holding::Running { thread, .. } => Some((tp, thread)),
            _ => None,
        })
    }

    /// Whether the partition is planned, and another's owner node is waited for to go.
    pub fn waits_for(&self, partition: &TopicPartition) -> bool {
        self.waiting.contains_key(partition)
    }

    /// Whether this partition's owner node is ours or may be.
    pub fn holds(&self, partition: &TopicPartition) -> bool {
        self.held.contains_key(partition)
    }

    /// Every partition whose owner node is ours or may be.
    pub fn held(&self) -> impl Iterator<Item = &TopicPartition> {
        self.held.keys()
    }

    /// Takes one input. `now` is in milliseconds of the driver's clock and never goes back.
    pub fn step(&mut self, now: u64, input: Input) -> Vec<Effect> {
        let mut out = Vec::new();
        match input {
            Input::SessionStarted => self.register(&mut out),
            Input::Reconnected => self.trigger(now, Reason::Reconnected, &mut out),
            Input::SessionExpired => self.expired(&mut out),
            Input::Registered { generation, outcome } if generation == self.generation => {
                self.registered(now, outcome, &mut out);
            }
            Input::RegistrationMissing if self.session.is_some() => self.register(&mut out),
            Input::Trigger(reason) => self.trigger(now, reason, &mut out),
            Input::GroupRead { generation, outcome } if generation == self.generation => {
                self.group_read(now, outcome, &mut out);
            }
            Input::Stopped { generation, partitions } => self.stopped(now, generation, &partitions, &mut out),
            Input::Released { session, partition, outcome } if Some(session) == self.session => {
                self.released(now, &partition, outcome, &mut out);
            }
            Input::Claimed { session, partition, answer } if Some(session) == self.session => {
                self.claimed(now, partition, answer, &mut out);
            }
            Input::OwnerRead { session, partition, outcome } if Some(session) == self.session => {
                self.owner_read(now, partition, outcome, &mut out);
            }
            Input::StartFailed { generation, partition, why } => {
                self.start_failed(now, generation, &partition, why, &mut out);
            }
            Input::TimerRang { generation } if generation == self.generation => {
                self.timer_rang(now, &mut out);
            }
            Input::Shutdown => self.leave(now, &mut out),
            // results of an earlier generation or session start nothing (INV-10)
            Input::Registered { .. }
            | Input::RegistrationMissing
            | Input::GroupRead { .. }
            | Input::Released { .. }
            | Input::Claimed { .. }
            | Input::OwnerRead { .. }
            | Input::TimerRang { .. } => {}
        }
        debug_assert!(self.is_sound(), "{self:?}");
        out
    }

    fn register(&mut self, out: &mut Vec<Effect>) {
        if self.phase != Phase::Leaving {
            self.bump();
            self.phase = Phase::Idle;
            out.push(Effect::Register { generation: self.generation });
        }
    }

    fn registered(&mut self, now: u64, outcome: Result<SessionNumber, String>, out: &mut Vec<Effect>) {
        match outcome {
            Ok(session) => {
                if self.session.is_some_and(|old| old != session) {
                    self.lose_session(out);
                }
                self.session = Some(session);
                self.reasons.insert(Reason::Joined);
                self.read(now, out);
            }
            Err(why) => self.back_off(now, why, out),
        }
    }

    fn expired(&mut self, out: &mut Vec<Effect>) {
        let had_session = self.lose_session(out);
        self.bump();
        match self.phase {
            Phase::Leaving if had_session => out.push(Effect::Leave),
            Phase::Leaving => {}
            _ => self.phase = Phase::Idle,
        }
    }

    /// Nothing of the old session is trusted, deleted or flushed (INV-7).
    fn lose_session(&mut self, out: &mut Vec<Effect>) -> bool {
        let partitions: BTreeSet<_> = mem::take(&mut self.held).into_keys().collect();
        self.unwatched.clear();
        self.plan.clear();
        self.snapshot = None;
        if !partitions.is_empty() {
            let why = "session expired".to_owned();
            out.push(Effect::Drop { partitions: partitions.clone(), why: why.clone() });
            out.push(Effect::Report(Progress::Lost { partitions, why }));
        }
        self.session.take().is_some()
    }

    /// Any number of triggers lead to one more read, which begins after the last of them (INV-9).
    fn trigger(&mut self, now: u64, reason: Reason, out: &mut Vec<Effect>) {
        self.reasons.insert(reason);
        match self.phase {
            // waits on an old plan are given up at once (rule 2)
            Phase::Stable | Phase::Claiming => self.read(now, out),
            // what failed may succeed now
            Phase::BackingOff if self.session.is_some() && reason != Reason::Failed => self.read(now, out),
            // handlers take their time: what the new plan drops must not begin to stop only after them (rule 6)
            Phase::Revoking if self.is_stopping() => {
                if self.is_overtaken() {
                    self.read(now, out);
                }
            }
            Phase::Idle | Phase::Reading | Phase::Revoking | Phase::BackingOff | Phase::Leaving => {}
        }
    }

    /// Whether to read again, because of what came since the last read, before acting on that.
    fn is_overtaken(&mut self) -> bool {
        let overtaken = !self.reasons.is_empty() && self.overtaken < OVERTAKEN_MAX;
        self.overtaken += u32::from(overtaken);
        overtaken
    }

    fn is_stopping(&self) -> bool {
        self.held.values().any(|holding| matches!(holding, Holding::Stopping { .. }))
    }

    fn back_off(&mut self, now: u64, why: String, out: &mut Vec<Effect>) {
        if self.phase == Phase::Leaving {
            return;
        }
        self.bump();
        self.phase = Phase::BackingOff;
        self.reasons.insert(Reason::Failed);
        out.push(Effect::Report(Progress::Retrying { generation: self.generation, why: why.clone() }));
        self.note_unsettled(now, why, out);
        out.push(Effect::SetTimer { generation: self.generation, at: now + self.settings.backoff });
    }

    fn timer_rang(&mut self, now: u64, out: &mut Vec<Effect>) {
        match self.phase {
            Phase::BackingOff if self.session.is_none() => self.register(out),
            Phase::BackingOff => self.read(now, out),
            Phase::Claiming => {
                let holders: Vec<_> =
                    self.waiting.iter().map(|(tp, holder)| format!("{tp} by {holder}")).collect();
                self.note_unsettled(now, format!("held: {}", holders.join(", ")), out);
                self.reasons.insert(Reason::StillWaiting);
                self.read(now, out);
            }
            Phase::Idle | Phase::Reading | Phase::Revoking | Phase::Stable | Phase::Leaving => {}
        }
    }

    /// Reports `Failing` once whole ownership has been missing for too long; never gives up.
    fn note_unsettled(&mut self, now: u64, why: String, out: &mut Vec<Effect>) {
        let since = *self.unsettled_since.get_or_insert(now);
        let limit = self.settings.max_retries * self.settings.backoff;
        if !self.failing && now.saturating_sub(since) >= limit {
            self.failing = true;
            out.push(Effect::Report(Progress::Failing { generation: self.generation, why }));
        }
    }

    /// What was asked for, and waited for, in the last generation counts no more.
    fn bump(&mut self) {
        self.generation.0 += 1;
        self.waiting.clear();
    }

    /// INV-11: in the stable phase every held node is planned, and every planned one held and running.
    fn is_sound(&self) -> bool {
        let planned = |(tp, holding): (&TopicPartition, &Holding)| match holding {
            Holding::Running { thread, .. } => self.plan.get(tp) == Some(thread),
            Holding::Unsettled { .. }
            | Holding::Stopping { .. }
            | Holding::Stopped { .. }
            | Holding::Releasing => false,
        };
        (self.phase != Phase::Stable || (self.held.iter().all(planned) && self.held.len() == self.plan.len()))
            && (self.session.is_some() || self.held.is_empty())
    }
}

#[cfg(test)]
#[path = "../machine_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "../machine_model.rs"]
mod model;
