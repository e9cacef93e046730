//! One ZooKeeper server, or several that elect a leader.

use crate::{
    ClusterError, Proxy, ZooKeeper, ZooKeeperVersion, free_port,
    poll::{Look, until},
    scratch::Scratch,
};
use std::{fs, sync::Arc, time::Duration};

/// How many ticks a follower may take to join its leader, and for how many neither may hear of the other before they
/// part: 6 s, so that sessions of 3 s expire while a follower that is cut off still answers its clients.
const LIMITS: [(&str, &str); 2] = [("initLimit", "20"), ("syncLimit", "12")];
/// Attempts to find ports that nobody takes before their server does.
const ATTEMPTS: usize = 3;

/// The ZooKeeper servers of a cluster, which can be told apart by their index: one alone, or several with a leader.
#[derive(Debug)]
pub struct Ensemble {
    servers: Vec<ZooKeeper>,
    links: Vec<Link>,
}

/// The only way of one server to the quorum port of another, which the leader of the two serves.
#[derive(Debug)]
struct Link {
    from: usize,
    to: usize,
    proxy: Proxy,
}

impl Ensemble {
    /// Starts `count` servers and waits until they serve clients; on new ports if one was taken meanwhile.
    pub(crate) fn start(
        scratch: &Arc<Scratch>,
        version: ZooKeeperVersion,
        count: usize,
        sessions: (Duration, Duration),
    ) -> Result<Self, ClusterError> {
        let mut attempt = 1;
        loop {
            let ensemble = Self::new(scratch, version, count, sessions)?;
            match ensemble.start_missing() {
                Err(error) if attempt < ATTEMPTS && tells_of_a_taken_port(&error) => attempt += 1,
                started => return started.map(|()| ensemble),
            }
        }
    }

    fn new(
        scratch: &Arc<Scratch>,
        version: ZooKeeperVersion,
        count: usize,
        sessions: (Duration, Duration),
    ) -> Result<Self, ClusterError> {
        if count < 2 {
            let alone = ZooKeeper::new(scratch, "zookeeper", version, sessions, (1, Vec::new()))?;
            return Ok(Self { servers: vec![alone], links: Vec::new() });
        }
        let ports = (0..count).map(|_| Ok([free_port()?, free_port()?]));
        let ports = ports.collect::<Result<Vec<_>, ClusterError>>()?;
        let (mut servers, mut links) = (Vec::new(), Vec::new());
        for index in 0..count {
            let mut peers = LIMITS.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
            for (other, [mut quorum, election]) in ports.iter().copied().enumerate() {
                if other != index {
                    let proxy = Proxy::start_unframed(format!("127.0.0.1:{quorum}"))?;
                    quorum = proxy.port();
                    links.push(Link { from: index, to: other, proxy });
                }
                peers.push((format!("server.{}", other + 1), format!("127.0.0.1:{quorum}:{election}")));
            }
            let name = format!("zookeeper-{index}");
            servers.push(ZooKeeper::new(scratch, &name, version, sessions, (index + 1, peers))?);
        }
        Ok(Self { servers, links })
    }

    /// All servers, by index.
    pub fn servers(&self) -> &[ZooKeeper] {
        &self.servers
    }

    /// `127.0.0.1:port` of each server, separated by commas, without a chroot.
    pub fn connect(&self) -> String {
        let addresses: Vec<String> = self.servers.iter().map(ZooKeeper::connect).collect();
        addresses.join(",")
    }

    /// Index of the server that leads, once there is one. One that was cut off thinks so for six seconds more.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`] if there is none within a minute.
    pub fn leader(&self) -> Result<usize, ClusterError> {
        until("a leader of the ensemble", || {
            let modes: Vec<Option<String>> = self.servers.iter().map(ZooKeeper::mode).collect();
            let leads = |mode: &Option<String>| matches!(mode.as_deref(), Some("leader" | "standalone"));
            Ok(modes.iter().position(leads).map_or_else(|| Look::NotYet(format!("{modes:?}")), Look::Done))
        })
    }

    /// As [`ZooKeeper::command`], to the leader.
    ///
    /// # Errors
    /// Those of [`Ensemble::leader`] and [`ZooKeeper::command`].
    pub fn command(&self, command: &str) -> Result<String, ClusterError> {
        self.servers[self.leader()?].command(command)
    }

    /// Ends all servers as `kill -9` does.
    ///
    /// # Errors
    /// [`ClusterError::Io`] if the end of one cannot be waited for.
    pub fn kill_all(&self) -> Result<(), ClusterError> {
        self.servers.iter().try_for_each(ZooKeeper::kill)
    }

    /// Starts every server that does not run, on its port and data, and waits until all serve clients.
    ///
    /// # Errors
    /// [`ClusterError::Server`] with the end of a log if one does not come up.
    pub fn start_missing(&self) -> Result<(), ClusterError> {
        let missing = self.servers.iter().filter(|server| server.pid().is_none());
        missing.into_iter().try_for_each(|server| server.kill().and_then(|()| server.launch()))?;
        self.servers.iter().try_for_each(ZooKeeper::wait_until_up)
    }

    /// Lets nothing pass any more between a follower and its peers, while its clients still reach it; connections
    /// stay open, as in a network that drops packets. It goes on to answer reads until it gives its leader up, after
    /// six seconds; the others expire its clients' sessions meanwhile. Elections are not affected, so a leader would
    /// be elected again, whom nobody could follow: [`ZooKeeper::pause`] it instead.
    pub fn cut_off(&self, index: usize) {
        self.links_of(index).for_each(|link| link.proxy.freeze());
    }

    /// Ends [`Ensemble::cut_off`]; what was held back flows on.
    pub fn join_again(&self, index: usize) {
        self.links_of(index).for_each(|link| link.proxy.heal());
    }

    fn links_of(&self, index: usize) -> impl Iterator<Item = &Link> {
        self.links.iter().filter(move |link| link.from == index || link.to == index)
    }
}

/// Whether a server did not come up because someone else listens on a port of its own.
fn tells_of_a_taken_port(error: &ClusterError) -> bool {
    let ClusterError::Server { log, .. } = error else { return false };
    fs::read_to_string(log).is_ok_and(|log| log.contains("Address already in use"))
}
