//! One session: its connection, its server's view, and its watches.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kafka_troupe_proto::zk::connect_string::ConnectString;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::super::pause_until;
use super::tree::Tree;
use super::{Ensemble, MemoryZooKeeper};
use crate::zk_session::port::{EventSink, NodeChange, ZkEvent};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Up,
    Down,
    /// There is no client any more.
    Gone,
}

pub(super) struct Session {
    pub(super) name: String,
    pub(super) events: EventSink,
    pub(super) servers: ConnectString,
    pub(super) timeout: Duration,
    pub(super) link: Link,
    /// Counts connections: what belongs to an earlier one is of no effect.
    pub(super) connection: u64,
    /// Counts the times that the leader heard of the session again.
    pub(super) heard: u64,
    /// The ensemble has ended it, and its client does not know.
    pub(super) expired: bool,
    /// Its client has ended it.
    pub(super) closed: bool,
    /// The next operation runs, but its answer is lost.
    pub(super) loses_reply: bool,
    /// What its server has while it lags behind the leader.
    pub(super) view: Option<Tree>,
    /// Its server cannot reach the leader.
    pub(super) cut_off: bool,
    pub(super) data_watches: BTreeSet<String>,
    pub(super) child_watches: BTreeSet<String>,
    pub(super) requests: UnboundedSender<Request>,
    answers: UnboundedSender<Answer>,
    /// Something changed for whom a request waits.
    turned: Arc<Notify>,
    tasks: Vec<AbortHandle>,
}

/// A request on its way to the server. It is run there, and gives its answer, which is run at the client.
pub(super) struct Request {
    pub(super) arrives: Instant,
    pub(super) connection: u64,
    pub(super) writes: bool,
    pub(super) run: Box<dyn FnOnce(&mut Ensemble) -> Delivery + Send>,
}

pub(super) type Delivery = Box<dyn FnOnce() + Send>;

/// Something on its way to the client.
struct Answer {
    arrives: Instant,
    connection: u64,
    deliver: Delivery,
}

impl Session {
    /// A session with its connection, which is served by tasks of the present runtime.
    pub(super) fn open(
        ensemble: &MemoryZooKeeper,
        id: i64,
        name: &str,
        (servers, timeout): (ConnectString, Duration),
        events: EventSink,
    ) -> Self {
        let (requests, asked) = unbounded_channel();
        let (answers, answered) = unbounded_channel();
        let server = tokio::spawn(serve(ensemble.clone(), id, asked));
        let client = tokio::spawn(deliver(ensemble.clone(), id, answered));
        Self {
            name: name.to_owned(),
            events,
            servers,
            timeout,
            link: Link::Up,
            connection: 0,
            heard: 0,
            expired: false,
            closed: false,
            loses_reply: false,
            view: None,
            cut_off: false,
            data_watches: BTreeSet::new(),
            child_watches: BTreeSet::new(),
            requests,
            answers,
            turned: Arc::default(),
            tasks: vec![server.abort_handle(), client.abort_handle()],
        }
    }

    /// The connection is lost; gives the sink that is to hear of it. What the server has got already may still run.
    pub(super) fn disconnect(&mut self) -> EventSink {
        (self.link, self.view) = (Link::Down, None);
        self.data_watches.clear();
        self.child_watches.clear();
        self.events.clone()
    }

    /// A new connection, to a server that is up to date.
    pub(super) fn connect(&mut self) {
        (self.link, self.view) = (Link::Up, None);
        self.connection += 1;
        self.data_watches.clear();
        self.child_watches.clear();
        self.is_heard();
    }

    /// The leader hears of the session.
    pub(super) fn is_heard(&mut self) {
        self.cut_off = false;
        self.heard += 1;
        self.turned.notify_one();
    }

    pub(super) fn fire(&mut self, full: &str, change: NodeChange, arrives: Instant) {
        let data = change != NodeChange::Children && self.data_watches.remove(full);
        let children =
            matches!(change, NodeChange::Children | NodeChange::Deleted) && self.child_watches.remove(full);
        if let Some(path) = self.servers.relative(full).filter(|_| data || children) {
            let (events, event) = (self.events.clone(), ZkEvent::Fired { path: path.to_owned(), change });
            self.send(self.connection, arrives, Box::new(move || events(event)));
        }
    }

    fn send(&self, connection: u64, arrives: Instant, deliver: Delivery) {
        // an error: the client is gone
        let _ = self.answers.send(Answer { arrives, connection, deliver });
    }

    pub(super) fn keep(&mut self, task: AbortHandle) {
        self.tasks.retain(|task| !task.is_finished());
        self.tasks.push(task);
    }

    pub(super) fn end_tasks(&mut self) {
        self.tasks.drain(..).for_each(|task| task.abort());
    }
}

/// Serves the requests of a session, in order.
async fn serve(ensemble: MemoryZooKeeper, id: i64, mut requests: UnboundedReceiver<Request>) {
    while let Some(Request { arrives, connection, writes, run }) = requests.recv().await {
        pause_until(arrives).await;
        // nobody runs the requests of a session that has expired; but a server that is apart does not know
        let is_apart = |session: &Session| {
            if session.cut_off { writes } else { session.expired }
        };
        if !wait_while(&ensemble, id, connection, is_apart).await {
            continue;
        }
        let deliver = run(&mut ensemble.state());
        // its own server has to have the write before it answers
        let is_behind = |session: &Session| writes && session.view.is_some();
        if wait_while(&ensemble, id, connection, is_behind).await {
            let state = ensemble.state();
            let at = state.arrival();
            if let Some(session) = state.sessions.get(&id) {
                session.send(connection, at, deliver);
            }
        }
    }
}

/// Waits while `hindered`; false when the request has been overtaken by a new connection or the session's end.
async fn wait_while(
    ensemble: &MemoryZooKeeper,
    id: i64,
    connection: u64,
    hindered: impl Fn(&Session) -> bool,
) -> bool {
    loop {
        let turned = {
            let state = ensemble.state();
            match state.sessions.get(&id) {
                Some(session) if session.connection == connection => {
                    if !hindered(session) {
                        return true;
                    }
                    session.turned.clone()
                }
                _ => return false,
            }
        };
        turned.notified().await;
    }
}

/// Delivers what comes over a session's connections, in order.
async fn deliver(ensemble: MemoryZooKeeper, id: i64, mut answers: UnboundedReceiver<Answer>) {
    while let Some(Answer { arrives, connection, deliver }) = answers.recv().await {
        pause_until(arrives).await;
        let is_connected =
            |session: &mut Session| session.link == Link::Up && session.connection == connection;
        if ensemble.with(id, is_connected) == Some(true) {
            deliver();
        }
    }
}
