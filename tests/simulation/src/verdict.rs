//! What must hold when the faults are over.

use std::collections::BTreeSet;
use std::rc::Rc;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::zk::paths::GroupPaths;

use crate::history::GROUP;
use crate::world::{Member, State, World};

/// What is still missing until the group is well: all that somebody subscribes to is owned, handled and committed, and
/// exactly those who are there are registered.
pub fn missing(world: &World) -> Vec<String> {
    let mut missing = Vec::new();
    let unsettled = world.members(&[State::Starting, State::Leaving]);
    missing.extend(unsettled.iter().map(|member| format!("{} is {:?}", member.name, member.state.get())));
    let running = world.running();
    let registered: BTreeSet<_> = world.zookeeper.children(&paths().ids()).into_iter().collect();
    let there: BTreeSet<_> = running.iter().map(|member| format!("{GROUP}_{}", member.name)).collect();
    if registered != there {
        missing.push(format!("registered are {registered:?}, there are {there:?}"));
    }
    for partition in world.partitions() {
        let takers = running.iter().filter(|member| member.takes(&partition.topic));
        let takers: Vec<_> = takers.cloned().collect();
        if !takers.is_empty() {
            missing.extend(wrong_owner(world, &partition, &takers));
            missing.extend(not_handled(world, &partition));
        }
    }
    missing
}

fn paths() -> GroupPaths {
    GroupPaths::new(GROUP)
}

fn wrong_owner(world: &World, partition: &TopicPartition, takers: &[Rc<Member>]) -> Option<String> {
    if takers.iter().any(|member| world.history.owns(&member.name, member.process(), partition)) {
        return None;
    }
    let owner = world.zookeeper.node(&paths().owner(partition));
    let owner = owner.map(|node| String::from_utf8_lossy(&node.data).into_owned());
    Some(format!("{partition} is owned by {owner:?}"))
}

fn not_handled(world: &World, partition: &TopicPartition) -> Option<String> {
    let (start, end) = world.brokers.range(partition)?;
    let (handled, storage) = (world.history.handled(partition), world.storage.get());
    let in_zookeeper = world.history.in_zookeeper(partition).filter(|_| storage.in_zookeeper());
    let in_kafka = world.brokers.stored_offset(GROUP, partition).filter(|_| storage.in_kafka());
    let is_stored = (!storage.in_zookeeper() || in_zookeeper == Some(end))
        && (!storage.in_kafka() || in_kafka == Some(end));
    // what was deleted before anybody came for it is nobody's loss
    (handled != end || !(is_stored || start == end)).then(|| {
        format!(
            "{partition} ends at {end}, handled {handled}, stored in ZooKeeper {in_zookeeper:?}, in Kafka {in_kafka:?}"
        )
    })
}

/// What must hold when all have left as well.
pub fn left_behind(world: &World) -> Vec<String> {
    let mut left = Vec::new();
    for partition in world.partitions() {
        if world.zookeeper.node(&paths().owner(&partition)).is_some() {
            left.push(format!("{partition} is still owned"));
        }
    }
    let ids = world.zookeeper.children(&paths().ids());
    if !ids.is_empty() {
        left.push(format!("still registered: {ids:?}"));
    }
    left
}
