//! A partition on the page.

use std::collections::BTreeMap;

use kafka_troupe_proto::schemas::group::v1::{GroupPartition, GroupView};
use kafka_troupe_proto::schemas::status::v1::{OwnedPartition, StatusSnapshot};
use serde::Serialize;

type Topics = BTreeMap<String, BTreeMap<i32, Partition>>;

/// Who owns it, and how far it is.
#[derive(Serialize, Default, Clone, PartialEq, Debug)]
pub(in crate::web) struct Partition {
    /// The owner's id; empty when nobody owns it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(in crate::web) member: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(in crate::web) thread: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::web) since: Option<i64>,
    /// The next record to be handled; known of this process's members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::web) acked: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::web) committed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::web) end: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::web) lag: Option<i64>,
    /// By how much the lag grows each second, over the last minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::web) trend: Option<f64>,
    /// What is the matter: `unowned`, `waiting`, `paused`, `unreadable`, `failed`, `stuck`; empty when it flows.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(in crate::web) state: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(in crate::web) why: String,
    /// Where it stands, when it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::web) stands_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::web) stands_since: Option<i64>,
}

/// As ZooKeeper shows them; what members here tell of their own goes over it.
pub(super) fn add_foreign(topics: &mut Topics, view: &GroupView) {
    for partition in &view.partitions {
        let known = topics.entry(partition.topic.clone()).or_default().entry(partition.partition);
        known.or_insert_with(|| foreign(partition));
    }
}

fn foreign(partition: &GroupPartition) -> Partition {
    let owner = partition.owner_thread.clone().unwrap_or_default();
    let (state, why) = match () {
        () if partition.exists == Some(false) => {
            ("failed", "an owner node of a partition that does not exist")
        }
        () if owner.is_empty() => ("unowned", ""),
        () if partition.owner_is_missing => ("unowned", "its owner node is of a member that has gone"),
        () => ("", ""),
    };
    Partition {
        member: partition.owner_member.clone(),
        thread: owner,
        since: partition.since_ms,
        committed: partition.committed_zookeeper.max(partition.committed_kafka),
        end: partition.log_end,
        lag: partition.lag,
        state,
        why: if why.is_empty() { partition.error.clone() } else { why.to_owned() },
        ..Partition::default()
    }
}

/// As a member of this process tells of its own.
pub(super) fn add_own(topics: &mut Topics, status: &StatusSnapshot) {
    for owned in &status.partitions {
        let known = topics.entry(owned.topic.clone()).or_default().entry(owned.partition).or_default();
        *known = own(status, owned, known);
    }
    let mut note = |topic: &str, partition: i32, state, why: &str, stands: Option<(i64, i64)>| {
        let Some(it) = topics.get_mut(topic).and_then(|all| all.get_mut(&partition)) else { return };
        (it.state, it.why) = (state, why.to_owned());
        (it.stands_at, it.stands_since) = stands.unzip();
    };
    // what comes later counts for more
    for it in &status.waiting {
        let state = if it.failed { "failed" } else { "waiting" };
        note(&it.topic, it.partition, state, &it.why, None);
    }
    for it in status.partitions.iter().filter(|it| !it.unfetched.is_empty()) {
        note(&it.topic, it.partition, "waiting", &it.unfetched, Some((it.fetched, it.unfetched_since_ms)));
    }
    for it in status.streams.iter().flat_map(|stream| &stream.unreadable) {
        note(&it.topic, it.partition, "unreadable", &it.why, Some((it.offset, it.since_ms)));
    }
    for it in &status.stuck {
        note(&it.topic, it.partition, "stuck", "", Some((it.offset, it.since_ms)));
    }
    for it in status.retried.iter().filter(|it| it.is_stuck) {
        note(&it.topic, it.partition, "stuck", &it.why, Some((it.offset, it.since_ms)));
    }
    for it in &status.halted {
        let state = match it.reason.as_str() {
            "failed" => "failed",
            "unreadable" => "unreadable",
            _ => "paused",
        };
        note(&it.topic, it.partition, state, &it.why, Some((it.offset, it.since_ms)));
    }
}

fn own(status: &StatusSnapshot, owned: &OwnedPartition, known: &Partition) -> Partition {
    Partition {
        member: status.consumer_id.clone(),
        thread: owned.thread.clone(),
        since: Some(owned.owned_since_ms),
        acked: Some(owned.acked),
        committed: owned.committed.or(known.committed),
        end: owned.high_watermark.or(known.end),
        lag: owned.lag.or(known.lag),
        ..Partition::default()
    }
}
