//! A ZooKeeper server.

use crate::{ClusterError, TransactionLog, ZooKeeperVersion, free_port, scratch::Scratch, server::Server};
use std::{
    ffi::OsString,
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

/// Of ZooKeeper's clock; sessions expire in whole ticks, so a short one makes expiry quick (ZooKeeper's own
/// example has 2000 ms).
const TICK: Duration = Duration::from_millis(500);

/// One ZooKeeper server on a port of 127.0.0.1, which keeps its port and data over restarts.
#[derive(Debug)]
pub struct ZooKeeper {
    server: Server,
    version: ZooKeeperVersion,
    port: u16,
    sessions: (Duration, Duration),
    /// Lines of its configuration that tell of its peers; none for a server alone.
    peers: Vec<(String, String)>,
}

impl ZooKeeper {
    /// A server that is not running yet. Among peers it has a number (`myid`) and knows the numbers of all.
    pub(crate) fn new(
        scratch: &Arc<Scratch>,
        name: &str,
        version: ZooKeeperVersion,
        sessions: (Duration, Duration),
        (number, peers): (usize, Vec<(String, String)>),
    ) -> Result<Self, ClusterError> {
        let server = Server::new(scratch, name)?;
        let zookeeper = Self { server, version, port: free_port()?, sessions, peers };
        let my_id = zookeeper.data().join("myid");
        fs::create_dir_all(zookeeper.data()).map_err(ClusterError::io("create ZooKeeper's data folder"))?;
        fs::write(&my_id, number.to_string())
            .map_err(ClusterError::io(format!("write {}", my_id.display())))?;
        Ok(zookeeper)
    }

    /// `zookeeper`, or `zookeeper-N` for one of several.
    pub fn name(&self) -> &str {
        self.server.name()
    }

    /// The folder with its snapshots and transaction logs (`version-2`); it goes with the cluster.
    pub fn data(&self) -> PathBuf {
        self.server.folder().join("data")
    }

    /// What this server has written of all that it was told, from the beginning.
    pub fn transaction_log(&self) -> TransactionLog {
        TransactionLog::of(&self.data())
    }

    /// `127.0.0.1:port`, without a chroot.
    pub fn connect(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Its client port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process id, or `None` while it is not running.
    pub fn pid(&self) -> Option<u32> {
        self.server.pid()
    }

    /// Ends it as `kill -9` does and waits until it is gone; fine if it is not running.
    ///
    /// # Errors
    /// [`ClusterError::Io`] if its end cannot be waited for.
    pub fn kill(&self) -> Result<(), ClusterError> {
        self.server.kill()
    }

    /// Ends it by SIGTERM and waits until it is gone; fine if it is not running.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`] if it does not end within a minute.
    pub fn stop(&self) -> Result<(), ClusterError> {
        self.server.stop()
    }

    /// Stops its world by SIGSTOP: connections stay open and nothing is answered. Sessions do not expire before
    /// [`ZooKeeper::resume`], for the clock that expires them stands still too; afterwards they may.
    ///
    /// # Errors
    /// [`ClusterError::Server`] if it is not running.
    pub fn pause(&self) -> Result<(), ClusterError> {
        self.server.pause()
    }

    /// Lets it run again after [`ZooKeeper::pause`].
    ///
    /// # Errors
    /// [`ClusterError::Server`] if it is not running.
    pub fn resume(&self) -> Result<(), ClusterError> {
        self.server.resume()
    }

    /// Starts it again on the same port and data, stopping it first if it runs, and waits until it serves clients,
    /// which one of several does with a quorum only: see [`Ensemble::start_missing`](crate::Ensemble::start_missing).
    ///
    /// # Errors
    /// [`ClusterError::Server`] with the end of its log if it does not come up.
    pub fn restart(&self) -> Result<(), ClusterError> {
        self.stop()?;
        self.launch()?;
        self.wait_until_up()
    }

    /// The answer to a four-letter command: `srvr`, `mntr`, `cons` (connections), `dump` (sessions and their
    /// ephemeral nodes), `wchp` (watches).
    ///
    /// # Errors
    /// [`ClusterError::Io`] if it does not answer within two seconds.
    pub fn command(&self, command: &str) -> Result<String, ClusterError> {
        let io = || ClusterError::io(format!("send {command} to ZooKeeper at {}", self.connect()));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let wait = Duration::from_secs(2);
        let mut stream = TcpStream::connect_timeout(&address, wait).map_err(io())?;
        stream.set_read_timeout(Some(wait)).map_err(io())?;
        stream.write_all(command.as_bytes()).map_err(io())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map_err(io())?;
        Ok(answer)
    }

    /// What the server says it is: `standalone`, `leader` or `follower`; `None` if it does not answer, or serves
    /// nobody for want of a quorum.
    pub fn mode(&self) -> Option<String> {
        let answer = self.command("srvr").ok()?;
        answer.lines().find_map(|line| line.strip_prefix("Mode: ")).map(str::to_owned)
    }

    pub(crate) fn launch(&self) -> Result<(), ClusterError> {
        let millis = |duration: Duration| duration.as_millis().to_string();
        let properties = [
            ("tickTime", millis(TICK)),
            ("minSessionTimeout", millis(self.sessions.0)),
            ("maxSessionTimeout", millis(self.sessions.1)),
            ("dataDir", self.data().display().to_string()),
            ("clientPort", self.port.to_string()),
            ("clientPortAddress", "127.0.0.1".to_owned()),
            ("maxClientCnxns", "0".to_owned()),
        ]
        .map(|(key, value)| (key.to_owned(), value));
        let properties: Vec<_> = properties.into_iter().chain(self.peers.iter().cloned()).collect();
        let properties = self.server.write_properties("zoo.cfg", &properties)?;
        let flags = [
            "-Xmx256m",
            "-Dzookeeper.admin.enableServer=false",
            "-Dzookeeper.4lw.commands.whitelist=*",
            // a killed process loses nothing that it has written: only a lost machine would
            "-Dzookeeper.forceSync=no",
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
        ];
        let mut arguments = flags.map(OsString::from).to_vec();
        arguments.push(properties.into_os_string());
        self.server.start(self.version.comes_with(), &arguments)
    }

    pub(crate) fn wait_until_up(&self) -> Result<(), ClusterError> {
        self.server.wait_until_up(|| {
            let answer = self.command("srvr").map_err(|error| error.to_string())?;
            if answer.contains("Mode: ") { Ok(()) } else { Err(answer) }
        })
    }
}
