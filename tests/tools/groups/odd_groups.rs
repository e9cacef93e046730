//! B24: groups that made tools fail, or tell half.

use serde_json::{Value, json};
use troupe_cluster::{Cluster, KafkaVersion};

use super::{Of, our_table, ours};
use crate::members::{Ours, java, topic};
use crate::old_tools::{Ended, troupe};
use crate::znodes::Znodes;
use crate::{eventually, on_0_8_2_2, on_1_1_1, on_3_9_1};

/// Topic, partition, offset, end, lag, owner; and whether something is noted.
fn facts(ended: &Ended) -> Vec<Value> {
    let fact = |row: &Value| {
        json!([
            row["topic"],
            row["partition"],
            row["committed"],
            row["log_end"],
            row["lag"],
            row["owner"],
            row["note"].is_string()
        ])
    };
    ended.rows().iter().map(fact).collect()
}

#[track_caller]
fn note(ended: &Ended, partition: i32, what: &str) {
    let rows = ended.rows();
    let row = rows.iter().find(|row| row["partition"] == partition).unwrap();
    assert!(row["note"].as_str().is_some_and(|note| note.contains(what)), "{row}");
}

fn describe(cluster: &Cluster, of: Of, group: &str) -> Ended {
    ours(cluster, of, "describe", &["--group", group])
}

/// No members; one offset as it should be, one beyond the end, none, one of a topic that is gone, one that is no number.
#[test]
fn b24_a_group_of_zookeeper_without_members_shows_every_offset_that_it_has() {
    let (cluster, group, gone) = (on_1_1_1(), "b24-memberless", "b24-z-gone");
    topic(cluster, group, 5, 20);
    let znodes = Znodes::of(cluster);
    znodes.put(&format!("/consumers/{group}/ids"), "");
    znodes.put(&format!("/consumers/{group}/owners/{group}"), "");
    znodes.commit(group, group, 0, 3);
    znodes.commit(group, group, 1, 99);
    znodes.commit(group, group, 2, -1);
    znodes.put(&format!("/consumers/{group}/offsets/{group}/3"), "half");
    znodes.commit(group, gone, 0, 5);
    let ended = describe(cluster, Of::ZooKeeper, group);
    assert_eq!(ended.code, 0, "{ended:#?}");
    let end = cluster.log_end_offsets(group).unwrap();
    let expected = [
        json!([group, 0, 3, end[0], end[0] - 3, null, false]),
        json!([group, 1, 99, end[1], 0, null, true]),
        json!([group, 2, null, end[2], null, null, false]),
        json!([group, 3, null, end[3], null, null, true]),
        json!([gone, 0, 5, null, null, null, true]),
    ];
    let told: Vec<_> = facts(&ended).into_iter().filter(|row| row[1] != 4).collect();
    assert_eq!(told, expected, "{ended:#?}");
    note(&ended, 1, "beyond the end");
    let table = our_table(cluster, Of::ZooKeeper, "describe", &["--group", group]);
    let row = table.words().into_iter().find(|words| words[3] == "2").unwrap();
    let end = end[2].to_string();
    assert_eq!(row[2..11], [group, "2", "-", "-", end.as_str(), "-", "-", "-", "-"], "{table:#?}");
}

/// More members than partitions, and no offset yet.
#[test]
fn b24_spare_members_and_partitions_without_an_offset_are_shown() {
    let (cluster, group) = (on_1_1_1(), "b24-spare");
    topic(cluster, group, 1, 0);
    // at the end of what is empty, and nothing is committed
    let quiet = ["auto.commit.enable=false"];
    let members = [(); 2].map(|()| Ours::join(cluster, group, group, 1, &quiet));
    let ended = eventually("two members", || {
        let ended = describe(cluster, Of::ZooKeeper, group);
        let owned = ended.code == 0 && ended.rows().iter().any(|row| row["owner"].is_string());
        if owned && ended.rows().len() == 2 { Ok(ended) } else { Err(format!("{ended:?}")) }
    });
    let rows = ended.rows();
    let (spare, owned): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row["partition"].is_null());
    assert_eq!((spare.len(), owned.len()), (1, 1), "{rows:#?}");
    assert_eq!(json!([owned[0]["committed"], owned[0]["log_end"], owned[0]["lag"]]), json!([null, 0, null]));
    assert!(spare[0]["member"].is_string() && spare[0]["lag"].is_null(), "{rows:#?}");
    members.into_iter().for_each(Ours::leave);
}

#[test]
fn b24_a_group_of_kafka_without_members_shows_every_offset_that_it_has() {
    let (cluster, group, gone) = (on_3_9_1(), "b24-stored", "b24-k-gone");
    topic(cluster, group, 3, 12);
    topic(cluster, gone, 1, 4);
    let client = cluster.client();
    client.commit_offset(group, group, 0, 3).unwrap();
    client.commit_offset(group, group, 1, 99).unwrap();
    client.commit_offset(group, gone, 0, 2).unwrap();
    // the broker may forget its offset, a while later
    cluster.delete_topic(gone).unwrap();
    let ended = eventually("the topic is gone", || {
        let ended = describe(cluster, Of::Kafka, group);
        let ends = ended.rows().iter().all(|row| row["topic"] != gone || row["log_end"].is_null());
        if ended.code == 0 && ends { Ok(ended) } else { Err(format!("{ended:?}")) }
    });
    let end = cluster.log_end_offsets(group).unwrap();
    let expected =
        [json!([group, 0, 3, end[0], end[0] - 3, null, false]), json!([group, 1, 99, end[1], 0, null, true])];
    let told: Vec<_> = facts(&ended).into_iter().filter(|row| row[0] == group).collect();
    assert_eq!(told, expected, "{ended:#?}");
    note(&ended, 1, "beyond the end");
    for row in facts(&ended).into_iter().filter(|row| row[0] == gone) {
        assert_eq!(row, json!([gone, 0, 2, null, null, null, true]));
    }
}

#[test]
fn b24_spare_members_of_a_group_of_kafka_are_shown() {
    let (cluster, group) = (on_3_9_1(), "b24-java-spare");
    topic(cluster, group, 1, 0);
    let quiet = ["enable.auto.commit=false"];
    let members = [(); 2].map(|()| java(cluster, KafkaVersion::V3_9_1, group, group, &quiet));
    let ended = eventually("two members", || {
        let ended = describe(cluster, Of::Kafka, group);
        let owned = ended.code == 0 && ended.rows().iter().any(|row| row["owner"].is_string());
        if owned && ended.rows().len() == 2 { Ok(ended) } else { Err(format!("{ended:?}")) }
    });
    let rows = ended.rows();
    let owned = rows.iter().find(|row| row["partition"] == 0).unwrap();
    assert_eq!(json!([owned["committed"], owned["log_end"], owned["lag"]]), json!([null, 0, null]));
    let spare = rows.iter().find(|row| row["partition"].is_null()).unwrap();
    assert!(spare["member"].is_string(), "{rows:#?}");
    members.into_iter().for_each(|member| member.leave().unwrap());
}

#[test]
fn b24_brokers_that_coordinate_no_groups_hide_none_of_zookeeper() {
    let (cluster, group) = (on_0_8_2_2(), "b24-old");
    topic(cluster, group, 1, 4);
    Znodes::of(cluster).commit(group, group, 0, 3);
    let ended = ours(cluster, Of::Both, "describe", &["--group", group]);
    assert_eq!((ended.code, facts(&ended).len()), (0, 1), "{ended:#?}");
    let ended = ours(cluster, Of::Both, "describe", &["--group", "b24-nobody"]);
    assert!(ended.code == 1 && ended.errors.contains("does not exist"), "{ended:#?}");
    let ended = ours(cluster, Of::Both, "list", &[]);
    assert_eq!(ended.code, 0, "{ended:#?}");
    assert!(ended.rows().iter().any(|row| row["group"] == group), "{ended:#?}");
    let ended = ours(cluster, Of::Both, "delete", &["--group", group]);
    assert_eq!((ended.code, ended.rows().len()), (0, 1), "{ended:#?}");
    // of a group of which they have offsets, these are shown
    Znodes::of(cluster).commit("b24-old-stored", group, 0, 2);
    let copy = ["offsets", "copy", "--zookeeper", &cluster.zookeeper_connect(), "--group", "b24-old-stored"];
    let copied = troupe(&[&copy[..], &["--from", "zookeeper", "--to", "kafka"]].concat());
    assert_eq!(copied.code, 0, "{copied:#?}");
    let ended = ours(cluster, Of::Kafka, "describe", &["--group", "b24-old-stored"]);
    assert_eq!((ended.code, ended.rows()[0]["committed"].as_i64()), (0, Some(2)), "{ended:#?}");
}

#[test]
fn b24_a_silent_broker_hides_no_group_of_another_and_is_told() {
    let cluster = Cluster::start(KafkaVersion::V1_1_1, 2).unwrap();
    topic(&cluster, "b24-silent", 1, 4);
    // each broker leads one of them
    cluster.create_topic("b24-halves", 2, 1).unwrap();
    let names: Vec<_> = (0..8).map(|it| format!("b24-silent-{it}")).collect();
    names.iter().for_each(|group| cluster.client().commit_offset(group, "b24-silent", 0, 3).unwrap());
    let settings = cluster.folder().join("b24-silent.properties");
    std::fs::write(&settings, "socket.timeout.ms=9000\n").unwrap();
    let more = ["--command-config", settings.to_str().unwrap()];
    let all = ours(&cluster, Of::Kafka, "list", &more);
    assert_eq!((all.code, all.rows().len()), (0, 8), "{all:#?}");
    // it is the first to be asked
    cluster.broker(0).pause().unwrap();
    let list = ours(&cluster, Of::Kafka, "list", &more);
    let listed = list.rows();
    assert!(list.code == 3 && list.errors.contains("groups may be missing"), "{list:#?}");
    assert!(!listed.is_empty() && listed.len() < 8, "{list:#?}");
    // who coordinates it could be asked
    assert!(listed.iter().all(|row| row["members"] == 0), "{list:#?}");
    let get = ["offsets", "get", "--bootstrap-server", &cluster.bootstrap(), "--topic", "b24-halves"];
    let got = troupe(&[&get[..], &more].concat());
    assert_eq!((got.code, got.lines.len()), (3, 1), "{got:#?}");
    assert!(got.lines[0].ends_with(":0") && got.errors.contains("1 partitions that are there"), "{got:#?}");
    cluster.broker(0).resume().unwrap();
}

#[test]
fn b24_a_group_that_may_not_be_read_hides_no_other() {
    let cluster = Cluster::start(KafkaVersion::V1_1_1, 1).unwrap();
    topic(&cluster, "b24-open", 1, 4);
    let nodes = Znodes::of(&cluster);
    nodes.commit("b24-open", "b24-open", 0, 3);
    nodes.put("/consumers/b24-locked/owners", "");
    ["ids", "offsets"].iter().for_each(|it| nodes.lock(&format!("/consumers/b24-locked/{it}")));
    let connect = cluster.zookeeper_connect();
    let list = ours(&cluster, Of::ZooKeeper, "list", &[]);
    let listed: Vec<_> = list.rows().iter().map(|row| json!([row["group"], row["members"]])).collect();
    assert_eq!(listed, [json!(["b24-locked", null]), json!(["b24-open", 0])], "{list:#?}");
    let described = ours(&cluster, Of::ZooKeeper, "describe", &["--all-groups"]);
    assert_eq!(facts(&described).len(), 1, "{described:#?}");
    let exported = troupe(&["offsets", "export", "--zookeeper", &connect]);
    assert_eq!(exported.lines, ["/consumers/b24-open/offsets/b24-open/0:3"], "{exported:#?}");
    for ended in [list, described, exported] {
        assert!(ended.code == 3 && ended.errors.contains("b24-locked"), "{ended:#?}");
    }
}

#[test]
fn b24_an_unknown_group_does_not_exist_and_those_beside_it_are_shown() {
    let (cluster, group) = (on_3_9_1(), "b24-known");
    topic(cluster, group, 1, 4);
    cluster.client().commit_offset(group, group, 0, 3).unwrap();
    Znodes::of(cluster).commit(group, group, 0, 3);
    for of in [Of::ZooKeeper, Of::Kafka, Of::Both] {
        let ended = ours(cluster, of, "describe", &["--group", "b24-unknown", "--group", group]);
        assert_eq!(ended.code, 1, "{ended:#?}");
        assert!(ended.errors.contains("b24-unknown\" does not exist"), "{ended:#?}");
        assert!(facts(&ended).iter().all(|row| row[2] == 3), "{ended:#?}");
        assert_eq!(ended.rows().len(), if of == Of::Both { 2 } else { 1 }, "{ended:#?}");
    }
}
