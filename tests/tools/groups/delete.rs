//! Deletions, and the same refusals as the old tool's.

use serde_json::{Value, json};
use troupe_cluster::{Cluster, KafkaVersion};

use super::{Of, old_groups, our_table, ours};
use crate::members::{Ours, java, topic};
use crate::old_tools::{Ended, troupe};
use crate::znodes::Znodes;
use crate::{eventually, on_1_1_1, on_3_9_1};

/// Group, coordination, whether it is deleted.
fn results(ended: &Ended) -> Vec<Value> {
    ended.rows().iter().map(|row| json!([row["group"], row["coordination"], row["deleted"]])).collect()
}

fn old_delete(cluster: &Cluster, more: &[&str]) -> String {
    let connect = cluster.zookeeper_connect();
    let arguments = [&["--zookeeper", &connect, "--delete"], more].concat();
    let old = old_groups(cluster, KafkaVersion::V1_1_1, &arguments);
    old.lines.join("\n") + &old.errors
}

#[test]
fn a_group_with_members_and_one_that_is_not_there_are_refused_as_by_the_old_tool() {
    let (cluster, group) = (on_1_1_1(), "deleted-active");
    topic(cluster, group, 1, 1);
    let member = Ours::join(cluster, group, group, 1, &[]);
    let znodes = Znodes::of(cluster);
    eventually("a member that owns and has committed", || {
        let owned = znodes.exists(&format!("/consumers/{group}/owners/{group}/0"));
        let committed = znodes.data(&format!("/consumers/{group}/offsets/{group}/0"));
        if owned && committed.as_deref() == Some("1") { Ok(()) } else { Err(format!("{committed:?}")) }
    });
    let ended = ours(cluster, Of::ZooKeeper, "delete", &["--group", group, "--group", "deleted-nobody"]);
    assert_eq!(ended.code, 1, "{ended:#?}");
    let expected = [json!([group, "zookeeper", false]), json!(["deleted-nobody", null, false])];
    assert_eq!(results(&ended), expected);
    let reasons: Vec<_> = ended.rows().iter().map(|row| row["reason"].to_string()).collect();
    assert!(reasons[0].contains("is active") && reasons[0].contains(group), "{reasons:?}");
    assert!(reasons[1].contains("does not exist"), "{reasons:?}");
    let old = old_delete(cluster, &["--group", group]);
    assert!(old.contains("failed because its consumers are still active"), "{old}");
    let old = old_delete(cluster, &["--group", "deleted-nobody"]);
    assert!(old.contains("failed because group does not exist"), "{old}");
    let of_topic = ours(cluster, Of::ZooKeeper, "delete", &["--group", group, "--topic", group]);
    assert_eq!((of_topic.code, results(&of_topic)), (1, vec![json!([group, "zookeeper", false])]));
    assert!(znodes.exists(&format!("/consumers/{group}/offsets/{group}/0")));
    member.leave();
    let ended = ours(cluster, Of::ZooKeeper, "delete", &["--group", group]);
    assert_eq!((ended.code, results(&ended)), (0, vec![json!([group, "zookeeper", true])]), "{ended:#?}");
    assert!(!znodes.exists(&format!("/consumers/{group}")));
}

/// A group as it is left by members that have gone.
fn left(znodes: &Znodes, group: &str, topics: &[&str]) {
    znodes.put(&format!("/consumers/{group}/ids"), "");
    for topic in topics {
        znodes.put(&format!("/consumers/{group}/owners/{topic}"), "");
        znodes.commit(group, topic, 0, 7);
    }
}

/// The names of a group's nodes, to compare what is left.
fn nodes(znodes: &Znodes, group: &str) -> Vec<Vec<String>> {
    let paths = ["", "/ids", "/owners", "/offsets"].map(|path| format!("/consumers/{group}{path}"));
    paths.iter().map(|path| znodes.children(path)).collect()
}

#[test]
fn one_topic_of_a_group_is_deleted_as_by_the_old_tool() {
    let (cluster, connect) = (on_1_1_1(), on_1_1_1().zookeeper_connect());
    let znodes = Znodes::of(cluster);
    for topics in [&["deleted-a", "deleted-b"][..], &["deleted-a"]] {
        left(&znodes, "deleted-ours", topics);
        left(&znodes, "deleted-theirs", topics);
        let ended =
            ours(cluster, Of::ZooKeeper, "delete", &["--group", "deleted-ours", "--topic", "deleted-a"]);
        assert_eq!(ended.code, 0, "{ended:#?}");
        let old = old_delete(cluster, &["--group", "deleted-theirs", "--topic", "deleted-a"]);
        assert!(old.contains("Deleted consumer group information for group"), "{old}");
        assert_eq!(nodes(&znodes, "deleted-ours"), nodes(&znodes, "deleted-theirs"), "{topics:?} {connect}");
        old_delete(cluster, &["--group", "deleted-theirs"]);
        if znodes.exists("/consumers/deleted-ours") {
            assert_eq!(ours(cluster, Of::ZooKeeper, "delete", &["--group", "deleted-ours"]).code, 0);
        }
    }
}

/// The old tool gives up as soon as any group has no offsets.
#[test]
fn a_topic_is_deleted_of_all_groups_without_members() {
    let cluster = on_1_1_1();
    let znodes = Znodes::of(cluster);
    left(&znodes, "deleted-one", &["deleted-everywhere", "deleted-elsewhere"]);
    left(&znodes, "deleted-two", &["deleted-everywhere"]);
    left(&znodes, "deleted-other", &["deleted-elsewhere"]);
    znodes.put("/consumers/deleted-empty", "");
    left(&znodes, "deleted-busy", &["deleted-everywhere"]);
    znodes.ephemeral("/consumers/deleted-busy/ids/somebody", "{}");
    let ended = ours(cluster, Of::ZooKeeper, "delete", &["--topic", "deleted-everywhere"]);
    assert_eq!(ended.code, 0, "{ended:#?}");
    let expected = ["deleted-one", "deleted-two"].map(|group| json!([group, "zookeeper", true]));
    assert_eq!(results(&ended), expected);
    assert!(ended.errors.contains("deleted-busy"), "{ended:#?}");
    assert_eq!(znodes.children("/consumers/deleted-one/offsets"), ["deleted-elsewhere"]);
    assert_eq!(znodes.children("/consumers/deleted-busy/offsets"), ["deleted-everywhere"]);
    assert_eq!(znodes.children("/consumers/deleted-other/offsets"), ["deleted-elsewhere"]);
    assert!(znodes.exists("/consumers/deleted-empty"));
}

#[test]
fn a_group_of_kafka_is_deleted_once_it_has_no_members() {
    for (cluster, version) in [(on_1_1_1(), KafkaVersion::V1_1_1), (on_3_9_1(), KafkaVersion::V3_9_1)] {
        let group = "deleted-kafka";
        topic(cluster, group, 1, 3);
        let member = java(cluster, version, group, group, &[]);
        eventually("a member", || {
            let ended = ours(cluster, Of::Kafka, "describe", &["--group", group, "--members"]);
            if ended.code == 0 && ended.rows().len() == 1 { Ok(()) } else { Err(format!("{ended:?}")) }
        });
        let ended = ours(cluster, Of::Kafka, "delete", &["--group", group, "--group", "deleted-nobody"]);
        assert_eq!(ended.code, 1, "{ended:#?}");
        let expected = [json!([group, "kafka", false]), json!(["deleted-nobody", null, false])];
        assert_eq!(results(&ended), expected, "{ended:#?}");
        member.leave().unwrap();
        let ended = ours(cluster, Of::Kafka, "delete", &["--group", group]);
        assert_eq!((ended.code, results(&ended)), (0, vec![json!([group, "kafka", true])]), "{ended:#?}");
        let servers = cluster.bootstrap();
        let old = old_groups(cluster, version, &["--bootstrap-server", &servers, "--list"]).printed();
        assert!(!old.contains(&group.to_owned()), "{old:?}");
    }
}

#[test]
fn with_both_servers_a_name_is_deleted_in_both_places() {
    let (cluster, group) = (on_3_9_1(), "deleted-twice");
    topic(cluster, group, 1, 3);
    let znodes = Znodes::of(cluster);
    left(&znodes, group, &[group]);
    left(&znodes, "deleted-only", &[group]);
    cluster.client().commit_offset(group, group, 0, 1).unwrap();
    let table = our_table(cluster, Of::Both, "delete", &["--group", group, "--group", "deleted-only"]);
    assert_eq!(table.code, 0, "{table:#?}");
    let expected = [
        vec!["GROUP", "COORDINATION", "TOPIC", "DELETED", "REASON"],
        vec![group, "zookeeper", "-", "yes", "-"],
        vec![group, "kafka", "-", "yes", "-"],
        vec!["deleted-only", "zookeeper", "-", "yes", "-"],
    ];
    assert_eq!(table.words(), expected);
    let ended = ours(cluster, Of::Both, "describe", &["--group", group]);
    assert_eq!(ended.code, 1, "{ended:#?}");
}

/// What a group has in Kafka of these topics, whose first partition has it.
fn stored(cluster: &Cluster, group: &str, topics: [&str; 2]) -> [Option<i64>; 2] {
    topics.map(|topic| cluster.client().committed_offsets(group, topic).unwrap().get(&0).copied())
}

#[test]
fn one_topic_of_a_group_of_kafka_is_deleted_as_by_the_tool_of_3_9_1() {
    let (cluster, version, topics) = (on_3_9_1(), KafkaVersion::V3_9_1, ["offsets-a", "offsets-b"]);
    let servers = cluster.bootstrap();
    let groups = ["offsets-ours", "offsets-theirs"];
    topics.iter().for_each(|it| topic(cluster, it, 1, 3));
    let members = groups.map(|group| java(cluster, version, group, topics[0], &[]));
    for group in groups {
        eventually("what it has read is committed", || match stored(cluster, group, topics) {
            [Some(3), None] => Ok(()),
            other => Err(format!("{other:?}")),
        });
    }
    let ours_of = |topic: &str| ours(cluster, Of::Kafka, "delete", &["--group", groups[0], "--topic", topic]);
    let theirs_of = |topic: &str| {
        let line =
            ["--bootstrap-server", &servers, "--delete-offsets", "--group", groups[1], "--topic", topic];
        let line = [&line[..], &["--timeout", "60000"]].concat();
        old_groups(cluster, version, &line).lines.join("\n")
    };
    // while a member subscribes to it
    let refused = ours_of(topics[0]);
    assert_eq!((refused.code, results(&refused)), (1, vec![json!([groups[0], "kafka", false])]));
    assert!(refused.rows()[0]["reason"].to_string().contains("is active: "), "{refused:#?}");
    let theirs = theirs_of(topics[0]);
    assert!(theirs.contains("GroupSubscribedToTopicException"), "{theirs}");
    members.into_iter().for_each(|member| member.leave().unwrap());
    for group in groups {
        cluster.client().commit_offset(group, topics[1], 0, 1).unwrap();
    }

    // theirs says of one that is not there that it is done
    for (topic, had, left) in [
        (topics[0], true, [None, Some(1)]),
        (topics[0], false, [None, Some(1)]),
        ("offsets-tpyo", false, [None, Some(1)]),
        (topics[1], true, [None, None]),
    ] {
        let deleted = ours_of(topic);
        assert_eq!(
            (deleted.code, results(&deleted)),
            (i32::from(!had), vec![json!([groups[0], "kafka", had])]),
            "{topic}"
        );
        let theirs = theirs_of(topic);
        for group in groups {
            assert_eq!(stored(cluster, group, topics), left, "{group}, without {topic}: {theirs}");
        }
    }
    let nobody = ours(cluster, Of::Kafka, "delete", &["--group", "offsets-nobody", "--topic", topics[0]]);
    assert_eq!((nobody.code, results(&nobody)), (1, vec![json!(["offsets-nobody", null, false])]));
}

#[test]
fn one_topic_of_a_group_that_stores_in_both_is_deleted_in_both() {
    let (cluster, group, topics) = (on_3_9_1(), "offsets-both", ["both-a", "both-b"]);
    topics.iter().for_each(|it| topic(cluster, it, 1, 3));
    let znodes = Znodes::of(cluster);
    left(&znodes, group, &topics);
    topics.iter().for_each(|it| cluster.client().commit_offset(group, it, 0, 2).unwrap());
    // who is registered reads from both
    znodes.ephemeral(&format!("/consumers/{group}/ids/somebody"), "{}");
    let line = ["--group", group, "--topic", topics[0]];
    for line in [&line[..], &line[..2]] {
        let refused = ours(cluster, Of::Both, "delete", line);
        assert_eq!((refused.code, results(&refused)), (1, vec![json!([group, "zookeeper", false])]));
        assert_eq!(stored(cluster, group, topics), [Some(2), Some(2)], "{line:?}");
    }
    znodes.delete(&format!("/consumers/{group}/ids/somebody"));
    let deleted = ours(cluster, Of::Both, "delete", &line);
    let expected = ["zookeeper", "kafka"].map(|place| json!([group, place, true]));
    assert_eq!((deleted.code, results(&deleted)), (0, expected.into()), "{deleted:#?}");
    assert_eq!(znodes.children(&format!("/consumers/{group}/offsets")), [topics[1]]);
    assert_eq!(stored(cluster, group, topics), [None, Some(2)]);
}

#[test]
fn brokers_that_delete_no_single_offsets_are_named() {
    let (cluster, group) = (on_1_1_1(), "offsets-old");
    topic(cluster, group, 1, 3);
    cluster.client().commit_offset(group, group, 0, 2).unwrap();
    let ended = ours(cluster, Of::Kafka, "delete", &["--group", group, "--topic", group]);
    assert_eq!((ended.code, results(&ended)), (3, vec![json!([group, "kafka", false])]), "{ended:#?}");
    let reason = ended.rows()[0]["reason"].to_string();
    assert!(reason.contains("the brokers are too old"), "{reason}");
    assert_eq!(cluster.client().committed_offsets(group, group).unwrap().get(&0), Some(&2));
}

#[test]
fn a_topic_of_all_groups_is_one_of_zookeeper() {
    let ended = troupe(&["groups", "delete", "--bootstrap-server", "localhost:9092", "--topic", "t"]);
    assert_eq!(ended.code, 2, "{ended:#?}");
    assert!(ended.errors.contains("--group") && ended.errors.contains("--zookeeper"), "{ended:#?}");
}

#[test]
fn partitions_of_a_topic_are_refused() {
    let line = ["groups", "delete", "--zookeeper", "localhost:1", "--group", "g", "--topic", "orders:0"];
    let ended = troupe(&line);
    assert_eq!((ended.code, ended.lines.len()), (2, 0), "{ended:#?}");
    assert!(ended.errors.contains("--topic orders "), "{ended:#?}");
}
