//! What brokers tell of partitions: the ends of their logs, and offsets that are stored in Kafka.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::config::{ConsumerConfig, IsolationLevel};
use kafka_troupe_proto::kafka::list_offsets::LATEST;

use crate::admin::{KafkaAdmin, LogOffsets};
use crate::broker_connection::ConnectOptions;
use crate::fetcher_manager::KnownBrokers;

/// How long the brokers are waited for: what they do not tell by then is left out of the view.
const PATIENCE: Duration = Duration::from_secs(3);

/// The brokers, as far as a view needs them.
pub(super) struct Brokers {
    group: String,
    read_committed: bool,
    connect: ConnectOptions,
    known: Arc<KnownBrokers>,
}

impl Brokers {
    pub(super) fn new(config: &ConsumerConfig, connect: ConnectOptions, known: Arc<KnownBrokers>) -> Self {
        let read_committed = config.isolation_level == IsolationLevel::ReadCommitted;
        Self { group: config.group_id.clone(), read_committed, connect, known }
    }

    /// The view is read again when somebody looks again.
    fn admin(&self) -> KafkaAdmin {
        let admin = KafkaAdmin::from_brokers(self.known.get(), self.connect.clone());
        admin.with_timeout(PATIENCE).asking_once().with_read_committed(self.read_committed)
    }

    /// The ends of logs, and why some are missing.
    pub(super) async fn log_ends(
        &self,
        keys: &[TopicPartition],
    ) -> (BTreeMap<TopicPartition, i64>, Vec<String>) {
        told(self.admin().log_offsets(keys, LATEST).await)
    }

    /// The offsets that the group has stored in Kafka.
    ///
    /// # Errors
    /// Why they cannot be told.
    pub(super) async fn committed(
        &self,
        keys: &[TopicPartition],
    ) -> Result<BTreeMap<TopicPartition, i64>, String> {
        let committed = self.admin().of_groups_in_kafka().committed(&self.group, Some(keys)).await;
        let committed = committed.map_err(|error| error.to_string())?;
        Ok(committed.into_iter().map(|(key, committed)| (key, committed.offset)).collect())
    }
}

/// The offsets that were told, and why others were not: once for all that lack the same.
pub(crate) fn told(offsets: LogOffsets) -> (BTreeMap<TopicPartition, i64>, Vec<String>) {
    let mut told = BTreeMap::new();
    let mut missing = BTreeMap::<String, BTreeSet<TopicPartition>>::new();
    for (key, offset) in offsets {
        match offset {
            Ok(offset) => told.extend(offset.map(|offset| (key, offset))),
            Err(why) => drop(missing.entry(why).or_default().insert(key)),
        }
    }
    let reasons = missing.iter().map(|(why, keys)| {
        let first = keys.first().map(ToString::to_string).unwrap_or_default();
        match keys.len() {
            1 => format!("end of {first}: {why}"),
            more => format!("ends of {first} and {} more: {why}", more - 1),
        }
    });
    (told, reasons.collect())
}
