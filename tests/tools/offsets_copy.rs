//! `troupe offsets copy`, read by the old tools.

use std::collections::BTreeMap;

use kafka_troupe::proto::TopicPartition;
use serde_json::{Value, json};
use troupe_cluster::{Cluster, KafkaVersion};

use crate::members::{Ours, topic};
use crate::old_tools::{Ended, old_tool, troupe};
use crate::znodes::Znodes;
use crate::{eventually, on_0_8_2_2, on_1_1_1, on_3_9_1, on_4_1_1};

const GROUPS: &str = "kafka.admin.ConsumerGroupCommand";

/// A group and a topic of its name, of 4 partitions.
struct Case {
    cluster: &'static Cluster,
    group: &'static str,
    znodes: Znodes,
}

impl Case {
    fn new(cluster: &'static Cluster, group: &'static str) -> Self {
        topic(cluster, group, 4, 100);
        Self { cluster, group, znodes: Znodes::of(cluster) }
    }

    fn copy(&self, from: &str, to: &str, flags: &[&str]) -> Ended {
        let (connect, bootstrap) = (self.cluster.zookeeper_connect(), self.cluster.bootstrap());
        let servers = ["--zookeeper", &connect, "--bootstrap-server", &bootstrap, "--group", self.group];
        troupe(&[&["offsets", "copy"], &servers[..], &["--from", from, "--to", to], flags].concat())
    }

    /// Old offset, new offset and note of each row, as JSON.
    fn rows(&self, from: &str, to: &str, flags: &[&str], code: i32) -> Vec<[Value; 3]> {
        let copied = self.copy(from, to, &[flags, &["--output", "json"]].concat());
        assert_eq!(copied.code, code, "{copied:#?}");
        copied
            .rows()
            .iter()
            .map(|row| ["old_offset", "new_offset", "note"].map(|key| row[key].clone()))
            .collect()
    }

    fn commit(&self, offsets: &[(i32, i64)]) {
        offsets.iter().for_each(|(partition, offset)| {
            self.znodes.commit(self.group, self.group, *partition, *offset);
        });
    }

    fn in_kafka(&self) -> BTreeMap<i32, i64> {
        self.cluster.client().committed_offsets(self.group, self.group).unwrap()
    }

    fn in_zookeeper(&self) -> BTreeMap<i32, i64> {
        let path = format!("/consumers/{}/offsets/{}", self.group, self.group);
        let of = |name: String| {
            Some((name.parse().ok()?, self.znodes.data(&format!("{path}/{name}"))?.parse().ok()?))
        };
        self.znodes.children(&path).into_iter().filter_map(of).collect()
    }

    /// Topic, partition and offset in each row of a description by the old tool.
    fn described(&self, version: KafkaVersion, flags: &[&str]) -> BTreeMap<TopicPartition, i64> {
        let flags = [flags, &["--describe", "--group", self.group]].concat();
        let described = old_tool(self.cluster, version, GROUPS, &flags);
        let offset = |words: Vec<&str>| {
            let at = words.iter().position(|word| *word == self.group)?;
            let at = if words.get(at + 1) == Some(&self.group) { at + 1 } else { at };
            let key = TopicPartition::new(self.group, words.get(at + 1)?.parse().ok()?);
            Some((key, words.get(at + 2)?.parse().ok()?))
        };
        described.words().into_iter().filter_map(offset).collect()
    }

    fn keyed<const N: usize>(&self, offsets: [i64; N]) -> BTreeMap<TopicPartition, i64> {
        (0..).map(|number| TopicPartition::new(self.group, number)).zip(offsets).collect()
    }
}

#[test]
fn kafkas_own_tool_reads_what_was_copied_from_zookeeper_and_the_way_back() {
    let (case, version) = (Case::new(on_1_1_1(), "copied"), KafkaVersion::V1_1_1);
    let (connect, bootstrap) = (case.cluster.zookeeper_connect(), case.cluster.bootstrap());
    case.commit(&[(0, 3), (1, 5), (2, 7)]);
    let all_new = [3, 5, 7].map(|offset| [Value::Null, json!(offset), Value::Null]);
    assert_eq!(case.rows("zookeeper", "kafka", &["--dry-run"], 0), all_new);
    assert_eq!(case.in_kafka(), BTreeMap::new(), "a dry run");
    assert_eq!(case.rows("zookeeper", "kafka", &[], 0), all_new);
    let by_brokers = case.described(version, &["--bootstrap-server", &bootstrap]);
    assert_eq!(by_brokers, case.keyed([3, 5, 7]));

    // Kafka's goes on, and one is reset
    let client = case.cluster.client();
    [(0, 9), (1, 1), (3, 2)].iter().for_each(|(partition, offset)| {
        client.commit_offset("copied", "copied", *partition, *offset).unwrap();
    });
    let back = case.rows("kafka", "zookeeper", &[], 0);
    assert_eq!(back[0], [json!(3), json!(9), Value::Null]);
    assert_eq!(back[1], [json!(5), Value::Null, json!("1 in kafka is less: kept (--allow-lower)")]);
    assert_eq!(back[2], [json!(7), Value::Null, json!("the same in both")]);
    assert_eq!(back[3], [Value::Null, json!(2), Value::Null]);
    assert_eq!(case.in_zookeeper(), BTreeMap::from([(0, 9), (1, 5), (2, 7), (3, 2)]));
    let lowered = case.rows("kafka", "zookeeper", &["--allow-lower"], 0);
    assert_eq!(lowered[1], [json!(5), json!(1), Value::Null]);
    // the group's description by --zookeeper leaves out what has no owner
    let file = case.cluster.folder().join("copied.offsets");
    let flags = ["--zkconnect", &connect, "--group", "copied", "--output-file", file.to_str().unwrap()];
    old_tool(case.cluster, version, "kafka.tools.ExportZkOffsets", &flags).printed();
    let mut exported: Vec<_> = std::fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect();
    exported.sort_unstable();
    let line = |(partition, offset)| format!("/consumers/copied/offsets/copied/{partition}:{offset}");
    assert_eq!(exported, [(0, 9), (1, 1), (2, 7), (3, 2)].map(line));
}

#[test]
fn the_offset_checker_of_0_8_2_2_reads_what_was_copied_to_kafka() {
    let case = Case::new(on_0_8_2_2(), "copied");
    case.commit(&[(0, 3), (1, 5)]);
    let rows = case.rows("zookeeper", "kafka", &[], 0);
    assert_eq!(rows.iter().map(|row| row[1].clone()).collect::<Vec<_>>(), [json!(3), json!(5)]);
    // so that it can have it from Kafka alone
    case.commit(&[(0, 0), (1, 0)]);
    let connect = case.cluster.zookeeper_connect();
    let flags = ["--zookeeper", &connect, "--group", "copied", "--topic", "copied"];
    let checked = old_tool(case.cluster, KafkaVersion::V0_8_2_2, "kafka.tools.ConsumerOffsetChecker", &flags);
    let offsets: Vec<_> = checked
        .words()
        .into_iter()
        .filter(|words| words[..2] == ["copied"; 2])
        .map(|it| it[3].to_owned())
        .collect();
    assert_eq!(offsets[..2], ["3", "5"], "{checked:#?}");
}

#[test]
fn a_deleted_topic_and_what_cannot_be_read_are_not_copied() {
    let case = Case::new(on_3_9_1(), "copied-odd");
    case.commit(&[(0, 3)]);
    case.znodes.commit("copied-odd", "deleted", 0, 9);
    let rows = case.rows("zookeeper", "kafka", &[], 0);
    assert_eq!(rows[1], [Value::Null, Value::Null, json!("no such topic: not set")]);
    assert_eq!(case.in_kafka(), BTreeMap::from([(0, 3)]));
    assert_eq!(
        case.cluster.client().committed_offsets_of("copied-odd", "deleted", 1).unwrap(),
        BTreeMap::new()
    );

    case.commit(&[(0, 4)]);
    case.znodes.put("/consumers/copied-odd/offsets/copied-odd/1", "five");
    let refused = case.copy("zookeeper", "kafka", &[]);
    assert!(refused.code == 1 && refused.errors.contains("copied-odd/1"), "{refused:#?}");
    assert_eq!(case.in_kafka(), BTreeMap::from([(0, 3)]), "nothing is set");
    let none = case.copy("zookeeper", "kafka", &["--topic", "no"]);
    assert!(none.code == 1 && none.errors.contains("has no offsets in zookeeper"), "{none:#?}");
    assert_eq!(case.copy("kafka", "kafka", &[]).code, 2);
}

#[test]
fn beside_members_that_commit_to_zookeeper_alone_nothing_is_copied() {
    let case = Case::new(on_1_1_1(), "copied-one");
    let member = Ours::join(case.cluster, "copied-one", "copied-one", 1, &[]);
    until_committed(|| case.in_zookeeper());
    let refused = case.copy("zookeeper", "kafka", &[]);
    assert!(refused.code == 1 && refused.errors.contains("do not commit to both stores"), "{refused:#?}");
    assert_eq!(case.in_kafka(), BTreeMap::new());
    member.leave();
    assert_eq!(case.copy("zookeeper", "kafka", &[]).code, 0);
    assert_eq!(case.in_kafka(), case.in_zookeeper());
}

#[test]
fn beside_members_that_commit_to_both_stores_holes_are_filled_and_no_more() {
    let case = Case::new(on_1_1_1(), "copied-two");
    topic(case.cluster, "copied-two-left", 2, 10);
    let both = ["offsets.storage=kafka", "dual.commit.enabled=true"];
    let member = Ours::join(case.cluster, "copied-two", "copied-two", 1, &both);
    until_committed(|| case.in_zookeeper());
    until_committed(|| case.in_kafka());
    // of a topic that they do not read any more
    case.znodes.commit("copied-two", "copied-two-left", 0, 3);
    case.znodes.commit("copied-two", "copied-two-left", 1, 4);
    case.cluster.client().commit_offset("copied-two", "copied-two-left", 1, 1).unwrap();
    let rows = case.rows("zookeeper", "kafka", &[], 0);
    let same = json!("the same in both");
    assert!(rows[..4].iter().all(|row| row[1].is_null() && row[2] == same), "{rows:#?}");
    assert_eq!(rows[4], [Value::Null, json!(3), Value::Null]);
    assert_eq!(
        rows[5][1..],
        [Value::Null, json!("4 in zookeeper, and in kafka too; the group has members: left alone")]
    );
    let left = case.cluster.client().committed_offsets("copied-two", "copied-two-left").unwrap();
    assert_eq!(left, BTreeMap::from([(0, 3), (1, 1)]));
    member.leave();
}

#[test]
fn in_a_rebalance_nothing_is_copied() {
    let case = Case::new(on_1_1_1(), "copied-moving");
    case.commit(&[(0, 3), (1, 5)]);
    let record = r#"{"version":1,"subscription":{"copied-moving":1},"pattern":"static","timestamp":"1"}"#;
    case.znodes.ephemeral("/consumers/copied-moving/ids/copied-moving_a", record);
    let owner = |partition: i32| format!("/consumers/copied-moving/owners/copied-moving/{partition}");
    // its partitions have no owner for a moment; it commits to ZooKeeper alone
    let refused = case.copy("zookeeper", "kafka", &[]);
    assert!(refused.code == 1 && refused.errors.contains("copied-moving-0"), "{refused:#?}");
    assert!(refused.errors.contains("has no owner (yet)"), "{refused:#?}");
    (0..4).for_each(|partition| case.znodes.ephemeral(&owner(partition), "copied-moving_a-0"));
    let refused = case.copy("zookeeper", "kafka", &[]);
    assert!(refused.code == 1 && refused.errors.contains("do not commit to both stores"), "{refused:#?}");
    assert_eq!(case.in_kafka(), BTreeMap::new());
}

#[test]
fn who_comes_while_offsets_are_copied_is_seen() {
    let cluster = Cluster::builder().kafka(KafkaVersion::V1_1_1).proxied_brokers().start().unwrap();
    topic(&cluster, "copied-late", 1, 10);
    let znodes = Znodes::of(&cluster);
    znodes.commit("copied-late", "copied-late", 0, 3);
    let (connect, proxy) = (cluster.zookeeper_connect(), cluster.broker(0).proxy().unwrap());
    let before = proxy.connections();
    proxy.freeze();
    let ended = std::thread::scope(|scope| {
        let copying = scope.spawn(|| {
            let flags = ["--group", "copied-late", "--from", "zookeeper", "--to", "kafka"];
            troupe(&[&["offsets", "copy", "--zookeeper", &connect], &flags[..]].concat())
        });
        // it has looked for members before it asks brokers
        eventually("a connection to the broker", || match proxy.connections() {
            now if now > before => Ok(()),
            now => Err(format!("{now} connections")),
        });
        znodes.ephemeral("/consumers/copied-late/ids/copied-late_a", "{}");
        proxy.heal();
        copying.join().unwrap()
    });
    assert!(ended.code == 1 && ended.errors.contains("have changed since it was looked at"), "{ended:#?}");
    assert_eq!(cluster.client().topics().unwrap(), ["copied-late"], "nothing is set");
}

fn until_committed(look: impl Fn() -> BTreeMap<i32, i64>) {
    eventually("all committed", || {
        let offsets = look();
        if offsets.values().sum::<i64>() == 100 { Ok(()) } else { Err(format!("{offsets:?}")) }
    });
}

#[test]
fn beside_members_of_kafkas_new_protocol_nothing_is_copied_either_way() {
    let case = Case::new(on_4_1_1(), "copied-new");
    case.commit(&[(0, 3)]);
    let journal = case.cluster.folder().join("copied-new.journal");
    let properties = ["group.id=copied-new", "group.protocol=consumer", "auto.offset.reset=earliest"];
    let mut java = case
        .cluster
        .group_member(KafkaVersion::V4_1_1, "copied-new", (&journal, "java"), &properties)
        .unwrap();
    java.join().unwrap();
    eventually("a refusal", || match case.copy("zookeeper", "kafka", &[]) {
        refused if refused.code == 1 && refused.errors.contains("members that brokers coordinate") => Ok(()),
        // it has not joined yet
        other => Err(format!("{other:?}")),
    });
    java.leave().unwrap();
    case.znodes.commit("copied-new", "copied-new", 0, 1);
    let back = case.rows("kafka", "zookeeper", &[], 0);
    assert!(back.iter().all(|row| row[1].is_i64()), "{back:#?}");
    assert_eq!(case.in_zookeeper(), case.in_kafka());
}
