//! A network that fails on purpose.

use crate::{ClusterError, free_port};
use std::{
    collections::HashMap,
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// A TCP proxy on a port of 127.0.0.1 in front of a server that frames its replies with a length of four bytes, as
/// ZooKeeper and Kafka do for their clients; it ends when dropped.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    network: Arc<Network>,
}

/// The state of the faults, and a bell for those who wait for one to end.
#[derive(Debug)]
struct Network {
    target: String,
    /// Whether replies begin with their length.
    framed: bool,
    /// How long a target that refuses connections is tried again.
    patience: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Each reply waits this long.
    delay: Duration,
    /// Nothing is forwarded, and connections stay open.
    frozen: bool,
    /// Connections are closed as soon as they open.
    cut: bool,
    /// The proxy is dropped.
    ended: bool,
    /// Replies until the one that is lost.
    until_lost: Option<u64>,
    /// Both ends of the open connections, by number.
    open: HashMap<u64, [TcpStream; 2]>,
    /// Connections so far.
    count: u64,
}

impl Proxy {
    /// A proxy in front of `target` (`host:port`), which is connected to anew for each connection.
    ///
    /// # Errors
    /// [`ClusterError::Io`] if it cannot listen.
    pub fn start(target: impl Into<String>) -> Result<Self, ClusterError> {
        Self::start_with(target.into(), true, Duration::ZERO)
    }

    /// As [`Proxy::start`], for a protocol without frames, as between ZooKeeper servers. What comes at once counts as
    /// a reply. A target that does not listen yet is waited for, for two seconds: a follower tries its new leader again
    /// when it is refused, and a connection that is taken and closed starts a new election instead.
    ///
    /// # Errors
    /// [`ClusterError::Io`] if it cannot listen.
    pub fn start_unframed(target: impl Into<String>) -> Result<Self, ClusterError> {
        Self::start_with(target.into(), false, Duration::from_secs(2))
    }

    fn start_with(target: String, framed: bool, patience: Duration) -> Result<Self, ClusterError> {
        let port = free_port()?;
        let (state, changed) = Default::default();
        let network = Arc::new(Network { target, framed, patience, state, changed });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let listener = listener.map_err(ClusterError::io(format!("listen on 127.0.0.1:{port}")))?;
        let accepting = Arc::clone(&network);
        thread::spawn(move || accepting.accept(&listener));
        Ok(Self { port, network })
    }

    /// `127.0.0.1:port`, for clients to connect to.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        self.network.state().open.len()
    }

    /// Holds every reply back for this long, one after the other, until [`Proxy::heal`].
    pub fn delay(&self, delay: Duration) {
        self.network.state().delay = delay;
    }

    /// Closes all connections, and new ones at once, until [`Proxy::heal`].
    pub fn cut(&self) {
        let mut state = self.network.state();
        state.cut = true;
        state.close_all();
    }

    /// Closes all connections; new ones are fine.
    pub fn reset(&self) {
        self.network.state().close_all();
    }

    /// Keeps connections open and forwards nothing either way, until [`Proxy::heal`].
    pub fn freeze(&self) {
        self.network.state().frozen = true;
    }

    /// Loses the `n`-th reply from now (1 is the next), of whichever connection, by closing its connection instead:
    /// the server has done what was asked, and the client does not know. ZooKeeper's pings and watch events count.
    pub fn lose_reply(&self, n: u64) {
        self.network.state().until_lost = Some(n);
    }

    /// Ends every fault; what was frozen flows on.
    pub fn heal(&self) {
        let mut state = self.network.state();
        (state.delay, state.frozen, state.cut, state.until_lost) = Default::default();
        self.network.changed.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        {
            let mut state = self.network.state();
            state.ended = true;
            state.close_all();
            self.network.changed.notify_all();
        }
        // wakes the accepting thread; if even that fails it ends at the next connection
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

impl State {
    fn close_all(&mut self) {
        for stream in self.open.values().flatten() {
            // an error says that it is closed already
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Whether the reply that has come is the one to lose.
    fn loses_this_reply(&mut self) -> bool {
        self.until_lost = self.until_lost.map(|n| n.saturating_sub(1));
        let lost = self.until_lost == Some(0);
        if lost {
            self.until_lost = None;
        }
        lost
    }
}

impl Network {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.state().ended {
                return;
            }
            // a connection that fails is closed, which is all that its client needs to know
            let _ = client.and_then(|client| self.connect(client));
        }
    }

    fn connect(self: &Arc<Self>, client: TcpStream) -> io::Result<()> {
        let server = self.dial()?;
        for stream in [&client, &server] {
            stream.set_nodelay(true)?;
        }
        let mut state = self.state();
        if state.cut {
            return Ok(());
        }
        state.count += 1;
        let number = state.count;
        state.open.insert(number, [client.try_clone()?, server.try_clone()?]);
        drop(state);
        let (requests, replies) = (Arc::clone(self), Arc::clone(self));
        let (to_server, from_client) = (server.try_clone()?, client.try_clone()?);
        thread::spawn(move || requests.forward(number, from_client, to_server, read_some));
        thread::spawn(move || replies.forward(number, server, client, |from| replies.read_reply(from)));
        Ok(())
    }

    fn dial(&self) -> io::Result<TcpStream> {
        let begun = Instant::now();
        loop {
            match TcpStream::connect(&self.target) {
                Err(_) if begun.elapsed() < self.patience && !self.state().ended => {
                    thread::sleep(Duration::from_millis(20));
                }
                dialled => return dialled,
            }
        }
    }

    /// Forwards what `read` returns until either end closes, and then closes both.
    fn forward(
        &self,
        number: u64,
        mut from: TcpStream,
        mut to: TcpStream,
        read: impl Fn(&mut TcpStream) -> io::Result<Vec<u8>>,
    ) {
        let mut forward_one = || {
            let bytes = read(&mut from)?;
            self.wait_while_frozen();
            to.write_all(&bytes)
        };
        while forward_one().is_ok() {}
        for stream in [&from, &to] {
            // an error says that it is closed already
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.state().open.remove(&number);
    }

    fn read_reply(&self, from: &mut TcpStream) -> io::Result<Vec<u8>> {
        let reply = if self.framed { read_frame(from)? } else { read_some(from)? };
        let delay = {
            let mut state = self.state();
            if state.loses_this_reply() {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            state.delay
        };
        thread::sleep(delay);
        Ok(reply)
    }

    fn wait_while_frozen(&self) {
        let state = self.state();
        let thawed = self.changed.wait_while(state, |state| state.frozen && !state.ended);
        drop(thawed.unwrap_or_else(PoisonError::into_inner));
    }
}

fn read_frame(from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    from.read_exact(&mut frame)?;
    let length = u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]);
    from.take(u64::from(length)).read_to_end(&mut frame)?;
    Ok(frame)
}

fn read_some(from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 64 * 1024];
    let count = from.read(&mut bytes)?;
    bytes.truncate(count);
    if count == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests;
