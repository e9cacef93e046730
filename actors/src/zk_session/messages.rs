//! What the session actor is asked, and what it tells its subscribers.
use std::time::Duration;

use actix::prelude::*;

use super::error::ZkError;
use super::port::Stat;
use crate::lease::SessionEpoch;

// ---- requests

/// Reads the names of the children, sorted, and with `watch` arms a watch on them in the same operation. With
/// `watch` the answer `NoNode` has armed one as well, on the node's creation. A wanted watch is kept over
/// reconnects and sessions until [`Unwatch`].
#[derive(Debug, Clone, Message)]
#[rtype(result = "Result<Vec<String>, ZkError>")]
pub struct ReadChildren {
    /// The parent.
    pub path: String,
    /// Whether to tell changes.
    pub watch: bool,
}

/// Reads data and stat; `watch` as with [`ReadChildren`].
#[derive(Debug, Clone, Message)]
#[rtype(result = "Result<(Vec<u8>, Stat), ZkError>")]
pub struct ReadData {
    /// The node.
    pub path: String,
    /// Whether to tell changes.
    pub watch: bool,
}

/// Creates an ephemeral node, with persistent parents, in the session that planned it and in no other. Another's node
/// that is in the way is watched, as by [`ReadData`].
#[derive(Debug, Clone, Message)]
#[rtype(result = "Result<Claim, ZkError>")]
pub struct CreateEphemeral {
    /// The session that planned it; when it is over the answer is `SessionMoved` and nothing was sent.
    pub session: SessionEpoch,
    /// The node.
    pub path: String,
    /// Its data.
    pub data: Vec<u8>,
}

/// What became of a [`CreateEphemeral`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The node is there with our data and is our session's.
    Created {
        /// Our session's id.
        owner: i64,
    },
    /// Another node is there: another session's, or ours with other data (then `stat.ephemeral_owner` is our id).
    Exists {
        /// What it holds.
        data: Vec<u8>,
        /// Whose it is.
        stat: Stat,
    },
}

/// Creates a persistent node, with its parents; `NodeExists` when it is there.
#[derive(Debug, Clone, Message)]
#[rtype(result = "Result<(), ZkError>")]
pub struct CreatePersistent {
    /// The session that planned it; in another one it is not sent (`SessionMoved`).
    pub session: SessionEpoch,
    /// The node.
    pub path: String,
    /// Its data.
    pub data: Vec<u8>,
}

/// Sets a node's data if it has `version`.
#[derive(Debug, Clone, Message)]
#[rtype(result = "Result<Stat, ZkError>")]
pub struct SetData {
    /// The session that planned it; in another one it is not sent (`SessionMoved`).
    pub session: SessionEpoch,
    /// The node.
    pub path: String,
    /// Its data.
    pub data: Vec<u8>,
    /// The version it must have.
    pub version: i32,
}

/// Deletes a node; one that is not there is as good.
#[derive(Debug, Clone, Message)]
#[rtype(result = "Result<(), ZkError>")]
pub struct Delete {
    /// The session that planned it; in another one it is not sent (`SessionMoved`).
    pub session: SessionEpoch,
    /// The node.
    pub path: String,
    /// The version it must have; `None`: whatever it is.
    pub version: Option<i32>,
}

/// Registers this member for as long as the session lasts; the heartbeat then watches over the node. While another
/// session holds it, waits for at most 3/2 of the session timeout, then answers `Held`.
#[derive(Debug, Clone, Message)]
#[rtype(result = "Result<Registered, ZkError>")]
pub struct Register {
    /// Our ids node.
    pub path: String,
    /// The registration record.
    pub data: Vec<u8>,
}

/// We are registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registered {
    /// In which session.
    pub session: SessionEpoch,
    /// Its id, the `ephemeral_owner` of all our nodes.
    pub id: i64,
}

/// Forgets the watches on a node: nothing more is told of it.
#[derive(Debug, Clone, Message)]
#[rtype(result = "()")]
pub struct Unwatch {
    /// The node.
    pub path: String,
}

/// Sends all further [`SessionEvent`]s, and at once the one that describes the present (`Connected` or `Failed`).
#[derive(Debug, Clone, Message)]
#[rtype(result = "()")]
pub struct Subscribe(
    /// Who is to hear them.
    pub Recipient<SessionEvent>,
);

/// Answers when a session stands and its heartbeat has been answered, or with why the first connect failed.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "Result<SessionEpoch, ZkError>")]
pub struct WaitConnected;

/// Asks for a [`SessionStatus`].
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "SessionStatus")]
pub struct Describe;

/// Closes the session, so that its ephemeral nodes go at once, and stops the actor. A second one does nothing.
/// Answered with whether the server has heard of it; if not, the nodes stay until the session expires.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "bool")]
pub struct Shutdown;

/// What the session is like now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionStatus {
    /// Its state.
    pub state: SessionState,
    /// Our number for it.
    pub session: Option<SessionEpoch>,
    /// Its id in ZooKeeper, once a node of ours has shown it.
    pub id: Option<i64>,
    /// Its timeout: the smaller of what was asked for and what was granted.
    pub session_timeout: Option<Duration>,
    /// For how long we may act without another heartbeat.
    pub lease_remaining: Duration,
    /// How often a connection was established again, in the same session or a new one.
    pub reconnects: u64,
    /// Messages that the actor has handled.
    pub messages: u64,
    /// Operations handed to the client and not answered yet.
    pub in_flight: usize,
    /// Of [`CreateEphemeral`] and [`Delete`]: those that will still be sent or sent again.
    pub claims: usize,
}

/// State of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionState {
    /// A session is being opened.
    Connecting,
    /// Connected, and a heartbeat was answered on this connection.
    Connected,
    /// The connection is lost; the session may live on.
    Suspended,
    /// The first connect failed; nothing more is tried.
    Failed,
    /// Shut down.
    Closed,
}

// ---- events to subscribers

/// What subscribers hear.
#[derive(Debug, Clone, PartialEq, Eq, Message)]
#[rtype(result = "()")]
#[non_exhaustive]
pub enum SessionEvent {
    /// A new session stands, or the same one is connected again: read everything anew.
    Connected {
        /// Which session.
        session: SessionEpoch,
    },
    /// The connection is lost; the lease runs on.
    Suspended,
    /// The session is over and its nodes are not ours any more; a new one is being opened.
    Expired {
        /// Which session.
        session: SessionEpoch,
    },
    /// The children of a watched node changed, or it was created or deleted. Read again to watch on.
    ChildrenChanged {
        /// The node.
        path: String,
    },
    /// The data of a watched node changed, or it was created (or deleted, while we were not connected). Read again to
    /// watch on.
    DataChanged {
        /// The node.
        path: String,
    },
    /// A node whose data was watched was deleted. Read again to watch on.
    Deleted {
        /// The node.
        path: String,
    },
    /// Our ids node is gone though the session lives: register again.
    RegistrationMissing,
    /// No session could be opened. After the first try that is final, later ones go on.
    Failed {
        /// Why.
        why: ZkError,
    },
}
