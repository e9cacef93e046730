//! A group that Kafka coordinates, or that only stores offsets there, read whole.

use std::collections::{BTreeMap, BTreeSet};

use kafka_troupe::TopicPartition;
use kafka_troupe::admin::{AdminError, Committed, KafkaAdmin, KafkaGroup, LogOffsets};
use kafka_troupe::proto::kafka::list_offsets::LATEST;

/// What brokers say of it.
pub struct ReadGroup {
    pub group: KafkaGroup,
    pub committed: BTreeMap<TopicPartition, Committed>,
    /// Of the partitions that exist.
    pub ends: LogOffsets,
}

impl ReadGroup {
    /// None where there is no such group.
    pub async fn read(admin: &KafkaAdmin, group: &str) -> Result<Option<Self>, AdminError> {
        let group = match admin.describe(group).await {
            Ok(group) => group,
            Err(AdminError::NoSuchGroup { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let committed = admin.committed(&group.name, None).await?;
        let mut read = Self { group, committed, ends: LogOffsets::new() };
        let known = admin.topics().await?;
        let exists = |key: &TopicPartition| {
            known.get(&key.topic).is_some_and(|topic| topic.partitions.contains(&key.partition))
        };
        // whoever asks old brokers for a topic makes it
        let existing: Vec<_> = read.keys().into_iter().filter(exists).collect();
        read.ends = admin.log_offsets(&existing, LATEST).await;
        Ok(Some(read))
    }

    /// The partitions that it has an offset of, or that a member has.
    pub fn keys(&self) -> BTreeSet<TopicPartition> {
        let owned = self.group.members.iter().flat_map(|member| &member.partitions);
        self.committed.keys().chain(owned).cloned().collect()
    }
}

/// Whether a group of this type has members that can be asked for.
pub fn shows_members(group_type: &str) -> bool {
    !matches!(group_type, "share" | "streams")
}

/// That it has not, and why nothing is said of them.
pub fn hidden(group_type: &str) -> Option<String> {
    (!shows_members(group_type)).then(|| format!("a {group_type} group: its members are not shown"))
}
