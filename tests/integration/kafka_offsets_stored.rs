//! What a group with offsets in Kafka stores, as others see it: an independent client, the topic `__consumer_offsets`
//! and ZooKeeper.

use std::collections::BTreeMap;

use troupe_cluster::{Cluster, KafkaVersion};

use crate::support::by_hand::ByHand;
use crate::support::clusters::{CHROOT, builder};
use crate::support::load::numbered;
use crate::support::stored::{OFFSETS, ends, history, start, stored, wait_for_all_stored};
use crate::support::system::{Log, run, wait_for_owners};
use crate::support::wait::until_async;
use crate::support::zk_log::{GroupHistory, was_created};

const PARTITIONS: i32 = 4;

macro_rules! on_versions {
    ($($test:ident $version:ident),+ $(,)?) => {
        $(#[test] fn $test() { two_members_store_all_that_they_own_again_and_again(KafkaVersion::$version); })+
    };
}

on_versions!(
    b22_two_members_store_in_kafka_0_8_2_2_all_that_they_own_again_and_again V0_8_2_2,
    b22_two_members_store_in_kafka_1_1_1_all_that_they_own_again_and_again V1_1_1,
    b22_two_members_store_in_kafka_3_9_1_all_that_they_own_again_and_again V3_9_1,
    b22_two_members_store_in_kafka_4_1_1_all_that_they_own_again_and_again V4_1_1,
    b22_two_members_store_in_kafka_4_4_0_all_that_they_own_again_and_again V4_4_0,
);

crate::on_each_version!(an_offset_of_a_deleted_topic_is_none_of_the_next);

fn two_members_store_all_that_they_own_again_and_again(version: KafkaVersion) {
    let cluster = builder(version).start().unwrap();
    for (group, dual) in [("kafka-only", false), ("both", true)] {
        cluster.create_topic(group, PARTITIONS, 1).unwrap();
        cluster.produce(group, numbered(400)).unwrap();
        run(async {
            let log = Log::default();
            let more = [("dual.commit.enabled", if dual { "true" } else { "false" })];
            let one = start(&cluster, group, "m1", &log, &more).await;
            let two = start(&cluster, group, "m2", &log, &more).await;
            wait_for_owners(&cluster, group, group, &["m1-0", "m1-1", "m2-0", "m2-1"]).await;
            log.wait_for_all(&cluster, group).await;
            wait_for_all_stored(&cluster, group).await;
            let commits = one.metrics().await.unwrap().commits.expect("a committer");
            assert_eq!(
                (&*commits.coordinator, commits.failures),
                (&*cluster.broker(0).address(), 0),
                "{commits:?}"
            );
            // a few of both members' commits, of which none has news
            let before = written_to_offsets(&cluster);
            until_async("more records of unchanged offsets", async || {
                let now = written_to_offsets(&cluster);
                if now >= before + 5 * i64::from(PARTITIONS) {
                    Ok(())
                } else {
                    Err(format!("{before}, {now}"))
                }
            })
            .await;
            tokio::join!(one.shutdown(), two.shutdown());
            check_what_stands_in_the_topic(&cluster, group);
            check_zookeeper(&cluster, group, dual);

            cluster.produce(group, numbered(400)).unwrap();
            let one = start(&cluster, group, "m1", &log, &more).await;
            let two = start(&cluster, group, "m2", &log, &more).await;
            log.wait_for_all(&cluster, group).await;
            tokio::join!(one.shutdown(), two.shutdown());
            assert_eq!(log.history(group).duplicates(), 0);
            assert_eq!(stored(&cluster, group), ends(&cluster, group));
            check_zookeeper(&cluster, group, dual);
        });
    }
}

/// As a group has them that has moved from one store to the other and back; -1 is stored by the old consumer.
#[test]
fn b23_of_two_stored_offsets_the_larger_counts_and_a_negative_one_is_none() {
    let (cluster, group) = (builder(KafkaVersion::V3_9_1).start().unwrap(), "merged");
    let stored_so = [
        // ZooKeeper, Kafka, and where the partition starts
        (Some(120), Some(100), 120),
        (Some(100), Some(120), 120),
        (Some(-1), Some(-1), 0),
        (None, Some(150), 150),
        (Some(150), None, 150),
        (Some(-1), Some(50), 50),
    ];
    cluster.create_topic(group, 6, 1).unwrap();
    cluster.produce(group, numbered(6 * 200)).unwrap();
    run(async {
        let by_hand = ByHand::connect(&cluster, group).await;
        for (partition, (in_zookeeper, in_kafka, _)) in (0..).zip(stored_so) {
            if let Some(offset) = in_zookeeper {
                by_hand.make(&format!("offsets/{group}/{partition}"), &offset.to_string()).await;
            }
            if let Some(offset) = in_kafka {
                cluster.client().commit_offset(group, group, partition, offset).unwrap();
            }
        }
        by_hand.close().await;
        let log = Log::default();
        let member = start(&cluster, group, "m", &log, &[("dual.commit.enabled", "true")]).await;
        wait_for_all_stored(&cluster, group).await;
        member.shutdown().await;
        let history = log.history(group);
        for (partition, (.., first)) in (0..).zip(stored_so) {
            let offsets: Vec<i64> = history.of(partition).map(|delivery| delivery.offset).collect();
            assert_eq!(offsets, (first..200).collect::<Vec<_>>(), "partition {partition}");
        }
        assert_eq!(GroupHistory::of(&cluster, group).committed(group), ends(&cluster, group));
    });
}

/// In ZooKeeper its transaction number tells; in Kafka brokers drop it, from 0.10.2 on.
fn an_offset_of_a_deleted_topic_is_none_of_the_next(version: KafkaVersion) {
    let cluster = builder(version).start().unwrap();
    for (name, dual) in [("only", "false"), ("dual", "true")] {
        cluster.create_topic(name, 1, 1).unwrap();
        cluster.produce(name, numbered(100)).unwrap();
        run(async {
            let log = Log::default();
            let first = start(&cluster, name, "m", &log, &[("dual.commit.enabled", dual)]).await;
            log.wait_for_all(&cluster, name).await;
            first.shutdown().await;
            assert_eq!(stored(&cluster, name), BTreeMap::from([(0, 100)]));
            cluster.delete_topic(name).unwrap();
            until_async("the broker to drop the offset", async || {
                let left = cluster.client().committed_offsets_of(name, name, 1).unwrap();
                if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
            })
            .await;
            cluster.create_topic(name, 1, 1).unwrap();
            cluster.produce(name, numbered(200)).unwrap();
            let later = Log::default();
            let second = start(&cluster, name, "m", &later, &[("dual.commit.enabled", dual)]).await;
            later.wait_for_all(&cluster, name).await;
            second.shutdown().await;
            assert_eq!(stored(&cluster, name), BTreeMap::from([(0, 200)]));
        });
    }
}

/// All records that were ever written to the topic of offsets.
fn written_to_offsets(cluster: &Cluster) -> i64 {
    cluster.log_end_offsets(OFFSETS).unwrap().iter().sum()
}

/// As Kafka's own consumer reads it: every partition's last offset stands there several times, none goes down, and none
/// was ever below 0 (B23 c).
fn check_what_stands_in_the_topic(cluster: &Cluster, group: &str) {
    let mut values: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
    for (partition, offset) in history(cluster, group) {
        values.entry(partition).or_default().extend(offset);
    }
    assert_eq!(values.len(), ends(cluster, group).len(), "{values:?}");
    for (partition, end) in ends(cluster, group) {
        let values = &values[&partition];
        assert!(values.is_sorted(), "{group}-{partition} went down: {values:?}");
        assert!(values[0] >= 0, "{group}-{partition}: {values:?}");
        let last = values.iter().filter(|value| **value == end).count();
        assert!(last >= 4, "{group}-{partition} was not written again and again: {values:?}");
    }
}

/// With dual commit the same stands in ZooKeeper, and nothing was written twice; without it, there never was an offset.
fn check_zookeeper(cluster: &Cluster, group: &str, dual: bool) {
    if !dual {
        assert!(!was_created(cluster, &format!("{CHROOT}/consumers/{group}/offsets")));
        return;
    }
    let history = GroupHistory::of(cluster, group);
    assert_eq!(history.committed(group), ends(cluster, group));
    history.check_commits_only_grow();
    let mut last = BTreeMap::new();
    for (_, partition, offset) in &history.commits {
        let before = last.insert(partition, offset);
        assert_ne!(before, Some(offset), "{partition} was written again unchanged");
    }
}
