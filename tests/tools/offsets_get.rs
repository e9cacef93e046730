//! `troupe offsets get` beside `GetOffsetShell`.

use std::time::{SystemTime, UNIX_EPOCH};

use troupe_cluster::{Cluster, KafkaVersion, ProduceRecord};

use crate::old_tools::{old_tool, troupe};
use crate::{eventually, on_0_8_2_2, on_1_1_1, on_3_9_1, on_4_1_1};

const CLASS: &str = "kafka.tools.GetOffsetShell";

/// In 3 partitions: 5, 5 and none.
fn topic(cluster: &Cluster, name: &str) {
    cluster.create_topic(name, 3, 1).unwrap();
    cluster.wait_for_leaders(name).unwrap();
    produce(cluster, name);
}

fn produce(cluster: &Cluster, name: &str) {
    let record = |n| ProduceRecord { partition: Some(n % 2), ..ProduceRecord::value("x") };
    cluster.produce(name, (0..10).map(record)).unwrap();
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort_unstable();
    lines
}

/// The same lines for the same flags; what they are.
fn same_lines(cluster: &Cluster, version: KafkaVersion, class: &str, flags: &[&str]) -> Vec<String> {
    let bootstrap = cluster.bootstrap();
    let flags = [&["--broker-list", &*bootstrap], flags].concat();
    let ours = troupe(&[&["offsets", "get"], &*flags].concat()).printed();
    let old = sorted(old_tool(cluster, version, class, &flags).printed());
    // from 3.0 on they leave out what has nothing of that time
    let is_told = |line: &&String| version < KafkaVersion::V3_9_1 || !line.ends_with(':');
    let told = sorted(ours.iter().filter(is_told).cloned().collect());
    assert_eq!(told, old, "{flags:?}");
    ours
}

fn ends_and_chosen_partitions(cluster: &Cluster, version: KafkaVersion, class: &str) {
    topic(cluster, "got");
    assert_eq!(
        same_lines(cluster, version, class, &["--topic", "got", "--time", "-1"]),
        ["got:0:5", "got:1:5", "got:2:0"]
    );
    let first =
        same_lines(cluster, version, class, &["--topic", "got", "--time", "-2", "--partitions", "0,2"]);
    assert_eq!(first, ["got:0:0", "got:2:0"]);
}

#[test]
fn ends_of_logs_are_those_of_the_tool_of_0_8_2_2_and_times_too() {
    let (cluster, version) = (on_0_8_2_2(), KafkaVersion::V0_8_2_2);
    ends_and_chosen_partitions(cluster, version, CLASS);
    // its brokers know times of segments alone
    let long_ago = same_lines(cluster, version, CLASS, &["--topic", "got", "--time", "1000"]);
    assert_eq!(long_ago, ["got:0:", "got:1:", "got:2:"]);
    let to_come = same_lines(cluster, version, CLASS, &["--topic", "got", "--time", "99999999999999"]);
    assert_eq!(to_come, ["got:0:5", "got:1:5", "got:2:0"]);
}

#[test]
fn ends_of_logs_are_those_of_the_tool_of_1_1_1() {
    ends_and_chosen_partitions(on_1_1_1(), KafkaVersion::V1_1_1, CLASS);
}

#[test]
fn ends_and_times_are_those_of_the_tool_of_3_9_1() {
    let (cluster, version) = (on_3_9_1(), KafkaVersion::V3_9_1);
    let class = "org.apache.kafka.tools.GetOffsetShell";
    ends_and_chosen_partitions(cluster, version, class);
    let between = now_ms() + 1;
    eventually("a later millisecond", || if now_ms() > between { Ok(()) } else { Err("not yet".to_owned()) });
    produce(cluster, "got");
    for (time, lines) in [
        ("earliest", ["got:0:0", "got:1:0", "got:2:0"]),
        ("latest", ["got:0:10", "got:1:10", "got:2:0"]),
        ("1000", ["got:0:0", "got:1:0", "got:2:"]),
        (&between.to_string(), ["got:0:5", "got:1:5", "got:2:"]),
        ("99999999999999", ["got:0:", "got:1:", "got:2:"]),
    ] {
        assert_eq!(same_lines(cluster, version, class, &["--topic", "got", "--time", time]), lines, "{time}");
    }
    // a pattern, and without a time the ends
    assert_eq!(same_lines(cluster, version, class, &["--topic", "go.", "--partitions", "0"]), ["got:0:10"]);
}

#[test]
fn patterns_of_partitions_are_those_of_the_tool_of_3_9_1() {
    let (cluster, version) = (on_3_9_1(), KafkaVersion::V3_9_1);
    let class = "org.apache.kafka.tools.GetOffsetShell";
    ["got-by-pattern", "got-by-pattern-2"].iter().for_each(|name| topic(cluster, name));
    for (patterns, count) in [
        ("got-by-pattern:1", 1),
        ("got-by-pattern:0-2,got-by-pattern-2:2-", 3),
        ("got-by-.*:-1", 2),
        ("got-by-pattern", 3),
        ("got-by-pattern.*:1-,:77", 4),
    ] {
        let lines = same_lines(cluster, version, class, &["--topic-partitions", patterns]);
        assert_eq!(lines.len(), count, "{patterns}: {lines:?}");
    }
    let bootstrap = cluster.bootstrap();
    let get = ["offsets", "get", "--bootstrap-server", &bootstrap, "--topic-partitions"];
    let none = troupe(&[&get[..], &["got-by-pattern:3-"]].concat());
    assert_eq!((none.code, none.lines.len()), (1, 0), "{none:#?}");
    assert!(none.errors.contains("there is no such partition of any topic"), "{none:#?}");
    for (wrong, why) in [(&["t:x"][..], "TOPIC:2-5"), (&["t:1", "--topic", "t"], "cannot be used with")] {
        let ended = troupe(&[&get[..], wrong].concat());
        assert!(ended.code == 2 && ended.errors.contains(why), "{ended:#?}");
    }
}

#[test]
fn times_that_are_not_asked_for_are_named() {
    for time in ["max-timestamp", "-3", "earliest-local", "latest-tiered"] {
        let ended = troupe(&["offsets", "get", "--bootstrap-server", "localhost:1", "--time", time]);
        assert_eq!(ended.code, 2, "{ended:#?}");
        let why = format!("no broker is asked for {time} here: kafka-get-offsets.sh");
        assert!(ended.errors.contains(&why), "{ended:#?}");
    }
}

fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}

#[test]
fn what_is_not_there_is_said_and_the_code_is_1_and_nothing_is_made() {
    let cluster = on_4_1_1();
    topic(cluster, "got");
    let bootstrap = cluster.bootstrap();
    let get =
        |flags: &[&str]| troupe(&[&["offsets", "get", "--bootstrap-server", &*bootstrap], flags].concat());
    let missing = get(&["--topic", "got", "--partitions", "1,9"]);
    assert_eq!((missing.code, &*missing.lines), (1, &["got:1:5".to_owned()][..]), "{missing:#?}");
    assert!(missing.said()[0].starts_with("got-9: there is no such partition"), "{missing:#?}");
    let unknown = get(&["--topic", "got-no"]);
    assert_eq!((unknown.code, unknown.lines.len()), (1, 0), "{unknown:#?}");
    assert!(unknown.errors.contains("there is no topic got-no"), "{unknown:#?}");
    assert!(!cluster.client().topics().unwrap().contains(&"got-no".to_owned()));

    let rows = get(&["--topic", "got", "--partitions", "1,9", "--output", "json"]).rows();
    assert_eq!(rows[0], serde_json::json!({"topic": "got", "partition": 1, "offset": 5, "error": null}));
    assert!(rows[1]["offset"].is_null() && rows[1]["error"].is_string(), "{rows:?}");
    for wrong in [["--time", "-4"], ["--time", "yesterday"], ["--offsets", "2"]] {
        assert_eq!(get(&wrong).code, 2, "{wrong:?}");
    }
}
