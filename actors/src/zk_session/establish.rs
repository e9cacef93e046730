//! Opens a session within the connection timeout: look up, probe, connect, check the chroot.
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use kafka_troupe_proto::config::ServerAddress;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, sleep, timeout_at};

use super::client::Client;
use super::error::ZkError;
use super::port::{ConnectSpec, EventSink, ZkClient};
use super::probe;

/// Shortest session timeout the client library can keep: below it its read timeout becomes 0.
pub(super) const MIN_SESSION_TIMEOUT: Duration = Duration::from_millis(1500);
/// How long the other servers may take to accept a connection once one has.
const GRACE: Duration = Duration::from_millis(200);
/// Longest wait for one server's answer while there are others.
const LONGEST_ASK: Duration = Duration::from_secs(2);
/// Pause between two rounds over all servers.
const NEXT_ROUND: Duration = Duration::from_millis(100);

pub(super) async fn establish(spec: ConnectSpec, events: EventSink) -> Result<Arc<dyn ZkClient>, ZkError> {
    let deadline = Instant::now() + spec.connection_timeout;
    let refuse = |why| ZkError::Connect { connect: spec.servers.to_string(), why };
    let addresses = match timeout_at(deadline, look_up(spec.servers.hosts())).await {
        Ok(found) => found.map_err(refuse)?,
        Err(_) => {
            return Err(refuse(format!("no name service answered within {:?}", spec.connection_timeout)));
        }
    };
    let mut addresses = reachable_first(addresses, spec.connection_timeout / 3).await;
    let (answered, granted) = ask_timeout(&addresses, &spec, deadline).await.map_err(refuse)?;
    addresses.rotate_left(answered);
    if granted < MIN_SESSION_TIMEOUT {
        return Err(refuse(format!(
            "the ensemble grants a session timeout of {granted:?} only; {MIN_SESSION_TIMEOUT:?} are needed: \
             raise zookeeper.session.timeout.ms or the server's maxSessionTimeout"
        )));
    }
    let client = match timeout_at(deadline, Client::open(&spec, addresses, granted, events)).await {
        Ok(opened) => opened.map_err(refuse)?,
        Err(_) => return Err(refuse(format!("no session within {:?}", spec.connection_timeout))),
    };
    check_chroot(&client, &spec, deadline).await?;
    Ok(Arc::new(client))
}

/// The addresses of all servers that have one, in random order, so that not all members begin with the same.
async fn look_up(hosts: &[ServerAddress]) -> Result<Vec<SocketAddr>, String> {
    let mut found = Vec::new();
    let mut failed = Vec::new();
    for host in hosts {
        match lookup_host((host.host.as_str(), host.port)).await {
            Ok(addresses) => found.extend(addresses),
            Err(error) => failed.push(format!("{host}: {error}")),
        }
    }
    if found.is_empty() {
        return Err(format!("no server can be looked up: {}", failed.join("; ")));
    }
    if !failed.is_empty() {
        tracing::warn!(why = failed.join("; "), "some zookeeper servers cannot be looked up");
    }
    shuffle(&mut found);
    Ok(found)
}

fn shuffle<T: Hash + Eq>(items: &mut Vec<T>) {
    let random = RandomState::new();
    items.sort_by_cached_key(|item| random.hash_one(item));
    items.dedup();
}

/// Puts the servers first that take a connection now: asking one that is switched off takes its time.
async fn reachable_first(addresses: Vec<SocketAddr>, patience: Duration) -> Vec<SocketAddr> {
    if addresses.len() < 2 {
        return addresses;
    }
    let look = async |address| TcpStream::connect(address).await.map(|_| address);
    let mut looks: FuturesUnordered<_> = addresses.iter().copied().map(look).collect();
    let mut until = Instant::now() + patience;
    let mut ordered = Vec::with_capacity(addresses.len());
    while let Ok(Some(looked)) = timeout_at(until, looks.next()).await {
        if let Ok(address) = looked {
            ordered.push(address);
            until = until.min(Instant::now() + GRACE);
        }
    }
    let others: Vec<_> = addresses.iter().copied().filter(|address| !ordered.contains(address)).collect();
    ordered.extend(others);
    ordered
}

/// Asks one server after the other for the session timeout, round after round, until one answers; says which.
async fn ask_timeout(
    addresses: &[SocketAddr],
    spec: &ConnectSpec,
    deadline: Instant,
) -> Result<(usize, Duration), String> {
    let mut last = String::from("no server answered");
    let share = LONGEST_ASK.min(spec.connection_timeout / (addresses.len() as u32 + 1));
    while Instant::now() < deadline {
        for (index, address) in addresses.iter().enumerate() {
            let until = deadline.min(Instant::now() + share);
            match timeout_at(until, probe::granted_timeout(*address, spec.session_timeout)).await {
                Ok(Ok(granted)) => return Ok((index, granted)),
                Ok(Err(error)) => last = format!("{address}: {error}"),
                Err(_) => last = format!("{address}: no answer"),
            }
        }
        sleep(NEXT_ROUND).await;
    }
    Err(format!("no session within {:?}; last tried {last}", spec.connection_timeout))
}

async fn check_chroot(client: &Client, spec: &ConnectSpec, deadline: Instant) -> Result<(), ZkError> {
    let Some(chroot) = spec.servers.chroot() else { return Ok(()) };
    let connect = spec.servers.to_string();
    match timeout_at(deadline, client.exists("/", false)).await {
        Ok(Ok(Some(_))) => Ok(()),
        Ok(Ok(None)) => {
            let _ = client.close().await;
            Err(ZkError::NoChroot { connect, chroot: chroot.to_owned() })
        }
        Ok(Err(error)) => Err(ZkError::Connect { connect, why: error.to_string() }),
        Err(_) => Err(ZkError::Connect { connect, why: format!("no answer about the chroot {chroot}") }),
    }
}
