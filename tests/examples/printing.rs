//! Examples that show what they do by printing it.

use std::collections::BTreeSet;
use std::process::Command;

use tempfile::TempDir;

use crate::process::{Example, cluster, program};

/// All of it, by ZooKeeper.
fn committed(group: &str, topic: &str) -> i64 {
    cluster().zookeeper_offsets(group, topic).expect("ZooKeeper answers").values().sum()
}

#[test]
fn without_a_cluster_an_example_says_in_words_how_to_start_one() {
    let nowhere = TempDir::new().expect("a folder");
    let ended = Command::new(program("minimal"))
        .env("TROUPE_CLUSTER_CACHE", nowhere.path())
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(said, "Error: no cluster is running: start one with `cargo cluster up`\n");
    assert!(!ended.status.success());
}

#[test]
fn minimal_prints_each_record_and_commits_when_it_ends() {
    let mut example = Example::start("minimal", &[]);
    example.wait_until("all records", |lines| {
        let orders: BTreeSet<_> = lines.iter().filter_map(|line| line.split_once(": order ")).collect();
        if orders.len() == 20 { Ok(()) } else { Err(lines.join("\n")) }
    });
    assert_eq!(committed("minimal", "orders"), 0, "by auto.commit.interval.ms, in a minute");
    example.terminate();
    assert_eq!(committed("minimal", "orders"), 20);
}

#[test]
fn pull_sums_up() {
    let lines = Example::start("pull", &[]).succeeds();
    assert!(lines.contains(&"the sum is 5050".to_owned()), "{lines:?}");
}

#[test]
fn typed_is_given_messages_and_passes_over_what_is_none() {
    let mut example = Example::start("typed", &[]);
    example.wait_for_line("the warmest of all", |line| line.ends_with("99.9 °C"));
    example.terminate();
    assert_eq!(committed("typed", "readings"), 1_001);
}

#[test]
fn migration_moves_the_offsets_without_losing_or_repeating_a_record() {
    let lines = Example::start("migration", &[]).succeeds();
    let stores: Vec<_> = lines.iter().filter(|line| line.starts_with("  in ")).collect();
    assert_eq!(stores.len(), 3, "{lines:?}");
    assert_eq!(stores[0], "  in ZooKeeper 1200, in Kafka 0");
    assert_eq!(stores[1], "  in ZooKeeper 1400, in Kafka 1400");
    // ZooKeeper's stand still when the last member has left step 2, with what that had of the hundred of then
    let third =
        stores[2].strip_prefix("  in ZooKeeper ").and_then(|rest| rest.strip_suffix(", in Kafka 1600"));
    let in_zookeeper: u64 = third.and_then(|number| number.parse().ok()).expect(stores[2]);
    assert!((1_400..=1_500).contains(&in_zookeeper), "{stores:?}");
    assert_eq!(lines.last().map(String::as_str), Some("1600 records handled"));
}

#[test]
fn dead_letters_are_kept_mended_and_welcomed() {
    let mut example = Example::start("dead_letters", &[]);
    example.wait_until("twenty welcomes", |lines| {
        let welcomed: BTreeSet<_> = lines.iter().filter_map(|line| line.strip_prefix("welcome, ")).collect();
        if welcomed.len() == 20 { Ok(()) } else { Err(lines.join("\n")) }
    });
    let given_up = example.lines().into_iter().filter(|line| line.ends_with("is no address, 3 times"));
    assert_eq!(given_up.collect::<BTreeSet<_>>().len(), 5, "{:?}", example.lines());
    example.terminate();
    let ends = |topic| {
        let ends = cluster().client().and_then(|client| client.log_end_offsets(topic));
        ends.expect("the broker answers").iter().sum::<i64>()
    };
    assert_eq!((ends("signups"), ends("signups.dead")), (25, 5));
    assert_eq!((committed("signups", "signups"), committed("mending", "signups.dead")), (25, 5));
}
