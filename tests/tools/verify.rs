//! `troupe verify` beside `kafka.tools.VerifyConsumerRebalance`, which looks at owners only.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use troupe_cluster::{Cluster, KafkaVersion};

use crate::members::{Ours, java, scala, topic};
use crate::old_tools::{Ended, old_tool, troupe};
use crate::znodes::Znodes;
use crate::{eventually, on_1_1_1, on_4_1_1};

const OLD: &str = "kafka.tools.VerifyConsumerRebalance";
/// What the old tool says, and we on stderr.
const SUCCESSFUL: &str = "Rebalance operation successful !";
const FAILED: &str = "Rebalance operation failed !";
/// One look.
const AT_ONCE: [&str; 4] = ["--within", "0", "--moving-within", "0"];

fn verify(cluster: &Cluster, group: &str, more: &[&str]) -> Ended {
    let connect = cluster.zookeeper_connect();
    troupe(&[&["verify", "--zookeeper.connect", &connect, "--group", group], more].concat())
}

/// What the old tool finds.
#[track_caller]
fn old(cluster: &Cluster, group: &str) -> bool {
    let connect = cluster.zookeeper_connect();
    let arguments = ["--zookeeper.connect", connect.as_str(), "--group", group];
    let ended = old_tool(cluster, KafkaVersion::V1_1_1, OLD, &arguments);
    let says = |line: &str| ended.lines.iter().any(|it| it == line);
    assert_ne!(says(SUCCESSFUL), says(FAILED), "{ended:#?}");
    says(SUCCESSFUL)
}

#[track_caller]
fn is_good(ended: &Ended) {
    assert_eq!((ended.code, ended.lines.len()), (0, 0), "{ended:#?}");
    assert!(ended.errors.lines().any(|line| line == SUCCESSFUL), "{ended:#?}");
}

/// A group that Znodes hold: a member with two streams owns both partitions and has read all four records of each.
struct ByHand {
    group: &'static str,
    nodes: Znodes,
}

const TOPIC: &str = "verified";

impl ByHand {
    fn healthy(group: &'static str) -> Self {
        static MADE: std::sync::Once = std::sync::Once::new();
        MADE.call_once(|| topic(on_1_1_1(), TOPIC, 2, 8));
        let by_hand = Self { group, nodes: Znodes::of(on_1_1_1()) };
        let record =
            format!(r#"{{"version":1,"subscription":{{"{TOPIC}":2}},"pattern":"static","timestamp":"1"}}"#);
        by_hand.nodes.ephemeral(&by_hand.path(&format!("ids/{group}_a")), &record);
        for partition in 0..2 {
            let thread = format!("{group}_a-{partition}");
            by_hand.nodes.ephemeral(&by_hand.owner(partition), &thread);
            by_hand.nodes.commit(group, TOPIC, partition, 4);
        }
        by_hand
    }

    fn path(&self, below: &str) -> String {
        format!("/consumers/{}/{below}", self.group)
    }

    fn owner(&self, partition: i32) -> String {
        self.path(&format!("owners/{TOPIC}/{partition}"))
    }

    /// The only reason that we find, and whether the old tool is content.
    #[track_caller]
    fn found(&self) -> (Value, bool) {
        let ended = verify(on_1_1_1(), self.group, &[&AT_ONCE[..], &["--output", "json"]].concat());
        assert_eq!(ended.code, 1, "{ended:#?}");
        assert!(ended.errors.lines().any(|line| line == FAILED), "{ended:#?}");
        let rows = ended.rows();
        let [reason] = &rows[..] else { panic!("{ended:#?}") };
        (reason.clone(), old(on_1_1_1(), self.group))
    }
}

#[track_caller]
fn is_about(reason: &Value, kind: &str, partition: i32, member: Option<&str>, path: &str) {
    let about = ["reason", "topic", "partition", "member", "path"].map(|key| reason[key].clone());
    assert_eq!(json!(about), json!([kind, TOPIC, partition, member, path]), "{reason:#}");
}

#[test]
fn a_healthy_group_of_ours_and_one_with_a_scala_member_are_good() {
    let (cluster, name) = (on_1_1_1(), "verify-mixed");
    topic(cluster, name, 4, 40);
    let ours = Ours::join(cluster, name, name, 2, &[]);
    let owned_by = |members: usize| {
        eventually("all owned", || {
            let nodes = Znodes::of(cluster);
            let owners = (0..4).filter_map(|it| nodes.data(&format!("/consumers/{name}/owners/{name}/{it}")));
            let owners: Vec<_> = owners.collect();
            let mut by: Vec<_> = owners.iter().map(|it| it.rsplit_once('-').unwrap().0).collect();
            by.dedup();
            if owners.len() == 4 && by.len() == members { Ok(()) } else { Err(format!("{owners:?}")) }
        });
    };
    owned_by(1);
    is_good(&verify(cluster, name, &["--within", "60000", "--moving-within", "60000"]));
    assert!(old(cluster, name), "the old tool agrees");

    let scala = scala(cluster, KafkaVersion::V1_1_1, name, (name, 2), &[]);
    let mixed = verify(cluster, name, &["--within", "60000", "--moving-within", "60000"]);
    is_good(&mixed);
    owned_by(2);
    is_good(&verify(cluster, name, &["--within", "60000", "--moving-within", "60000", "--output", "table"]));
    assert!(old(cluster, name), "the old tool agrees");
    let json = verify(cluster, name, &["--within", "60000", "--moving-within", "60000", "--output", "json"]);
    assert_eq!((json.code, json.rows()), (0, vec![]));
    scala.leave().unwrap();
    ours.leave();
}

#[test]
fn a_partition_that_nobody_owns_is_found_by_both() {
    let by_hand = ByHand::healthy("verify-unowned");
    is_good(&verify(on_1_1_1(), by_hand.group, &AT_ONCE));
    assert!(old(on_1_1_1(), by_hand.group));
    by_hand.nodes.delete(&by_hand.owner(1));
    let (reason, old) = by_hand.found();
    is_about(&reason, "not_owned", 1, None, &by_hand.owner(1));
    assert!(!old);
    let table = verify(on_1_1_1(), by_hand.group, &AT_ONCE);
    let words: Vec<_> = table.words();
    assert_eq!(
        (words[0].as_slice(), words.len()),
        (["TOPIC", "PARTITION", "MEMBER", "WHY", "PATH"].as_slice(), 2)
    );
    assert_eq!(words[1], [TOPIC, "1", "-", "nobody", "owns", "it", by_hand.owner(1).as_str()]);
}

#[test]
fn an_owner_that_has_gone_or_has_no_such_stream_is_found_by_both() {
    let by_hand = ByHand::healthy("verify-gone");
    by_hand.nodes.put(&by_hand.owner(0), "verify-gone_b-0");
    let (reason, old) = by_hand.found();
    is_about(&reason, "owner_gone", 0, Some("verify-gone_b"), &by_hand.owner(0));
    assert!(!old);
    by_hand.nodes.put(&by_hand.owner(0), "verify-gone_a-2");
    let (reason, old) = by_hand.found();
    is_about(&reason, "no_such_stream", 0, Some("verify-gone_a"), &by_hand.owner(0));
    assert!(!old);
}

#[test]
fn an_owner_node_of_no_session_or_of_another_is_found_by_us_only() {
    let by_hand = ByHand::healthy("verify-session");
    let replace = |how: &dyn Fn(&str, &str)| {
        by_hand.nodes.delete(&by_hand.owner(0));
        how(&by_hand.owner(0), "verify-session_a-0");
    };
    replace(&|path, thread| by_hand.nodes.put(path, thread));
    let (reason, old) = by_hand.found();
    is_about(&reason, "owner_without_session", 0, Some("verify-session_a"), &by_hand.owner(0));
    assert!(old, "it looks at what the node holds");
    let other = Znodes::of(on_1_1_1());
    replace(&|path, thread| other.ephemeral(path, thread));
    let (reason, old) = by_hand.found();
    is_about(&reason, "other_session", 0, Some("verify-session_a"), &by_hand.owner(0));
    assert!(old);
}

#[test]
fn an_offset_that_does_not_move_or_is_none_is_found_by_us_only() {
    let by_hand = ByHand::healthy("verify-offset");
    let path = by_hand.path(&format!("offsets/{TOPIC}/1"));
    let owner = Some("verify-offset_a");
    by_hand.nodes.commit(by_hand.group, TOPIC, 1, 3);
    let (reason, old) = by_hand.found();
    is_about(&reason, "offset_stuck", 1, owner, &path);
    assert!(reason["why"].as_str().unwrap().contains("1 behind") && old, "{reason}");
    by_hand.nodes.commit(by_hand.group, TOPIC, 1, 5);
    is_about(&by_hand.found().0, "offset_beyond_end", 1, owner, &path);
    by_hand.nodes.put(&path, "4 ");
    is_about(&by_hand.found().0, "offset_unreadable", 1, owner, &path);
    by_hand.nodes.delete(&path);
    is_about(&by_hand.found().0, "no_offset", 1, owner, &path);
}

#[test]
fn it_asks_again_until_offsets_have_moved() {
    let by_hand = ByHand::healthy("verify-moving");
    by_hand.nodes.commit(by_hand.group, TOPIC, 0, 0);
    let is_over = AtomicBool::new(false);
    let ended = thread::scope(|scope| {
        let commits = Znodes::of(on_1_1_1());
        let is_over = &is_over;
        scope.spawn(move || {
            // slowly enough for two looks, and never to the end
            let mut moves = 0;
            while !is_over.load(Ordering::Acquire) {
                thread::sleep(Duration::from_millis(100));
                moves += 1;
                commits.commit("verify-moving", TOPIC, 0, (moves / 50).min(3));
            }
        });
        // the first commit comes after the time for members and owners
        let ended = verify(on_1_1_1(), "verify-moving", &["--within", "0"]);
        is_over.store(true, Ordering::Release);
        ended
    });
    is_good(&ended);
}

#[test]
fn a_group_that_is_not_there_is_a_no_and_servers_that_do_not_answer_are_none() {
    let cluster = on_1_1_1();
    let missing = verify(cluster, "verify-nobody", &[]);
    assert_eq!((missing.code, missing.lines.len()), (1, 0), "{missing:#?}");
    assert!(missing.errors.contains("verify-nobody\" does not exist"), "{missing:#?}");
    let empty = Znodes::of(cluster);
    empty.put("/consumers/verify-empty/ids", "");
    let empty = verify(cluster, "verify-empty", &[&AT_ONCE[..], &["--output", "json"]].concat());
    assert_eq!((empty.code, empty.rows()[0]["reason"].as_str()), (1, Some("no_member")), "{empty:#?}");
    let by_hand = ByHand::healthy("verify-dark");
    let dark = verify(cluster, by_hand.group, &["--bootstrap-server", "127.0.0.1:1"]);
    assert_eq!(dark.code, 3, "{dark:#?}");
    let dark = troupe(&["verify", "--zookeeper", "127.0.0.1:1", "--group", "g"]);
    assert_eq!(dark.code, 3, "{dark:#?}");
    assert_eq!(troupe(&["verify", "--group", "g"]).code, 2);
}

/// It is good for the old tool, too.
#[test]
fn a_topic_that_does_not_exist_is_named() {
    let nodes = Znodes::of(on_1_1_1());
    let record = r#"{"version":1,"subscription":{"verify-no-topic":1},"pattern":"static","timestamp":"1"}"#;
    nodes.ephemeral("/consumers/verify-no-topic/ids/verify-no-topic_a", record);
    let ended = verify(on_1_1_1(), "verify-no-topic", &AT_ONCE);
    is_good(&ended);
    assert!(ended.errors.contains("the topic verify-no-topic, to which members subscribe"), "{ended:#?}");
}

#[test]
fn what_is_wrong_with_owners_does_not_wait_for_offsets() {
    let by_hand = ByHand::healthy("verify-waits");
    by_hand.nodes.commit(by_hand.group, TOPIC, 0, 0);
    by_hand.nodes.delete(&by_hand.owner(1));
    // for as long as it may take, it would be killed
    let ended = verify(
        on_1_1_1(),
        by_hand.group,
        &["--within", "0", "--moving-within", "600000", "--output", "json"],
    );
    assert_eq!(ended.code, 1, "{ended:#?}");
    let reasons: Vec<_> = ended.rows().iter().map(|row| row["reason"].clone()).collect();
    assert_eq!(reasons, ["offset_stuck", "not_owned"]);
}

#[test]
fn a_group_of_kafka_is_named_as_what_it_is() {
    let cluster = on_4_1_1();
    topic(cluster, "verify-kafka", 1, 1);
    let member =
        java(cluster, KafkaVersion::V4_1_1, "verify/kafka", "verify-kafka", &["group.protocol=consumer"]);
    let bootstrap = cluster.bootstrap();
    let of = |group| verify(cluster, group, &["--bootstrap-server", &bootstrap]);
    let what =
        "does not exist in ZooKeeper: brokers coordinate a group of that name (consumer, Stable, 1 members)";
    eventually("a member that has joined", || match of("verify/kafka") {
        ended if (ended.code, ended.lines.len()) == (1, 0) && ended.errors.contains(what) => Ok(()),
        ended => Err(format!("{ended:#?}")),
    });
    // a name that can be no node's, and no group
    assert_eq!(of("verify/nobody").code, 2);
    member.leave().unwrap();
    cluster.client().commit_offset("verify-stored", "verify-kafka", 0, 1).unwrap();
    let ended = of("verify-stored");
    assert!(ended.code == 1 && ended.errors.contains("(classic, Empty, 0 members)"), "{ended:#?}");
    // one of both: members are missing here, and there
    Znodes::of(cluster).put("/consumers/verify-stored/ids", "");
    let ended =
        verify(cluster, "verify-stored", &[&AT_ONCE[..], &["--bootstrap-server", &bootstrap]].concat());
    assert!(ended.code == 1 && ended.errors.contains("(classic, Empty, 0 members)"), "{ended:#?}");
}
