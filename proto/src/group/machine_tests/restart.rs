//! The coordinator actor panics and is restarted, while the ZooKeeper client lives on.

use std::collections::BTreeSet;

use super::super::Machine;
use super::driver::settings;
use super::peer::Tag;
use super::server::{Op, Path, Reply};
use super::world::{Event, World};
use crate::TopicPartition;
use crate::group::{Generation, Input, Owner, Reason};

/// Nodes found after the coordinator was restarted.
pub struct Listing {
    left: usize,
    complete: bool,
    nodes: Vec<(TopicPartition, Owner)>,
}

impl World {
    /// The coordinator panics: its streams stop, its requests are nobody's, its nodes are listed and adopted.
    pub fn panic_coordinator(&mut self, peer: usize) {
        self.freeze(peer);
        self.peers[peer].life += 1;
        self.orphan_calls(peer);
        let driver = self.driver(peer);
        driver.deliveries.clear();
        driver.reads.clear();
        driver.timer = None;
        self.list_nodes(peer);
    }

    pub fn list_nodes(&mut self, peer: usize) {
        let partitions: BTreeSet<_> = self.server.partitions_ever();
        let (left, session) = (partitions.len() + 1, self.peers[peer].link.session);
        let driver = self.driver(peer);
        driver.listing = Some(Listing { left, complete: true, nodes: Vec::new() });
        // the last one stands for the reading of the list itself
        let list = TopicPartition::new("", 0);
        for tp in partitions.into_iter().chain([list]) {
            self.driver(peer).watched.insert(tp.clone());
            self.call(peer, session, Tag::Adopt(tp.clone()), Op::Read(Path::Owner(tp)));
        }
    }

    pub fn listed(&mut self, peer: usize, tp: TopicPartition, reply: Reply) {
        let (session, life) = (self.peers[peer].link.session, self.peers[peer].life);
        let id = self.peers[peer].id.clone();
        let driver = self.driver(peer);
        let Some(listing) = &mut driver.listing else { return };
        listing.left -= 1;
        match reply {
            Reply::Owner(Some(node)) if node.session == session => {
                listing.nodes.push((tp, Owner { session, thread: node.thread }));
            }
            Reply::Owner(_) => {}
            _ => listing.complete = false,
        }
        if listing.left > 0 {
            return;
        }
        if !listing.complete {
            return self.soon(5, 30, Event::Relist { peer, life });
        }
        let nodes = driver.listing.take().expect("listing").nodes;
        if !nodes.is_empty() {
            self.saw("an adoption of nodes");
        }
        let driver = self.driver(peer);
        let generation = Generation(driver.machine.generation().0 + 1);
        driver.machine = Machine::adopt(settings(&id), session, generation, nodes);
        self.input(peer, Input::Trigger(Reason::Restarted));
    }

    /// Only the end of the session counts: nothing is left to adopt.
    pub fn input_while_listing(&mut self, peer: usize, input: &Input) {
        if *input == Input::SessionExpired {
            let fresh = Machine::new(self.driver(peer).machine.settings.clone());
            let driver = self.driver(peer);
            driver.machine = fresh;
            driver.listing = None;
        }
    }
}
