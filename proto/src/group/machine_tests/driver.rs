//! A machine with its driver: performs effects as operations, and models delivery.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{Machine, Settings};
use super::checks::is_stale;
use super::delivery::{Delivery, Stage};
use super::peer::{Kind, Tag};
use super::restart::Listing;
use super::server::{Op, OwnerNode, Path, Reply, Topics};
use super::world::{BACKOFF, DRAIN, Event, SESSION_TIMEOUT, World};
use crate::TopicPartition;
use crate::group::{
    ClaimAnswer, Effect, Generation, GroupSnapshot, Input, Member, Owner, Phase, Reason, SessionNumber,
    Strategy,
};

pub struct Driver {
    pub machine: Machine,
    pub deliveries: BTreeMap<TopicPartition, Delivery>,
    /// Owner nodes that are watched.
    pub watched: BTreeSet<TopicPartition>,
    pub reads: BTreeMap<Generation, Read>,
    pub timer: Option<(Generation, u64)>,
    pub listing: Option<Listing>,
    pub left: bool,
}

/// A group read under way: three requests.
#[derive(Default)]
pub struct Read {
    answers: usize,
    members: Option<Vec<Member>>,
    topics: Option<Topics>,
    brokers: Option<usize>,
}

impl Driver {
    pub fn new(id: &str) -> Self {
        Self {
            machine: Machine::new(settings(id)),
            deliveries: BTreeMap::new(),
            watched: BTreeSet::new(),
            reads: BTreeMap::new(),
            timer: None,
            listing: None,
            left: false,
        }
    }
}

pub fn settings(id: &str) -> Settings {
    Settings {
        consumer_id: id.to_owned(),
        strategy: Strategy::Range,
        backoff: BACKOFF,
        max_retries: 4,
        drain: DRAIN,
    }
}

pub fn owner_of(node: OwnerNode) -> Owner {
    Owner { session: node.session, thread: node.thread }
}

impl World {
    pub fn driver(&mut self, peer: usize) -> &mut Driver {
        match &mut self.peers[peer].kind {
            Kind::Troupe(driver) => driver,
            Kind::Scala(_) => unreachable!("a machine's event at a Scala member"),
        }
    }

    pub fn input(&mut self, peer: usize, input: Input) {
        let now = self.now;
        let driver = self.driver(peer);
        if driver.listing.is_some() {
            return self.input_while_listing(peer, &input);
        }
        let before = driver.machine.clone();
        let effects = driver.machine.step(now, input.clone());
        self.note_rare(&before, &input);
        let driver = self.driver(peer);
        if is_stale(&input, &before) && (driver.machine != before || !effects.is_empty()) {
            self.fail(&format!("INV-10: the stale {input:?} led to {effects:?}"));
        }
        self.log(|| format!("  peer {peer}: {input:?}"));
        for effect in effects {
            self.log(|| format!("    {effect:?}"));
            self.check_effect(peer, before.phase(), &effect);
            self.perform(peer, effect);
        }
        self.check_deliveries(peer);
    }

    fn perform(&mut self, peer: usize, effect: Effect) {
        let session = self.peers[peer].link.session;
        match effect {
            Effect::Register { generation } => {
                let member = self.peers[peer].member();
                self.call(peer, session, Tag::Register(generation), Op::Register(member));
            }
            Effect::ReadGroup { generation } => {
                for path in [Path::Ids, Path::Topics, Path::Brokers] {
                    self.call(peer, session, Tag::Group(generation), Op::Read(path));
                }
            }
            Effect::Stop { generation, partitions, .. } => {
                for tp in partitions {
                    self.stop(peer, tp, generation);
                }
            }
            Effect::Start { generation, session, partition, thread, .. } => {
                self.start(peer, generation, session, partition, thread);
            }
            Effect::Drop { partitions, why } => {
                self.saw(if why == "session expired" { "an expiry of an owner" } else { "a theft" });
                partitions.iter().for_each(|tp| self.cut(peer, tp));
            }
            Effect::SetTimer { generation, at } => {
                self.driver(peer).timer = Some((generation, at));
                let life = self.peers[peer].life;
                self.at(at, Event::Timer { peer, life, at, generation });
            }
            Effect::Report(progress) => self.note_progress(&progress),
            Effect::Leave => self.leave(peer),
            effect => self.perform_on_owner(peer, effect),
        }
    }

    fn perform_on_owner(&mut self, peer: usize, effect: Effect) {
        match effect {
            Effect::Release { session, partition } => {
                let read = Op::Read(Path::Owner(partition.clone()));
                self.call(peer, session, Tag::ReleaseRead(partition), read);
            }
            Effect::Claim { session, partition, thread } => {
                let create = Op::CreateOwner(partition.clone(), thread.as_str().to_owned());
                self.call(peer, session, Tag::Claim(partition, thread), create);
            }
            Effect::Rethread { session, partition, thread } => {
                self.saw("a move between threads");
                let read = Op::Read(Path::Owner(partition.clone()));
                self.call(peer, session, Tag::MoveRead(partition, thread), read);
            }
            Effect::ReadOwner { session, partition } => self.read_owner(peer, session, partition),
            effect => unreachable!("{effect:?}"),
        }
    }

    fn read_owner(&mut self, peer: usize, session: SessionNumber, tp: TopicPartition) {
        self.driver(peer).watched.insert(tp.clone());
        self.call(peer, session, Tag::Owner(tp.clone()), Op::Read(Path::Owner(tp)));
    }

    pub fn timer(&mut self, peer: usize, at: u64, generation: Generation) {
        if self.driver(peer).timer == Some((generation, at)) {
            self.input(peer, Input::TimerRang { generation });
        }
    }

    fn leave(&mut self, peer: usize) {
        let driver = self.driver(peer);
        if std::mem::replace(&mut driver.left, true) {
            self.fail("left twice");
        }
        let session = self.peers[peer].link.session;
        if self.peers[peer].link.up {
            self.call(peer, session, Tag::Ignored, Op::Close);
        }
        self.peers[peer].alive = false;
        let epoch = self.peers[peer].link.epoch;
        self.at(self.now + SESSION_TIMEOUT, Event::Expire { peer, session, epoch });
    }

    pub fn watch_fired(&mut self, peer: usize, path: Path) {
        if let Kind::Scala(_) = self.peers[peer].kind {
            return self.scala_triggered(peer);
        }
        let reason = match path {
            Path::Ids => Reason::ConsumersChanged,
            Path::Topics => Reason::PartitionsChanged,
            Path::Brokers => Reason::BrokersChanged,
            Path::Owner(tp) => {
                let session = self.peers[peer].link.session;
                return self.read_owner(peer, session, tp);
            }
        };
        self.input(peer, Input::Trigger(reason));
    }

    pub fn connected_again(&mut self, peer: usize) {
        let Kind::Troupe(driver) = &self.peers[peer].kind else { return self.scala_connected(peer) };
        let session = self.peers[peer].link.session;
        for tp in driver.watched.clone() {
            self.read_owner(peer, session, tp);
        }
        self.input(peer, Input::Reconnected);
        self.check_fence_reopened(peer);
    }

    pub fn session_replaced(&mut self, peer: usize) {
        if let Kind::Scala(_) = self.peers[peer].kind {
            return self.scala_session_replaced(peer);
        }
        self.driver(peer).watched.clear();
        let life = self.peers[peer].life;
        let told = self.now + self.chance.between(0, 20);
        self.at(told, Event::Input { peer, life, input: Input::SessionExpired });
        self.at(told, Event::Input { peer, life, input: Input::SessionStarted });
    }

    pub fn driver_answered(&mut self, peer: usize, session: SessionNumber, tag: Tag, reply: Reply) {
        let lost = || "no answer".to_owned();
        match (tag, reply) {
            (Tag::Register(generation), reply) => {
                let outcome = match reply {
                    Reply::Registered(session) => Ok(session),
                    reply => Err(format!("{reply:?}")),
                };
                self.input(peer, Input::Registered { generation, outcome });
            }
            (Tag::Group(generation), reply) => self.group_answered(peer, generation, reply),
            (Tag::Owner(partition), reply) => {
                let outcome = match reply {
                    Reply::Owner(node) => Ok(node.map(owner_of)),
                    _ => Err(lost()),
                };
                self.input(peer, Input::OwnerRead { session, partition, outcome });
            }
            (Tag::Position(tp, generation), reply) => self.positioned(peer, session, tp, generation, reply),
            (tag @ (Tag::Flush(..) | Tag::FlushOffset(..) | Tag::FlushOwner(..)), reply) => {
                self.flushed(peer, session, tag, reply);
            }
            (Tag::Adopt(tp), reply) => self.listed(peer, tp, reply),
            (tag, reply) => self.owner_written(peer, session, tag, reply),
        }
    }

    fn owner_written(&mut self, peer: usize, session: SessionNumber, tag: Tag, reply: Reply) {
        use ClaimAnswer::{Created, Held, Unknown};
        let (partition, answer) = match (tag, reply) {
            (Tag::Claim(tp, thread), Reply::Exists) => {
                let read = Op::Read(Path::Owner(tp.clone()));
                return self.call(peer, session, Tag::ClaimRead(tp, thread), read);
            }
            (Tag::ClaimRead(tp, thread), Reply::Owner(None)) => {
                let create = Op::CreateOwner(tp.clone(), thread.as_str().to_owned());
                return self.call(peer, session, Tag::Claim(tp, thread), create);
            }
            (Tag::MoveRead(tp, thread), Reply::Owner(Some(node))) if node.session == session => {
                let set = Op::SetOwner(tp.clone(), thread.as_str().to_owned(), node.version);
                return self.call(peer, session, Tag::MoveSet(tp), set);
            }
            (Tag::ReleaseRead(tp), Reply::Owner(Some(node))) if node.session == session => {
                let delete = Op::DeleteOwner(tp.clone(), Some(node.version));
                return self.call(peer, session, Tag::ReleaseDelete(tp), delete);
            }
            (Tag::ReleaseRead(tp) | Tag::ReleaseDelete(tp), reply) => {
                let outcome = match reply {
                    Reply::Lost => Err("no answer".to_owned()),
                    _ => Ok(()),
                };
                return self.input(peer, Input::Released { session, partition: tp, outcome });
            }
            (Tag::Claim(tp, _) | Tag::MoveSet(tp), Reply::Done) => (tp, Created),
            (Tag::ClaimRead(tp, _) | Tag::MoveRead(tp, _), Reply::Owner(Some(node))) => {
                (tp, Held(owner_of(node)))
            }
            (Tag::Claim(tp, _) | Tag::ClaimRead(tp, _) | Tag::MoveRead(tp, _) | Tag::MoveSet(tp), reply) => {
                (tp, Unknown(format!("{reply:?}")))
            }
            (tag, reply) => unreachable!("{tag:?} was answered {reply:?}"),
        };
        self.input(peer, Input::Claimed { session, partition, answer });
    }

    fn group_answered(&mut self, peer: usize, generation: Generation, reply: Reply) {
        let reads = &mut self.driver(peer).reads;
        let read = reads.entry(generation).or_default();
        read.answers += 1;
        match reply {
            Reply::Ids(members) => read.members = Some(members),
            Reply::Topics(topics) => read.topics = Some(topics),
            Reply::Brokers(brokers) => read.brokers = Some(brokers),
            _ => {}
        }
        if read.answers < 3 {
            return;
        }
        let outcome = match reads.remove(&generation) {
            Some(Read {
                members: Some(members), topics: Some(partitions), brokers: Some(brokers), ..
            }) => Ok(GroupSnapshot { members, partitions, brokers }),
            _ => Err("the group could not be read".to_owned()),
        };
        self.input(peer, Input::GroupRead { generation, outcome });
    }

    /// Whether every planned partition of this machine is delivered.
    pub fn is_settled(&self, peer: usize) -> bool {
        let Kind::Troupe(driver) = &self.peers[peer].kind else { return true };
        let machine = &driver.machine;
        machine.phase() == Phase::Stable
            && driver.deliveries.values().all(|delivery| matches!(delivery.stage, Stage::Delivering(_)))
    }
}
