//! A group's offsets move from ZooKeeper to Kafka and back while it runs, with old Scala members in it.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use troupe_cluster::KafkaVersion;

use crate::support::by_hand::ByHand;
use crate::support::clusters::{builder, shared};
use crate::support::group::Group;
use crate::support::load::{Load, numbered, placed};
use crate::support::rounds;
use crate::support::stored::stored;
use crate::support::system::run;
use crate::support::wait::until;
use crate::support::walk::{Offsets, Storage, Walk, scala_member};

#[test]
fn a_running_group_with_scala_members_moves_its_offsets_to_kafka_and_back() {
    for number in 0..rounds().unwrap_or(1) {
        walk([KafkaVersion::V1_1_1, KafkaVersion::V3_9_1][number % 2]);
    }
}

fn walk(version: KafkaVersion) {
    let cluster = builder(version).start().unwrap();
    let mut walk = Walk::new(&cluster, "walk", 8);
    let load = Load::of(&cluster, "walk", placed(10, Arc::new(AtomicUsize::new(8))));
    walk.begin(Storage::ZooKeeper, &["a", "scala", "scala8", "z"]);
    assert_eq!(walk.in_kafka(), Offsets::new(), "nobody has stored in Kafka");
    walk.go(Storage::Both);
    walk.go(Storage::Kafka);
    walk.go(Storage::Both);
    walk.go(Storage::ZooKeeper);
    load.end();
    walk.group.wait_for_all_committed();
    walk.leave();
    assert_eq!(walk.end(), 0);
}

/// The way back: a partition to which nothing comes is behind in ZooKeeper. A Scala member leaves it there, since what it
/// has read, the larger, is to it what ZooKeeper has; ours raises it.
#[test]
fn ours_raises_what_is_behind_in_zookeeper_under_dual_commit_where_a_scala_member_does_not() {
    let group = Group::new(shared(KafkaVersion::V1_1_1), "behind", 1);
    group.cluster.produce("behind", numbered(10)).unwrap();
    group.cluster.client().commit_offset("behind", "behind", 0, 10).unwrap();
    run(async {
        let by_hand = ByHand::connect(group.cluster, "behind").await;
        by_hand.make("offsets/behind/0", "5").await;
        by_hand.close().await;
    });

    let mut scala = scala_member(&group, "scala", &Storage::Both.properties());
    scala.join().unwrap();
    group.wait_for_owners(&["scala-0"]);
    // it commits once more
    scala.leave().unwrap();
    assert_eq!(group.zookeeper().committed("behind"), Offsets::from([(0, 5)]));

    let ours = group.join("ours", 1, &Storage::Both.properties());
    group.wait_for_all_committed();
    ours.leave();
    assert_eq!(stored(group.cluster, "behind"), Offsets::from([(0, 10)]));
    assert_eq!(group.history().deliveries.len(), 0, "nothing came");
}

/// Two stores are no safety net: of a group that was reset in Kafka, ZooKeeper knows nothing.
#[test]
fn what_is_stale_in_zookeeper_wins_over_a_reset_in_kafka_unless_it_is_deleted() {
    let group = Group::new(shared(KafkaVersion::V1_1_1), "stale", 1);
    group.cluster.produce("stale", numbered(10)).unwrap();
    let all_committed = || {
        group.wait_for_all_committed();
        until("a commit of all to Kafka", || match stored(group.cluster, "stale") {
            all if all == Offsets::from([(0, 10)]) => Ok(()),
            other => Err(format!("{other:?}")),
        });
    };
    let ours = group.join("ours", 1, &Storage::Both.properties());
    all_committed();
    ours.leave();
    assert_eq!(group.history().deliveries.len(), 10);

    // as `kafka-consumer-groups --reset-offsets` does
    group.cluster.client().commit_offset("stale", "stale", 0, 3).unwrap();
    let ours = group.join("ours", 1, &Storage::Both.properties());
    all_committed();
    ours.leave();
    assert_eq!(group.history().deliveries.len(), 10, "it went on where ZooKeeper was");

    group.cluster.client().commit_offset("stale", "stale", 0, 3).unwrap();
    run(async {
        let by_hand = ByHand::connect(group.cluster, "stale").await;
        by_hand.delete("offsets/stale/0").await;
        by_hand.close().await;
    });
    let ours = group.join("ours", 1, &Storage::Both.properties());
    all_committed();
    ours.leave();
    let again: Vec<i64> = group.history().of(0).skip(10).map(|delivery| delivery.offset).collect();
    assert_eq!(again, (3..10).collect::<Vec<_>>());
}
