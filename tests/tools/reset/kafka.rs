//! Groups that Kafka coordinates.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use troupe_cluster::{Cluster, JavaRecord, KafkaVersion};

use super::{Offsets, of_json, of_table, reset};
use crate::old_tools::{Ended, old_tool, troupe};
use crate::{eventually, members, on_3_9_1, on_4_1_1, on_each};

const HOUR: Duration = Duration::from_secs(3600);

/// A group that has read two partitions half; the log of the first starts at 2.
struct Group {
    cluster: &'static Cluster,
    version: KafkaVersion,
    topic: String,
    name: String,
}

/// What it has committed of each partition.
const COMMITTED: [i64; 2] = [4, 3];

impl Group {
    fn on(cluster: &'static Cluster, version: KafkaVersion, topic: &str) -> Self {
        cluster.create_topic(topic, 2, 1).unwrap();
        let mut producer = cluster.java_producer(version, &[]).unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        for (age, partition) in (0..3).rev().flat_map(|age| [(age, 0), (age, 0), (age, 1), (age, 1)]) {
            let timestamp = Some(i64::try_from((now - age * HOUR).as_millis()).unwrap());
            let value = Some(b"value".to_vec());
            producer
                .send(topic, &JavaRecord { partition, timestamp, value, ..JavaRecord::default() })
                .unwrap();
        }
        producer.flush().unwrap();
        let group = Self { cluster, version, topic: topic.to_owned(), name: format!("group-of-{topic}") };
        group.delete_records_before(2);
        group.commit();
        group
    }

    fn delete_records_before(&self, offset: i64) {
        let file = self.cluster.folder().join(format!("{}-start.json", self.topic));
        let topic = &self.topic;
        let text = format!(
            r#"{{"partitions":[{{"topic":"{topic}","partition":0,"offset":{offset}}}],"version":1}}"#
        );
        fs::write(&file, text).unwrap();
        let class = match self.version {
            KafkaVersion::V1_1_1 => "kafka.admin.DeleteRecordsCommand",
            _ => "org.apache.kafka.tools.DeleteRecordsCommand",
        };
        let (servers, file) = (self.cluster.bootstrap(), file.display().to_string());
        let arguments = ["--bootstrap-server", &servers, "--offset-json-file", &file];
        old_tool(self.cluster, self.version, class, &arguments).printed();
    }

    fn commit(&self) {
        for (partition, offset) in (0..).zip(COMMITTED) {
            self.cluster.client().commit_offset(&self.name, &self.topic, partition, offset).unwrap();
        }
    }

    fn committed(&self) -> BTreeMap<i32, i64> {
        self.cluster.client().committed_offsets(&self.name, &self.topic).unwrap()
    }

    fn arguments<'a>(&'a self, servers: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        [&["--bootstrap-server", servers, "--group", &self.name], more].concat()
    }

    #[track_caller]
    fn old(&self, more: &[&str]) -> Ended {
        let class = match self.version {
            KafkaVersion::V1_1_1 => "kafka.admin.ConsumerGroupCommand",
            _ => "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        };
        let servers = self.cluster.bootstrap();
        let arguments = [&["--reset-offsets"][..], &self.arguments(&servers, more)].concat();
        old_tool(self.cluster, self.version, class, &arguments)
    }

    #[track_caller]
    fn ours(&self, more: &[&str]) -> Ended {
        reset(&self.arguments(&self.cluster.bootstrap(), more))
    }

    /// The offsets of its topic among those of rows.
    fn by_partition(&self, offsets: &Offsets) -> BTreeMap<i32, i64> {
        let its = offsets.iter().filter(|((topic, _), _)| *topic == self.topic);
        its.map(|((_, partition), offset)| (*partition, *offset)).collect()
    }
}

/// The time in UTC as the old tool takes it.
fn before_now(age: Duration) -> String {
    let time = jiff::Timestamp::now() - age;
    time.strftime("%Y-%m-%dT%H:%M:%S.000").to_string()
}

fn each_target_is_planned_and_done_as_by_the_old_tool(cluster: &'static Cluster, version: KafkaVersion) {
    let group = Group::on(cluster, version, "reset-targets");
    let before = before_now(HOUR + HOUR / 2);
    for (target, expected) in [
        (&["--to-earliest"][..], [2, 0]),
        (&["--to-latest"], [6, 6]),
        (&["--to-current"], [4, 3]),
        (&["--to-offset", "3"], [3, 3]),
        (&["--to-offset", "1"], [2, 1]),
        (&["--to-offset", "1000"], [6, 6]),
        (&["--shift-by", "-3"], [2, 0]),
        (&["--shift-by", "1"], [5, 4]),
        (&["--shift-by", "100"], [6, 6]),
        (&["--to-datetime", &before], [2, 2]),
        (&["--to-datetime", "2100-01-01T00:00:00.000"], [6, 6]),
        (&["--by-duration", "PT90M"], [2, 2]),
        (&["--by-duration", "PT30M"], [4, 4]),
    ] {
        let expected: BTreeMap<i32, i64> = (0..).zip(expected).collect();
        let all = [target, &["--all-topics"]].concat();
        let old = of_table(&group.old(&all));
        assert_eq!(group.by_partition(&old), expected, "{target:?}");

        let planned = group.ours(&all);
        assert_eq!((planned.code, of_json(&planned)), (0, old), "{planned:#?}");
        assert!(planned.errors.contains("--execute"), "{planned:#?}");
        assert_eq!(group.committed(), (0..).zip(COMMITTED).collect(), "a dry run does nothing: {target:?}");
        let old: Vec<_> = planned.rows().iter().map(|row| row["old_offset"].as_i64()).collect();
        assert_eq!(old, COMMITTED.map(Some));

        let done = group.ours(&[&all, &["--execute"][..]].concat());
        assert_eq!((done.code, group.by_partition(&of_json(&done))), (0, expected.clone()), "{done:#?}");
        assert_eq!(group.committed(), expected, "{target:?}");
        group.commit();
    }
}

fn one_partition_is_reset_and_the_others_stay(cluster: &'static Cluster, version: KafkaVersion) {
    let group = Group::on(cluster, version, "reset-one");
    let one = format!("{}:1", group.topic);
    let arguments = ["--topic", &one, "--to-latest", "--execute"];
    let ours = group.ours(&arguments);
    assert_eq!((ours.code, group.committed()), (0, BTreeMap::from([(0, 4), (1, 6)])), "{ours:#?}");
    group.commit();
    assert_eq!(of_table(&group.old(&arguments)), of_json(&ours));
    assert_eq!(group.committed(), BTreeMap::from([(0, 4), (1, 6)]));

    // the old command line, with nothing but the program before it
    group.commit();
    let servers = cluster.bootstrap();
    let line = [&["kafka-consumer-groups.sh", "--reset-offsets"][..], &group.arguments(&servers, &arguments)];
    let typed = troupe(&line.concat());
    assert_eq!((typed.code, group.committed()), (0, BTreeMap::from([(0, 4), (1, 6)])), "{typed:#?}");
}

fn exported_rows_are_taken_by_both(cluster: &'static Cluster, version: KafkaVersion) {
    // longer than what the old tool writes without quotes
    let group = Group::on(cluster, version, "reset-exported-with-a-name-of-some-length");
    let export = ["--all-topics", "--shift-by", "1", "--export"];
    let (old, ours) = (group.old(&export), group.ours(&export));
    assert!(ours.errors.contains("dry run"), "{ours:#?}");
    let rows = Offsets::from([((group.topic.clone(), 0), 5), ((group.topic.clone(), 1), 4)]);
    for (name, exported) in [("old", old), ("ours", ours)] {
        // the old tool warns of its default on stdout too
        let lines: Vec<String> =
            exported.printed().into_iter().filter(|line| line.matches(',').count() == 2).collect();
        let file = cluster.folder().join(format!("{}-{name}.csv", group.topic));
        fs::write(&file, lines.join("\n") + "\n").unwrap();
        let file = file.display().to_string();
        let arguments = ["--from-file", &file];
        assert_eq!(of_table(&group.old(&arguments)), rows, "{lines:?}");
        assert_eq!(of_json(&group.ours(&arguments)), rows, "{lines:?}");
    }
}

fn what_cannot_be_told_is_refused_whole(cluster: &'static Cluster, version: KafkaVersion) {
    let group = Group { name: "group-half".to_owned(), ..Group::on(cluster, version, "reset-half") };
    cluster.client().commit_offset(&group.name, &group.topic, 0, 4).unwrap();
    let shift = ["--topic", &group.topic, "--shift-by", "1", "--execute"];
    let (old, ours) = (group.old(&shift), group.ours(&shift));
    assert!(format!("{old:?}").contains("no current committed offset"), "{old:#?}");
    assert_eq!((ours.code, group.committed()), (1, BTreeMap::from([(0, 4)])), "{ours:#?}");
    assert!(ours.rows()[1]["note"].as_str().unwrap().contains("nothing is committed"), "{ours:#?}");

    // the log's end where nothing is committed, as by the old tool
    let current = ["--topic", &group.topic, "--to-current"];
    let ours = group.ours(&current);
    assert_eq!(of_json(&ours), of_table(&group.old(&current)));
    assert_eq!(ours.rows()[1]["new_offset"], 6);

    let missing = group.ours(&["--topic", "there-is-none", "--to-latest", "--execute"]);
    assert_eq!(missing.code, 1, "{missing:#?}");
    assert!(missing.errors.contains("there-is-none does not exist"), "{missing:#?}");
    let missing = group.ours(&["--topic", &format!("{}:0,7", group.topic), "--to-latest", "--execute"]);
    assert_eq!((missing.code, group.committed()), (1, BTreeMap::from([(0, 4)])), "{missing:#?}");
}

fn a_group_with_a_member_is_refused(cluster: &'static Cluster, version: KafkaVersion) {
    let group = Group::on(cluster, version, "reset-live");
    let journal = cluster.folder().join("reset-live.journal");
    let properties = [format!("group.id={}", group.name), "enable.auto.commit=false".to_owned()];
    let properties: Vec<&str> = properties.iter().map(String::as_str).collect();
    let mut member = cluster.group_member(version, &group.topic, (&journal, "member"), &properties).unwrap();
    member.join().unwrap();
    eventually("records of the member", || match fs::read_to_string(&journal) {
        Ok(text) if text.lines().count() == 5 => Ok(()),
        other => Err(format!("{other:?}")),
    });

    let arguments = ["--all-topics", "--to-earliest", "--execute"];
    let (old, ours) = (group.old(&arguments), group.ours(&arguments));
    assert!(format!("{old:?}").contains("current state is Stable"), "{old:#?}");
    assert_eq!(ours.code, 1, "{ours:#?}");
    assert!(ours.errors.contains("Stable"), "{ours:#?}");
    assert_eq!(group.committed(), (0..).zip(COMMITTED).collect());
    member.leave().unwrap();
}

on_each!([on_1_1_1 V1_1_1, on_3_9_1 V3_9_1] (
    each_target_is_planned_and_done_as_by_the_old_tool,
    one_partition_is_reset_and_the_others_stay,
    exported_rows_are_taken_by_both,
    what_cannot_be_told_is_refused_whole,
    a_group_with_a_member_is_refused,
));

#[test]
fn rows_of_several_groups_are_taken_by_both() {
    let (cluster, version) = (on_3_9_1(), KafkaVersion::V3_9_1);
    let group = Group::on(cluster, version, "reset-several");
    let other = "another: group, \"odd\"";
    cluster.client().commit_offset(other, &group.topic, 1, 2).unwrap();
    let both = |more: &[&str]| {
        [&["--group", other], more].concat().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let export = both(&["--all-topics", "--to-current", "--export"]);
    let export: Vec<&str> = export.iter().map(String::as_str).collect();
    let expected = BTreeMap::from([
        ((group.name.clone(), 0), 4),
        ((group.name.clone(), 1), 3),
        ((other.to_owned(), 1), 2),
    ]);
    for (name, exported) in [("old", group.old(&export)), ("ours", group.ours(&export))] {
        let file = cluster.folder().join(format!("reset-several-{name}.csv"));
        fs::write(&file, exported.printed().join("\n")).unwrap();
        let file = file.display().to_string();
        let ours = group.ours(&["--group", other, "--from-file", &file]);
        let row = |row: &serde_json::Value| {
            let partition = i32::try_from(row["partition"].as_i64().unwrap()).unwrap();
            ((row["group"].as_str().unwrap().to_owned(), partition), row["new_offset"].as_i64().unwrap())
        };
        assert_eq!(ours.rows().iter().map(row).collect::<BTreeMap<_, _>>(), expected, "{name}");
        let old = group.old(&["--group", other, "--from-file", &file]);
        assert_eq!(of_table(&old).len(), 2, "{old:#?}");
        assert!(old.lines.iter().any(|line| line.contains(other)), "{old:#?}");
    }
}

#[test]
fn a_group_that_does_not_exist_may_be_given_offsets_to_begin_at() {
    let cluster = on_3_9_1();
    let group =
        Group { name: "group-to-come".to_owned(), ..Group::on(cluster, KafkaVersion::V3_9_1, "reset-new") };
    let none = group.ours(&["--all-topics", "--to-latest", "--execute"]);
    assert_eq!(none.code, 1, "{none:#?}");
    assert!(none.errors.contains("does not exist"), "{none:#?}");
    let made = group.ours(&["--topic", &group.topic, "--to-earliest", "--execute"]);
    assert_eq!((made.code, group.committed()), (0, BTreeMap::from([(0, 2), (1, 0)])), "{made:#?}");
}

#[test]
fn a_group_of_the_new_protocol_is_reset_once_its_members_have_gone() {
    let (cluster, version) = (on_4_1_1(), KafkaVersion::V4_1_1);
    let group = Group::on(cluster, version, "reset-kip-848");
    let properties = ["group.protocol=consumer", "enable.auto.commit=false"];
    let member = members::java(cluster, version, &group.name, &group.topic, &properties);
    let arguments = ["--all-topics", "--to-earliest", "--execute"];
    eventually("a member that is seen", || match group.ours(&arguments[..2]) {
        ended if ended.errors.contains("not Empty") => Ok(()),
        ended => Err(format!("{ended:?}")),
    });
    let ours = group.ours(&arguments);
    assert_eq!((ours.code, group.committed()), (1, (0..).zip(COMMITTED).collect()), "{ours:#?}");
    member.leave().unwrap();
    let old = of_table(&group.old(&arguments[..2]));
    let ours = group.ours(&arguments);
    assert_eq!((ours.code, of_json(&ours)), (0, old), "{ours:#?}");
    assert_eq!(group.committed(), BTreeMap::from([(0, 2), (1, 0)]));
}

#[test]
fn a_command_line_that_says_too_little_or_too_much_is_refused() {
    for (arguments, what) in [
        (&["--group", "g", "--to-latest", "--all-topics"][..], "--bootstrap-server"),
        (&["--bootstrap-server", "localhost:1", "--group", "g", "--to-latest"], "--all-topics"),
        (&["--bootstrap-server", "localhost:1", "--group", "g", "--all-topics"], "--to-earliest"),
        (&["--bootstrap-server", "localhost:1", "--to-latest", "--all-topics"], "--group"),
        (
            &[
                "--bootstrap-server",
                "localhost:1",
                "--group",
                "g",
                "--all-topics",
                "--to-latest",
                "--to-earliest",
            ],
            "cannot be used with",
        ),
        (
            &["--bootstrap-server", "localhost:1", "--group", "g", "--from-file", "/there/is/none"],
            "/there/is/none",
        ),
    ] {
        let ended = troupe(&[&["groups", "reset"], arguments].concat());
        assert_eq!(ended.code, 2, "{ended:#?}");
        assert!(ended.errors.contains(what), "{ended:#?}");
    }
}
