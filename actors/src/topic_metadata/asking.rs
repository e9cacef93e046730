//! One poll: a Metadata request for all topics, to the first broker whose answer is of use.

use std::sync::Arc;

use kafka_troupe_proto::config::ServerAddress;
use kafka_troupe_proto::kafka::metadata::MetadataRequest;

use super::picture::Picture;
use crate::broker_connection::{BrokerConnection, ConnectOptions};

/// An answer, who gave it, and the way to ask again.
pub(super) struct Answered {
    pub(super) picture: Picture,
    pub(super) address: ServerAddress,
    pub(super) connection: BrokerConnection,
}

/// Asks each address in turn; the first over the connection that was kept, if there is one.
///
/// # Errors
/// All refused, or have nothing to tell yet: what each said.
pub(super) async fn ask(
    mut kept: Option<BrokerConnection>,
    addresses: Vec<ServerAddress>,
    options: ConnectOptions,
    known: Option<Arc<Picture>>,
) -> Result<Answered, String> {
    let mut refusals = Vec::new();
    for address in addresses {
        // a broker closes what is idle for long: no reason to pass it over
        if let Some(connection) = kept.take()
            && let Ok((picture, connection)) = call(connection, known.as_deref()).await
        {
            return Ok(Answered { picture, address, connection });
        }
        match dial(&address, &options, known.as_deref()).await {
            Ok((picture, connection)) => return Ok(Answered { picture, address, connection }),
            Err(why) => refusals.push(why),
        }
    }
    Err(refusals.join("; "))
}

async fn dial(
    ServerAddress { host, port, .. }: &ServerAddress,
    options: &ConnectOptions,
    known: Option<&Picture>,
) -> Result<(Picture, BrokerConnection), String> {
    let connection = BrokerConnection::connect(host, *port, options.clone()).await;
    call(connection.map_err(|error| error.to_string())?, known).await
}

async fn call(
    mut connection: BrokerConnection,
    known: Option<&Picture>,
) -> Result<(Picture, BrokerConnection), String> {
    let response = connection.call(&MetadataRequest { topics: None }).await;
    let picture = Picture::next(known, response.map_err(|error| error.to_string())?);
    let picture = picture.map_err(|why| format!("broker at {}: {why}", connection.address()))?;
    Ok((picture, connection))
}
