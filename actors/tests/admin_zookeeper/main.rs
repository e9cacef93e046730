//! Groups in ZooKeeper, looked after from outside: in memory, and on the servers that Kafka shipped.

mod deleting;
mod offsets;
mod servers;
mod viewing;

use std::time::Duration;

use kafka_troupe_actors::admin::{AdminError, ZooKeeperAdmin};
use kafka_troupe_actors::testkit::MemoryZooKeeper;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::zk::broker::SecurityProtocol;

const PATIENCE: Duration = Duration::from_secs(30);

async fn admin(zookeeper: &MemoryZooKeeper) -> ZooKeeperAdmin {
    let servers = "memory".parse().expect("a connect string");
    ZooKeeperAdmin::over(zookeeper, servers, PATIENCE).await.expect("it connects")
}

fn key(topic: &str, number: i32) -> TopicPartition {
    TopicPartition::new(topic, number)
}

#[actix::test]
async fn a_missing_chroot_is_named_and_not_made() {
    let zookeeper = MemoryZooKeeper::default();
    let servers = "memory/nowhere".parse().expect("a connect string");
    let refused = ZooKeeperAdmin::over(&zookeeper, servers, PATIENCE).await.map(drop).unwrap_err();
    assert!(refused.to_string().contains("the chroot /nowhere does not exist"), "{refused}");
    assert!(zookeeper.children("/").is_empty());
}

#[actix::test]
async fn groups_and_members_are_told_in_order_and_where_nobody_ever_was_there_are_none() {
    let zookeeper = MemoryZooKeeper::default();
    let admin = admin(&zookeeper).await;
    assert_eq!(admin.groups().await.unwrap(), Vec::<String>::new());
    for node in ["b/ids/m2", "b/ids/m1", "a/offsets", "b c"] {
        zookeeper.put(&format!("/consumers/{node}"), b"");
    }
    assert_eq!(admin.groups().await.unwrap(), ["a", "b", "b c"]);
    assert_eq!(admin.members("b").await.unwrap(), ["m1", "m2"]);
    assert_eq!(admin.members("a").await.unwrap(), Vec::<String>::new());
    assert!(admin.group_exists("b c").await.unwrap() && !admin.group_exists("c").await.unwrap());
    admin.close().await;
    assert!(zookeeper.sessions().is_empty(), "it says that it goes");
}

#[actix::test]
async fn b27_a_name_that_would_name_another_node_is_refused() {
    let zookeeper = MemoryZooKeeper::default();
    zookeeper.put("/consumers/a/offsets/t/0", b"1");
    let admin = admin(&zookeeper).await;
    for group in ["a/offsets", "..", ".", "", "a\n"] {
        let refused = admin.delete_group(group).await.unwrap_err();
        assert!(matches!(refused, AdminError::Name { what: "group", .. }), "{refused}");
    }
    let refused = admin.put_offset("a", &key("t/0", 0), 1).await.unwrap_err();
    assert!(matches!(refused, AdminError::Name { what: "topic", .. }), "{refused}");
    assert!(zookeeper.node("/consumers/a/offsets/t/0").is_some());
}

#[actix::test]
async fn b26_a_broker_that_cannot_be_used_is_left_out_and_named() {
    let zookeeper = MemoryZooKeeper::default();
    let admin = admin(&zookeeper).await;
    let none = admin.brokers(SecurityProtocol::Plaintext).await.unwrap_err();
    assert!(none.to_string().contains("none is registered in /brokers/ids"), "{none}");
    zookeeper
        .put("/brokers/ids/2", br#"{"version":4,"host":null,"port":-1,"endpoints":["SASL_SSL://two:9093"]}"#);
    zookeeper.put("/brokers/ids/1", b"creator:host:9092");
    let none = admin.brokers(SecurityProtocol::Plaintext).await.unwrap_err();
    assert!(none.to_string().contains("it offers SASL_SSL://two:9093"), "{none}");
    assert!(none.to_string().contains("/brokers/ids/1 cannot be read"), "{none}");
    zookeeper.put("/brokers/ids/10", br#"{"version":4,"endpoints":["PLAINTEXT://[2001:db8::1]:9092"]}"#);
    let (brokers, warnings) = admin.brokers(SecurityProtocol::Plaintext).await.unwrap();
    let [broker] = &brokers[..] else { panic!("{brokers:?}") };
    assert_eq!((broker.id, broker.host.as_str(), broker.port), (10, "2001:db8::1", 9092));
    assert_eq!(warnings.len(), 2, "{warnings:?}");
}

#[actix::test]
async fn partitions_are_told_in_order_and_of_no_topic_none() {
    let zookeeper = MemoryZooKeeper::default();
    zookeeper.put("/brokers/topics/t", br#"{"version":1,"partitions":{"10":[0],"2":[0]}}"#);
    zookeeper.put("/brokers/topics/bad", b"{");
    let admin = admin(&zookeeper).await;
    assert_eq!(admin.partitions("t").await.unwrap(), Some(vec![2, 10]));
    assert_eq!(admin.partitions("none").await.unwrap(), None);
    let bad = admin.partitions("bad").await.unwrap_err();
    assert!(bad.to_string().contains("/brokers/topics/bad"), "{bad}");
}
