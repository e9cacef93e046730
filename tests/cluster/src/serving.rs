//! The running cluster as its own process sees it: tells of itself in a file, and takes orders by a socket.

use crate::Result;
use std::{
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader, Write as _},
    os::unix::net::UnixListener,
    path::Path,
    time::Duration,
};
use troupe_cluster::{Broker, Cluster, ClusterError, ZooKeeper};

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
