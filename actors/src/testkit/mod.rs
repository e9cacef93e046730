//! ZooKeeper and brokers in memory, and a clock that stands: a whole group in one thread, for tests. Only with the
//! feature `testkit`.
//!
//! The fakes pass the same conformance tests as the real servers (`tests/zk_port.rs`, `tests/broker_conformance`).
//! What they are told to do (lose a connection, expire a session, move a leader) they do at once; how long answers take
//! is the test's to say ([`Pace`]).

pub mod clock;

mod brokers;
mod zookeeper;

use std::sync::Arc;
use std::time::Duration;

pub use brokers::{
    Generation, MemoryBrokers, OffsetStored, OffsetsFault, RequestSeen, RequestWatch, Spoilt, StoredRecord,
};
use kafka_troupe_proto::config::ConsumerConfig;
pub use zookeeper::{MemoryConnector, MemoryZooKeeper, Znode};

use crate::broker_connection::ConnectOptions;
use crate::fetcher_manager::FetchSettings;

/// How long the next request or answer is under way. Asked once for each; zero at first.
pub type Pace = Arc<dyn Fn() -> Duration + Send + Sync>;

/// How fetching is done by the defaults of all properties, with brokers dialled as given.
pub fn fetch_settings(connect: ConnectOptions) -> FetchSettings {
    let config = ConsumerConfig::builder().zookeeper_connect("memory").group_id("g").build();
    let config = config.expect("what is required is set, and the defaults are in their bounds");
    FetchSettings { connect, ..FetchSettings::from(&config) }
}

/// Waits out a delay, if it is one.
async fn pause_until(at: tokio::time::Instant) {
    if at > tokio::time::Instant::now() {
        tokio::time::sleep_until(at).await;
    }
}
