//! On real servers: 3.4.10, which Kafka shipped from 0.8 to 1.1, and 3.8.

use std::sync::Arc;
use std::time::Duration;

use kafka_troupe_actors::admin::{AdminError, ZooKeeperAdmin};
use kafka_troupe_actors::lease::SessionEpoch;
use kafka_troupe_actors::zk_session::port::{ConnectSpec, NodeMode, ZkClient, ZkConnector};
use kafka_troupe_actors::zk_session::{SessionConfig, ZooKeeperAsync};
use troupe_cluster::{Cluster, ZooKeeperVersion};

use super::{PATIENCE, key};

async fn member(connect: &str) -> Arc<dyn ZkClient> {
    let mut config = SessionConfig::new(connect.parse().expect("a connect string"));
    config.session_timeout = Duration::from_secs(3);
    let spec = ConnectSpec::new(SessionEpoch(1), &config);
    ZooKeeperAsync.connect(spec, Arc::new(|_| {})).await.expect("it connects")
}

async fn a_group_is_looked_after(version: ZooKeeperVersion) {
    let cluster = Cluster::builder().brokers(0).zookeeper(version).start().expect("a ZooKeeper server");
    let connect = cluster.zookeeper_connect();
    let client = member(&connect).await;
    client.create("/chroot", Vec::new(), NodeMode::Persistent).await.expect("it is made");
    client.close().await.expect("it is closed");
    let rooted = format!("{connect}/chroot");
    let missing = ZooKeeperAdmin::connect(format!("{connect}/none").parse().unwrap(), PATIENCE).await;
    assert!(missing.map(drop).unwrap_err().to_string().contains("the chroot /none does not exist"));

    let admin = ZooKeeperAdmin::connect(rooted.parse().unwrap(), PATIENCE).await.expect("it connects");
    assert!(admin.groups().await.unwrap().is_empty());
    admin.put_offset("g", &key("t", 0), 5).await.unwrap();
    admin.set_offset("g", &key("t", 1), 7, None).await.unwrap();
    let late = admin.set_offset("g", &key("t", 1), 7, Some(3)).await.unwrap_err();
    assert!(matches!(late, AdminError::Changed { .. }), "{late}");
    let offsets = admin.offsets("g").await.unwrap();
    let told: Vec<_> = offsets.iter().map(|it| (it.key.to_string(), it.offset.clone(), it.version)).collect();
    assert_eq!(told, [("t-0".to_owned(), Ok(5), 0), ("t-1".to_owned(), Ok(7), 0)]);

    let client = member(&rooted).await;
    client.create("/consumers/g/ids", Vec::new(), NodeMode::Persistent).await.expect("it is made");
    let record = br#"{"version":1,"subscription":{"t":1},"pattern":"static","timestamp":"1"}"#;
    client.create("/consumers/g/ids/g_m", record.to_vec(), NodeMode::Ephemeral).await.expect("it registers");
    let view = admin.view("g", None).await.unwrap();
    assert_eq!((view.members[0].id.as_str(), view.members[0].streams), ("g_m", 1));
    assert_ne!(view.members[0].session_id, 0);
    let left: Vec<_> = view.partitions.iter().map(|it| (it.exists, it.committed_zookeeper)).collect();
    assert_eq!(left, [(Some(false), Some(5)), (Some(false), Some(7))], "{view:#?}");
    let active = admin.delete_group("g").await.unwrap_err();
    assert!(matches!(active, AdminError::Active { .. }), "{active}");
    client.close().await.expect("it leaves");
    admin.delete_group("g").await.unwrap();
    assert!(!admin.group_exists("g").await.unwrap());
    admin.close().await;
}

#[actix::test]
async fn a_group_is_looked_after_on_3_4() {
    a_group_is_looked_after(ZooKeeperVersion::V3_4_10).await;
}

#[actix::test]
async fn a_group_is_looked_after_on_3_8() {
    a_group_is_looked_after(ZooKeeperVersion::V3_8_4).await;
}
