//! From what was read to the view: who owns what, and what looks wrong. No I/O.

use std::collections::BTreeMap;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::schemas::group::v1::{GroupMember, GroupPartition, GroupView, SubscribedTopic};
use kafka_troupe_proto::zk::ConsumerThreadId;
use kafka_troupe_proto::zk::registration::{Registration, Subscription};

use std::time::SystemTime;

use tokio::time::Instant;

use super::reading::Known;
use crate::clock;
use crate::zk_session::port::Stat;

/// What a read found.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) members: Vec<FoundMember>,
    /// All that are shown, in order.
    pub(crate) partitions: Vec<TopicPartition>,
    pub(crate) owners: BTreeMap<TopicPartition, Result<FoundOwner, String>>,
    pub(crate) committed: BTreeMap<TopicPartition, Result<i64, String>>,
    pub(crate) committed_kafka: BTreeMap<TopicPartition, i64>,
    pub(crate) log_ends: BTreeMap<TopicPartition, i64>,
    pub(crate) log_starts: BTreeMap<TopicPartition, i64>,
    pub(crate) errors: Vec<String>,
}

/// A node below ids.
pub(crate) struct FoundMember {
    pub(crate) id: String,
    /// None where it could not be read.
    pub(crate) stat: Option<Stat>,
    pub(crate) registration: Result<Registration, String>,
}

impl FoundMember {
    pub(crate) fn is_filtered(&self) -> bool {
        let subscription = self.registration.as_ref().map(|registration| &registration.subscription);
        subscription.is_ok_and(|it| !matches!(it, Subscription::Static(_)))
    }
}

/// An owner node.
pub(crate) struct FoundOwner {
    pub(crate) thread: String,
    pub(crate) stat: Stat,
}

/// A view that is being taken.
pub(crate) struct Taking {
    began: Instant,
    now: SystemTime,
}

impl Taking {
    pub(crate) fn begun() -> Self {
        Self { began: Instant::now(), now: clock::now() }
    }

    /// The view of what was found.
    pub(crate) fn ended(self, group: &str, found: Found, known: &Known) -> GroupView {
        GroupView {
            group: group.to_owned(),
            taken_ms: clock::millis(self.now),
            took_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..assemble(found, known)
        }
    }
}

/// The view, as far as the nodes say it.
fn assemble(found: Found, known: &Known) -> GroupView {
    let mut members: Vec<_> = found.members.iter().map(describe_member).collect();
    members.sort_by(|one, other| one.id.cmp(&other.id));
    let partitions: Vec<_> =
        found.partitions.iter().map(|key| partition(key, &found, &members, known)).collect();
    for member in &mut members {
        let owned = partitions.iter().filter(|it| it.owner_member == member.id).count();
        member.owned = u32::try_from(owned).unwrap_or(u32::MAX);
    }
    GroupView { members, partitions, errors: found.errors, ..GroupView::default() }
}

/// Marks what is the asking system's own.
pub(crate) fn with_own(mut view: GroupView, own: &[String]) -> GroupView {
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

fn partition(key: &TopicPartition, found: &Found, members: &[GroupMember], known: &Known) -> GroupPartition {
    let committed = found.committed.get(key);
    let mut shown = GroupPartition {
        topic: key.topic.to_string(),
        partition: key.partition,
        exists: known.exists(key),
        is_subscribed: known.is_wanted(key),
        committed_zookeeper: committed.and_then(|read| read.as_ref().ok().copied()),
        committed_kafka: found.committed_kafka.get(key).copied(),
        log_end: found.log_ends.get(key).copied(),
        log_start: found.log_starts.get(key).copied(),
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
