//! Real ZooKeeper and Kafka servers as child processes on free ports of 127.0.0.1, for Troupe's tests, benches
//! and demo. Blocking and without an async runtime, and independent of Troupe's own crates, so that what it
//! observes is a second opinion.
//!
//! ```no_run
//! use troupe_cluster::{Cluster, KafkaVersion, ProduceRecord};
//!
//! # fn main() -> Result<(), troupe_cluster::ClusterError> {
//! let cluster = Cluster::start(KafkaVersion::V3_9_1, 1)?;
//! cluster.create_topic("orders", 4, 1)?;
//! cluster.produce("orders", (0..1000).map(|n| ProduceRecord::value(format!("order {n}"))))?;
//! cluster.broker(0).kill()?;
//! cluster.broker(0).restart()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Map
//! - `version`: the table of server generations; [`KafkaVersion`] and [`ZooKeeperVersion`].
//! - `jars`: fetches a generation's jars once, into a cache under the target folder.
//! - `debian`: programs that are installed where they are missing.
//! - `keeper`: one process and the shell that ends it when we end, however we end.
//! - [`ZooKeeper`], [`Broker`], [`JavaChild`], [`Program`]: what runs in a keeper.
//! - [`Ensemble`]: one ZooKeeper, or several with a leader, and the links between them.
//! - [`Proxy`]: a network between a client and a server that fails on purpose.
//! - `golden/regenerate` (a script): asks the real assignors of three generations, for proto's tests of ours.
//! - `wire`, `batch`, [`Client`]: the few Kafka requests that tests need: topics, produce, end offsets.
//! - [`running`]: the cluster that `cargo cluster up` has started, or another, for examples.
//! - [`TransactionLog`]: what a ZooKeeper server has written, read from its files.
//! - `groups`, [`StoredOffset`]: what brokers store of consumer groups, and what their topic remembers.
//! - `generation`: at which versions of them; `admin`, `znodes`: topics of brokers that have no requests for them.
//! - `properties`: what each release needs in `server.properties`, in ZooKeeper and in KRaft mode.
//! - [`JavaProducer`], [`JavaMember`], [`JavaRecord`]: Kafka's own clients, by the programs in `java/`; [`entries`]: what they and the
//!   brokers have made of it in the log.
//! - `examples/golden_logs`: writes the logs of each generation that proto's tests read.
//!
//! # Non-obvious
//! - Nothing here needs `Drop` to run: a keeper ends its process, and the janitor removes the data folder, as soon
//!   as our end of a pipe closes. So a panic, Ctrl-C, kill -9 and a cluster in a `static` all leave nothing behind.
//! - A broker that is started while its predecessor's ephemeral node is alive ends itself (`NodeExists`), so a
//!   restart after a kill first waits until ZooKeeper has expired the old session.
//! - Servers of an ensemble know each other under different addresses: each has a proxy of its own to the quorum port of
//!   each other. Later versions tell each other the election address that they have, so that port has none.
//! - A broker of 0.8 tells its clients of no broker until there is a topic; then, of all.
//! - In KRaft mode broker 0 is the only controller: while it is down no leader changes. ZooKeeper runs all the same, for
//!   the groups of Troupe and of the old consumer.
//! - The features of a KRaft broker (`metadata.version`, `transaction.version`) are its release's defaults from its first
//!   start on, and stay in an upgrade.
//! - SIGSTOP is not at once: one thread takes it and stops the others. `pause` waits until all stand still.
#![deny(missing_docs)]

mod admin;
mod batch;
mod broker;
mod client;
mod cluster;
mod connection;
mod debian;
mod ensemble;
mod error;
mod generation;
mod groups;
mod jars;
mod java_child;
mod java_clients;
mod keeper;
mod metadata;
mod poll;
mod port;
mod produce;
mod program;
mod properties;
mod proxy;
mod running;
mod scratch;
mod segment;
mod server;
mod stored_offsets;
mod transaction_log;
mod version;
mod wire;
mod znodes;
mod zookeeper;

pub use broker::Broker;
pub use client::Client;
pub use cluster::{Cluster, ClusterBuilder};
pub use debian::debian_program;
pub use ensemble::Ensemble;
pub use error::ClusterError;
pub use jars::cache_root;
pub use java_child::JavaChild;
pub use java_clients::{JavaMember, JavaProducer, JavaRecord};
pub use metadata::PartitionMetadata;
pub use port::free_port;
pub use produce::ProduceRecord;
pub use program::Program;
pub use proxy::Proxy;
pub use running::{Running, argument, running};
pub use segment::entries;
pub use stored_offsets::StoredOffset;
pub use transaction_log::{Change, Transaction, TransactionLog};
pub use version::{KafkaVersion, ZooKeeperVersion};
pub use zookeeper::ZooKeeper;
