//! Brokers of every generation: which versions are spoken, and how soon that is known.

use std::time::{Duration, Instant};

use kafka_troupe_actors::broker_connection::{BrokerConnection, ConnectOptions};
use kafka_troupe_proto::kafka::fetch::FetchRequest;
use kafka_troupe_proto::kafka::metadata::MetadataRequest;
use troupe_cluster::{Cluster, KafkaVersion};

use super::harness::{Fetching, settings};
use super::{Result, assert_complete, brokers, from_smallest, numbered};

/// Dials and asks for metadata; says in which version that was, in which fetches will be, and how long it took.
fn first_metadata(cluster: &Cluster, options: &ConnectOptions) -> Result<(i16, i16, Duration)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (host, port) = (cluster.broker(0).host(), cluster.broker(0).port());
    runtime.block_on(async {
        let began = Instant::now();
        let mut connection = BrokerConnection::connect(host, port, options.clone()).await?;
        connection.call(&MetadataRequest { topics: Some(vec!["orders".into()]) }).await?;
        let took = began.elapsed();
        Ok((connection.version_of::<MetadataRequest>()?, connection.version_of::<FetchRequest>()?, took))
    })
}

/// B15 of the field cases; `fetch_version` is what the broker speaks at most, or we.
fn is_met_soon(cluster: &Cluster, fetch_version: i16, limit: Duration) -> Result {
    let version = cluster.broker(0).version();
    cluster.create_topic("orders", 4, 1)?;
    cluster.wait_for_leaders("orders")?;
    let options = ConnectOptions::new("fetching-test", Duration::from_secs(30));
    let (metadata, fetch, first) = first_metadata(cluster, &options)?;
    let (.., second) = first_metadata(cluster, &options)?;
    println!("{version}: metadata {metadata}, fetch {fetch}; first answer in {first:?}, then in {second:?}");
    assert!(first < limit && fetch == fetch_version, "{version}: fetch {fetch} known in {first:?}");
    assert!(second < SOON, "{version}: what was learnt is known: {second:?}");
    Ok(())
}

/// From 0.11 on, brokers can be told not to. (Those before are only asked for topics that stand in ZooKeeper.)
fn creates_no_topic_by_asking(cluster: &Cluster) -> Result {
    let fetching = Fetching::start(from_smallest());
    fetching.set_brokers(brokers(cluster));
    fetching.fetch("nowhere", [(0, None), (1, Some(0))], &fetching.stream(2, false));
    let status = fetching
        .until("looked up", |status| status.waiting.iter().filter(|it| it.why.is_some()).count() == 2);
    assert!(status.waiting.iter().all(|it| !it.failed), "{status:?}");
    let topics = cluster.client().topics()?;
    assert!(!topics.contains(&"nowhere".to_owned()), "{topics:?}");
    Ok(())
}

const SOON: Duration = Duration::from_secs(5);

#[test]
fn kafka_0_8_2_2_is_met_soon() -> Result {
    let cluster = Cluster::start(KafkaVersion::V0_8_2_2, 1)?;
    is_met_soon(&cluster, 0, SOON)
}

#[test]
fn kafka_0_9_0_1_is_met_soon() -> Result {
    let cluster = Cluster::start(KafkaVersion::V0_9_0_1, 1)?;
    is_met_soon(&cluster, 0, Duration::from_secs(15))
}

#[test]
fn kafka_0_10_2_2_and_0_11_0_3_and_2_8_2_are_met_soon() -> Result {
    for (version, fetch_version) in
        [(KafkaVersion::V0_10_2_2, 3), (KafkaVersion::V0_11_0_3, 5), (KafkaVersion::V2_8_2, 11)]
    {
        let cluster = Cluster::builder().kafka(version).broker_property("auto.create.topics.enable", "true");
        let cluster = cluster.start()?;
        is_met_soon(&cluster, fetch_version, SOON)?;
        if version >= KafkaVersion::V0_11_0_3 {
            creates_no_topic_by_asking(&cluster)?;
        }
    }
    Ok(())
}

#[test]
fn kafka_4_1_1_is_met_soon() -> Result {
    let cluster = Cluster::start(KafkaVersion::V4_1_1, 1)?;
    is_met_soon(&cluster, 11, SOON)
}

/// B15 of the field cases: nothing is restarted but the broker.
#[test]
fn goes_on_over_upgrades_in_place() -> Result {
    let cluster = Cluster::start(KafkaVersion::V0_8_2_2, 1)?;
    cluster.create_topic("orders", 2, 1)?;
    cluster.wait_for_leaders("orders")?;
    cluster.produce("orders", numbered(2, 0..100))?;
    let fetching = Fetching::start(settings());
    fetching.set_brokers(brokers(&cluster));
    fetching.fetch("orders", [(0, Some(0)), (1, Some(0))], &fetching.stream(2, false));
    assert_complete(&fetching.expect(200), 2, 0..100);
    let mut next = 100;
    for version in [KafkaVersion::V1_1_1, KafkaVersion::V3_9_1] {
        // once as the new release that speaks as the old one, once as itself
        cluster.broker(0).restart_as(version)?;
        cluster.broker(0).restart_as(version)?;
        cluster.wait_for_leaders("orders")?;
        cluster.produce("orders", numbered(2, next..next + 100))?;
        assert_complete(&fetching.expect(200), 2, next..next + 100);
        next += 100;
    }
    Ok(())
}
