//! A group at one moment, of either coordination, as the view needs it.

use std::collections::{BTreeMap, BTreeSet};

use kafka_troupe::TopicPartition;
use kafka_troupe::admin::{KafkaMember, LogOffsets};
use kafka_troupe::proto::schemas::group::v1::{GroupMember, GroupPartition, GroupView};
use serde::Serialize;

use super::super::Coordination;
use super::super::kafka_group::{ReadGroup, hidden};

/// A group, read once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// When, in epoch milliseconds.
    pub taken_ms: i64,
    pub group: String,
    pub coordination: Coordination,
    /// Whether there is such a group; it may come yet.
    pub exists: bool,
    /// Of a group that Kafka coordinates: classic, consumer and so on.
    pub r#type: Option<String>,
    /// Of a group that Kafka coordinates: Stable, Empty and so on.
    pub state: Option<String>,
    pub members: Vec<Member>,
    pub partitions: Vec<Partition>,
    /// What could not be read.
    pub errors: Vec<String>,
}

/// A member of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Member {
    pub id: String,
    /// What it subscribes to, or where it is.
    pub about: String,
    /// Since when it is registered; Kafka does not tell.
    pub since_ms: Option<i64>,
    /// Why its record cannot be used.
    pub note: Option<String>,
}

/// A partition that it reads, or that somebody owns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Partition {
    pub topic: String,
    pub partition: i32,
    /// The consumer thread, or the member where there are no threads.
    pub owner: Option<String>,
    /// The member that this is, if it is registered.
    pub member: Option<String>,
    pub since_ms: Option<i64>,
    pub committed: Option<i64>,
    pub log_end: Option<i64>,
    pub lag: Option<i64>,
    /// What is wrong with it.
    pub note: Option<String>,
}

impl Snapshot {
    /// Of a group in ZooKeeper.
    pub fn of_view(view: GroupView) -> Self {
        let is_left = view.members.is_empty();
        Self {
            taken_ms: view.taken_ms,
            group: view.group,
            coordination: Coordination::ZooKeeper,
            exists: true,
            r#type: None,
            state: None,
            members: view.members.into_iter().map(Member::from).collect(),
            partitions: view.partitions.into_iter().map(|it| Partition::of_view(it, is_left)).collect(),
            errors: view.errors,
        }
    }

    /// Of a group that Kafka coordinates, or that only stores offsets there.
    pub fn of_kafka(taken_ms: i64, read: &ReadGroup) -> Self {
        let ReadGroup { group, committed, ends } = read;
        let owned = group.members.iter().flat_map(|it| it.partitions.iter().map(move |key| (key, it)));
        let owners: BTreeMap<_, _> = owned.collect();
        let partition = |key: &TopicPartition| {
            let committed = committed.get(key).map(|it| it.offset);
            Partition::of_kafka(key, owners.get(key).copied(), committed, ends.get(key))
        };
        Self {
            taken_ms,
            group: group.name.clone(),
            coordination: Coordination::Kafka,
            exists: true,
            r#type: Some(group.group_type.clone()),
            state: said(group.state.clone()),
            members: group.members.iter().map(Member::from).collect(),
            partitions: read.keys().iter().map(partition).collect(),
            errors: hidden(&group.group_type).into_iter().chain(reasons(ends)).collect(),
        }
    }

    /// Of a group that is not there.
    pub fn absent(taken_ms: i64, group: &str, coordination: Coordination) -> Self {
        Self {
            taken_ms,
            group: group.to_owned(),
            coordination,
            exists: false,
            r#type: None,
            state: None,
            members: Vec::new(),
            partitions: Vec::new(),
            errors: Vec::new(),
        }
    }
}

/// Why ends of logs are not told, each reason once.
fn reasons(ends: &LogOffsets) -> Vec<String> {
    let reasons: BTreeSet<_> = ends.values().filter_map(|end| end.as_ref().err()).collect();
    reasons.into_iter().map(|why| format!("ends of logs: {why}")).collect()
}

impl From<&KafkaMember> for Member {
    fn from(member: &KafkaMember) -> Self {
        let instance = member.instance.as_ref().map(|it| format!(", instance {it}")).unwrap_or_default();
        let about = format!("{} at {}{instance}", member.client_id, member.host);
        Self { id: member.id.clone(), about, since_ms: None, note: None }
    }
}

impl From<GroupMember> for Member {
    fn from(member: GroupMember) -> Self {
        let about = match member.pattern.as_str() {
            "white_list" => format!("topics like {}", member.subscription),
            "black_list" => format!("topics not like {}", member.subscription),
            _ => member.subscription,
        };
        let since_ms = Some(member.since_ms).filter(|since| *since > 0);
        Self { id: member.id, about, since_ms, note: said(member.error) }
    }
}

impl Partition {
    /// `end`: none where the partition does not exist.
    fn of_kafka(
        key: &TopicPartition,
        owner: Option<&KafkaMember>,
        committed: Option<i64>,
        end: Option<&Result<Option<i64>, String>>,
    ) -> Self {
        let log_end = end.and_then(|end| end.as_ref().ok().copied().flatten());
        let note = if end.is_none() { Some("does not exist".into()) } else { beyond(committed, log_end) };
        let owner = owner.map(|member| member.id.clone());
        Self {
            topic: key.topic.to_string(),
            partition: key.partition,
            member: owner.clone(),
            owner,
            since_ms: None,
            committed,
            log_end,
            lag: committed.zip(log_end).map(|(committed, end)| (end - committed).max(0)),
            note,
        }
    }

    fn of_view(partition: GroupPartition, is_left: bool) -> Self {
        let note = problem(&partition, is_left);
        Self {
            topic: partition.topic,
            partition: partition.partition,
            owner: partition.owner_thread,
            member: said(partition.owner_member),
            since_ms: partition.thread_since_ms.or(partition.since_ms),
            committed: partition.committed_zookeeper.max(partition.committed_kafka),
            log_end: partition.log_end,
            lag: partition.lag,
            note,
        }
    }
}

fn said(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// The first that holds; a group without members owns nothing, which is no problem.
fn problem(partition: &GroupPartition, is_left: bool) -> Option<String> {
    if partition.exists == Some(false) {
        return Some("does not exist".into());
    }
    if let Some(why) = said(partition.error.clone()) {
        return Some(why);
    }
    let committed = partition.committed_zookeeper.max(partition.committed_kafka);
    let says = match &partition.owner_thread {
        None if is_left => return beyond(committed, partition.log_end),
        None => "nobody owns it",
        Some(_) if partition.owner_is_missing => "its owner is not registered",
        Some(_) if partition.session_differs => "owned by an earlier session",
        Some(_) => return beyond(committed, partition.log_end),
    };
    Some(says.into())
}

fn beyond(committed: Option<i64>, end: Option<i64>) -> Option<String> {
    committed.zip(end).filter(|(committed, end)| committed > end).map(|_| "committed beyond the end".into())
}

#[cfg(test)]
mod tests {
    use super::super::sample::{partition, view};
    use super::*;

    fn problem_of(change: impl FnOnce(&mut GroupPartition)) -> Option<String> {
        let mut group = view(0, 0);
        change(&mut group.partitions[0]);
        Snapshot::of_view(group).partitions[0].note.clone()
    }

    #[test]
    fn what_is_wrong_with_a_partition_is_said() {
        assert_eq!(problem_of(|_| ()), None);
        assert_eq!(problem_of(|it| it.owner_thread = None).unwrap(), "nobody owns it");
        assert_eq!(problem_of(|it| it.owner_is_missing = true).unwrap(), "its owner is not registered");
        assert_eq!(problem_of(|it| it.session_differs = true).unwrap(), "owned by an earlier session");
        assert_eq!(problem_of(|it| it.exists = Some(false)).unwrap(), "does not exist");
        assert_eq!(problem_of(|it| it.error = "no number".into()).unwrap(), "no number");
        assert_eq!(problem_of(|it| it.log_end = Some(-1)).unwrap(), "committed beyond the end");
    }

    #[test]
    fn b24_a_group_without_members_is_no_problem() {
        let mut group = view(0, 7);
        group.members.clear();
        group.partitions = vec![GroupPartition { owner_thread: None, ..partition("a", 0, 7) }];
        let snapshot = Snapshot::of_view(group);
        let partition = &snapshot.partitions[0];
        assert_eq!((partition.committed, partition.note.as_deref()), (Some(7), None));
    }
}
