//! The ZooKeeper session as an actor: reads, writes and watches of the group, and the heartbeat behind the lease.
//!
//! One client is one session ([`port`]): an operation planned in one session never runs in the next. When a
//! session ends, whoever ended it, the client goes with it and a new one is opened, and subscribers hear
//! `Expired`, then `Connected` with a higher [`SessionEpoch`].
//!
//! # Mailbox
//! Requests: [`ReadChildren`], [`ReadData`], [`CreateEphemeral`], [`CreatePersistent`], [`SetData`],
//! [`Delete`], [`Register`], [`Unwatch`], [`Subscribe`], [`WaitConnected`], [`Describe`], [`Shutdown`].
//! Internal: `Opened`, `SessionNews`, `Closed`.
//!
//! # State
//! Little: the client, the wanted watches and the session counter live in a [`ClientHolder`] that outlives the
//! actor. Its own are the subscribers, who is waiting for the first session, and the state that is shown.
//!
//! # Supervision
//! A restarted actor takes over the live client from the holder: the session and its ephemeral nodes stay, the
//! lease goes on. Subscribers subscribe again and hear `Connected` at once, on which they read everything anew, and
//! then what of the wanted watches has changed meanwhile.
//! The first connect that fails is final (`Failed`): a wrong address or chroot must be seen. Later ones are tried
//! again for ever.
//!
//! # Talks to
//! The ensemble, through a [`ZkConnector`], whose library reaches it through `relay`; its subscribers
//! ([`SessionEvent`]); the [`Lease`], which the heartbeat extends from beside the client, so that no mailbox delays it.
//!
//! # Non-obvious
//! * `Connected` is told after a heartbeat has been answered on the new connection, not when the socket stands: a
//!   follower that is cut off from its leader accepts connections and answers reads; not ours, though, which wait
//!   behind our unanswered heartbeat as ZooKeeper keeps a session's order (3.4 lets the reads of all sessions wait).
//! * A server that does not answer the heartbeat for a third of the timeout is left for another, in the same session:
//!   at least a sixth of the timeout is left of the lease then. With one address only it is connected to again after
//!   two thirds.
//! * A lost answer is settled by asking again through the leader; see `operations`.
//! * At most 32 operations are handed to the client library, and one that timed out still counts until the library
//!   lets go of it: a full request channel would block the library's own ping.
mod client;
mod client_thread;
mod config;
mod error;
mod establish;
mod heartbeat;
mod holder;
mod messages;
mod operations;
pub mod port;
mod probe;
mod relay;
mod requests;
mod watches;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix::prelude::*;
use tokio::sync::oneshot;
use tokio::time::timeout;

pub use self::client::{ZOOKEEPER_LOG_FILTER, ZooKeeperAsync};
pub use self::client_thread::CLIENT_THREAD;
pub use self::config::SessionConfig;
pub use self::error::{ZkCall, ZkError};
pub use self::holder::ClientHolder;
use self::holder::Live;
pub use self::messages::*;
use self::port::{ConnectSpec, NodeChange, ZkClient, ZkConnector, ZkEvent};
use self::watches::{WatchKey, WatchKind};
use crate::lease::BootInstant;
pub use crate::lease::{Lease, SessionEpoch};
use crate::supervise::ExitGuard;

/// Pause before a new session is tried again.
const RECONNECT_PAUSE: Duration = Duration::from_secs(1);
/// Longest wait for a session that is being given up to close properly.
const LAST_WORD: Duration = Duration::from_secs(1);

// ---- internal messages

/// What became of opening a session.
#[derive(Message)]
#[rtype(result = "()")]
struct Opened {
    session: SessionEpoch,
    /// When that began.
    at: BootInstant,
    result: Result<Arc<dyn ZkClient>, ZkError>,
}

/// Something happened in a session; ignored when the session is over.
#[derive(Message)]
#[rtype(result = "()")]
struct SessionNews {
    session: SessionEpoch,
    news: News,
}

enum News {
    Client(ZkEvent),
    /// The first heartbeat on a new connection was answered.
    Verified,
    RegistrationMissing,
    /// The client is of no use any more.
    Lost {
        why: String,
    },
    /// A watched node was found changed when it was read anew.
    Changed(WatchKey),
}

impl News {
    fn ends_the_session(&self) -> bool {
        matches!(self, Self::Lost { .. } | Self::Client(ZkEvent::Expired | ZkEvent::Broken { .. }))
    }
}

/// The session is closed: the actor may stop.
#[derive(Message)]
#[rtype(result = "()")]
struct Closed;

// ---- state

/// The actor; see the module.
pub struct ZkSession {
    /// How to open the next session.
    config: SessionConfig,
    /// With which library.
    connector: Arc<dyn ZkConnector>,
    /// The client and what outlives us.
    holder: Arc<ClientHolder>,
    /// Tells the parent of a panic; a session on its own has none.
    guard: Option<ExitGuard>,
    /// Who hears events.
    subscribers: Vec<Recipient<SessionEvent>>,
    /// Who waits for the first session.
    waiting: Vec<oneshot::Sender<Result<SessionEpoch, ZkError>>>,
    /// What is shown, and whether an `Opened` is still wanted.
    state: SessionState,
    /// Why there is no session and never will be.
    failure: Option<ZkError>,
    /// Messages handled, for the metrics.
    messages: u64,
}

impl ZkSession {
    /// Starts the actor on `arbiter` and opens a session, or takes over the one that `holder` keeps.
    pub fn start(
        arbiter: &ArbiterHandle,
        config: SessionConfig,
        connector: Arc<dyn ZkConnector>,
        holder: Arc<ClientHolder>,
        guard: Option<ExitGuard>,
    ) -> Addr<Self> {
        Self::start_in_arbiter(arbiter, move |_| Self {
            config,
            connector,
            holder,
            guard,
            subscribers: Vec::new(),
            waiting: Vec::new(),
            state: SessionState::Connecting,
            failure: None,
            messages: 0,
        })
    }

    fn open(&mut self, ctx: &mut Context<Self>) {
        let (session, at) = (self.holder.next_session(), BootInstant::now());
        let opening =
            self.connector.connect(ConnectSpec::new(session, &self.config), self.holder.sink(session));
        let actor = ctx.address();
        // a client that comes too late for us is dropped with its message, and ends
        actix::spawn(async move { actor.do_send(Opened { session, at, result: opening.await }) });
    }

    /// Gives the session up and opens the next.
    fn renew(&mut self, session: SessionEpoch, why: &str, ctx: &mut Context<Self>) {
        let Some(live) = self.holder.retire(session) else { return };
        tracing::warn!(session = session.0, why, "zookeeper session is over");
        close_in_passing(live);
        self.state = SessionState::Connecting;
        self.publish(&SessionEvent::Expired { session });
        self.open(ctx);
    }

    fn verified(&mut self, session: SessionEpoch, live: Arc<Live>) {
        if self.holder.stood.swap(true, Ordering::Relaxed) {
            self.holder.reconnects.fetch_add(1, Ordering::Relaxed);
        }
        self.state = SessionState::Connected;
        tracing::info!(session = session.0, servers = %self.config.servers, "zookeeper connected");
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(Ok(session));
        }
        self.publish(&SessionEvent::Connected { session });
        live.client.clone().spawn(Box::pin(watches::reread(live, self.holder.clone())));
    }

    fn failed(&mut self, why: ZkError, ctx: &mut Context<Self>) {
        let again = self.holder.stood.load(Ordering::Relaxed);
        // the first failure is the answer to whoever waits for it, who tells it better
        if again || self.waiting.is_empty() {
            tracing::error!(error = %why, again, "no zookeeper session");
        }
        self.publish(&SessionEvent::Failed { why: why.clone() });
        if again {
            ctx.run_later(RECONNECT_PAUSE, Self::open);
            return;
        }
        self.state = SessionState::Failed;
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(Err(why.clone()));
        }
        self.failure = Some(why);
    }

    fn publish(&mut self, event: &SessionEvent) {
        self.subscribers.retain(Recipient::connected);
        for subscriber in &self.subscribers {
            subscriber.do_send(event.clone());
        }
    }

    fn publish_change(&mut self, key: WatchKey) {
        let path = key.path;
        self.publish(&match key.kind {
            WatchKind::Children => SessionEvent::ChildrenChanged { path },
            WatchKind::Data => SessionEvent::DataChanged { path },
        });
    }

    fn client_event(&mut self, session: SessionEpoch, event: ZkEvent, ctx: &mut Context<Self>) {
        match event {
            ZkEvent::Connected => {} // told once a heartbeat is answered
            ZkEvent::Suspended => {
                tracing::warn!(session = session.0, "zookeeper connection lost");
                self.state = SessionState::Suspended;
                self.publish(&SessionEvent::Suspended);
            }
            ZkEvent::Expired => self.renew(session, "expired by the ensemble", ctx),
            ZkEvent::Broken { why } => self.renew(session, &why, ctx),
            ZkEvent::Fired { path, change } => {
                for key in self.holder.watches.concerned(&path, change) {
                    match (change, key.kind) {
                        (NodeChange::Deleted, WatchKind::Data) => {
                            self.publish(&SessionEvent::Deleted { path: key.path });
                        }
                        _ => self.publish_change(key),
                    }
                }
            }
        }
    }

    /// Why there is no session to ask.
    fn no_session(&self, call: ZkCall) -> ZkError {
        self.failure.clone().unwrap_or(ZkError::ConnectionLoss(call))
    }

    /// Runs `work` beside the present client and answers with its result, within three operation timeouts and
    /// `patience`.
    fn run<T, W>(
        &self,
        call: ZkCall,
        patience: Duration,
        work: impl FnOnce(Arc<Live>) -> W,
    ) -> ResponseFuture<Result<T, ZkError>>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, ZkError>> + Send + 'static,
    {
        let Some(live) = self.holder.live() else {
            let error = self.no_session(call);
            return Box::pin(async move { Err(error) });
        };
        let (reply, answer) = oneshot::channel();
        let work = operations::within(
            self.config.operation_timeout * 3 + patience,
            call.clone(),
            work(live.clone()),
        );
        live.client.spawn(Box::pin(async move {
            let _ = reply.send(work.await);
        }));
        // the work is dropped with the client, so with the session
        Box::pin(async move { answer.await.unwrap_or(Err(ZkError::SessionExpired(call))) })
    }

    /// [Runs](Self::run) what was planned in a session, and in no other (rule 3 of the design).
    fn run_in<T, W>(
        &self,
        planned: SessionEpoch,
        call: ZkCall,
        work: impl FnOnce(Arc<Live>) -> W,
    ) -> ResponseFuture<Result<T, ZkError>>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, ZkError>> + Send + 'static,
    {
        let current = self.holder.live().map_or_else(SessionEpoch::default, |live| live.session);
        // without a session that can come, the answer is why
        if self.failure.is_none() && current != planned {
            return Box::pin(async move { Err(ZkError::SessionMoved { call, planned, current }) });
        }
        self.run(call, Duration::ZERO, work)
    }
}

/// A session that is given up may still live on the server with our nodes: try to close it, briefly.
fn close_in_passing(live: Arc<Live>) {
    let client = live.client.clone();
    live.client.spawn(Box::pin(async move {
        let _ = timeout(LAST_WORD, client.close()).await;
        client.end();
    }));
}

// ---- lifecycle

impl Actor for ZkSession {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.holder.attach(ctx.address().downgrade().recipient());
        if let Some(live) = self.holder.live() {
            self.state = if live.is_verified() { SessionState::Connected } else { SessionState::Suspended };
            if live.over.load(Ordering::Acquire) {
                self.renew(live.session, "it ended while no actor ran", ctx);
            }
        } else if let Err(error) = self.config.check() {
            self.failed(error, ctx);
        } else {
            self.open(ctx);
        }
    }
}

// ---- handlers; those of the requests are in `requests`

impl Handler<Closed> for ZkSession {
    type Result = ();

    fn handle(&mut self, _: Closed, ctx: &mut Self::Context) {
        self.messages += 1;
        if let Some(guard) = &mut self.guard {
            guard.dismiss();
        }
        ctx.stop();
    }
}

impl Handler<Opened> for ZkSession {
    type Result = ();

    fn handle(&mut self, Opened { session, at, result }: Opened, ctx: &mut Self::Context) {
        self.messages += 1;
        match result {
            Ok(client) if self.state == SessionState::Closed => client.end(),
            Ok(client) => self.holder.install(session, at, client),
            Err(_) if self.state == SessionState::Closed => {}
            Err(why) => self.failed(why, ctx),
        }
    }
}

impl Handler<SessionNews> for ZkSession {
    type Result = ();

    fn handle(&mut self, SessionNews { session, news }: SessionNews, ctx: &mut Self::Context) {
        self.messages += 1;
        let Some(live) = self.holder.live().filter(|live| live.session == session) else { return };
        match news {
            News::Client(event) => self.client_event(session, event, ctx),
            News::Verified => self.verified(session, live),
            News::RegistrationMissing => self.publish(&SessionEvent::RegistrationMissing),
            News::Lost { why } => self.renew(session, &why, ctx),
            News::Changed(key) => self.publish_change(key),
        }
    }
}
