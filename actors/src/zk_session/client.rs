//! The client port over the library `zookeeper-async` 5.0.0, with a guard for each of its hazards:
//!
//! | the library | the guard |
//! |---|---|
//! | a dropped client reconnects for ever | its own runtime on its own thread, which ends with it |
//! | after expiry it opens a new session and may run old requests in it | the listener ends the client; before the main future has been polled no new connection can stand |
//! | no deadline on connect, on a request, on name look-up | deadlines here; servers are looked up, and dialled by [`Relay`], here |
//! | notices a silent server after 4/3 of the timeout | the heartbeat leaves it after 1/3, through [`Relay`] |
//! | calls a session closed before the server has read so | the server hangs up when it has; [`Relay`] sees it |
//! | 64 queued requests can block its own ping | at most 32 are handed over, a request that timed out still counts |
//! | pairs replies with the wrong requests after reading stale bytes | [`Relay`] lets no write fail; replies are checked (`Broken`), the heartbeat is the first judge |
//! | logs the session password | [`ZOOKEEPER_LOG_FILTER`], and its thread has no subscriber at all |
//! | asks a server without a quorum thousands of times a second | [`Relay`] pauses between connections |
//! | takes hosts in order | they are shuffled |
//! | cuts the chroot off event paths by length | it is told none: paths are made here |
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;
use zookeeper_async::{Acl, CreateMode, ZkError as LibraryError, ZkResult, ZooKeeper};

use super::client_thread::{self, Parts, Shared};
use super::error::{ZkCall, ZkError};
use super::port::{ConnectSpec, EventSink, NodeMode, Stat, ZkClient, ZkConnector, ZkFuture, ZkTask};
use super::relay::Relay;

/// Directive for `tracing_subscriber::EnvFilter` that keeps the session password out of a log, should an
/// application use `zookeeper-async` beside Troupe: the library logs it at info. Troupe's own clients run on
/// threads without a subscriber, so nothing of theirs can leak.
pub const ZOOKEEPER_LOG_FILTER: &str = "zookeeper_async=warn";

/// Operations handed to the library at one time; its channel takes 64 and its own ping needs a place.
const MAX_IN_FLIGHT: usize = 32;
/// Heartbeats handed to it at one time, beside those.
const MAX_BEATS: usize = 8;
/// A data version that no node ever has.
const IMPOSSIBLE_VERSION: i32 = i32::MIN;

/// Opens sessions with `zookeeper-async`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ZooKeeperAsync;

impl ZkConnector for ZooKeeperAsync {
    fn connect(&self, spec: ConnectSpec, events: EventSink) -> ZkFuture<Arc<dyn ZkClient>> {
        Box::pin(super::establish::establish(spec, events))
    }
}

/// One session of the library, on its own thread.
pub(super) struct Client {
    shared: Arc<Shared>,
    runtime: Handle,
    library: Arc<ZooKeeper>,
    relay: Arc<Relay>,
    slots: Arc<Semaphore>,
    /// The heartbeat's own, so that it never waits behind a queue of operations.
    beat_slots: Arc<Semaphore>,
    operation_timeout: Duration,
    session_timeout: Duration,
}

impl Client {
    /// Opens a session; see [`client_thread::start`].
    pub(super) async fn open(
        spec: &ConnectSpec,
        servers: Vec<SocketAddr>,
        granted: Duration,
        events: EventSink,
    ) -> Result<Self, String> {
        let (shared, parts) = client_thread::start(spec, servers, events).await?;
        let Parts { library, relay, runtime } = parts;
        Ok(Self {
            shared,
            runtime,
            library,
            relay,
            slots: Arc::new(Semaphore::new(MAX_IN_FLIGHT)),
            beat_slots: Arc::new(Semaphore::new(MAX_BEATS)),
            operation_timeout: spec.operation_timeout,
            session_timeout: granted.min(spec.session_timeout),
        })
    }

    fn call<T, F, Fut>(&self, call: ZkCall, run: F) -> ZkFuture<T>
    where
        T: Send + 'static,
        F: FnOnce(Arc<ZooKeeper>, String) -> Fut + Send + 'static,
        Fut: Future<Output = ZkResult<T>> + Send + 'static,
    {
        self.call_with(&self.slots, self.operation_timeout, call, run)
    }

    /// Runs one operation of the library on the client's runtime, and gives its answer or, at the deadline,
    /// `Timeout`. A request that was handed over keeps its slot until the library lets go of it.
    fn call_with<T, F, Fut>(
        &self,
        slots: &Arc<Semaphore>,
        after: Duration,
        call: ZkCall,
        run: F,
    ) -> ZkFuture<T>
    where
        T: Send + 'static,
        F: FnOnce(Arc<ZooKeeper>, String) -> Fut + Send + 'static,
        Fut: Future<Output = ZkResult<T>> + Send + 'static,
    {
        let (shared, slots, library) = (self.shared.clone(), slots.clone(), self.library.clone());
        let runtime = self.runtime.clone();
        Box::pin(async move {
            if shared.is_over() {
                return Err(ZkError::SessionExpired(call));
            }
            let (reply, answer) = oneshot::channel();
            let full = shared.full_path(&call.path);
            runtime.spawn(async move {
                let slot = slots.acquire_owned().await;
                // one whose caller has given up while it queued must not run late
                if slot.is_ok() && !reply.is_closed() {
                    let _ = reply.send(run(library, full).await);
                }
            });
            match timeout(after, answer).await {
                Ok(Ok(Ok(value))) => Ok(value),
                Ok(Ok(Err(error))) => Err(shared.translate(error, call)),
                Ok(Err(_)) => Err(ZkError::SessionExpired(call)),
                Err(_) => Err(ZkError::Timeout { call, after }),
            }
        })
    }
}

impl ZkClient for Client {
    fn children(&self, path: &str, watch: bool) -> ZkFuture<Vec<String>> {
        self.call(ZkCall::new("get children of", path), move |library, full| async move {
            let mut names = library.get_children(&full, watch).await?;
            names.sort_unstable();
            Ok(names)
        })
    }

    fn data(&self, path: &str, watch: bool) -> ZkFuture<(Vec<u8>, Stat)> {
        let call = ZkCall::new("get data of", path);
        self.call(call, move |library, full| async move {
            let (data, stat) = library.get_data(&full, watch).await?;
            if usize::try_from(stat.data_length) != Ok(data.len()) {
                return Err(LibraryError::MarshallingError); // another request's reply
            }
            Ok((data, Stat::from(&stat)))
        })
    }

    fn exists(&self, path: &str, watch: bool) -> ZkFuture<Option<Stat>> {
        self.call(ZkCall::new("stat", path), move |library, full| async move {
            Ok(library.exists(&full, watch).await?.as_ref().map(Stat::from))
        })
    }

    fn create(&self, path: &str, data: Vec<u8>, mode: NodeMode) -> ZkFuture<()> {
        let mode = match mode {
            NodeMode::Persistent => CreateMode::Persistent,
            NodeMode::Ephemeral => CreateMode::Ephemeral,
        };
        self.call(ZkCall::new("create", path), move |library, full| async move {
            let made = library.create(&full, data, Acl::open_unsafe().clone(), mode).await?;
            if made == full { Ok(()) } else { Err(LibraryError::MarshallingError) }
        })
    }

    fn set_data(&self, path: &str, data: Vec<u8>, version: Option<i32>) -> ZkFuture<Stat> {
        self.call(ZkCall::new("set data of", path), move |library, full| async move {
            Ok(Stat::from(&library.set_data(&full, data, version).await?))
        })
    }

    fn beat(&self, path: &str) -> ZkFuture<Stat> {
        let (call, after) = (ZkCall::new("beat on", path), self.session_timeout);
        self.call_with(&self.beat_slots, after, call, |library, full| async move {
            Ok(Stat::from(&library.set_data(&full, Vec::new(), Some(IMPOSSIBLE_VERSION)).await?))
        })
    }

    fn delete(&self, path: &str, version: Option<i32>) -> ZkFuture<()> {
        self.call(ZkCall::new("delete", path), move |library, full| async move {
            library.delete(&full, version).await
        })
    }

    fn close(&self) -> ZkFuture<()> {
        // also when it is over for us, because a reply did not fit: it may still live on the server
        let (library, relay, (done, closed)) = (self.library.clone(), self.relay.clone(), oneshot::channel());
        self.runtime.spawn(async move {
            let written = library.close().await;
            if written.is_ok() {
                relay.drained().await;
            }
            done.send(written)
        });
        let (call, after) = (ZkCall::new("close session", "/"), self.operation_timeout);
        Box::pin(async move {
            match timeout(after, closed).await {
                Ok(Ok(Ok(()))) => Ok(()),
                Ok(_) => Err(ZkError::ConnectionLoss(call)),
                Err(_) => Err(ZkError::Timeout { call, after }),
            }
        })
    }

    fn end(&self) {
        self.shared.end();
    }

    fn leave_server(&self, or_connect_again: bool) {
        self.relay.leave(or_connect_again);
    }

    fn spawn(&self, task: ZkTask) {
        self.runtime.spawn(task);
    }

    fn session_timeout(&self) -> Duration {
        self.session_timeout
    }

    fn in_flight(&self) -> usize {
        MAX_IN_FLIGHT - self.slots.available_permits()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.end();
    }
}

impl From<&zookeeper_async::Stat> for Stat {
    fn from(stat: &zookeeper_async::Stat) -> Self {
        Self {
            czxid: stat.czxid,
            mzxid: stat.mzxid,
            version: stat.version,
            ephemeral_owner: stat.ephemeral_owner,
            ctime: stat.ctime,
            mtime: stat.mtime,
            num_children: stat.num_children,
        }
    }
}
