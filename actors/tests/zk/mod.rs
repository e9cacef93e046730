//! A ZooKeeper of its own and a session on it, for each test.
#![allow(dead_code, reason = "each test binary uses a part")]
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use actix::prelude::*;
use kafka_troupe_actors::lease::{Lease, SessionEpoch};
use kafka_troupe_actors::zk_session::port::{ConnectSpec, EventSink, ZkClient, ZkConnector, ZkFuture};
use kafka_troupe_actors::zk_session::{
    ClientHolder, Describe, SessionConfig, SessionEvent, SessionState, SessionStatus, Subscribe,
    WaitConnected, ZkError, ZkSession, ZooKeeperAsync,
};
use tokio::sync::mpsc;
use tokio::time::timeout;
use troupe_cluster::Cluster;

/// Longer than anything here takes on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The session timeout of the tests: a heartbeat each half second.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(3);

pub fn zookeeper() -> Cluster {
    Cluster::builder().brokers(0).start().expect("a ZooKeeper server")
}

pub fn config(connect: &str) -> SessionConfig {
    let mut config = SessionConfig::new(connect.parse().expect("a connect string"));
    config.session_timeout = SESSION_TIMEOUT;
    config.connection_timeout = PATIENCE;
    config
}

/// Opens sessions as usual, and keeps the clients within reach of the test.
#[derive(Clone, Default)]
pub struct Stash(Arc<Mutex<Vec<Arc<dyn ZkClient>>>>);

impl ZkConnector for Stash {
    fn connect(&self, spec: ConnectSpec, events: EventSink) -> ZkFuture<Arc<dyn ZkClient>> {
        let (clients, connecting) = (self.0.clone(), ZooKeeperAsync.connect(spec, events));
        Box::pin(async move {
            let client = connecting.await?;
            clients.lock().unwrap().push(client.clone());
            Ok(client)
        })
    }
}

impl Stash {
    pub fn last(&self) -> Arc<dyn ZkClient> {
        self.0.lock().unwrap().last().expect("a client").clone()
    }
}

/// Stops the client's thread as a stopped process would stop it, until the answer is dropped.
pub fn freeze(client: &dyn ZkClient) -> Sender<()> {
    let (go_on, frozen) = channel();
    let (stands, standing) = channel();
    client.spawn(Box::pin(async move {
        let _ = stands.send(());
        let _ = frozen.recv();
    }));
    standing.recv_timeout(PATIENCE).expect("the client's thread runs");
    go_on
}

struct Recorder(mpsc::UnboundedSender<SessionEvent>);

impl Actor for Recorder {
    type Context = Context<Self>;
}

impl Handler<SessionEvent> for Recorder {
    type Result = ();

    fn handle(&mut self, event: SessionEvent, _: &mut Self::Context) {
        let _ = self.0.send(event);
    }
}

/// A session with its events, and the connector it uses.
pub struct Session<C = Stash> {
    pub actor: Addr<ZkSession>,
    pub lease: Arc<Lease>,
    pub holder: Arc<ClientHolder>,
    pub stash: C,
    pub arbiter: Arbiter,
    pub events: mpsc::UnboundedReceiver<SessionEvent>,
}

impl Session {
    /// Starts a session that may fail to connect.
    pub async fn start(config: SessionConfig) -> Self {
        let lease = Arc::new(Lease::new());
        Self::over(config, ClientHolder::new(lease.clone()), lease, Stash::default()).await
    }

    /// Starts a session and waits until it stands.
    pub async fn connected(connect: &str) -> (Self, SessionEpoch) {
        let mut session = Self::start(config(connect)).await;
        let epoch = session.ask(WaitConnected).await.expect("a session");
        assert_eq!(session.event().await, SessionEvent::Connected { session: epoch });
        (session, epoch)
    }
}

impl<C: ZkConnector + Clone> Session<C> {
    /// Starts an actor over `holder`, which may have a session already.
    pub async fn over(config: SessionConfig, holder: Arc<ClientHolder>, lease: Arc<Lease>, stash: C) -> Self {
        let arbiter = Arbiter::new();
        let actor =
            ZkSession::start(&arbiter.handle(), config, Arc::new(stash.clone()), holder.clone(), None);
        let (sender, events) = mpsc::unbounded_channel();
        let recorder = Recorder::start_in_arbiter(&arbiter.handle(), |_| Recorder(sender));
        actor.send(Subscribe(recorder.recipient())).await.expect("the actor runs");
        Self { actor, lease, holder, stash, arbiter, events }
    }

    pub async fn ask<M, T>(&self, message: M) -> Result<T, ZkError>
    where
        M: Message<Result = Result<T, ZkError>> + Send + 'static,
        T: Send + 'static,
        ZkSession: Handler<M>,
    {
        timeout(PATIENCE, self.actor.send(message)).await.expect("an answer in time").expect("the actor runs")
    }

    pub async fn event(&mut self) -> SessionEvent {
        timeout(PATIENCE, self.events.recv()).await.expect("an event in time").expect("the recorder runs")
    }

    /// Waits for `wanted`; other events before it are fine.
    pub async fn until(&mut self, wanted: &SessionEvent) {
        while self.event().await != *wanted {}
    }

    pub async fn status(&self) -> SessionStatus {
        self.actor.send(Describe).await.expect("the actor runs")
    }

    pub async fn is_connected(&self) -> bool {
        self.status().await.state == SessionState::Connected
    }
}

/// Asks again and again until `condition` holds, and tells how long that took.
pub async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) -> Duration {
    let begun = Instant::now();
    while !condition().await {
        assert!(begun.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    begun.elapsed()
}
