//! One group of ours and the old Scala consumer of 0.8.2.2, on brokers of its own generation.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use troupe_cluster::KafkaVersion;

use crate::mixed::{Kind, check_turns, of_member, wait_for_commits};
use crate::support::clusters::shared;
use crate::support::group::Group;
use crate::support::load::{Load, placed};
use crate::support::scala::Scala;

#[test]
fn a_group_of_ours_and_of_a_scala_member_on_0_8_2_2_handles_every_record() {
    let name = "mixed-old";
    let group = Group::new(shared(KafkaVersion::V0_8_2_2), name, 4);
    let load = Load::of(group.cluster, name, placed(10, Arc::new(AtomicUsize::new(4))));

    // it joins us, and we join it
    let one = group.join("b", 1, &["zookeeper.session.timeout.ms=20000"]);
    group.wait_for_owners(&["b-0"; 4]);
    wait_for_commits(&group);
    let scala = Scala::join(group.cluster, KafkaVersion::V0_8_2_2, name, "a", "");
    group.wait_for_owners(&["a-0", "a-0", "b-0", "b-0"]);
    wait_for_commits(&group);
    let two = group.join("c", 1, &["zookeeper.session.timeout.ms=20000"]);
    group.wait_for_owners(&["a-0", "a-0", "b-0", "c-0"]);
    wait_for_commits(&group);

    // one of ours leaves, then the Scala member, then all comes back to it
    two.leave();
    group.wait_for_owners(&["a-0", "a-0", "b-0", "b-0"]);
    wait_for_commits(&group);
    let by_first = scala.leave();
    group.wait_for_owners(&["b-0"; 4]);
    wait_for_commits(&group);
    let scala = Scala::join(group.cluster, KafkaVersion::V0_8_2_2, name, "d", "");
    group.wait_for_owners(&["b-0", "b-0", "d-0", "d-0"]);
    wait_for_commits(&group);
    one.leave();
    group.wait_for_owners(&["d-0"; 4]);
    wait_for_commits(&group);
    load.end();
    group.wait_for_all_committed();
    let by_second = scala.leave();

    check(&group, by_first, by_second);
}

/// What the Scala members `a` and `d` say that they got.
fn check(group: &Group<'_>, by_first: Vec<(i32, i64)>, by_second: Vec<(i32, i64)>) {
    let name = &group.name;
    let (history, zookeeper) = (group.history(), group.zookeeper());
    let members = [
        ("a", Kind::Scala, by_first),
        ("b", Kind::Ours, of_member(&history, "b")),
        ("c", Kind::Ours, of_member(&history, "c")),
        ("d", Kind::Scala, by_second),
    ];
    let mut handled = BTreeSet::new();
    for (member, kind, delivered) in &members {
        check_turns(&zookeeper, name, member, *kind, delivered);
        handled.extend(delivered.iter().copied());
    }
    for (partition, end) in (0..).zip(group.cluster.log_end_offsets(name).unwrap()) {
        let missing = (0..end).find(|offset| !handled.contains(&(partition, *offset)));
        assert_eq!(missing, None, "of partition {partition}, which ends at {end}");
    }
    zookeeper.check_commits_only_grow();
    assert!(zookeeper.children("ids").is_empty() && zookeeper.owners(name).is_empty());
}
