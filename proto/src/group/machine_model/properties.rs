//! What must hold, by the names of design.md, and what must happen at all.

use std::collections::BTreeMap;

use stateright::Property;

use super::super::Holding;
use super::Group;
use super::state::{Path, Process, Stage, State};
use crate::TopicPartition;
use crate::group::{Effect, Owner, Phase, SessionNumber, Strategy};

/// Every `always` property: `broken` holds what only a transition shows.
pub fn properties() -> Vec<Property<Group>> {
    vec![
        Property::always("INV-1", |_, state: &State| state.only_owners_deliver()),
        Property::always("INV-2, INV-3", |_, state: &State| !state.broken.contains("INV-2")),
        Property::always("INV-4", |_, state: &State| !state.broken.contains("INV-4")),
        Property::always("INV-6: twice", |_, state: &State| !state.broken.contains("INV-6: twice")),
        Property::always("INV-6: gap", |_, state: &State| !state.broken.contains("INV-6: gap")),
        Property::always("INV-6, INV-8, INV-9", |_, state: &State| !state.is_quiet() || state.is_whole()),
        Property::always("INV-7", |_, state: &State| !state.broken.contains("INV-7")),
        Property::always("INV-10", |_, state: &State| !state.broken.contains("INV-10")),
        Property::always("INV-11", |_, state: &State| !state.is_quiet() || state.nodes_are_planned()),
        Property::always("rule 1", |_, state: &State| {
            !state.broken.iter().any(|what| what.starts_with("rule 1"))
        }),
        Property::always("rule 2", |_, state: &State| !state.broken.contains("rule 2")),
        Property::always("rule 5", |_, state: &State| !state.broken.contains("rule 5")),
        Property::always("rule 6", |_, state: &State| !state.broken.contains("rule 6")),
    ]
}

/// What a scenario is about must happen in it, or its `always` properties say nothing.
pub fn wanted(what: &'static str) -> Property<Group> {
    let condition: fn(&Group, &State) -> bool = match what {
        "takeover" => |_, state| {
            let crashed = state.processes.iter().any(|process| !process.alive);
            crashed && state.is_quiet() && state.is_whole()
        },
        "new session" => |_, state| {
            let sessions = i64::try_from(state.processes.len()).expect("few");
            state.server.last_session > sessions && state.is_quiet() && state.is_whole()
        },
        "whole" => |_, state| state.is_quiet() && state.is_whole(),
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
        what => return wanted_fault(what),
    };
    Property::sometimes(what, condition)
}

fn wanted_fault(what: &'static str) -> Property<Group> {
    let condition: fn(&Group, &State) -> bool = match what {
        "stale read" => |_, state| {
            let behind = |name| *state.look(name) != state.server.tree;
            let mut members = state.processes.iter().enumerate();
            members.any(|(name, process)| behind(name) && !process.inbox.is_empty())
        },
        "read after the end" => |_, state| {
            let ended = |process: &Process| !state.server.sessions.contains(&process.session);
            state.processes.iter().any(|it| it.cut_off && ended(it) && !it.inbox.is_empty())
        },
        "rejoined" => |_, state| {
            let all = state.processes.iter().all(|process| process.lease && !process.cut_off);
            let sessions = i64::try_from(state.processes.len()).expect("few");
            let same = state.server.last_session == sessions;
            all && same && state.budget.partings == 0 && state.is_quiet() && state.is_whole()
        },
        "adoption" => |_, state| {
            state.budget.panics == 0
                && state.processes.iter().any(|process| process.machine.held().count() > 0)
        },
        "overdue handler" => |_, state| {
            let mut deliveries = state.processes.iter().flat_map(|process| process.deliveries.values());
            deliveries.any(|it| matches!(it.stage, Stage::Draining(_)) && it.patience == 0 && it.handed)
        },
        "blind delete" => |_, state| !state.stolen.is_empty() && state.budget.thefts == 0,
        "repeated by a Scala member" => |_, state| !state.repeated.is_empty(),
        "reset" => |_, state| {
            let mut deliveries = state.processes.iter().flat_map(|process| process.deliveries.values());
            deliveries.any(|delivery| matches!(delivery.stage, Stage::Storing(_)))
        },
        "lowered" => |_, state| {
            state.budget.remakes == 0
                && state.remade.is_empty()
                && state.server.tree.stored.values().any(|it| *it == 0)
        },
        "growth" => |_, state| state.budget.growths == 0 && state.is_quiet() && state.is_whole(),
        "return" => |_, state| state.budget.returns == 0 && state.is_quiet() && state.is_whole(),
        "another's set" => |_, state| {
            let theirs = |process: &Process, owner: &Owner| {
                owner.session == process.session
                    && !owner.thread.starts_with(&process.machine.settings.consumer_id)
            };
            let mut owners = state.server.tree.owners.values();
            owners.any(|owner| state.processes.iter().any(|process| theirs(process, owner)))
        },
        "next session's create" => |_, state| {
            let made = |session: &SessionNumber| {
                let registered = state.server.tree.ids.values().any(|it| it.session == *session);
                !registered && state.server.tree.owners.values().any(|owner| owner.session == *session)
            };
            state.server.sessions.iter().any(made)
        },
        what => unreachable!("no such property: {what}"),
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

    /// Nothing is under way but, after a fault, a backoff, or a wait whose watch could not be set. Without a fault
    /// nothing may need its timer.
    pub fn is_quiet(&self) -> bool {
        let draining = |stage: Stage| stage != Stage::Delivering;
        self.processes.iter().enumerate().all(|(name, process)| {
            let watched =
                |tp: &TopicPartition| self.server.watches.contains(&(name, Path::Owner(tp.clone())));
            let needed = match process.machine.phase() {
                Phase::Stable => false,
                Phase::Claiming => !process.machine.waiting.keys().all(watched),
                _ => true,
            };
            let timer = self.faulty && process.timer_is_due() && needed;
            let session = self.server.sessions.contains(&process.session);
            process.is_idle()
                && !process.deliveries.values().any(|delivery| draining(delivery.stage))
                && !timer
                && process.alive == session
        })
    }

    /// All that exists is owned and delivered as planned.
    pub fn is_whole(&self) -> bool {
        let mut delivered: BTreeMap<_, _> = self
            .processes
            .iter()
            .flat_map(|process| process.deliveries.iter().filter(|(_, delivery)| process.serves(delivery)))
            .map(|(tp, delivery)| (tp.clone(), delivery.thread.clone()))
            .collect();
        for scala in self.processes.iter().filter_map(|process| process.scala.as_ref()) {
            delivered.extend(scala.owned().map(|(tp, thread)| (tp.clone(), thread.clone())));
        }
        let settled = |it: &Process| it.scala.is_some() || it.machine.phase() == Phase::Stable;
        let plan = Strategy::Range.assign(&self.server.tree.snapshot());
        delivered == plan
            && plan.keys().eq(self.server.tree.owners.keys())
            && self.processes.iter().filter(|process| process.alive).all(settled)
    }

    fn nodes_are_planned(&self) -> bool {
        let plan = Strategy::Range.assign(&self.server.tree.snapshot());
        self.server
            .tree
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
                    && !self
                        .server
                        .tree
                        .owners
                        .get(partition)
                        .is_some_and(|owner| owner.is(*session, thread))
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
        let asked = self.processes[name].orphans == 0 && machine.session() == Some(session);
        if asked && machine.held.get(tp) != Some(&Holding::Releasing) {
            self.broken.insert("rule 5");
        }
    }
}
