//! One fetch on the wire.

use std::time::Duration;

use kafka_troupe_proto::kafka::fetch::FetchRequest;
use tokio::time::Instant;
use tracing::{Span, field};

use super::fetch_span;
use crate::broker_connection::{BrokerConnection, ConnectOptions, ConnectionError, FetchAnswer};
use crate::fetcher_manager::BrokerAddress;

/// Least time between fetches that bring nothing although the broker was asked to wait.
const LEAST_PERIOD: Duration = Duration::from_millis(50);

/// A fetch that was answered.
pub(super) struct Fetched {
    pub(super) connection: BrokerConnection,
    pub(super) answer: FetchAnswer,
    /// What the broker was asked to wait for data.
    asked_wait: Duration,
    /// From sending to having read the response.
    pub(super) took: Duration,
}

impl Fetched {
    /// How long to wait before the next fetch: while a quota keeps the broker from reading it, and the rest of its time
    /// when a broker answers with nothing before that, so that it cannot make us spin.
    pub(super) fn pause(&self) -> Duration {
        let mut partitions = self.answer.partitions.iter();
        let nothing =
            partitions.all(|(_, partition)| partition.error.is_ok() && partition.records.is_empty());
        let rest = if nothing { rest_of(self.asked_wait, self.took) } else { Duration::ZERO };
        rest.max(self.connection.deaf_for())
    }
}

/// What is left of the time that a broker was to wait. Half of it counts as the whole: its clock is not ours.
fn rest_of(asked_wait: Duration, took: Duration) -> Duration {
    if took >= asked_wait / 2 && !asked_wait.is_zero() {
        return Duration::ZERO;
    }
    asked_wait.max(LEAST_PERIOD).saturating_sub(took)
}

/// Opens a connection to a broker that can be fetched from.
pub(super) async fn dial(
    broker: BrokerAddress,
    options: ConnectOptions,
) -> Result<BrokerConnection, ConnectionError> {
    let connection = BrokerConnection::connect(&broker.host, broker.port, options).await;
    if let Err(error) = &connection {
        Span::current().record("error", field::display(error));
    }
    let connection = connection?;
    connection.version_of::<FetchRequest>()?;
    Ok(connection)
}

/// Whether the broker keeps to a limit of the whole response.
pub(super) fn limits_whole(connection: &BrokerConnection) -> bool {
    connection.version_of::<FetchRequest>().is_ok_and(|version| version >= 3)
}

/// Sends `request` and reads the answer.
pub(super) async fn fetch(
    mut connection: BrokerConnection,
    request: FetchRequest,
) -> Result<Fetched, ConnectionError> {
    let sent = Instant::now();
    let answer = connection.fetch(&request).await;
    fetch_span::answered(&answer);
    let answer = answer?;
    let asked_wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
    Ok(Fetched { connection, answer, asked_wait, took: sent.elapsed() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_early_answer_is_followed_by_a_pause() {
        let ms = Duration::from_millis;
        for (asked, took, pause) in
            [(100, 0, 100), (100, 40, 60), (100, 99, 0), (10, 0, 50), (10, 9, 0), (0, 0, 50)]
        {
            assert_eq!(rest_of(ms(asked), ms(took)), ms(pause), "asked {asked}, took {took}");
        }
    }
}
