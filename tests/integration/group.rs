//! Members as processes: who owns what when members come, go and die.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use troupe_cluster::KafkaVersion;

use crate::support::clusters::shared;
use crate::support::group::Group;
use crate::support::load::{Load, numbered};
use crate::support::system::now_ms;
use crate::support::wait::until;

crate::on_each_version!(
    partitions_are_split_by_range_and_move_without_loss_or_duplicate,
    a_killed_member_is_replaced_after_its_session,
    a_member_started_again_continues_at_the_committed_offset,
    b01_a_member_that_stood_still_past_its_session_delivers_nothing_of_the_old,
    partitions_added_while_running_are_shared_from_their_beginning,
    a_member_killed_between_its_first_position_and_its_first_commit_passes_nothing_over,
);

fn partitions_are_split_by_range_and_move_without_loss_or_duplicate(version: KafkaVersion) {
    let group = Group::new(shared(version), "split", 5);
    let load = Load::start(group.cluster, "split");
    let one = group.join("m1", 2, &[]);
    group.wait_for_owners(&["m1-0", "m1-0", "m1-0", "m1-1", "m1-1"]);
    let two = group.join("m2", 2, &[]);
    group.wait_for_owners(&["m1-0", "m1-0", "m1-1", "m2-0", "m2-1"]);
    group.wait_for_more(100);
    let three = group.join("m3", 1, &[]);
    group.wait_for_owners(&["m1-0", "m1-1", "m2-0", "m2-1", "m3-0"]);
    group.wait_for_more(100);
    two.leave();
    group.wait_for_owners(&["m1-0", "m1-0", "m1-1", "m1-1", "m3-0"]);
    group.wait_for_more(100);
    load.end();
    group.wait_for_all();
    one.leave();
    three.leave();

    let (history, zookeeper) = (group.wait_for_all(), group.zookeeper());
    history.check(&zookeeper);
    assert_eq!(history.duplicates(), 0);
    let ends = group.cluster.log_end_offsets("split").unwrap();
    let committed: Vec<i64> = zookeeper.committed("split").into_values().collect();
    assert_eq!(committed, ends);
    assert!(zookeeper.children("ids").is_empty());
    assert!(zookeeper.owners("split").is_empty());
}

/// More members than partitions: one is idle until it is needed.
fn a_killed_member_is_replaced_after_its_session(version: KafkaVersion) {
    let session = Duration::from_millis(3000);
    let properties = ["zookeeper.session.timeout.ms=3000"];
    let group = Group::new(shared(version), "killed", 2);
    let load = Load::start(group.cluster, "killed");
    let mut one = group.join("m1", 1, &properties);
    group.wait_for_owners(&["m1-0", "m1-0"]);
    let two = group.join("m2", 1, &properties);
    group.wait_for_owners(&["m1-0", "m2-0"]);
    let three = group.join("m3", 1, &properties);
    until("registration of m3", || {
        let ids = group.zookeeper().children("ids");
        if ids.len() == 3 { Ok(()) } else { Err(format!("{ids:?}")) }
    });
    group.wait_for_more(100);

    let at = now_ms();
    one.kill();
    group.wait_for_owners(&["m2-0", "m3-0"]);
    let zookeeper = group.zookeeper();
    let (taken, zxid) = zookeeper.tenures.iter().rfind(|tenure| tenure.partition == 0).unwrap().from;
    // sessions expire in ticks of 500 ms, and a machine under load is not quick
    let limit = session + Duration::from_millis(500) + Duration::from_secs(5);
    assert!(taken - at < i64::try_from(limit.as_millis()).unwrap(), "taken over after {} ms", taken - at);

    load.end();
    group.wait_for_all();
    two.leave();
    three.leave();
    let (history, zookeeper) = (group.history(), group.zookeeper());
    history.check(&zookeeper);
    // only what m1 delivered after its last commit comes again
    let committed = zookeeper.committed_before(zxid, "killed", 0);
    let again = history.of(0).filter(|it| it.member == "m1" && it.offset >= committed).count();
    assert!(history.duplicates() <= again, "{} duplicates, {again} uncommitted", history.duplicates());
}

fn a_member_started_again_continues_at_the_committed_offset(version: KafkaVersion) {
    let group = Group::new(shared(version), "again", 3);
    group.cluster.produce("again", numbered(3000)).unwrap();
    let mut first = group.join("first", 1, &["zookeeper.session.timeout.ms=1500"]);
    let load = Load::start(group.cluster, "again");
    until("a commit of each partition", || {
        let committed = group.zookeeper().committed("again");
        let all = committed.len() == 3 && committed.values().all(|offset| *offset > 0);
        if all { Ok(()) } else { Err(format!("{committed:?}")) }
    });
    first.kill();
    let committed = group.zookeeper().committed("again");
    let second = group.join("second", 1, &[]);
    group.wait_for_owners(&["second-0"; 3]);
    load.end();
    group.wait_for_all();
    second.leave();

    let history = group.history();
    history.check(&group.zookeeper());
    for (partition, committed) in committed {
        let begin = history.of(partition).find(|delivery| delivery.member == "second");
        assert_eq!(begin.map(|delivery| delivery.offset), Some(committed), "partition {partition}");
    }
}

/// SIGSTOP, and SIGCONT when another has taken over. Its queues are full of records that are not its own any more.
fn b01_a_member_that_stood_still_past_its_session_delivers_nothing_of_the_old(version: KafkaVersion) {
    let group = Group::new(shared(version), "still", 4);
    let load = Load::start(group.cluster, "still");
    let one = group.join("m1", 1, &["zookeeper.session.timeout.ms=3000"]);
    let two = group.join("m2", 1, &[]);
    group.wait_for_owners(&["m1-0", "m1-0", "m2-0", "m2-0"]);
    group.wait_for_more(100);
    let before = group.registration("m1").session;
    one.signal("STOP");
    group.wait_for_owners(&["m2-0"; 4]);
    group.wait_for_more(100);
    one.signal("CONT");
    group.wait_for_owners(&["m1-0", "m1-0", "m2-0", "m2-0"]);
    let after = group.registration("m1").session;
    assert_ne!(after, before, "a new session");
    assert_eq!(group.zookeeper().owning_sessions("still", "m1"), BTreeSet::from([after]));
    group.wait_for_more(100);
    load.end();
    group.wait_for_all();
    one.leave();
    two.leave();
    let mut history = group.history();
    let in_hand = history.forgive_in_hand("m1");
    assert!(in_hand <= 1, "{in_hand} records were delivered after the stand-still");
    history.check(&group.zookeeper());
}

/// `largest` is resolved once: by now it would be another place, and what lies between would be nobody's (rule 8).
fn a_member_killed_between_its_first_position_and_its_first_commit_passes_nothing_over(
    version: KafkaVersion,
) {
    let group = Group::new(shared(version), "resolved", 2);
    group.cluster.produce("resolved", numbered(200)).unwrap();
    let properties =
        ["auto.offset.reset=largest", "auto.commit.interval.ms=3600000", "zookeeper.session.timeout.ms=3000"];
    let mut first = group.join("first", 1, &properties);
    until("positions", || {
        let committed = group.zookeeper().committed("resolved");
        if committed == [(0, 100), (1, 100)].into() { Ok(()) } else { Err(format!("{committed:?}")) }
    });
    first.kill();
    group.cluster.produce("resolved", numbered(100)).unwrap();
    let second = group.join("second", 1, &properties);
    until("delivery of what came after the first positions", || {
        let seen = group.history().deliveries.len();
        if seen >= 100 { Ok(()) } else { Err(format!("{seen}")) }
    });
    second.leave();
    let (history, zookeeper) = (group.history(), group.zookeeper());
    for partition in 0..2 {
        let offsets: Vec<i64> = history.of(partition).map(|delivery| delivery.offset).collect();
        assert_eq!(offsets, (100..150).collect::<Vec<_>>(), "partition {partition}");
    }
    history.check(&zookeeper);
    assert_eq!(zookeeper.committed("resolved"), [(0, 150), (1, 150)].into());
}

/// Though the group begins at the end of the topic: what is written before members notice new partitions counts.
fn partitions_added_while_running_are_shared_from_their_beginning(version: KafkaVersion) {
    let properties = ["auto.offset.reset=largest"];
    let group = Group::new(shared(version), "added", 2);
    let one = group.join("m1", 1, &properties);
    let two = group.join("m2", 1, &properties);
    group.wait_for_owners(&["m1-0", "m2-0"]);
    until("positions", || {
        let committed = group.zookeeper().committed("added");
        if committed.len() == 2 { Ok(()) } else { Err(format!("{committed:?}")) }
    });
    let load = Load::start(group.cluster, "added");
    group.wait_for_more(50);
    group.cluster.add_partitions("added", 5).unwrap();
    group.cluster.produce("added", numbered(100)).unwrap();
    let noticed = Instant::now();
    group.wait_for_owners(&["m1-0", "m1-0", "m1-0", "m2-0", "m2-0"]);
    assert!(noticed.elapsed() < Duration::from_secs(10), "noticed after {:?}", noticed.elapsed());
    group.wait_for_more(50);
    load.end();
    group.wait_for_all();
    one.leave();
    two.leave();
    let history = group.history();
    history.check(&group.zookeeper());
    assert_eq!(history.duplicates(), 0);
}
