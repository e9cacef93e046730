//! Which versions a broker speaks, also one that cannot be asked.
//!
//! | broker | takes ApiVersions |
//! |---|---|
//! | 0.10 and later | answers |
//! | 0.9 | swallows it; the connection stays good for other requests |
//! | 0.8 | closes the connection |
//!
//! A broker that is slow, or is just being stopped, looks the same at first, and to take it for an old one would be
//! worse than to wait: it would convert what it sends to old formats, without headers, and create topics that it is
//! asked for. So an old broker is one that *proves* it, by answering the [`probe`] that every old broker knows:
//!
//! * **0.9**: [`SILENCE`] after ApiVersions the probe is sent on the same connection. Brokers answer in order: who
//!   answers the probe will not answer ApiVersions any more. A slow broker answers both, a silent port neither.
//! * **0.8**: when the connection is closed, a second one sends the probe first. Only if that is answered and
//!   ApiVersions then closes this connection too, is the broker an old one; a third connection is used.
//!
//! What was proven is remembered per address, by all connections with clones of the same options. For [`FRESH`] it is
//! taken for granted, unless a connection to the address has failed since: the broker may have been upgraded in place.
//! After that it only says how to ask: the next connection asks again, without a wait.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kafka_troupe_proto::config::ServerAddress;
use kafka_troupe_proto::kafka::api_versions::{ApiVersions, ApiVersionsRequest, ApiVersionsResponse};
use kafka_troupe_proto::kafka::frame::{ApiKey, Response};
use kafka_troupe_proto::kafka::list_offsets::ListOffsetsRequest;
use tokio::time::{Instant, timeout};

use super::{
    BrokerConnection, ConnectOptions, ConnectionError, ConnectionProblem, check_answers, split_head,
};

/// How long a broker may take to answer before it is asked whether it is there at all.
const SILENCE: Duration = Duration::from_secs(1);
/// How long what was proven counts: the connections that open together at a start, and no upgrade fits in.
const FRESH: Duration = Duration::from_secs(10);
/// The version of everything that is asked before the versions are known.
const FIRST: i16 = 0;

/// Asks for the offsets of no partitions: answered by 0.8 and 0.9 at once, needs no permission, changes nothing.
fn probe() -> ListOffsetsRequest {
    ListOffsetsRequest::default()
}

/// How an old broker takes ApiVersions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Closes,
    Swallows,
}

impl Manner {
    fn versions(self) -> ApiVersions {
        match self {
            Self::Closes => ApiVersions::for_0_8(),
            Self::Swallows => ApiVersions::for_0_9(),
        }
    }
}

/// An old broker that was met.
#[derive(Clone, Copy, Debug)]
struct Old {
    manner: Manner,
    /// When it was proven; none since a connection to it failed.
    proven: Option<Instant>,
}

/// Old brokers, by address; clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct OldBrokers(Arc<Mutex<BTreeMap<String, Old>>>);

impl OldBrokers {
    fn with<T>(&self, what: impl FnOnce(&mut BTreeMap<String, Old>) -> T) -> T {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn recall(&self, address: &str) -> Option<Old> {
        self.with(|known| known.get(address).copied())
    }

    fn note(&self, address: &str, manner: Manner) {
        let old = Old { manner, proven: Some(Instant::now()) };
        if self.with(|known| known.insert(address.to_owned(), old)).is_none_or(|was| was.manner != manner) {
            tracing::info!(
                address,
                ?manner,
                "a broker of 0.8 or 0.9, which cannot be asked for its versions"
            );
        }
    }

    fn forget(&self, address: &str) {
        self.with(|known| known.remove(address));
    }

    /// A connection failed: another broker may stand there soon.
    pub(super) fn doubt(&self, address: &str) {
        self.with(|known| {
            if let Some(old) = known.get_mut(address) {
                old.proven = None;
            }
        });
    }
}

impl Old {
    fn is_fresh(&self) -> bool {
        self.proven.is_some_and(|at| at.elapsed() < FRESH)
    }
}

/// What came of asking for the versions.
enum Heard {
    Versions(ApiVersions),
    /// They came when the probe had been sent, whose answer is still to come.
    Late(ApiVersions),
    /// The probe was answered, and nothing else.
    Swallowed,
    /// The connection was closed.
    Closed,
}

/// A broker that is being dialled.
pub(super) struct Dialling<'a> {
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) options: ConnectOptions,
}

impl Dialling<'_> {
    /// Opens a connection whose versions are known.
    pub(super) async fn connect(self) -> Result<BrokerConnection, ConnectionError> {
        let address = ServerAddress::new(self.host, self.port).to_string();
        let connected = match self.options.old_brokers.recall(&address) {
            Some(old) if old.is_fresh() => self.dial_old(old.manner).await,
            Some(Old { manner: Manner::Closes, .. }) => self.prove_closing().await,
            Some(Old { manner: Manner::Swallows, .. }) => self.ask(Duration::ZERO).await,
            None => self.ask(SILENCE).await,
        };
        if connected.is_err() {
            // next time from the beginning: it may be another broker by then
            self.options.old_brokers.forget(&address);
        }
        connected
    }

    async fn dial(&self) -> Result<BrokerConnection, ConnectionError> {
        BrokerConnection::dial(self.host, self.port, self.options.clone()).await
    }

    async fn dial_old(&self, manner: Manner) -> Result<BrokerConnection, ConnectionError> {
        Ok(self.dial().await?.with(manner.versions()))
    }

    async fn ask(&self, patience: Duration) -> Result<BrokerConnection, ConnectionError> {
        let mut connection = self.dial().await?;
        match connection.hear_versions(patience).await? {
            Heard::Closed => self.prove_closing().await,
            heard => self.believe(connection, heard).await,
        }
    }

    /// See the module: it answers the probe, and closes the connection on ApiVersions.
    async fn prove_closing(&self) -> Result<BrokerConnection, ConnectionError> {
        let mut connection = self.dial().await?;
        let probed = connection.exchange(&probe(), FIRST).await;
        probed.map_err(|problem| connection.error(problem))?;
        let heard = connection.hear_versions(SILENCE).await?;
        self.believe(connection, heard).await
    }

    async fn believe(
        &self,
        connection: BrokerConnection,
        heard: Heard,
    ) -> Result<BrokerConnection, ConnectionError> {
        let (address, old_brokers) = (connection.address(), &self.options.old_brokers);
        match heard {
            Heard::Versions(versions) => {
                old_brokers.forget(address);
                Ok(connection.with(versions))
            }
            Heard::Late(versions) => {
                old_brokers.forget(address);
                Ok(self.dial().await?.with(versions))
            }
            Heard::Swallowed => {
                old_brokers.note(address, Manner::Swallows);
                Ok(connection.with(Manner::Swallows.versions()))
            }
            Heard::Closed => {
                old_brokers.note(address, Manner::Closes);
                self.dial_old(Manner::Closes).await
            }
        }
    }
}

impl BrokerConnection {
    fn with(self, versions: ApiVersions) -> Self {
        Self { versions, ..self }
    }

    async fn hear_versions(&mut self, patience: Duration) -> Result<Heard, ConnectionError> {
        match self.ask_versions(patience.min(self.options.socket_timeout / 2)).await {
            Err(problem) if problem.is_hang_up() => Ok(Heard::Closed),
            heard => heard.map_err(|problem| self.error(problem)),
        }
    }

    async fn ask_versions(&mut self, patience: Duration) -> Result<Heard, ConnectionProblem> {
        let asked = self.send(&ApiVersionsRequest, FIRST).await?;
        let mut head = Self::no_head();
        let mut probed = None;
        match timeout(patience, self.fill_head(&mut head)).await {
            Ok(filled) => filled?,
            Err(_) => {
                probed = Some(self.send(&probe(), FIRST).await?);
                self.fill_head(&mut head).await?;
            }
        }
        let (answered, size) = split_head(head)?;
        let body = self.read_body(size).await?;
        if Some(answered) == probed {
            return Ok(Heard::Swallowed);
        }
        check_answers(asked, answered)?;
        let response = ApiVersionsResponse::decode(FIRST, body)?;
        match (response.error.ok(), probed) {
            (Ok(()), None) => Ok(Heard::Versions(response.versions)),
            (Ok(()), Some(_)) => Ok(Heard::Late(response.versions)),
            (Err(error), _) => Err(ConnectionProblem::Refused { api: ApiKey::ApiVersions, error }),
        }
    }
}

#[cfg(test)]
#[path = "versions_tests.rs"]
mod tests;
