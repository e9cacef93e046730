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
