//! Streams that are pulled: which partitions they get, and when a record counts as handled.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::stream::{StreamExt, select_all};
use kafka_troupe::ConsumerSystem;
use tokio::time::{sleep, timeout};
use troupe_cluster::KafkaVersion;

use crate::support::clusters::shared;
use crate::support::load::numbered;
use crate::support::system::{config, run};
use crate::support::wait::PATIENCE;
use crate::support::zk_log::GroupHistory;

crate::on_each_version!(
    each_topic_is_shared_by_its_own_streams,
    a_dropped_next_loses_nothing_and_the_next_acknowledges,
);

/// As `createMessageStreams({wide: 2, even: 3, narrow: 2})`: threads are numbered per topic, partitions may share a
/// stream, and a stream may have none.
fn each_topic_is_shared_by_its_own_streams(version: KafkaVersion) {
    let cluster = shared(version);
    for (topic, partitions) in [("wide", 5), ("even", 3), ("narrow", 1)] {
        cluster.create_topic(topic, partitions, 1).unwrap();
        cluster.produce(topic, numbered(10 * u64::from(partitions.unsigned_abs()))).unwrap();
    }
    run(async {
        let system = ConsumerSystem::builder(config(cluster, "shared", "m", &[]))
            .pull("wide", 2)
            .pull("even", 3)
            .pull("narrow", 2)
            .start()
            .await
            .unwrap();
        let streams = ["wide", "even", "narrow"].into_iter().flat_map(|topic| {
            let streams = system.streams(topic).into_iter().enumerate();
            streams.map(move |(index, stream)| stream.map(move |record| (topic, index, record)).boxed_local())
        });
        let mut streams = select_all(streams);
        assert_eq!(streams.len(), 7);
        let mut got: BTreeMap<(&str, usize), BTreeSet<i32>> = BTreeMap::new();
        let mut next: BTreeMap<(String, i32), i64> = BTreeMap::new();
        for _ in 0..90 {
            let (topic, index, record) = timeout(PATIENCE, streams.next()).await.unwrap().unwrap();
            let record = record.unwrap();
            assert_eq!(record.topic(), topic);
            let next = next.entry((topic.to_owned(), record.partition())).or_default();
            assert_eq!(record.offset(), *next, "{record:?}");
            *next += 1;
            got.entry((topic, index)).or_default().insert(record.partition());
        }
        let expected = [
            (("even", 0), BTreeSet::from([0])),
            (("even", 1), BTreeSet::from([1])),
            (("even", 2), BTreeSet::from([2])),
            (("narrow", 0), BTreeSet::from([0])),
            (("wide", 0), BTreeSet::from([0, 1, 2])),
            (("wide", 1), BTreeSet::from([3, 4])),
        ];
        assert_eq!(got, BTreeMap::from(expected));
        let zookeeper = GroupHistory::of(cluster, "shared");
        let owners: Vec<String> = zookeeper.owners("wide").into_values().collect();
        assert_eq!(owners, ["m-0", "m-0", "m-0", "m-1", "m-1"]);
        system.shutdown().await;
        assert!(timeout(PATIENCE, streams.next()).await.unwrap().is_none(), "the streams end");
    });
}

fn a_dropped_next_loses_nothing_and_the_next_acknowledges(version: KafkaVersion) {
    let cluster = shared(version);
    cluster.create_topic("pulled", 1, 1).unwrap();
    let committed = || GroupHistory::of(cluster, "pulled").committed("pulled").get(&0).copied();
    run(async {
        let config = config(cluster, "pulled", "m", &[("auto.commit.enable", "false")]);
        let system = ConsumerSystem::builder(config).pull("pulled", 1).start().await.unwrap();
        let mut stream = system.streams("pulled").pop().unwrap();
        let mut offsets = Vec::new();
        let mut dropped = 0;
        for round in 1..=20 {
            cluster.produce("pulled", numbered(50)).unwrap();
            while offsets.len() < round * 50 {
                match stream.next().now_or_never() {
                    Some(record) => offsets.push(record.unwrap().unwrap().offset()),
                    None => {
                        dropped += 1;
                        sleep(Duration::from_millis(1)).await;
                    }
                }
            }
        }
        assert!(offsets.iter().copied().eq(0..1000), "{offsets:?}");
        assert!(dropped >= 20, "only {dropped} were dropped");

        system.commit().await.unwrap().all().unwrap();
        assert_eq!(committed(), Some(999), "the last is in hand");
        assert!(stream.next().now_or_never().is_none());
        system.commit().await.unwrap().all().unwrap();
        assert_eq!(committed(), Some(1000), "the next was asked for");
        cluster.produce("pulled", numbered(1)).unwrap();
        timeout(PATIENCE, stream.next()).await.unwrap().unwrap().unwrap();
        system.commit().await.unwrap().all().unwrap();
        assert_eq!(committed(), Some(1000));
        stream.ack();
        system.commit().await.unwrap().all().unwrap();
        assert_eq!(committed(), Some(1001));
        system.shutdown().await;
    });
}
