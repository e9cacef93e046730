//! Connections to a broker: several of them (`num.consumer.fetchers`), and those that it closes for being idle.

use futures_util::StreamExt;
use kafka_troupe::actors::chaos::CrashChild;
use kafka_troupe::{ConsumerHandle, ConsumerSystem, KafkaStream};
use tokio::time::timeout;
use troupe_cluster::{Cluster, KafkaVersion};

use crate::support::clusters::builder;
use crate::support::load::{Load, numbered};
use crate::support::records::Reading;
use crate::support::system::{config, restarts, run};
use crate::support::wait::{PATIENCE, until, until_async};
use crate::support::zk_log::GroupHistory;

/// A broker whose connections can be counted; what is not fetched by is closed soon.
fn start(version: KafkaVersion, idle_ms: u32) -> Cluster {
    let idle_ms = idle_ms.to_string();
    builder(version).proxied_brokers().broker_property("connections.max.idle.ms", idle_ms).start().unwrap()
}

/// A broker that is slow closes the connection on which it is asked for the topic, too, and makes it all the same.
fn create_topic(cluster: &Cluster, name: &str, partitions: i32) {
    until("the topic", || match cluster.create_topic(name, partitions, 1) {
        Err(error) if !cluster.client().topics().is_ok_and(|all| all.iter().any(|it| it == name)) => {
            Err(error.to_string())
        }
        _ => Ok(()),
    });
    until("its leaders", || cluster.wait_for_leaders(name).map_err(|error| error.to_string()));
}

/// Of anybody, to the broker.
async fn wait_for_connections(cluster: &Cluster, count: usize) {
    let proxy = cluster.broker(0).proxy().expect("it has one");
    until_async(&format!("{count} connections"), async || match proxy.connections() {
        now if now == count => Ok(()),
        now => Err(now.to_string()),
    })
    .await;
}

#[test]
fn three_fetchers_share_a_broker_by_a_connection_each_and_lose_nothing() {
    let (cluster, name) = (start(KafkaVersion::V3_9_1, 5_000), "shared");
    create_topic(&cluster, name, 12);
    cluster.produce(name, numbered(6_000)).unwrap();
    run(async {
        let reading = Reading::start(&cluster, name, "m", &[("num.consumer.fetchers", "3")]).await;
        reading.log.wait_for_all(&cluster, name).await;
        wait_for_connections(&cluster, 3).await;
        let before = reading.status().await.brokers;
        assert!(before.iter().all(|row| row.id == 0 && row.partitions == 4 && row.connected), "{before:?}");

        let load = Load::start(&cluster, name);
        cluster.broker(0).proxy().expect("it has one").reset();
        reading.log.wait_for_more(400).await;
        reading.member.address().send(CrashChild("broker-fetchers".to_owned())).await.unwrap();
        for fetcher in ["broker-fetcher/0-0", "broker-fetcher/1-0", "broker-fetcher/2-0"] {
            until_async(fetcher, async || match restarts(&reading.member, fetcher).await {
                1 => Ok(()),
                other => Err(other.to_string()),
            })
            .await;
        }
        reading.log.wait_for_more(400).await;
        load.end();
        reading.log.wait_for_all(&cluster, name).await;
        wait_for_connections(&cluster, 3).await;
        let after = reading.status().await.brokers;
        let each_had_more = before.iter().zip(&after).all(|(before, after)| after.bytes > before.bytes);
        assert!(each_had_more && after.len() == 3, "{before:?}, then {after:?}");
        reading.member.shutdown().await;
        let history = reading.log.history(name);
        history.check(&GroupHistory::of(&cluster, name));
        assert_eq!(history.duplicates(), 0);
    });
}

async fn pull(stream: &mut KafkaStream, offsets: std::ops::Range<i64>) {
    for offset in offsets {
        let record = timeout(PATIENCE, stream.next()).await.expect("a record in time");
        assert_eq!(record.expect("no end").expect("it can be read").offset(), offset);
    }
}

async fn failures(member: &ConsumerHandle) -> Vec<String> {
    let status = member.metrics().await.expect("the member runs");
    let waiting = status.waiting.iter().map(|it| it.why.clone());
    let brokers = status.brokers.into_iter().map(|it| it.last_error).filter(|error| !error.is_empty());
    waiting.chain(brokers).collect()
}

#[test]
fn a_connection_that_the_broker_closes_while_a_stream_is_full_is_no_failure() {
    let (cluster, name) = (start(KafkaVersion::V1_1_1, 2_000), "resting");
    create_topic(&cluster, name, 1);
    run(async {
        let properties = [("queued.max.message.chunks", "1"), ("fetch.message.max.bytes", "1000")];
        let config = config(&cluster, name, "m", &properties);
        let system = ConsumerSystem::builder(config).pull(name, 1).start().await.unwrap();
        let mut stream = system.streams(name).pop().expect("one stream");
        for round in 0..3 {
            let first = round * 500;
            cluster.produce(name, numbered(500)).unwrap();
            // its queue is full then, and nobody asks the broker for anything
            pull(&mut stream, first..first + 1).await;
            wait_for_connections(&cluster, 0).await;
            pull(&mut stream, first + 1..first + 500).await;
            assert_eq!(failures(&system).await, [""; 0], "round {round}");
        }
        system.shutdown().await;
    });
}
