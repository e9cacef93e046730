//! The thread of a client: the library in a runtime of its own, its callbacks, and its end.
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kafka_troupe_proto::zk::connect_string::ConnectString;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Notify, oneshot, watch};
use zookeeper_async::{
    KeeperState, WatchedEvent, WatchedEventType, ZkError as LibraryError, ZkState, ZooKeeper,
};

use super::error::{ZkCall, ZkError};
use super::port::{ConnectSpec, EventSink, NodeChange, ZkEvent};
use super::relay::Relay;

/// Name of each client's thread.
pub const CLIENT_THREAD: &str = "troupe-zk";

/// Pause between two attempts of the library to reconnect; at 0 it would spin.
const RETRY: Duration = Duration::from_millis(200);

/// What the client's thread, its library callbacks and its users share.
pub(super) struct Shared {
    events: EventSink,
    servers: ConnectString,
    /// Over, for whatever reason: every operation is refused.
    over: AtomicBool,
    /// Wakes the thread's main future, which returns and takes the runtime down.
    end: Notify,
    connected: watch::Sender<bool>,
}

impl Shared {
    fn new(spec: &ConnectSpec, events: EventSink) -> Arc<Self> {
        Arc::new(Self {
            events,
            servers: spec.servers.clone(),
            over: AtomicBool::new(false),
            end: Notify::new(),
            connected: watch::Sender::new(false),
        })
    }

    pub(super) fn full_path(&self, path: &str) -> String {
        self.servers.absolute(path)
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Refuses everything from now on and takes the runtime down.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.end.notify_one();
    }

    /// Reports the last event of all.
    fn report_end(&self, event: ZkEvent) {
        if !self.over.swap(true, Ordering::AcqRel) {
            (self.events)(event);
        }
    }

    fn report(&self, event: ZkEvent) {
        if !self.is_over() {
            (self.events)(event);
        }
    }

    fn state_changed(self: &Arc<Self>, state: ZkState) {
        #[expect(deprecated, reason = "the library says NotConnected for an expired session")]
        match state {
            ZkState::Connected => {
                self.report(ZkEvent::Connected);
                self.connected.send_replace(true);
            }
            ZkState::NotConnected | ZkState::AuthFailed => self.expired(),
            ZkState::Connecting | ZkState::ConnectedReadOnly | ZkState::Associating => {
                self.report(ZkEvent::Suspended);
                self.connected.send_replace(false);
            }
            ZkState::Closed => {}
        }
    }

    fn watch_fired(&self, event: &WatchedEvent) {
        let change = match event.event_type {
            WatchedEventType::NodeCreated => NodeChange::Created,
            WatchedEventType::NodeDeleted => NodeChange::Deleted,
            WatchedEventType::NodeDataChanged => NodeChange::Data,
            WatchedEventType::NodeChildrenChanged => NodeChange::Children,
            WatchedEventType::None
            | WatchedEventType::DataWatchRemoved
            | WatchedEventType::ChildWatchRemoved => {
                return self.keeper_state(event.keeper_state);
            }
        };
        let full = event.path.as_deref().unwrap_or_default();
        if let Some(path) = self.servers.relative(full) {
            self.report(ZkEvent::Fired { path: path.to_owned(), change });
        }
    }

    fn keeper_state(&self, state: KeeperState) {
        if state == KeeperState::Expired {
            self.expired();
        }
    }

    fn expired(&self) {
        self.report_end(ZkEvent::Expired);
        self.end();
    }

    /// The runtime stays, for whoever hears of it to close the session.
    fn broken(&self, call: ZkCall, what: String) -> ZkError {
        let error = ZkError::Protocol { call, what };
        self.report_end(ZkEvent::Broken { why: error.to_string() });
        error
    }

    /// The library's answer as the port's error; ends what an impossible one shows to be over.
    pub(super) fn translate(&self, error: LibraryError, call: ZkCall) -> ZkError {
        match error {
            LibraryError::NoNode => ZkError::NoNode(call),
            LibraryError::NodeExists => ZkError::NodeExists(call),
            LibraryError::BadVersion => ZkError::BadVersion(call),
            LibraryError::NoAuth | LibraryError::AuthFailed => ZkError::NoAuth(call),
            LibraryError::NotEmpty => ZkError::NotEmpty(call),
            // moved: a late request of an older connection of ours; this one goes on
            LibraryError::ConnectionLoss | LibraryError::SessionMoved => ZkError::ConnectionLoss(call),
            LibraryError::SessionExpired => {
                self.expired();
                ZkError::SessionExpired(call)
            }
            LibraryError::MarshallingError => {
                self.broken(call, "the reply does not fit the request".to_owned())
            }
            LibraryError::BadArguments | LibraryError::NoChildrenForEphemerals | LibraryError::InvalidACL => {
                ZkError::Protocol { call, what: format!("refused: {error}") }
            }
            other => self.broken(call, format!("unexpected answer {other:?}")),
        }
    }
}

/// Ends a half-open client whose opening was given up.
struct EndOnDrop(Option<Arc<Shared>>);

impl EndOnDrop {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            shared.end();
        }
    }
}

/// What a client's thread has made: the library, its way to the servers, and the runtime of both.
pub(super) struct Parts {
    pub(super) library: Arc<ZooKeeper>,
    pub(super) relay: Arc<Relay>,
    pub(super) runtime: Handle,
}

/// Starts the thread and waits until the session stands. Dropping the future ends the thread.
pub(super) async fn start(
    spec: &ConnectSpec,
    servers: Vec<SocketAddr>,
    events: EventSink,
) -> Result<(Arc<Shared>, Parts), String> {
    let shared = Shared::new(spec, events);
    let cancel = EndOnDrop(Some(shared.clone()));
    let (started, ready) = oneshot::channel();
    let (asked, thread_shared) = (spec.session_timeout, shared.clone());
    std::thread::Builder::new()
        .name(CLIENT_THREAD.to_owned())
        .spawn(move || run(servers, asked, &thread_shared, started))
        .map_err(|error| format!("no thread for the client: {error}"))?;
    let parts = ready.await.map_err(|_| "the client's thread ended".to_owned())??;
    let mut connected = shared.connected.subscribe();
    connected.wait_for(|connected| *connected).await.map_err(|error| error.to_string())?;
    cancel.disarm();
    Ok((shared, parts))
}

type Started = Result<Parts, String>;

/// The client's thread: its runtime lives until the client is ended.
fn run(
    servers: Vec<SocketAddr>,
    session_timeout: Duration,
    shared: &Arc<Shared>,
    started: oneshot::Sender<Started>,
) {
    let _silence = tracing::subscriber::set_default(tracing::subscriber::NoSubscriber::new());
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = started.send(Err(format!("no runtime for the client: {error}")));
            return;
        }
    };
    runtime.block_on(async {
        tokio::select! {
            () = async {
                let _ = started.send(serve(servers, session_timeout, shared).await);
                std::future::pending::<()>().await;
            } => {}
            () = shared.end.notified() => {}
        }
    });
    runtime.shutdown_background();
}

async fn serve(servers: Vec<SocketAddr>, session_timeout: Duration, shared: &Arc<Shared>) -> Started {
    let (address, relay) = Relay::start(servers).await.map_err(|error| format!("no relay: {error}"))?;
    let (address, watcher) = (address.to_string(), shared.clone());
    let on_watch = move |event: WatchedEvent| watcher.watch_fired(&event);
    let library = ZooKeeper::connect_with_retry_time(&address, session_timeout, on_watch, RETRY).await;
    let library = library.map_err(|error| format!("{address}: {error}"))?;
    // nothing has been awaited since the library's tasks were spawned, so no state is missed
    let listener = shared.clone();
    library.add_listener(move |state| listener.state_changed(state));
    Ok(Parts { library: Arc::new(library), relay, runtime: Handle::current() })
}
