//! `troupe config check`, and what the old consumers say about the same file.

use std::collections::BTreeSet;

use troupe_cluster::KafkaVersion;

use crate::old_tools::{Ended, old_tool, troupe};
use crate::{on_0_8_2_2, on_1_1_1};

/// Every kind of key: old ones, those of 0.7, of the Java consumer, of MirrorMaker, of nobody.
const FILE: &str = "# as people have them\n\
    group.id=config-check\nzookeeper.session.timeout.ms=6000\nzookeeper.connection.timeout.ms=30000\n\
    zookeeper.sync.time.ms=2000\nclient.id=c\nsocket.timeout.ms=30000\nsocket.receive.buffer.bytes=65536\n\
    fetch.message.max.bytes=1048576\nnum.consumer.fetchers=1\nfetch.min.bytes=1\nfetch.wait.max.ms=100\n\
    queued.max.message.chunks=2\nauto.commit.enable=true\nauto.commit.interval.ms=60000\nrebalance.max.retries=4\n\
    rebalance.backoff.ms=2000\nrefresh.leader.backoff.ms=200\nconsumer.timeout.ms=500\n\
    offsets.storage=zookeeper\ndual.commit.enabled=false\noffsets.channel.backoff.ms=1000\n\
    offsets.channel.socket.timeout.ms=10000\noffsets.commit.max.retries=5\nexclude.internal.topics=true\n\
    partition.assignment.strategy=range\nzk.connect=z\ngroupid=g\nmirror.topics.whitelist=a\nexternal.key=1\n\
    enable.auto.commit=true\nkey.deserializer=x\nfetch.min.byte=1\npassword=geheim\n";

fn written(name: &str, text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap().to_owned();
    (folder, file)
}

fn keys(ended: &Ended, treatment: &str) -> BTreeSet<String> {
    let rows = ended.rows();
    let rows = rows.iter().filter(|row| row["treatment"] == treatment);
    rows.map(|row| row["key"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_the_old_consumer_does_not_know_is_unknown() {
    let (_folder, file) =
        written("consumer.properties", &format!("{FILE}zookeeper.connect=z\nfetch.max.bytes=1\n"));
    let ours = troupe(&["config", "check", &file, "--output", "json"]);
    assert_eq!(ours.code, 0, "{ours:#?}");
    for (cluster, version) in [(on_1_1_1(), KafkaVersion::V1_1_1), (on_0_8_2_2(), KafkaVersion::V0_8_2_2)] {
        cluster.create_topic("config-check", 1, 1).unwrap();
        cluster.wait_for_leaders("config-check").unwrap();
        let zookeeper = cluster.zookeeper_connect();
        let arguments = ["--zookeeper", &zookeeper, "--topic", "config-check", "--consumer.config", &file];
        let old = old_tool(cluster, version, "kafka.tools.ConsoleConsumer", &arguments);
        let log: Vec<&str> = old.errors.lines().chain(old.lines.iter().map(String::as_str)).collect();
        let warned =
            log.iter().filter_map(|line| line.split_once("Property ")?.1.split_once(" is not valid"));
        let warned: BTreeSet<String> = warned.map(|(key, _)| key.to_owned()).collect();
        let mut expected = keys(&ours, "unknown");
        if version == KafkaVersion::V0_8_2_2 {
            // it came with 0.10.1
            expected.insert("fetch.max.bytes".to_owned());
        }
        assert_eq!(warned, expected, "{version:?}: {:?}", old.said());
    }
}

#[test]
fn a_file_that_would_not_do_ends_with_1_and_says_why() {
    let (_folder, file) =
        written("bad.properties", "group.id=g\nauto.offset.reset=smalest\npassword=geheim\n");
    let ended = troupe(&["config", "check", &file]);
    assert_eq!(ended.code, 1, "{ended:#?}");
    assert!(ended.errors.contains("does not start with it: 1 refused, 1 missing; 1 unknown"), "{ended:#?}");
    let first_words: Vec<_> = ended.words().into_iter().map(|words| words[..2].join(" ")).collect();
    assert_eq!(
        first_words,
        ["LINE KEY", "1 group.id", "2 auto.offset.reset", "3 password", "- zookeeper.connect"]
    );
    assert!(!format!("{ended:?}").contains("geheim"), "{ended:#?}");
}

#[test]
fn a_file_that_is_not_there_is_an_error_of_the_command_line() {
    let ended = troupe(&["config", "check", "/no/such/file"]);
    assert_eq!((ended.code, ended.lines.len()), (2, 0), "{ended:#?}");
    assert!(ended.errors.contains("/no/such/file"), "{ended:#?}");
}
