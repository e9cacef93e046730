//! Topics that are deleted and made again under a name, and half of a topic (B13), as a whole group sees them.

use kafka_troupe::{ConsumerSystem, TopicFilter};
use troupe_cluster::{Cluster, KafkaVersion, ProduceRecord};

use crate::support::by_hand::ByHand;
use crate::support::clusters::shared;
use crate::support::group::Group;
use crate::support::load::numbered;
use crate::support::records::Kept;
use crate::support::system::{Log, Recorder, config, run};
use crate::support::wait::until;

macro_rules! on_old_and_new {
    ($($name:ident),+ $(,)?) => {
        mod v0_8_2_2 { $(#[test] fn $name() { super::$name(troupe_cluster::KafkaVersion::V0_8_2_2); })+ }
        mod v1_1_1 { $(#[test] fn $name() { super::$name(troupe_cluster::KafkaVersion::V1_1_1); })+ }
        mod v3_9_1 { $(#[test] fn $name() { super::$name(troupe_cluster::KafkaVersion::V3_9_1); })+ }
    };
}

on_old_and_new!(
    b13_a_group_that_starts_again_reads_what_its_policy_says_of_a_topic_made_again,
    b13_a_running_group_reads_the_whole_of_a_topic_made_again,
    b13_half_of_a_topic_has_no_partitions_and_leaves_others_alone,
);

fn named(word: &str, count: usize) -> impl Iterator<Item = ProduceRecord> {
    (0..count).map(move |number| ProduceRecord::value(format!("{word} {number}")))
}

fn values(word: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{word} {number}")).collect()
}

fn make_again(cluster: &Cluster, topic: &str, word: &str, count: usize) {
    cluster.delete_topic(topic).unwrap();
    cluster.create_topic(topic, 1, 1).unwrap();
    cluster.produce(topic, named(word, count)).unwrap();
}

/// Waits until the members have printed just this.
#[track_caller]
fn wait_for_values(group: &Group<'_>, expected: &[String]) {
    until(&format!("{expected:?}"), || {
        let values = group.values();
        if values == expected { Ok(()) } else { Err(format!("{values:?}")) }
    });
}

/// With fewer records than the old offset, and with more: nothing of the log itself tells then.
fn b13_a_group_that_starts_again_reads_what_its_policy_says_of_a_topic_made_again(version: KafkaVersion) {
    for count in [5, 20] {
        let name = format!("b13-restart-{count}");
        let group = Group::new(shared(version), &name, 1);
        group.cluster.produce(&name, named("old", 10)).unwrap();
        let one = group.join("m1", 1, &[]);
        group.wait_for_all_committed();
        one.leave();
        let mut expected = values("old", 10);

        make_again(group.cluster, &name, "new", count);
        let two = group.join("m2", 1, &[]);
        expected.extend(values("new", count));
        wait_for_values(&group, &expected);
        group.wait_for_all_committed();
        two.wait_for_log(&["WARN", "position made", "old=10", "new=0"]);
        two.leave();

        make_again(group.cluster, &name, "newer", count);
        let three = group.join("m3", 1, &["auto.offset.reset=largest"]);
        three.wait_for_log(&["WARN", "position made", &format!("old={count}"), &format!("new={count}")]);
        group.wait_for_all_committed();
        group.cluster.produce(&name, named("later", 3)).unwrap();
        expected.extend(values("later", 3));
        wait_for_values(&group, &expected);
        three.leave();
    }
}

/// The second topic goes past the offset of the first.
fn b13_a_running_group_reads_the_whole_of_a_topic_made_again(version: KafkaVersion) {
    let name = "b13-running";
    let group = Group::new(shared(version), name, 1);
    group.cluster.produce(name, named("old", 10)).unwrap();
    let member = group.join("m1", 1, &[]);
    group.wait_for_all_committed();
    let mut expected = values("old", 10);
    for (word, count) in [("new", 5), ("newer", 20)] {
        group.cluster.delete_topic(name).unwrap();
        group.wait_for_owners(&[]);
        group.cluster.create_topic(name, 1, 1).unwrap();
        group.cluster.produce(name, named(word, count)).unwrap();
        expected.extend(values(word, count));
        wait_for_values(&group, &expected);
        group.wait_for_owners(&["m1-0"]);
        group.wait_for_all_committed();
    }
    let log = member.leave();
    assert!(!log.contains("ERROR"), "{log}");
}

fn b13_half_of_a_topic_has_no_partitions_and_leaves_others_alone(version: KafkaVersion) {
    let cluster = shared(version);
    cluster.create_topic("b13-half-whole", 2, 1).unwrap();
    cluster.produce("b13-half-whole", numbered(100)).unwrap();
    run(async {
        let zookeeper = ByHand::of_all(cluster).await;
        let half = ["b13-half-empty", "b13-half-none"].map(|topic| format!("brokers/topics/{topic}"));
        zookeeper.make(&half[0], "").await;
        zookeeper.make(&half[1], r#"{"version":1,"partitions":{}}"#).await;
        let (log, kept) = (Log::default(), Kept::default());
        let filter = TopicFilter::white_list("b13-half-.*").unwrap();
        let handler = Recorder::factory("m", &log, kept.keeper());
        let system = ConsumerSystem::builder(config(cluster, "b13-half", "m", &[]));
        let member = system.handle_matching(filter, 1, handler).start().await.unwrap();
        log.wait_for_all(cluster, "b13-half-whole").await;
        cluster.produce("b13-half-whole", numbered(100)).unwrap();
        log.wait_for_all(cluster, "b13-half-whole").await;
        let status = member.metrics().await.unwrap();
        assert_eq!((status.partitions.len(), status.failing.as_str()), (2, ""), "{status:?}");
        member.shutdown().await;
        for node in &half {
            zookeeper.delete(node).await;
        }
        zookeeper.close().await;
    });
}
