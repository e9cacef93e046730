//! What is known of the cluster, and how one answer follows on another. No I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kafka_troupe_proto::config::ServerAddress;
use kafka_troupe_proto::kafka::error_code::ErrorCode;
use kafka_troupe_proto::kafka::metadata::{self, MetadataResponse, TopicId};

use crate::fetcher_manager::BrokerAddress;

/// Topics and brokers as one broker told them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Picture {
    /// The brokers that are alive, by id; at least one.
    pub brokers: Vec<BrokerAddress>,
    /// The topics that exist.
    pub topics: BTreeMap<Arc<str>, KnownTopic>,
}

/// One topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownTopic {
    /// Partition numbers, ascending.
    pub partitions: Vec<i32>,
    /// Tells it from an earlier or later topic of its name; brokers before 2.8 do not say.
    pub id: Option<TopicId>,
    /// Kafka's own, by the broker's word.
    pub is_internal: bool,
}

/// What one picture shows otherwise than the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq, actix::Message)]
#[rtype(result = "()")]
#[non_exhaustive]
pub struct Changes {
    /// Topics that appeared or went.
    pub topics: bool,
    /// Brokers that came, went or moved.
    pub brokers: bool,
    /// Topics with other partitions than before, those that appeared, went or were made again among them.
    pub partitions: BTreeSet<Arc<str>>,
}

impl Changes {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Picture {
    /// The picture after an answer.
    ///
    /// # Errors
    /// The broker knows of no brokers: it has just started, and what it says of topics says nothing either.
    pub fn next(known: Option<&Self>, response: MetadataResponse) -> Result<Self, String> {
        let mut brokers: Vec<_> = response.brokers.iter().filter_map(address).collect();
        brokers.sort_unstable_by_key(|broker| broker.id);
        if brokers.is_empty() {
            return Err("it knows of no brokers yet".to_owned());
        }
        let before = |name: &str| known.and_then(|known| known.topics.get(name));
        let topics = response.topics.into_iter().filter_map(|topic| {
            let name = Arc::clone(&topic.name);
            KnownTopic::next(before(&name), topic).map(|topic| (name, topic))
        });
        Ok(Self { topics: topics.collect(), brokers })
    }

    /// What is new here, or gone; all of it when nothing was known.
    pub fn changes(&self, known: Option<&Self>) -> Changes {
        let nothing = Self::default();
        let known = known.unwrap_or(&nothing);
        let names = self.topics.keys().chain(known.topics.keys());
        let differs = |name: &&Arc<str>| match (self.topics.get(*name), known.topics.get(*name)) {
            (Some(now), Some(before)) => now.partitions != before.partitions || now.is_remade(before),
            _ => true,
        };
        Changes {
            topics: !self.topics.keys().eq(known.topics.keys()),
            brokers: self.brokers != known.brokers,
            partitions: names.filter(differs).cloned().collect(),
        }
    }

    /// Who listens at an address, if a broker says that it does.
    pub(super) fn broker_at(&self, address: &ServerAddress) -> Option<i32> {
        self.brokers
            .iter()
            .find(|broker| broker.host == address.host && broker.port == address.port)
            .map(|broker| broker.id)
    }

    /// Which topic stands under a name.
    pub(super) fn id_of(&self, topic: &str) -> Option<TopicId> {
        self.topics.get(topic)?.id
    }

    /// Whether topics or partitions are missing that were known. A topic that was made again lacks nothing.
    pub fn lacks(&self, known: &Self) -> bool {
        known.topics.iter().any(|(name, before)| match self.topics.get(name) {
            None => true,
            Some(now) => now.partitions.len() < before.partitions.len() && !now.is_remade(before),
        })
    }
}

impl KnownTopic {
    fn next(known: Option<&Self>, topic: metadata::Topic) -> Option<Self> {
        if topic.error == ErrorCode::UnknownTopicOrPartition {
            return None;
        }
        if !topic.error.is_ok() && topic.partitions.is_empty() {
            // being made, or not to be told now: no word on its partitions
            return known.cloned();
        }
        let mut partitions: Vec<_> = topic.partitions.iter().map(|partition| partition.partition).collect();
        partitions.sort_unstable();
        partitions.dedup();
        Some(Self { partitions, id: topic.id, is_internal: topic.is_internal })
    }

    /// Both say which topic they are, and it is not the same.
    pub fn is_remade(&self, before: &Self) -> bool {
        matches!((self.id, before.id), (Some(now), Some(before)) if now != before)
    }
}

fn address(broker: &metadata::Broker) -> Option<BrokerAddress> {
    let port = u16::try_from(broker.port).ok().filter(|port| *port != 0);
    if port.is_none() || broker.host.is_empty() {
        // at each poll
        tracing::debug!(broker = broker.id, host = %broker.host, port = broker.port, "broker cannot be used: it does not say where it listens");
        return None;
    }
    Some(BrokerAddress { id: broker.id, host: broker.host.to_string(), port: port? })
}

#[cfg(test)]
#[path = "picture_tests.rs"]
mod tests;
