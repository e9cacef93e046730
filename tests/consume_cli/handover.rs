//! One group of `troupe` and the old Scala consumer: each goes on where the other has stopped, and both at once.

use std::collections::BTreeMap;

use rustix::process::Signal;
use troupe_cluster::Cluster;

use crate::programs::{Scala, Troupe, eventually, produce};
use crate::znodes::Znodes;
use crate::{numbered, on_both, set, topic};

on_both! {
    each_goes_on_exactly_where_the_other_stopped
    partitions_are_handed_over_without_loss_or_duplicate
    we_join_a_scala_consumer_and_leave
    a_scala_consumer_joins_us_and_leaves
}

/// One partition, so that what comes next is exact.
fn each_goes_on_exactly_where_the_other_stopped(cluster: &Cluster) {
    let lines = numbered(0, 30);
    topic(cluster, "relay", 1, &lines);
    let znodes = Znodes::of(cluster);
    let troupe = |more: &[&str]| Troupe::consume(cluster, "relay", "relay", more).end().printed();
    let scala = |more: &[&str]| Scala::consume(cluster, "relay", "relay", more).end().printed();

    assert_eq!(troupe(&["--from-beginning", "--max-messages", "7"]), lines[..7]);
    znodes.assert_left("relay", "relay", 7);
    assert_eq!(scala(&["--max-messages", "9"]), lines[7..16]);
    assert_eq!(znodes.committed("relay", "relay"), 16);
    assert_eq!(troupe(&["--max-messages", "1"]), lines[16..17]);
    assert_eq!(scala(&["--max-messages", "3"]), lines[17..20]);
    assert_eq!(troupe(&["--max-messages", "10"]), lines[20..]);
    znodes.assert_left("relay", "relay", 30);
}

/// The Scala consumer begins, with more partitions than anyone has threads.
fn partitions_are_handed_over_without_loss_or_duplicate(cluster: &Cluster) {
    let lines = numbered(0, 60);
    topic(cluster, "shifts", 5, &lines);
    let mut all = Vec::new();
    let begin = ["--from-beginning", "--max-messages", "20"];
    all.extend(Scala::consume(cluster, "shifts", "shifts", &begin).end().printed());
    let more = ["--threads", "3", "--max-messages", "20"];
    all.extend(Troupe::consume(cluster, "shifts", "shifts", &more).end().printed());
    all.extend(Scala::consume(cluster, "shifts", "shifts", &["--max-messages", "20"]).end().printed());
    assert_eq!(all.len(), 60);
    assert_eq!(set(all), set(lines));
    Znodes::of(cluster).assert_left("shifts", "shifts", 60);
}

const PARTITIONS: i32 = 4;

/// Waits until range has dealt out the partitions to these threads, in the order of their names.
fn await_range(znodes: &Znodes, group: &str, mut threads: Vec<String>) {
    threads.sort_unstable();
    let each = PARTITIONS as usize / threads.len();
    let dealt = (0..PARTITIONS).map(|partition| (partition, threads[partition as usize / each].clone()));
    let dealt: BTreeMap<_, _> = dealt.collect();
    eventually("range's assignment", || match znodes.owners(group, group) {
        owners if owners == dealt => Ok(()),
        owners => Err(format!("{owners:?}, not {dealt:?}")),
    });
}

/// Waits for a group of `count`, and gives the thread that is not `known`.
fn new_thread(znodes: &Znodes, group: &str, count: usize, known: &str) -> String {
    let members = eventually("it joins", || {
        let members = znodes.members(group);
        if members.len() == count { Ok(members) } else { Err(format!("{members:?}")) }
    });
    let threads = members.into_iter().map(|member| member + "-0");
    threads.into_iter().find(|thread| *thread != known).unwrap()
}

/// Every record so far is committed, by whomever.
fn await_committed(znodes: &Znodes, group: &str, count: usize) {
    eventually("all is committed", || match znodes.committed(group, group) {
        committed if committed == count => Ok(()),
        committed => Err(format!("{committed} of {count}")),
    });
}

/// All of them were printed; `ours` and `theirs` had a share of the 40 in the middle each.
fn assert_shared(ours: &[String], theirs: &[String]) {
    let middle = set(numbered(40, 80));
    for lines in [ours, theirs] {
        assert!(lines.iter().any(|line| middle.contains(line)), "no share in the middle: {lines:?}");
    }
    assert_eq!(set([ours, theirs].concat()), set(numbered(0, 100)));
}

const OFTEN: &str = "auto.commit.interval.ms=200";

fn we_join_a_scala_consumer_and_leave(cluster: &Cluster) {
    let group = "joined";
    let znodes = Znodes::of(cluster);
    topic(cluster, group, PARTITIONS, &numbered(0, 40));
    let more = ["--from-beginning", "--consumer-property", OFTEN];
    let mut scala = Scala::consume(cluster, group, group, &more);
    let their_thread = new_thread(&znodes, group, 1, "");
    let id = their_thread.trim_end_matches("-0");
    let registration = znodes.data(&format!("/consumers/{group}/ids/{id}")).unwrap();
    assert!(registration.contains(r#""pattern":"white_list""#), "{registration}");
    await_range(&znodes, group, vec![their_thread.clone()]);
    await_committed(&znodes, group, 40);

    let troupe = Troupe::consume(cluster, group, group, &["--property", OFTEN]);
    let our_thread = new_thread(&znodes, group, 2, &their_thread);
    await_range(&znodes, group, vec![their_thread.clone(), our_thread]);
    produce(cluster, group, &numbered(40, 80));
    await_committed(&znodes, group, 80);

    troupe.signal(Signal::TERM);
    let ours = troupe.end().printed();
    await_range(&znodes, group, vec![their_thread]);
    produce(cluster, group, &numbered(80, 100));
    await_committed(&znodes, group, 100);
    scala.term();
    let theirs = scala.end().lines;
    assert_shared(&ours, &theirs);
    assert!(set(numbered(0, 40)).is_disjoint(&set(ours)), "handed over at what it had committed");
    znodes.assert_left(group, group, 100);
}

fn a_scala_consumer_joins_us_and_leaves(cluster: &Cluster) {
    let group = "joining";
    let znodes = Znodes::of(cluster);
    topic(cluster, group, PARTITIONS, &numbered(0, 40));
    let troupe = Troupe::consume(cluster, group, group, &["--from-beginning", "--property", OFTEN]);
    let our_thread = new_thread(&znodes, group, 1, "");
    await_range(&znodes, group, vec![our_thread.clone()]);
    await_committed(&znodes, group, 40);

    let mut scala = Scala::consume(cluster, group, group, &["--consumer-property", OFTEN]);
    let their_thread = new_thread(&znodes, group, 2, &our_thread);
    await_range(&znodes, group, vec![our_thread.clone(), their_thread]);
    produce(cluster, group, &numbered(40, 80));
    await_committed(&znodes, group, 80);

    scala.term();
    let theirs = scala.end().lines;
    await_range(&znodes, group, vec![our_thread]);
    produce(cluster, group, &numbered(80, 100));
    await_committed(&znodes, group, 100);
    troupe.signal(Signal::INT);
    let ours = troupe.end().printed();
    assert_shared(&ours, &theirs);
    assert_eq!(set(ours.clone()).len(), ours.len(), "nothing is printed twice by us");
    znodes.assert_left(group, group, 100);
}
