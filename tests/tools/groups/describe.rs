//! Descriptions, row by row beside the old tools'.

use std::collections::BTreeSet;

use serde_json::Value;
use troupe_cluster::{Cluster, KafkaVersion};

use super::{Of, cells, field, fields, old_groups, our_table, ours};
use crate::members::{Ours, java, scala, topic};
use crate::old_tools::{Ended, old_tool};
use crate::znodes::Znodes;
use crate::{eventually, on_0_8_2_2, on_1_1_1, on_3_9_1, on_4_1_1};

/// The rows of `group`, which must be there.
fn described(cluster: &Cluster, of: Of, group: &str, more: &[&str]) -> Vec<Value> {
    let ended = ours(cluster, of, "describe", &[&["--group", group], more].concat());
    assert_eq!(ended.code, 0, "{ended:#?}");
    ended.rows()
}

/// Those of partitions, once each of them is owned and read to its end, by `members` members in all.
fn settled(cluster: &Cluster, of: Of, group: &str, partitions: usize, members: usize) -> Vec<Value> {
    eventually("a group that has read all", || {
        let ended = ours(cluster, of, "describe", &["--group", group]);
        if ended.code == 1 {
            return Err(format!("{ended:?}"));
        }
        let rows = ended.rows();
        let done = rows.iter().filter(|row| row["lag"] == 0 && !row["owner"].is_null()).count();
        let known: BTreeSet<_> = rows.iter().filter_map(|row| field(row, "member")).collect();
        if done == partitions && known.len() == members { Ok(rows) } else { Err(format!("{rows:#?}")) }
    })
}

/// The rows of a settled group and what the old tool says of it, with nothing moving meanwhile.
fn beside(
    cluster: &Cluster,
    of: Of,
    group: &str,
    (partitions, members): (usize, usize),
    old: impl Fn() -> Ended,
) -> (Vec<Value>, Ended) {
    eventually("a group that stands still", || {
        let before = settled(cluster, of, group, partitions, members);
        let old = old();
        let after = described(cluster, of, group, &[]);
        if before == after { Ok((before, old)) } else { Err(format!("{before:#?} then {after:#?}")) }
    })
}

/// Topic, partition, offset, end, lag and member of partitions.
fn facts(rows: &[Value]) -> Vec<[Option<String>; 6]> {
    let rows: Vec<_> = rows.iter().filter(|row| !row["partition"].is_null()).cloned().collect();
    fields(&rows, ["topic", "partition", "committed", "log_end", "lag", "member"])
}

/// Members that have no partition.
fn spare(rows: &[Value]) -> BTreeSet<String> {
    rows.iter().filter(|row| row["partition"].is_null()).filter_map(|row| field(row, "member")).collect()
}

/// The same of an old table: topic is this column, the member's id that one.
fn old_facts(ended: &Ended, topic: usize, member: usize) -> (Vec<[Option<String>; 6]>, BTreeSet<String>) {
    let first = if topic == 0 { "TOPIC" } else { "GROUP" };
    let columns = [topic, topic + 1, topic + 2, topic + 3, topic + 4, member];
    let (spare, partitions): (Vec<_>, Vec<_>) =
        cells(ended, first, columns).into_iter().partition(|row| row[1].is_none());
    (partitions, spare.into_iter().filter_map(|[.., member]| member).collect())
}

/// Members of both kinds, one of which has nothing to do.
#[test]
fn a_mixed_group_with_a_spare_member_is_described_as_by_the_old_tool() {
    let (cluster, version, group) = (on_1_1_1(), KafkaVersion::V1_1_1, "described-mixed");
    topic(cluster, group, 3, 30);
    let ours = Ours::join(cluster, group, group, 2, &[]);
    let first = scala(cluster, version, group, (group, 2), &[]);
    let second = scala(cluster, version, group, (group, 1), &[]);
    let old = || in_zookeeper(cluster, group);
    let (rows, old) = beside(cluster, Of::ZooKeeper, group, (3, 3), old);
    let (partitions, without) = old_facts(&old, 0, 5);
    assert_eq!(facts(&rows), partitions, "{old:#?}");
    assert_eq!(spare(&rows), without, "{old:#?}");
    assert_eq!(without.len(), 1, "{old:#?}");
    assert!(rows.iter().all(|row| !row["client_host"].is_null()), "{rows:#?}");
    owners_are_threads(cluster, group, &rows);
    members_are_shown(cluster, group);
    state_is_shown(cluster, group);
    ours.leave();
    first.leave().unwrap();
    second.leave().unwrap();
    without_members_the_offsets_stay(cluster, group);
}

/// What the old tool says.
fn in_zookeeper(cluster: &Cluster, group: &str) -> Ended {
    let connect = cluster.zookeeper_connect();
    old_groups(cluster, KafkaVersion::V1_1_1, &["--zookeeper", &connect, "--describe", "--group", group])
}

/// The owner is what stands in the node.
fn owners_are_threads(cluster: &Cluster, group: &str, rows: &[Value]) {
    let znodes = Znodes::of(cluster);
    for row in rows.iter().filter(|row| !row["partition"].is_null()) {
        let node = znodes.data(&format!("/consumers/{group}/owners/{group}/{}", row["partition"]));
        assert_eq!(field(row, "owner"), node);
        assert!(
            row["since"].as_str().is_some_and(|since| since.starts_with("20") && since.ends_with('Z')),
            "{row}"
        );
        assert_eq!(row["offset_store"], "zookeeper");
    }
}

fn members_are_shown(cluster: &Cluster, group: &str) {
    let rows = described(cluster, Of::ZooKeeper, group, &["--members"]);
    assert_eq!(rows.len(), 3, "{rows:#?}");
    let owned: u64 = rows.iter().map(|row| row["owned"].as_u64().unwrap()).sum();
    assert_eq!(owned, 3);
    let mut streams: Vec<_> = rows.iter().map(|row| row["streams"].as_u64().unwrap()).collect();
    streams.sort_unstable();
    assert_eq!(streams, [1, 2, 2]);
    for row in &rows {
        let expected = format!("{group} ({})", row["streams"]);
        assert_eq!(field(row, "subscription"), Some(expected));
    }
    let registered = Znodes::of(cluster).children(&format!("/consumers/{group}/ids"));
    let shown: Vec<_> = rows.iter().filter_map(|row| field(row, "member")).collect();
    assert_eq!(shown, registered);
}

fn state_is_shown(cluster: &Cluster, group: &str) {
    let rows = described(cluster, Of::ZooKeeper, group, &["--state"]);
    let expected = [["zookeeper", "Active", "3", "3", "0"].map(|text| Some(text.to_owned()))];
    assert_eq!(fields(&rows, ["coordination", "state", "members", "partitions", "lag"]), expected);
}

fn without_members_the_offsets_stay(cluster: &Cluster, group: &str) {
    let rows = described(cluster, Of::ZooKeeper, group, &[]);
    let old = in_zookeeper(cluster, group);
    assert_eq!(facts(&rows), old_facts(&old, 0, 5).0, "{old:#?}");
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row["owner"].is_null() && row["lag"] == 0), "{rows:#?}");
    let state = described(cluster, Of::ZooKeeper, group, &["--state"]);
    assert_eq!(field(&state[0], "state").as_deref(), Some("Empty"));
}

/// Kafka is where these members store their offsets.
#[test]
fn offsets_stored_in_kafka_are_shown_as_by_the_old_tool() {
    let (cluster, version, group) = (on_1_1_1(), KafkaVersion::V1_1_1, "described-stored");
    topic(cluster, group, 2, 20);
    let stored = ["offsets.storage=kafka", "dual.commit.enabled=false"];
    let ours = Ours::join(cluster, group, group, 1, &stored);
    let theirs = scala(cluster, version, group, (group, 1), &stored);
    let old = || in_zookeeper(cluster, group);
    let (rows, old) = beside(cluster, Of::ZooKeeper, group, (2, 2), old);
    assert!(rows.iter().all(|row| row["offset_store"] == "kafka"), "{rows:#?}");
    assert_eq!(facts(&rows), old_facts(&old, 0, 5).0, "{old:#?}");
    ours.leave();
    theirs.leave().unwrap();
}

#[test]
fn the_offset_checker_of_0_8_2_2_says_the_same() {
    let (cluster, version, group) = (on_0_8_2_2(), KafkaVersion::V0_8_2_2, "described-checked");
    topic(cluster, group, 3, 30);
    let ours = Ours::join(cluster, group, group, 2, &[]);
    let theirs = scala(cluster, version, group, (group, 2), &[]);
    let connect = cluster.zookeeper_connect();
    let class = "kafka.tools.ConsumerOffsetChecker";
    let old = || old_tool(cluster, version, class, &["--zookeeper", &connect, "--group", group]);
    let (rows, old) = beside(cluster, Of::ZooKeeper, group, (3, 2), old);
    let columns = ["topic", "partition", "committed", "log_end", "lag", "owner"];
    assert_eq!(fields(&rows, columns), cells(&old, "Group", [1, 2, 3, 4, 5, 6]), "{old:#?}");
    assert_eq!(rows.len(), 3);
    ours.leave();
    theirs.leave().unwrap();
}

/// Which asks Kafka first, too.
#[test]
fn the_offset_checker_of_0_8_2_2_says_the_same_of_offsets_in_kafka() {
    let (cluster, version, group) = (on_0_8_2_2(), KafkaVersion::V0_8_2_2, "described-checked-stored");
    topic(cluster, group, 2, 20);
    let stored = ["offsets.storage=kafka", "dual.commit.enabled=false"];
    let ours = Ours::join(cluster, group, group, 1, &stored);
    let theirs = scala(cluster, version, group, (group, 1), &stored);
    let connect = cluster.zookeeper_connect();
    let class = "kafka.tools.ConsumerOffsetChecker";
    let old = || old_tool(cluster, version, class, &["--zookeeper", &connect, "--group", group]);
    let (rows, old) = beside(cluster, Of::ZooKeeper, group, (2, 2), old);
    let columns = ["topic", "partition", "committed", "log_end", "lag", "owner"];
    assert_eq!(fields(&rows, columns), cells(&old, "Group", [1, 2, 3, 4, 5, 6]), "{old:#?}");
    assert!(rows.iter().all(|row| row["offset_store"] == "kafka"), "{rows:#?}");
    ours.leave();
    theirs.leave().unwrap();
}

fn a_group_of_kafka(cluster: &Cluster, version: KafkaVersion, properties: &[&str], group: &str) {
    topic(cluster, group, 2, 20);
    let members: Vec<_> = (0..3).map(|_| java(cluster, version, group, group, properties)).collect();
    let servers = cluster.bootstrap();
    let old =
        || old_groups(cluster, version, &["--bootstrap-server", &servers, "--describe", "--group", group]);
    // the new protocol is slow to take one of two partitions from its owner
    let (rows, told) = eventually("a member for each partition", || {
        let (rows, told) = beside(cluster, Of::Kafka, group, (2, 3), old);
        if spare(&rows).len() == 1 { Ok((rows, told)) } else { Err(format!("{rows:#?}")) }
    });
    let topic = usize::from(version > KafkaVersion::V1_1_1);
    assert_eq!(facts(&rows), old_facts(&told, topic, topic + 5).0, "{told:#?}");
    let without = spare(&rows);
    assert_eq!(without.len(), 1);
    // which the old tool shows here only
    let told = old_groups(
        cluster,
        version,
        &["--bootstrap-server", &servers, "--describe", "--members", "--group", group],
    );
    let rows = described(cluster, Of::Kafka, group, &["--members", "--verbose"]);
    let old_members = match topic {
        0 => cells(&told, "CONSUMER-ID", [0, 1, 2, 3]),
        _ => {
            let instance = usize::from(told.words().iter().any(|words| words.contains(&"GROUP-INSTANCE-ID")));
            cells(&told, "GROUP", [1, 2 + instance, 3 + instance, 4 + instance])
        }
    };
    let old_members: Vec<_> = old_members
        .into_iter()
        .map(|[id, host, client, owned]| [id, host.map(|host| host.replace('/', "")), client, owned])
        .collect();
    assert_eq!(fields(&rows, ["member", "client_host", "client_id", "owned"]), old_members, "{told:#?}");
    let old_spare = old_members.into_iter().filter(|[.., owned]| owned.as_deref() == Some("0"));
    assert_eq!(without, old_spare.filter_map(|[member, ..]| member).collect());
    for member in members {
        member.leave().unwrap();
    }
    let rows = described(cluster, Of::Kafka, group, &[]);
    let told = old();
    assert_eq!(facts(&rows), old_facts(&told, topic, topic + 5).0, "{told:#?}");
    assert_eq!(rows.len(), 2);
}

#[test]
fn a_group_of_kafka_1_1_1_is_described_as_by_its_tool() {
    a_group_of_kafka(on_1_1_1(), KafkaVersion::V1_1_1, &[], "described-java");
}

#[test]
fn a_group_of_kafka_3_9_1_is_described_as_by_its_tool() {
    a_group_of_kafka(on_3_9_1(), KafkaVersion::V3_9_1, &[], "described-java");
}

#[test]
fn a_group_of_the_new_protocol_is_described_as_by_the_tool_of_4_1_1() {
    let properties = ["group.protocol=consumer"];
    a_group_of_kafka(on_4_1_1(), KafkaVersion::V4_1_1, &properties, "described-848");
    let rows = described(on_4_1_1(), Of::Kafka, "described-848", &["--state"]);
    assert_eq!(field(&rows[0], "type").as_deref(), Some("consumer"));
}

/// The group's ZooKeeper is nobody else's there.
#[test]
fn a_group_of_zookeeper_on_kafka_4_has_its_ends_from_the_brokers_that_are_named() {
    let (cluster, group) = (on_4_1_1(), "described-kraft");
    topic(cluster, group, 2, 20);
    let servers = format!("bootstrap.servers={}", cluster.bootstrap());
    let member = Ours::join(cluster, group, group, 1, &[&servers]);
    let rows = settled(cluster, Of::Both, group, 2, 1);
    assert_eq!(rows.len(), 2, "{rows:#?}");
    let ended = ours(cluster, Of::ZooKeeper, "describe", &["--group", group]);
    assert_eq!(ended.code, 0, "{ended:#?}");
    assert!(ended.errors.contains("ends of logs"), "{ended:#?}");
    assert_eq!(ended.rows().len(), 2, "{ended:#?}");
    assert!(ended.rows().iter().all(|row| row["log_end"].is_null() && row["committed"].is_number()));
    member.leave();
}

#[test]
fn a_name_in_both_places_is_described_twice() {
    let (cluster, group) = (on_3_9_1(), "described-twice");
    topic(cluster, group, 1, 9);
    Znodes::of(cluster).commit(group, group, 0, 7);
    cluster.client().commit_offset(group, group, 0, 4).unwrap();
    let ended = ours(cluster, Of::Both, "describe", &["--group", group]);
    let rows = fields(&ended.rows(), ["coordination", "committed", "offset_store", "committed_kafka"]);
    let expected = [["kafka", "4", "kafka", "4"], ["zookeeper", "7", "zookeeper", "4"]];
    assert_eq!(rows, expected.map(|row| row.map(|text| Some(text.to_owned()))), "{ended:#?}");
    let said = format!("{group:?}: a group in ZooKeeper, and another in Kafka");
    assert!(ended.errors.contains(&said), "{ended:#?}");
    let all = ours(cluster, Of::Both, "describe", &["--all-groups"]);
    assert_eq!(all.rows().iter().filter(|row| row["group"] == group).count(), 2, "{all:#?}");
    let table = our_table(cluster, Of::ZooKeeper, "describe", &["--group", group]);
    let head = &table.words()[0];
    assert_eq!(head[..4], ["GROUP", "COORDINATION", "TOPIC", "PARTITION"]);
    let row = &table.words()[1];
    assert_eq!(row[..9], [group, "zookeeper", group, "0", "7", "zookeeper", "9", "2", "-"]);
}
