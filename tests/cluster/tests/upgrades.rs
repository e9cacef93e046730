//! Brokers that are upgraded in place, that replicate, and that have several listeners.

use troupe_cluster::{Client, Cluster, ClusterError, KafkaVersion, ProduceRecord, entries};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

fn numbered(count: u32) -> impl Iterator<Item = ProduceRecord> {
    (0..count).map(|number| ProduceRecord::value(format!("record {number}")))
}

#[test]
fn a_broker_goes_on_with_records_of_every_format() -> Result {
    use KafkaVersion::{V0_9_0_1, V0_10_2_2, V3_9_1};
    let cluster = Cluster::start(V0_9_0_1, 1)?;
    cluster.create_topic("orders", 1, 1)?;
    cluster.produce("orders", numbered(10))?;
    let broker = cluster.broker(0);
    let port = broker.port();
    // once as the new release that speaks as the old one, once as itself
    let steps = [(V0_10_2_2, V0_9_0_1), (V0_10_2_2, V0_10_2_2), (V3_9_1, V0_10_2_2), (V3_9_1, V3_9_1)];
    for ((version, speaks), end) in steps.into_iter().zip([20, 30, 40, 50]) {
        broker.restart_as(version)?;
        assert_eq!((broker.version(), cluster.oldest(), broker.port()), (version, Some(speaks), port));
        cluster.wait_for_leaders("orders")?;
        cluster.produce("orders", numbered(10))?;
        assert_eq!(cluster.log_end_offsets("orders")?, [end], "{version}");
    }
    let log = std::fs::read(broker.data().join("orders-0/00000000000000000000.log"))?;
    let magics: Vec<u8> = entries(&log).into_iter().map(|(magic, _)| magic).collect();
    assert_eq!(magics, [vec![0; 20], vec![1; 20], vec![2]].concat());

    for (version, why) in [(V0_10_2_2, "back"), (KafkaVersion::V4_1_1, "to KRaft")] {
        let refused = broker.restart_as(version);
        assert!(matches!(refused, Err(ClusterError::Invalid(_))), "{why}: {refused:?}");
    }
    Ok(())
}

#[test]
fn kraft_brokers_replicate_and_one_leads_on_for_another() -> Result {
    let cluster = Cluster::start(KafkaVersion::V4_4_0, 2)?;
    cluster.create_topic("orders", 4, 2)?;
    assert_eq!(cluster.produce("orders", numbered(1_000))?, 1_000);
    // broker 0 is the controller
    cluster.broker(1).kill()?;
    cluster.wait_for_leaders("orders")?;
    assert_eq!(cluster.produce("orders", numbered(1_000))?, 1_000);
    assert_eq!(cluster.log_end_offsets("orders")?, [500; 4]);
    cluster.broker(1).restart()?;
    cluster.wait_for_leaders("orders")?;
    Ok(())
}

#[test]
fn who_asks_at_a_listener_is_told_of_that_listener() -> Result {
    let cluster = Cluster::builder().brokers(2).listeners(["INSIDE", "OUTSIDE"]).start()?;
    cluster.create_topic("orders", 2, 2)?;
    cluster.produce("orders", numbered(10))?;
    for name in ["INSIDE", "OUTSIDE"] {
        let addresses: Vec<String> = cluster
            .brokers()
            .iter()
            .map(|broker| broker.listener(name).ok_or("no listener"))
            .collect::<std::result::Result<_, _>>()?;
        let seen = Client::new(addresses.join(",")).brokers()?;
        let mut seen: Vec<String> = seen.into_iter().map(|(_, address)| address).collect();
        seen.sort_by_key(|address| addresses.iter().position(|it| it == address));
        assert_eq!(seen, addresses);
    }
    assert_eq!(cluster.broker(0).listener("INSIDE"), Some(cluster.broker(0).address()));
    Ok(())
}
