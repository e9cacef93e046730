//! Prometheus text from snapshots, without servers.

use std::process::{Command, Stdio};

use kafka_troupe::StatusSnapshot;
use kafka_troupe::metrics::{emit, render};
use kafka_troupe::proto::health::Health;
use kafka_troupe::proto::schemas::rebalance::v1::RebalanceTrace;
use kafka_troupe::proto::schemas::status::v1::*;

use crate::support::exposition::Exposition;

/// Everything that a snapshot may have, named by these.
fn full(group: &str, id: &str, topic: &str) -> StatusSnapshot {
    let partition = |partition| OwnedPartition {
        topic: topic.into(),
        partition,
        thread: format!("{id}-0"),
        owned_since_ms: 1_700_000_000_500,
        fetched: 120,
        delivered: 110,
        acked: 100,
        committed: Some(90),
        high_watermark: Some(150),
        lag: Some(50),
        records: 60,
        bytes: 600,
        unfetched: "broker 1: refused".into(),
        unfetched_since_ms: 1_700_000_010_000,
        committed_ms: Some(1_700_000_011_000),
        ..Default::default()
    };
    let failing = FailingCommit {
        topic: topic.into(),
        partition: 1,
        why: "no answer".into(),
        since_ms: 1_700_000_005_000,
        attempts: 2,
    };
    let trace = RebalanceTrace { started_ms: 1_700_000_001_000, duration_ms: 250, ..Default::default() };
    let mut snapshot = StatusSnapshot {
        group: group.into(),
        consumer_id: id.into(),
        client_id: "client-1_x".into(),
        session: Some(Session {
            state: SessionState::Connected.into(),
            id: 7,
            negotiated_timeout_ms: 6_000,
            lease_remaining_ms: 3_500,
        }),
        phase: "stable".into(),
        partitions: vec![partition(0), partition(1)],
        streams: vec![Stream {
            name: format!("{topic}-0"),
            queued_chunks: 2,
            queued_bytes: 4_096,
            chunks: 9,
            handler_restarts: 1,
            skipped: 3,
            dead_letters: 4,
            stopped: "x".into(),
            ..Default::default()
        }],
        actors: vec![ActorStatus {
            name: "zk-session".into(),
            restarts: 1,
            handled: 12,
            answered_in_ms: Some(2),
        }],
        rebalances: Some(Rebalances { count: 3, last: vec![trace], total_ms: 1_250 }),
        records: 120,
        bytes: 1_200,
        taken_ms: 1_700_000_020_000,
        commits: Some(Commits {
            to_zookeeper: 4,
            to_kafka: 5,
            failures: 6,
            failing: vec![failing],
            ..Default::default()
        }),
        brokers: vec![Broker {
            id: 1,
            address: "host:9092".into(),
            connected: true,
            partitions: 2,
            requests: 10,
            bytes: 10_000,
            errors: 1,
            waited_ms: 1_500,
            ..Default::default()
        }],
        waiting: vec![WaitingPartition { topic: topic.into(), ..Default::default() }],
        listener: Some(RebalanceListener { asked: 3, late: 2, failed: 1, ..Default::default() }),
        topic_metadata: Some(TopicMetadata { polls: 4, age_ms: Some(500), ..Default::default() }),
        halted: vec![HaltedPartition {
            topic: topic.into(),
            partition: 1,
            reason: "unreadable".into(),
            ..Default::default()
        }],
        stuck: vec![StuckHandler {
            topic: topic.into(),
            partition: 1,
            since_ms: 1_699_999_980_000,
            ..Default::default()
        }],
        dead_letters: Some(DeadLetters { written: 4, failures: 2, ..Default::default() }),
        peers: vec![PeerFault {
            member: "other".into(),
            partitions: vec![Default::default()],
            problem: "gave_up".into(),
            ..Default::default()
        }],
        ..Default::default()
    };
    snapshot.health = Some(Health::of(&snapshot).into());
    snapshot
}

#[test]
fn every_family_has_a_series_a_type_and_help_and_stands_in_the_docs() {
    let text = Exposition::of(&render(&[full("g", "g_a", "t")]));
    let documented: Vec<Vec<&str>> = include_str!("../../src/metrics/series.md")
        .lines()
        .skip(2)
        .map(|line| line.split('|').map(|cell| cell.trim().trim_matches('`')).skip(1).collect())
        .collect();
    let names: Vec<&str> = documented.iter().map(|row| row[0]).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(text.types.keys().map(String::as_str).collect::<Vec<_>>(), sorted);
    for row in &documented {
        let (name, kind, labels, help) = (row[0], row[1], row[2], row[3]);
        assert_eq!((text.types[name].as_str(), text.help[name].as_str()), (kind, help), "{name}");
        let mut expected: Vec<&str> = labels.split(',').map(|it| it.trim().trim_matches('`')).collect();
        expected.retain(|label| !label.is_empty());
        expected.extend(["group", "consumer_id"]);
        expected.sort_unstable();
        for series in text.find(name, &[]) {
            assert_eq!(series.labels.keys().map(String::as_str).collect::<Vec<_>>(), expected, "{name}");
        }
    }
}

#[test]
fn numbers_are_those_of_the_snapshot() {
    let text = Exposition::of(&render(&[full("g", "g_a", "t")]));
    let t1 = [("group", "g"), ("consumer_id", "g_a"), ("topic", "t"), ("partition", "1")];
    for (name, value) in [
        ("troupe_partition_lag_records", 50.0),
        ("troupe_partition_fetch_lag_records", 30.0),
        ("troupe_partition_committed_offset", 90.0),
        ("troupe_partition_unfetched_seconds", 10.0),
        ("troupe_partition_commit_failing_seconds", 15.0),
        ("troupe_partition_commit_timestamp_seconds", 1_700_000_011.0),
        ("troupe_partition_owned_timestamp_seconds", 1_700_000_000.5),
        ("troupe_partition_records_total", 60.0),
        ("troupe_partition_halted", 1.0),
        ("troupe_partition_stuck_seconds", 40.0),
    ] {
        assert_eq!(text.value(name, &t1), value, "{name}");
    }
    for (name, labels, value) in [
        ("troupe_partition_commit_failing_seconds", ("partition", "0"), 0.0),
        ("troupe_member_info", ("client_id", "client-1_x"), 1.0),
        ("troupe_health", ("state", "failing"), 1.0),
        ("troupe_health", ("state", "healthy"), 0.0),
        ("troupe_session_state", ("state", "connected"), 1.0),
        ("troupe_session_lease_seconds", ("group", "g"), 3.5),
        ("troupe_rebalance_spent_seconds", ("group", "g"), 1.25),
        ("troupe_last_rebalance_seconds", ("group", "g"), 0.25),
        ("troupe_owned_partitions", ("topic", "t"), 2.0),
        ("troupe_commits_total", ("store", "kafka"), 5.0),
        ("troupe_stream_skipped_total", ("stream", "t-0"), 3.0),
        ("troupe_stream_dead_letters_total", ("stream", "t-0"), 4.0),
        ("troupe_stream_stopped", ("stream", "t-0"), 1.0),
        ("troupe_dead_letter_failures_total", ("group", "g"), 2.0),
        ("troupe_fetch_spent_seconds", ("address", "host:9092"), 1.5),
        ("troupe_stream_queued_chunks", ("stream", "t-0"), 2.0),
        ("troupe_actor_answer_seconds", ("actor", "zk-session"), 0.002),
        ("troupe_peer_fault_partitions", ("problem", "gave_up"), 1.0),
    ] {
        assert_eq!(text.value(name, &[labels]), value, "{name}");
    }
}

#[test]
fn what_is_not_known_has_no_series() {
    let partition = OwnedPartition {
        topic: "t".into(),
        fetched: -1,
        delivered: -1,
        acked: -1,
        high_watermark: Some(10),
        ..Default::default()
    };
    let snapshot = StatusSnapshot { partitions: vec![partition], ..Default::default() };
    let text = Exposition::of(&render(&[snapshot]));
    let absent = ["lag_records", "fetch_lag_records", "fetched_offset", "acked_offset", "committed_offset"];
    for name in absent {
        assert_eq!(text.find(&format!("troupe_partition_{name}"), &[]), [] as [&_; 0], "{name}");
    }
    assert_eq!(text.value("troupe_partition_end_offset", &[("topic", "t")]), 10.0);
    assert!(text.find("troupe_health", &[]).is_empty() && text.find("troupe_session_state", &[]).is_empty());
    assert_eq!(render(&[]), "");
}

/// KAFKA-1481: joined names that could not be taken apart; KAFKA-19753: dots that became underscores.
#[test]
fn b28_labels_come_back_exactly_whatever_is_in_them() {
    let odd = [
        "my.topic",
        "my_topic",
        "my-topic",
        "a\\b",
        "a\\\\b",
        "a\\\\\\b",
        "\\",
        "\\\\",
        "a\"b",
        "a\\\"b",
        "\"",
        "a\nb",
        "a\\nb",
        "a\\\nb",
        "\n\\",
        "{x=\"y\"}",
        "é€🦀",
        "",
        " ",
        "a,b",
        "\t\r",
        "<img src=x>",
    ];
    let snapshots: Vec<_> =
        odd.iter().map(|name| full(&format!("g{name}"), &format!("id{name}"), name)).collect();
    let text = Exposition::of(&render(&snapshots));
    for name in odd {
        let labels =
            [("group", &*format!("g{name}")), ("consumer_id", &format!("id{name}")), ("topic", name)];
        assert_eq!(text.find("troupe_partition_lag_records", &labels).len(), 2, "{name:?}");
    }
    assert_eq!(text.find("troupe_partition_lag_records", &[]).len(), 2 * odd.len());
}

#[test]
fn each_added_member_has_series_of_its_own() {
    let member = StatusSnapshot { added: vec![full("g", "g_a.1", "t")], ..full("g", "g_a", "t") };
    let text = Exposition::of(&render(&[member]));
    for id in ["g_a", "g_a.1"] {
        assert_eq!(text.value("troupe_records_total", &[("consumer_id", id)]), 120.0);
        assert_eq!(text.value("troupe_health", &[("consumer_id", id), ("state", "failing")]), 1.0);
    }
}

#[test]
fn a_recorder_of_the_application_s_own_gets_the_same_series() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let snapshot = full("g", "g_a", "my.topic");
    metrics::with_local_recorder(&recorder, || emit(&snapshot));
    let (own, ours) = (Exposition::of(&recorder.handle().render()), Exposition::of(&render(&[snapshot])));
    assert_eq!(own.types, ours.types);
    let sorted = |exposition: Exposition| {
        let mut lines: Vec<_> = exposition.samples.iter().map(|it| format!("{it:?}")).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(own), sorted(ours));
}

/// By Prometheus' own checker, which knows its rules for names as well.
#[test]
fn b28_promtool_finds_nothing_wrong() {
    troupe_cluster::debian_program("promtool", "prometheus").unwrap();
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut promtool = promtool.spawn().unwrap();
    let text = render(&[full("g", "g_a", "my.topic"), full("g", "g_b", "my_topic\\\"\n")]);
    std::io::Write::write_all(&mut promtool.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let said = promtool.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    assert!(said.status.success() && out.is_empty() && err.is_empty(), "{out}{err}\n{text}");
}
