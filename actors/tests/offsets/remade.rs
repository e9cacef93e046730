//! A topic that is deleted, at real brokers.

use kafka_troupe_proto::config::OffsetReset;
use troupe_cluster::{Cluster, KafkaVersion};

use crate::real_logs::{Reader, produce, settings};

/// A topic that is gone is waited for, gets no position, and is not made by our asking.
async fn a_deleted_topic_is_waited_for(version: KafkaVersion) {
    let makes_topics = Cluster::builder().kafka(version).broker_property("auto.create.topics.enable", "true");
    let cluster = makes_topics.start().unwrap();
    cluster.create_topic("t", 1, 1).unwrap();
    produce(&cluster, "old", 10);
    let reader = Reader::start(&cluster, settings(OffsetReset::Smallest), Some(7)).await;
    assert_eq!(reader.offsets("old", 3).await.len(), 3);
    cluster.client().delete_topic("t").unwrap();
    for _ in 0..3 {
        reader.until_waiting_for("topic metadata").await;
        // its leader is looked up anew
        reader.fetch();
        reader.until_looked_up().await;
    }
    assert_eq!((reader.claimed.acked(), reader.other.stored()), (10, Some((7, 0))));
    assert!(cluster.client().topics().unwrap().iter().all(|topic| topic != "t"));
    assert!(reader.describe().await.waiting.iter().all(|waiting| !waiting.failed));
}

#[actix::test]
async fn a_deleted_topic_in_0_8_2_2() {
    a_deleted_topic_is_waited_for(KafkaVersion::V0_8_2_2).await;
}

#[actix::test]
async fn a_deleted_topic_in_0_10_2_2() {
    a_deleted_topic_is_waited_for(KafkaVersion::V0_10_2_2).await;
}

#[actix::test]
async fn a_deleted_topic_in_3_9_1() {
    a_deleted_topic_is_waited_for(KafkaVersion::V3_9_1).await;
}
