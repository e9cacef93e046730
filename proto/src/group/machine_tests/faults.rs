//! Who plays, and what goes wrong.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::driver::Driver;
use super::peer::{Kind, Peer, Tag};
use super::scala::Scala;
use super::server::Op;
use super::world::{Event, SESSION_TIMEOUT, World};
use crate::TopicPartition;
use crate::group::Input;

/// Faults strike before this.
const FAULTS_UNTIL: u64 = 2_000;

#[derive(Clone, Debug)]
pub enum Fault {
    Join(usize),
    Shutdown(usize),
    Crash(usize),
    /// The process is started again, with the same consumer id.
    Restart(usize),
    Disconnect {
        peer: usize,
        for_ms: u64,
        fresh: bool,
    },
    Pause {
        peer: usize,
        for_ms: u64,
    },
    /// The coordinator actor panics.
    Panic(usize),
    Partitions(&'static str, i32),
    Brokers(usize),
    /// An operator deletes nodes.
    DeleteOwner(TopicPartition),
    DeleteId(usize),
}

impl World {
    /// Chooses peers, topics and faults.
    pub fn cast(&mut self) {
        let topics = BTreeMap::from([
            (Arc::from("a"), partitions(self.chance.between(1, 5))),
            (Arc::from("b"), partitions(self.chance.between(0, 3))),
        ]);
        self.server.set_topics(0, topics);
        self.clean = self.chance.percent(25);
        let machines = self.chance.between(2, 4);
        let scala = usize::from(self.chance.percent(40));
        for number in 0..usize::try_from(machines).expect("few") + scala {
            self.add_peer(number, number < scala);
            let at = if self.chance.percent(60) { 0 } else { self.chance.between(0, FAULTS_UNTIL) };
            self.at(at, Event::Fault(Fault::Join(number)));
        }
        for _ in 0..self.chance.between(1, if self.clean { 3 } else { 8 }) {
            let at = self.chance.between(50, FAULTS_UNTIL);
            let fault = self.choose_fault();
            self.at(at, Event::Fault(fault));
        }
    }

    fn add_peer(&mut self, number: usize, scala: bool) {
        let id = format!("g_{}", ["c", "a", "d", "b", "e"][number]);
        let mut topics =
            BTreeMap::from([(Arc::from("a"), u32::try_from(self.chance.between(1, 2)).expect("few"))]);
        if self.chance.percent(80) {
            topics.insert(Arc::from("b"), u32::try_from(self.chance.between(1, 2)).expect("few"));
        }
        let kind = if scala {
            Kind::Scala(Box::new(Scala::new()))
        } else {
            Kind::Troupe(Box::new(Driver::new(&id)))
        };
        let link = self.open_link();
        self.peers.push(Peer { id, topics, alive: false, life: 0, paused_until: 0, link, kind });
    }

    fn choose_fault(&mut self) -> Fault {
        let peer = usize::try_from(self.chance.between(0, self.peers.len() as u64 - 1)).expect("few");
        let topic = if self.chance.percent(50) { "a" } else { "b" };
        let number = i32::try_from(self.chance.between(0, 4)).expect("few");
        if self.clean {
            return match self.chance.between(0, 1) {
                0 => Fault::Shutdown(peer),
                _ => Fault::Partitions(topic, 2 + number),
            };
        }
        let for_ms = self.chance.between(5, 2 * SESSION_TIMEOUT);
        match self.chance.between(0, 11) {
            0 => Fault::Shutdown(peer),
            1 => Fault::Crash(peer),
            2 | 3 => Fault::Disconnect { peer, for_ms: for_ms / 8, fresh: self.chance.percent(20) },
            4 | 5 => Fault::Disconnect { peer, for_ms, fresh: self.chance.percent(20) },
            6 => Fault::Pause { peer, for_ms },
            7 => Fault::Panic(peer),
            8 => Fault::Partitions(topic, 2 * number),
            9 => Fault::Brokers(0),
            10 => Fault::DeleteOwner(TopicPartition::new(topic, number)),
            _ => Fault::DeleteId(peer),
        }
    }

    pub fn strike(&mut self, fault: Fault) {
        match fault {
            Fault::Join(peer) => self.join(peer),
            Fault::Restart(peer) => self.restart(peer),
            Fault::Partitions(topic, count) => {
                let mut topics = self.server.topics();
                topics.insert(Arc::from(topic), (0..count).collect());
                self.server.set_topics(self.now, topics);
            }
            Fault::Brokers(count) => {
                self.server.set_brokers(self.now, count);
                if count == 0 {
                    self.soon(20, 600, Event::Fault(Fault::Brokers(1)));
                }
            }
            Fault::DeleteOwner(partition) => self.delete_owner(&partition),
            Fault::Shutdown(peer) if self.is_awake(peer) => self.shut_down(peer),
            Fault::Crash(peer) if self.peers[peer].alive => self.crash(peer),
            Fault::Disconnect { peer, for_ms, fresh } if self.is_up(peer) => {
                self.disconnect(peer, Some(for_ms), fresh);
            }
            Fault::Pause { peer, for_ms } if self.is_up(peer) => {
                self.peers[peer].paused_until = self.now + for_ms;
                let back = for_ms + self.chance.between(0, 20);
                self.disconnect(peer, Some(back), false);
            }
            Fault::Panic(peer) if self.is_up(peer) => self.panic(peer),
            Fault::DeleteId(peer) if self.peers[peer].alive => self.delete_id(peer),
            _ => {}
        }
    }

    fn delete_owner(&mut self, partition: &TopicPartition) {
        self.server.delete_owner(self.now, partition);
        // a Scala member does not notice: its user restarts its rebalance
        let scala = self.peers.iter().position(|peer| matches!(peer.kind, Kind::Scala(_)));
        if let Some(peer) = scala.filter(|peer| self.peers[*peer].alive) {
            self.scala_triggered(peer);
        }
    }

    fn delete_id(&mut self, peer: usize) {
        let id = self.peers[peer].id.clone();
        self.server.delete_id(self.now, &id);
        if self.chance.percent(50) && matches!(self.peers[peer].kind, Kind::Troupe(_)) {
            let life = self.peers[peer].life;
            self.soon(1, 30, Event::Input { peer, life, input: Input::RegistrationMissing });
        }
        if let Kind::Scala(_) = self.peers[peer].kind {
            // it would never register again
            self.crash(peer);
        }
    }

    fn is_awake(&self, peer: usize) -> bool {
        self.peers[peer].alive && self.peers[peer].paused_until <= self.now
    }

    fn is_up(&self, peer: usize) -> bool {
        let peer = &self.peers[peer];
        peer.alive && peer.link.up
    }

    fn join(&mut self, peer: usize) {
        self.peers[peer].alive = true;
        match self.peers[peer].kind {
            Kind::Troupe(_) => self.input(peer, Input::SessionStarted),
            Kind::Scala(_) => self.scala_joins(peer),
        }
    }

    fn restart(&mut self, peer: usize) {
        self.peers[peer].life += 1;
        self.peers[peer].link = self.open_link();
        let id = self.peers[peer].id.clone();
        match &mut self.peers[peer].kind {
            Kind::Troupe(driver) => **driver = Driver::new(&id),
            Kind::Scala(scala) => **scala = Scala::new(),
        }
        self.join(peer);
    }

    fn shut_down(&mut self, peer: usize) {
        match self.peers[peer].kind {
            Kind::Troupe(_) => self.input(peer, Input::Shutdown),
            Kind::Scala(_) if self.peers[peer].link.up => {
                let session = self.peers[peer].link.session;
                self.peers[peer].alive = false;
                self.call(peer, session, Tag::Ignored, Op::Close);
            }
            Kind::Scala(_) => {}
        }
    }

    fn crash(&mut self, peer: usize) {
        self.freeze(peer);
        if self.peers[peer].link.up {
            self.disconnect(peer, None, false);
        }
        self.peers[peer].alive = false;
        if let Kind::Troupe(driver) = &mut self.peers[peer].kind {
            driver.deliveries.clear();
        }
        if self.chance.percent(50) {
            self.soon(10, 700, Event::Fault(Fault::Restart(peer)));
        }
    }

    fn panic(&mut self, peer: usize) {
        let session = self.peers[peer].link.session;
        if let Kind::Troupe(driver) = &self.peers[peer].kind
            && driver.machine.session() == Some(session)
            && driver.machine.phase() != super::super::Phase::Leaving
        {
            self.panic_coordinator(peer);
        }
    }

    pub fn calm_down(&mut self) {
        self.quiet = true;
    }
}

fn partitions(count: u64) -> Vec<i32> {
    (0..i32::try_from(count).expect("few")).collect()
}
