//! Finds the group's coordinator, and keeps the connection to it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kafka_troupe_proto::config::ServerAddress;
use kafka_troupe_proto::kafka::error_code::Disposition;
use kafka_troupe_proto::kafka::frame::Request;
use tokio::time::{Instant, timeout};

use super::ChannelSettings;
use super::jobs::{Again, Failure};
use super::requests::hint;
use crate::broker_connection::{BrokerConnection, ConnectionError, ConnectionProblem};
use crate::fetcher_manager::{BrokerAddress, find_coordinator};

/// How long a broker may take to say who the coordinator is, as with the old consumer; then the next is asked.
const LOOK_UP: Duration = Duration::from_secs(3);

pub(super) struct Coordinator {
    settings: ChannelSettings,
    brokers: Vec<BrokerAddress>,
    /// Which of them is asked next: the one that answered last.
    next: usize,
    connection: Option<BrokerConnection>,
    /// It has answered something.
    has_served: bool,
    /// Whoever it was last, for messages.
    last: Option<String>,
    /// Whom a broker named in the last look-up, reached or not.
    named: Option<String>,
    /// Nobody is dialled before.
    rests_until: Instant,
    /// For the status: the address while there is a connection.
    address: Arc<Mutex<Option<String>>>,
    /// Why there was none last, so that it is logged once.
    failed: Option<String>,
}

impl Coordinator {
    pub(super) fn new(mut settings: ChannelSettings, address: Arc<Mutex<Option<String>>>) -> Self {
        // all that is waited for here ends before that, and says why
        settings.connect.socket_timeout *= 2;
        Self {
            settings,
            brokers: Vec::new(),
            next: 0,
            connection: None,
            has_served: false,
            last: None,
            named: None,
            rests_until: Instant::now(),
            address,
            failed: None,
        }
    }

    /// Those that were not known before are asked without a pause.
    pub(super) fn set_brokers(&mut self, brokers: Vec<BrokerAddress>) {
        if self.connection.is_none() && brokers != self.brokers {
            self.rests_until = Instant::now();
        }
        self.brokers = brokers;
    }

    pub(super) fn rests_until(&self) -> Instant {
        self.rests_until
    }

    pub(super) fn describe(&self) -> String {
        match (&self.connection, &self.named, &self.last) {
            (Some(connection), ..) => format!("coordinator {}", connection.address()),
            (None, Some(named), _) => format!("coordinator {named}"),
            (None, None, Some(last)) => format!("coordinator {last} when it was found last"),
            (None, None, None) => "coordinator not found yet".to_owned(),
        }
    }

    /// Has a connection, if there is a coordinator.
    pub(super) async fn open(&mut self, limit: Duration) -> Result<(), Failure> {
        if self.connection.is_some() {
            return Ok(());
        }
        let found = timeout(limit, self.find(LOOK_UP.min(limit / 2))).await;
        match found.unwrap_or_else(|_| Err(unreached())) {
            Ok(connection) => {
                self.found(connection);
                Ok(())
            }
            Err(failure) => {
                if self.failed.as_ref() != Some(&failure.why) {
                    tracing::warn!(group = %self.settings.group, why = failure.why, "no coordinator for offsets in kafka");
                    self.failed = Some(failure.why.clone());
                }
                self.rest();
                Err(failure)
            }
        }
    }

    fn found(&mut self, connection: BrokerConnection) {
        let address = Some(connection.address().to_owned());
        if self.last != address {
            tracing::info!(group = %self.settings.group, coordinator = connection.address(), old = ?self.last, "offsets are kept by this coordinator");
        }
        self.last.clone_from(&address);
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = address;
        (self.failed, self.has_served, self.connection) = (None, false, Some(connection));
    }

    /// Asks brokers in turn until one knows, so long each.
    async fn find(&mut self, patience: Duration) -> Result<BrokerConnection, Failure> {
        self.named = None;
        let (count, mut refusals) = (self.brokers.len(), Vec::new());
        for _ in 0..count {
            let index = self.next % count;
            let broker = self.brokers[index].clone();
            // also when we are cut off: who is silent is asked last the next time
            self.next = (index + 1) % count;
            let asking = find_coordinator(&broker, &self.settings.group, self.settings.connect.clone());
            match timeout(patience, asking).await {
                Ok(Ok((connection, found))) => {
                    self.next = index;
                    self.named = Some(ServerAddress::new(&found.host, found.port).to_string());
                    return self.dial(connection, found).await;
                }
                Ok(Err(ConnectionError {
                    address,
                    problem: ConnectionProblem::Refused { error, .. },
                    ..
                })) => {
                    let hint = hint(error);
                    let why = format!("broker at {address} was asked for the coordinator: {error}{hint}");
                    let is_final = error.disposition() == Disposition::Fatal;
                    return Err(Failure { why, again: if is_final { Again::Never } else { Again::Later } });
                }
                Ok(Err(error)) => refusals.push(error.to_string()),
                Err(_) => {
                    let BrokerAddress { id, host, port } = broker;
                    refusals.push(format!("broker {id} at {host}:{port}: silent"));
                }
            }
        }
        match count {
            0 => Err(Failure::later("no broker is known yet".to_owned())),
            _ => Err(Failure::later(refusals.join("; "))),
        }
    }

    /// The one that was asked may be it.
    async fn dial(
        &self,
        asked: BrokerConnection,
        BrokerAddress { host, port, .. }: BrokerAddress,
    ) -> Result<BrokerConnection, Failure> {
        if asked.address() == ServerAddress::new(&host, port).to_string() {
            return Ok(asked);
        }
        let dialled = BrokerConnection::connect(&host, port, self.settings.connect.clone()).await;
        dialled.map_err(|error| Failure::later(error.to_string()))
    }

    /// Asks it. The connection is gone if it fails, or if the wait is cut off.
    pub(super) async fn call<R: Request>(&mut self, request: &R) -> Result<R::Response, Failure> {
        let Some(mut connection) = self.connection.take() else {
            return Err(Failure::later("not connected".to_owned()));
        };
        match connection.call(request).await {
            Ok(answer) => {
                (self.connection, self.has_served) = (Some(connection), true);
                Ok(answer)
            }
            Err(error) => {
                let at_once = self.has_served && error.problem.is_hang_up();
                self.lost(at_once);
                let again = if at_once { Again::AtOnce } else { Again::Later };
                Err(Failure { why: error.problem.to_string(), again })
            }
        }
    }

    /// It did not answer in time. What it was asked may still be done.
    pub(super) fn silent(&mut self, why: String) -> Failure {
        self.lost(false);
        Failure::later(why)
    }

    /// It says that it is not, or not any more.
    pub(super) fn leave(&mut self) {
        self.lost(false);
    }

    fn lost(&mut self, at_once: bool) {
        self.connection = None;
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = None;
        if !at_once {
            self.rest();
        }
    }

    /// For `offsets.channel.backoff.ms`.
    pub(super) fn rest(&mut self) {
        self.rests_until = Instant::now() + self.settings.backoff;
    }
}

/// Without the time that was left: the same each time, so that it is logged once.
fn unreached() -> Failure {
    let why = "offsets.channel.socket.timeout.ms, or less where others wait or the lease ends";
    Failure::later(format!("not reached in time ({why})"))
}
