//! Finds leaders: one Metadata request to the first broker that answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::ErrorCode;
use kafka_troupe_proto::kafka::metadata::{MetadataRequest, MetadataResponse};

use super::BrokerAddress;
use super::placements::Leader;
use crate::broker_connection::{BrokerConnection, ConnectOptions, ConnectionError};

/// Who leads what, as one broker sees it.
pub(super) struct Leaders {
    /// Of the brokers that are alive.
    pub(super) brokers: Vec<BrokerAddress>,
    /// Per topic whose partitions could not be told: why.
    refused: BTreeMap<Arc<str>, ErrorCode>,
    leaders: BTreeMap<TopicPartition, (Option<i32>, ErrorCode)>,
}

impl Leaders {
    /// The leader of a partition, or why there is none.
    pub(super) fn of(&self, key: &TopicPartition) -> Leader {
        match (self.leaders.get(key), self.refused.get(&key.topic)) {
            (Some((Some(leader), _)), _) => Ok(*leader),
            (Some((None, error)), _) => Err(format!("no leader: {error}")),
            (None, Some(error)) => Err(format!("topic metadata: {error}")),
            (None, None) => Err("the topic has no such partition".to_owned()),
        }
    }
}

impl From<MetadataResponse> for Leaders {
    fn from(response: MetadataResponse) -> Self {
        let mut leaders = Self { brokers: Vec::new(), refused: BTreeMap::new(), leaders: BTreeMap::new() };
        for broker in response.brokers {
            if let Ok(port) = u16::try_from(broker.port) {
                leaders.brokers.push(BrokerAddress { id: broker.id, host: broker.host.to_string(), port });
            }
        }
        for topic in response.topics {
            if !topic.error.is_ok() {
                leaders.refused.insert(Arc::clone(&topic.name), topic.error);
            }
            for partition in topic.partitions {
                let key = TopicPartition::new(Arc::clone(&topic.name), partition.partition);
                leaders.leaders.insert(key, (partition.leader, partition.error));
            }
        }
        leaders
    }
}

/// Asks `brokers` in turn until one answers; also says which of them did.
///
/// # Errors
/// All refused: what each said.
pub(super) async fn find_leaders(
    brokers: Vec<BrokerAddress>,
    options: ConnectOptions,
    topics: BTreeSet<Arc<str>>,
) -> Result<(i32, Leaders), String> {
    let request = MetadataRequest { topics: Some(topics.into_iter().collect()) };
    let mut refusals = Vec::new();
    for broker in brokers {
        match ask(&broker, &options, &request).await {
            Ok(response) => return Ok((broker.id, response.into())),
            Err(error) => refusals.push(error.to_string()),
        }
    }
    Err(refusals.join("; "))
}

async fn ask(
    broker: &BrokerAddress,
    options: &ConnectOptions,
    request: &MetadataRequest,
) -> Result<MetadataResponse, ConnectionError> {
    let mut connection = BrokerConnection::connect(&broker.host, broker.port, options.clone()).await?;
    connection.call(request).await
}
