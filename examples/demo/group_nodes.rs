//! What stands in ZooKeeper: who owns each partition, and how far it is committed.

use std::error::Error;
use std::sync::Arc;

use kafka_troupe::TopicPartition;
use kafka_troupe::actors::zk_session::port::{ConnectSpec, ZkClient, ZkConnector};
use kafka_troupe::actors::zk_session::{SessionConfig, SessionEpoch, ZkError, ZooKeeperAsync};
use kafka_troupe::proto::zk::offset::parse_offset;
use kafka_troupe::proto::zk::paths::GroupPaths;

use crate::member::{GROUP, TOPIC};

/// A session of its own, which is no member.
pub struct GroupNodes {
    client: Arc<dyn ZkClient>,
    paths: GroupPaths,
}

impl GroupNodes {
    pub async fn connect(zookeeper: &str) -> Result<Self, Box<dyn Error>> {
        let spec = ConnectSpec::new(SessionEpoch(1), &SessionConfig::new(zookeeper.parse()?));
        let client = ZooKeeperAsync.connect(spec, Arc::new(|_| {})).await?;
        Ok(Self { client, paths: GroupPaths::new(GROUP) })
    }

    /// The owner's name, such as `a`, if the partition is owned.
    pub async fn owner(&self, partition: i32) -> Result<Option<String>, ZkError> {
        let data = self.data(&self.paths.owner(&TopicPartition::new(TOPIC, partition))).await?;
        Ok(data.map(|thread| name_of(&String::from_utf8_lossy(&thread))))
    }

    /// The committed offset, if there is one.
    pub async fn committed(&self, partition: i32) -> Result<Option<i64>, Box<dyn Error>> {
        let path = self.paths.offset(&TopicPartition::new(TOPIC, partition));
        match self.data(&path).await? {
            Some(data) => Ok(parse_offset(&path, &data)?),
            None => Ok(None),
        }
    }

    pub async fn close(&self) {
        // the session ends with this process at the latest
        let _ = self.client.close().await;
    }

    async fn data(&self, path: &str) -> Result<Option<Vec<u8>>, ZkError> {
        match self.client.data(path, false).await {
            Ok((data, _)) => Ok(Some(data)),
            Err(ZkError::NoNode(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// `demo_a-0` is thread 0 of member `a`.
fn name_of(thread: &str) -> String {
    let member = thread.rsplit_once('-').map_or(thread, |(member, _)| member);
    let prefix = format!("{GROUP}_");
    member.strip_prefix(prefix.as_str()).unwrap_or(member).to_owned()
}
