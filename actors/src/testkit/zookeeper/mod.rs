//! A ZooKeeper in memory behind the client port.
//!
//! Each session talks to a server over a connection that keeps order: requests are served one after the other, and a
//! watch fires before the answer that shows what it tells of. A test can take the connection away, and put the server
//! behind ([`lag`](MemoryZooKeeper::lag)) or apart from ([`cut_off`](MemoryZooKeeper::cut_off)) its leader, as a
//! follower may be. A session that the leader has not heard of for its timeout expires, and its client learns of that
//! when it is connected again.

mod client;
mod session;
mod tree;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

pub use client::MemoryConnector;
use session::{Link, Session};
pub use tree::Znode;
use tree::{Changes, Tree};

use super::Pace;
use crate::zk_session::ZkCall;
use crate::zk_session::port::{NodeChange, ZkEvent};

/// The ensemble; clones are the same one.
#[derive(Clone, Default)]
pub struct MemoryZooKeeper(Arc<Mutex<Ensemble>>);

/// Sees each change of a node, with what it holds now; must not call back.
type Observer = Arc<dyn Fn(&str, Option<&Znode>) + Send + Sync>;

#[derive(Default)]
struct Ensemble {
    /// As the leader has it.
    tree: Tree,
    sessions: BTreeMap<i64, Session>,
    last_id: i64,
    pace: Option<Pace>,
    observer: Option<Observer>,
}

impl MemoryZooKeeper {
    fn state(&self) -> MutexGuard<'_, Ensemble> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connector whose sessions are known by `name`.
    pub fn connector(&self, name: &str) -> MemoryConnector {
        MemoryConnector::new(self.clone(), name)
    }

    /// Has each request and each answer take its time.
    pub fn set_pace(&self, pace: Pace) {
        self.state().pace = Some(pace);
    }

    /// Shows every change of a node to `observer`, in order.
    pub fn observe(&self, observer: impl Fn(&str, Option<&Znode>) + Send + Sync + 'static) {
        self.state().observer = Some(Arc::new(observer));
    }

    /// The ids of the sessions that live, oldest first.
    pub fn sessions(&self) -> Vec<i64> {
        self.living(|_| true)
    }

    /// Those that a connector of this name opened.
    pub fn sessions_of(&self, name: &str) -> Vec<i64> {
        self.living(|session| session.name == name)
    }

    fn living(&self, which: impl Fn(&Session) -> bool) -> Vec<i64> {
        let state = self.state();
        let living = state.sessions.iter().filter(|(_, session)| !session.expired && which(session));
        living.map(|(id, _)| *id).collect()
    }

    /// A node as the leader has it.
    pub fn node(&self, path: &str) -> Option<Znode> {
        self.state().tree.get(path).cloned()
    }

    /// Names of a node's children as the leader has them.
    pub fn children(&self, path: &str) -> Vec<String> {
        self.state().tree.children(path)
    }

    /// Sets a persistent node's data; makes it and its parents if need be.
    pub fn put(&self, path: &str, data: &[u8]) {
        let mut state = self.state();
        let call = || ZkCall::new("put", path);
        for (at, _) in path.match_indices('/').skip(1) {
            let made = state.tree.create(&path[..at], Vec::new(), 0, call());
            state.changed(made.unwrap_or_default());
        }
        let put = match state.tree.create(path, data.to_vec(), 0, call()) {
            Ok(changes) => changes,
            Err(_) => {
                state.tree.set_data(path, data.to_vec(), None, call()).map_or_else(|_| Vec::new(), |it| it.1)
            }
        };
        state.changed(put);
    }

    /// Makes an ephemeral node that is a session's, of this ensemble or of nobody's client; one that is there stays as
    /// it is.
    pub fn put_ephemeral(&self, path: &str, data: &[u8], session: i64) {
        let mut state = self.state();
        let made = state.tree.create(path, data.to_vec(), session, ZkCall::new("put", path));
        state.changed(made.unwrap_or_default());
    }

    /// Deletes a node, whosever it is; one that has children or is not there stays as it is.
    pub fn remove(&self, path: &str) {
        let mut state = self.state();
        let gone = state.tree.delete(path, None, ZkCall::new("remove", path));
        state.changed(gone.unwrap_or_default());
    }

    /// Takes the session's connection: its watches are lost, answers under way are too, and operations fail. It expires
    /// after its timeout unless [`reconnect`](Self::reconnect)ed.
    pub fn suspend(&self, id: i64) {
        let events = self.with(id, |session| (session.link == Link::Up).then(|| session.disconnect()));
        if let Some(events) = events.flatten() {
            events(ZkEvent::Suspended);
            self.expect_silence(id);
        }
    }

    /// Connects the session again, to a server that is up to date; a client whose session has expired learns of it.
    pub fn reconnect(&self, id: i64) {
        let mut state = self.state();
        let Some(session) = state.sessions.get_mut(&id).filter(|session| session.link == Link::Down) else {
            return;
        };
        let events = session.events.clone();
        let event = if session.expired {
            state.forget(id);
            ZkEvent::Expired
        } else {
            session.connect();
            ZkEvent::Connected
        };
        drop(state);
        events(event);
    }

    /// Expires the session and tells its client at once.
    pub fn expire(&self, id: i64) {
        let Some(events) = self.with(id, |session| session.events.clone()) else { return };
        events(ZkEvent::Expired);
        let mut state = self.state();
        state.forget(id);
        state.end(id);
    }

    /// Runs the session's next operation, and loses its answer.
    pub fn lose_reply(&self, id: i64) {
        self.with(id, |session| session.loses_reply = true);
    }

    /// Puts the session's server behind its leader: it answers reads from what it has, and writes when it has caught
    /// up.
    pub fn lag(&self, id: i64) {
        let mut state = self.state();
        let tree = state.tree.clone();
        if let Some(session) = state.sessions.get_mut(&id).filter(|session| session.link == Link::Up) {
            session.view.get_or_insert(tree);
        }
    }

    /// Puts it apart from its leader: it answers reads from what it has, and no write; the leader does not hear of the
    /// session.
    pub fn cut_off(&self, id: i64) {
        self.lag(id);
        let cut = self
            .with(id, |session| session.link == Link::Up && !std::mem::replace(&mut session.cut_off, true));
        if cut == Some(true) {
            self.expect_silence(id);
        }
    }

    /// Ends [`lag`](Self::lag) or [`cut_off`](Self::cut_off): watches fire for what has changed meanwhile, and a client
    /// whose session has expired learns of it.
    pub fn catch_up(&self, id: i64) {
        let mut state = self.state();
        let Some(session) = state.sessions.get_mut(&id).filter(|session| session.link == Link::Up) else {
            return;
        };
        if !session.expired {
            return state.catch_up(id);
        }
        let events = session.events.clone();
        state.forget(id);
        drop(state);
        events(ZkEvent::Expired);
    }

    /// The processes of that name are gone without a word: nothing of theirs runs on, their sessions expire in time.
    pub fn vanish(&self, name: &str) {
        for id in self.sessions_of(name) {
            self.abandon(id);
        }
    }

    /// The client is gone, and has not closed its session.
    fn abandon(&self, id: i64) {
        let was_heard = self.with(id, |session| {
            let was_heard = session.link == Link::Up && !session.cut_off;
            session.link = Link::Gone;
            session.end_tasks();
            was_heard
        });
        let mut state = self.state();
        if state.sessions.get(&id).is_some_and(|session| session.expired) {
            return state.forget(id);
        }
        drop(state);
        if was_heard == Some(true) {
            self.expect_silence(id);
        }
    }

    fn with<T>(&self, id: i64, what: impl FnOnce(&mut Session) -> T) -> Option<T> {
        self.state().sessions.get_mut(&id).map(what)
    }

    /// The leader hears of the session no more: it expires after its timeout.
    fn expect_silence(&self, id: i64) {
        let Some((timeout, heard)) = self.with(id, |session| (session.timeout, session.heard)) else {
            return;
        };
        // without a runtime the test is over
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let ensemble = self.clone();
        runtime.spawn(async move {
            tokio::time::sleep(timeout).await;
            let mut state = ensemble.state();
            if state.sessions.get(&id).is_some_and(|session| session.heard == heard) {
                state.end(id);
            }
        });
    }
}

impl fmt::Debug for MemoryZooKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryZooKeeper").field("sessions", &self.sessions()).finish_non_exhaustive()
    }
}

impl Ensemble {
    /// When what is sent now is there.
    fn arrival(&self) -> Instant {
        let delay = self.pace.as_ref().map_or(Duration::ZERO, |pace| pace());
        Instant::now() + delay
    }

    /// Tells watches and the observer of changes to the leader's tree.
    fn changed(&mut self, changes: Changes) {
        for (path, change) in changes {
            if let Some(observer) = self.observer.as_ref().filter(|_| change != NodeChange::Children) {
                observer(&path, self.tree.get(&path));
            }
            self.fire(&path, change);
        }
    }

    fn fire(&mut self, full: &str, change: NodeChange) {
        let at = self.arrival();
        // a server that lags fires when it has caught up
        for session in self.sessions.values_mut().filter(|session| session.view.is_none()) {
            session.fire(full, change, at);
        }
    }

    fn catch_up(&mut self, id: i64) {
        let at = self.arrival();
        let (tree, sessions) = (&self.tree, &mut self.sessions);
        let Some(session) = sessions.get_mut(&id) else { return };
        if let Some(view) = session.view.take() {
            for path in session.data_watches.clone() {
                if let Some(change) = view.data_change(tree, &path) {
                    session.fire(&path, change, at);
                }
            }
            for path in session.child_watches.clone() {
                if let Some(change) = view.children_change(tree, &path) {
                    session.fire(&path, change, at);
                }
            }
        }
        session.is_heard();
    }

    /// Ends a session: its nodes go. Its client, if there is one, learns of it later.
    fn end(&mut self, id: i64) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.expired = true;
            if session.link == Link::Gone {
                self.forget(id);
            }
        }
        let changes = self.tree.end_session(id);
        self.changed(changes);
    }

    /// The client knows that it is over.
    fn forget(&mut self, id: i64) {
        if let Some(mut session) = self.sessions.remove(&id) {
            session.end_tasks();
        }
    }
}
