//! The way from the client library to the servers: a listener of ours on the loopback interface, the only address that
//! the library knows.
//!
//! By itself the library notices a silent server after 4/3 of the session timeout, when the session is lost, and
//! connects without a deadline. Here a server that does not answer can be left for another ([`Relay::leave`]), in the
//! same session; each is dialled for a bounded time; and that a session was closed is known from the server, which
//! hangs up when it has done so ([`Relay::drained`]). Who else connects to it, from this machine only, reaches the
//! servers as if it had asked them itself.
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncWriteExt, copy, sink};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

/// Longest time for a server to accept a connection, as there may be others.
const DIAL: Duration = Duration::from_secs(1);
/// Least time between two connections of the library: a server without a quorum closes each at once.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest time for the other side to hang up as well.
const FAREWELL: Duration = Duration::from_secs(1);

/// Passes the library's connections on to one server after the other.
pub(super) struct Relay {
    /// In the order in which they are to be tried.
    servers: Vec<SocketAddr>,
    /// The one that is next.
    next: AtomicUsize,
    /// How often the server of now was left.
    left: watch::Sender<u64>,
    /// Connections that are open.
    open: watch::Sender<usize>,
}

/// Why a connection is over.
enum End {
    Library,
    Server,
}

impl Relay {
    /// Listens in the runtime of now, and ends with it. What the library is to connect to, and the relay.
    pub(super) async fn start(servers: Vec<SocketAddr>) -> io::Result<(SocketAddr, Arc<Self>)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let relay = Arc::new(Self {
            servers,
            next: AtomicUsize::new(0),
            left: watch::Sender::new(0),
            open: watch::Sender::new(0),
        });
        tokio::spawn(relay.clone().accept(listener));
        Ok((address, relay))
    }

    /// Leaves the server of now for the next one, if there is another address; else only to connect to it again.
    pub(super) fn leave(&self, or_connect_again: bool) {
        if self.servers.len() > 1 || or_connect_again {
            self.left.send_modify(|times| *times += 1);
        }
    }

    /// Waits until no connection is open.
    pub(super) async fn drained(&self) {
        // an error: the relay is gone, and we with it
        let _ = self.open.subscribe().wait_for(|open| *open == 0).await;
    }

    async fn accept(self: Arc<Self>, listener: TcpListener) {
        loop {
            let begun = Instant::now();
            match listener.accept().await {
                Ok((library, _)) => {
                    self.open.send_modify(|open| *open += 1);
                    tokio::spawn(self.clone().pass(library));
                }
                // as for want of file descriptors
                Err(_) => sleep_until(begun + PAUSE).await,
            }
        }
    }

    async fn pass(self: Arc<Self>, mut library: TcpStream) {
        let begun = Instant::now();
        if let Some(mut server) = self.dial().await {
            // from here on: what was left meanwhile is the server before
            let mut left = self.left.subscribe();
            let _ = library.set_nodelay(true);
            let (mut from_library, mut to_library) = library.split();
            let (mut from_server, mut to_server) = server.split();
            let end = tokio::select! {
                _ = copy(&mut from_library, &mut to_server) => End::Library,
                _ = copy(&mut from_server, &mut to_library) => End::Server,
                _ = left.changed() => End::Server,
            };
            if matches!(end, End::Library) {
                // what it has written, such as the close of its session, is to be read first
                let _ = to_server.shutdown().await;
                let _ = timeout(FAREWELL, copy(&mut from_server, &mut sink())).await;
            }
        }
        sleep_until(begun + PAUSE).await;
        // without a reset: on a failed write the library would take what it has not read yet for the next server's answer
        let _ = library.shutdown().await;
        let _ = timeout(FAREWELL, copy(&mut library, &mut sink())).await;
        self.open.send_modify(|open| *open -= 1);
    }

    /// The next server that accepts a connection.
    async fn dial(&self) -> Option<TcpStream> {
        for _ in 0..self.servers.len() {
            let index = self.next.fetch_add(1, Ordering::Relaxed) % self.servers.len();
            if let Ok(Ok(server)) = timeout(DIAL, TcpStream::connect(self.servers[index])).await {
                let _ = server.set_nodelay(true);
                return Some(server);
            }
        }
        None
    }
}
