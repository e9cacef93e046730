//! Fetching from real brokers, and from one that misbehaves.

mod connections;
mod fake_broker;
mod generations;
mod harness;

use std::collections::BTreeMap;

use fake_broker::Seen;
use harness::{Fetching, PATIENCE, settings};
use kafka_troupe_actors::fetcher_manager::FetchSettings;
use kafka_troupe_proto::config::OffsetReset;
use troupe_cluster::{Cluster, KafkaVersion, ProduceRecord};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// `count` records in turn over the partitions, numbered within each.
fn numbered(partitions: i32, range: std::ops::Range<u32>) -> impl Iterator<Item = ProduceRecord> {
    range.flat_map(move |number| {
        (0..partitions).map(move |partition| ProduceRecord {
            partition: Some(partition),
            key: None,
            value: format!("{partition}:{number}").into_bytes(),
        })
    })
}

/// Each partition got exactly these records, each once and in order.
fn assert_complete(
    arrived: &BTreeMap<i32, Vec<(i64, String)>>,
    partitions: i32,
    range: std::ops::Range<u32>,
) {
    assert_eq!(arrived.keys().copied().collect::<Vec<_>>(), (0..partitions).collect::<Vec<_>>());
    for (partition, records) in arrived {
        let expected = range.clone().map(|number| (i64::from(number), format!("{partition}:{number}")));
        assert!(records.iter().cloned().eq(expected), "partition {partition}");
    }
}

fn brokers(cluster: &Cluster) -> Vec<(i32, u16)> {
    cluster.brokers().iter().map(|broker| (broker.id(), broker.port())).collect()
}

fn from_smallest() -> FetchSettings {
    let mut settings = settings();
    settings.offset_reset = OffsetReset::Smallest;
    settings
}

/// Everything once, over restarts of the broker.
fn goes_on_over_broker_restarts(cluster: &Cluster, topic: &str, fetchers: u32) -> Result {
    cluster.create_topic(topic, 4, 1)?;
    cluster.wait_for_leaders(topic)?;
    cluster.produce(topic, numbered(4, 0..5_000))?;
    let mut settings = from_smallest();
    settings.fetchers = fetchers;
    let fetching = Fetching::start(settings);
    fetching.set_brokers(brokers(cluster));
    let stream = fetching.stream(2, false);
    let claims = fetching.fetch(topic, (0..4).map(|partition| (partition, None)), &stream);
    assert_complete(&fetching.expect(20_000), 4, 0..5_000);
    assert_eq!(fetching.resets(), [(0, 0), (1, 0), (2, 0), (3, 0)]);
    assert!(claims.iter().all(|claim| claim.fetched() == 5_000 && claim.high_watermark() == 5_000));

    let broker = cluster.broker(0);
    broker.kill()?;
    fetching.until("given back", |status| status.waiting.len() == 4);
    broker.restart()?;
    cluster.produce(topic, numbered(4, 5_000..6_000))?;
    assert_complete(&fetching.expect(4_000), 4, 5_000..6_000);

    broker.restart_on_new_port()?;
    cluster.produce(topic, numbered(4, 6_000..7_000))?;
    fetching.set_brokers(brokers(cluster));
    assert_complete(&fetching.expect(4_000), 4, 6_000..7_000);
    let status = fetching.describe();
    assert_eq!(status.brokers.len(), usize::try_from(fetchers)?);
    for fetcher in &status.brokers {
        assert!(fetcher.last_error.is_some() && fetcher.connected, "{status:?}");
        assert_eq!(fetcher.address, broker.address());
    }
    assert_eq!(fetching.resets().len(), 4, "no position was made anew");
    Ok(())
}

/// An offset that is not in the log.
fn out_of_range_goes_by_the_policy(cluster: &Cluster) -> Result {
    cluster.create_topic("ranged", 2, 1)?;
    cluster.produce("ranged", numbered(2, 0..100))?;
    let smallest = Fetching::start(from_smallest());
    smallest.set_brokers(brokers(cluster));
    smallest.fetch("ranged", [(0, Some(1_000)), (1, Some(40))], &smallest.stream(2, false));
    let arrived = smallest.expect(160);
    assert_eq!((arrived[&0].len(), arrived[&0][0].0), (100, 0));
    assert_eq!((arrived[&1].len(), arrived[&1][0].0), (60, 40));
    assert_eq!(smallest.resets(), [(0, 0)]);

    let largest = Fetching::start(settings());
    largest.set_brokers(brokers(cluster));
    largest.fetch("ranged", [(0, Some(1_000)), (1, None)], &largest.stream(2, false));
    // the one at 1000 is fetched as well until the broker has refused it
    largest.until("both fetched", |status| {
        largest.resets().len() == 2 && status.brokers.iter().any(|broker| broker.partitions == 2)
    });
    cluster.produce("ranged", numbered(2, 100..101))?;
    assert_complete(&largest.expect(2), 2, 100..101);
    assert_eq!(largest.resets(), [(0, 100), (1, 100)]);

    let mut none = settings();
    none.offset_reset = OffsetReset::None;
    let none = Fetching::start(none);
    none.set_brokers(brokers(cluster));
    none.fetch("ranged", [(0, Some(1_000)), (1, Some(100))], &none.stream(2, false));
    assert_eq!(none.expect(1)[&1][0].0, 100);
    let status = none.until("failed", |status| status.waiting.iter().any(|waiting| waiting.failed));
    let why = status.waiting[0].why.clone().unwrap_or_default();
    assert!(why.contains("auto.offset.reset=none") && why.contains("1000"), "{why}");
    Ok(())
}

/// A stream that takes nothing more, beside one that does, at the same broker.
fn a_full_stream_stops_nobody_else(cluster: &Cluster) -> Result {
    cluster.create_topic("mixed", 2, 1)?;
    let fetching = Fetching::start(from_smallest());
    fetching.set_brokers(brokers(cluster));
    let (full, flowing) = (fetching.stream(1, true), fetching.stream(2, false));
    cluster.produce("mixed", numbered(2, 0..1))?;
    fetching.fetch("mixed", [(0, Some(0))], &full);
    let first = fetching.expect(1);
    fetching.fetch("mixed", [(1, Some(0))], &flowing);
    assert_eq!((first[&0].len(), fetching.expect(1)[&1].len()), (1, 1));
    for round in 1..6 {
        cluster.produce("mixed", numbered(2, round..round + 1))?;
        let arrived = fetching.expect(1);
        assert_eq!(arrived[&1], [(i64::from(round), format!("1:{round}"))]);
    }
    assert_eq!(full.credit.used().0, 1);
    full.let_go();
    let arrived = fetching.expect(5);
    assert_eq!((arrived[&0].len(), arrived[&0][0].0), (5, 1));
    Ok(())
}

/// When nothing can be taken, nothing is asked for, and no timer runs.
fn a_fetcher_rests_while_its_only_stream_is_full(cluster: &Cluster) -> Result {
    cluster.create_topic("resting", 1, 1)?;
    cluster.produce("resting", numbered(1, 0..1))?;
    let fetching = Fetching::start(from_smallest());
    fetching.set_brokers(brokers(cluster));
    let stream = fetching.stream(1, true);
    fetching.fetch("resting", [(0, Some(0))], &stream);
    assert_complete(&fetching.expect(1), 1, 0..1);
    let so_far = fetching.describe().brokers[0].requests;
    cluster.produce("resting", numbered(1, 1..2_000))?;
    assert_eq!(fetching.describe().brokers[0].requests, so_far);
    stream.let_go();
    assert_eq!(fetching.expect(1_999)[&0].len(), 1_999);
    Ok(())
}

#[test]
fn fetches_from_kafka_3_9_1() -> Result {
    let cluster = Cluster::start(KafkaVersion::V3_9_1, 1)?;
    goes_on_over_broker_restarts(&cluster, "orders", 1)?;
    goes_on_over_broker_restarts(&cluster, "shared", 3)?;
    out_of_range_goes_by_the_policy(&cluster)?;
    a_full_stream_stops_nobody_else(&cluster)?;
    a_fetcher_rests_while_its_only_stream_is_full(&cluster)
}

#[test]
fn fetches_from_kafka_1_1_1() -> Result {
    let cluster = Cluster::start(KafkaVersion::V1_1_1, 1)?;
    goes_on_over_broker_restarts(&cluster, "orders", 1)?;
    out_of_range_goes_by_the_policy(&cluster)?;
    a_full_stream_stops_nobody_else(&cluster)?;
    a_fetcher_rests_while_its_only_stream_is_full(&cluster)
}

#[test]
fn partitions_of_a_broker_that_is_down_wait_and_the_others_flow() -> Result {
    let cluster = Cluster::start(KafkaVersion::V3_9_1, 2)?;
    cluster.create_topic("spread", 4, 1)?;
    cluster.produce("spread", numbered(4, 0..100))?;
    let leaders = cluster.client().partitions("spread")?;
    let of_first: Vec<i32> = leaders
        .iter()
        .filter(|partition| partition.leader == 0)
        .map(|partition| partition.partition)
        .collect();
    assert!(!of_first.is_empty() && of_first.len() < 4, "{leaders:?}");
    cluster.broker(1).kill()?;

    let fetching = Fetching::start(from_smallest());
    fetching.set_brokers(brokers(&cluster));
    fetching.fetch("spread", (0..4).map(|partition| (partition, None)), &fetching.stream(2, false));
    let arrived = fetching.expect(of_first.len() * 100);
    assert_eq!(arrived.keys().copied().collect::<Vec<_>>(), of_first);
    let status = fetching.until("waiting", |status| {
        status.waiting.iter().filter(|waiting| waiting.why.is_some()).count() == 4 - of_first.len()
    });
    assert!(status.waiting.iter().all(|waiting| !waiting.failed), "{status:?}");

    cluster.broker(1).restart()?;
    let rest = fetching.expect((4 - of_first.len()) * 100);
    assert!(rest.keys().all(|partition| !of_first.contains(partition)));
    Ok(())
}

#[test]
fn a_port_that_speaks_tls_is_named_and_asked_no_faster_than_the_backoff() -> Result {
    let (port, sees) = fake_broker::start_tls()?;
    let fetching = Fetching::start(settings());
    fetching.set_brokers(vec![(0, port)]);
    fetching.fetch("secret", [(0, Some(0))], &fetching.stream(2, false));
    let told =
        |why: &str| why.contains("not Kafka") && why.contains("TLS") && why.contains(&port.to_string());
    fetching.until("told", |status| {
        status.waiting.iter().any(|waiting| waiting.why.as_deref().is_some_and(told))
    });
    let asked: Vec<_> = (0..4).map(|_| sees.recv_timeout(PATIENCE)).collect::<std::result::Result<_, _>>()?;
    // refresh.leader.backoff.ms is 200
    assert!((asked[3] - asked[0]).as_millis() >= 600, "3 lookups in {:?}", asked[3] - asked[0]);
    Ok(())
}

#[test]
fn a_broker_that_answers_with_nothing_at_once_makes_nobody_spin() -> Result {
    let (port, sees) = fake_broker::start("idle")?;
    let fetching = Fetching::start(settings());
    fetching.fetch("idle", [(0, Some(0))], &fetching.stream(2, false));
    fetching.until("waiting for a broker", |status| status.waiting.len() == 1);
    fetching.set_brokers(vec![(0, port)]);
    let fetches: Vec<_> =
        (0..6).map(|_| sees.recv_timeout(PATIENCE)).collect::<std::result::Result<_, _>>()?;
    let [Seen::Fetch(first, _), .., Seen::Fetch(last, _)] = fetches[..] else {
        panic!("the fetcher hung up")
    };
    // fetch.wait.max.ms is 100
    assert!((last - first).as_millis() >= 400, "5 fetches in {:?}", last - first);

    fetching.stop();
    let hung_up = sees.iter().any(|seen| matches!(seen, Seen::HungUp));
    assert!(hung_up, "a manager that ends takes its fetchers with it");
    Ok(())
}
