//! Nodes in ZooKeeper, by another client than those under test.

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use troupe_cluster::Cluster;
use zookeeper_async::{Acl, CreateMode, Permission, ZkError, ZkResult, ZooKeeper};

use crate::PATIENCE;

/// A session of our own, below the cluster's chroot; its ephemeral nodes go with it.
pub struct Znodes {
    runtime: Runtime,
    client: ZooKeeper,
}

impl Znodes {
    pub fn of(cluster: &Cluster) -> Self {
        Self::at(&cluster.zookeeper_connect())
    }

    /// At a connect string, whatever its chroot.
    pub fn at(connect: &str) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let client = runtime
            .block_on(async { timeout(PATIENCE, ZooKeeper::connect(connect, PATIENCE, |_| {})).await })
            .expect("a session in time")
            .unwrap();
        Self { runtime, client }
    }

    fn ask<T>(&self, asking: impl Future<Output = ZkResult<T>>) -> Option<T> {
        let answer = self.runtime.block_on(async { timeout(PATIENCE, asking).await });
        match answer.expect("an answer in time") {
            Ok(found) => Some(found),
            Err(ZkError::NoNode) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Names of children, sorted; none where there is no node.
    pub fn children(&self, path: &str) -> Vec<String> {
        let mut names = self.ask(self.client.get_children(path, false)).unwrap_or_default();
        names.sort_unstable();
        names
    }

    /// The paths of all nodes below one, sorted, without that part.
    pub fn tree(&self, path: &str) -> Vec<String> {
        let mut below = Vec::new();
        for name in self.children(path) {
            below.push(format!("/{name}"));
            below
                .extend(self.tree(&format!("{path}/{name}")).iter().map(|deeper| format!("/{name}{deeper}")));
        }
        below
    }

    pub fn exists(&self, path: &str) -> bool {
        self.ask(self.client.exists(path, false)).flatten().is_some()
    }

    pub fn data(&self, path: &str) -> Option<String> {
        let (data, _) = self.ask(self.client.get_data(path, false))?;
        Some(String::from_utf8(data).unwrap())
    }

    /// Makes a node, and those above it where they are missing, or overwrites its data.
    pub fn put(&self, path: &str, data: &str) {
        self.make(path, data, CreateMode::Persistent);
    }

    /// A node that goes with this session.
    pub fn ephemeral(&self, path: &str, data: &str) {
        self.make(path, data, CreateMode::Ephemeral);
    }

    fn make(&self, path: &str, data: &str, mode: CreateMode) {
        if self.exists(path) {
            self.ask(self.client.set_data(path, data.into(), None)).unwrap();
            return;
        }
        let parent = path.rsplit_once('/').map(|(parent, _)| parent).filter(|parent| !parent.is_empty());
        if let Some(parent) = parent.filter(|parent| !self.exists(parent)) {
            self.put(parent, "");
        }
        let acl = Acl::open_unsafe().clone();
        self.ask(self.client.create(path, data.into(), acl, mode)).unwrap();
    }

    /// Makes a node that nobody may read.
    pub fn lock(&self, path: &str) {
        let acl = vec![Acl::new(Permission::NONE, "world", "anyone")];
        self.ask(self.client.create(path, Vec::new(), acl, CreateMode::Persistent)).unwrap();
    }

    pub fn delete(&self, path: &str) {
        self.ask(self.client.delete(path, None)).unwrap();
    }

    /// What is committed of a partition in ZooKeeper.
    pub fn commit(&self, group: &str, topic: &str, partition: i32, offset: i64) {
        self.put(&format!("/consumers/{group}/offsets/{topic}/{partition}"), &offset.to_string());
    }
}
