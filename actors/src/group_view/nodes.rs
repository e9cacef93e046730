//! The group's nodes, read through the session actor without watches, a few at a time.

use std::future::Future;

use futures_util::StreamExt;
use futures_util::stream;
use kafka_troupe_proto::zk::paths::GroupPaths;

use crate::supervise::Slot;
use crate::zk_session::{ReadChildren, ReadData, ZkCall, ZkError, ZkSession, port::Stat};

/// Reads under way at a time: a quarter of what a session takes, so that claims and releases go beside them.
const AT_A_TIME: usize = 8;

/// Reads of nodes; one that is not there is no error.
pub(super) struct Nodes {
    pub(super) paths: GroupPaths,
    session: Slot<ZkSession>,
}

impl Nodes {
    pub(super) fn new(group: &str, session: Slot<ZkSession>) -> Self {
        Self { paths: GroupPaths::new(group), session }
    }

    pub(super) async fn children(&self, path: &str) -> Result<Vec<String>, ZkError> {
        let read = ReadChildren { path: path.to_owned(), watch: false };
        match self.session.send(read).await.unwrap_or_else(|_| Err(gone("read children of", path))) {
            Err(ZkError::NoNode(_)) => Ok(Vec::new()),
            read => read,
        }
    }

    pub(super) async fn data(&self, path: &str) -> Result<Option<(Vec<u8>, Stat)>, ZkError> {
        let read = ReadData { path: path.to_owned(), watch: false };
        match self.session.send(read).await.unwrap_or_else(|_| Err(gone("read", path))) {
            Ok(read) => Ok(Some(read)),
            Err(ZkError::NoNode(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Reads each, some at a time, in their order.
pub(super) async fn each<K, T, F: Future<Output = T>>(
    keys: impl IntoIterator<Item = K>,
    read: impl Fn(K) -> F,
) -> Vec<T> {
    stream::iter(keys.into_iter().map(read)).buffered(AT_A_TIME).collect().await
}

/// The session actor is being restarted, or has ended.
fn gone(operation: &'static str, path: &str) -> ZkError {
    ZkError::ConnectionLoss(ZkCall::new(operation, path))
}
