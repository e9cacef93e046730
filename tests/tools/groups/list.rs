//! Lists.

use std::collections::BTreeSet;

use troupe_cluster::{Cluster, KafkaVersion};

use super::{Of, field, old_groups, our_table, ours};
use crate::members::{Ours, java, topic};
use crate::old_tools::Ended;
use crate::znodes::Znodes;
use crate::{eventually, on_0_8_2_2, on_1_1_1, on_3_9_1, on_4_1_1};

/// Those that this module makes: others come and go.
fn names(lines: &[String]) -> BTreeSet<String> {
    lines.iter().filter(|line| line.starts_with("listed")).cloned().collect()
}

fn listed(ended: &Ended) -> BTreeSet<String> {
    names(&ended.rows().iter().map(|row| field(row, "group").unwrap()).collect::<Vec<_>>())
}

fn row(ended: &Ended, group: &str, coordination: &str) -> Vec<Option<String>> {
    let rows = ended.rows();
    let is_it = |row: &&serde_json::Value| row["group"] == group && row["coordination"] == coordination;
    let row = rows.iter().find(is_it).unwrap_or_else(|| panic!("no {group}: {ended:#?}"));
    ["type", "state", "members"].map(|key| field(row, key)).into()
}

fn told(told: [Option<&str>; 3]) -> Vec<Option<String>> {
    told.map(|text| text.map(str::to_owned)).into()
}

#[test]
fn lists_the_same_groups_of_zookeeper_as_the_old_tool() {
    let (cluster, version) = (on_1_1_1(), KafkaVersion::V1_1_1);
    Znodes::of(cluster).commit("listed-idle", "of-listed", 0, 7);
    topic(cluster, "listed-active", 1, 1);
    let member = Ours::join(cluster, "listed-active", "listed-active", 1, &[]);
    let ended = eventually("a member", || {
        let ended = ours(cluster, Of::ZooKeeper, "list", &[]);
        if listed(&ended).len() == 2 && row(&ended, "listed-active", "zookeeper")[2].as_deref() == Some("1") {
            return Ok(ended);
        }
        Err(format!("{ended:?}"))
    });
    assert_eq!(ended.code, 0);
    let old = old_groups(cluster, version, &["--zookeeper", &cluster.zookeeper_connect(), "--list"]);
    assert_eq!(listed(&ended), names(&old.printed()));
    assert_eq!(row(&ended, "listed-active", "zookeeper"), told([None, Some("Active"), Some("1")]));
    assert_eq!(row(&ended, "listed-idle", "zookeeper"), told([None, Some("Empty"), Some("0")]));
    member.leave();
}

fn lists_the_same_groups_of_kafka(cluster: &Cluster, version: KafkaVersion) {
    topic(cluster, "listed-topic", 2, 4);
    let _member = java(cluster, version, "listed-kafka", "listed-topic", &[]);
    cluster.client().commit_offset("listed-offsets", "listed-topic", 0, 1).unwrap();
    let ended = eventually("a stable group", || {
        let ended = ours(cluster, Of::Kafka, "list", &[]);
        let is_stable = listed(&ended).contains("listed-kafka")
            && row(&ended, "listed-kafka", "kafka") == told([Some("classic"), Some("Stable"), Some("1")]);
        if is_stable { Ok(ended) } else { Err(format!("{ended:?}")) }
    });
    let old = old_groups(cluster, version, &["--bootstrap-server", &cluster.bootstrap(), "--list"]);
    assert_eq!(listed(&ended), names(&old.printed()));
    assert_eq!(row(&ended, "listed-offsets", "kafka"), told([Some("classic"), Some("Empty"), Some("0")]));
}

#[test]
fn lists_the_same_groups_of_kafka_1_1_1_as_its_tool() {
    lists_the_same_groups_of_kafka(on_1_1_1(), KafkaVersion::V1_1_1);
}

#[test]
fn lists_the_same_groups_of_kafka_3_9_1_as_its_tool() {
    lists_the_same_groups_of_kafka(on_3_9_1(), KafkaVersion::V3_9_1);
}

#[test]
fn a_name_in_both_places_is_listed_twice() {
    let cluster = on_3_9_1();
    Znodes::of(cluster).commit("listed-twice", "of-listed", 0, 7);
    topic(cluster, "listed-twice", 1, 1);
    cluster.client().commit_offset("listed-twice", "listed-twice", 0, 1).unwrap();
    let ended = ours(cluster, Of::Both, "list", &[]);
    row(&ended, "listed-twice", "zookeeper");
    row(&ended, "listed-twice", "kafka");
    let table = our_table(cluster, Of::Both, "list", &[]);
    let words = table.words();
    assert_eq!(words[0], ["GROUP", "COORDINATION", "TYPE", "STATE", "#MEMBERS"]);
    assert!(words.contains(&vec!["listed-twice", "zookeeper", "-", "Empty", "0"]), "{table:#?}");
    assert!(words.contains(&vec!["listed-twice", "kafka", "classic", "Empty", "0"]), "{table:#?}");
}

#[test]
fn groups_of_the_new_protocol_are_listed_with_their_type() {
    let (cluster, version) = (on_4_1_1(), KafkaVersion::V4_1_1);
    topic(cluster, "listed-topic", 2, 4);
    let _new = java(cluster, version, "listed-consumer", "listed-topic", &["group.protocol=consumer"]);
    let _classic = java(cluster, version, "listed-classic", "listed-topic", &[]);
    eventually("both", || {
        let ended = ours(cluster, Of::Kafka, "list", &[]);
        if listed(&ended).len() < 2 {
            return Err(format!("{ended:?}"));
        }
        let (new, classic) =
            (row(&ended, "listed-consumer", "kafka"), row(&ended, "listed-classic", "kafka"));
        let is_it = new == told([Some("consumer"), Some("Stable"), Some("1")])
            && classic == told([Some("classic"), Some("Stable"), Some("1")]);
        if is_it { Ok(()) } else { Err(format!("{ended:?}")) }
    });
    let old = old_groups(cluster, version, &["--bootstrap-server", &cluster.bootstrap(), "--list"]);
    assert_eq!(listed(&ours(cluster, Of::Kafka, "list", &[])), names(&old.printed()));
    // as its tool is asked for less
    let new = ours(cluster, Of::Kafka, "list", &["--type", "consumer,share", "--state", "STABLE"]);
    assert_eq!(listed(&new), names(&["listed-consumer".to_owned()]));
    assert_eq!(listed(&ours(cluster, Of::Kafka, "list", &["--state", "Empty"])), BTreeSet::new());
    assert_eq!(listed(&ours(cluster, Of::Kafka, "list", &["--state"])).len(), 2);
}

#[test]
fn servers_that_cannot_tell_are_no_empty_list() {
    // brokers of 0.8 name no broker before there is a topic
    topic(on_0_8_2_2(), "listed-old", 1, 1);
    let old = ours(on_0_8_2_2(), Of::Kafka, "list", &[]);
    assert_eq!((old.code, old.lines.len()), (3, 0), "{old:#?}");
    assert!(old.errors.contains("too old"), "{old:#?}");
    for flag in ["--zookeeper", "--bootstrap-server"] {
        let port = troupe_cluster::free_port().unwrap();
        let ended = crate::old_tools::troupe(&["groups", "list", flag, &format!("127.0.0.1:{port}")]);
        assert_eq!((ended.code, ended.lines.len()), (3, 0), "{ended:#?}");
        assert!(ended.errors.contains(&port.to_string()), "{ended:#?}");
    }
}

#[test]
fn without_servers_the_missing_flag_is_named() {
    for command in [&["list"][..], &["describe", "--group", "g"], &["delete", "--group", "g"]] {
        let ended = crate::old_tools::troupe(&[&["groups"], command].concat());
        assert_eq!(ended.code, 2, "{ended:?}");
        assert!(ended.errors.contains("--zookeeper"), "{ended:?}");
        assert!(ended.errors.contains("--bootstrap-server"), "{ended:?}");
    }
}
