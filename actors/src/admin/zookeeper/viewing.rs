//! The view of a whole group, from outside.

use std::collections::BTreeMap;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::list_offsets::{EARLIEST, LATEST};
use kafka_troupe_proto::kafka::offsets_topic::OFFSETS_TOPIC;
use kafka_troupe_proto::schemas::group::v1::GroupView;
use kafka_troupe_proto::zk::paths;
use kafka_troupe_proto::zk::topic_filter::INTERNAL_TOPICS;

use super::{AdminError, ZooKeeperAdmin};
use crate::admin::KafkaAdmin;
use crate::group_view::assembled::{Found, Taking};
use crate::group_view::brokers::told;
use crate::group_view::reading::{Known, Reading, TopicsFrom};

impl ZooKeeperAdmin {
    /// The whole group: members, owners, offsets; with `brokers` also the ends of logs, and offsets that it has stored in
    /// Kafka. Partitions that have nothing but an offset are there too, for topics that nobody subscribes to any more or
    /// that do not exist any more (`exists`).
    ///
    /// A group that does not exist is empty. Filters of members take in no topic of Kafka's own
    /// (`exclude.internal.topics`). What could not be read stands in `errors`; the reads are not atomic.
    ///
    /// # Errors
    /// ZooKeeper does not answer, or the name is none.
    pub async fn view(&self, group: &str, brokers: Option<&KafkaAdmin>) -> Result<GroupView, AdminError> {
        let taking = Taking::begun();
        self.group(group)?;
        let mut errors = Vec::new();
        let topics_from = self.topics_from(brokers, &mut errors).await?;
        // who does not tell topics tells nothing else
        let brokers = brokers.filter(|_| errors.is_empty());
        let reading = Reading {
            nodes: self.nodes(group),
            kept_out: INTERNAL_TOPICS,
            topics_from,
            shows_left_offsets: true,
        };
        let in_kafka = match brokers {
            Some(brokers) if self.may_keep_offsets(&reading.topics_from).await? => {
                committed(brokers, group, &mut errors).await
            }
            _ => BTreeMap::new(),
        };
        let root = reading.nodes.paths.root().to_owned();
        let read = self.client.unless_silent(&root, reading.read(in_kafka)).await?;
        let (mut found, known) = read.map_err(|why| AdminError::Unreadable { why })?;
        found.errors.splice(0..0, errors);
        if let Some(brokers) = brokers {
            ask_logs(brokers, &known, &mut found).await;
        }
        // what went unread since it is away would look like a group without it
        self.client.stat(paths::CONSUMERS).await?;
        Ok(taking.ended(group, found, &known))
    }

    /// Whether Kafka may have a topic for offsets: ZooKeeper knows, where it is Kafka's.
    async fn may_keep_offsets(&self, topics: &TopicsFrom) -> Result<bool, AdminError> {
        match topics {
            TopicsFrom::ZooKeeper => Ok(self.client.stat(&paths::topic(OFFSETS_TOPIC)).await?.is_some()),
            _ => Ok(true),
        }
    }

    /// Of Kafka without ZooKeeper its brokers tell. What it may have left there, of the time before, is out of date; but
    /// its brokers are not registered any more.
    async fn topics_from(
        &self,
        brokers: Option<&KafkaAdmin>,
        errors: &mut Vec<String>,
    ) -> Result<TopicsFrom, AdminError> {
        let Some(brokers) = brokers else { return Ok(TopicsFrom::ZooKeeper) };
        if !self.nodes("").children(paths::BROKER_IDS).await?.is_empty() {
            return Ok(TopicsFrom::ZooKeeper);
        }
        let topics = brokers.topics().await.map_err(|error| errors.push(error.to_string()));
        let numbers = |topics: BTreeMap<_, crate::topic_metadata::KnownTopic>| {
            TopicsFrom::Told(topics.into_iter().map(|(name, topic)| (name, topic.partitions)).collect())
        };
        Ok(topics.map_or(TopicsFrom::ZooKeeper, numbers))
    }
}

async fn committed(
    brokers: &KafkaAdmin,
    group: &str,
    errors: &mut Vec<String>,
) -> BTreeMap<TopicPartition, i64> {
    match brokers.committed(group, None).await {
        Ok(committed) => committed.into_iter().map(|(key, committed)| (key, committed.offset)).collect(),
        // old brokers have none there, and cannot be asked
        Err(AdminError::Unsupported { .. }) => BTreeMap::new(),
        Err(error) => {
            errors.push(error.to_string());
            BTreeMap::new()
        }
    }
}

/// What cannot be told is absent, with one reason for all that lack the same.
async fn ask_logs(brokers: &KafkaAdmin, known: &Known, found: &mut Found) {
    let keys = known.existing(&found.partitions);
    if keys.is_empty() {
        return;
    }
    let (ends, missing) = told(brokers.log_offsets(&keys, LATEST).await);
    found.log_ends = ends;
    found.errors.extend(missing);
    let has_none = |key: &&TopicPartition| {
        !found.committed_kafka.contains_key(key) && !found.committed.get(key).is_some_and(Result::is_ok)
    };
    let bare: Vec<_> = found.log_ends.keys().filter(has_none).cloned().collect();
    if !bare.is_empty() {
        // what is missing here, the ends have shown already
        found.log_starts = told(brokers.log_offsets(&bare, EARLIEST).await).0;
    }
}
