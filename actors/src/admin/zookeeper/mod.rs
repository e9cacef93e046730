//! ZooKeeper from outside any group.

mod deleting;
mod offsets;
mod patient;
mod viewing;

use std::sync::Arc;
use std::time::Duration;

use kafka_troupe_proto::zk::broker::{BrokerRegistration, SecurityProtocol};
use kafka_troupe_proto::zk::connect_string::ConnectString;
use kafka_troupe_proto::zk::paths::{self, GroupPaths};
use kafka_troupe_proto::zk::topic;

use super::AdminError;
use crate::fetcher_manager::BrokerAddress;
use crate::group_view::nodes::{Nodes, each};
use crate::lease::SessionEpoch;
use crate::zk_session::port::{ConnectSpec, ZkConnector};
use crate::zk_session::{SessionConfig, ZooKeeperAsync};
pub use offsets::OffsetNode;
use patient::Patient;

/// Looks after groups that are coordinated through ZooKeeper, from outside: it joins none and holds no ephemeral node.
///
/// Answers whose connection was lost are asked for again until the timeout. [`close`](Self::close) it at the end; one
/// that is dropped leaves a session without nodes behind, which expires.
pub struct ZooKeeperAdmin {
    client: Patient,
}

impl ZooKeeperAdmin {
    /// Connects to the ensemble. `timeout`: longest wait for the connection, and for each answer
    /// (`zookeeper.connection.timeout.ms`; the old tools waited 30 s).
    ///
    /// # Errors
    /// No server takes us on in time, or the chroot does not exist: it is named, and not made.
    pub async fn connect(servers: ConnectString, timeout: Duration) -> Result<Self, AdminError> {
        Self::over(&ZooKeeperAsync, servers, timeout).await
    }

    /// Connects through another client, such as the one in memory (feature `testkit`).
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn over(
        connector: &dyn ZkConnector,
        servers: ConnectString,
        timeout: Duration,
    ) -> Result<Self, AdminError> {
        let mut config = SessionConfig::new(servers);
        (config.connection_timeout, config.operation_timeout) = (timeout, timeout);
        let spec = ConnectSpec::new(SessionEpoch(1), &config);
        let client = connector.connect(spec, Arc::new(|_| {})).await?;
        Ok(Self { client: Patient::new(client, timeout) })
    }

    /// All groups that have a node, in order; none where no consumer has ever been.
    ///
    /// # Errors
    /// ZooKeeper does not answer.
    pub async fn groups(&self) -> Result<Vec<String>, AdminError> {
        let mut groups = self.nodes("").children(paths::CONSUMERS).await?;
        groups.sort_unstable();
        Ok(groups)
    }

    /// Whether the group has a node.
    ///
    /// # Errors
    /// ZooKeeper does not answer, or the name is none.
    pub async fn group_exists(&self, group: &str) -> Result<bool, AdminError> {
        Ok(self.client.stat(self.group(group)?.root()).await?.is_some())
    }

    /// The ids of the registered members, in order.
    ///
    /// # Errors
    /// ZooKeeper does not answer, or the name is none.
    pub async fn members(&self, group: &str) -> Result<Vec<String>, AdminError> {
        let mut members = self.nodes(group).children(&self.group(group)?.ids()).await?;
        members.sort_unstable();
        Ok(members)
    }

    /// Whether brokers have ever registered here, which is not whether one runs now.
    ///
    /// # Errors
    /// ZooKeeper does not answer.
    pub async fn knows_brokers(&self) -> Result<bool, AdminError> {
        Ok(self.client.stat(paths::BROKER_IDS).await?.is_some())
    }

    /// The brokers that are registered and speak `protocol`, in order of their ids, and what is wrong with the others.
    ///
    /// # Errors
    /// ZooKeeper does not answer; [`AdminError::NoListener`] when none can be used, with what is on offer.
    pub async fn brokers(
        &self,
        protocol: SecurityProtocol,
    ) -> Result<(Vec<BrokerAddress>, Vec<String>), AdminError> {
        let nodes = self.nodes("");
        let ids = nodes.children(paths::BROKER_IDS).await?;
        let mut ids: Vec<i32> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        ids.sort_unstable();
        let read = each(ids, async |id| (id, nodes.data(&paths::broker(id)).await)).await;
        let (mut brokers, mut warnings) = (Vec::new(), Vec::new());
        for (id, read) in read {
            // one that has gone meanwhile is none
            let Some((data, _)) = read? else { continue };
            match address(id, &data, protocol) {
                Ok(address) => brokers.push(address),
                Err(why) => warnings.push(why),
            }
        }
        if brokers.is_empty() {
            let why = match warnings.is_empty() {
                true => format!("none is registered in {}", paths::BROKER_IDS),
                false => warnings.join("; "),
            };
            return Err(AdminError::NoListener { protocol: protocol.to_string(), why });
        }
        Ok((brokers, warnings))
    }

    /// The numbers of a topic's partitions, ascending; none where it does not exist.
    ///
    /// # Errors
    /// ZooKeeper does not answer, or the topic's node cannot be read.
    pub async fn partitions(&self, topic: &str) -> Result<Option<Vec<i32>>, AdminError> {
        let path = paths::topic(named("topic", topic)?);
        let Some((data, _)) = self.nodes("").data(&path).await? else { return Ok(None) };
        let numbers = topic::partition_ids(topic, &data);
        numbers.map(Some).map_err(|error| AdminError::Unreadable { why: error.to_string() })
    }

    /// Ends the session.
    pub async fn close(self) {
        self.client.close().await;
    }

    fn nodes(&self, group: &str) -> Nodes {
        Nodes::new(group, Arc::new(self.client.clone()))
    }

    fn group(&self, group: &str) -> Result<GroupPaths, AdminError> {
        named("group", group).map(GroupPaths::new)
    }
}

fn address(id: i32, data: &[u8], protocol: SecurityProtocol) -> Result<BrokerAddress, String> {
    let broker = BrokerRegistration::parse(id, data).map_err(|error| error.to_string())?;
    let (host, port) = broker.address(protocol).map_err(|error| error.to_string())?;
    Ok(BrokerAddress { id, host: host.to_owned(), port })
}

/// Groups of others have all sorts of names; what would name another node is none.
fn named<'a>(what: &'static str, name: &'a str) -> Result<&'a str, AdminError> {
    let is_one = !matches!(name, "" | "." | "..") && !name.contains(|c: char| c == '/' || c.is_control());
    is_one.then_some(name).ok_or_else(|| AdminError::Name { what, name: name.to_owned() })
}
