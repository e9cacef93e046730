//! Partitions that are added to a topic of a running group: B09.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use troupe_cluster::{KafkaVersion, Proxy};

use crate::support::clusters::{CHROOT, shared};
use crate::support::group::Group;
use crate::support::load::placed;
use crate::support::wait::until;

crate::on_each_version!(
    b09_partitions_added_are_split_by_number_and_seen_once_from_their_beginning,
    b09_what_is_passed_over_under_largest_is_counted_in_the_log,
);

/// Ten records for each partition come with them, whichever end the group itself began at.
fn b09_partitions_added_are_split_by_number_and_seen_once_from_their_beginning(version: KafkaVersion) {
    for reset in ["smallest", "largest"] {
        let group = Group::new(shared(version), &format!("grown-{reset}"), 8);
        let partitions = Arc::new(AtomicUsize::new(8));
        let mut batch = placed(10, Arc::clone(&partitions));
        let reset = format!("auto.offset.reset={reset}");
        let members = ["m1", "m2"].map(|member| group.join(member, 1, &[&reset]));
        group.wait_for_owners(&[["m1-0"; 4], ["m2-0"; 4]].concat());
        until("positions", || {
            let committed = group.zookeeper().committed(&group.name);
            if committed.len() == 8 { Ok(()) } else { Err(format!("{committed:?}")) }
        });
        group.cluster.produce(&group.name, batch()).unwrap();
        group.wait_for_all();

        group.cluster.add_partitions(&group.name, 12).unwrap();
        let added = Instant::now();
        partitions.store(12, Ordering::SeqCst);
        group.cluster.produce(&group.name, batch()).unwrap();
        // 10 and 11 come after 9, not after 1
        group.wait_for_owners(&[["m1-0"; 6], ["m2-0"; 6]].concat());
        assert!(added.elapsed() < Duration::from_secs(30), "{:?}", added.elapsed());
        group.wait_for_all_committed();
        members.into_iter().for_each(|member| drop(member.leave()));
        let history = group.history();
        history.check(&group.zookeeper());
        let new = history.deliveries.iter().filter(|delivery| delivery.partition >= 8);
        let new: Vec<_> = new.map(|delivery| (delivery.partition, delivery.offset)).collect();
        let distinct: BTreeSet<_> = new.iter().copied().collect();
        assert_eq!((new.len(), distinct.len()), (40, 40), "{new:?}");
        assert_eq!(history.duplicates(), 0);
    }
}

/// By `troupe.new.partitions.reset=largest` what is written before the member notices is passed over, as the old
/// consumer does: it is kept from noticing here.
fn b09_what_is_passed_over_under_largest_is_counted_in_the_log(version: KafkaVersion) {
    let group = Group::new(shared(version), "passed-over", 8);
    let partitions = Arc::new(AtomicUsize::new(8));
    let mut batch = placed(10, Arc::clone(&partitions));
    group.cluster.produce(&group.name, batch()).unwrap();
    let proxy = Proxy::start(group.cluster.zookeeper().connect()).unwrap();
    let connect = proxy.address() + CHROOT;
    let largest = [
        "auto.offset.reset=largest",
        "troupe.new.partitions.reset=largest",
        "zookeeper.session.timeout.ms=20000",
    ];
    let member = group.join_through(&connect, "m", 1, &largest);
    group.wait_for_owners(&["m-0"; 8]);
    let passed_over = |partition: i32, why: &str| {
        let partition = format!("partition=passed-over-{partition} ");
        member.wait_for_log(&["position made", &partition, "new=10", "skipped=10", why]);
    };
    (0..8).for_each(|partition| passed_over(partition, "no offset: auto.offset.reset=largest"));

    proxy.freeze();
    group.cluster.add_partitions(&group.name, 12).unwrap();
    partitions.store(12, Ordering::SeqCst);
    let batch_added = batch();
    let to_old = batch_added.len() - 40;
    group.cluster.produce(&group.name, batch_added).unwrap();
    proxy.heal();
    group.wait_for_owners(&["m-0"; 12]);
    (8..12).for_each(|partition| passed_over(partition, "troupe.new.partitions.reset=largest"));
    group.cluster.produce(&group.name, batch()).unwrap();
    group.wait_for_all_committed();
    member.leave();
    let history = group.history();
    group.zookeeper().check_commits_only_grow();
    let begins = |partition: i32| history.of(partition).next().map(|delivery| delivery.offset);
    assert!((0..12).all(|partition| begins(partition) == Some(10)), "nothing of what was there before");
    assert_eq!(
        (history.deliveries.len(), history.duplicates()),
        (to_old + 120, 0),
        "all that came after, once"
    );
}
