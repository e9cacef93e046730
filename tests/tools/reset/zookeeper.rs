//! Groups that are coordinated through ZooKeeper.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use troupe_cluster::{Cluster, KafkaVersion};

use super::reset;
use crate::members::{self, Ours};
use crate::old_tools::{Ended, Killed, old_tool, troupe};
use crate::znodes::Znodes;
use crate::{eventually, on_1_1_1, on_4_1_1, on_each};

/// A topic with two partitions of 10 records each, and a group of its name.
struct Group {
    cluster: &'static Cluster,
    version: KafkaVersion,
    name: &'static str,
    znodes: Znodes,
}

impl Group {
    fn on(cluster: &'static Cluster, version: KafkaVersion, name: &'static str) -> Self {
        members::topic(cluster, name, 2, 20);
        Self { cluster, version, name, znodes: Znodes::of(cluster) }
    }

    fn commit(&self, offsets: [i64; 2]) {
        for (partition, offset) in (0..).zip(offsets) {
            self.znodes.commit(self.name, self.name, partition, offset);
        }
    }

    fn offset(&self, partition: i32) -> Option<String> {
        self.znodes.data(&format!("/consumers/{0}/offsets/{0}/{partition}", self.name))
    }

    fn offsets(&self) -> [Option<String>; 2] {
        [0, 1].map(|partition| self.offset(partition))
    }

    #[track_caller]
    fn reset(&self, more: &[&str]) -> Ended {
        let connect = self.cluster.zookeeper_connect();
        reset(&[&["--zookeeper", &connect, "--group", self.name], more].concat())
    }

    /// What the real old consumer reads now, sorted; it ends after so many.
    fn read_by_scala(&self, count: usize) -> Vec<String> {
        let file = self.cluster.folder().join(format!("{}.properties", self.name));
        fs::write(&file, format!("group.id={}\nauto.commit.enable=false\n", self.name)).unwrap();
        let (connect, file) = (self.cluster.zookeeper_connect(), file.display().to_string());
        let count = count.to_string();
        let arguments = [
            "--zookeeper",
            &connect,
            "--topic",
            self.name,
            "--consumer.config",
            &file,
            "--max-messages",
            &count,
        ];
        let ended = old_tool(self.cluster, self.version, "kafka.tools.ConsoleConsumer", &arguments);
        sorted(ended.printed())
    }

    /// As [`Self::read_by_scala`], by ours.
    fn read_by_ours(&self, count: usize) -> Vec<String> {
        let (connect, count) = (self.cluster.zookeeper_connect(), count.to_string());
        let arguments = ["consume", "--zookeeper", &connect, "--topic", self.name, "--group", self.name];
        let more = ["--max-messages", &count, "--property", "auto.commit.enable=false"];
        sorted(troupe(&[&arguments[..], &more].concat()).printed())
    }
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort_unstable();
    lines
}

fn texts(offsets: [i64; 2]) -> [Option<String>; 2] {
    offsets.map(|offset| Some(offset.to_string()))
}

/// The values of the records from these offsets on: records went to partitions 1 and 0 in turn.
fn from(offsets: [usize; 2]) -> Vec<String> {
    let place = |n: &usize| ((n + 1) % 2, n / 2);
    let wanted = (0..20).filter(|n| place(n).1 >= offsets[place(n).0]);
    sorted(wanted.map(|n| format!("record {n}")).collect())
}

fn both_consumers_begin_just_there(cluster: &'static Cluster, version: KafkaVersion) {
    let group = Group::on(cluster, version, "reset-zk-read");
    group.commit([9, 2]);
    let dry = group.reset(&["--all-topics", "--to-offset", "7"]);
    assert_eq!((dry.code, group.offsets()), (0, texts([9, 2])), "{dry:#?}");
    let done = group.reset(&["--all-topics", "--to-offset", "7", "--execute"]);
    assert_eq!((done.code, group.offsets()), (0, texts([7, 7])), "{done:#?}");
    assert_eq!(done.rows(), dry.rows());
    let old: Vec<_> = done.rows().iter().map(|row| row["old_offset"].as_i64()).collect();
    assert_eq!(old, [Some(9), Some(2)]);

    assert_eq!(group.read_by_scala(6), from([7, 7]));
    // what a console consumer commits at its end may be behind what it has printed; so it is set again
    group.reset(&["--all-topics", "--to-offset", "7", "--execute"]);
    assert_eq!(group.read_by_ours(6), from([7, 7]));
    group.reset(&["--topic", &format!("{}:0", group.name), "--shift-by", "-3", "--execute"]);
    let moved = group.offsets();
    let begin = moved.clone().map(|offset| offset.unwrap().parse().unwrap());
    let expected = from(begin);
    assert_eq!(group.read_by_ours(expected.len()), expected, "{moved:?}");
}

fn the_beginning_and_the_end_are_those_of_update_offsets_in_zk(
    cluster: &'static Cluster,
    version: KafkaVersion,
) {
    let group = Group::on(cluster, version, "reset-zk-ends");
    let file = cluster.folder().join("reset-zk-ends.properties");
    let connect = cluster.zookeeper_connect();
    let text = format!("group.id={}\nzookeeper.connect={connect}\n", group.name);
    fs::write(&file, text).unwrap();
    for (old, ours, offset) in [("latest", "--to-latest", 10), ("earliest", "--to-earliest", 0)] {
        let arguments = [old, &file.display().to_string(), group.name];
        old_tool(cluster, version, "kafka.tools.UpdateOffsetsInZK", &arguments);
        assert_eq!(group.offsets(), texts([offset; 2]));
        group.commit([3, 4]);
        let done = group.reset(&["--topic", group.name, ours, "--execute"]);
        assert_eq!((done.code, group.offsets()), (0, texts([offset; 2])), "{done:#?}");
    }
}

fn a_group_with_a_member_is_refused_and_stays(cluster: &'static Cluster, version: KafkaVersion) {
    let group = Group::on(cluster, version, "reset-zk-live");
    let refused = |member: &str| {
        eventually("a member that has read and committed all", || {
            let members = group.znodes.children(&format!("/consumers/{}/ids", group.name));
            match group.offsets() {
                offsets if offsets == texts([10, 10]) && members == [member] => Ok(()),
                offsets => Err(format!("{members:?} {offsets:?}")),
            }
        });
        for action in ["--execute", "--dry-run"] {
            let ended = group.reset(&["--all-topics", "--to-earliest", action]);
            assert_eq!((ended.code, group.offsets()), (1, texts([10, 10])), "{member}: {ended:#?}");
            assert!(ended.errors.contains("it has members") && ended.errors.contains(member), "{ended:#?}");
        }
    };
    let ours = Ours::join(cluster, group.name, group.name, 1, &["consumer.id=ours"]);
    refused("reset-zk-live_ours");
    ours.leave();
    let scala = members::scala(cluster, version, group.name, (group.name, 1), &["consumer.id=scala"]);
    refused("reset-zk-live_scala");
    scala.leave().unwrap();
    let ended = group.reset(&["--all-topics", "--to-earliest", "--execute"]);
    assert_eq!((ended.code, group.offsets()), (0, texts([0, 0])), "{ended:#?}");
}

on_each!([on_0_8_2_2 V0_8_2_2, on_1_1_1 V1_1_1] (
    both_consumers_begin_just_there,
    the_beginning_and_the_end_are_those_of_update_offsets_in_zk,
    a_group_with_a_member_is_refused_and_stays,
));

#[test]
fn b23_with_dual_commit_both_stores_are_lowered() {
    let group = Group::on(on_1_1_1(), KafkaVersion::V1_1_1, "reset-zk-dual");
    let client = group.cluster.client();
    group.commit([9, 5]);
    client.commit_offset(group.name, group.name, 0, 8).unwrap();
    client.commit_offset(group.name, group.name, 1, 10).unwrap();
    let ended = group.reset(&["--all-topics", "--to-offset", "4", "--execute"]);
    assert_eq!((ended.code, group.offsets()), (0, texts([4, 4])), "{ended:#?}");
    let stored = client.committed_offsets(group.name, group.name).unwrap();
    assert_eq!(stored, BTreeMap::from([(0, 4), (1, 4)]));
    // the larger was the position
    let old: Vec<_> = ended.rows().iter().map(|row| row["old_offset"].as_i64()).collect();
    assert_eq!(old, [Some(9), Some(10)]);
    let notes = |ended: &Ended| ended.rows().iter().map(|row| row["note"].clone()).collect::<Vec<_>>();
    assert_eq!(notes(&ended), ["stored 9 in ZooKeeper, 8 in Kafka", "stored 5 in ZooKeeper, 10 in Kafka"]);
    let ended = group.reset(&["--all-topics", "--to-offset", "4"]);
    assert_eq!(notes(&ended), [serde_json::Value::Null, serde_json::Value::Null], "the same in both");

    // a group whose offsets are in Kafka alone gets none in ZooKeeper
    group.znodes.delete(&format!("/consumers/{0}/offsets/{0}/0", group.name));
    group.znodes.delete(&format!("/consumers/{0}/offsets/{0}/1", group.name));
    let ended = group.reset(&["--all-topics", "--to-latest", "--execute"]);
    assert_eq!((ended.code, group.offsets()), (0, [None, None]), "{ended:#?}");
    let stored = client.committed_offsets(group.name, group.name).unwrap();
    assert_eq!(stored, BTreeMap::from([(0, 10), (1, 10)]));
}

#[test]
fn a_group_beside_kafka_without_zookeeper_is_reset_too() {
    let group = Group::on(on_4_1_1(), KafkaVersion::V4_1_1, "reset-zk-kraft");
    group.commit([9, 2]);
    let servers = group.cluster.bootstrap();
    let arguments = ["--bootstrap-server", &servers, "--all-topics", "--to-offset", "7", "--execute"];
    let ended = group.reset(&arguments);
    assert_eq!((ended.code, group.offsets()), (0, texts([7, 7])), "{ended:#?}");
}

#[test]
fn members_that_brokers_coordinate_by_the_same_name_keep_it_from_being_reset_by_half() {
    let group = Group::on(on_1_1_1(), KafkaVersion::V1_1_1, "reset-zk-kafka");
    group.commit([3, 4]);
    let member = members::java(group.cluster, group.version, group.name, group.name, &[]);
    eventually("a member that has committed", || {
        match group.cluster.client().committed_offsets(group.name, group.name) {
            Ok(offsets) if offsets.values().sum::<i64>() == 20 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    let ended = group.reset(&["--all-topics", "--to-earliest", "--execute"]);
    assert_eq!((ended.code, group.offsets()), (1, texts([3, 4])), "{ended:#?}");
    assert!(ended.errors.contains("brokers coordinate it, and it is Stable"), "{ended:#?}");
    member.leave().unwrap();
    eventually("it is idle", || match group.reset(&["--all-topics", "--to-earliest", "--execute"]) {
        ended if ended.code == 0 => Ok(()),
        ended => Err(format!("{ended:#?}")),
    });
    assert_eq!(group.offsets(), texts([0, 0]));
    let stored = group.cluster.client().committed_offsets(group.name, group.name).unwrap();
    assert_eq!(stored, BTreeMap::from([(0, 0), (1, 0)]));
}

#[test]
fn an_owner_node_that_no_member_stands_behind_is_named_and_nothing_is_set() {
    let group = Group::on(on_1_1_1(), KafkaVersion::V1_1_1, "reset-zk-owned");
    group.commit([9, 2]);
    let owner = format!("/consumers/{0}/owners/{0}/1", group.name);
    group.znodes.put(&owner, "reset-zk-owned_gone-0");
    let ended = group.reset(&["--all-topics", "--to-earliest", "--execute"]);
    assert_eq!((ended.code, group.offsets()), (1, texts([9, 2])), "{ended:#?}");
    assert!(ended.errors.contains("reset-zk-owned_gone-0"), "{ended:#?}");
    group.znodes.delete(&owner);
    let ended = group.reset(&["--all-topics", "--to-earliest", "--execute"]);
    assert_eq!((ended.code, group.offsets()), (0, texts([0, 0])), "{ended:#?}");
}

#[test]
fn what_is_no_offset_is_told_and_set_right() {
    let group = Group::on(on_1_1_1(), KafkaVersion::V1_1_1, "reset-zk-odd");
    group.znodes.put(&format!("/consumers/{0}/offsets/{0}/0", group.name), "nine");
    group.znodes.commit(group.name, group.name, 1, -1);
    let shift = group.reset(&["--all-topics", "--shift-by", "1", "--execute"]);
    assert_eq!(shift.code, 1, "{shift:#?}");
    assert_eq!(group.offset(0).as_deref(), Some("nine"));
    let ended = group.reset(&["--all-topics", "--to-offset", "5", "--execute"]);
    assert_eq!((ended.code, group.offsets()), (0, texts([5, 5])), "{ended:#?}");
    assert!(ended.rows()[0]["note"].as_str().unwrap().contains("nine"), "{ended:#?}");
    assert_eq!(ended.rows()[1]["old_offset"], serde_json::Value::Null);
}

#[test]
fn a_group_that_is_not_in_zookeeper_is_told_and_one_may_be_made() {
    let group = Group::on(on_1_1_1(), KafkaVersion::V1_1_1, "reset-zk-new");
    let ended = group.reset(&["--all-topics", "--to-earliest", "--execute"]);
    assert_eq!(ended.code, 1, "{ended:#?}");
    assert!(ended.errors.contains("does not exist"), "{ended:#?}");
    assert!(!group.znodes.exists("/consumers/reset-zk-new"));
    let ended = group.reset(&["--topic", group.name, "--to-offset", "6", "--execute"]);
    assert_eq!((ended.code, group.offsets()), (0, texts([6, 6])), "{ended:#?}");
    assert_eq!(group.read_by_scala(8), from([6, 6]));
}

#[test]
fn b27_a_group_that_would_name_another_node_is_refused() {
    let connect = on_1_1_1().zookeeper_connect();
    for odd in ["a/b", "..", ".", ""] {
        let arguments =
            ["--zookeeper", &connect, "--group", odd, "--all-topics", "--to-earliest", "--execute"];
        let ended = reset(&arguments);
        assert_eq!(ended.code, 2, "{ended:#?}");
        assert!(ended.errors.contains("is no name of a group"), "{ended:#?}");
    }
}

/// A reset that has looked at the group and waits for an answer of a broker, which is held back.
struct Waiting {
    child: Killed,
    cluster: &'static Cluster,
}

impl Waiting {
    fn on(group: &Group) -> Self {
        let proxy = group.cluster.broker(0).proxy().unwrap();
        let before = proxy.connections();
        proxy.freeze();
        let connect = group.cluster.zookeeper_connect();
        let mut command = Command::new(env!("CARGO_BIN_EXE_troupe"));
        command.args(["groups", "reset", "--zookeeper", &connect, "--group", group.name]);
        command.args(["--all-topics", "--to-earliest", "--execute"]);
        command.env_remove("RUST_LOG").stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = Killed(command.spawn().unwrap());
        // it has read the offsets before it asks brokers
        eventually("a connection to the broker", || match proxy.connections() {
            now if now > before => Ok(()),
            now => Err(format!("{now} connections")),
        });
        Self { child, cluster: group.cluster }
    }

    /// Lets it go on to its end.
    fn end(self) -> (Option<i32>, String) {
        self.cluster.broker(0).proxy().unwrap().heal();
        let Ended { code, lines, errors } = self.child.end("a reset");
        (Some(code), lines.join("\n") + &errors)
    }
}

#[test]
fn what_a_member_does_meanwhile_stays() {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    let builder = Cluster::builder().kafka(KafkaVersion::V1_1_1).proxied_brokers();
    let cluster = CLUSTER.get_or_init(|| builder.start().unwrap());
    let group = Group::on(cluster, KafkaVersion::V1_1_1, "reset-zk-meanwhile");
    group.commit([9, 2]);
    let reset = Waiting::on(&group);
    group.commit([9, 3]);
    let (code, said) = reset.end();
    // both have been written over since, the first by the same value
    assert_eq!((code, group.offsets()), (Some(1), texts([9, 3])), "{said}");
    assert!(said.contains("somebody else sets its offsets"), "{said}");

    let reset = Waiting::on(&group);
    group.znodes.put(&format!("/consumers/{}/ids", group.name), "");
    let member = format!("/consumers/{}/ids/newcomer", group.name);
    group.znodes.ephemeral(&member, "{}");
    let (code, said) = reset.end();
    assert_eq!((code, group.offsets()), (Some(1), texts([9, 3])), "{said}");
    assert!(said.contains("newcomer"), "{said}");
    group.znodes.delete(&member);
    let (code, said) = Waiting::on(&group).end();
    assert_eq!((code, group.offsets()), (Some(0), texts([0, 0])), "{said}");
    assert_eq!(cluster.client().topics().unwrap(), [group.name], "none is made by looking");
}
