//! Topics and leaders by `bootstrap.servers`, asked now and then: of brokers that have no ZooKeeper, and of others.

use kafka_troupe::{ConsumerHandle, ConsumerSystem, TopicFilter};
use troupe_cluster::{Cluster, KafkaVersion};

use crate::support::clusters::{builder, reached_by, shared};
use crate::support::group::Group;
use crate::support::load::{Load, numbered};
use crate::support::records::Kept;
use crate::support::system::{Log, Recorder, config, run, wait_for_owners};
use crate::support::wait::until_async;
use crate::support::zk_log::GroupHistory;

const VERSION: KafkaVersion = KafkaVersion::V4_1_1;

async fn filtering(cluster: &Cluster, name: &str, member: &str, log: &Log, kept: &Kept) -> ConsumerHandle {
    let reach = reached_by(cluster);
    let reach: Vec<(&str, &str)> = reach.iter().filter_map(|it| it.split_once('=')).collect();
    let filter = TopicFilter::white_list(&format!("{name}-.*")).unwrap();
    let handler = Recorder::factory(member, log, kept.keeper());
    let system = ConsumerSystem::builder(config(cluster, name, member, &reach));
    system.handle_matching(filter, 1, handler).start().await.expect("a member starts")
}

#[test]
fn members_follow_topics_that_are_made_grown_deleted_and_made_again() {
    let (cluster, name) = (shared(VERSION), "followed");
    let (one, other) = ("followed-one", "followed-other");
    cluster.create_topic(one, 2, 1).unwrap();
    cluster.produce(one, numbered(200)).unwrap();
    run(async {
        let (log, kept) = (Log::default(), Kept::default());
        let members = [
            filtering(cluster, name, "m1", &log, &kept).await,
            filtering(cluster, name, "m2", &log, &kept).await,
        ];
        wait_for_owners(cluster, name, one, &["m1-0", "m2-0"]).await;
        log.wait_for_all(cluster, one).await;

        cluster.create_topic(other, 2, 1).unwrap();
        cluster.produce(other, numbered(200)).unwrap();
        wait_for_owners(cluster, name, other, &["m1-0", "m2-0"]).await;
        log.wait_for_all(cluster, other).await;

        cluster.add_partitions(one, 4).unwrap();
        cluster.produce(one, numbered(400)).unwrap();
        wait_for_owners(cluster, name, one, &["m1-0", "m1-0", "m2-0", "m2-0"]).await;
        log.wait_for_all(cluster, one).await;
        let history = log.history(one);
        history.check(&GroupHistory::of(cluster, name));
        assert_eq!(history.duplicates(), 0);

        made_again_with_more_records(cluster, name, other, &kept).await;
        for member in members {
            assert_eq!(member.metrics().await.unwrap().failing, "");
            member.shutdown().await;
        }
    });
}

async fn made_again_with_more_records(cluster: &Cluster, name: &str, topic: &str, kept: &Kept) {
    let before = kept.texts(topic, 0).len();
    cluster.delete_topic(topic).unwrap();
    wait_for_owners(cluster, name, topic, &[]).await;
    cluster.create_topic(topic, 1, 1).unwrap();
    cluster.produce(topic, numbered(300)).unwrap();
    let all: Vec<String> = (0..300).map(|number| number.to_string()).collect();
    until_async("all of the topic made again", async || {
        let later = kept.texts(topic, 0).split_off(before);
        if later == all { Ok(()) } else { Err(format!("{later:?}")) }
    })
    .await;
    wait_for_owners(cluster, name, topic, &["m1-0"]).await;
}

fn flows(group: &Group<'_>) {
    let load = Load::start(group.cluster, &group.name);
    group.wait_for_more(200);
    load.end();
}

/// Nobody lets a partition go because brokers cannot be asked.
#[test]
fn members_keep_their_partitions_while_brokers_move_or_are_all_away() {
    let cluster = builder(VERSION).brokers(2).start().unwrap();
    let group = Group::new(&cluster, "kept-without", 4);
    let reach = reached_by(&cluster);
    let properties: Vec<&str> = reach.iter().map(String::as_str).collect();
    let members = ["m1", "m2"].map(|member| group.join(member, 1, &properties));
    let owners = ["m1-0", "m1-0", "m2-0", "m2-0"];
    group.wait_for_owners(&owners);
    let tenures = group.zookeeper().tenures.len();
    flows(&group);
    cluster.broker(1).restart_on_new_port().unwrap();
    cluster.wait_for_leaders("kept-without").unwrap();
    flows(&group);

    // the controller last; a killed one would have to wait for its own session to end
    cluster.brokers().iter().rev().for_each(|broker| broker.stop().unwrap());
    members.iter().for_each(|member| member.wait_for_log(&["WARN", "what is known stays"]));
    group.wait_for_owners(&owners);
    cluster.broker(0).restart().unwrap();
    cluster.broker(1).restart().unwrap();
    cluster.wait_for_leaders("kept-without").unwrap();
    flows(&group);

    group.wait_for_all();
    group.wait_for_all_committed();
    let (history, zookeeper) = (group.history(), group.zookeeper());
    assert_eq!(zookeeper.tenures.len(), tenures, "no partition was given up");
    history.check(&zookeeper);
    assert_eq!(history.duplicates(), 0);
    for member in members {
        member.leave();
    }
}

/// One that asks brokers, whatever stands in ZooKeeper.
async fn start(cluster: &Cluster, topic: &str, log: &Log) -> ConsumerHandle {
    let bootstrap = cluster.bootstrap();
    let more = [("bootstrap.servers", bootstrap.as_str()), ("metadata.max.age.ms", "1000")];
    let handler = Recorder::factory("m", log, |_| Ok(()));
    let system = ConsumerSystem::builder(config(cluster, "g", "m", &more)).handle(topic, 1, handler);
    system.start().await.expect("a member starts")
}

/// Waits until so many of its partitions flow, and that is all that it has.
async fn until_owned(member: &ConsumerHandle, count: usize) {
    until_async(&format!("{count} partitions"), async || {
        let status = member.metrics().await.expect("it runs");
        let flows = status.partitions.len() == count && status.waiting.is_empty() && status.phase == "stable";
        if flows { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
}

async fn until_committed(member: &ConsumerHandle, ends: &[i64]) {
    until_async(&format!("commits of {ends:?}"), async || {
        let status = member.metrics().await.expect("it runs");
        let committed: Vec<i64> = status.partitions.iter().filter_map(|it| it.committed).collect();
        if committed == ends { Ok(()) } else { Err(format!("{committed:?}")) }
    })
    .await;
}

/// At brokers that are in ZooKeeper: consumes, commits, goes on over a loss of the broker and over added partitions,
/// and after its own restart at what it committed.
fn the_main_job_by_bootstrap_servers(version: KafkaVersion) {
    let cluster = Cluster::start(version, 1).unwrap();
    cluster.create_topic("t", 2, 1).unwrap();
    cluster.produce("t", numbered(100)).unwrap();
    run(async {
        let log = Log::default();
        let member = start(&cluster, "t", &log).await;
        log.wait_for_all(&cluster, "t").await;

        cluster.broker(0).kill().unwrap();
        until_async("failing polls", async || {
            let status = member.metrics().await.expect("it runs");
            let lost = status.brokers.iter().any(|broker| !broker.last_error.is_empty());
            if lost { Ok(()) } else { Err(format!("{:?}", status.brokers)) }
        })
        .await;
        cluster.broker(0).restart().unwrap();
        cluster.wait_for_leaders("t").unwrap();
        cluster.produce("t", numbered(100)).unwrap();
        log.wait_for_all(&cluster, "t").await;

        cluster.add_partitions("t", 4).unwrap();
        cluster.produce("t", numbered(400)).unwrap();
        log.wait_for_all(&cluster, "t").await;
        until_owned(&member, 4).await;
        until_committed(&member, &cluster.log_end_offsets("t").unwrap()).await;
        member.shutdown().await;
        goes_on_where_it_was(&cluster, &log).await;
    });
}

async fn goes_on_where_it_was(cluster: &Cluster, log: &Log) {
    let seen = log.len();
    let again = start(cluster, "t", log).await;
    cluster.produce("t", numbered(10)).unwrap();
    log.wait_for_all(cluster, "t").await;
    assert_eq!(log.len(), seen + 10);
    assert_eq!(log.history("t").duplicates(), 0);
    again.shutdown().await;
}

/// With fewer records than the offset that was stored, and with more.
fn b13_a_topic_made_again(version: KafkaVersion) {
    let cluster = Cluster::start(version, 1).unwrap();
    cluster.create_topic("t", 1, 1).unwrap();
    cluster.produce("t", numbered(10)).unwrap();
    run(async {
        let member = start(&cluster, "t", &Log::default()).await;
        until_committed(&member, &[10]).await;
        member.shutdown().await;
        made_again_while_nobody_runs(&cluster).await;
        made_again_under_a_running_member(&cluster).await;
    });
}

fn make_again(cluster: &Cluster) {
    cluster.delete_topic("t").unwrap();
    cluster.create_topic("t", 1, 1).unwrap();
}

fn offsets(log: &Log) -> Vec<i64> {
    log.history("t").of(0).map(|it| it.offset).collect()
}

async fn made_again_while_nobody_runs(cluster: &Cluster) {
    for (before, records) in [(10, 5_u8), (5, 20)] {
        make_again(cluster);
        cluster.produce("t", numbered(records.into())).unwrap();
        let log = Log::default();
        let member = start(cluster, "t", &log).await;
        until_committed(&member, &[records.into()]).await;
        assert_eq!(offsets(&log), (0..records.into()).collect::<Vec<i64>>(), "after {before}");
        member.shutdown().await;
    }
}

async fn made_again_under_a_running_member(cluster: &Cluster) {
    let log = Log::default();
    let member = start(cluster, "t", &log).await;
    until_committed(&member, &[20]).await;
    for records in [5_u8, 30] {
        let seen = log.len();
        make_again(cluster);
        until_committed(&member, &[0]).await;
        cluster.produce("t", numbered(records.into())).unwrap();
        until_committed(&member, &[records.into()]).await;
        assert_eq!(offsets(&log)[seen..], (0..records.into()).collect::<Vec<i64>>());
    }
    member.shutdown().await;
}

#[test]
fn the_main_job_by_bootstrap_servers_at_0_8_2_2() {
    the_main_job_by_bootstrap_servers(KafkaVersion::V0_8_2_2);
}

#[test]
fn the_main_job_by_bootstrap_servers_at_3_9_1() {
    the_main_job_by_bootstrap_servers(KafkaVersion::V3_9_1);
}

#[test]
fn b13_a_topic_made_again_at_3_9_1() {
    b13_a_topic_made_again(KafkaVersion::V3_9_1);
}

#[test]
fn b13_a_topic_made_again_at_4_1_1() {
    b13_a_topic_made_again(KafkaVersion::V4_1_1);
}
