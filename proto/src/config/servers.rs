//! The property `bootstrap.servers`: `host:port,host:port`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::secrets::without_credentials;

/// Brokers to ask first, in the order given; may be none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BootstrapServers(Vec<ServerAddress>);

/// Where a server listens. `Display` is `host:port`, with brackets around an IPv6 address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct ServerAddress {
    /// Name or address, an IPv6 address without its brackets, as sockets want it.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// Why a list of servers is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ServerError {
    /// A host that is empty or holds what no host name holds.
    #[error("{0:?} is not host:port, or [address]:port for IPv6")]
    Address(String),
    /// No port, and there is no default one.
    #[error("{0:?} has no port: write host:port")]
    NoPort(String),
    /// A port outside 1 to 65535.
    #[error("{1:?} is not a port (1 to 65535) in {0:?}")]
    Port(String, String),
    /// As in a broker's `listeners`; only PLAINTEXT is spoken.
    #[error("{0:?} names a listener: write host:port only, of a PLAINTEXT listener")]
    Listener(String),
}

impl BootstrapServers {
    /// The servers.
    pub fn addresses(&self) -> &[ServerAddress] {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for BootstrapServers {
    type Err = ServerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        entries.map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl ServerAddress {
    /// From its parts; nothing is checked.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }
}

impl FromStr for ServerAddress {
    type Err = ServerError;

    fn from_str(entry: &str) -> Result<Self, Self::Err> {
        if entry.contains("://") {
            return Err(ServerError::Listener(without_credentials(entry).into_owned()));
        }
        let shown = without_credentials(entry).into_owned();
        let invalid = || ServerError::Address(shown.clone());
        let no_port = || ServerError::NoPort(shown.clone());
        if entry.contains('@') {
            return Err(invalid());
        }
        let v6 = entry.strip_prefix('[');
        let (host, port) = match v6 {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or_else(invalid)?;
                let port =
                    if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or_else(invalid)?) };
                (host, port.ok_or_else(no_port)?)
            }
            None => entry.split_once(':').ok_or_else(no_port)?,
        };
        let legal = |c: char| c.is_alphanumeric() || "-._%".contains(c) || (v6.is_some() && c == ':');
        // a second colon without brackets is an IPv6 address cut in two
        if host.is_empty() || !host.chars().all(legal) || port.contains(':') {
            return Err(invalid());
        }
        let number = port.parse().ok().filter(|port| *port != 0);
        let port = number.ok_or_else(|| ServerError::Port(shown, port.to_owned()))?;
        Ok(Self { host: host.to_owned(), port })
    }
}

impl TryFrom<&str> for BootstrapServers {
    type Error = ServerError;

    fn try_from(text: &str) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl TryFrom<String> for BootstrapServers {
    type Error = ServerError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl fmt::Display for BootstrapServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&servers.join(","))
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<String, String> {
        let servers: Result<BootstrapServers, _> = text.parse();
        servers.map(|servers| servers.to_string()).map_err(|why| why.to_string())
    }

    #[test]
    fn hosts_have_ports_and_ipv6_its_brackets() {
        assert_eq!(
            parsed(" a:9092, b.c_d-1:1 ,,[2001:db8::1]:9093,"),
            Ok("a:9092,b.c_d-1:1,[2001:db8::1]:9093".into())
        );
        let v6: BootstrapServers = "[::1]:9092".parse().unwrap();
        assert_eq!(v6.addresses(), [ServerAddress::new("::1", 9092)]);
        assert!("".parse::<BootstrapServers>().unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_dialled_is_refused_with_the_reason() {
        for (text, why) in [
            ("a", "\"a\" has no port: write host:port"),
            ("a:9092,[::1]", "\"[::1]\" has no port: write host:port"),
            ("a:0", "\"0\" is not a port (1 to 65535) in \"a:0\""),
            ("a:x", "\"x\" is not a port (1 to 65535) in \"a:x\""),
            ("a:70000", "\"70000\" is not a port (1 to 65535) in \"a:70000\""),
            (":9092", "\":9092\" is not host:port, or [address]:port for IPv6"),
            ("::1:9092", "\"::1:9092\" is not host:port, or [address]:port for IPv6"),
            ("2001:db8::1", "\"2001:db8::1\" is not host:port, or [address]:port for IPv6"),
            ("a b:9092", "\"a b:9092\" is not host:port, or [address]:port for IPv6"),
            ("zk:2181/kafka", "\"2181/kafka\" is not a port (1 to 65535) in \"zk:2181/kafka\""),
            (
                "SSL://a:9093",
                "\"SSL://a:9093\" names a listener: write host:port only, of a PLAINTEXT listener",
            ),
        ] {
            assert_eq!(parsed(text), Err(why.to_owned()));
        }
    }
}
