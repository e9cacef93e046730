//! A ZooKeeper in memory behind the client port, for tests that steer what a server cannot be told: it expires,
//! suspends and loses replies on command, and never by a clock.
use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use kafka_troupe_actors::zk_session::port::{
    ConnectSpec, EventSink, NodeChange, NodeMode, Stat, ZkClient, ZkConnector, ZkEvent, ZkFuture, ZkTask,
};
use kafka_troupe_actors::zk_session::{ZkCall, ZkError};
use kafka_troupe_proto::zk::connect_string::ConnectString;
use tokio::task::AbortHandle;

/// The ensemble; clones are the same one.
#[derive(Clone, Default)]
pub struct MemoryZooKeeper(Arc<Mutex<Ensemble>>);

#[derive(Default)]
struct Ensemble {
    nodes: BTreeMap<String, Node>,
    sessions: BTreeMap<i64, Session>,
    zxid: i64,
    last_id: i64,
}

struct Node {
    data: Vec<u8>,
    stat: Stat,
}

struct Session {
    events: EventSink,
    servers: ConnectString,
    connected: bool,
    /// The next operation runs, but its reply is lost.
    loses_reply: bool,
    data_watches: BTreeSet<String>,
    child_watches: BTreeSet<String>,
    tasks: Vec<AbortHandle>,
}

impl MemoryZooKeeper {
    fn state(&self) -> MutexGuard<'_, Ensemble> {
        self.0.lock().unwrap()
    }

    /// The ids of the sessions that live, oldest first.
    pub fn sessions(&self) -> Vec<i64> {
        self.state().sessions.keys().copied().collect()
    }

    /// Cuts the session's connection: its watches are lost and its operations fail.
    pub fn suspend(&self, id: i64) {
        let mut state = self.state();
        let session = state.sessions.get_mut(&id).expect("a living session");
        session.connected = false;
        session.data_watches.clear();
        session.child_watches.clear();
        (session.events)(ZkEvent::Suspended);
    }

    /// Connects the session again.
    pub fn reconnect(&self, id: i64) {
        let mut state = self.state();
        let session = state.sessions.get_mut(&id).expect("a living session");
        session.connected = true;
        (session.events)(ZkEvent::Connected);
    }

    /// Expires the session.
    pub fn expire(&self, id: i64) {
        let events = self.state().sessions.get(&id).map(|session| session.events.clone());
        events.expect("a living session")(ZkEvent::Expired);
        self.state().end(id);
    }

    /// Runs the session's next operation, and loses its reply.
    pub fn lose_reply(&self, id: i64) {
        self.state().sessions.get_mut(&id).expect("a living session").loses_reply = true;
    }
}

impl ZkConnector for MemoryZooKeeper {
    fn connect(&self, spec: ConnectSpec, events: EventSink) -> ZkFuture<Arc<dyn ZkClient>> {
        let mut state = self.state();
        let chroot = spec.servers.absolute("/");
        if !state.exists(&chroot) {
            return Box::pin(ready(Err(ZkError::NoChroot { connect: spec.servers.to_string(), chroot })));
        }
        state.last_id += 1;
        let id = state.last_id;
        events(ZkEvent::Connected);
        let session = Session {
            events,
            servers: spec.servers,
            connected: true,
            loses_reply: false,
            data_watches: BTreeSet::new(),
            child_watches: BTreeSet::new(),
            tasks: Vec::new(),
        };
        state.sessions.insert(id, session);
        let client = MemoryClient { ensemble: self.clone(), id, session_timeout: spec.session_timeout };
        Box::pin(ready(Ok(Arc::new(client) as Arc<dyn ZkClient>)))
    }
}

impl Ensemble {
    fn exists(&self, full: &str) -> bool {
        full == "/" || self.nodes.contains_key(full)
    }

    fn children(&self, full: &str) -> Vec<String> {
        let prefix = if full == "/" { "/".to_owned() } else { format!("{full}/") };
        let below = self.nodes.keys().filter_map(|path| path.strip_prefix(&prefix));
        below.filter(|name| !name.contains('/')).map(str::to_owned).collect()
    }

    fn fire(&mut self, full: &str, change: NodeChange) {
        for session in self.sessions.values_mut() {
            let data = change != NodeChange::Children && session.data_watches.remove(full);
            let children = matches!(change, NodeChange::Children | NodeChange::Deleted)
                && session.child_watches.remove(full);
            if let Some(path) = session.servers.relative(full).filter(|_| data || children) {
                let path = path.to_owned();
                (session.events)(ZkEvent::Fired { path, change });
            }
        }
    }

    fn changed(&mut self, full: &str, change: NodeChange) {
        self.fire(full, change);
        if change != NodeChange::Data {
            self.fire(parent(full), NodeChange::Children);
        }
    }

    fn next_zxid(&mut self) -> i64 {
        self.zxid += 1;
        self.zxid
    }

    /// Ends a session and removes its nodes.
    fn end(&mut self, id: i64) {
        let Some(session) = self.sessions.remove(&id) else { return };
        session.tasks.iter().for_each(AbortHandle::abort);
        let owned = |node: &Node| node.stat.ephemeral_owner == id;
        let gone: Vec<_> =
            self.nodes.iter().filter(|(_, node)| owned(node)).map(|(path, _)| path.clone()).collect();
        for path in gone {
            self.nodes.remove(&path);
            self.changed(&path, NodeChange::Deleted);
        }
    }
}

fn parent(full: &str) -> &str {
    full.rsplit_once('/').map(|(parent, _)| parent).filter(|parent| !parent.is_empty()).unwrap_or("/")
}

struct MemoryClient {
    ensemble: MemoryZooKeeper,
    id: i64,
    session_timeout: Duration,
}

impl MemoryClient {
    /// Runs one operation on the full path, unless the session is over or cut off.
    fn run<T: Send + 'static>(
        &self,
        operation: &'static str,
        path: &str,
        work: impl FnOnce(&mut Ensemble, &str, ZkCall) -> Result<T, ZkError>,
    ) -> ZkFuture<T> {
        let call = ZkCall::new(operation, path);
        let mut state = self.ensemble.state();
        let Some(session) = state.sessions.get_mut(&self.id) else {
            return Box::pin(ready(Err(ZkError::SessionExpired(call))));
        };
        if !session.connected {
            return Box::pin(ready(Err(ZkError::ConnectionLoss(call))));
        }
        let lost = std::mem::take(&mut session.loses_reply);
        let full = session.servers.absolute(path);
        let result = work(&mut state, &full, call.clone());
        Box::pin(ready(if lost { Err(ZkError::ConnectionLoss(call)) } else { result }))
    }
}

impl ZkClient for MemoryClient {
    fn children(&self, path: &str, watch: bool) -> ZkFuture<Vec<String>> {
        let id = self.id;
        self.run("get children of", path, |state, full, call| {
            if !state.exists(full) {
                return Err(ZkError::NoNode(call));
            }
            if let Some(session) = state.sessions.get_mut(&id).filter(|_| watch) {
                session.child_watches.insert(full.to_owned());
            }
            Ok(state.children(full))
        })
    }

    fn data(&self, path: &str, watch: bool) -> ZkFuture<(Vec<u8>, Stat)> {
        let id = self.id;
        self.run("get data of", path, |state, full, call| {
            let node = state.nodes.get(full).ok_or(ZkError::NoNode(call))?;
            if let Some(session) = state.sessions.get_mut(&id).filter(|_| watch) {
                session.data_watches.insert(full.to_owned());
            }
            Ok((node.data.clone(), node.stat))
        })
    }

    fn exists(&self, path: &str, watch: bool) -> ZkFuture<Option<Stat>> {
        let id = self.id;
        self.run("stat", path, |state, full, _| {
            if let Some(session) = state.sessions.get_mut(&id).filter(|_| watch) {
                session.data_watches.insert(full.to_owned());
            }
            let root = state.exists(full).then(Stat::default);
            Ok(state.nodes.get(full).map(|node| node.stat).or(root))
        })
    }

    fn create(&self, path: &str, data: Vec<u8>, mode: NodeMode) -> ZkFuture<()> {
        let owner = if mode == NodeMode::Ephemeral { self.id } else { 0 };
        self.run("create", path, |state, full, call| {
            if state.exists(full) {
                return Err(ZkError::NodeExists(call));
            }
            if !state.exists(parent(full)) {
                return Err(ZkError::NoNode(call));
            }
            let zxid = state.next_zxid();
            state.nodes.insert(full.to_owned(), Node { data, stat: Stat::new(zxid, zxid, 0, owner) });
            state.changed(full, NodeChange::Created);
            Ok(())
        })
    }

    fn set_data(&self, path: &str, data: Vec<u8>, version: Option<i32>) -> ZkFuture<Stat> {
        self.run("set data of", path, |state, full, call| {
            let zxid = state.next_zxid();
            let node = state.nodes.get_mut(full).ok_or_else(|| ZkError::NoNode(call.clone()))?;
            if version.is_some_and(|version| version != node.stat.version) {
                return Err(ZkError::BadVersion(call));
            }
            (node.data, node.stat.mzxid) = (data, zxid);
            node.stat.version += 1;
            let stat = node.stat;
            state.changed(full, NodeChange::Data);
            Ok(stat)
        })
    }

    fn beat(&self, path: &str) -> ZkFuture<Stat> {
        self.run("beat on", path, |state, full, call| {
            if state.exists(full) { Err(ZkError::BadVersion(call)) } else { Err(ZkError::NoNode(call)) }
        })
    }

    fn delete(&self, path: &str, version: Option<i32>) -> ZkFuture<()> {
        self.run("delete", path, |state, full, call| {
            let node = state.nodes.get(full).ok_or_else(|| ZkError::NoNode(call.clone()))?;
            if version.is_some_and(|version| version != node.stat.version) {
                return Err(ZkError::BadVersion(call));
            }
            if !state.children(full).is_empty() {
                return Err(ZkError::NotEmpty(call));
            }
            state.nodes.remove(full);
            state.changed(full, NodeChange::Deleted);
            Ok(())
        })
    }

    fn close(&self) -> ZkFuture<()> {
        self.ensemble.state().end(self.id);
        Box::pin(ready(Ok(())))
    }

    fn end(&self) {
        // the nodes stay, as they do on a server until the session expires
        if let Some(session) = self.ensemble.state().sessions.remove(&self.id) {
            session.tasks.iter().for_each(AbortHandle::abort);
        }
    }

    fn spawn(&self, task: ZkTask) {
        let task = tokio::spawn(task).abort_handle();
        match self.ensemble.state().sessions.get_mut(&self.id) {
            Some(session) => session.tasks.push(task),
            None => task.abort(),
        }
    }

    fn session_timeout(&self) -> Duration {
        self.session_timeout
    }

    fn in_flight(&self) -> usize {
        0
    }
}
