//! A group of ZooKeeper.

use std::collections::BTreeMap;

use kafka_troupe::GroupView;
use kafka_troupe::proto::schemas::group::v1::{GroupMember, GroupPartition};

use super::rows::{MemberRow, Owned, PartitionRow, StateRow};
use super::{Coordination, Described};
use crate::time;

/// Its rows.
pub fn described(view: &GroupView) -> Described {
    let members = view.members.iter().map(|member| describe_member(view, member)).collect();
    let partitions = view.partitions.iter().map(|partition| describe_partition(view, partition)).collect();
    let state = StateRow {
        state: Some(Coordination::state(view.members.len()).to_owned()),
        ..StateRow::new(&view.group, Coordination::ZooKeeper)
    };
    Described::new(state, members, partitions)
}

fn describe_member(view: &GroupView, member: &GroupMember) -> MemberRow {
    let mut owned: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for partition in view.partitions.iter().filter(|it| it.owner_member == member.id) {
        owned.entry(&partition.topic).or_default().push(partition.partition);
    }
    let subscription = match member.pattern.as_str() {
        "" => None,
        "static" => Some(member.subscription.clone()),
        pattern => Some(format!("{} {}", pattern.replace('_', " "), member.subscription)),
    };
    let is_readable = member.error.is_empty();
    MemberRow {
        client_host: host(&view.group, &member.id),
        streams: is_readable.then_some(member.streams),
        owned: owned.values().map(Vec::len).sum(),
        partitions: owned.into_iter().map(Owned::from).collect(),
        subscription,
        since: time::text(member.since_ms),
        note: member_note(member),
        ..MemberRow::new(&view.group, Coordination::ZooKeeper, &member.id)
    }
}

fn member_note(member: &GroupMember) -> Option<String> {
    if !member.error.is_empty() {
        return Some(member.error.clone());
    }
    (member.session_id == 0).then(|| "its node is of no session: it never goes by itself".to_owned())
}

fn describe_partition(view: &GroupView, partition: &GroupPartition) -> PartitionRow {
    let member = Some(&partition.owner_member).filter(|member| !member.is_empty());
    let mut row = PartitionRow {
        topic: Some(partition.topic.clone()),
        partition: Some(partition.partition),
        owner: partition.owner_thread.clone(),
        member: member.cloned(),
        client_host: member.and_then(|member| host(&view.group, member)),
        since: partition.thread_since_ms.and_then(time::text),
        ..PartitionRow::new(&view.group, Coordination::ZooKeeper)
    };
    if partition.exists == Some(false) {
        row.note("it does not exist");
    }
    if partition.owner_is_missing {
        row.note(match partition.session_id {
            0 => {
                "owned by nobody who is registered, and by no session: it stays so until the node is deleted"
            }
            _ => "owned by nobody who is registered",
        });
    }
    if partition.session_differs {
        row.note("owned in another session than its member is registered in");
    }
    if !partition.error.is_empty() {
        row.note(&partition.error);
    }
    row.at(partition.committed_zookeeper, partition.committed_kafka, partition.log_end)
}

/// The host in the id of a member, `<group>_<host>-<epoch millis>-<hex8>`; none where `consumer.id` is set.
fn host(group: &str, member: &str) -> Option<String> {
    let rest = member.strip_prefix(group)?.strip_prefix('_')?;
    let mut parts = rest.rsplitn(3, '-');
    let (hex, millis, host) = (parts.next()?, parts.next()?, parts.next()?);
    let is_made = hex.len() == 8
        && hex.bytes().all(|digit| digit.is_ascii_hexdigit())
        && millis.len() >= 13
        && millis.bytes().all(|digit| digit.is_ascii_digit());
    (is_made && !host.is_empty()).then(|| host.to_owned())
}
