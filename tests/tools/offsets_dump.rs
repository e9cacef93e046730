//! `troupe offsets dump` and `offsets partition`, beside Kafka's own formatters of the same release.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use troupe_cluster::{Cluster, KafkaVersion, KafkaVersion::*, ProduceRecord};

use crate::old_tools::{Killed, old_tool, troupe};
use crate::{eventually, on_0_8_2_2, on_1_1_1, on_3_9_1, on_4_1_1};

const TOPIC: &str = "__consumer_offsets";
const OFFSETS: &str = "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter";
const GROUPS: &str = "kafka.coordinator.group.GroupMetadataManager$GroupMetadataMessageFormatter";
/// How long the Java consumer, which knows no end, waits for its first record and for more: it is slow to start.
const LONG: &str = "20000";
const OLD: &str = "kafka.server.OffsetManager$OffsetsMessageFormatter";

/// Offsets of two partitions, one of them twice; and where brokers coordinate groups, a member that came and went, and an
/// offset that was deleted with its group.
fn write(cluster: &Cluster, group: &str) {
    cluster.create_topic(group, 2, 1).unwrap();
    cluster.wait_for_leaders(group).unwrap();
    let client = cluster.client();
    for (partition, offset) in [(0, 5), (1, 7), (0, 1 << 53)] {
        client.commit_offset(group, group, partition, offset).unwrap();
    }
}

fn come_and_go(cluster: &Cluster, version: KafkaVersion, group: &str) {
    let journal = cluster.folder().join(format!("{group}.journal"));
    let properties = [format!("group.id={group}"), "auto.offset.reset=earliest".to_owned()];
    let properties: Vec<_> = properties.iter().map(String::as_str).collect();
    cluster.produce(group, ["a", "b", "c", "d"].map(ProduceRecord::value)).unwrap();
    let mut member = cluster.group_member(version, group, (&journal, "m"), &properties).unwrap();
    member.join().unwrap();
    eventually("a member that reads", || match std::fs::read_to_string(&journal) {
        Ok(text) if !text.is_empty() => Ok(()),
        other => Err(format!("{other:?}")),
    });
    member.leave().unwrap();
}

/// The partition of the offsets topic that the group is in, as `troupe` says.
fn partition(cluster: &Cluster, group: &str) -> String {
    let servers = cluster.bootstrap();
    let ended = troupe(&[
        "offsets",
        "partition",
        "--bootstrap-server",
        &servers,
        "--group",
        group,
        "--output",
        "json",
    ]);
    let [row] = &ended.rows()[..] else { panic!("{ended:#?}") };
    row["partition"].to_string()
}

/// What Kafka's own formatter prints of the group: others have records in its partition too.
fn java_lines(cluster: &Cluster, version: KafkaVersion, group: &str, formatter: &str) -> Vec<String> {
    let (servers, partition) = (cluster.bootstrap(), partition(cluster, group));
    let common = ["--topic", TOPIC, "--partition", &partition, "--formatter", formatter];
    let ended = if version == V3_9_1 {
        let more = ["--bootstrap-server", &servers, "--offset", "earliest", "--timeout-ms", LONG];
        old_tool(
            cluster,
            version,
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            &[&common[..], &more].concat(),
        )
    } else {
        let more = ["--broker-list", &servers, "--no-wait-at-logend"];
        old_tool(cluster, version, "kafka.tools.SimpleConsumerShell", &[&common[..], &more].concat())
    };
    of_group(ended.lines, group)
}

fn of_group(lines: Vec<String>, group: &str) -> Vec<String> {
    let (offset, metadata) = (format!("[{group},"), format!("{group}::"));
    lines.into_iter().filter(|line| line.starts_with(&offset) || line.starts_with(&metadata)).collect()
}

fn dump(cluster: &Cluster, group: &str, more: &[&str]) -> Vec<String> {
    let servers = cluster.bootstrap();
    let line = [&["offsets", "dump", "--bootstrap-server", &servers, "--group", group], more].concat();
    troupe(&line).printed()
}

fn lines_and_counts_are_those_of_the_formatters(cluster: &Cluster, version: KafkaVersion, group: &str) {
    write(cluster, group);
    come_and_go(cluster, version, group);
    let offsets = java_lines(cluster, version, group, OFFSETS);
    let groups = java_lines(cluster, version, group, GROUPS);
    assert!(offsets.len() >= 3 && groups.len() >= 2, "{offsets:#?} {groups:#?}");
    assert_eq!(dump(cluster, group, &["--formatter", OFFSETS]), offsets);
    assert_eq!(dump(cluster, group, &["--formatter", GROUPS]), groups);
    let both = dump(cluster, group, &[]);
    assert_eq!(both.len(), offsets.len() + groups.len(), "{both:#?}");
    // without --group, what is of it is the same
    let servers = cluster.bootstrap();
    let all = troupe(&["offsets", "dump", "--bootstrap-server", &servers, "--formatter", "offsets"]);
    assert_eq!(of_group(all.printed(), group), offsets);
}

#[test]
fn b25_lines_and_counts_are_those_of_the_formatters_of_1_1_1() {
    lines_and_counts_are_those_of_the_formatters(on_1_1_1(), V1_1_1, "dumped");
}

#[test]
fn b25_lines_and_counts_are_those_of_the_formatters_of_3_9_1() {
    lines_and_counts_are_those_of_the_formatters(on_3_9_1(), V3_9_1, "dumped");
}

/// Those of 3.9 put nothing between records, and those of 4.x call it `type` what is a key's version.
fn json_lines(
    cluster: &Cluster,
    version: KafkaVersion,
    group: &str,
    class: &str,
    least: usize,
) -> Vec<Value> {
    let (servers, partition) = (cluster.bootstrap(), partition(cluster, group));
    let class = format!("org.apache.kafka.tools.consumer.{class}");
    let line = ["--bootstrap-server", &servers, "--topic", TOPIC, "--partition", &partition];
    let line = [&line[..], &["--offset", "earliest", "--timeout-ms", LONG, "--formatter", &class]].concat();
    let consumer = "org.apache.kafka.tools.consumer.ConsoleConsumer";
    let theirs = old_tool(cluster, version, consumer, &line).lines.join("");
    let theirs = theirs.replace("}{\"key\"", "}\n{\"key\"").replace("{\"type\":", "{\"version\":");
    let ours = troupe(&[&["kafka-console-consumer.sh"], &line[..]].concat()).printed();
    // others write to the partition as well
    let is_its = |line: &&str| line.contains(&format!("\"group\":\"{group}\""));
    let (ours, theirs) = (ours.iter().map(String::as_str).filter(is_its), theirs.lines().filter(is_its));
    let ours: Vec<_> = ours.collect();
    let theirs: Vec<_> = theirs.collect();
    assert!(theirs.len() >= least, "{class}: {theirs:#?}");
    assert_eq!(ours, theirs, "{class}");
    ours.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn json_is_that_of_the_formatters(cluster: &Cluster, version: KafkaVersion, group: &str) {
    write(cluster, group);
    come_and_go(cluster, version, group);
    let offsets = json_lines(cluster, version, group, "OffsetsMessageFormatter", 3);
    assert_eq!(
        offsets[0]["key"],
        json!({"version": 1, "data": {"group": group, "topic": group, "partition": 0}})
    );
    assert_eq!(offsets[0]["value"]["data"]["offset"], 5);
    let groups = json_lines(cluster, version, group, "GroupMetadataMessageFormatter", 2);
    let members = |line: &Value| line["value"]["data"]["members"].as_array().map(Vec::len);
    assert!(groups.iter().any(|line| members(line) == Some(1)), "{groups:#?}");
    cluster.client().delete_group(group).unwrap();
    // and what takes away that of each partition
    let deleted = json_lines(cluster, version, group, "OffsetsMessageFormatter", offsets.len() + 2);
    assert!(deleted.iter().any(|line| line["value"].is_null()), "{deleted:#?}");
}

#[test]
fn json_is_that_of_the_formatters_of_3_9_1() {
    json_is_that_of_the_formatters(on_3_9_1(), V3_9_1, "dumped-json");
}

#[test]
fn json_is_that_of_the_formatters_of_4_1_1() {
    json_is_that_of_the_formatters(on_4_1_1(), V4_1_1, "dumped-json");
}

#[test]
fn b25_lines_are_those_of_the_formatter_of_0_8_2_2() {
    let (cluster, group) = (on_0_8_2_2(), "dumped");
    cluster.create_topic(group, 2, 1).unwrap();
    cluster.wait_for_leaders(group).unwrap();
    cluster.produce(group, (0..40).map(|n| ProduceRecord::value(n.to_string()))).unwrap();
    let zookeeper = cluster.zookeeper_connect();
    let base = ["consume", "--zookeeper", &zookeeper, "--group", group, "--topic", group, "--from-beginning"];
    let more = ["--consumer-property", "offsets.storage=kafka", "--max-messages", "40"];
    assert_eq!(troupe(&[&base[..], &more].concat()).printed().len(), 40);
    let said = java_lines(cluster, V0_8_2_2, group, OLD);
    assert!(said.len() >= 2, "{said:#?}");
    assert_eq!(dump(cluster, group, &["--formatter", OLD]), said);
}

#[test]
fn b25_rows_say_all_that_is_in_a_record_and_the_latest_is_what_counts() {
    let (cluster, group) = (on_4_1_1(), "rows");
    write(cluster, group);
    let servers = cluster.bootstrap();
    let base = ["offsets", "dump", "--bootstrap-server", &servers, "--group", group, "--output", "json"];
    let rows = troupe(&base).rows();
    let offsets = |rows: &[Value]| -> Vec<(Value, Value)> {
        let of = rows.iter().filter(|row| row["kind"] == "offset");
        of.map(|row| (row["partition"].clone(), row["value"]["offset"].clone())).collect()
    };
    assert_eq!(offsets(&rows), [(json!(0), json!(5)), (json!(1), json!(7)), (json!(0), json!(1_u64 << 53))]);
    let first = &rows[0];
    assert_eq!((&first["group"], &first["topic"]), (&json!(group), &json!(group)));
    assert_eq!(first["value"]["expire_timestamp"], Value::Null, "{first}");
    assert_eq!(first["record"]["partition"].to_string(), partition(cluster, group));
    assert!(first["value"]["commit_timestamp"].as_i64() > Some(1_600_000_000_000), "{first}");
    let latest = troupe(&[&base[..], &["--latest"]].concat()).rows();
    assert_eq!(offsets(&latest), [(json!(1), json!(7)), (json!(0), json!(1_u64 << 53))]);
    // what was deleted is not there any more
    cluster.client().delete_group(group).unwrap();
    let deleted = troupe(&base).rows();
    assert!(deleted.iter().any(|row| row["deleted"] == true && row["value"].is_null()), "{deleted:#?}");
    let nothing = troupe(&[&base[..], &["--latest"]].concat());
    assert_eq!((nothing.code, nothing.rows().len()), (1, 0), "{nothing:#?}");
}

#[test]
fn a_group_of_which_nothing_is_stored_is_said_and_the_code_is_1() {
    let cluster = on_1_1_1();
    write(cluster, "stored");
    let ended =
        troupe(&["offsets", "dump", "--bootstrap-server", &cluster.bootstrap(), "--group", "unheard-of"]);
    assert_eq!((ended.code, ended.lines.len()), (1, 0), "{ended:#?}");
    assert!(
        ended.errors.contains("nothing of group unheard-of is in __consumer_offsets-"),
        "{}",
        ended.errors
    );
}

#[test]
fn the_partition_of_a_group_is_that_of_the_document() {
    let base = ["offsets", "partition", "--group", "console-consumer-50059"];
    let said = |more: &[&str]| troupe(&[&base[..], more].concat());
    let words = |ended: crate::old_tools::Ended| ended.printed().last().cloned().unwrap_or_default();
    assert_eq!(words(said(&["--count", "50"])).split_whitespace().collect::<Vec<_>>()[1..], ["10", "50"]);
    assert_eq!(
        words(said(&[])).split_whitespace().collect::<Vec<_>>()[1..],
        ["10", "50"],
        "as brokers make it"
    );
    assert_eq!(said(&["--count", "0"]).code, 2);
    // asked of ZooKeeper or of brokers, it is the same
    let cluster = on_1_1_1();
    write(cluster, "partition-of");
    let by_zookeeper = said(&["--zookeeper", &cluster.zookeeper_connect(), "--output", "json"]).rows();
    let by_brokers = said(&["--bootstrap-server", &cluster.bootstrap(), "--output", "json"]).rows();
    assert_eq!(by_zookeeper, by_brokers);
}

#[test]
fn a_dump_that_follows_prints_what_is_written_later() {
    let (cluster, group) = (on_3_9_1(), "followed");
    write(cluster, group);
    let servers = cluster.bootstrap();
    let line =
        ["offsets", "dump", "--bootstrap-server", &servers, "--group", group, "--follow", "--output", "json"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_troupe"));
    command.args(line).env_remove("RUST_LOG").stdout(Stdio::piped());
    let mut child = Killed(command.spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let mut offset = || -> i64 {
        let row: Value = serde_json::from_str(&lines.next().expect("no end").unwrap()).unwrap();
        row["value"]["offset"].as_i64().expect("an offset")
    };
    assert_eq!([offset(), offset(), offset()], [5, 7, 1 << 53]);
    cluster.client().commit_offset(group, group, 1, 8).unwrap();
    assert_eq!(offset(), 8);
    // it has not ended by itself
    assert_eq!(child.0.try_wait().unwrap(), None);
}
