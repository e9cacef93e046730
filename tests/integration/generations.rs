//! The main job on brokers of every generation, and an upgrade under a running group.

use std::time::{Duration, Instant};

use troupe_cluster::{Cluster, KafkaVersion, ZooKeeperVersion};

use crate::support::clusters::{builder, reached_by};
use crate::support::group::Group;
use crate::support::load::{Load, numbered};
use crate::support::member::Member;
use crate::support::rounds;
use crate::support::wait::until;

macro_rules! on_each_generation {
    ($($name:ident: $version:ident,)*) => {
        $(#[test]
        fn $name() {
            the_main_job(KafkaVersion::$version);
        })*

        #[test]
        fn no_generation_is_left_out() {
            assert_eq!(KafkaVersion::ALL, [$(KafkaVersion::$version),*]);
        }
    };
}

on_each_generation! {
    the_main_job_on_0_8_2_2: V0_8_2_2,
    the_main_job_on_0_9_0_1: V0_9_0_1,
    the_main_job_on_0_10_2_2: V0_10_2_2,
    the_main_job_on_0_11_0_3: V0_11_0_3,
    the_main_job_on_1_1_1: V1_1_1,
    the_main_job_on_2_8_2: V2_8_2,
    the_main_job_on_3_9_1: V3_9_1,
    the_main_job_on_4_1_1: V4_1_1,
    the_main_job_on_4_4_0: V4_4_0,
}

/// Consume, lose the broker and get it back, let the topic grow, commit to ZooKeeper; and B15: the first record comes
/// soon, whatever the broker does with a request that it does not know. The brokers make topics that they are asked
/// for, but a topic that is deleted stays deleted.
fn the_main_job(version: KafkaVersion) {
    let cluster = builder(version).broker_property("auto.create.topics.enable", "true").start().unwrap();
    let group = Group::new(&cluster, "main-job", 4);
    cluster.produce("main-job", numbered(400)).unwrap();
    let reach = reached_by(&cluster);
    let properties: Vec<&str> = reach.iter().map(String::as_str).collect();

    let began = Instant::now();
    let one = group.join("m1", 1, &properties);
    until("the first record", || match group.history().deliveries.first() {
        Some(_) => Ok(()),
        None => Err(one.errors()),
    });
    let first = began.elapsed();
    println!("{version}: the first record after {first:?}");
    let soon = if version == KafkaVersion::V0_9_0_1 { 15 } else { 5 };
    // on a machine under load it takes longer
    let limit = Duration::from_secs(if rounds().is_some() { soon } else { 3 * soon });
    assert!(first < limit, "the first record after {first:?}");

    let two = group.join("m2", 1, &properties);
    group.wait_for_owners(&["m1-0", "m1-0", "m2-0", "m2-0"]);
    let load = Load::start(&cluster, "main-job");
    group.wait_for_more(200);
    cluster.broker(0).kill().unwrap();
    cluster.broker(0).restart().unwrap();
    group.wait_for_more(200);
    load.end();

    cluster.add_partitions("main-job", 6).unwrap();
    cluster.produce("main-job", numbered(600)).unwrap();
    group.wait_for_owners(&["m1-0", "m1-0", "m1-0", "m2-0", "m2-0", "m2-0"]);
    group.wait_for_all();
    group.wait_for_all_committed();
    check_and_leave(&group, one, two);
}

fn check_and_leave(group: &Group<'_>, one: Member, two: Member) {
    let history = group.history();
    history.check(&group.zookeeper());
    assert_eq!(history.duplicates(), 0);

    two.leave();
    group.cluster.delete_topic(&group.name).unwrap();
    group.wait_for_owners(&[]);
    let log = one.leave();
    let topics = group.cluster.client().topics().unwrap();
    assert!(!topics.contains(&group.name), "it was made again by our asking: {topics:?}");
    // reported while the broker is away
    let odd = |line: &&str| line.contains("ERROR") && !line.contains("no broker in /brokers/ids can be used");
    assert_eq!(log.lines().find(odd), None, "{log}");
}

/// The members probe the versions that they speak with it when they connect again.
fn brokers_are_upgraded_under_a_running_group(cluster: &Cluster, new: KafkaVersion) {
    let group = Group::new(cluster, "upgraded", 4);
    let reach = reached_by(cluster);
    let properties: Vec<&str> = reach.iter().map(String::as_str).collect();
    let load = Load::start(cluster, "upgraded");
    let one = group.join("m1", 1, &properties);
    let two = group.join("m2", 1, &properties);
    group.wait_for_owners(&["m1-0", "m1-0", "m2-0", "m2-0"]);
    group.wait_for_more(200);
    for broker in cluster.brokers() {
        broker.restart_as(new).unwrap();
        cluster.wait_for_leaders("upgraded").unwrap();
        group.wait_for_more(200);
    }
    load.end();
    group.wait_for_all();
    group.wait_for_all_committed();
    let history = group.history();
    history.check(&group.zookeeper());
    assert_eq!(history.duplicates(), 0);
    for member in [one, two] {
        member.leave();
    }
}

#[test]
fn b15_brokers_are_upgraded_from_1_1_1_to_3_9_1_under_a_running_group() {
    // the later broker needs the later ZooKeeper
    let cluster = builder(KafkaVersion::V1_1_1).zookeeper(ZooKeeperVersion::V3_8_4).brokers(2);
    brokers_are_upgraded_under_a_running_group(&cluster.start().unwrap(), KafkaVersion::V3_9_1);
}

#[test]
fn b15_brokers_are_upgraded_from_4_1_1_to_4_4_0_under_a_running_group() {
    let cluster = builder(KafkaVersion::V4_1_1).brokers(2).start().unwrap();
    brokers_are_upgraded_under_a_running_group(&cluster, KafkaVersion::V4_4_0);
}
