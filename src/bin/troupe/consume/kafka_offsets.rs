//! What a group has stored in Kafka (`offsets.storage=kafka`). The old tool looked at ZooKeeper alone: then the offsets
//! in Kafka were still there, and counted.

use std::time::Duration;

use kafka_troupe::ConsumerConfig;
use kafka_troupe::actors::broker_connection::ConnectOptions;
use kafka_troupe::admin::{AdminError, KafkaAdmin, ZooKeeperAdmin};
use kafka_troupe::proto::config::OffsetsStorage;
use kafka_troupe::proto::kafka::offsets_topic::OFFSETS_TOPIC;
use kafka_troupe::proto::zk::broker::SecurityProtocol;

use crate::exit::Failure;

/// So long its coordinator may take to be there.
const PATIENCE: Duration = Duration::from_secs(30);

/// The brokers that have them.
pub struct KafkaOffsets<'a> {
    brokers: KafkaAdmin,
    config: &'a ConsumerConfig,
}

impl<'a> KafkaOffsets<'a> {
    /// None where the group stores nothing in Kafka.
    pub async fn of(
        config: &'a ConsumerConfig,
        zookeeper: &ZooKeeperAdmin,
    ) -> Result<Option<Self>, AdminError> {
        if config.offsets_storage != OffsetsStorage::Kafka {
            return Ok(None);
        }
        let options = ConnectOptions::new(&config.client_id, config.offsets_channel_socket_timeout);
        let brokers = match config.bootstrap_servers.addresses() {
            [] => KafkaAdmin::from_brokers(zookeeper.brokers(SecurityProtocol::Plaintext).await?.0, options),
            servers => KafkaAdmin::connect(servers.to_vec(), options).await?,
        };
        Ok(Some(Self { brokers: brokers.with_timeout(PATIENCE), config }))
    }

    /// Whether there are any. Who asks for a coordinator has the topic of offsets made: so that is looked for first.
    pub async fn any(&self) -> Result<bool, AdminError> {
        let kept = self.brokers.topics().await?.contains_key(OFFSETS_TOPIC);
        Ok(kept && !self.brokers.committed(&self.config.group_id, None).await?.is_empty())
    }

    /// Deletes them, with what else brokers know of the group; those before 1.1 cannot
    /// ([`AdminError::Unsupported`]).
    pub async fn delete(&self) -> Result<(), AdminError> {
        if !self.any().await? {
            return Ok(());
        }
        match self.brokers.delete_group(&self.config.group_id).await {
            Err(AdminError::NoSuchGroup { .. }) => Ok(()),
            deleted => deleted,
        }
    }
}

/// What else can be done where brokers cannot delete them.
pub fn advice(config: &ConsumerConfig, error: &AdminError) -> Failure {
    let ConsumerConfig { group_id: group, zookeeper_connect, .. } = config;
    Failure::work(format!(
        "{error}. The group has offsets in Kafka, and these count: nothing is deleted. To begin again, set them, with \
         troupe groups reset --zookeeper {zookeeper_connect} --group {group} --all-topics --to-earliest --execute; then \
         consume without --delete-consumer-offsets and --from-beginning"
    ))
}
