//! Nodes of a group that no member has made.

use tokio::time::timeout;
use troupe_cluster::Cluster;
use zookeeper_async::{Acl, CreateMode, ZkError, ZooKeeper};

use super::wait::PATIENCE;

/// A ZooKeeper session that is no member; its ephemeral nodes end with it.
pub struct ByHand {
    client: ZooKeeper,
    root: String,
}

impl ByHand {
    pub async fn connect(cluster: &Cluster, group: &str) -> Self {
        let connect = cluster.zookeeper_connect();
        let client = timeout(PATIENCE, ZooKeeper::connect(&connect, PATIENCE, |_| {})).await;
        Self { client: client.expect("in time").expect("a session"), root: format!("/consumers/{group}") }
    }

    /// Makes the owner node of a partition, for good or for as long as this session, whatever it is for.
    pub async fn own(&self, topic: &str, partition: i32, thread: &str, mode: CreateMode) {
        self.create(&format!("owners/{topic}/{partition}"), thread, mode).await;
    }

    /// A registration that nobody stands behind.
    pub async fn register(&self, consumer: &str, topic: &str) {
        let record =
            format!(r#"{{"version":1,"subscription":{{"{topic}":1}},"pattern":"static","timestamp":"1"}}"#);
        self.create(&format!("ids/{consumer}"), &record, CreateMode::Ephemeral).await;
    }

    /// As [`connect`](Self::connect), for nodes that are no group's.
    pub async fn of_all(cluster: &Cluster) -> Self {
        Self { root: String::new(), ..Self::connect(cluster, "").await }
    }

    /// Makes a node for good, and those above it; the path is relative.
    pub async fn make(&self, path: &str, data: &str) {
        self.create(path, data, CreateMode::Persistent).await;
    }

    /// Tells brokers that the configuration of an entity, such as `topics/orders`, has changed to this.
    pub async fn configure(&self, entity: &str, config: &str) {
        let (path, data) = (format!("/config/{entity}"), format!(r#"{{"version":1,"config":{{{config}}}}}"#));
        match self.node(&path, &data, CreateMode::Persistent).await {
            Err(ZkError::NodeExists) => {
                self.client.set_data(&path, data.into(), None).await.expect("it is set");
            }
            made => drop(made.unwrap_or_else(|error| panic!("{path}: {error}"))),
        }
        let notice = format!(r#"{{"version":2,"entity_path":"{entity}"}}"#);
        let path = "/config/changes/config_change_";
        self.node(path, &notice, CreateMode::PersistentSequential).await.expect("brokers can be told");
    }

    async fn create(&self, path: &str, data: &str, mode: CreateMode) {
        let path = format!("{}/{path}", self.root);
        for (end, _) in path.match_indices('/').skip(1) {
            match self.node(&path[..end], "", CreateMode::Persistent).await {
                Ok(_) | Err(ZkError::NodeExists) => {}
                Err(error) => panic!("{path}: {error}"),
            }
        }
        self.node(&path, data, mode).await.unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    async fn node(&self, path: &str, data: &str, mode: CreateMode) -> Result<String, ZkError> {
        self.client.create(path, data.into(), Acl::open_unsafe().clone(), mode).await
    }

    /// Deletes a node below the group's.
    pub async fn delete(&self, path: &str) {
        let path = format!("{}/{path}", self.root);
        self.client.delete(&path, None).await.unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    pub async fn close(self) {
        self.client.close().await.expect("a session can be closed");
    }
}
