//! `troupe consume --partition`, line by line beside Kafka's SimpleConsumerShell; and whole topics without a group.

use troupe_cluster::{Cluster, KafkaVersion, KafkaVersion::*, ProduceRecord};

use crate::old_tools::{old_tool, troupe};
use crate::{on_0_8_2_2, on_1_1_1, on_3_9_1, on_4_1_1};

const SHELL: &str = "kafka.tools.SimpleConsumerShell";

/// A topic of two partitions, `0-0` to `0-19` in the first.
fn topic(cluster: &Cluster, name: &str) {
    cluster.create_topic(name, 2, 1).unwrap();
    cluster.wait_for_leaders(name).unwrap();
    let records = (0..20).flat_map(|n| {
        (0..2).map(move |partition| ProduceRecord {
            partition: Some(partition),
            key: (n % 2 == 0).then(|| format!("k{n}").into_bytes()),
            value: format!("{partition}-{n}").into_bytes(),
        })
    });
    cluster.produce(name, records).unwrap();
}

fn lines_are_those_of_the_shell(cluster: &Cluster, version: KafkaVersion) {
    let (name, servers) = ("shelled", cluster.bootstrap());
    topic(cluster, name);
    let base = ["--broker-list", &servers, "--topic", name, "--no-wait-at-logend"];
    // that of 0.8.2.2 wants it to be given, whatever its help says
    let partition = if version == V1_1_1 { &[][..] } else { &["--partition", "0"] };
    for more in [
        partition,
        &["--partition", "1", "--print-offsets"],
        &["--partition", "0", "--offset", "-2", "--max-messages", "3", "--print-offsets"],
        &["--partition", "0", "--offset", "-1"],
        &["--partition", "1", "--offset", "17"],
        &["--partition", "0", "--offset", "5", "--property", "print.key=true"],
        &[
            "--partition",
            "1",
            "--offset",
            "18",
            "--fetchsize",
            "1000",
            "--clientId",
            "me",
            "--max-wait-ms",
            "500",
            "--replica",
            "-1",
        ],
    ] {
        let line = [&base[..], more].concat();
        let said = old_tool(cluster, version, SHELL, &line).printed();
        assert!(!said.is_empty(), "{more:?}");
        // by the script's name, with all else as it was typed
        let ours = troupe(&[&["kafka-simple-consumer-shell.sh"], &line[..]].concat()).printed();
        assert_eq!(ours, said, "{more:?}");
    }
}

#[test]
fn lines_are_those_of_the_shell_of_1_1_1() {
    lines_are_those_of_the_shell(on_1_1_1(), V1_1_1);
}

#[test]
fn lines_are_those_of_the_shell_of_0_8_2_2() {
    lines_are_those_of_the_shell(on_0_8_2_2(), V0_8_2_2);
}

#[test]
fn a_partition_is_read_by_zookeeper_and_by_the_newer_names_of_offsets() {
    let (cluster, name) = (on_1_1_1(), "by-zookeeper");
    topic(cluster, name);
    let zookeeper = cluster.zookeeper_connect();
    let base =
        ["consume", "--zookeeper", &zookeeper, "--topic", name, "--partition", "1", "--no-wait-at-logend"];
    let end = format!("Terminating. Reached the end of partition ({name}, 1) at offset 20");
    for (offset, first) in [("latest-2", 18), ("earliest", 0), ("19", 19), ("latest", 20)] {
        let mut expected: Vec<_> = (first..20).map(|n| format!("1-{n}")).collect();
        expected.push(end.clone());
        assert_eq!(troupe(&[&base[..], &["--offset", offset]].concat()).printed(), expected, "{offset}");
    }
}

#[test]
fn without_a_group_the_properties_of_the_consumer_count() {
    let (cluster, name) = (on_1_1_1(), "without-group");
    topic(cluster, name);
    let servers = cluster.bootstrap();
    let base = ["consume", "--bootstrap-server", &servers, "--topic", name, "--partition", "1"];
    // no record comes from the end on
    let quiet = ["--offset", "latest", "--consumer-property", "consumer.timeout.ms=300"];
    let ended = troupe(&[&base[..], &quiet].concat());
    assert_eq!((ended.code, ended.lines.len()), (0, 0), "{ended:#?}");
    assert!(ended.errors.contains("No record for 300ms."), "{ended:#?}");
    let file = |name: &str, text: &str| {
        let path = cluster.folder().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let secret = file("without-group.command", "security.protocol=SASL_SSL\n");
    let quiet = file("without-group.consumer", "consumer.timeout.ms=300\nno.such.key=1\n");
    for (more, code, says) in [
        (&["--consumer-property", "security.protocol=SASL_SSL"][..], 2, "PLAINTEXT only"),
        (&["--consumer-config", &secret], 2, "PLAINTEXT only"),
        (&["--command-config", &secret, "--consumer-config", &quiet], 2, "PLAINTEXT only"),
        (&["--consumer-property", "socket.timeout.ms=soon"], 2, "socket.timeout.ms"),
        (&["--consumer-property", "isolation.level=some"], 2, "isolation.level"),
        (&["--consumer-config", &quiet, "--max-messages", "1"], 0, "Property no.such.key is not valid"),
    ] {
        let ended = troupe(&[&base[..], more].concat());
        assert_eq!(ended.code, code, "{more:?} {ended:#?}");
        assert!(ended.errors.contains(says), "{more:?} {ended:#?}");
    }
}

#[test]
fn json_has_stdout_for_itself() {
    let (cluster, name) = (on_1_1_1(), "json-alone");
    topic(cluster, name);
    let servers = cluster.bootstrap();
    let base = ["consume", "--bootstrap-server", &servers, "--topic", name, "--partition", "1"];
    for more in [["--output", "json"], ["--formatter", "json"]] {
        let end = ["--offset", "18", "--print-offsets", "--no-wait-at-logend"];
        let ended = troupe(&[&base[..], &end, &more].concat());
        let json = ended.lines.iter().filter(|line| serde_json::from_str::<serde_json::Value>(line).is_ok());
        assert_eq!((ended.code, json.count(), ended.lines.len()), (0, 2, 2), "{more:?} {ended:#?}");
        let end = format!("Terminating. Reached the end of partition ({name}, 1) at offset 20\n");
        for says in ["next offset = 19\n", "next offset = 20\n", &end] {
            assert!(ended.errors.contains(says), "{more:?} {ended:#?}");
        }
    }
}

/// One partition, as Kafka's console consumer reads it: it begins at the end.
fn a_partition_begins_as_with_the_console_consumer(cluster: &Cluster, version: KafkaVersion, class: &str) {
    let (name, servers) = ("console-begins", cluster.bootstrap());
    topic(cluster, name);
    let base = ["--bootstrap-server", &servers, "--topic", name, "--partition", "1", "--timeout-ms", "8000"];
    for (more, expected) in [
        (&[][..], 0),
        (&["--from-beginning", "--max-messages", "20"], 20),
        (&["--offset", "earliest", "--max-messages", "20"], 20),
        (&["--offset", "15", "--max-messages", "5"], 5),
    ] {
        let line = [&base[..], more].concat();
        let said = old_tool(cluster, version, class, &line).lines;
        assert_eq!(said.len(), expected, "{more:?}");
        assert_eq!(troupe(&[&["kafka-console-consumer.sh"], &line[..]].concat()).printed(), said, "{more:?}");
        assert_eq!(troupe(&[&[class], &line[..]].concat()).printed(), said, "{more:?}");
    }
    // by its own name it begins as the simple consumer shell
    let line = [&["consume"], &base[..], &["--max-messages", "20"]].concat();
    assert_eq!(troupe(&line).printed().len(), 20);
}

#[test]
fn a_partition_begins_as_with_the_console_consumer_of_1_1_1() {
    a_partition_begins_as_with_the_console_consumer(on_1_1_1(), V1_1_1, "kafka.tools.ConsoleConsumer");
}

#[test]
fn a_partition_begins_as_with_the_console_consumer_of_4_1_1() {
    let class = "org.apache.kafka.tools.consumer.ConsoleConsumer";
    a_partition_begins_as_with_the_console_consumer(on_4_1_1(), V4_1_1, class);
}

#[test]
fn what_cannot_be_is_said_before_or_after_asking() {
    let (cluster, name) = (on_1_1_1(), "cannot-be");
    topic(cluster, name);
    let servers = cluster.bootstrap();
    let base = ["consume", "--bootstrap-server", &servers, "--topic", name];
    for (more, code, says) in [
        (&["--partition", "7"][..], 3, "cannot-be-7: there is no such partition: the topic has 2, 0 to 1"),
        (&["--partition", "0", "--offset", "21"], 3, "has no offset 21: its log goes from 0 to 20"),
        (
            &["--partition", "0", "--offset", "x"],
            2,
            "must be earliest, latest, latest-N, or an offset from 0 on",
        ),
        (&["--offset", "3"], 2, "--partition"),
        (&["--partition", "0", "--group", "g"], 2, "cannot be used with"),
        (&["--group", "g"], 2, "groups are coordinated through ZooKeeper"),
    ] {
        let ended = troupe(&[&base[..], more].concat());
        assert_eq!(ended.code, code, "{more:?} {ended:#?}");
        assert!(ended.errors.contains(says), "{more:?} {ended:#?}");
    }
    let absent =
        troupe(&["consume", "--bootstrap-server", &servers, "--topic", "absent", "--from-beginning"]);
    assert_eq!(absent.code, 3, "{absent:#?}");
    assert!(absent.errors.contains("the topic absent does not exist"), "{}", absent.errors);
}

fn a_whole_topic_is_read_without_a_group(cluster: &Cluster) {
    let (name, servers) = ("whole", cluster.bootstrap());
    topic(cluster, name);
    let base = ["consume", "--bootstrap-server", &servers, "--topic", name];
    let more = ["--from-beginning", "--max-messages", "40"];
    let mut read = troupe(&[&base[..], &more].concat()).printed();
    read.sort();
    let mut expected: Vec<_> = (0..20).flat_map(|n| [format!("0-{n}"), format!("1-{n}")]).collect();
    expected.sort();
    assert_eq!(read, expected);
    // from the end on there is nothing
    let nothing = troupe(&[&base[..], &["--timeout-ms", "1500"]].concat());
    assert_eq!((nothing.code, nothing.lines.len()), (0, 0), "{nothing:#?}");
    let both = troupe(&[&base[..], &["--from-beginning", "--no-wait-at-logend"]].concat()).printed();
    let ends =
        both.iter().filter(|line| line.starts_with("Terminating. Reached the end of partition (whole, "));
    assert_eq!((ends.count(), both.len()), (2, 42));
}

#[test]
fn a_whole_topic_is_read_without_a_group_on_3_9_1() {
    a_whole_topic_is_read_without_a_group(on_3_9_1());
}

#[test]
fn a_whole_topic_is_read_without_a_group_on_4_1_1() {
    a_whole_topic_is_read_without_a_group(on_4_1_1());
}
