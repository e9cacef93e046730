//! The property `zookeeper.connect`: `host:port,host:port/chroot`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::config::{ServerAddress, without_credentials};

/// Port of a host that names none.
pub const DEFAULT_PORT: u16 = 2181;

/// The servers of an ensemble, and the chroot below which Kafka keeps its nodes.
///
/// Read leniently where the meaning is plain (spaces, trailing slash, a lone `/`, the same chroot repeated
/// after each host, empty entries), and refused with the reason where it is not. `Display` gives the
/// canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectString {
    hosts: Vec<ServerAddress>,
    chroot: Option<String>,
}

/// Why a connect string is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectStringError {
    /// Nothing in it.
    #[error("no host: write host:port,host:port/chroot")]
    NoHost,
    /// A host that is empty or holds what no host name holds.
    #[error("{0:?} is not a host: write host:port, or [address]:port for IPv6")]
    Host(String),
    /// A port outside 1 to 65535.
    #[error("{1:?} is not a port (1 to 65535) in {0:?}")]
    Port(String, String),
    /// A chroot that ZooKeeper would refuse.
    #[error("{0:?} is not a chroot: names between single slashes, none of them `.` or `..`")]
    Chroot(String),
    /// Chroots that differ, or stand after some hosts only.
    #[error(
        "the chroot belongs once at the end, after the last host, but {0:?} stands after {1:?}; write {2}"
    )]
    Misplaced(String, String, String),
}

impl ConnectString {
    /// The servers, in the order given; there is at least one. A port that is not given is [`DEFAULT_PORT`].
    pub fn hosts(&self) -> &[ServerAddress] {
        &self.hosts
    }

    /// The chroot, `/a/b` without trailing slash; `None` for the root.
    pub fn chroot(&self) -> Option<&str> {
        self.chroot.as_deref()
    }

    /// The servers without the chroot, in canonical form.
    pub fn servers(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(ToString::to_string).collect();
        hosts.join(",")
    }

    /// A path relative to the chroot, as it stands in the whole tree; `/` is the chroot itself.
    pub fn absolute(&self, path: &str) -> String {
        match (self.chroot(), path) {
            (None, path) => path.to_owned(),
            (Some(chroot), "/") => chroot.to_owned(),
            (Some(chroot), path) => format!("{chroot}{path}"),
        }
    }

    /// A path of the whole tree, relative to the chroot; `None` when it lies elsewhere.
    pub fn relative<'a>(&self, absolute: &'a str) -> Option<&'a str> {
        match absolute.strip_prefix(self.chroot().unwrap_or(""))? {
            "" => Some("/"),
            rest => rest.starts_with('/').then_some(rest),
        }
    }
}

impl FromStr for ConnectString {
    type Err = ConnectStringError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let entries: Vec<&str> = text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect();
        let mut hosts = Vec::new();
        let mut chroots = Vec::new();
        for entry in &entries {
            let (host, chroot) = entry.split_at(entry.find('/').unwrap_or(entry.len()));
            hosts.push(parse_host(host.trim_end())?);
            chroots.push(parse_chroot(chroot)?);
        }
        let Some(chroot) = chroots.last().cloned() else { return Err(ConnectStringError::NoHost) };
        let (repeated, at_end) = (chroots.iter().all(|c| *c == chroot), &chroots[..chroots.len() - 1]);
        let misplaced = at_end.iter().position(Option::is_some).filter(|_| !repeated);
        let parsed = Self { hosts, chroot };
        match misplaced {
            None => Ok(parsed),
            Some(at) => Err(parsed.misplaced(at, &chroots)),
        }
    }
}

impl ConnectString {
    fn misplaced(&self, at: usize, chroots: &[Option<String>]) -> ConnectStringError {
        let found = chroots[at].clone().unwrap_or_default();
        let suggested = format!("{}{found}", self.servers());
        ConnectStringError::Misplaced(found, self.hosts[at].to_string(), suggested)
    }
}

impl TryFrom<&str> for ConnectString {
    type Error = ConnectStringError;

    fn try_from(text: &str) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl TryFrom<String> for ConnectString {
    type Error = ConnectStringError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl fmt::Display for ConnectString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.servers(), self.chroot.as_deref().unwrap_or(""))
    }
}

fn parse_host(entry: &str) -> Result<ServerAddress, ConnectStringError> {
    let invalid = || ConnectStringError::Host(without_credentials(entry).into_owned());
    if entry.contains('@') {
        return Err(invalid());
    }
    let (host, port) = match entry.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']').ok_or_else(invalid)?;
            let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or_else(invalid)?) };
            (address, port)
        }
        None => entry.split_once(':').map_or((entry, None), |(host, port)| (host, Some(port))),
    };
    let v6 = entry.starts_with('[');
    let legal = |c: char| c.is_alphanumeric() || "-._%".contains(c) || (v6 && c == ':');
    // a second colon without brackets is an IPv6 address cut in two
    if host.is_empty() || !host.chars().all(legal) || port.is_some_and(|port| port.contains(':')) {
        return Err(invalid());
    }
    let port = port.map_or(Ok(DEFAULT_PORT), |port| parse_port(entry, port))?;
    Ok(ServerAddress::new(host, port))
}

fn parse_port(entry: &str, port: &str) -> Result<u16, ConnectStringError> {
    let error = || ConnectStringError::Port(entry.to_owned(), port.to_owned());
    port.trim().parse().ok().filter(|port| *port != 0).ok_or_else(error)
}

fn parse_chroot(text: &str) -> Result<Option<String>, ConnectStringError> {
    let chroot = text.trim_end_matches('/');
    let legal = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(|c: char| c.is_control());
    match chroot.strip_prefix('/') {
        None => Ok(None),
        Some(names) if names.split('/').all(legal) => Ok(Some(chroot.to_owned())),
        Some(_) => Err(ConnectStringError::Chroot(text.to_owned())),
    }
}

#[cfg(test)]
mod tests;
