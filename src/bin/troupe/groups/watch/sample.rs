//! A group for the tests: two members, four partitions, and things that are wrong.

use kafka_troupe_proto::schemas::group::v1::{GroupMember, GroupPartition, GroupView};

use super::snapshot::Snapshot;

/// 2017-03-20 08:53:20 UTC.
pub const BEGUN_MS: i64 = 1_490_000_000_000;

/// The group `mirror` `seconds` after [`BEGUN_MS`], each of its partitions read to `committed`, and 100 more each
/// second to come.
pub fn view(seconds: i64, committed: i64) -> GroupView {
    let partitions = [("a", 0), ("a", 1), ("b", 2), ("b", 3)];
    let partitions = partitions.map(|(member, number)| partition(member, number, committed));
    GroupView {
        group: "mirror".into(),
        taken_ms: BEGUN_MS + seconds * 1_000,
        members: vec![member("a"), member("b")],
        partitions: partitions.into_iter().map(|it| with_end(it, 1_000 + 100 * seconds)).collect(),
        ..GroupView::default()
    }
}

pub fn read(seconds: i64, committed: i64) -> Snapshot {
    Snapshot::of_view(view(seconds, committed))
}

fn member(host: &str) -> GroupMember {
    GroupMember {
        id: id(host),
        pattern: "static".into(),
        subscription: "orders (2)".into(),
        since_ms: BEGUN_MS - 192_000,
        ..GroupMember::default()
    }
}

pub fn id(host: &str) -> String {
    format!("mirror_app-{host}-1489999808000-0123abcd")
}

pub fn partition(host: &str, number: i32, committed: i64) -> GroupPartition {
    GroupPartition {
        topic: "orders".into(),
        partition: number,
        owner_thread: Some(format!("{}-{}", id(host), number % 2)),
        owner_member: id(host),
        since_ms: Some(BEGUN_MS - 12_000),
        committed_zookeeper: Some(committed),
        exists: Some(true),
        ..GroupPartition::default()
    }
}

fn with_end(mut partition: GroupPartition, end: i64) -> GroupPartition {
    partition.log_end = Some(end);
    partition.lag = partition.committed_zookeeper.map(|committed| (end - committed).max(0));
    partition
}
