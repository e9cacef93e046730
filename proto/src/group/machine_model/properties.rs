//! What must hold, by the names of design.md, and what must happen at all.

use std::collections::BTreeMap;

use stateright::Property;

use super::super::Holding;
use super::Group;
use super::state::{Stage, State};
use crate::TopicPartition;
use crate::group::{Effect, Phase, SessionNumber, Strategy};

/// Every `always` property: `broken` holds what only a transition shows.
pub fn properties() -> Vec<Property<Group>> {
    vec![
        Property::always("INV-1", |_, state: &State| state.only_owners_deliver()),
        Property::always("INV-2, INV-3", |_, state: &State| !state.broken.contains("INV-2")),
        Property::always("INV-4", |_, state: &State| !state.broken.contains("INV-4")),
        Property::always("INV-6: twice", |_, state: &State| !state.broken.contains("INV-6: twice")),
        Property::always("INV-6: gap", |_, state: &State| !state.broken.contains("INV-6: gap")),
        Property::always("INV-6, INV-8, INV-9", |group: &Group, state: &State| {
            !state.is_quiet() || state.is_whole(group)
        }),
        Property::always("INV-7", |_, state: &State| !state.broken.contains("INV-7")),
        Property::always("INV-10", |_, state: &State| !state.broken.contains("INV-10")),
        Property::always("INV-11", |group: &Group, state: &State| {
            !state.is_quiet() || state.nodes_are_planned(group)
        }),
        Property::always("rule 1", |_, state: &State| {
            !state.broken.iter().any(|what| what.starts_with("rule 1"))
        }),
        Property::always("rule 2", |_, state: &State| !state.broken.contains("rule 2")),
        Property::always("rule 5", |_, state: &State| !state.broken.contains("rule 5")),
    ]
}

/// What a scenario is about must happen in it, or its `always` properties say nothing.
pub fn wanted(what: &'static str) -> Property<Group> {
    let condition: fn(&Group, &State) -> bool = match what {
        "takeover" => |group, state| {
            let crashed = state.processes.iter().any(|process| !process.alive);
            crashed && state.is_quiet() && state.is_whole(group)
        },
        "new session" => |group, state| {
            let sessions = i64::try_from(state.processes.len()).expect("few");
            state.server.last_session > sessions && state.is_quiet() && state.is_whole(group)
        },
        "whole" => |group, state| state.is_quiet() && state.is_whole(group),
        "conflict" => |_, state| state.processes.iter().any(|process| !process.machine.waiting.is_empty()),
        "move" => |_, state| {
            let mut calls = state.processes.iter().flat_map(|process| &process.calls);
            calls.any(|call| matches!(call, Effect::Rethread { .. }))
        },
        "theft" => |_, state| !state.stolen.is_empty(),
        "record" => |_, state| state.delivered.values().any(|delivered| *delivered > 0),
        "slow handler" => |_, state| {
            let deliveries = state.processes.iter().flat_map(|process| process.deliveries.values());
            deliveries.into_iter().any(|delivery| matches!(delivery.stage, Stage::Draining(_)))
        },
        _ => unreachable!("no such property"),
    };
    Property::sometimes(what, condition)
}

impl State {
    fn only_owners_deliver(&self) -> bool {
        self.processes.iter().all(|process| {
            process.deliveries.iter().filter(|(_, delivery)| process.serves(delivery)).all(
                |(tp, delivery)| {
                    self.owns(delivery, tp) || self.stolen.contains(&(delivery.session, tp.clone()))
                },
            )
        })
    }

    /// Nothing is under way but, after a fault, a backoff. Without a fault nothing may need its timer.
    pub fn is_quiet(&self) -> bool {
        let draining = |stage: Stage| stage != Stage::Delivering;
        self.processes.iter().all(|process| {
            let timer = self.faulty && process.timer_is_due() && process.machine.phase() != Phase::Stable;
            let session = self.server.sessions.contains(&process.session);
            process.is_idle()
                && !process.deliveries.values().any(|delivery| draining(delivery.stage))
                && !timer
                && process.alive == session
        })
    }

    /// All that exists is owned and delivered as planned.
    pub fn is_whole(&self, group: &Group) -> bool {
        let delivered: BTreeMap<_, _> = self
            .processes
            .iter()
            .flat_map(|process| process.deliveries.iter().filter(|(_, delivery)| process.serves(delivery)))
            .map(|(tp, delivery)| (tp.clone(), delivery.thread.clone()))
            .collect();
        let settled = |process: &super::state::Process| process.machine.phase() == Phase::Stable;
        let plan = Strategy::Range.assign(&self.snapshot(group.partitions));
        delivered == plan
            && plan.keys().eq(self.server.owners.keys())
            && self.processes.iter().filter(|process| process.alive).all(settled)
    }

    fn nodes_are_planned(&self, group: &Group) -> bool {
        let plan = Strategy::Range.assign(&self.snapshot(group.partitions));
        self.server
            .owners
            .iter()
            .all(|(tp, owner)| plan.get(tp).is_some_and(|thread| thread.as_str() == owner.thread))
    }

    /// Before an effect is performed.
    pub fn check_effect(&mut self, name: usize, before: Phase, effect: &Effect) {
        let process = &self.processes[name];
        let machine = &process.machine;
        let serving = |tp: &TopicPartition| process.deliveries.contains_key(tp);
        let wrong = match effect {
            Effect::Release { partition, .. } | Effect::Rethread { partition, .. } if serving(partition) => {
                "INV-2"
            }
            Effect::Release { session, .. }
            | Effect::Claim { session, .. }
            | Effect::Rethread { session, .. }
            | Effect::ReadOwner { session, .. }
            | Effect::Start { session, .. }
                if Some(*session) != machine.session() =>
            {
                "INV-7"
            }
            Effect::Claim { .. } | Effect::Rethread { .. } | Effect::Start { .. }
                if !matches!(before, Phase::Reading | Phase::Revoking | Phase::Claiming) =>
            {
                "rule 2"
            }
            // what started it was no answer of this session (a thief may have come between)
            Effect::Start { session, partition, thread, .. }
                if self.server.sessions.contains(session)
                    && !self.server.owners.get(partition).is_some_and(|owner| owner.is(*session, thread))
                    && !self.stolen.contains(&(*session, partition.clone())) =>
            {
                "INV-10"
            }
            Effect::Stop { partitions, .. } => {
                let stays = |tp: &TopicPartition| {
                    let running = process.deliveries.get(tp).map(|delivery| &delivery.thread);
                    running.is_none() || machine.plan.get(tp) == running
                };
                match partitions.iter().any(stays) {
                    true => "rule 1: stays but is stopped",
                    false => return,
                }
            }
            _ => return,
        };
        self.broken.insert(wrong);
    }

    /// A node is deleted by its owner only to give it up.
    pub fn check_released(&mut self, name: usize, session: SessionNumber, tp: &TopicPartition) {
        let machine = &self.processes[name].machine;
        if machine.session() == Some(session) && machine.held.get(tp) != Some(&Holding::Releasing) {
            self.broken.insert("rule 5");
        }
    }
}
