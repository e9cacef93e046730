//! Which broker coordinates a group.

use std::sync::Arc;

use kafka_troupe_proto::kafka::error_code::ErrorCode;
use kafka_troupe_proto::kafka::find_coordinator::FindCoordinatorRequest;
use kafka_troupe_proto::kafka::frame::Request;

use super::BrokerAddress;
use crate::broker_connection::{BrokerConnection, ConnectOptions, ConnectionError, ConnectionProblem};

/// Asks `broker` for the coordinator of a group; also gives the connection to who was asked, for it may be the same.
///
/// # Errors
/// It was not reached, or refused: [`ConnectionProblem::Refused`].
pub(crate) async fn find_coordinator(
    broker: &BrokerAddress,
    group: &Arc<str>,
    options: ConnectOptions,
) -> Result<(BrokerConnection, BrokerAddress), ConnectionError> {
    let mut connection = BrokerConnection::connect(&broker.host, broker.port, options).await?;
    let found = connection.call(&FindCoordinatorRequest { group: Arc::clone(group) }).await?;
    let refused = |error: ErrorCode| {
        let problem = ConnectionProblem::Refused { api: FindCoordinatorRequest::API, error };
        ConnectionError::new(connection.address(), problem)
    };
    found.error.ok().map_err(refused)?;
    let port = u16::try_from(found.port).map_err(|_| refused(ErrorCode::CoordinatorNotAvailable))?;
    Ok((connection, BrokerAddress { id: found.id, host: found.host.to_string(), port }))
}
