//! `troupe`, each command beside the old tool that it stands for, on the same real servers: the same facts.
//!
//! The clusters are shared: names of topics and groups are a test's own.

mod broker_entries;
mod cli;
mod config_check;
mod connect_strings;
mod groups;
mod looking;
mod members;
mod offsets_copy;
mod offsets_dump;
mod offsets_file;
mod offsets_get;
mod old_tools;
mod partition_reader;
mod readme;
mod reset;
mod simple_shell;
mod verify;
mod watch;
mod znodes;

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use troupe_cluster::{Cluster, KafkaVersion};

/// Longer than anything here takes on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Below what Kafka 1.1.1 has in ZooKeeper.
pub const CHROOT: &str = "/kafka/a";

macro_rules! clusters {
    ($($(#[$doc:meta])* $name:ident: $builder:expr;)+) => { $(
        $(#[$doc])*
        pub fn $name() -> &'static Cluster {
            static CLUSTER: OnceLock<Cluster> = OnceLock::new();
            CLUSTER.get_or_init(|| $builder.start().unwrap())
        }
    )+ };
}

/// Makes a test of each scenario on each cluster: `on_each! { [on_1_1_1 V1_1_1, on_3_9_1 V3_9_1] (this, that) }`.
macro_rules! on_each {
    ([$($cluster:ident $version:ident),+] $scenarios:tt) => {
        $( $crate::on_each!(@ $cluster $version $scenarios); )+
    };
    (@ $cluster:ident $version:ident ($($scenario:ident),+ $(,)?)) => {
        mod $cluster {
            $( #[test] fn $scenario() { super::$scenario($crate::$cluster(), super::KafkaVersion::$version); } )+
        }
    };
}
pub(crate) use on_each;

clusters! {
    /// Kafka 0.8.2.2, two brokers.
    on_0_8_2_2: Cluster::builder().kafka(KafkaVersion::V0_8_2_2).brokers(2);
    /// Kafka 1.1.1, the last with the old consumer and its tools; below [`CHROOT`].
    on_1_1_1: Cluster::builder().kafka(KafkaVersion::V1_1_1).chroot(CHROOT);
    /// Kafka 3.9.1, the last with ZooKeeper.
    on_3_9_1: Cluster::builder().kafka(KafkaVersion::V3_9_1);
    /// Kafka 4.1.1, and a ZooKeeper that is not Kafka's.
    on_4_1_1: Cluster::builder().kafka(KafkaVersion::V4_1_1);
}

/// Asks again and again until `look` finds something.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) => assert!(begun.elapsed() < PATIENCE, "not in time: {what}; last seen: {seen}"),
        }
        thread::sleep(Duration::from_millis(50));
    }
}
