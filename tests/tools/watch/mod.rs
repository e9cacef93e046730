//! `troupe groups watch`: on a pseudo-terminal, and into a pipe.

mod terminal;

use rustix::process::Signal;
use serde_json::{Value, from_str};
use troupe_cluster::{Cluster, KafkaVersion};

use crate::members::{Ours, java, scala, topic};
use crate::old_tools::{Ended, troupe};
use crate::znodes::Znodes;
use crate::{eventually, on_0_8_2_2, on_1_1_1, on_3_9_1, on_4_1_1};
use terminal::Terminal;

/// As the view prints the rows of partitions: how many have all of these words.
fn rows(lines: &[String], words: &[&str]) -> usize {
    let partitions = lines.iter().skip_while(|line| !line.starts_with("PARTITIONS ("));
    partitions.skip(2).filter(|line| words.iter().all(|word| line.contains(word))).count()
}

#[test]
fn a_rebalance_is_seen_live_and_the_terminal_is_given_back() {
    let (cluster, name) = (on_1_1_1(), "watch-live");
    topic(cluster, name, 4, 40);
    let _one = Ours::join(cluster, name, name, 2, &["consumer.id=one"]);
    let connect = cluster.zookeeper_connect();
    let arguments = ["groups", "watch", "--zookeeper", &connect, "--group", name, "--interval", "0.2"];
    let mut terminal = Terminal::run(&arguments, (160, 30));
    terminal.wait("all with one", |lines| {
        rows(lines, &[" one-0 ", "10 "]) == 2 && rows(lines, &[" one-1 "]) == 2
    });
    assert!(!terminal.is_cooked() && terminal.screen().is_other && !terminal.screen().has_cursor);
    let lines = terminal.screen().lines;
    assert!(lines[0].starts_with("watch-live  (zookeeper)  1 members  4 partitions  read "), "{lines:#?}");

    let two = Ours::join(cluster, name, name, 2, &["consumer.id=two"]);
    terminal.wait("half with two", |lines| {
        rows(lines, &[" two-", " ago from one-"]) == 2 && rows(lines, &[" one-"]) == 4
    });
    terminal.press("t/_two-1\r");
    terminal.wait("what two owns, by topic", |lines| {
        lines.iter().any(|line| line == "PARTITIONS (1) by topic") && rows(lines, &[" two-1 "]) == 1
    });
    two.leave();
    terminal.press("/\u{1b}");
    terminal.wait("all with one again", |lines| rows(lines, &[" one-", " ago from two-"]) == 2);
    terminal.press("q");
    assert!(terminal.wait_for_end().success());
    let left = terminal.screen();
    assert!(terminal.is_cooked() && !left.is_other && left.has_cursor, "{left:?}");
}

#[test]
fn a_signal_or_ctrl_c_gives_the_terminal_back() {
    let connect = on_1_1_1().zookeeper_connect();
    let arguments = ["groups", "watch", "--zookeeper", &connect, "--group", "watch-nobody"];
    for signal in [Some(Signal::TERM), Some(Signal::HUP), Some(Signal::INT), None] {
        let mut terminal = Terminal::run(&arguments, (80, 24));
        terminal.wait("no group yet", |lines| lines[0].contains("there is no such group in zookeeper"));
        match signal {
            Some(signal) => terminal.signal(signal),
            None => terminal.press("\u{3}"),
        }
        assert!(terminal.wait_for_end().success(), "{signal:?}");
        let left = terminal.screen();
        assert!(terminal.is_cooked() && !left.is_other && left.has_cursor, "{signal:?}: {left:?}");
    }
}

#[test]
fn while_zookeeper_is_away_the_last_view_stays_and_then_it_goes_on() {
    let cluster = Cluster::builder().kafka(KafkaVersion::V3_9_1).brokers(0).start().unwrap();
    let znodes = Znodes::of(&cluster);
    znodes.commit("left", "orders", 0, 41);
    let connect = cluster.zookeeper_connect();
    let arguments = ["groups", "watch", "--zookeeper", &connect, "--group", "left", "--interval", "0.2"];
    let mut terminal = Terminal::run(&arguments, (100, 24));
    terminal.wait("the offset", |lines| rows(lines, &["orders", "41"]) == 1);
    drop(znodes);
    cluster.zookeeper().kill().unwrap();
    terminal.wait("the error, and the last view", |lines| {
        lines.iter().any(|line| line.starts_with("cannot be read since ")) && rows(lines, &["41"]) == 1
    });
    cluster.zookeeper().restart().unwrap();
    Znodes::of(&cluster).commit("left", "orders", 0, 42);
    terminal.wait("the next offset, and no error", |lines| {
        !lines.iter().any(|line| line.starts_with("cannot be read since ")) && rows(lines, &["42"]) == 1
    });
    terminal.press("\u{1b}");
    assert!(terminal.wait_for_end().success());
}

/// The lines of JSON that it prints.
fn watch(arguments: &[&str]) -> (Ended, Vec<Value>) {
    let ended = troupe(&[&["groups", "watch", "--output", "json", "--interval", "0.1"], arguments].concat());
    let lines = ended.lines.iter().map(|line| from_str(line).unwrap()).collect();
    (ended, lines)
}

#[test]
fn without_a_terminal_it_prints_what_describe_says() {
    let (cluster, name) = (on_1_1_1(), "watch-piped");
    topic(cluster, name, 2, 20);
    let one = Ours::join(cluster, name, name, 1, &["consumer.id=one"]);
    let connect = cluster.zookeeper_connect();
    let group = ["--zookeeper", &connect, "--group", name];
    let described = eventually("all is read", || {
        let described = troupe(&[&["groups", "describe", "--output", "json"], &group[..]].concat()).rows();
        let done = described.len() == 2 && described.iter().all(|row| row["lag"] == 0);
        done.then_some(described.clone()).ok_or_else(|| format!("{described:?}"))
    });
    let (ended, lines) = watch(&[&group[..], &["--iterations", "3", "--sort", "topic"]].concat());
    assert_eq!((ended.code, lines.len()), (0, 3), "{ended:?}");
    for (row, described) in lines[2]["partitions"].as_array().unwrap().iter().zip(&described) {
        for key in ["topic", "partition", "owner", "committed", "log_end", "lag"] {
            assert_eq!(row[key], described[key], "{key}: {row} {described}");
        }
        assert_eq!((&row["committed_per_second"], &row["note"]), (&0.0.into(), &Value::Null));
    }
    assert_eq!((&lines[2]["total_lag"], &lines[2]["members"][0]["owned"]), (&0.into(), &2.into()));
    let tables = troupe(&[&["groups", "watch", "--iterations", "1"], &group[..]].concat());
    assert!(tables.words().iter().any(|words| words.starts_with(&[name, "0"])), "{tables:?}");
    one.leave();
    let (ended, lines) = watch(&["--zookeeper", &connect, "--group", "watch-none", "--iterations", "1"]);
    assert_eq!((ended.code, &lines[0]["exists"]), (1, &false.into()), "{ended:?}");
    let (ended, lines) = watch(&["--zookeeper", "127.0.0.1:1", "--group", name, "--iterations", "1"]);
    assert_eq!((ended.code, lines[0]["error"].is_string()), (3, true), "{ended:?}");
    assert_eq!(watch(&["--group", name]).0.code, 2);
}

#[test]
fn groups_of_kafka_are_watched_alike() {
    let new = "group.protocol=consumer";
    for (cluster, version, kind, properties) in [
        (on_3_9_1(), KafkaVersion::V3_9_1, "classic", &["client.id=ours"][..]),
        (on_4_1_1(), KafkaVersion::V4_1_1, "consumer", &["client.id=ours", new]),
    ] {
        let name = "watch-kafka";
        topic(cluster, name, 2, 20);
        let member = java(cluster, version, name, name, properties);
        let bootstrap = cluster.bootstrap();
        let group = ["--bootstrap-server", &bootstrap, "--group", name];
        let line = eventually("all is read", || {
            let line = watch(&[&group[..], &["--iterations", "1"]].concat()).1.remove(0);
            let is_read = line["state"] == "Stable" && line["total_lag"] == 0 && line["unknown_lags"] == 0;
            is_read.then_some(line.clone()).ok_or_else(|| line.to_string())
        });
        let facts = [&line["coordination"], &line["type"], &line["members"][0]["about"]];
        assert_eq!(facts, ["kafka", kind, "ours at 127.0.0.1"]);
        for row in line["partitions"].as_array().unwrap() {
            assert_eq!((&row["log_end"], &row["owner"]), (&10.into(), &line["members"][0]["id"]), "{row}");
        }
        member.leave().unwrap();
    }
}

#[test]
fn where_both_are_asked_the_group_in_zookeeper_is_preferred() {
    let (cluster, name) = (on_3_9_1(), "watch-both");
    topic(cluster, name, 1, 10);
    cluster.client().commit_offset(name, name, 0, 4).unwrap();
    let (connect, bootstrap) = (cluster.zookeeper_connect(), cluster.bootstrap());
    let both = ["--zookeeper", &connect, "--bootstrap-server", &bootstrap, "--group", name];
    let seen = || {
        let line = watch(&[&both[..], &["--iterations", "1"]].concat()).1.remove(0);
        (line["coordination"].clone(), line["total_lag"].clone())
    };
    assert_eq!(seen(), ("kafka".into(), 6.into()));
    Znodes::of(cluster).commit(name, name, 0, 7);
    assert_eq!(seen(), ("zookeeper".into(), 3.into()));
}

#[test]
fn old_members_on_old_brokers_are_watched() {
    let (cluster, name) = (on_0_8_2_2(), "watch-old");
    topic(cluster, name, 2, 20);
    let member = scala(cluster, KafkaVersion::V0_8_2_2, name, (name, 2), &["consumer.id=old"]);
    let connect = cluster.zookeeper_connect();
    eventually("all is read", || {
        let line = watch(&["--zookeeper", &connect, "--group", name, "--iterations", "1"]).1.remove(0);
        let rows = line["partitions"].as_array().cloned().unwrap_or_default();
        let facts = rows.iter().map(|row| (row["owner"].clone(), row["log_end"].clone(), row["lag"].clone()));
        let read = |thread: &str| (format!("{name}_old-{thread}").into(), 10.into(), 0.into());
        let is_read = facts.eq([read("0"), read("1")]);
        is_read.then_some(()).ok_or_else(|| line.to_string())
    });
    member.leave().unwrap();
}
