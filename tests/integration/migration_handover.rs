//! A group is handed over to Kafka's own consumer, whose groups the brokers coordinate, and comes back.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use troupe_cluster::{ClusterError, JavaMember, KafkaVersion};

use crate::support::by_hand::ByHand;
use crate::support::clusters::{builder, shared};
use crate::support::group::Group;
use crate::support::load::{Load, numbered, placed};
use crate::support::rounds;
use crate::support::stored::stored;
use crate::support::system::run;
use crate::support::wait::until;
use crate::support::walk::{Offsets, Storage, Walk};

/// The member id is not known to the group.
const UNKNOWN_MEMBER: i16 = 25;

#[test]
fn kafkas_own_consumer_continues_at_the_exact_offset_and_so_does_the_group_when_it_comes_back() {
    let versions = [KafkaVersion::V3_9_1, KafkaVersion::V1_1_1, KafkaVersion::V4_1_1];
    (0..rounds().unwrap_or(1)).for_each(|number| handover(versions[number % versions.len()]));
}

/// On brokers of a release, to its own consumer and, where there is one, by its new protocol.
fn handover(version: KafkaVersion) {
    let cluster = builder(version).start().unwrap();
    let mut walk = Walk::new(&cluster, "handed", 4);
    let load = Load::of(&cluster, "handed", placed(10, Arc::new(AtomicUsize::new(4))));
    walk.begin(Storage::Both, &["a", "b"]);
    walk.go(Storage::Kafka);

    // its program is up before the last of ours leaves
    let mut java = java_member(&walk.group, version);
    walk.leave();
    walk.stage("to Java");
    let handled = walk.group.history().deliveries.len();
    let begun = Instant::now();
    java.join().unwrap();
    until("a record that Java handles", || match walk.group.history().deliveries.len() {
        now if now > handled => Ok(()),
        _ => Err("none".to_owned()),
    });
    println!("{version}: Java handles its first record {:.1?} after ours have left", begun.elapsed());
    walk.wait_for_growth(Walk::in_kafka);
    // so that nobody commits beside it
    let refused = cluster.client().commit_offset("handed", "handed", 0, 0);
    assert!(matches!(refused, Err(ClusterError::Kafka { code: UNKNOWN_MEMBER, .. })), "{refused:?}");
    java.leave().unwrap();

    forget_zookeeper(&walk.group);
    walk.begin(Storage::Both, &["a", "b"]);
    // brokers forget that the group was Java's, and its offsets until they are committed again; both stores have them
    cluster.client().delete_group("handed").unwrap();
    walk.wait_for_growth(Walk::in_kafka);
    walk.go(Storage::ZooKeeper);
    load.end();
    walk.group.wait_for_all_committed();
    walk.leave();
    let history = walk.group.history();
    assert_eq!(history.duplicates(), 0);
    // nobody handles anything while another has the group
    let mut holders: Vec<bool> =
        history.deliveries.iter().map(|delivery| delivery.member == "java").collect();
    holders.dedup();
    assert_eq!(holders, [false, true, false]);
    assert_eq!(walk.end(), 4, "as told");
}

/// Deletes what ZooKeeper has of the group's offsets.
fn forget_zookeeper(group: &Group<'_>) {
    let partitions = group.zookeeper().committed(&group.name);
    run(async {
        let by_hand = ByHand::connect(group.cluster, &group.name).await;
        for partition in partitions.keys() {
            by_hand.delete(&format!("offsets/{}/{partition}", group.name)).await;
        }
        by_hand.close().await;
    });
}

/// What goes wrong when both are there: each reads all, since neither sees the other; and ours says why it cannot commit.
#[test]
fn beside_kafkas_own_consumer_no_commit_is_taken_until_it_has_left_and_the_member_says_so() {
    let group = Group::new(shared(KafkaVersion::V3_9_1), "beside", 1);
    group.cluster.produce("beside", numbered(10)).unwrap();
    group.cluster.client().commit_offset("beside", "beside", 0, 0).unwrap();
    let mut java = java_member(&group, KafkaVersion::V3_9_1);
    java.join().unwrap();
    let wait_for = |offset| {
        until("its commit", || match stored(group.cluster, "beside") {
            all if all == Offsets::from([(0, offset)]) => Ok(()),
            other => Err(format!("{other:?}")),
        });
    };
    wait_for(10);

    let ours = group.join("ours", 1, &Storage::Both.properties());
    ours.wait_for_log(&["of Kafka's own group protocol", "are active under this group.id"]);
    group.cluster.produce("beside", numbered(10)).unwrap();
    until("what both handle", || match group.history().duplicates() {
        10 => Ok(()),
        other => Err(other.to_string()),
    });
    java.leave().unwrap();
    group.cluster.produce("beside", numbered(10)).unwrap();
    wait_for(30);
    ours.leave();
    assert_eq!(group.history().deliveries.len(), 30 + 10);
}

/// Kafka's own consumer of a release, with quick commits and no offset of its own making.
fn java_member(group: &Group<'_>, version: KafkaVersion) -> JavaMember {
    let id = format!("group.id={}", group.name);
    let mut properties =
        vec![id.as_str(), "auto.offset.reset=none", "enable.auto.commit=true", "auto.commit.interval.ms=100"];
    if version >= KafkaVersion::V4_1_1 {
        properties.push("group.protocol=consumer");
    }
    let member = group.cluster.group_member(version, &group.name, (&group.output(), "java"), &properties);
    member.expect("a consumer starts")
}
