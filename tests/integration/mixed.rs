//! One group of our members and the old Scala consumer of two generations, which join, leave and die while records
//! keep coming.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use kafka_troupe::{ConsumerSystem, Record};
use troupe_cluster::KafkaVersion;

use crate::support::clusters::shared;
use crate::support::group::Group;
use crate::support::history::History;
use crate::support::load::{Load, placed};
use crate::support::rounds;
use crate::support::scala::Scala;
use crate::support::system::{Log, Recorder, config, run, wait_for_owners};
use crate::support::wait::{until, until_async};
use crate::support::zk_log::{GroupHistory, Tenure};

#[test]
fn a_group_of_ours_and_of_scala_members_handles_every_record() {
    (0..rounds().unwrap_or(3)).for_each(round);
}

/// On old brokers and new ones in turn. Names are such that ours and theirs mix in range's order.
fn round(number: usize) {
    let name = format!("mixed-{number}");
    let brokers = [KafkaVersion::V1_1_1, KafkaVersion::V3_9_1][number % 2];
    let group = Group::new(shared(brokers), &name, 4);
    let partitions = Arc::new(AtomicUsize::new(4));
    let load = Load::of(group.cluster, &name, placed(10, Arc::clone(&partitions)));
    let scala = |version, member| Scala::join(group.cluster, version, &name, member, "");

    // they join us, and we join them
    let one = group.join("b", 1, &["zookeeper.session.timeout.ms=20000"]);
    group.wait_for_owners(&["b-0"; 4]);
    let newer = scala(KafkaVersion::V1_1_1, "c");
    group.wait_for_owners(&["b-0", "b-0", "c-0", "c-0"]);
    wait_for_commits(&group);
    let mut two = group.join("d", 2, &["zookeeper.session.timeout.ms=3000"]);
    group.wait_for_owners(&["b-0", "c-0", "d-0", "d-1"]);
    wait_for_commits(&group);

    // partitions are added: to ours, for a Scala member would begin at their end
    group.cluster.add_partitions(&name, 6).unwrap();
    partitions.store(6, Ordering::SeqCst);
    group.wait_for_owners(&["b-0", "b-0", "c-0", "c-0", "d-0", "d-1"]);
    wait_for_commits(&group);

    // one of ours dies
    two.kill();
    group.wait_for_owners(&["b-0", "b-0", "b-0", "c-0", "c-0", "c-0"]);
    wait_for_commits(&group);

    // an older one comes, the newer one goes
    let older = scala(KafkaVersion::V0_8_2_2, "a");
    group.wait_for_owners(&["a-0", "a-0", "b-0", "b-0", "c-0", "c-0"]);
    wait_for_commits(&group);
    let by_newer = newer.leave();
    group.wait_for_owners(&["a-0", "a-0", "a-0", "b-0", "b-0", "b-0"]);
    wait_for_commits(&group);

    // we leave all to them
    one.leave();
    group.wait_for_owners(&["a-0"; 6]);
    wait_for_commits(&group);
    load.end();
    group.wait_for_all_committed();
    let by_older = older.leave();

    let (history, zookeeper) = (group.history(), group.zookeeper());
    let members = [
        ("a", Kind::Scala, by_older),
        ("b", Kind::Ours, of_member(&history, "b")),
        ("c", Kind::Scala, by_newer),
        ("d", Kind::Killed, of_member(&history, "d")),
    ];
    for (member, kind, delivered) in &members {
        check_turns(&zookeeper, &name, member, *kind, delivered);
    }
    let all: Vec<(i32, i64)> =
        members.iter().flat_map(|(_, _, delivered)| delivered.iter().copied()).collect();
    let handled: BTreeSet<(i32, i64)> = all.iter().copied().collect();
    let ends = group.cluster.log_end_offsets(&name).unwrap();
    let written =
        (0..).zip(&ends).flat_map(|(partition, end)| (0..*end).map(move |offset| (partition, offset)));
    let missing: Vec<_> = written.filter(|place| !handled.contains(place)).collect();
    assert!(missing.is_empty(), "nobody has handled {missing:?} of {ends:?}");
    println!("round {number}: {} records, {} handled again", handled.len(), all.len() - handled.len());
    zookeeper.check_commits_only_grow();
    assert!(zookeeper.children("ids").is_empty() && zookeeper.owners(&name).is_empty());
}

/// 8 to 12 partitions, split by number and not by text; nothing of the new ones is missed or seen twice.
#[test]
fn b09_partitions_added_to_a_mixed_group_are_split_as_both_agree() {
    let group = Group::new(shared(KafkaVersion::V1_1_1), "grows", 8);
    let partitions = Arc::new(AtomicUsize::new(8));
    let mut batch = placed(10, Arc::clone(&partitions));
    group.cluster.produce("grows", batch()).unwrap();
    let reset = "auto.offset.reset=smallest";
    let scala = Scala::join(group.cluster, KafkaVersion::V1_1_1, "grows", "m2", reset);
    group.wait_for_owners(&["m2-0"; 8]);
    group.wait_for_all_committed();
    let ours = group.join("m1", 1, &[]);
    group.wait_for_owners(&[["m1-0"; 4], ["m2-0"; 4]].concat());
    group.wait_for_all_committed();

    group.cluster.add_partitions("grows", 12).unwrap();
    partitions.store(12, Ordering::SeqCst);
    let added = batch();
    let count = added.len();
    group.cluster.produce("grows", added).unwrap();
    group.wait_for_owners(&[["m1-0"; 6], ["m2-0"; 6]].concat());
    group.wait_for_all_committed();
    let by_scala = scala.leave();
    ours.leave();
    let (ours, zookeeper) = (of_member(&group.history(), "m1"), group.zookeeper());
    check_turns(&zookeeper, "grows", "m1", Kind::Ours, &ours);
    check_turns(&zookeeper, "grows", "m2", Kind::Scala, &by_scala);
    let new = |place: &(i32, i64)| place.0 >= 8 || place.1 >= 10;
    let seen: Vec<(i32, i64)> = ours.into_iter().chain(by_scala).filter(new).collect();
    let distinct: BTreeSet<_> = seen.iter().copied().collect();
    assert_eq!((seen.len(), distinct.len()), (count, count), "{seen:?}");
}

/// With its own defaults it gives up for good after four attempts, 2 s apart; ours lets go before, and the record that
/// its handler is in goes to the next owner.
#[test]
fn b07_a_scala_member_gets_its_share_though_a_handler_blocks() {
    let (cluster, name) = (shared(KafkaVersion::V1_1_1), "waited");
    cluster.create_topic(name, 2, 1).unwrap();
    let mut batch = placed(10, Arc::new(AtomicUsize::new(2)));
    cluster.produce(name, batch()).unwrap();
    run(async {
        let log = Log::default();
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        let block = move |record: &Record| {
            if (record.partition(), record.offset()) == (1, 4) {
                // an error: the test is over
                let _ = released.lock().unwrap().recv();
            }
            Ok(())
        };
        // a second less than by default, for a machine under load
        let properties = [("rebalance.backoff.ms", "2000"), ("troupe.drain.timeout.ms", "3000")];
        let config = config(cluster, name, "m1", &properties);
        let system = ConsumerSystem::builder(config).handle(name, 1, Recorder::factory("m1", &log, block));
        let system = system.start().await.unwrap();
        until_async("the record that blocks", async || {
            let last = log.history(name).of(1).map(|delivery| delivery.offset).last();
            if last == Some(4) { Ok(()) } else { Err(format!("{last:?}")) }
        })
        .await;
        let defaults = "rebalance.max.retries=4\nrebalance.backoff.ms=2000";
        let scala = Scala::join(cluster, KafkaVersion::V1_1_1, name, "m2", defaults);
        wait_for_owners(cluster, name, name, &["m1-0", "m2-0"]).await;
        release.send(()).unwrap();
        until_async("commits of all", async || {
            let committed = GroupHistory::of(cluster, name).committed(name);
            if committed.values().all(|offset| *offset == 10) {
                Ok(())
            } else {
                Err(format!("{committed:?}"))
            }
        })
        .await;
        assert_eq!(scala.leave(), (4..10).map(|offset| (1, offset)).collect::<Vec<_>>());
        system.shutdown().await;
        let history = log.history(name);
        history.check(&GroupHistory::of(cluster, name));
        assert_eq!(history.duplicates(), 0);
    });
}

/// Every partition flows, with whomever it is: each offset grows.
#[track_caller]
pub fn wait_for_commits(group: &Group<'_>) {
    let before = group.zookeeper().committed(&group.name);
    until("a commit of each partition", || {
        let now = group.zookeeper().committed(&group.name);
        let partitions = group.zookeeper().owners(&group.name).len();
        let grew =
            now.iter().all(|(partition, offset)| *offset > before.get(partition).copied().unwrap_or(0));
        if grew && now.len() == partitions { Ok(()) } else { Err(format!("{now:?} after {before:?}")) }
    });
}

/// What a member has delivered, in order: partition and offset.
pub type Places = [(i32, i64)];

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Begins where the group has committed, and commits all that it has delivered before it lets go.
    Ours,
    /// As ours, but had no time to commit its last.
    Killed,
    /// Reads its position before it owns the partition, and at its end prints on after its last commit: some may
    /// come again.
    Scala,
}

pub fn of_member(history: &History, member: &str) -> Vec<(i32, i64)> {
    let its = history.deliveries.iter().filter(|delivery| delivery.member == member);
    its.map(|delivery| (delivery.partition, delivery.offset)).collect()
}

/// The member has delivered all of its turns and nothing else: each partition from where its turn began to where the
/// next member's begins.
#[track_caller]
pub fn check_turns(zookeeper: &GroupHistory, topic: &str, member: &str, kind: Kind, delivered: &Places) {
    for partition in 0..12 {
        let tenures: Vec<&Tenure> =
            zookeeper.tenures.iter().filter(|tenure| tenure.partition == partition).collect();
        let committed = |at: i64| zookeeper.committed_before(at, topic, partition);
        let offsets = delivered.iter().filter(|(of, _)| *of == partition).map(|(_, offset)| *offset);
        let mut offsets = offsets.peekable();
        let its = |tenure: &Tenure| {
            zookeeper.short(&tenure.thread).split_once('-').is_some_and(|(owner, _)| owner == member)
        };
        let last = tenures.iter().rposition(|tenure| its(tenure));
        for (index, tenure) in tenures.iter().enumerate().filter(|(_, tenure)| its(tenure)) {
            let end = committed(tenures.get(index + 1).map_or(i64::MAX, |next| next.from.1));
            let mut next = committed(tenure.from.1);
            if kind == Kind::Scala {
                next = offsets.peek().map_or(next, |first| next.min(*first));
            }
            let goes_on = kind != Kind::Ours && last == Some(index);
            while offsets.next_if(|it| *it == next && (next < end || goes_on)).is_some() {
                next += 1;
            }
            assert!(next >= end, "{member} left {partition} at {next}, not {end}: {tenure:?}");
        }
        let more: Vec<i64> = offsets.collect();
        assert!(more.is_empty(), "{member} delivered {more:?} of {partition} out of turn: {tenures:?}");
    }
}
