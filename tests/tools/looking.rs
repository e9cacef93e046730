//! To look at groups changes nothing on the servers.

use troupe_cluster::{Cluster, KafkaVersion, ProduceRecord};

use crate::eventually;
use crate::old_tools::troupe;
use crate::znodes::Znodes;

/// A group of offsets in ZooKeeper alone, and no topic but `seen`.
fn looking_makes_no_topic(version: KafkaVersion, brokers: usize) {
    let cluster = Cluster::start(version, brokers).unwrap();
    cluster.create_topic("seen", 1, 1).unwrap();
    cluster.wait_for_leaders("seen").unwrap();
    Znodes::of(&cluster).commit("seen", "seen", 0, 0);
    let (connect, bootstrap) = (cluster.zookeeper_connect(), cluster.bootstrap());
    let all = ["--all-topics", "--to-earliest"];
    let copy = ["--from", "zookeeper", "--to", "kafka", "--dry-run"];
    for (command, group, more, code) in [
        (&["groups", "list"][..], None, &[][..], 0),
        (&["groups", "describe"], Some("seen"), &[], 0),
        (&["groups", "describe"], Some("nobody"), &[], 1),
        (&["groups", "delete"], Some("nobody"), &[], 1),
        (&["groups", "reset"], Some("seen"), &all, 0),
        (&["groups", "reset"], Some("nobody"), &all, 1),
        (&["offsets", "copy"], Some("seen"), &copy, 0),
        (&["offsets", "get"], None, &[], 0),
        (&["verify"], Some("nobody"), &[], 1),
        (&["verify"], Some("seen"), &["--within", "0"], 1),
    ] {
        let group = group.map_or(Vec::new(), |group| vec!["--group", group]);
        let servers = ["--zookeeper", &connect, "--bootstrap-server", &bootstrap];
        let ended = troupe(&[command, &servers[..], &group[..], more].concat());
        assert_eq!(ended.code, code, "{command:?} {group:?}: {ended:#?}");
        assert_eq!(cluster.client().topics().unwrap(), ["seen"], "{command:?} {group:?}: {ended:#?}");
    }
}

#[test]
fn looking_makes_no_topic_on_0_8_2_2() {
    looking_makes_no_topic(KafkaVersion::V0_8_2_2, 1);
}

#[test]
fn looking_makes_no_topic_on_1_1_1() {
    looking_makes_no_topic(KafkaVersion::V1_1_1, 1);
}

#[test]
fn looking_makes_no_topic_on_4_1_1() {
    looking_makes_no_topic(KafkaVersion::V4_1_1, 1);
}

#[test]
fn offsets_in_kafka_are_told_where_their_topic_may_not_be_seen() {
    let authorizer = ("authorizer.class.name", "kafka.security.auth.SimpleAclAuthorizer");
    let builder = Cluster::builder().kafka(KafkaVersion::V1_1_1).broker_property(authorizer.0, authorizer.1);
    let cluster = builder.broker_property("allow.everyone.if.no.acl.found", "true").start().unwrap();
    cluster.create_topic("hidden", 1, 1).unwrap();
    cluster.wait_for_leaders("hidden").unwrap();
    cluster.produce("hidden", [ProduceRecord::value("record")]).unwrap();
    cluster.client().commit_offset("hidden", "hidden", 0, 1).unwrap();
    let nodes = Znodes::of(&cluster);
    nodes.commit("hidden", "hidden", 0, 0);
    let denied = r#"{"version":1,"acls":[{"principal":"User:*","permissionType":"Deny","operation":"Describe","host":"*"}]}"#;
    nodes.put("/kafka-acl/Topic/__consumer_offsets", denied);
    nodes.put("/kafka-acl-changes/acl_changes_0000000000", "Topic:__consumer_offsets");
    let (connect, bootstrap) = (cluster.zookeeper_connect(), cluster.bootstrap());
    eventually("the topic of offsets is hidden", || match cluster.client().topics() {
        Ok(topics) if topics == ["hidden"] => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let servers = ["--zookeeper", &connect, "--bootstrap-server", &bootstrap, "--group", "hidden"];
    let copy = ["offsets", "copy", "--from", "zookeeper", "--to", "kafka", "--output", "json"];
    let ended = troupe(&[&copy[..], &servers].concat());
    let rows = ended.rows();
    assert_eq!((ended.code, rows[0]["old_offset"].as_i64()), (0, Some(1)), "{ended:#?}");
    assert!(rows[0]["note"].as_str().unwrap().contains("is less: kept"), "{ended:#?}");
    assert_eq!(cluster.client().committed_offsets("hidden", "hidden").unwrap()[&0], 1);
}
