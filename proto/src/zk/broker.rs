//! Brokers: `/brokers/ids/<id>`, in the JSON versions 1 (Kafka 0.8) to 5 (Kafka 2.7 to 3.9).

use std::fmt;

use serde_json::Value;
use thiserror::Error;

/// A live broker and the listeners that it offers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BrokerRegistration {
    /// The broker's id: the name of its node.
    pub id: i32,
    /// Its listeners, in the order registered. Version 1 has one, PLAINTEXT.
    pub endpoints: Vec<BrokerEndpoint>,
    /// The rack, version 3 and later.
    pub rack: Option<String>,
}

/// One listener of a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BrokerEndpoint {
    /// The listener's name in upper case, such as `PLAINTEXT` or `INSIDE`.
    pub listener: String,
    /// The security protocol spoken there, as the broker names it: the listener map's, else the listener's
    /// own name.
    pub protocol: String,
    /// The host as sockets want it, IPv6 without brackets. `None` when the broker registered none.
    pub host: Option<String>,
    /// The TCP port; not positive when there is none.
    pub port: i32,
}

/// Why a broker cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// The node cannot be read.
    #[error("/brokers/ids/{id} cannot be read: {reason}")]
    Unreadable {
        /// The broker's id.
        id: i32,
        /// What is wrong with its node.
        reason: String,
    },
    /// No listener of the protocol asked for.
    #[error("broker {id} has no {protocol} listener to connect to; it offers {offered}")]
    NoEndpoint {
        /// The broker's id.
        id: i32,
        /// The protocol asked for.
        protocol: SecurityProtocol,
        /// Every listener of the broker, for the message.
        offered: String,
    },
}

/// What is spoken on a listener (Kafka's `security.protocol`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SecurityProtocol {
    /// Plain TCP, all that the old consumer knows.
    Plaintext,
    /// TLS.
    Ssl,
    /// SASL over plain TCP.
    SaslPlaintext,
    /// SASL over TLS.
    SaslSsl,
}

impl fmt::Display for SecurityProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plaintext => "PLAINTEXT",
            Self::Ssl => "SSL",
            Self::SaslPlaintext => "SASL_PLAINTEXT",
            Self::SaslSsl => "SASL_SSL",
        })
    }
}

impl fmt::Display for BrokerEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.host.as_deref().unwrap_or("(no host)");
        if host.contains(':') {
            write!(f, "{}://[{host}]:{}", self.listener, self.port)?;
        } else {
            write!(f, "{}://{host}:{}", self.listener, self.port)?;
        }
        if self.protocol != self.listener { write!(f, " ({})", self.protocol) } else { Ok(()) }
    }
}

impl BrokerRegistration {
    /// Reads the node of broker `id`. An unreadable one concerns that broker only; use the others.
    pub fn parse(id: i32, data: &[u8]) -> Result<Self, BrokerError> {
        Self::read(id, data).map_err(|reason| BrokerError::Unreadable { id, reason })
    }

    fn read(id: i32, data: &[u8]) -> Result<Self, String> {
        let node: Value = serde_json::from_slice(data).map_err(|why| not_json(data, &why))?;
        let node = node.as_object().ok_or("not a JSON object")?;
        let rack = node.get("rack").and_then(Value::as_str).map(str::to_owned);
        let endpoints = match node.get("endpoints") {
            None | Some(Value::Null) => vec![host_and_port(node)?],
            Some(endpoints) => {
                let protocols = node.get("listener_security_protocol_map");
                let endpoints = endpoints.as_array().ok_or("`endpoints` is not an array")?;
                endpoints
                    .iter()
                    .map(|endpoint| parse_endpoint(endpoint, protocols))
                    .collect::<Result<_, _>>()?
            }
        };
        Ok(Self { id, endpoints, rack })
    }

    /// The first listener that speaks `protocol` and says where: host and port to dial.
    pub fn address(&self, protocol: SecurityProtocol) -> Result<(&str, u16), BrokerError> {
        let wanted = protocol.to_string();
        let usable = self.endpoints.iter().filter(|endpoint| endpoint.protocol == wanted);
        usable.filter_map(BrokerEndpoint::address).next().ok_or_else(|| BrokerError::NoEndpoint {
            id: self.id,
            protocol,
            offered: self.offered(),
        })
    }

    fn offered(&self) -> String {
        if self.endpoints.is_empty() {
            return "nothing".to_owned();
        }
        self.endpoints.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

impl BrokerEndpoint {
    fn address(&self) -> Option<(&str, u16)> {
        let port = u16::try_from(self.port).ok().filter(|port| *port != 0)?;
        Some((self.host.as_deref()?, port))
    }
}

fn not_json(data: &[u8], why: &serde_json::Error) -> String {
    let text = String::from_utf8_lossy(data);
    match text.split(':').count() {
        3 if !text.contains('{') => "written by Kafka 0.7 (creator:host:port), which is not supported".into(),
        _ => format!("not JSON: {why}"),
    }
}

/// Version 1. Later versions carry these fields too, for readers of version 1, null when there is no
/// PLAINTEXT listener.
fn host_and_port(node: &serde_json::Map<String, Value>) -> Result<BrokerEndpoint, String> {
    let host = match node.get("host") {
        Some(Value::String(host)) => Some(host.clone()).filter(|host| !host.is_empty()),
        Some(Value::Null) => None,
        _ => return Err("neither `endpoints` nor `host`".into()),
    };
    let port = node.get("port").and_then(Value::as_i64).and_then(|port| port.try_into().ok());
    let port = port.ok_or("`port` is not a number")?;
    Ok(BrokerEndpoint { listener: "PLAINTEXT".into(), protocol: "PLAINTEXT".into(), host, port })
}

/// `listener://host:port`, with an IPv6 host in brackets and possibly no host.
fn parse_endpoint(endpoint: &Value, protocols: Option<&Value>) -> Result<BrokerEndpoint, String> {
    let text = endpoint.as_str().ok_or("an endpoint is not a string")?;
    let invalid = || format!("endpoint {text:?} is not listener://host:port");
    let (listener, address) = text.split_once("://").ok_or_else(invalid)?;
    let (host, port) = address.rsplit_once(':').ok_or_else(invalid)?;
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = bracketed.unwrap_or(host);
    if host.contains(['[', ']', ',', '/']) {
        return Err(invalid());
    }
    let listener = listener.to_uppercase();
    let mapped = protocols.and_then(|map| map.get(&listener)).and_then(Value::as_str);
    Ok(BrokerEndpoint {
        protocol: mapped.unwrap_or(&listener).to_owned(),
        listener,
        host: Some(host.to_owned()).filter(|host| !host.is_empty()),
        port: port.parse().map_err(|_| invalid())?,
    })
}

#[cfg(test)]
mod tests;
