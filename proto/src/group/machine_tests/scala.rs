//! A Scala member: stops the world, releases all, reads again, claims all; on any conflict gives back all
//! and tries again after the backoff, four times. It deletes without looking whose node it is, takes a node
//! with its own thread id for its own whatever the session, and repeats operations in the next session.

use std::collections::{BTreeMap, BTreeSet};

use super::peer::{Kind, Tag};
use super::server::{Op, Path, Reply, Topics};
use super::world::{BACKOFF, Event, World};
use crate::TopicPartition;
use crate::group::{GroupSnapshot, Member, Strategy};

const ATTEMPTS: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Committing,
    Releasing,
    Reading,
    Positioning,
    Claiming,
    GivingBack,
    Sleeping,
}

pub struct Scala {
    /// What it thinks it owns: partition to thread id.
    pub registry: BTreeMap<TopicPartition, String>,
    /// Position and start of what it delivers.
    serving: BTreeMap<TopicPartition, (i64, u64)>,
    stage: Stage,
    dirty: bool,
    pub gave_up: bool,
    attempt: u32,
    pending: usize,
    members: Option<Vec<Member>>,
    topics: Option<Topics>,
    plan: BTreeMap<TopicPartition, String>,
    positions: BTreeMap<TopicPartition, i64>,
    obtained: BTreeSet<TopicPartition>,
    /// Requests to be sent again once it is connected.
    pub again: Vec<(Tag, Op)>,
}

impl Scala {
    pub fn new() -> Self {
        Self {
            registry: BTreeMap::new(),
            serving: BTreeMap::new(),
            stage: Stage::Idle,
            dirty: false,
            gave_up: false,
            attempt: 0,
            pending: 0,
            members: None,
            topics: None,
            plan: BTreeMap::new(),
            positions: BTreeMap::new(),
            obtained: BTreeSet::new(),
            again: Vec::new(),
        }
    }

    pub fn is_settled(&self) -> bool {
        self.stage == Stage::Idle && !self.gave_up && self.serving.keys().eq(self.registry.keys())
    }
}

impl World {
    pub fn scala(&mut self, peer: usize) -> &mut Scala {
        match &mut self.peers[peer].kind {
            Kind::Scala(scala) => scala,
            Kind::Troupe(_) => unreachable!("a Scala member's event at a machine"),
        }
    }

    fn ask(&mut self, peer: usize, tag: Tag, op: Op) {
        let link = &self.peers[peer].link;
        let session = link.session;
        if link.up {
            self.call(peer, session, tag, op);
        } else {
            self.scala(peer).again.push((tag, op));
        }
    }

    pub fn scala_joins(&mut self, peer: usize) {
        self.scala_registers(peer);
        self.scala_triggered(peer);
    }

    pub fn scala_registers(&mut self, peer: usize) {
        let member = self.peers[peer].member();
        self.scalas.insert(self.peers[peer].link.session);
        self.ask(peer, Tag::ScalaRegister, Op::Register(member));
    }

    /// Its node of an older session may still be there.
    pub fn scala_registered(&mut self, peer: usize, reply: &Reply) {
        let life = self.peers[peer].life;
        match reply {
            Reply::Registered(_) => self.scala_triggered(peer),
            _ => self.soon(100, 100, Event::ScalaRegisters { peer, life }),
        }
    }

    pub fn scala_triggered(&mut self, peer: usize) {
        let scala = self.scala(peer);
        scala.dirty = true;
        if scala.stage == Stage::Idle {
            let life = self.peers[peer].life;
            self.soon(1, 20, Event::ScalaWakes { peer, life });
        }
    }

    pub fn scala_wakes(&mut self, peer: usize) {
        let scala = self.scala(peer);
        match scala.stage {
            Stage::Idle if scala.dirty => {
                scala.attempt = 0;
                scala.dirty = false;
                scala.gave_up = false;
                self.attempt(peer);
            }
            Stage::Sleeping => self.attempt(peer),
            _ => {}
        }
    }

    fn attempt(&mut self, peer: usize) {
        let now = self.now;
        let scala = self.scala(peer);
        scala.attempt += 1;
        scala.stage = Stage::Committing;
        let serving = std::mem::take(&mut scala.serving);
        scala.pending = serving.len();
        for (tp, (from, since)) in serving {
            let next = from + i64::try_from((now - since) / 5).expect("short");
            let delivered = self.delivered.entry(tp.clone()).or_insert(0);
            *delivered = next.max(*delivered);
            self.ask(peer, Tag::Scala(tp.clone()), Op::WriteOffset(tp, next, None));
        }
        self.scala_goes_on(peer);
    }

    pub fn scala_answered(&mut self, peer: usize, tag: Tag, reply: Reply) {
        let scala = self.scala(peer);
        match (&tag, reply) {
            (Tag::ScalaGroup, Reply::Ids(members)) => {
                scala.members = Some(members);
                scala.pending -= 1;
            }
            (Tag::ScalaGroup, Reply::Topics(topics)) => {
                scala.topics = Some(topics);
                scala.pending -= 1;
            }
            (Tag::Scala(tp), Reply::Offset(offset)) => {
                scala.positions.insert(tp.clone(), offset.map_or(0, |(value, _)| value));
                scala.pending -= 1;
            }
            (Tag::Scala(tp), Reply::Exists) => {
                return self.ask(peer, tag.clone(), Op::Read(Path::Owner(tp.clone())));
            }
            (Tag::Scala(tp), Reply::Owner(owner)) => {
                if owner.is_some_and(|owner| Some(&owner.thread) == scala.plan.get(tp)) {
                    scala.obtained.insert(tp.clone());
                }
                scala.pending -= 1;
            }
            (Tag::Scala(tp), Reply::Done) => {
                if scala.stage == Stage::Claiming {
                    scala.obtained.insert(tp.clone());
                }
                scala.pending -= 1;
            }
            _ => scala.pending -= 1,
        }
        self.scala_goes_on(peer);
    }

    /// From one stage to the next, once all its requests are answered.
    fn scala_goes_on(&mut self, peer: usize) {
        while self.scala(peer).pending == 0 {
            match self.scala(peer).stage {
                Stage::Idle | Stage::Sleeping => return,
                Stage::Committing => self.scala_releases(peer),
                Stage::Releasing => self.scala_reads(peer),
                Stage::Reading => self.scala_plans(peer),
                Stage::Positioning => self.scala_claims(peer),
                Stage::Claiming => self.scala_owns(peer),
                Stage::GivingBack => self.scala_sleeps(peer),
            }
        }
    }

    fn scala_asks(&mut self, peer: usize, stage: Stage, requests: Vec<(Tag, Op)>) {
        let scala = self.scala(peer);
        scala.stage = stage;
        scala.pending = requests.len();
        for (tag, op) in requests {
            self.ask(peer, tag, op);
        }
    }

    fn scala_releases(&mut self, peer: usize) {
        let registry = std::mem::take(&mut self.scala(peer).registry);
        let delete = |tp: TopicPartition| (Tag::Scala(tp.clone()), Op::DeleteOwner(tp, None));
        self.scala_asks(peer, Stage::Releasing, registry.into_keys().map(delete).collect());
    }

    fn scala_reads(&mut self, peer: usize) {
        let reads = [Path::Ids, Path::Topics].map(|path| (Tag::ScalaGroup, Op::Read(path)));
        self.scala_asks(peer, Stage::Reading, reads.into());
    }

    fn scala_plans(&mut self, peer: usize) {
        let id = self.peers[peer].id.clone();
        let scala = self.scala(peer);
        let (Some(members), Some(partitions)) = (scala.members.take(), scala.topics.take()) else {
            return self.scala_sleeps(peer);
        };
        let snapshot = GroupSnapshot { members, partitions, brokers: 1 };
        if snapshot.member(&id).is_none() {
            return self.scala_sleeps(peer);
        }
        let plan = Strategy::Range.assign_to(&snapshot, &id);
        scala.plan = plan.into_iter().map(|(tp, thread)| (tp, thread.as_str().to_owned())).collect();
        scala.obtained.clear();
        let read = |tp: &TopicPartition| (Tag::Scala(tp.clone()), Op::ReadOffset(tp.clone()));
        let reads = scala.plan.keys().map(read).collect();
        self.scala_asks(peer, Stage::Positioning, reads);
    }

    fn scala_claims(&mut self, peer: usize) {
        let create = |(tp, thread): (&TopicPartition, &String)| {
            (Tag::Scala(tp.clone()), Op::CreateOwner(tp.clone(), thread.clone()))
        };
        let creates = self.scala(peer).plan.iter().map(create).collect();
        self.scala_asks(peer, Stage::Claiming, creates);
    }

    fn scala_owns(&mut self, peer: usize) {
        let now = self.now;
        let scala = self.scala(peer);
        if scala.plan.keys().all(|tp| scala.obtained.contains(tp)) {
            scala.registry.clone_from(&scala.plan);
            let position = |tp: &TopicPartition| scala.positions.get(tp).copied().unwrap_or(0);
            scala.serving = scala.plan.keys().map(|tp| (tp.clone(), (position(tp), now))).collect();
            scala.stage = Stage::Idle;
            if scala.dirty {
                self.scala_triggered(peer);
            }
            return;
        }
        let obtained = std::mem::take(&mut scala.obtained);
        let delete = |tp: TopicPartition| (Tag::Scala(tp.clone()), Op::DeleteOwner(tp, None));
        self.scala_asks(peer, Stage::GivingBack, obtained.into_iter().map(delete).collect());
    }

    fn scala_sleeps(&mut self, peer: usize) {
        let life = self.peers[peer].life;
        let scala = self.scala(peer);
        if scala.attempt < ATTEMPTS {
            scala.stage = Stage::Sleeping;
        } else {
            scala.stage = Stage::Idle;
            scala.gave_up = true;
            if self.clean {
                self.fail("rule 6: a Scala member gave up although nothing failed");
            }
            let scala = self.scala(peer);
            if !scala.dirty {
                return;
            }
        }
        self.at(self.now + BACKOFF, Event::ScalaWakes { peer, life });
    }

    pub fn scala_connected(&mut self, peer: usize) {
        for (tag, op) in std::mem::take(&mut self.scala(peer).again) {
            self.ask(peer, tag, op);
        }
        self.scala_triggered(peer);
    }

    /// The registry is forgotten without commit or delete; what was under way is repeated in the new session.
    pub fn scala_session_replaced(&mut self, peer: usize) {
        let scala = self.scala(peer);
        scala.registry.clear();
        let again = std::mem::take(&mut scala.again);
        self.scala_registers(peer);
        for (tag, op) in again {
            self.ask(peer, tag, op);
        }
        self.scala_triggered(peer);
    }

    /// A member that gave up waits for a trigger; here its user restarts it.
    pub fn kick_scala(&mut self) -> bool {
        let given_up = |peer: &super::peer::Peer| {
            peer.alive && matches!(&peer.kind, Kind::Scala(scala) if scala.gave_up)
        };
        let Some(peer) = self.peers.iter().position(given_up) else { return false };
        if self.kicks >= 3 {
            self.fail("a Scala member gave up again and again");
        }
        self.scala_triggered(peer);
        true
    }
}
