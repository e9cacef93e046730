//! The client port over the ensemble in memory.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::session::{Delivery, Link, Request, Session};
use super::tree::Tree;
use super::{Ensemble, MemoryZooKeeper};
use crate::zk_session::port::{
    ConnectSpec, EventSink, NodeMode, Stat, ZkClient, ZkConnector, ZkEvent, ZkFuture, ZkTask,
};
use crate::zk_session::{ZkCall, ZkError};

/// Opens sessions of the ensemble in memory, known there by a name.
#[derive(Clone)]
pub struct MemoryConnector {
    ensemble: MemoryZooKeeper,
    name: String,
}

impl MemoryConnector {
    pub(super) fn new(ensemble: MemoryZooKeeper, name: &str) -> Self {
        Self { ensemble, name: name.to_owned() }
    }
}

impl ZkConnector for MemoryZooKeeper {
    fn connect(&self, spec: ConnectSpec, events: EventSink) -> ZkFuture<Arc<dyn ZkClient>> {
        self.connector("").connect(spec, events)
    }
}

impl ZkConnector for MemoryConnector {
    fn connect(&self, spec: ConnectSpec, events: EventSink) -> ZkFuture<Arc<dyn ZkClient>> {
        let (ensemble, name) = (self.ensemble.clone(), self.name.clone());
        Box::pin(async move {
            let arrival = ensemble.state().arrival();
            super::super::pause_until(arrival).await;
            let client = open(&ensemble, &name, spec, events.clone())?;
            events(ZkEvent::Connected);
            Ok(Arc::new(client) as Arc<dyn ZkClient>)
        })
    }
}

fn open(
    ensemble: &MemoryZooKeeper,
    name: &str,
    spec: ConnectSpec,
    events: EventSink,
) -> Result<MemoryClient, ZkError> {
    let mut state = ensemble.state();
    let chroot = spec.servers.absolute("/");
    if !state.tree.exists(&chroot) {
        return Err(ZkError::NoChroot { connect: spec.servers.to_string(), chroot });
    }
    state.last_id += 1;
    let id = state.last_id;
    let session = Session::open(ensemble, id, name, (spec.servers, spec.session_timeout), events);
    state.sessions.insert(id, session);
    Ok(MemoryClient {
        ensemble: ensemble.clone(),
        id,
        session_timeout: spec.session_timeout,
        operation_timeout: spec.operation_timeout,
    })
}

struct MemoryClient {
    ensemble: MemoryZooKeeper,
    id: i64,
    session_timeout: Duration,
    operation_timeout: Duration,
}

impl MemoryClient {
    /// Sends one operation, on the full path, and waits for its answer.
    fn ask<T: Send + 'static>(
        &self,
        call: ZkCall,
        writes: bool,
        work: impl FnOnce(&mut Ensemble, &str) -> Result<T, ZkError> + Send + 'static,
    ) -> ZkFuture<T> {
        let (ensemble, id, after) = (self.ensemble.clone(), self.id, self.operation_timeout);
        Box::pin(async move {
            let answer = match send(&ensemble.state(), id, &call, writes, work) {
                Ok(answer) => answer,
                Err(error) => return Err(error),
            };
            let lost = ensemble.clone();
            match timeout(after, answer).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) if lost.with(id, |session| session.link != Link::Gone) == Some(true) => {
                    Err(ZkError::ConnectionLoss(call))
                }
                Ok(Err(_)) => Err(ZkError::SessionExpired(call)),
                Err(_) => Err(ZkError::Timeout { call, after }),
            }
        })
    }

    fn write<T: Send + 'static>(
        &self,
        operation: &'static str,
        path: &str,
        work: impl FnOnce(&mut Ensemble, &str, ZkCall) -> Result<T, ZkError> + Send + 'static,
    ) -> ZkFuture<T> {
        let call = ZkCall::new(operation, path);
        let its = call.clone();
        self.ask(call, true, move |state, full| work(state, full, its))
    }

    /// Reads what the session's server has; `Watch` says what is armed with it.
    fn read<T: Send + 'static>(
        &self,
        operation: &'static str,
        path: &str,
        watch: impl FnOnce(&mut Session, &str) + Send + 'static,
        work: impl FnOnce(&Tree, &str, ZkCall) -> Result<T, ZkError> + Send + 'static,
    ) -> ZkFuture<T> {
        let (id, call) = (self.id, ZkCall::new(operation, path));
        let its = call.clone();
        self.ask(call, false, move |state, full| {
            let (tree, sessions) = (&state.tree, &mut state.sessions);
            let Some(session) = sessions.get_mut(&id) else { return Err(ZkError::SessionExpired(its)) };
            let read = work(session.view.as_ref().unwrap_or(tree), full, its)?;
            watch(session, full);
            Ok(read)
        })
    }
}

/// Puts a request on the session's connection.
fn send<T: Send + 'static>(
    state: &Ensemble,
    id: i64,
    call: &ZkCall,
    writes: bool,
    work: impl FnOnce(&mut Ensemble, &str) -> Result<T, ZkError> + Send + 'static,
) -> Result<oneshot::Receiver<Result<T, ZkError>>, ZkError> {
    let session = state.sessions.get(&id).filter(|session| session.link != Link::Gone && !session.closed);
    let session = session.ok_or_else(|| ZkError::SessionExpired(call.clone()))?;
    if session.link == Link::Down {
        return Err(ZkError::ConnectionLoss(call.clone()));
    }
    let (reply, answer) = oneshot::channel();
    let full = session.servers.absolute(&call.path);
    let run = move |state: &mut Ensemble| -> Delivery {
        let lost =
            state.sessions.get_mut(&id).is_some_and(|session| std::mem::take(&mut session.loses_reply));
        let result = work(state, &full);
        if lost {
            return Box::new(move || drop(reply));
        }
        Box::new(move || drop(reply.send(result)))
    };
    let request =
        Request { arrives: state.arrival(), connection: session.connection, writes, run: Box::new(run) };
    // an error: its tasks have ended with the session, and so does the answer
    let _ = session.requests.send(request);
    Ok(answer)
}

impl ZkClient for MemoryClient {
    fn children(&self, path: &str, watch: bool) -> ZkFuture<Vec<String>> {
        let arm = move |session: &mut Session, full: &str| {
            if watch {
                session.child_watches.insert(full.to_owned());
            }
        };
        self.read("get children of", path, arm, |tree, full, call| {
            if tree.exists(full) { Ok(tree.children(full)) } else { Err(ZkError::NoNode(call)) }
        })
    }

    fn data(&self, path: &str, watch: bool) -> ZkFuture<(Vec<u8>, Stat)> {
        self.read("get data of", path, arm_data(watch), |tree, full, call| {
            let node = tree.get(full).ok_or(ZkError::NoNode(call))?;
            Ok((node.data.clone(), node.stat))
        })
    }

    fn exists(&self, path: &str, watch: bool) -> ZkFuture<Option<Stat>> {
        self.read("stat", path, arm_data(watch), |tree, full, _| Ok(tree.stat(full)))
    }

    fn create(&self, path: &str, data: Vec<u8>, mode: NodeMode) -> ZkFuture<()> {
        let owner = if mode == NodeMode::Ephemeral { self.id } else { 0 };
        self.write("create", path, move |state, full, call| {
            let changes = state.tree.create(full, data, owner, call)?;
            state.changed(changes);
            Ok(())
        })
    }

    fn set_data(&self, path: &str, data: Vec<u8>, version: Option<i32>) -> ZkFuture<Stat> {
        self.write("set data of", path, move |state, full, call| {
            let (stat, changes) = state.tree.set_data(full, data, version, call)?;
            state.changed(changes);
            Ok(stat)
        })
    }

    fn beat(&self, path: &str) -> ZkFuture<Stat> {
        self.write("beat on", path, |state, full, call| {
            if state.tree.exists(full) { Err(ZkError::BadVersion(call)) } else { Err(ZkError::NoNode(call)) }
        })
    }

    fn delete(&self, path: &str, version: Option<i32>) -> ZkFuture<()> {
        self.write("delete", path, move |state, full, call| {
            let changes = state.tree.delete(full, version, call)?;
            state.changed(changes);
            Ok(())
        })
    }

    fn close(&self) -> ZkFuture<()> {
        let id = self.id;
        self.write("close session", "/", move |state, _, _| {
            if let Some(session) = state.sessions.get_mut(&id) {
                session.closed = true;
            }
            state.end(id);
            Ok(())
        })
    }

    fn end(&self) {
        // the nodes stay, as they do on a server until the session expires
        self.ensemble.abandon(self.id);
    }

    fn spawn(&self, task: ZkTask) {
        let task = tokio::spawn(task).abort_handle();
        if self.ensemble.with(self.id, |session| session.keep(task.clone())).is_none() {
            task.abort();
        }
    }

    fn session_timeout(&self) -> Duration {
        self.session_timeout
    }

    fn in_flight(&self) -> usize {
        0
    }
}

impl Drop for MemoryClient {
    fn drop(&mut self) {
        self.end();
    }
}

fn arm_data(watch: bool) -> impl FnOnce(&mut Session, &str) + Send + 'static {
    move |session, full| {
        if watch {
            session.data_watches.insert(full.to_owned());
        }
    }
}
