//! What a ZooKeeper operation may end with, each naming the operation and the path.
use std::fmt;
use std::time::Duration;

use crate::lease::SessionEpoch;

/// An operation and the path it was for, relative to the chroot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZkCall {
    /// What was asked, such as `create`.
    pub operation: &'static str,
    /// For which znode.
    pub path: String,
}

impl ZkCall {
    /// `operation` on `path`.
    pub fn new(operation: &'static str, path: &str) -> Self {
        Self { operation, path: path.to_owned() }
    }
}

impl fmt::Display for ZkCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "zookeeper {} {}", self.operation, self.path)
    }
}

/// Why a ZooKeeper operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ZkError {
    /// The node, or for a create its parent, does not exist.
    #[error("{0}: no such node")]
    NoNode(ZkCall),
    /// The node to create is already there.
    #[error("{0}: the node exists")]
    NodeExists(ZkCall),
    /// The node changed since the version that the caller read.
    #[error("{0}: the node has another version")]
    BadVersion(ZkCall),
    /// The node's ACL does not allow this.
    #[error("{0}: NoAuth: the access control list does not allow it; ask the ensemble's owner for the right")]
    NoAuth(ZkCall),
    /// The node to delete has children.
    #[error("{0}: the node has children")]
    NotEmpty(ZkCall),
    /// The connection broke, or there is none: the operation may or may not have run.
    #[error("{0}: the connection to the ensemble is lost; whether it ran is unknown")]
    ConnectionLoss(ZkCall),
    /// The session is over, with its ephemeral nodes.
    #[error("{0}: the session has expired")]
    SessionExpired(ZkCall),
    /// No answer within the operation's deadline: it may still run in this session.
    #[error("{call}: no answer within {after:?}; it may still run in this session")]
    Timeout {
        /// What was asked.
        call: ZkCall,
        /// The deadline that passed.
        after: Duration,
    },
    /// The operation was planned in another session than the one we have now; it was not sent.
    #[error("{call}: planned in session {planned:?}, but now it is {current:?}; not sent")]
    SessionMoved {
        /// What was asked.
        call: ZkCall,
        /// The session that planned it.
        planned: SessionEpoch,
        /// The session we have.
        current: SessionEpoch,
    },
    /// Another living session holds our registration node (KAFKA-1387).
    #[error(
        "{call}: id in use by session 0x{holder:x}: stop that consumer, or give this one another consumer.id"
    )]
    Held {
        /// What was asked.
        call: ZkCall,
        /// The session that holds the node.
        holder: i64,
    },
    /// No server of the connect string took us on.
    #[error("zookeeper.connect={connect}: {why}")]
    Connect {
        /// The connect string.
        connect: String,
        /// What happened, with the server.
        why: String,
    },
    /// The chroot of the connect string does not exist. It is never made by us.
    #[error("zookeeper.connect={connect}: the chroot {chroot} does not exist; create it or correct the path")]
    NoChroot {
        /// The connect string.
        connect: String,
        /// The missing path.
        chroot: String,
    },
    /// A setting that cannot work.
    #[error("{0}")]
    Config(String),
    /// A reply that does not fit its request, or an unknown code: the connection is not to be trusted any more.
    #[error("{call}: {what}")]
    Protocol {
        /// What was asked.
        call: ZkCall,
        /// What came back.
        what: String,
    },
}

impl ZkError {
    /// Whether the operation may have run, or may still run, although no answer came.
    pub fn is_in_doubt(&self) -> bool {
        matches!(self, Self::ConnectionLoss(_) | Self::Timeout { .. })
    }
}
