//! One machine without a world, for examples.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::{ClaimAnswer, Effect, Generation, Input, Machine, Owner, Phase, Progress, Reason};
use super::super::{SessionNumber, Settings};
use crate::TopicPartition;
use crate::group::{GroupSnapshot, Member, Strategy};

pub const SESSION: SessionNumber = SessionNumber(7);
pub const OTHER: SessionNumber = SessionNumber(8);
pub const NOTHING: [&str; 0] = [];

pub fn tp(name: &str) -> TopicPartition {
    let (topic, number) = name.split_once('-').expect("topic-number");
    TopicPartition::new(topic, number.parse().expect("a number"))
}

pub fn names<'a>(partitions: impl IntoIterator<Item = &'a TopicPartition>) -> String {
    partitions.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// The effect in short; reports only where a test looks at them.
fn say(effect: &Effect) -> Option<String> {
    Some(match effect {
        Effect::Register { .. } => "register".to_owned(),
        Effect::ReadGroup { .. } => "read group".to_owned(),
        Effect::Stop { partitions, .. } => format!("stop {}", names(partitions)),
        Effect::Release { partition, .. } => format!("release {partition}"),
        Effect::Claim { partition, thread, .. } => format!("claim {partition} for {thread}"),
        Effect::Rethread { partition, thread, .. } => format!("move {partition} to {thread}"),
        Effect::ReadOwner { partition, .. } => format!("read owner {partition}"),
        Effect::Start { partition, thread, appeared: true, .. } => {
            format!("start new {partition} for {thread}")
        }
        Effect::Start { partition, thread, .. } => format!("start {partition} for {thread}"),
        Effect::Drop { partitions, .. } => format!("drop {}", names(partitions)),
        Effect::SetTimer { at, .. } => format!("wake at {at}"),
        Effect::Leave => "leave".to_owned(),
        Effect::Report(Progress::Failing { why, .. }) => format!("failing: {why}"),
        Effect::Report(_) => return None,
    })
}

/// The member and its clock.
pub struct Story {
    pub machine: Machine,
    pub now: u64,
}

impl Story {
    pub fn new() -> Self {
        let settings = Settings {
            consumer_id: "g_b".to_owned(),
            strategy: Strategy::Range,
            backoff: 2_000,
            max_retries: 4,
            drain: 4_000,
        };
        Self { machine: Machine::new(settings), now: 0 }
    }

    /// Registered, alone with one thread, and the owner of `a-0` and `a-1`.
    pub fn owner_of_two() -> Self {
        let mut b = Self::new();
        b.told(Input::SessionStarted);
        b.registered(SESSION);
        b.group(&[("g_b", 1)], 2);
        b.created("a-0");
        b.created("a-1");
        assert_eq!(b.machine.phase(), Phase::Stable);
        b
    }

    pub fn told(&mut self, input: Input) -> Vec<String> {
        self.machine.step(self.now, input).iter().filter_map(say).collect()
    }

    pub fn generation(&self) -> Generation {
        self.machine.generation()
    }

    pub fn registered(&mut self, session: SessionNumber) -> Vec<String> {
        let generation = self.generation();
        self.told(Input::Registered { generation, outcome: Ok(session) })
    }

    /// The group is read: its members and their threads, and how many partitions topic `a` has.
    pub fn group(&mut self, members: &[(&str, u32)], partitions: i32) -> Vec<String> {
        let member = |(id, threads): &(&str, u32)| Member {
            id: (*id).to_owned(),
            topics: BTreeMap::from([(Arc::from("a"), *threads)]),
        };
        let snapshot = GroupSnapshot {
            members: members.iter().map(member).collect(),
            partitions: BTreeMap::from([(Arc::from("a"), (0..partitions).collect())]),
            brokers: 1,
        };
        let generation = self.generation();
        self.told(Input::GroupRead { generation, outcome: Ok(snapshot) })
    }

    pub fn triggered(&mut self, reason: Reason) -> Vec<String> {
        self.told(Input::Trigger(reason))
    }

    pub fn claimed(&mut self, partition: &str, answer: ClaimAnswer) -> Vec<String> {
        self.told(Input::Claimed { session: SESSION, partition: tp(partition), answer })
    }

    pub fn created(&mut self, partition: &str) -> Vec<String> {
        self.claimed(partition, ClaimAnswer::Created)
    }

    pub fn unknown(&mut self, partition: &str) -> Vec<String> {
        self.claimed(partition, ClaimAnswer::Unknown("connection loss".to_owned()))
    }

    pub fn occupied(&mut self, partition: &str, session: SessionNumber, thread: &str) -> Vec<String> {
        self.claimed(partition, ClaimAnswer::Held(Owner { session, thread: thread.to_owned() }))
    }

    pub fn owner_is(&mut self, partition: &str, owner: Option<(SessionNumber, &str)>) -> Vec<String> {
        let outcome = Ok(owner.map(|(session, thread)| Owner { session, thread: thread.to_owned() }));
        self.told(Input::OwnerRead { session: SESSION, partition: tp(partition), outcome })
    }

    pub fn owner_unknown(&mut self, partition: &str) -> Vec<String> {
        let outcome = Err("connection loss".to_owned());
        self.told(Input::OwnerRead { session: SESSION, partition: tp(partition), outcome })
    }

    pub fn stopped(&mut self, partition: &str) -> Vec<String> {
        let generation = self.generation();
        self.told(Input::Stopped { generation, partitions: BTreeSet::from([tp(partition)]) })
    }

    pub fn released(&mut self, partition: &str) -> Vec<String> {
        self.told(Input::Released { session: SESSION, partition: tp(partition), outcome: Ok(()) })
    }

    pub fn not_released(&mut self, partition: &str) -> Vec<String> {
        let outcome = Err("connection loss".to_owned());
        self.told(Input::Released { session: SESSION, partition: tp(partition), outcome })
    }

    pub fn rings(&mut self, later: u64) -> Vec<String> {
        self.now += later;
        let generation = self.generation();
        self.told(Input::TimerRang { generation })
    }
}
