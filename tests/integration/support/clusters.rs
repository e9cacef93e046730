//! One cluster per Kafka version for all tests that do not harm servers, and more for those that do.

use std::sync::OnceLock;

use troupe_cluster::{Cluster, ClusterBuilder, KafkaVersion, ZooKeeperVersion};

/// Kafka's path in ZooKeeper.
pub const CHROOT: &str = "/kafka";

/// A version with the ZooKeeper that it brings.
pub fn builder(version: KafkaVersion) -> ClusterBuilder {
    let zookeeper = match version {
        old if old <= KafkaVersion::V1_1_1 => ZooKeeperVersion::V3_4_10,
        _ => ZooKeeperVersion::V3_8_4,
    };
    Cluster::builder().kafka(version).zookeeper(zookeeper).chroot(CHROOT)
}

/// The properties by which a member finds a cluster's brokers: none where they are in its ZooKeeper.
pub fn reached_by(cluster: &Cluster) -> Vec<String> {
    match cluster.broker(0).version().is_kraft() {
        true => {
            vec![format!("bootstrap.servers={}", cluster.bootstrap()), "metadata.max.age.ms=500".to_owned()]
        }
        false => Vec::new(),
    }
}

/// As [`builder`], with three ZooKeeper servers. The broker's session outlives every fault.
pub fn ensemble(version: KafkaVersion) -> ClusterBuilder {
    builder(version).zookeepers(3).broker_property("zookeeper.session.timeout.ms", "40000")
}

/// The version's cluster, which all tests share: each takes topics and groups of its own. It ends with the process.
pub fn shared(version: KafkaVersion) -> &'static Cluster {
    static SHARED: [OnceLock<Cluster>; KafkaVersion::ALL.len()] =
        [const { OnceLock::new() }; KafkaVersion::ALL.len()];
    let index = KafkaVersion::ALL.iter().position(|it| *it == version).expect("it is one of all");
    SHARED[index].get_or_init(|| builder(version).start().expect("a cluster starts"))
}

/// Makes a test of each function for each version: `v1_1_1::name` and `v3_9_1::name`.
#[macro_export]
macro_rules! on_each_version {
    ($($name:ident),+ $(,)?) => {
        mod v1_1_1 {
            $(#[test] fn $name() { super::$name(troupe_cluster::KafkaVersion::V1_1_1); })+
        }
        mod v3_9_1 {
            $(#[test] fn $name() { super::$name(troupe_cluster::KafkaVersion::V3_9_1); })+
        }
    };
}
