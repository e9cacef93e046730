//! The servers themselves: how they come back after faults.

use troupe_cluster::{Cluster, KafkaVersion, ProduceRecord, ZooKeeperVersion};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

fn numbered(count: u32) -> impl Iterator<Item = ProduceRecord> {
    (0..count).map(|number| ProduceRecord::value(format!("record {number}")))
}

#[test]
fn zookeeper_of_either_version_runs_alone() -> Result {
    for (version, name) in [(ZooKeeperVersion::V3_4_10, "3.4.10"), (ZooKeeperVersion::V3_8_4, "3.8.4")] {
        let cluster = Cluster::builder().zookeeper(version).brokers(0).start()?;
        let answer = cluster.zookeeper().command("srvr")?;
        assert!(answer.contains(&format!("Zookeeper version: {name}")), "{answer}");
    }
    Ok(())
}

#[test]
fn paused_servers_do_not_answer_until_resumed() -> Result {
    let cluster = Cluster::start(KafkaVersion::V3_9_1, 1)?;
    let zookeeper = cluster.zookeeper();
    zookeeper.pause()?;
    assert!(zookeeper.command("srvr").is_err());
    zookeeper.resume()?;
    assert!(zookeeper.command("srvr")?.contains("Mode: standalone"));

    let port = zookeeper.port();
    zookeeper.kill()?;
    assert!(zookeeper.pause().is_err_and(|error| error.to_string().contains("is not running")));
    zookeeper.restart()?;
    assert_eq!(zookeeper.port(), port);
    cluster.create_topic("after", 1, 1)?;

    cluster.broker(0).pause()?;
    let client = cluster.client();
    assert!(client.brokers().is_err());
    cluster.broker(0).resume()?;
    assert_eq!(client.brokers()?.len(), 1);
    Ok(())
}

#[test]
fn records_are_in_the_log_once_though_a_leader_is_killed_while_producing() -> Result {
    let cluster = Cluster::start(KafkaVersion::V3_9_1, 2)?;
    cluster.create_topic("replicated", 4, 2)?;
    let records = numbered(200_000).enumerate().map(|(index, record)| {
        if index == 100_000 {
            cluster.broker(1).kill().expect("a running broker can be killed");
        }
        record
    });
    // a client with both brokers, as an application would have
    assert_eq!(cluster.produce("replicated", records)?, 200_000);
    assert_eq!(cluster.log_end_offsets("replicated")?, [50_000; 4]);
    cluster.broker(1).restart()?;
    cluster.wait_for_leaders("replicated")?;
    Ok(())
}

#[test]
fn clients_of_a_proxied_broker_suffer_its_network() -> Result {
    let cluster = Cluster::builder().proxied_brokers().start()?;
    cluster.create_topic("orders", 1, 1)?;
    let broker = cluster.broker(0);
    let proxy = broker.proxy().ok_or("no proxy")?;
    assert_eq!(cluster.client().brokers()?, [(0, proxy.address())]);

    proxy.cut();
    assert!(cluster.client().brokers().is_err());
    proxy.heal();
    // a producer's replies: partitions, its id, the leader, and that the batch is in the log
    for (lost, end) in [(1, 10), (2, 20), (3, 30), (4, 40)] {
        proxy.lose_reply(lost);
        assert_eq!(cluster.produce("orders", numbered(10))?, 10);
        assert_eq!(cluster.log_end_offsets("orders")?, [end], "after reply {lost} was lost");
    }
    assert!(broker.restart_on_new_port().is_err());
    Ok(())
}

#[test]
fn a_server_that_ends_while_starting_is_an_error_with_its_log() {
    let failed = Cluster::builder().broker_property("log.retention.ms", "soon").start();
    let error = failed.map(drop).expect_err("a broker refuses a bad property").to_string();
    assert!(error.contains("broker-0 ended while starting"), "{error}");
    assert!(error.contains("log.retention.ms"), "{error}");
}
