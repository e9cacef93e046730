//! The running cluster as other invocations see it: a file with its endpoints, and a socket that takes orders.

use crate::Result;
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader, Read, Write as _},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    time::Duration,
};
use troupe_cluster::{Broker, Client, Cluster, ClusterError, KafkaVersion, ZooKeeper};

/// The state file of a cluster that runs.
pub(crate) struct Running(BTreeMap<String, String>);

impl Running {
    /// Reads the state file; an error if there is none or the cluster of which it tells is gone.
    pub(crate) fn find(state: &Path) -> Result<Self> {
        let none = "no cluster is running: start one with `cargo cluster up`";
        let text = fs::read_to_string(state).map_err(|_| none)?;
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        let running = Self(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect());
        if running.connect().is_err() {
            // it was ended by a signal
            fs::remove_file(state)?;
            return Err(none.into());
        }
        Ok(running)
    }

    /// A client of the brokers that run.
    pub(crate) fn client(&self) -> Result<Client> {
        let client = Client::new(self.get("bootstrap")?);
        Ok(match self.0.get("kafka") {
            Some(oldest) => client.of_version(oldest.parse::<KafkaVersion>()?, self.get("zookeeper")?),
            None => client,
        })
    }

    /// Lets the running cluster do something and waits until it is done.
    pub(crate) fn order(&self, order: &str) -> Result {
        let mut socket = self.connect()?;
        writeln!(socket, "{order}")?;
        socket.shutdown(Shutdown::Write)?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer)?;
        match answer.trim_end() {
            "" => Ok(()),
            error => Err(error.into()),
        }
    }

    fn connect(&self) -> Result<UnixStream> {
        Ok(UnixStream::connect(self.get("control")?)?)
    }

    fn get(&self, key: &str) -> Result<&str> {
        Ok(self.0.get(key).ok_or_else(|| format!("the state file has no {key}"))?)
    }
}

/// Prints the endpoints and follows orders until `down`. The answer to an order is empty, or what went wrong.
pub(crate) fn serve(cluster: Cluster, state: &Path) -> Result {
    // in the cluster's folder, so that it goes with the cluster however we end
    let listener = UnixListener::bind(control(&cluster))?;
    if let Some(folder) = state.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(state, describe(&cluster)?)?;
    println!("{}running until Ctrl-C or `cargo cluster down`", describe(&cluster)?);
    loop {
        let (mut socket, _) = listener.accept()?;
        socket.set_read_timeout(Some(Duration::from_secs(1)))?;
        let mut order = String::new();
        if BufReader::new(&socket).read_line(&mut order).is_err() || order.is_empty() {
            // someone who only looked whether we are here
            continue;
        }
        if order.trim_end() == "down" {
            drop(cluster);
            return Ok(fs::remove_file(state)?);
        }
        if let Err(error) = follow(&cluster, order.trim_end()) {
            // whoever asked may have gone, which is not our loss
            let _ = writeln!(socket, "{error}");
        }
        fs::write(state, describe(&cluster)?)?;
    }
}

fn control(cluster: &Cluster) -> std::path::PathBuf {
    cluster.folder().join("control")
}

/// Endpoints and process ids; a server that does not run has no id.
fn describe(cluster: &Cluster) -> Result<String> {
    let mut text = String::new();
    writeln!(text, "zookeeper={}", cluster.zookeeper_connect())?;
    let running = cluster.brokers().iter().filter(|broker| broker.pid().is_some());
    let bootstrap: Vec<String> = running.map(Broker::address).collect();
    writeln!(text, "bootstrap={}", bootstrap.join(","))?;
    if let Some(oldest) = cluster.oldest() {
        writeln!(text, "kafka={oldest}")?;
    }
    writeln!(text, "folder={}", cluster.folder().display())?;
    writeln!(text, "control={}", control(cluster).display())?;
    let pid = |pid: Option<u32>| pid.map_or_else(String::new, |pid| pid.to_string());
    for zookeeper in cluster.ensemble().servers() {
        writeln!(text, "pid.{}={}", zookeeper.name(), pid(zookeeper.pid()))?;
    }
    for broker in cluster.brokers() {
        writeln!(text, "pid.broker-{}={}", broker.id(), pid(broker.pid()))?;
    }
    Ok(text)
}

/// The calls of one kind of server: kill, pause, resume, restart.
type Calls<S> = [(&'static str, fn(&S) -> std::result::Result<(), ClusterError>); 4];

const OF_ZOOKEEPER: Calls<ZooKeeper> = [
    ("kill", ZooKeeper::kill),
    ("pause", ZooKeeper::pause),
    ("resume", ZooKeeper::resume),
    ("restart", ZooKeeper::restart),
];
const OF_BROKER: Calls<Broker> = [
    ("kill", Broker::kill),
    ("pause", Broker::pause),
    ("resume", Broker::resume),
    ("restart", Broker::restart),
];

/// Does what `order` says: a call and a server.
fn follow(cluster: &Cluster, order: &str) -> Result {
    let (call, server) = order.split_once(' ').ok_or("an order is a call and a server")?;
    if let Some(zookeeper) = cluster.ensemble().servers().iter().find(|it| it.name() == server) {
        return run(&OF_ZOOKEEPER, call, zookeeper);
    }
    let index = server.strip_prefix("broker-").and_then(|index| index.parse::<usize>().ok());
    match index.and_then(|index| cluster.brokers().get(index)) {
        Some(broker) => run(&OF_BROKER, call, broker),
        None => {
            let first = cluster.zookeeper().name();
            Err(format!("there is no server {server}: there are {first} and broker-0 up").into())
        }
    }
}

fn run<S>(calls: &Calls<S>, call: &str, server: &S) -> Result {
    let (_, function) = calls.iter().find(|(name, _)| *name == call).ok_or("no such call")?;
    Ok(function(server)?)
}
