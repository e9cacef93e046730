//! Where groups are: in ZooKeeper, in Kafka, or in both.

use kafka_troupe::admin::{AdminError, KafkaAdmin, KafkaGroupListing, ZooKeeperAdmin};

use crate::exit::Failure;
use crate::servers::Servers;

/// The servers that a command is told of.
pub struct Places {
    /// `--zookeeper`
    pub zookeeper: Option<ZooKeeperAdmin>,
    /// `--bootstrap-server`
    pub kafka: Option<KafkaAdmin>,
}

impl Places {
    /// An error that names both flags where neither is given.
    pub async fn of(servers: &Servers) -> Result<Self, Failure> {
        servers.require_one()?;
        let zookeeper = match &servers.zookeeper {
            Some(_) => Some(servers.zookeeper().await?),
            None => None,
        };
        let kafka = match &servers.bootstrap_server {
            Some(_) => Some(servers.kafka().await?),
            None => None,
        };
        Ok(Self { zookeeper, kafka })
    }

    /// The names of all groups, once each; and why some may be missing.
    pub async fn names(&self) -> Result<(Vec<String>, Option<Failure>), AdminError> {
        let (mut names, mut failed) = (Vec::new(), None);
        if let Some(zookeeper) = &self.zookeeper {
            names.extend(zookeeper.groups().await?);
        }
        if let Some(kafka) = &self.kafka {
            match of_kafka(kafka).await {
                Ok((groups, why)) => {
                    names.extend(groups.into_iter().map(|group| group.name));
                    failed = why;
                }
                // there are none, then: brokers of 0.8 coordinate no groups
                Err(AdminError::Unsupported { .. }) if self.zookeeper.is_some() => {}
                Err(why) => return Err(why),
            }
        }
        names.sort_unstable();
        names.dedup();
        Ok((names, failed))
    }

    /// Ends the session.
    pub async fn close(self) {
        if let Some(zookeeper) = self.zookeeper {
            zookeeper.close().await;
        }
    }
}

/// What groups of consumers speak; that of Kafka Connect, for one, is something else.
const OF_CONSUMERS: [&str; 4] = ["", "consumer", "share", "streams"];

/// The groups of consumers, of brokers that tell; and why some may be missing.
pub async fn of_kafka(kafka: &KafkaAdmin) -> Result<(Vec<KafkaGroupListing>, Option<Failure>), AdminError> {
    let (mut groups, silent) = kafka.groups().await?;
    groups.retain(|group| OF_CONSUMERS.contains(&group.protocol_type.as_str()));
    let missing = format!("groups may be missing: {}", silent.join("; "));
    Ok((groups, (!silent.is_empty()).then(|| Failure::work(missing))))
}
