//! What the model consists of: members with their machines, and one abstract ZooKeeper.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::super::{Machine, Settings};
use super::follower::View;
use super::legacy::Scala;
use super::restart::Listing;
use crate::TopicPartition;
use crate::group::{Effect, Generation, GroupSnapshot, Input, Member, Owner, SessionNumber, Strategy};
use crate::zk::ConsumerThreadId;

pub const TOPIC: &str = "t";

/// Backoffs of a Scala member that a stop may outlast (rule 6): it fails for good at its fourth attempt, and
/// so sleeps three times; the third ends after ours.
pub const PATIENCE: u8 = 2;

/// What happens to a delivery, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    Positioning,
    /// No position is stored, or one that is not in the log: a broker is asked for one.
    Resolving,
    /// That one is being stored (rule 8).
    Storing(u8),
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
    /// Of a partition that appeared under a running group.
    pub appeared: bool,
    /// A record was handed over: there is something to commit.
    pub handed: bool,
    /// Backoffs of a Scala member that its stop may still outlast.
    pub patience: u8,
}

/// What the client has for the machine's driver, in ZooKeeper's order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Note {
    Input(Input),
    /// The watch on an owner node fired: it is read again.
    OwnerChanged(TopicPartition),
    /// The position that a start asked for; none is stored at first.
    Position {
        session: SessionNumber,
        partition: TopicPartition,
        next: Option<u8>,
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
    /// The fence of rule 9; while it is closed the client is cut off too, unless its follower is.
    pub lease: bool,
    /// What its follower shows, when that lags.
    pub view: Option<Box<View>>,
    /// Its follower has lost the leader, and answers reads only.
    pub cut_off: bool,
    /// Sent, and not executed yet.
    pub calls: VecDeque<Effect>,
    /// So many of these were sent by a coordinator that panicked: nobody waits for their answers.
    pub orphans: usize,
    pub listing: Option<Listing>,
    pub inbox: VecDeque<Note>,
    /// Answers of an ended session, told at any later time.
    pub late: Vec<Input>,
    pub deliveries: BTreeMap<TopicPartition, Delivery>,
    pub timer: Option<Generation>,
    /// Owner nodes that the driver wants watched.
    pub watched: BTreeSet<TopicPartition>,
    /// Positions read before the claim: only by a broken driver.
    pub early: BTreeMap<TopicPartition, u8>,
    /// Streams by name alone: only by a broken driver.
    pub cached: BTreeMap<usize, u32>,
    /// What it is instead of a machine, its driver and client.
    pub scala: Option<Box<Scala>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Registration {
    pub session: SessionNumber,
    pub streams: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tree {
    pub ids: BTreeMap<usize, Registration>,
    pub owners: BTreeMap<TopicPartition, Owner>,
    pub stored: BTreeMap<TopicPartition, u8>,
    pub partitions: i32,
}

/// What can be watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Path {
    Ids,
    Topics,
    Owner(TopicPartition),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Server {
    pub sessions: BTreeSet<SessionNumber>,
    /// As the leader has it.
    pub tree: Tree,
    pub watches: BTreeSet<(usize, Path)>,
    pub last_session: i64,
}

/// Faults that may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    pub crashes: u8,
    /// The lease ends: what follows is an expiry or a return within the session. A Scala member, which has no
    /// lease, expires.
    pub pauses: u8,
    /// A connection breaks: requests in flight are executed or not, watches are lost.
    pub cuts: u8,
    /// Somebody else deletes an owner node.
    pub thefts: u8,
    /// A wait for another's node is ended by its timer.
    pub rings: u8,
    /// A member leaves as it should.
    pub leaves: u8,
    /// One that left comes back with the same id and one stream more.
    pub returns: u8,
    /// A follower falls behind.
    pub lags: u8,
    /// A follower loses the leader, and answers reads for a while.
    pub partings: u8,
    /// A coordinator panics and is restarted.
    pub panics: u8,
    /// Records that are appended to some partition.
    pub appends: u8,
    /// A partition is added.
    pub growths: u8,
    /// The topic is deleted and made again, empty.
    pub remakes: u8,
    /// A tool sets a committed offset to the end of the log.
    pub seeks: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub processes: Vec<Process>,
    pub server: Server,
    pub budget: Budget,
    /// Where logs end that do not end where they all began.
    pub ends: BTreeMap<TopicPartition, u8>,
    /// Logs that were made again, which no consumer has noticed.
    pub remade: BTreeSet<TopicPartition>,
    /// The end of what was ever handled.
    pub delivered: BTreeMap<TopicPartition, u8>,
    /// Nodes of a live session that somebody else deleted: its owner cannot know at once.
    pub stolen: BTreeSet<(SessionNumber, TopicPartition)>,
    /// A Scala member took these over at a position that it had read before others went on.
    pub repeated: BTreeSet<TopicPartition>,
    /// What a transition did that no state shows.
    pub broken: BTreeSet<&'static str>,
    pub faulty: bool,
}

pub fn settings(name: usize) -> Settings {
    Settings { consumer_id: id(name), strategy: Strategy::Range, backoff: 1, max_retries: 4, drain: 1 }
}

impl Delivery {
    pub fn new(session: SessionNumber, thread: ConsumerThreadId, stage: Stage) -> Self {
        Self { session, thread, stage, next: 0, appeared: false, handed: false, patience: 0 }
    }
}

impl Process {
    pub fn new(name: usize, streams: u32, session: SessionNumber) -> Self {
        Self {
            alive: true,
            streams,
            machine: Machine::new(settings(name)),
            session,
            lease: true,
            view: None,
            cut_off: false,
            calls: VecDeque::new(),
            orphans: 0,
            listing: None,
            inbox: VecDeque::from([Note::Input(Input::SessionStarted)]),
            late: Vec::new(),
            deliveries: BTreeMap::new(),
            timer: None,
            watched: BTreeSet::new(),
            early: BTreeMap::new(),
            cached: BTreeMap::new(),
            scala: None,
        }
    }

    pub fn scala(name: usize, streams: u32, session: SessionNumber) -> Self {
        let scala = Some(Box::default());
        Self { scala, inbox: VecDeque::new(), ..Self::new(name, streams, session) }
    }

    /// Records of it may be handed over now, or still are in a handler.
    pub fn serves(&self, delivery: &Delivery) -> bool {
        let placed = matches!(delivery.stage, Stage::Delivering | Stage::Draining(_));
        self.alive && self.lease && delivery.session == self.session && placed
    }

    pub fn is_idle(&self) -> bool {
        let done = self.lease && self.calls.is_empty() && self.inbox.is_empty() && self.late.is_empty();
        !self.alive || (done && self.view.is_none() && self.scala.as_ref().is_none_or(|it| it.is_settled()))
    }

    pub fn timer_is_due(&self) -> bool {
        self.alive && self.timer == Some(self.machine.generation())
    }
}

impl Tree {
    pub fn snapshot(&self) -> GroupSnapshot {
        let member = |(name, registration): (&usize, &Registration)| Member {
            id: id(*name),
            topics: BTreeMap::from([(TOPIC.into(), registration.streams)]),
        };
        GroupSnapshot {
            members: self.ids.iter().map(member).collect(),
            partitions: BTreeMap::from([(TOPIC.into(), (0..self.partitions).collect())]),
            brokers: 1,
        }
    }

    pub fn partitions(&self) -> impl Iterator<Item = TopicPartition> + use<> {
        (0..self.partitions).map(|number| TopicPartition::new(TOPIC, number))
    }
}

impl State {
    pub fn new_session(&mut self) -> SessionNumber {
        self.server.last_session += 1;
        let session = SessionNumber(self.server.last_session);
        self.server.sessions.insert(session);
        session
    }

    pub fn owns(&self, delivery: &Delivery, tp: &TopicPartition) -> bool {
        self.server.tree.owners.get(tp).is_some_and(|owner| owner.is(delivery.session, &delivery.thread))
    }
}

pub fn id(name: usize) -> String {
    format!("g_{}", char::from(b'a' + u8::try_from(name).expect("few members")))
}
