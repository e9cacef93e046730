//! The port: all that Troupe asks of a ZooKeeper client library.
//!
//! One client is one session: a client whose session is over refuses everything, so that an operation planned in
//! one session never runs in the next. A new session is a new client.
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kafka_troupe_proto::zk::connect_string::ConnectString;

use super::config::SessionConfig;
use super::error::ZkError;
use crate::lease::SessionEpoch;

/// The answer to an operation, some time later.
pub type ZkFuture<T> = Pin<Box<dyn Future<Output = Result<T, ZkError>> + Send>>;

/// Work that runs beside the client.
pub type ZkTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where a client reports its events; called on the client's thread, must not block.
pub type EventSink = Arc<dyn Fn(ZkEvent) + Send + Sync>;

/// What a znode's `Stat` says, as far as it is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stat {
    /// Transaction that created the node: tells a node from a later one of the same name.
    pub czxid: i64,
    /// Transaction that last changed its data.
    pub mzxid: i64,
    /// Number of data changes, for set-if-version.
    pub version: i32,
    /// Session that holds an ephemeral node; 0 for a persistent one.
    pub ephemeral_owner: i64,
    /// Milliseconds since the Unix epoch when it was created, by the server's clock.
    pub ctime: i64,
    /// Milliseconds since the Unix epoch when its data last changed.
    pub mtime: i64,
    /// Number of children.
    pub num_children: i32,
}

impl Stat {
    /// A `Stat` of an adapter or a fake.
    pub fn new(czxid: i64, mzxid: i64, version: i32, ephemeral_owner: i64) -> Self {
        Self { czxid, mzxid, version, ephemeral_owner, ..Self::default() }
    }
}

/// How long a created node lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeMode {
    /// Until it is deleted.
    Persistent,
    /// Until its session ends.
    Ephemeral,
}

/// What happened to a watched node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeChange {
    /// It was created.
    Created,
    /// It was deleted.
    Deleted,
    /// Its data was set.
    Data,
    /// A child was created or deleted.
    Children,
}

/// What a client reports of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ZkEvent {
    /// Connected, for the first time or again in the same session. Watches of before are lost.
    Connected,
    /// The connection is lost; the session may live on.
    Suspended,
    /// The ensemble has ended the session. The client refuses everything from now on.
    Expired,
    /// A reply did not fit its request: the client is not to be trusted any more.
    Broken {
        /// The request and what came back.
        why: String,
    },
    /// A watch fired (once; reading again arms it again).
    Fired {
        /// The node, relative to the chroot.
        path: String,
        /// What happened to it.
        change: NodeChange,
    },
}

/// What a connector needs to open a session.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConnectSpec {
    /// Our number for the new session.
    pub session: SessionEpoch,
    /// Servers and chroot.
    pub servers: ConnectString,
    /// Session timeout to ask for (`zookeeper.session.timeout.ms`); the ensemble may grant another.
    pub session_timeout: Duration,
    /// Longest time until the session stands (`zookeeper.connection.timeout.ms`).
    pub connection_timeout: Duration,
    /// Longest time for the answer to one operation.
    pub operation_timeout: Duration,
}

impl ConnectSpec {
    /// What opens session number `session` as `config` says.
    pub fn new(session: SessionEpoch, config: &SessionConfig) -> Self {
        Self {
            session,
            servers: config.servers.clone(),
            session_timeout: config.session_timeout,
            connection_timeout: config.connection_timeout,
            operation_timeout: config.operation_timeout,
        }
    }
}

/// Opens sessions.
pub trait ZkConnector: Send + Sync + 'static {
    /// Opens a session and checks that the chroot exists. Ends within the connection timeout, with an error that
    /// names the connect string.
    fn connect(&self, spec: ConnectSpec, events: EventSink) -> ZkFuture<Arc<dyn ZkClient>>;
}

/// One session. Paths are relative to the chroot; every answer comes within the operation timeout, that to the
/// heartbeat within the session's.
pub trait ZkClient: Send + Sync + 'static {
    /// Names of the children, and with `watch` a watch on them, in one operation. `NoNode` arms nothing.
    fn children(&self, path: &str, watch: bool) -> ZkFuture<Vec<String>>;
    /// Data and stat, and with `watch` a watch on them, in one operation. `NoNode` arms nothing.
    fn data(&self, path: &str, watch: bool) -> ZkFuture<(Vec<u8>, Stat)>;
    /// The stat, or `None`; with `watch` a watch is armed in either case.
    fn exists(&self, path: &str, watch: bool) -> ZkFuture<Option<Stat>>;
    /// Creates a node with an open ACL.
    fn create(&self, path: &str, data: Vec<u8>, mode: NodeMode) -> ZkFuture<()>;
    /// Sets the data if the version is `version` (`None`: whatever it is).
    fn set_data(&self, path: &str, data: Vec<u8>, version: Option<i32>) -> ZkFuture<Stat>;
    /// The heartbeat: sets data with a version that no node has, which passes the leader and changes nothing. It
    /// overtakes what is queued for want of a slot. Alive is `BadVersion`, `NoNode` and `NoAuth`.
    fn beat(&self, path: &str) -> ZkFuture<Stat>;
    /// Deletes the node if its version is `version` (`None`: whatever it is).
    fn delete(&self, path: &str, version: Option<i32>) -> ZkFuture<()>;
    /// Closes the session, so that its ephemeral nodes go at once.
    fn close(&self) -> ZkFuture<()>;
    /// Ends the client without a word to the ensemble: thread, socket and unanswered operations.
    fn end(&self);
    /// Leaves a server that does not answer for another, in the same session; without another address nothing happens,
    /// unless it is to be connected to again.
    fn leave_server(&self, _or_connect_again: bool) {}
    /// Runs `task` where the client runs; it is dropped when the client ends.
    fn spawn(&self, task: ZkTask);
    /// The session timeout that counts: the smaller of what was asked for and what the ensemble granted.
    fn session_timeout(&self) -> Duration;
    /// Operations handed over and not answered yet.
    fn in_flight(&self) -> usize;
}
