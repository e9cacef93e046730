//! The coordinator panics and is restarted, while the ZooKeeper client lives on.
//!
//! Its streams stop; what it sent is executed, but its answers are nobody's; then its owner nodes are listed by
//! reads that watch, and those of the client's session adopted. A listing that is not complete begins again.

use super::super::{Machine, Phase};
use super::state::{Process, State, settings};
use super::{Group, Mutation};
use crate::TopicPartition;
use crate::group::{Effect, Generation, Input, Owner, Reason};

/// Nodes found after the coordinator was restarted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Listing {
    left: usize,
    complete: bool,
    nodes: Vec<(TopicPartition, Owner)>,
}

/// Before it is registered there is nothing to adopt: it begins anew. While it leaves it is not restarted.
pub fn may_panic(process: &Process) -> bool {
    let machine = &process.machine;
    machine.session() == Some(process.session)
        && machine.phase() != Phase::Leaving
        && process.listing.is_none()
}

impl State {
    pub fn panic(&mut self, group: &Group, name: usize) {
        let generation = Generation(self.processes[name].machine.generation().0 + 1);
        let process = &mut self.processes[name];
        process.machine = Machine::adopt(settings(name), process.session, generation, []);
        process.deliveries.clear();
        process.timer = None;
        process.inbox.clear();
        process.late.clear();
        process.orphans = process.calls.len();
        if !group.breaks(Mutation::AdoptsWhatIsSeenAtOnce) {
            return self.list(name);
        }
        let session = process.session;
        let mine = self.server.tree.owners.iter().filter(|(_, owner)| owner.session == session);
        let nodes = mine.map(|(tp, owner)| (tp.clone(), owner.clone())).collect();
        self.adopt(group, name, nodes);
    }

    pub fn list(&mut self, name: usize) {
        let partitions: Vec<_> = self.server.tree.partitions().collect();
        let process = &mut self.processes[name];
        process.listing = Some(Listing { left: partitions.len(), complete: true, nodes: Vec::new() });
        let session = process.session;
        for partition in partitions {
            process.watched.insert(partition.clone());
            process.calls.push_back(Effect::ReadOwner { session, partition });
        }
    }

    /// Meanwhile only the end of the session counts: nothing is left to adopt then. Triggers are made up for by
    /// the read that follows.
    pub fn told_while_listing(&mut self, group: &Group, name: usize, input: Input) {
        let process = &mut self.processes[name];
        let Some(listing) = &mut process.listing else { return };
        match input {
            Input::SessionExpired => {
                process.listing = None;
                process.machine = Machine::new(settings(name));
                return;
            }
            Input::OwnerRead { partition, outcome, .. } => {
                listing.left -= 1;
                match outcome {
                    Ok(Some(owner)) if owner.session == process.session => {
                        listing.nodes.push((partition, owner));
                    }
                    Ok(_) => {}
                    Err(_) => listing.complete = false,
                }
            }
            _ => return,
        }
        match listing.left {
            0 if !listing.complete => self.list(name),
            0 => {
                let nodes = process.listing.take().expect("listing").nodes;
                self.adopt(group, name, nodes);
            }
            _ => {}
        }
    }

    fn adopt(&mut self, group: &Group, name: usize, nodes: Vec<(TopicPartition, Owner)>) {
        let process = &mut self.processes[name];
        let nodes = if group.breaks(Mutation::RestartForgets) { Vec::new() } else { nodes };
        let generation = process.machine.generation();
        process.machine = Machine::adopt(settings(name), process.session, generation, nodes);
        self.input(group, name, Input::Trigger(Reason::Restarted));
    }
}
