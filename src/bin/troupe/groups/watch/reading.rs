//! Reads a group again and again, and connects anew after a failure.

use std::time::Duration;

use kafka_troupe::admin::{KafkaAdmin, ZooKeeperAdmin};
use kafka_troupe::proto::config::ServerAddress;
use kafka_troupe::proto::zk::broker::SecurityProtocol;
use tokio::sync::mpsc::Sender;
use tokio::time::{MissedTickBehavior, interval};

use super::super::Coordination;
use super::super::kafka_group::ReadGroup;
use super::snapshot::Snapshot;
use crate::exit::Failure;
use crate::servers::{Servers, Settings};
use crate::time::now_ms;

/// Who reads a group.
pub struct Reader {
    servers: Servers,
    group: String,
    settings: Settings,
    bootstrap: Option<Vec<ServerAddress>>,
    /// A session that has not failed.
    zookeeper: Option<ZooKeeperAdmin>,
}

impl Reader {
    /// Asks nobody yet: servers that are away are no error for who waits for them.
    ///
    /// # Errors
    /// The command line.
    pub fn new(servers: Servers, group: String) -> Result<Self, Failure> {
        servers.require_one()?;
        if servers.zookeeper.is_some() {
            servers.connect_string()?;
        }
        let (settings, bootstrap) = (servers.settings()?, servers.bootstrap()?);
        Ok(Self { servers, group, settings, bootstrap, zookeeper: None })
    }

    /// Until nobody takes what is read.
    pub async fn read_for_ever(mut self, every: Duration, reads: Sender<Result<Snapshot, String>>) {
        let mut ticks = interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let read = async {
                ticks.tick().await;
                self.read().await
            };
            let read = tokio::select! {
                read = read => read,
                () = reads.closed() => break,
            };
            let is_failed = read.is_err();
            if reads.send(read.map_err(|why| why.to_string())).await.is_err() {
                break;
            }
            if is_failed {
                self.close().await;
            }
        }
        self.close().await;
    }

    async fn close(&mut self) {
        if let Some(zookeeper) = self.zookeeper.take() {
            zookeeper.close().await;
        }
    }

    async fn read(&mut self) -> Result<Snapshot, Failure> {
        if self.servers.zookeeper.is_none() {
            return self.of_kafka().await;
        }
        let in_zookeeper = self.of_zookeeper().await?;
        if in_zookeeper.exists || self.bootstrap.is_none() { Ok(in_zookeeper) } else { self.of_kafka().await }
    }

    async fn of_zookeeper(&mut self) -> Result<Snapshot, Failure> {
        let zookeeper = match self.zookeeper.take() {
            Some(zookeeper) => zookeeper,
            None => self.servers.zookeeper().await?,
        };
        let zookeeper = self.zookeeper.insert(zookeeper);
        if !zookeeper.group_exists(&self.group).await? {
            return Ok(Snapshot::absent(now_ms(), &self.group, Coordination::ZooKeeper));
        }
        // those that stand in ZooKeeper come and go
        let (brokers, warnings) = match &self.bootstrap {
            Some(servers) => bootstrapped(servers, &self.settings).await,
            None => registered(zookeeper, &self.settings).await,
        };
        let view = zookeeper.view(&self.group, brokers.as_ref()).await?;
        let mut snapshot = Snapshot::of_view(view);
        snapshot.errors.splice(0..0, warnings);
        Ok(snapshot)
    }

    async fn of_kafka(&self) -> Result<Snapshot, Failure> {
        let servers = self.bootstrap.clone().unwrap_or_default();
        let kafka = KafkaAdmin::connect(servers, self.settings.connect_options()).await?;
        Ok(match ReadGroup::read(&kafka, &self.group).await? {
            Some(read) => Snapshot::of_kafka(now_ms(), &read),
            None => Snapshot::absent(now_ms(), &self.group, Coordination::Kafka),
        })
    }
}

/// The nodes are worth something without brokers.
async fn bootstrapped(servers: &[ServerAddress], settings: &Settings) -> (Option<KafkaAdmin>, Vec<String>) {
    match KafkaAdmin::connect(servers.to_vec(), settings.connect_options()).await {
        Ok(kafka) => (Some(kafka), Vec::new()),
        Err(why) => (None, vec![why.to_string()]),
    }
}

async fn registered(zookeeper: &ZooKeeperAdmin, settings: &Settings) -> (Option<KafkaAdmin>, Vec<String>) {
    match zookeeper.brokers(SecurityProtocol::Plaintext).await {
        Ok((brokers, warnings)) => {
            (Some(KafkaAdmin::from_brokers(brokers, settings.connect_options())), warnings)
        }
        Err(why) => (None, vec![why.to_string()]),
    }
}
