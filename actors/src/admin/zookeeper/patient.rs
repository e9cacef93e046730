//! A client that waits for its connection to come back, for as long as it may.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::group_view::nodes::ReadNodes;
use crate::zk_session::port::{NodeMode, Stat, ZkClient, ZkFuture};
use crate::zk_session::{ZkCall, ZkError};

/// Pause before asking again after a lost answer.
const RETRY: Duration = Duration::from_millis(100);

/// One client. Reads, and writes that may run twice, are asked for again when their answer is lost, until `patience`
/// has passed since the first.
#[derive(Clone)]
pub(super) struct Patient {
    client: Arc<dyn ZkClient>,
    patience: Duration,
    /// Told when an answer has not come in time.
    gave_up: Arc<Notify>,
}

impl Patient {
    pub(super) fn new(client: Arc<dyn ZkClient>, patience: Duration) -> Self {
        Self { client, patience, gave_up: Arc::default() }
    }

    async fn again<T, F>(&self, ask: impl Fn(&dyn ZkClient) -> F) -> Result<T, ZkError>
    where
        F: Future<Output = Result<T, ZkError>>,
    {
        let until = Instant::now() + self.patience;
        loop {
            match ask(&*self.client).await {
                Err(error) if error.is_in_doubt() && Instant::now() < until => sleep(RETRY).await,
                answer => {
                    if answer.as_ref().is_err_and(ZkError::is_in_doubt) {
                        self.gave_up.notify_waiters();
                    }
                    return answer;
                }
            }
        }
    }

    /// What is done with many reads, unless one has no answer in time: each of the others would wait as long. `path` is
    /// what they are about.
    pub(super) async fn unless_silent<T>(
        &self,
        path: &str,
        work: impl Future<Output = T>,
    ) -> Result<T, ZkError> {
        let gave_up = self.gave_up.notified();
        match select(pin!(work), pin!(gave_up)).await {
            Either::Left((done, _)) => Ok(done),
            Either::Right(_) => Err(ZkError::ConnectionLoss(ZkCall::new("read all below", path))),
        }
    }

    /// The stat, or none.
    pub(super) async fn stat(&self, path: &str) -> Result<Option<Stat>, ZkError> {
        self.again(|client| client.exists(path, false)).await
    }

    /// Makes a persistent node, and its parents; one that is there is an error, also where it was made by an answer that
    /// was lost.
    pub(super) async fn create(&self, path: &str, data: &[u8]) -> Result<(), ZkError> {
        let make = |path: &str, data: &[u8]| {
            let (path, data) = (path.to_owned(), data.to_vec());
            self.again(move |client| client.create(&path, data.clone(), NodeMode::Persistent))
        };
        match make(path, data).await {
            Err(ZkError::NoNode(_)) => {}
            made => return made,
        }
        for parent in kafka_troupe_proto::zk::paths::parents(path) {
            match make(parent, &[]).await {
                Ok(()) | Err(ZkError::NodeExists(_)) => {}
                Err(error) => return Err(error),
            }
        }
        make(path, data).await
    }

    /// Sets a node's data; asked for once where a version must be met, for the second would not meet it.
    pub(super) async fn set(&self, path: &str, data: &[u8], version: Option<i32>) -> Result<Stat, ZkError> {
        match version {
            Some(_) => self.client.set_data(path, data.to_vec(), version).await,
            None => self.again(|client| client.set_data(path, data.to_vec(), None)).await,
        }
    }

    /// Deletes a node of that version; one that is not there is as good.
    pub(super) async fn delete(&self, path: &str, version: Option<i32>) -> Result<(), ZkError> {
        match self.again(|client| client.delete(path, version)).await {
            Err(ZkError::NoNode(_)) => Ok(()),
            answer => answer,
        }
    }

    pub(super) async fn close(self) {
        // nothing of ours stands in it; a server that does not hear of its end lets it expire
        let _ = self.client.close().await;
        self.client.end();
    }
}

impl ReadNodes for Patient {
    fn children(&self, path: &str) -> ZkFuture<Vec<String>> {
        let (this, path) = (self.clone(), path.to_owned());
        Box::pin(async move { this.again(|client| client.children(&path, false)).await })
    }

    fn data(&self, path: &str) -> ZkFuture<(Vec<u8>, Stat)> {
        let (this, path) = (self.clone(), path.to_owned());
        Box::pin(async move { this.again(|client| client.data(&path, false)).await })
    }
}
