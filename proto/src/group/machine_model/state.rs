//! What the model consists of: members with their machines, and one abstract ZooKeeper.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::super::{Machine, Settings};
use crate::TopicPartition;
use crate::group::{Effect, Generation, GroupSnapshot, Input, Member, Owner, SessionNumber, Strategy};
use crate::zk::ConsumerThreadId;

pub const TOPIC: &str = "t";

/// What happens to a delivery, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    Positioning,
    Delivering,
    /// Asked to stop: a handler still runs.
    Draining(Generation),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Delivery {
    pub session: SessionNumber,
    pub thread: ConsumerThreadId,
    pub stage: Stage,
    pub next: u8,
}

/// What the client has for the machine's driver, in ZooKeeper's order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Note {
    Input(Input),
    /// The watch on an owner node fired: it is read again.
    OwnerChanged(TopicPartition),
    /// The position that a start asked for.
    Position {
        session: SessionNumber,
        partition: TopicPartition,
        next: u8,
    },
}

/// One process with its machine, driver and ZooKeeper client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    pub alive: bool,
    pub streams: u32,
    pub machine: Machine,
    /// Of the client; the machine learns it when it registers.
    pub session: SessionNumber,
    /// The fence of rule 9; while it is closed the client is cut off too.
    pub lease: bool,
    /// Sent, and not executed yet.
    pub calls: VecDeque<Effect>,
    pub inbox: VecDeque<Note>,
    /// Answers of an ended session, told at any later time.
    pub late: Vec<Input>,
    pub deliveries: BTreeMap<TopicPartition, Delivery>,
    pub timer: Option<Generation>,
    /// Owner nodes that the driver wants watched.
    pub watched: BTreeSet<TopicPartition>,
    /// Positions read before the claim: only by a broken driver.
    pub early: BTreeMap<TopicPartition, u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Server {
    pub sessions: BTreeSet<SessionNumber>,
    pub ids: BTreeMap<usize, SessionNumber>,
    pub owners: BTreeMap<TopicPartition, Owner>,
    pub ids_watches: BTreeSet<usize>,
    pub owner_watches: BTreeSet<(usize, TopicPartition)>,
    pub stored: BTreeMap<TopicPartition, u8>,
    pub last_session: i64,
}

/// Faults that may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    pub crashes: u8,
    /// The lease ends: what follows is an expiry or a return within the session.
    pub pauses: u8,
    /// A connection breaks: requests in flight are executed or not, watches are lost.
    pub cuts: u8,
    /// Somebody else deletes an owner node.
    pub thefts: u8,
    /// A wait for another's node is ended by its timer.
    pub rings: u8,
    /// A member leaves as it should.
    pub leaves: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub processes: Vec<Process>,
    pub server: Server,
    pub budget: Budget,
    /// The end of what was ever delivered.
    pub delivered: BTreeMap<TopicPartition, u8>,
    /// Nodes of a live session that somebody else deleted: its owner cannot know at once.
    pub stolen: BTreeSet<(SessionNumber, TopicPartition)>,
    /// What a transition did that no state shows.
    pub broken: BTreeSet<&'static str>,
    pub faulty: bool,
}

impl Process {
    pub fn new(name: usize, streams: u32, session: SessionNumber) -> Self {
        let settings = Settings {
            consumer_id: id(name),
            strategy: Strategy::Range,
            backoff: 1,
            max_retries: 4,
            drain: 1,
        };
        Self {
            alive: true,
            streams,
            machine: Machine::new(settings),
            session,
            lease: true,
            calls: VecDeque::new(),
            inbox: VecDeque::from([Note::Input(Input::SessionStarted)]),
            late: Vec::new(),
            deliveries: BTreeMap::new(),
            timer: None,
            watched: BTreeSet::new(),
            early: BTreeMap::new(),
        }
    }

    /// Records of it may be handed over now, or still are in a handler.
    pub fn serves(&self, delivery: &Delivery) -> bool {
        self.alive && self.lease && delivery.session == self.session && delivery.stage != Stage::Positioning
    }

    pub fn is_idle(&self) -> bool {
        !self.alive || (self.lease && self.calls.is_empty() && self.inbox.is_empty() && self.late.is_empty())
    }

    pub fn timer_is_due(&self) -> bool {
        self.alive && self.timer == Some(self.machine.generation())
    }
}

impl State {
    pub fn snapshot(&self, partitions: i32) -> GroupSnapshot {
        let member = |name: &usize| Member {
            id: id(*name),
            topics: BTreeMap::from([(TOPIC.into(), self.processes[*name].streams)]),
        };
        GroupSnapshot {
            members: self.server.ids.keys().map(member).collect(),
            partitions: BTreeMap::from([(TOPIC.into(), (0..partitions).collect())]),
            brokers: 1,
        }
    }

    pub fn new_session(&mut self) -> SessionNumber {
        self.server.last_session += 1;
        let session = SessionNumber(self.server.last_session);
        self.server.sessions.insert(session);
        session
    }

    pub fn owns(&self, delivery: &Delivery, tp: &TopicPartition) -> bool {
        self.server.owners.get(tp).is_some_and(|owner| owner.is(delivery.session, &delivery.thread))
    }
}

pub fn id(name: usize) -> String {
    format!("g_{}", char::from(b'a' + u8::try_from(name).expect("few members")))
}
