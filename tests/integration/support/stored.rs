//! Members with their offsets in Kafka, and what others see of these.

use std::collections::BTreeMap;

use kafka_troupe::{ConsumerHandle, ConsumerSystem};
use troupe_cluster::Cluster;

use super::clusters::reached_by;
use super::system::{Log, Recorder, config};
use super::wait::until_async;

/// Where brokers store offsets.
pub const OFFSETS: &str = "__consumer_offsets";

/// A member with its offsets in Kafka, which notes what it is given.
pub async fn start(
    cluster: &Cluster,
    group: &str,
    member: &str,
    log: &Log,
    more: &[(&str, &str)],
) -> ConsumerHandle {
    let reach = reached_by(cluster);
    let reach = reach.iter().filter_map(|it| it.split_once('='));
    let stored = [("offsets.storage", "kafka"), ("dual.commit.enabled", "false")];
    let properties: Vec<(&str, &str)> = reach.chain(stored).chain(more.iter().copied()).collect();
    let handler = Recorder::factory(member, log, |_| Ok(()));
    let builder = ConsumerSystem::builder(config(cluster, group, member, &properties));
    builder.handle(group, 2, handler).start().await.expect("a member starts")
}

/// The ends of a topic's partitions.
pub fn ends(cluster: &Cluster, topic: &str) -> BTreeMap<i32, i64> {
    (0..).zip(cluster.log_end_offsets(topic).expect("the topic has ends")).collect()
}

/// What brokers store for a group of a topic with the same name.
pub fn stored(cluster: &Cluster, group: &str) -> BTreeMap<i32, i64> {
    cluster.client().committed_offsets(group, group).expect("a coordinator answers")
}

/// Waits until everything that stands in the topic is stored in Kafka.
pub async fn wait_for_all_stored(cluster: &Cluster, group: &str) {
    let ends = ends(cluster, group);
    until_async(&format!("{ends:?} in Kafka"), async || {
        let stored = stored(cluster, group);
        if stored == ends { Ok(()) } else { Err(format!("{stored:?}")) }
    })
    .await;
}

/// Every commit of a group of a topic with the same name, in order: partition, and offset or none where it was dropped.
pub fn history(cluster: &Cluster, group: &str) -> Vec<(i32, Option<i64>)> {
    let all = cluster.stored_offsets().expect("the topic can be read").into_iter();
    all.filter(|it| it.group == group && it.topic == group).map(|it| (it.partition, it.offset)).collect()
}

/// Offsets never go down, and none is negative; how many were dropped.
#[track_caller]
pub fn check_only_grows(history: &[(i32, Option<i64>)]) -> usize {
    let mut last = BTreeMap::new();
    for (partition, offset) in history.iter().filter_map(|(partition, offset)| Some((partition, (*offset)?)))
    {
        let before = last.insert(partition, offset).unwrap_or(0);
        assert!(offset >= before, "{partition} was committed down from {before} to {offset} in Kafka");
    }
    history.iter().filter(|(_, offset)| offset.is_none()).count()
}
