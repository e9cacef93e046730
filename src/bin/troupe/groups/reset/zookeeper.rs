//! A group that is coordinated through ZooKeeper.
//!
//! Its offsets are in ZooKeeper, in Kafka (`offsets.storage`), or in both (`dual.commit.enabled`): then both are set, for
//! the larger wins when they are read. Those in ZooKeeper are set by version, so that what a member commits meanwhile
//! stays; nothing fences those in Kafka, so that members are looked for again at the end.

use kafka_troupe::admin::{AdminError, KafkaAdmin, ZooKeeperAdmin};
use kafka_troupe::proto::TopicPartition;
use kafka_troupe::proto::group::reset::Stores;

use super::plan::{Found, Plan, Written};
use crate::exit::Failure;

const SOMEBODY: &str = "somebody else sets its offsets: stop that, and begin again";

/// Looks at it: who uses it last, so that who comes after that changes an offset that was looked at before.
pub async fn find(zookeeper: &ZooKeeperAdmin, kafka: &KafkaAdmin, group: &str) -> Result<Found, Failure> {
    let mut found = Found { exists: zookeeper.group_exists(group).await?, ..Found::default() };
    for node in zookeeper.offsets(group).await? {
        found.versions.insert(node.key.clone(), node.version);
        match node.offset {
            Ok(offset) => {
                // the old consumer writes -1 for "no position yet"
                let position = Some(offset).filter(|offset| *offset >= 0);
                found.stored.entry(node.key).or_default().zookeeper = position;
            }
            Err(why) => {
                found.stored.entry(node.key.clone()).or_default();
                found.odd.insert(node.key, why);
            }
        }
    }
    for (key, committed) in kafka.committed(group, None).await? {
        found.stored.entry(key).or_default().kafka = Some(committed.offset);
    }
    for (key, stored) in &found.stored {
        if let (Some(zookeeper), Some(kafka)) = (stored.zookeeper, stored.kafka)
            && zookeeper != kafka
        {
            found.odd.insert(key.clone(), format!("stored {zookeeper} in ZooKeeper, {kafka} in Kafka"));
        }
    }
    found.busy = users(zookeeper, kafka, group).await?;
    Ok(found)
}

/// Who uses it: its members, who stands in owner nodes, and members that brokers coordinate by the same name: these
/// take no offset from outside, and one that is set in ZooKeeper only is half a reset.
async fn users(zookeeper: &ZooKeeperAdmin, kafka: &KafkaAdmin, group: &str) -> Result<Vec<String>, Failure> {
    let members = zookeeper.members(group).await?;
    if !members.is_empty() {
        return Ok(vec![format!("it has members: stop {} first", members.join(", "))]);
    }
    let view = zookeeper.view(group, None).await?;
    let owned = view.partitions.iter().filter_map(|it| {
        let (owner, of) = (it.owner_thread.as_ref()?, TopicPartition::new(it.topic.as_str(), it.partition));
        let what = "which is no member's: wait until its session has ended, or delete the owner node";
        Some(format!("{of} is owned by {owner}, {what}"))
    });
    let unread = view.errors.iter().map(|error| format!("not all of its owners are known: {error}"));
    let (_, in_kafka) = super::kafka::users(kafka, group).await?;
    Ok(owned.chain(unread).chain(in_kafka).collect())
}

/// Sets the offsets in the stores that the group has offsets in.
pub async fn write(zookeeper: &ZooKeeperAdmin, kafka: &KafkaAdmin, plan: &Plan) -> Written {
    let stores = Stores::of(plan.found.stored.values());
    let mut written = Written::default();
    match users(zookeeper, kafka, &plan.group).await {
        Ok(users) if users.is_empty() => {}
        Ok(users) => {
            written.in_use.extend(users.iter().map(|why| format!("not reset: since it was looked at {why}")));
            return written;
        }
        Err(why) => {
            written.failures.push(format!("not reset: {why}"));
            return written;
        }
    }
    if stores.zookeeper && !set(zookeeper, plan, &mut written).await {
        return written;
    }
    if stores.kafka {
        super::kafka::commit(kafka, &plan.group, &plan.offsets(), &mut written).await;
    }
    look_again((zookeeper, kafka), plan, stores, &mut written).await;
    written
}

/// Sets them in ZooKeeper; the first that it does not take is the last that is tried. Whether all are set.
async fn set(zookeeper: &ZooKeeperAdmin, plan: &Plan, written: &mut Written) -> bool {
    let offsets = plan.offsets();
    let mut left = offsets.iter();
    while let Some((key, offset)) = left.next() {
        let version = plan.found.versions.get(key).copied();
        let Err(error) = zookeeper.set_offset(&plan.group, key, *offset, version).await else { continue };
        match error {
            AdminError::Changed { .. } => {
                written.in_use.push(SOMEBODY.to_owned());
            }
            _ => written.failures.push("ZooKeeper did not take all offsets".to_owned()),
        }
        written.errors.insert(key.clone(), format!("not set: {error}"));
        written.errors.extend(left.map(|(key, _)| (key.clone(), "not set".to_owned())));
        return false;
    }
    true
}

/// A member that came meanwhile may have begun at the old offsets, and committed since.
async fn look_again(
    (zookeeper, kafka): (&ZooKeeperAdmin, &KafkaAdmin),
    plan: &Plan,
    stores: Stores,
    written: &mut Written,
) {
    match users(zookeeper, kafka, &plan.group).await {
        Ok(users) => written.in_use.extend(users.iter().map(|why| {
            format!("since its offsets are being set {why}; where it began is not known: reset it again")
        })),
        Err(why) => written.failures.push(format!("whether a member came meanwhile is not known: {why}")),
    }
    if !stores.zookeeper {
        return;
    }
    let nodes = match zookeeper.offsets(&plan.group).await {
        Ok(nodes) => nodes,
        Err(why) => return written.failures.push(format!("whether its offsets stay is not known: {why}")),
    };
    let mut changed = false;
    for (key, offset) in plan.offsets() {
        let now = nodes.iter().find(|node| node.key == key).map(|node| &node.offset);
        if now != Some(&Ok(offset)) && !written.errors.contains_key(&key) {
            written.errors.insert(key, "set, and changed since".to_owned());
            changed = true;
        }
    }
    if changed {
        written.in_use.push(SOMEBODY.to_owned());
    }
}
