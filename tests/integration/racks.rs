//! Fetching from a follower in our own rack (KIP-392).

use kafka_troupe::StatusSnapshot;
use troupe_cluster::{Cluster, KafkaVersion, PartitionMetadata};

use crate::support::clusters::builder;
use crate::support::load::Load;
use crate::support::records::Reading;
use crate::support::system::run;
use crate::support::wait::until;
use crate::support::zk_log::GroupHistory;

const TOPIC: &str = "near";
const RACKS: [&str; 2] = ["a", "b"];

fn placed(cluster: &Cluster) -> PartitionMetadata {
    cluster.client().partitions(TOPIC).unwrap().remove(0)
}

fn bytes(status: &StatusSnapshot, broker: i32) -> u64 {
    status.brokers.iter().find(|it| it.id == broker).map_or(0, |it| it.bytes)
}

/// Waits until this broker sends us records and the other one does not any more.
async fn wait_for_source(reading: &Reading, source: i32) {
    let mut before = reading.status().await;
    for _ in 0..200 {
        reading.log.wait_for_more(400).await;
        let now = reading.status().await;
        let grown = |broker| bytes(&now, broker) != bytes(&before, broker);
        if grown(source) && !grown(1 - source) {
            return;
        }
        before = now;
    }
    panic!("broker {source} is not what is read from: {before:?}");
}

#[test]
fn a_member_reads_from_the_follower_in_its_rack_while_there_is_one() {
    let selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector";
    let cluster = builder(KafkaVersion::V3_9_1)
        .brokers(2)
        .broker_property("replica.selector.class", selector)
        .broker_property_of(0, "broker.rack", RACKS[0])
        .broker_property_of(1, "broker.rack", RACKS[1])
        .start()
        .unwrap();
    cluster.create_topic(TOPIC, 1, 2).unwrap();
    let leader = placed(&cluster).leader;
    let follower = 1 - leader;
    let rack = RACKS[usize::try_from(follower).unwrap()];
    let load = Load::start(&cluster, TOPIC);
    run(async {
        let reading = Reading::start(&cluster, TOPIC, "m", &[("client.rack", rack)]).await;
        wait_for_source(&reading, follower).await;
        let its = cluster.broker(usize::try_from(follower).unwrap());
        its.kill().unwrap();
        wait_for_source(&reading, leader).await;
        its.restart().unwrap();
        until("the follower in sync", || {
            let partition = placed(&cluster);
            let same = partition.leader == leader && partition.isr.len() == 2;
            if same { Ok(()) } else { Err(format!("{partition:?}")) }
        });
        wait_for_source(&reading, follower).await;
        load.end();
        reading.log.wait_for_all(&cluster, TOPIC).await;
        reading.member.shutdown().await;
        let history = reading.log.history(TOPIC);
        history.check(&GroupHistory::of(&cluster, TOPIC));
        assert_eq!(history.duplicates(), 0);
    });
}
