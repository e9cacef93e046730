//! Offsets that groups store in Kafka.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::ErrorCode;
use kafka_troupe_proto::kafka::offset_commit::{CommitPartition, CommitTopic, OffsetCommitRequest};
use kafka_troupe_proto::kafka::offset_delete::OffsetDeleteRequest;
use kafka_troupe_proto::kafka::offset_fetch::{OffsetFetchRequest, OffsetFetchResponse};

use super::kafka::Trouble;
use super::{AdminError, KafkaAdmin};
use crate::offset_committer::hint;

/// From this version on a group's offsets can be asked for without naming partitions.
const TELLS_ALL: i16 = 2;

/// A stored offset.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Committed {
    /// The next offset to consume.
    pub offset: i64,
    /// Free text stored with it; empty as a rule.
    pub metadata: String,
}

impl KafkaAdmin {
    /// The offsets that a group has stored in Kafka, of some partitions or of all; those without any are left out. A
    /// group that is not there has none.
    ///
    /// Brokers before 0.10.2 must be asked about each partition: then all are those of the topics that exist.
    ///
    /// # Errors
    /// [`AdminError::Refused`] by the brokers' permissions, [`AdminError::TimedOut`] without a coordinator.
    pub async fn committed(
        &self,
        group: &str,
        keys: Option<&[TopicPartition]>,
    ) -> Result<BTreeMap<TopicPartition, Committed>, AdminError> {
        let what = format!("offsets of group {group:?} in kafka");
        self.persist_for_group(what, group, async || self.fetch_committed(group, keys).await).await
    }

    async fn fetch_committed(
        &self,
        group: &str,
        keys: Option<&[TopicPartition]>,
    ) -> Result<BTreeMap<TopicPartition, Committed>, Trouble> {
        let Some(mut connection) = self.coordinator_if_any(group).await? else { return Ok(BTreeMap::new()) };
        let tells_all = connection.version_of::<OffsetFetchRequest>()? >= TELLS_ALL;
        let topics = match keys {
            Some(keys) => Some(by_topic(keys.iter().map(|key| (key, key.partition)))),
            None if tells_all => None,
            None => Some(
                self.picture().await?.topics.into_iter().map(|(name, it)| (name, it.partitions)).collect(),
            ),
        };
        if topics.as_ref().is_some_and(Vec::is_empty) {
            return Ok(BTreeMap::new());
        }
        found(connection.call(&OffsetFetchRequest { group: group.into(), topics }).await?)
    }

    /// Stores offsets for a group from outside it (generation -1), as Kafka's own tools do; says per partition how it
    /// came out. Brokers take them while the group has no members of Kafka's own protocol. Nothing fences them: a
    /// ZooKeeper-coordinated member that commits to Kafka writes over them. What somebody has stored since they were sent
    /// is not taken back by sending them again.
    ///
    /// # Errors
    /// [`AdminError::TimedOut`] without a coordinator: whether something was stored is then not known.
    /// [`AdminError::Refused`]: the answer was lost, and somebody else has stored offsets since.
    pub async fn commit(
        &self,
        group: &str,
        offsets: &[(TopicPartition, i64)],
    ) -> Result<BTreeMap<TopicPartition, Result<(), String>>, AdminError> {
        if offsets.is_empty() {
            return Ok(BTreeMap::new());
        }
        let topics = by_topic(offsets.iter().map(|(key, offset)| {
            let metadata = Arc::from("");
            (key, CommitPartition { partition: key.partition, offset: *offset, metadata })
        }));
        let topics =
            topics.into_iter().map(|(topic, partitions)| CommitTopic { topic, partitions }).collect();
        let request = OffsetCommitRequest { group: group.into(), generation: -1, member: "".into(), topics };
        let what = format!("commit of offsets of group {group:?} to kafka");
        let before = self.committed(group, Some(&keys(offsets))).await?;
        let was_sent = Cell::new(false);
        let commit = async || {
            if was_sent.replace(true) {
                self.check_unchanged(group, offsets, &before).await?;
            }
            self.send_commit(&request).await
        };
        let mut told = self.persist_for_group(what, group, commit).await?;
        for (key, _) in offsets {
            told.entry(key.clone())
                .or_insert_with(|| Err("the coordinator does not say that it is set".to_owned()));
        }
        Ok(told)
    }

    /// What is stored is ours, or what was stored before.
    async fn check_unchanged(
        &self,
        group: &str,
        ours: &[(TopicPartition, i64)],
        before: &BTreeMap<TopicPartition, Committed>,
    ) -> Result<(), Trouble> {
        let now = self.fetch_committed(group, Some(&keys(ours))).await?;
        let offset = |of: &BTreeMap<TopicPartition, Committed>, key| of.get(key).map(|it| it.offset);
        for (key, ours) in ours {
            let stored = offset(&now, key);
            if stored != Some(*ours) && stored != offset(before, key) {
                let why =
                    format!("somebody else has stored {stored:?} for {key} meanwhile; look, and begin again");
                return Err(Trouble::Final(why));
            }
        }
        Ok(())
    }

    /// The same again stores the same, so all of it is sent again where a part passes by itself.
    async fn send_commit(
        &self,
        request: &OffsetCommitRequest,
    ) -> Result<BTreeMap<TopicPartition, Result<(), String>>, Trouble> {
        let answer = self.coordinator(&request.group).await?.call(request).await?;
        let mut outcomes = BTreeMap::new();
        for topic in answer.topics {
            for (partition, error) in topic.partitions {
                if let Err(trouble @ Trouble::Passing(_)) = error.ok().map_err(Trouble::from)
                    && error != ErrorCode::UnknownTopicOrPartition
                {
                    return Err(trouble);
                }
                let outcome = error.ok().map_err(|error| format!("{error}{}", hint(error)));
                outcomes.insert(TopicPartition::new(Arc::clone(&topic.topic), partition), outcome);
            }
        }
        Ok(outcomes)
    }

    /// Deletes the offsets that a group has stored in Kafka of one topic; the group stays.
    ///
    /// # Errors
    /// [`AdminError::NoSuchGroup`], [`AdminError::NothingOfTopic`], [`AdminError::OfAnotherType`]; [`AdminError::Active`] while a member subscribes to the
    /// topic; [`AdminError::Unsupported`] below 2.4.
    pub async fn delete_group_topic(&self, group: &str, topic: &str) -> Result<(), AdminError> {
        self.check_type(group).await?;
        let what = format!("deletion of offsets of topic {topic} of group {group:?} in kafka");
        let was_sent = Cell::new(false);
        let deleted = async || self.delete_offsets(group, topic, &was_sent).await;
        match self.persist_for_group(what, group, deleted).await {
            Ok(()) if !was_sent.get() => {
                Err(AdminError::NothingOfTopic { group: group.to_owned(), topic: topic.to_owned() })
            }
            Err(AdminError::Active { group, .. }) => Err(self.active(group).await),
            deleted => deleted,
        }
    }

    /// Deleted again, an offset is as gone as before. Nothing is sent where there is none.
    async fn delete_offsets(&self, group: &str, topic: &str, was_sent: &Cell<bool>) -> Result<(), Trouble> {
        let committed = self.fetch_committed(group, None).await?;
        let partitions: Vec<_> =
            committed.keys().filter(|key| &*key.topic == topic).map(|key| key.partition).collect();
        if partitions.is_empty() {
            return Ok(());
        }
        let topics = vec![(topic.into(), partitions)];
        let mut coordinator = self.coordinator(group).await?;
        was_sent.set(true);
        let answer = coordinator.call(&OffsetDeleteRequest { group: group.into(), topics }).await?;
        answer.error.ok()?;
        for (_, error) in answer.topics.into_iter().flat_map(|topic| topic.partitions) {
            match error {
                ErrorCode::UnknownTopicOrPartition => {
                    let why =
                        "the topic does not exist; offsets of it go with the group, or by themselves in time";
                    return Err(Trouble::Final(why.to_owned()));
                }
                error => error.ok()?,
            }
        }
        Ok(())
    }
}

fn found(answer: OffsetFetchResponse) -> Result<BTreeMap<TopicPartition, Committed>, Trouble> {
    answer.error.ok()?;
    let mut committed = BTreeMap::new();
    for topic in answer.topics {
        for fetched in topic.partitions {
            match fetched.error {
                // brokers of 0.8 say so of what has no offset
                ErrorCode::None | ErrorCode::UnknownTopicOrPartition => {}
                error => return Err(error.into()),
            }
            let key = TopicPartition::new(Arc::clone(&topic.topic), fetched.partition);
            let metadata = fetched.metadata.map(|text| text.to_string()).unwrap_or_default();
            committed.extend(fetched.offset.map(|offset| (key, Committed { offset, metadata })));
        }
    }
    Ok(committed)
}

fn keys(offsets: &[(TopicPartition, i64)]) -> Vec<TopicPartition> {
    offsets.iter().map(|(key, _)| key.clone()).collect()
}

fn by_topic<'a, T>(all: impl Iterator<Item = (&'a TopicPartition, T)>) -> Vec<(Arc<str>, Vec<T>)> {
    let mut topics: BTreeMap<Arc<str>, Vec<T>> = BTreeMap::new();
    for (key, one) in all {
        topics.entry(Arc::clone(&key.topic)).or_default().push(one);
    }
    topics.into_iter().collect()
}
