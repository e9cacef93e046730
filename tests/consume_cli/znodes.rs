//! What a group has in ZooKeeper, read by another client than the one under test uses.

use std::collections::BTreeMap;

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use troupe_cluster::Cluster;
use zookeeper_async::{ZkError, ZkResult, ZooKeeper};

use crate::programs::PATIENCE;

/// A session of our own, below the cluster's chroot.
pub struct Znodes {
    runtime: Runtime,
    client: ZooKeeper,
}

impl Znodes {
    pub fn of(cluster: &Cluster) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let connect = cluster.zookeeper_connect();
        let client = runtime
            .block_on(async { timeout(PATIENCE, ZooKeeper::connect(&connect, PATIENCE, |_| {})).await })
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

    /// Names of children; none where there is no node.
    pub fn children(&self, path: &str) -> Vec<String> {
        let mut names = self.ask(self.client.get_children(path, false)).unwrap_or_default();
        names.sort_unstable();
        names
    }

    pub fn exists(&self, path: &str) -> bool {
        self.ask(self.client.exists(path, false)).flatten().is_some()
    }

    pub fn data(&self, path: &str) -> Option<String> {
        let (data, _) = self.ask(self.client.get_data(path, false))?;
        Some(String::from_utf8(data).unwrap())
    }

    fn data_below(&self, path: &str) -> BTreeMap<i32, String> {
        let names = self.children(path);
        let read = |name: &String| Some((name.parse().unwrap(), self.data(&format!("{path}/{name}"))?));
        names.iter().filter_map(read).collect()
    }

    /// The ids of the group's members.
    pub fn members(&self, group: &str) -> Vec<String> {
        self.children(&format!("/consumers/{group}/ids"))
    }

    /// The thread that owns each partition.
    pub fn owners(&self, group: &str, topic: &str) -> BTreeMap<i32, String> {
        self.data_below(&format!("/consumers/{group}/owners/{topic}"))
    }

    /// What is committed of each partition.
    pub fn offsets(&self, group: &str, topic: &str) -> BTreeMap<i32, i64> {
        let text = self.data_below(&format!("/consumers/{group}/offsets/{topic}"));
        text.into_iter().map(|(partition, offset)| (partition, offset.parse().unwrap())).collect()
    }

    /// The sum of what is committed.
    pub fn committed(&self, group: &str, topic: &str) -> usize {
        self.offsets(group, topic).values().map(|offset| usize::try_from(*offset).unwrap()).sum()
    }

    /// Nothing of a member is left, and so much is committed.
    pub fn assert_left(&self, group: &str, topic: &str, committed: usize) {
        assert_eq!(self.members(group), [""; 0], "members of {group}");
        assert_eq!(self.owners(group, topic), BTreeMap::new(), "owners of {group}");
        assert_eq!(self.committed(group, topic), committed, "committed by {group}");
    }
}
