//! What brokers tell of partitions: the ends of their logs, and offsets that are stored in Kafka.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::config::{ConsumerConfig, IsolationLevel};
use kafka_troupe_proto::kafka::list_offsets::{LATEST, ListedOffset};
use kafka_troupe_proto::kafka::offset_fetch::OffsetFetchRequest;
use tokio::time::timeout;

use crate::broker_connection::{BrokerConnection, ConnectOptions, ConnectionError};
use crate::fetcher_manager::{
    BrokerAddress, KnownBrokers, LeaderConnection, Leaders, find_coordinator, find_leaders,
};

/// How long the brokers are waited for: what they do not tell by then is left out of the view.
const PATIENCE: Duration = Duration::from_secs(3);

/// The offset of the next record to come, by partition.
type Ends = BTreeMap<TopicPartition, i64>;

/// The brokers, as far as a view needs them.
pub(super) struct Brokers {
    group: Arc<str>,
    read_committed: bool,
    connect: ConnectOptions,
    known: Arc<KnownBrokers>,
}

impl Brokers {
    pub(super) fn new(config: &ConsumerConfig, connect: ConnectOptions, known: Arc<KnownBrokers>) -> Self {
        let read_committed = config.isolation_level == IsolationLevel::ReadCommitted;
        Self { group: config.group_id.as_str().into(), read_committed, connect, known }
    }

    /// The ends of logs, and why some are missing.
    pub(super) async fn log_ends(&self, keys: &[TopicPartition]) -> (Ends, Vec<String>) {
        let leaders = match self.leaders(keys).await {
            Ok(leaders) => leaders,
            Err(why) => return (Ends::new(), vec![format!("ends of logs: no leader is known: {why}")]),
        };
        let (by_leader, mut errors) = by_leader(keys, &leaders);
        let asked = by_leader.into_iter().map(|(broker, keys)| {
            let address = leaders.brokers.iter().find(|it| it.id == broker);
            async move {
                let Some(address) = address else { return Err(format!("broker {broker} is not up")) };
                let listed = timeout(PATIENCE, self.ends_at(address, &keys)).await;
                listed.unwrap_or_else(|_| Err(format!("broker {broker} is silent")))
            }
        });
        let mut ends = Ends::new();
        for listed in join_all(asked).await {
            match listed {
                Ok(listed) => ends.extend(listed),
                Err(why) => errors.push(format!("ends of logs: {why}")),
            }
        }
        (ends, errors)
    }

    async fn leaders(&self, keys: &[TopicPartition]) -> Result<Leaders, String> {
        let brokers = self.known.get();
        if brokers.is_empty() {
            return Err("nor is any broker yet".to_owned());
        }
        let topics = keys.iter().map(|key| Arc::clone(&key.topic)).collect();
        let found = timeout(PATIENCE, find_leaders(brokers, self.connect.clone(), topics)).await;
        found.unwrap_or_else(|_| Err("the brokers are silent".to_owned())).map(|(_, leaders)| leaders)
    }

    async fn ends_at(
        &self,
        broker: &BrokerAddress,
        keys: &[&TopicPartition],
    ) -> Result<Vec<(TopicPartition, i64)>, String> {
        let connected = LeaderConnection::connect(broker, self.connect.clone(), self.read_committed).await;
        let mut connection = connected.map_err(|error| error.to_string())?;
        let wanted = keys.iter().map(|key| (TopicPartition::clone(key), LATEST)).collect();
        let listed = connection.list(wanted).await.map_err(|error| error.to_string())?;
        let end = |(key, listed): (TopicPartition, ListedOffset)| {
            Some((key, listed.offset.filter(|_| listed.error.is_ok())?))
        };
        Ok(listed.into_iter().filter_map(end).collect())
    }

    /// The offsets that the group has stored in Kafka.
    ///
    /// # Errors
    /// Why they cannot be told.
    pub(super) async fn committed(
        &self,
        keys: &[TopicPartition],
    ) -> Result<BTreeMap<TopicPartition, i64>, String> {
        let failed = |why: String| format!("offsets in kafka: {why}");
        let asked = timeout(PATIENCE, self.fetch_committed(keys)).await;
        asked.unwrap_or_else(|_| Err("the coordinator was not reached in time".to_owned())).map_err(failed)
    }

    async fn fetch_committed(
        &self,
        keys: &[TopicPartition],
    ) -> Result<BTreeMap<TopicPartition, i64>, String> {
        let mut topics: BTreeMap<Arc<str>, Vec<i32>> = BTreeMap::new();
        for TopicPartition { topic, partition } in keys {
            topics.entry(Arc::clone(topic)).or_default().push(*partition);
        }
        let topics = Some(topics.into_iter().collect());
        let request = OffsetFetchRequest { group: Arc::clone(&self.group), topics };
        let answer = self.coordinator().await?.call(&request).await.map_err(|error| error.to_string())?;
        answer.error.ok().map_err(|error| error.to_string())?;
        let mut committed = BTreeMap::new();
        for topic in answer.topics {
            for fetched in topic.partitions {
                fetched.error.ok().map_err(|error| error.to_string())?;
                let key = TopicPartition::new(Arc::clone(&topic.topic), fetched.partition);
                committed.extend(fetched.offset.map(|offset| (key, offset)));
            }
        }
        Ok(committed)
    }

    /// Asks brokers in turn who it is.
    async fn coordinator(&self) -> Result<BrokerConnection, String> {
        let mut refusals = Vec::new();
        for broker in self.known.get() {
            match self.dial_coordinator(&broker).await {
                Ok(connection) => return Ok(connection),
                Err(error) => refusals.push(error.to_string()),
            }
        }
        Err(format!("no coordinator: {}", refusals.join("; ")))
    }

    async fn dial_coordinator(&self, asked: &BrokerAddress) -> Result<BrokerConnection, ConnectionError> {
        let (_, found) = find_coordinator(asked, &self.group, self.connect.clone()).await?;
        BrokerConnection::connect(&found.host, found.port, self.connect.clone()).await
    }
}

/// Whom to ask for which, and why nobody is asked for some.
fn by_leader<'a>(
    keys: &'a [TopicPartition],
    leaders: &Leaders,
) -> (BTreeMap<i32, Vec<&'a TopicPartition>>, Vec<String>) {
    let (mut led, mut leaderless) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
    for key in keys {
        match leaders.of(key) {
            Ok(by) => led.entry(by.broker).or_default().push(key),
            Err(why) => leaderless.entry(why).or_default().push(key),
        }
    }
    (led, leaderless.iter().map(|(why, keys)| missing(keys, why)).collect())
}

/// Once for all that lack the same.
fn missing(keys: &[&TopicPartition], why: &str) -> String {
    match keys {
        [first, _, ..] => format!("ends of {first} and {} more: {why}", keys.len() - 1),
        keys => format!("end of {}: {why}", keys.first().map(ToString::to_string).unwrap_or_default()),
    }
}
