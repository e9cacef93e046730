//! The world in which machines are tested: time, connections and faults, all from one seed.
//!
//! Each peer (a machine with its driver, or a Scala member) has one connection to the fake ZooKeeper. Requests
//! arrive, are executed and are answered in order, each after a random delay. Watches fire after a random
//! delay of their own. When a connection breaks, what was in flight is executed or not, and answered as lost.
//! A peer's lease ends before the server may expire its session (design rule 9).

use std::collections::{BTreeMap, BTreeSet};

use super::chance::Chance;
use super::faults::Fault;
use super::peer::{Peer, Tag};
use super::server::{Op, OwnerChange, Path, Reply, Server};
use crate::TopicPartition;
use crate::group::{Generation, Input, SessionNumber};

pub const SESSION_TIMEOUT: u64 = 600;
pub const BACKOFF: u64 = 200;
pub const DRAIN: u64 = 60;
/// Faults stop here.
const QUIET_AT: u64 = 2_500;
/// By then everything must have settled.
const SETTLED_BY: u64 = QUIET_AT + 8_000;

#[derive(Clone, Debug)]
pub enum Event {
    Arrive {
        peer: usize,
        epoch: u64,
        call: u64,
    },
    Answer {
        peer: usize,
        epoch: u64,
        call: u64,
        reply: Reply,
    },
    Lost {
        peer: usize,
        life: u64,
        session: SessionNumber,
        tag: Tag,
    },
    Watch {
        peer: usize,
        session: SessionNumber,
        epoch: u64,
        path: Path,
    },
    /// Requests that were on their way when the connection broke get through after all.
    Late {
        session: SessionNumber,
        ops: Vec<Op>,
    },
    Expire {
        peer: usize,
        session: SessionNumber,
        epoch: u64,
    },
    Reconnect {
        peer: usize,
        life: u64,
        fresh: bool,
    },
    Input {
        peer: usize,
        life: u64,
        input: Input,
    },
    Timer {
        peer: usize,
        life: u64,
        at: u64,
        generation: Generation,
    },
    Drained {
        peer: usize,
        life: u64,
        partition: TopicPartition,
        generation: Generation,
    },
    Relist {
        peer: usize,
        life: u64,
    },
    ScalaWakes {
        peer: usize,
        life: u64,
    },
    ScalaRegisters {
        peer: usize,
        life: u64,
    },
    Usurped {
        session: SessionNumber,
        partition: TopicPartition,
        since: u64,
    },
    Fault(Fault),
    Quiet,
}

pub struct World {
    pub seed: u64,
    pub now: u64,
    pub chance: Chance,
    pub server: Server,
    pub peers: Vec<Peer>,
    pub quiet: bool,
    /// No fault but joins, leaves and new partitions: then nothing is delivered twice.
    pub clean: bool,
    /// Nodes of a live session that somebody else deleted: its owner cannot know at once.
    pub usurped: BTreeMap<(SessionNumber, TopicPartition), u64>,
    /// The end of what was ever delivered.
    pub delivered: BTreeMap<TopicPartition, i64>,
    /// Sessions of Scala members.
    pub scalas: BTreeSet<SessionNumber>,
    /// How often what happened.
    pub seen: BTreeMap<&'static str, u64>,
    pub kicks: u32,
    pub steps: u64,
    trace: bool,
    queue: BTreeMap<(u64, u64), Event>,
    pub scheduled: u64,
}

impl World {
    pub fn new(seed: u64, trace: bool) -> Self {
        let mut world = Self {
            seed,
            now: 0,
            chance: Chance::new(seed),
            server: Server::new(BTreeMap::new()),
            peers: Vec::new(),
            quiet: false,
            clean: false,
            usurped: BTreeMap::new(),
            delivered: BTreeMap::new(),
            scalas: BTreeSet::new(),
            seen: BTreeMap::new(),
            kicks: 0,
            steps: 0,
            trace,
            queue: BTreeMap::new(),
            scheduled: 0,
        };
        world.cast();
        world.at(QUIET_AT, Event::Quiet);
        world
    }

    /// Runs until nothing happens any more, then everything must be settled.
    pub fn run(mut self) -> Self {
        while let Some(((at, _), event)) = self.queue.pop_first() {
            self.now = at;
            self.steps += 1;
            if at > SETTLED_BY {
                self.fail("it never settles");
            }
            self.happen(event);
            self.settle_server();
            if self.queue.is_empty() && self.kick_scala() {
                self.kicks += 1;
            }
        }
        self.check_settled();
        self
    }

    pub fn fail(&self, what: &str) -> ! {
        panic!("seed {} at {} ms: {what}", self.seed, self.now)
    }

    pub fn log(&self, line: impl FnOnce() -> String) {
        if self.trace {
            println!("{:>6} {}", self.now, line());
        }
    }

    pub fn at(&mut self, at: u64, event: Event) {
        self.scheduled += 1;
        self.queue.insert((at, self.scheduled), event);
    }

    pub fn soon(&mut self, low: u64, high: u64, event: Event) {
        let at = self.now + self.chance.between(low, high);
        self.at(at, event);
    }

    fn happen(&mut self, event: Event) {
        if let Some(until) = self.paused(&event) {
            return self.at(until, event);
        }
        self.log(|| format!("{event:?}"));
        match event {
            Event::Arrive { peer, epoch, call } => self.arrive(peer, epoch, call),
            Event::Answer { peer, epoch, call, reply } if epoch == self.peers[peer].link.epoch => {
                if let Some(call) = self.peers[peer].link.calls.remove(&call) {
                    self.answered(peer, call.session, call.tag, reply);
                }
            }
            Event::Watch { peer, session, epoch, path } => {
                let link = &self.peers[peer].link;
                if self.peers[peer].alive && link.session == session && link.epoch == epoch {
                    self.watch_fired(peer, path);
                }
            }
            Event::Late { session, ops } => {
                for op in ops {
                    self.server.execute(self.now, session, 0, op);
                }
            }
            Event::Expire { peer, session, epoch } => {
                let link = &self.peers[peer].link;
                if link.session != session || link.epoch == epoch || !self.peers[peer].alive {
                    self.server.end(self.now, session, true);
                }
            }
            Event::Usurped { session, partition, since } => self.check_told(session, &partition, since),
            Event::Fault(fault) => self.strike(fault),
            Event::Quiet => self.calm_down(),
            event => self.happen_inside(event),
        }
    }

    /// What happens in a process, if it is still the same.
    fn happen_inside(&mut self, event: Event) {
        match event {
            Event::Lost { peer, life, session, tag } if self.lives(peer, life) => {
                self.answered(peer, session, tag, Reply::Lost);
            }
            Event::Reconnect { peer, life, fresh } if self.lives(peer, life) => self.reconnect(peer, fresh),
            Event::Input { peer, life, input } if self.lives(peer, life) => self.input(peer, input),
            Event::Timer { peer, life, at, generation } if self.lives(peer, life) => {
                self.timer(peer, at, generation);
            }
            Event::Drained { peer, life, partition, generation } if self.lives(peer, life) => {
                self.drained(peer, partition, generation);
            }
            Event::Relist { peer, life } if self.lives(peer, life) => self.list_nodes(peer),
            Event::ScalaWakes { peer, life } if self.lives(peer, life) => self.scala_wakes(peer),
            Event::ScalaRegisters { peer, life } if self.lives(peer, life) => self.scala_registers(peer),
            _ => {}
        }
    }

    fn lives(&self, peer: usize, life: u64) -> bool {
        self.peers[peer].alive && self.peers[peer].life == life
    }

    /// What happens inside a paused process waits until it goes on.
    fn paused(&self, event: &Event) -> Option<u64> {
        let peer = match event {
            Event::Input { peer, .. }
            | Event::Lost { peer, .. }
            | Event::Timer { peer, .. }
            | Event::Drained { peer, .. }
            | Event::ScalaWakes { peer, .. } => *peer,
            _ => return None,
        };
        let until = self.peers[peer].paused_until;
        (until > self.now).then_some(until)
    }

    /// Hands out what the server did: watches, and owner nodes that changed.
    fn settle_server(&mut self) {
        let changes: Vec<OwnerChange> = std::mem::take(&mut self.server.changes);
        for change in changes {
            self.check_change(change);
        }
        for (session, tp, before, after) in std::mem::take(&mut self.server.commits) {
            self.check_commit(session, &tp, before, after);
        }
        for (session, path) in std::mem::take(&mut self.server.fired) {
            if let Some(peer) = self.peers.iter().position(|peer| peer.link.session == session) {
                let epoch = self.peers[peer].link.epoch;
                self.soon(1, 30, Event::Watch { peer, session, epoch, path });
            }
        }
    }

    fn answered(&mut self, peer: usize, session: SessionNumber, tag: Tag, reply: Reply) {
        match tag {
            Tag::Ignored => {}
            Tag::ScalaRegister => self.scala_registered(peer, &reply),
            Tag::Scala(_) | Tag::ScalaGroup => self.scala_answered(peer, tag, reply),
            tag => self.driver_answered(peer, session, tag, reply),
        }
    }
}
