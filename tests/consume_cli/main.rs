//! `troupe consume` against real servers, and beside the old Scala consumer.

mod filters;
mod formatters;
mod handover;
mod idle;
mod programs;
mod refusals;
mod seed_lines;
mod stored_in_kafka;
mod temporary_groups;
mod znodes;

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use troupe_cluster::{Cluster, KafkaVersion, Proxy};

use programs::{PATIENCE, Scala, Troupe, exit_code, produce};
use znodes::Znodes;

/// Kafka 1.1.1, below a chroot.
fn old() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::builder().kafka(KafkaVersion::V1_1_1).chroot("/kafka/a").start().unwrap())
}

/// Kafka 3.9.1, the last with ZooKeeper.
fn new() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(KafkaVersion::V3_9_1, 1).unwrap())
}

/// Kafka 0.8.2.2, the first that the old console consumer of today's scripts came with.
fn oldest() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(KafkaVersion::V0_8_2_2, 1).unwrap())
}

/// Runs each scenario on both clusters.
macro_rules! on_both {
    ($($scenario:ident)+) => {
        mod on_1_1_1 { $( #[test] fn $scenario() { super::$scenario(crate::old()); } )+ }
        mod on_3_9_1 { $( #[test] fn $scenario() { super::$scenario(crate::new()); } )+ }
    };
}
pub(crate) use on_both;

on_both! {
    prints_what_the_console_producer_wrote
    a_group_that_has_offsets_does_not_begin_again_unless_they_are_deleted
    offsets_of_a_group_in_use_are_not_deleted
    without_an_offset_it_starts_at_the_end
    ends_when_no_record_comes
    signals_end_it_with_all_committed
    a_signal_while_it_starts_leaves_nothing
    a_signal_ends_it_without_zookeeper_too
    takes_a_consumer_properties_file
}

/// A topic with these lines in it, by the real console producer. The name is the group's too.
fn topic(cluster: &Cluster, name: &str, partitions: i32, lines: &[String]) {
    cluster.create_topic(name, partitions, 1).unwrap();
    cluster.wait_for_leaders(name).unwrap();
    produce(cluster, name, lines);
}

fn numbered(from: usize, to: usize) -> Vec<String> {
    (from..to).map(|n| format!("line {n} with spaces, tab\tand UTF-8: é€")).collect()
}

fn set(lines: Vec<String>) -> BTreeSet<String> {
    lines.into_iter().collect()
}

fn prints_what_the_console_producer_wrote(cluster: &Cluster) {
    let lines = [numbered(0, 40), vec!["  padded  ".to_owned(), "42".to_owned()]].concat();
    topic(cluster, "printed", 3, &lines);
    let more = ["--from-beginning", "--threads", "3", "--max-messages", "42"];
    let ended = Troupe::consume(cluster, "printed", "printed", &more).end();
    assert_eq!(ended.said(), "Processed a total of 42 messages\n");
    let printed = ended.printed();
    assert_eq!(printed.len(), 42);
    assert_eq!(set(printed), set(lines));
    let znodes = Znodes::of(cluster);
    znodes.assert_left("printed", "printed", 42);
    assert_eq!(
        Troupe::consume(cluster, "printed", "printed", &["--timeout-ms", "1500"]).end().printed(),
        [""; 0]
    );
}

/// As the old tool: the beginning is refused to a group that has been further, in the same words.
fn a_group_that_has_offsets_does_not_begin_again_unless_they_are_deleted(cluster: &Cluster) {
    topic(cluster, "again", 2, &numbered(0, 10));
    let begin = ["--from-beginning", "--max-messages", "10"];
    assert_eq!(Troupe::consume(cluster, "again", "again", &begin).end().printed().len(), 10);
    let znodes = Znodes::of(cluster);
    znodes.assert_left("again", "again", 10);
    let ours = Troupe::consume(cluster, "again", "again", &begin).end();
    let theirs = Scala::consume(cluster, "again", "again", &begin).end();
    let refused = "Found previous offset information for this group again. Please use --delete-consumer-offsets to \
                   delete previous offsets metadata\n";
    assert_eq!((exit_code(&ours), exit_code(&theirs)), (1, 1), "{ours:?} {theirs:?}");
    assert_eq!(ours.errors, refused);
    assert!(theirs.errors.ends_with(refused), "{theirs:?}");
    znodes.assert_left("again", "again", 10);

    let more = [&begin[..], &["--delete-consumer-offsets"]].concat();
    let again = Troupe::consume(cluster, "again", "again", &more).end().printed();
    assert_eq!(set(again), set(numbered(0, 10)));
    znodes.assert_left("again", "again", 10);
}

/// Its offsets are not taken from under a member.
fn offsets_of_a_group_in_use_are_not_deleted(cluster: &Cluster) {
    topic(cluster, "used", 1, &numbered(0, 5));
    let member = Troupe::consume(cluster, "used", "used", &["--from-beginning"]);
    assert_eq!(member.next_lines(5), numbered(0, 5));
    let refused =
        Troupe::consume(cluster, "used", "used", &["--from-beginning", "--delete-consumer-offsets"]).end();
    assert_eq!(exit_code(&refused), 1, "{refused:?}");
    assert!(refused.errors.starts_with("troupe: the group \"used\" is active: used_"), "{refused:?}");
    member.signal(Signal::TERM);
    assert_eq!(member.end().printed(), [""; 0]);
    Znodes::of(cluster).assert_left("used", "used", 5);
}

fn without_an_offset_it_starts_at_the_end(cluster: &Cluster) {
    topic(cluster, "ends", 2, &numbered(0, 10));
    let troupe = Troupe::consume(cluster, "ends", "ends", &["--max-messages", "3"]);
    let znodes = Znodes::of(cluster);
    // the end that it found is committed before anything is read from there
    programs::eventually("both ends are committed", || match znodes.committed("ends", "ends") {
        10 => Ok(()),
        other => Err(other.to_string()),
    });
    produce(cluster, "ends", &numbered(10, 13));
    assert_eq!(set(troupe.end().printed()), set(numbered(10, 13)));
    znodes.assert_left("ends", "ends", 13);
}

fn ends_when_no_record_comes(cluster: &Cluster) {
    topic(cluster, "quiet", 2, &numbered(0, 5));
    let begun = Instant::now();
    // more than it takes to join on a loaded machine: the first record is waited for as long
    let ended =
        Troupe::consume(cluster, "quiet", "quiet", &["--from-beginning", "--timeout-ms", "12000"]).end();
    assert!(begun.elapsed() >= Duration::from_secs(12), "{:?}", begun.elapsed());
    assert_eq!(ended.said(), "No record for 12s.\nProcessed a total of 5 messages\n");
    assert_eq!(set(ended.printed()), set(numbered(0, 5)));
    Znodes::of(cluster).assert_left("quiet", "quiet", 5);
}

/// In the middle of a topic: what is committed is what was printed, to the record.
fn signals_end_it_with_all_committed(cluster: &Cluster) {
    topic(cluster, "signals", 3, &numbered(0, 20_000));
    let znodes = Znodes::of(cluster);
    let mut all = Vec::new();
    for (signal, begin) in [(Signal::INT, "--from-beginning"), (Signal::TERM, "--skip-on-error")] {
        let troupe = Troupe::consume(cluster, "signals", "signals", &[begin, "--threads", "2"]);
        all.extend(troupe.next_lines(100));
        let begun = Instant::now();
        troupe.signal(signal);
        let ended = troupe.end();
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        all.extend(ended.printed());
        assert!(all.len() < 15_000, "{} lines: in the middle", all.len());
        znodes.assert_left("signals", "signals", all.len());
    }
    let rest = (20_000 - all.len()).to_string();
    all.extend(Troupe::consume(cluster, "signals", "signals", &["--max-messages", &rest]).end().printed());
    assert_eq!(all.len(), 20_000);
    assert_eq!(set(all), set(numbered(0, 20_000)));
}

/// Another way to the cluster's ZooKeeper, and its connect string.
fn proxied(cluster: &Cluster) -> (Proxy, String) {
    let zookeeper = cluster.zookeeper().connect();
    let proxy = Proxy::start(zookeeper.as_str()).unwrap();
    let connect = cluster.zookeeper_connect().replacen(&zookeeper, &proxy.address(), 1);
    (proxy, connect)
}

fn a_signal_while_it_starts_leaves_nothing(cluster: &Cluster) {
    let (zookeeper, connect) = proxied(cluster);
    let start = || {
        programs::eventually("the proxy is free", || match zookeeper.connections() {
            0 => Ok(()),
            connections => Err(connections.to_string()),
        });
        zookeeper.freeze();
        let troupe = Troupe::run(&["--zookeeper", &connect, "--group", "early", "--topic", "early"]);
        programs::eventually("it connects", || match zookeeper.connections() {
            0 => Err("not yet".to_owned()),
            _ => Ok(()),
        });
        troupe.signal(Signal::INT);
        troupe
    };
    let troupe = start();
    zookeeper.heal();
    assert_eq!(troupe.end().printed(), [""; 0]);
    Znodes::of(cluster).assert_left("early", "early", 0);

    // another does not wait for ZooKeeper; what comes within a second is the same
    let (troupe, begun) = (start(), Instant::now());
    while begun.elapsed() < Duration::from_millis(1_200) {
        std::thread::sleep(Duration::from_millis(200));
        troupe.signal(Signal::TERM);
    }
    assert_eq!(troupe.end().printed(), [""; 0]);
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

/// Nothing can be committed then, and what was printed comes again.
fn a_signal_ends_it_without_zookeeper_too(cluster: &Cluster) {
    topic(cluster, "cut", 1, &numbered(0, 3));
    let (zookeeper, connect) = proxied(cluster);
    let arguments = ["--zookeeper", &connect, "--group", "cut", "--topic", "cut", "--from-beginning"];
    let troupe = Troupe::run(&arguments);
    assert_eq!(troupe.next_lines(3), numbered(0, 3));
    zookeeper.cut();
    let begun = Instant::now();
    troupe.signal(Signal::INT);
    assert_eq!(troupe.end().printed(), [""; 0]);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let again = Troupe::consume(cluster, "cut", "cut", &["--max-messages", "3"]).end().printed();
    assert_eq!(again, numbered(0, 3));
    Znodes::of(cluster).assert_left("cut", "cut", 3);
}

/// As Kafka shipped it with its console scripts, and what people add.
fn takes_a_consumer_properties_file(cluster: &Cluster) {
    topic(cluster, "file", 1, &numbered(0, 6));
    let file = cluster.folder().join("consumer.properties");
    let text = format!(
        "# Licensed to the Apache Software Foundation (ASF) under one or more\n\
         # see kafka.consumer.ConsumerConfig for more details\n\n\
         # Zookeeper connection string\n\
         # comma separated host:port pairs, each corresponding to a zk\n\
         zookeeper.connect={}\n\n\
         # timeout in ms for connecting to zookeeper\n\
         zookeeper.connection.timeout.ms=30000\n\n\
         #consumer group id\n\
         group.id=file\n\n\
         #consumer timeout\n\
         #consumer.timeout.ms=5000\n\
         auto.offset.reset : smallest\n\
         num.consumer.fetchers=2\n\
         socket.receive.buffer.bytes=1048576\n\
         key.deserializer=org.apache.kafka.common.serialization.StringDeserializer\n\
         zk.connect=localhost:1\n",
        cluster.zookeeper_connect()
    );
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let printing = ["--property", "print.offset=true", "--property", "print.partition=true"];
    let arguments = ["--consumer.config", file, "--property", "num.consumer.fetchers=1", "--topic", "file"];
    let more = ["--max-messages", "6"];
    let ended = Troupe::run(&[&arguments[..], &printing, &more].concat()).end();
    assert_eq!(
        ended.said(),
        "Property socket.receive.buffer.bytes is not acted on: the operating system sizes the receive buffer\n\
         Property key.deserializer is not valid\n\
         Property zk.connect is not valid: it is a name of Kafka 0.7, use zookeeper.connect\n\
         Processed a total of 6 messages\n"
    );
    let expected = numbered(0, 6).into_iter().enumerate();
    let expected: Vec<_> = expected.map(|(n, line)| format!("Partition:0\tOffset:{n}\t{line}")).collect();
    assert_eq!(exit_code(&ended), 0);
    assert_eq!(ended.lines, expected);
    let znodes = Znodes::of(cluster);
    znodes.assert_left("file", "file", 6);
}
