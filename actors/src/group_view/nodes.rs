//! The group's nodes, read without watches, a few at a time.

use std::future::Future;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;
use kafka_troupe_proto::zk::paths::GroupPaths;

use crate::supervise::Slot;
use crate::zk_session::port::{Stat, ZkFuture};
use crate::zk_session::{ReadChildren, ReadData, ZkCall, ZkError, ZkSession};

/// Reads under way at a time: a quarter of what a session takes, so that claims and releases go beside them.
const AT_A_TIME: usize = 8;

/// The port: a way to ZooKeeper, a member's session or a client of its own.
pub(crate) trait ReadNodes: Send + Sync {
    /// Names of the children.
    fn children(&self, path: &str) -> ZkFuture<Vec<String>>;
    /// Data and stat.
    fn data(&self, path: &str) -> ZkFuture<(Vec<u8>, Stat)>;
}

impl ReadNodes for Slot<ZkSession> {
    fn children(&self, path: &str) -> ZkFuture<Vec<String>> {
        let asked = self.send(ReadChildren { path: path.to_owned(), watch: false });
        let gone = gone("read children of", path);
        Box::pin(async move { asked.await.unwrap_or(Err(gone)) })
    }

    fn data(&self, path: &str) -> ZkFuture<(Vec<u8>, Stat)> {
        let asked = self.send(ReadData { path: path.to_owned(), watch: false });
        let gone = gone("read", path);
        Box::pin(async move { asked.await.unwrap_or(Err(gone)) })
    }
}

/// Reads of nodes; one that is not there is no error.
#[derive(Clone)]
pub(crate) struct Nodes {
    pub(crate) paths: GroupPaths,
    way: Arc<dyn ReadNodes>,
}

impl Nodes {
    pub(crate) fn new(group: &str, way: Arc<dyn ReadNodes>) -> Self {
        Self { paths: GroupPaths::new(group), way }
    }

    pub(crate) async fn children(&self, path: &str) -> Result<Vec<String>, ZkError> {
        match self.way.children(path).await {
            Err(ZkError::NoNode(_)) => Ok(Vec::new()),
            read => read,
        }
    }

    pub(crate) async fn data(&self, path: &str) -> Result<Option<(Vec<u8>, Stat)>, ZkError> {
        match self.way.data(path).await {
            Ok(read) => Ok(Some(read)),
            Err(ZkError::NoNode(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Reads each, some at a time, in their order.
pub(crate) async fn each<K, T, F: Future<Output = T>>(
    keys: impl IntoIterator<Item = K>,
    read: impl Fn(K) -> F,
) -> Vec<T> {
    stream::iter(keys.into_iter().map(read)).buffered(AT_A_TIME).collect().await
}

/// The session actor is being restarted, or has ended.
fn gone(operation: &'static str, path: &str) -> ZkError {
    ZkError::ConnectionLoss(ZkCall::new(operation, path))
}
