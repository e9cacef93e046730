//! B21 of the field cases: null is not empty, and a console leaves nothing behind.

use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use troupe_cluster::{Cluster, JavaRecord, KafkaVersion};

use crate::programs::{Killed, Troupe, eventually, exit_code, produce};
use crate::znodes::Znodes;
use crate::{numbered, on_both, topic};

on_both! {
    b21_a_temporary_group_is_gone_after_every_ending
    b21_a_signal_ends_it_where_nobody_reads_what_it_prints
    b21_a_signal_ends_it_where_nobody_reads_what_it_says_either
    b21_what_a_closed_pipe_did_not_take_is_not_committed
}

/// As the old tool, whose shutdown hook does not wait for what writes.
fn b21_a_signal_ends_it_where_nobody_reads_what_it_prints(cluster: &Cluster) {
    let name = "unread";
    topic(cluster, name, 1, &numbered(0, 20_000));
    let (znodes, connect) = (Znodes::of(cluster), cluster.zookeeper_connect());
    let often = ["--property", "auto.commit.interval.ms=50"];
    let arguments = ["--zookeeper", &connect, "--topic", name, "--from-beginning"];
    let troupe = Troupe::run(&[&arguments[..], &often].concat());
    troupe.next_lines(10);
    let group = its_group(&znodes, name);
    troupe.signal(Signal::TERM);
    assert!(troupe.end_unread().success());
    assert!(!znodes.exists(&format!("/consumers/{group}")), "{group} is left behind");
}

/// `2>&1 | less`, not scrolled: its log goes into the same full pipe.
fn b21_a_signal_ends_it_where_nobody_reads_what_it_says_either(cluster: &Cluster) {
    let name = "unheard";
    topic(cluster, name, 1, &numbered(0, 20_000));
    let (znodes, connect) = (Znodes::of(cluster), cluster.zookeeper_connect());
    let (unread, pipe) = std::io::pipe().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_troupe"));
    command.args(["consume", "--zookeeper", &connect, "--topic", name, "--from-beginning"]);
    command.args(["--property", "auto.commit.interval.ms=50"]).env("RUST_LOG", "trace");
    let mut troupe = Killed(command.stdout(pipe.try_clone().unwrap()).stderr(pipe).spawn().unwrap());
    // its other end goes with the command's copies
    drop(command);
    let group = eventually("a temporary group", || {
        let groups = znodes.children("/consumers").into_iter();
        let mut groups = groups.filter(|group| group.starts_with("console-consumer-"));
        groups.find(|it| !znodes.owners(it, name).is_empty()).ok_or_else(|| "none".to_owned())
    });
    kill_process(Pid::from_child(&troupe.0), Signal::TERM).unwrap();
    let status = eventually("its end", || troupe.0.try_wait().unwrap().ok_or_else(|| "it runs".to_owned()));
    assert!(status.success(), "{status}");
    assert!(!znodes.exists(&format!("/consumers/{group}")), "{group} is left behind");
    drop(unread);
}

/// The group of a consumer that was given none.
fn its_group(znodes: &Znodes, topic: &str) -> String {
    eventually("a temporary group", || {
        let groups = znodes.children("/consumers").into_iter();
        let mut groups = groups.filter(|group| group.starts_with("console-consumer-"));
        let committed = groups.find(|group| znodes.committed(group, topic) > 0);
        committed.ok_or_else(|| format!("{:?}", znodes.children("/consumers")))
    })
}

fn b21_a_temporary_group_is_gone_after_every_ending(cluster: &Cluster) {
    let name = "tidy";
    topic(cluster, name, 2, &numbered(0, 40));
    let (znodes, connect) = (Znodes::of(cluster), cluster.zookeeper_connect());
    let start = |more: &[&str]| {
        let arguments = ["--zookeeper", &connect, "--topic", name, "--from-beginning"];
        let often = ["--property", "auto.commit.interval.ms=50"];
        let troupe = Troupe::run(&[&arguments[..], &often, more].concat());
        troupe.next_lines(10);
        let group = its_group(&znodes, name);
        (troupe, group)
    };
    let gone = |group: &str, how: &str| {
        assert!(!znodes.exists(&format!("/consumers/{group}")), "{group} is left behind by {how}");
    };
    for (how, more) in [("--max-messages", "50"), ("--timeout-ms", "5000")] {
        let (troupe, group) = start(&[how, more]);
        // not before its group was seen
        produce(cluster, name, &numbered(0, 10));
        assert_eq!(exit_code(&troupe.end()), 0);
        gone(&group, how);
    }
    // `timeout` sends each twice
    let twice = [Signal::TERM, Signal::TERM, Signal::CONT];
    for signals in [&[Signal::INT][..], &[Signal::TERM], &[Signal::HUP], &twice, &[Signal::INT, Signal::TERM]]
    {
        let (troupe, group) = start(&[]);
        signals.iter().for_each(|signal| troupe.signal(*signal));
        let ended = troupe.end();
        assert_eq!(exit_code(&ended), 0, "{signals:?}: {ended:?}");
        assert!(ended.said().starts_with("Processed a total of "), "{signals:?}: {ended:?}");
        gone(&group, &format!("{signals:?}"));
    }
    let (mut troupe, group) = start(&[]);
    troupe.close_stdout();
    // it is told when it writes
    produce(cluster, name, &numbered(40, 50));
    produce(cluster, name, &numbered(50, 60));
    let ended = troupe.end();
    assert!(ended.said().starts_with("Unable to write to standard out, closing consumer.\n"), "{ended:?}");
    gone(&group, "a closed pipe");
    // as in `2>&1 | head`: what it has to say goes there as well
    let arguments = format!("--zookeeper {connect} --topic {name} --from-beginning");
    let often = "--property auto.commit.interval.ms=50";
    let line = format!("exec \"$TROUPE\" consume {arguments} {often} 2>&1");
    let mut troupe = Troupe::shell(&line, cluster.folder());
    troupe.next_lines(10);
    let group = its_group(&znodes, name);
    troupe.close_stdout();
    produce(cluster, name, &numbered(60, 80));
    assert_eq!(exit_code(&troupe.end()), 0);
    gone(&group, "a closed pipe and a closed stderr");
    // the lines are no numbers
    let ended = Troupe::run(&[
        "--zookeeper",
        &connect,
        "--topic",
        name,
        "--from-beginning",
        "--value-decoder",
        "long",
    ])
    .end();
    assert_eq!(exit_code(&ended), 3, "{ended:?}");
    let left =
        znodes.children("/consumers").into_iter().filter(|group| group.starts_with("console-consumer-"));
    let ours = left.filter(|group| {
        !znodes.children(&format!("/consumers/{group}/offsets")).iter().all(|topic| topic != name)
    });
    assert_eq!(ours.collect::<Vec<_>>(), [""; 0]);
}

/// With a group that is named, so that its offsets stay.
fn b21_what_a_closed_pipe_did_not_take_is_not_committed(cluster: &Cluster) {
    topic(cluster, "pipe", 3, &numbered(0, 20_000));
    let mut troupe = Troupe::consume(cluster, "pipe", "pipe", &["--from-beginning", "--threads", "2"]);
    troupe.next_lines(100);
    troupe.close_stdout();
    let ended = troupe.end();
    assert_eq!(exit_code(&ended), 0, "{ended:?}");
    let said = ended.said();
    let count = said
        .strip_prefix("Unable to write to standard out, closing consumer.\nProcessed a total of ")
        .and_then(|rest| rest.strip_suffix(" messages\n"));
    let count: usize = count.unwrap_or_else(|| panic!("{said}")).parse().unwrap();
    assert!((100..20_000).contains(&count), "{count}");
    Znodes::of(cluster).assert_left("pipe", "pipe", count);
}

/// Beside the comparison with Kafka's own: what is null, and what is empty.
#[test]
fn b21_null_is_printed_as_null_and_empty_as_an_empty_line() {
    let (cluster, name) = (crate::new(), "b21-null");
    cluster.create_topic(name, 1, 1).unwrap();
    cluster.wait_for_leaders(name).unwrap();
    let bytes = |text: &str| Some(text.as_bytes().to_vec());
    let mut producer = cluster.java_producer(KafkaVersion::V3_9_1, &[]).unwrap();
    let headers = vec![("h".to_owned(), None), ("h".to_owned(), bytes(""))];
    let pairs = [(bytes("k"), None), (None, bytes("v")), (bytes(""), bytes("")), (bytes("k"), bytes("v"))];
    for (key, value) in pairs {
        producer
            .send(name, &JavaRecord { key, value, headers: headers.clone(), ..JavaRecord::default() })
            .unwrap();
    }
    producer.flush().unwrap();
    let end = ["--from-beginning", "--max-messages", "4"];
    let ended = Troupe::consume(cluster, name, name, &end).end();
    assert_eq!(ended.said(), "Processed a total of 4 messages\n");
    assert_eq!(ended.printed(), ["null", "v", "", "v"]);
    // a group that is named keeps its offsets
    Znodes::of(cluster).assert_left(name, name, 4);
    let more =
        ["--delete-consumer-offsets", "--property", "print.key=true", "--property", "print.headers=true"];
    let lines = Troupe::consume(cluster, name, name, &[&end[..], &more].concat()).end().printed();
    assert_eq!(lines, ["h:null,h:\tk\tnull", "h:null,h:\tnull\tv", "h:null,h:\t\t", "h:null,h:\tk\tv"]);
}
