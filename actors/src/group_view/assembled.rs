//! From what was read to the view: who owns what, and what looks wrong. No I/O.

use std::collections::BTreeMap;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::schemas::group::v1::{GroupMember, GroupPartition, GroupView, SubscribedTopic};
use kafka_troupe_proto::zk::ConsumerThreadId;
use kafka_troupe_proto::zk::registration::{Registration, Subscription};

use crate::zk_session::port::Stat;

/// What a read found.
#[derive(Default)]
pub(super) struct Found {
    pub(super) members: Vec<FoundMember>,
    /// All that are shown, in order.
    pub(super) partitions: Vec<TopicPartition>,
    pub(super) owners: BTreeMap<TopicPartition, Result<FoundOwner, String>>,
    pub(super) committed: BTreeMap<TopicPartition, Result<i64, String>>,
    pub(super) committed_kafka: BTreeMap<TopicPartition, i64>,
    pub(super) log_ends: BTreeMap<TopicPartition, i64>,
    pub(super) errors: Vec<String>,
}

/// A node below ids.
pub(super) struct FoundMember {
    pub(super) id: String,
    /// None where it could not be read.
    pub(super) stat: Option<Stat>,
    pub(super) registration: Result<Registration, String>,
}

impl FoundMember {
    pub(super) fn is_filtered(&self) -> bool {
        let subscription = self.registration.as_ref().map(|registration| &registration.subscription);
        subscription.is_ok_and(|it| !matches!(it, Subscription::Static(_)))
    }
}

/// An owner node.
pub(super) struct FoundOwner {
    pub(super) thread: String,
    pub(super) stat: Stat,
}

/// The view, as far as the nodes say it.
pub(super) fn assemble(found: Found, exists: impl Fn(&TopicPartition) -> Option<bool>) -> GroupView {
    let mut members: Vec<_> = found.members.iter().map(describe_member).collect();
    members.sort_by(|one, other| one.id.cmp(&other.id));
    let partitions: Vec<_> =
        found.partitions.iter().map(|key| partition(key, &found, &members, exists(key))).collect();
    for member in &mut members {
        let owned = partitions.iter().filter(|it| it.owner_member == member.id).count();
        member.owned = u32::try_from(owned).unwrap_or(u32::MAX);
    }
    GroupView { members, partitions, errors: found.errors, ..GroupView::default() }
}

/// Marks what is the asking system's own.
pub(super) fn with_own(mut view: GroupView, own: &[String]) -> GroupView {
    for member in &mut view.members {
        member.is_own = own.contains(&member.id);
    }
    for partition in &mut view.partitions {
        partition.is_own = own.contains(&partition.owner_member);
    }
    view
}

fn describe_member(found: &FoundMember) -> GroupMember {
    let stat = found.stat.unwrap_or_default();
    let member = GroupMember {
        id: found.id.clone(),
        since_ms: stat.ctime,
        session_id: stat.ephemeral_owner,
        ..GroupMember::default()
    };
    match &found.registration {
        Ok(registration) => subscribed(member, &registration.subscription),
        Err(why) => GroupMember { error: why.clone(), ..member },
    }
}

fn subscribed(member: GroupMember, subscription: &Subscription) -> GroupMember {
    let (pattern, text, streams, topics) = match subscription {
        Subscription::Static(topics) => {
            let text: Vec<_> = topics.iter().map(|(topic, streams)| format!("{topic} ({streams})")).collect();
            let streams = topics.iter().map(|(_, streams)| streams).sum();
            let topics = topics.iter().cloned();
            let topics = topics.map(|(topic, streams)| SubscribedTopic { topic, streams });
            ("static", text.join(", "), streams, topics.collect())
        }
        Subscription::WhiteList { filter, streams } => ("white_list", filter.clone(), *streams, Vec::new()),
        Subscription::BlackList { filter, streams } => ("black_list", filter.clone(), *streams, Vec::new()),
        other => ("", format!("{other:?}"), 0, Vec::new()),
    };
    GroupMember { pattern: pattern.to_owned(), subscription: text, streams, topics, ..member }
}

fn partition(
    key: &TopicPartition,
    found: &Found,
    members: &[GroupMember],
    exists: Option<bool>,
) -> GroupPartition {
    let committed = found.committed.get(key);
    let mut shown = GroupPartition {
        topic: key.topic.to_string(),
        partition: key.partition,
        exists,
        committed_zookeeper: committed.and_then(|read| read.as_ref().ok().copied()),
        committed_kafka: found.committed_kafka.get(key).copied(),
        log_end: found.log_ends.get(key).copied(),
        error: committed.and_then(|read| read.as_ref().err().cloned()).unwrap_or_default(),
        ..GroupPartition::default()
    };
    let committed = shown.committed_zookeeper.max(shown.committed_kafka);
    shown.lag = committed.zip(shown.log_end).map(|(committed, end)| (end - committed).max(0));
    match found.owners.get(key) {
        None => {}
        Some(Err(why)) => shown.error.clone_from(why),
        Some(Ok(owner)) => owned(&mut shown, owner, members),
    }
    shown
}

fn owned(shown: &mut GroupPartition, owner: &FoundOwner, members: &[GroupMember]) {
    let id = ConsumerThreadId::parse(&owner.thread);
    let registered = id.ok().and_then(|id| members.iter().find(|member| member.id == id.consumer()));
    shown.owner_is_missing = registered.is_none();
    shown.session_differs = registered.is_some_and(|it| it.session_id != owner.stat.ephemeral_owner);
    shown.owner_member = registered.map(|member| member.id.clone()).unwrap_or_default();
    shown.owner_thread = Some(owner.thread.clone());
    shown.session_id = owner.stat.ephemeral_owner;
    (shown.since_ms, shown.thread_since_ms) = (Some(owner.stat.ctime), Some(owner.stat.mtime));
}
