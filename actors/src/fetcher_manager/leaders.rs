//! Finds leaders: one Metadata request to the first broker that answers. It makes no topics.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::ErrorCode;
use kafka_troupe_proto::kafka::metadata::{MetadataRequest, MetadataResponse};
use tokio::time::timeout;

use super::BrokerAddress;
use super::placements::Led;
use crate::broker_connection::{BrokerConnection, ConnectOptions, ConnectionError};

/// How long a broker may be silent before another is asked as well.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// Who leads what, as one broker sees it.
pub(crate) struct Leaders {
    /// Of the brokers that are alive.
    pub(crate) brokers: Vec<BrokerAddress>,
    /// Per topic whose partitions could not be told: why.
    refused: BTreeMap<Arc<str>, ErrorCode>,
    leaders: BTreeMap<TopicPartition, Result<Led, ErrorCode>>,
}

impl Leaders {
    /// The leader of a partition, or why there is none.
    pub(crate) fn of(&self, key: &TopicPartition) -> Result<Led, String> {
        match (self.leaders.get(key), self.refused.get(&key.topic)) {
            (Some(Ok(led)), _) => Ok(*led),
            (Some(Err(error)), _) => Err(format!("no leader: {error}")),
            (None, Some(error)) => Err(format!("topic metadata: {error}")),
            (None, None) => Err("topic metadata: no such topic, or no such partition of it".to_owned()),
        }
    }
}

impl Leaders {
    /// How many partitions a topic has; 0 where that could not be told.
    pub(crate) fn partitions_of(&self, topic: &str) -> usize {
        self.leaders.keys().filter(|key| *key.topic == *topic).count()
    }

    /// Whether the partition was told of, led or not.
    pub(crate) fn tells_of(&self, key: &TopicPartition) -> bool {
        self.leaders.contains_key(key)
    }

    /// Why a topic's partitions could not be told.
    pub(crate) fn refusal(&self, topic: &str) -> Option<ErrorCode> {
        self.refused.get(topic).copied()
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
                let led = |broker| Led { broker, epoch: partition.leader_epoch };
                leaders.leaders.insert(key, partition.leader.map(led).ok_or(partition.error));
            }
        }
        leaders
    }
}

/// Who leads the partitions of `topics`, by [`ask_metadata`].
///
/// # Errors
/// All refused: what each said.
pub(crate) async fn find_leaders(
    brokers: Vec<BrokerAddress>,
    options: ConnectOptions,
    topics: BTreeSet<Arc<str>>,
) -> Result<(i32, Leaders), String> {
    let (broker, response) = ask_metadata(brokers, options, Some(topics)).await?;
    Ok((broker, response.into()))
}

/// Asks `brokers` in turn about topics, or about all, until one answers; also says which of them did. One that is
/// silent for [`PATIENCE`] may still answer, but the next is asked meanwhile.
///
/// # Errors
/// All refused: what each said.
pub(crate) async fn ask_metadata(
    brokers: Vec<BrokerAddress>,
    options: ConnectOptions,
    topics: Option<BTreeSet<Arc<str>>>,
) -> Result<(i32, MetadataResponse), String> {
    let request = MetadataRequest { topics: topics.map(|topics| topics.into_iter().collect()) };
    let asked = in_turn(&brokers, PATIENCE, |broker| ask(broker, &options, &request)).await;
    asked.map_err(|refusals| refusals.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

/// Asks `brokers` in turn until one answers. One that is silent for `patience` may still answer, but the next is asked
/// meanwhile.
///
/// # Errors
/// All refused: what each said.
pub(crate) async fn in_turn<'a, T, E, F: Future<Output = Result<T, E>>>(
    brokers: &'a [BrokerAddress],
    patience: Duration,
    ask: impl Fn(&'a BrokerAddress) -> F,
) -> Result<T, Vec<E>> {
    let (mut next, mut asked, mut refusals) =
        (brokers.iter().peekable(), FuturesUnordered::new(), Vec::new());
    loop {
        asked.extend(next.next().map(&ask));
        let answer = match next.peek() {
            Some(_) => timeout(patience, asked.next()).await,
            None => Ok(asked.next().await),
        };
        match answer {
            Ok(Some(Ok(answer))) => return Ok(answer),
            Ok(Some(Err(error))) => refusals.push(error),
            Ok(None) => return Err(refusals),
            Err(_) => {}
        }
    }
}

/// Below this version a broker with `auto.create.topics.enable` makes the topics that it is asked for.
const CREATES_NOTHING: i16 = 4;

async fn ask(
    broker: &BrokerAddress,
    options: &ConnectOptions,
    request: &MetadataRequest,
) -> Result<(i32, MetadataResponse), ConnectionError> {
    let mut connection = BrokerConnection::connect(&broker.host, broker.port, options.clone()).await?;
    let version = connection.version_of::<MetadataRequest>()?;
    // to ask for all makes none, also where one was just deleted
    let all = MetadataRequest { topics: None };
    let request = if version < CREATES_NOTHING { &all } else { request };
    Ok((broker.id, connection.call(request).await?))
}

#[cfg(test)]
#[path = "leaders_tests.rs"]
mod tests;
