//! Paths of a group and of the brokers, all relative to the chroot of `zookeeper.connect`.

use crate::TopicPartition;

/// Parent of every group. Created by brokers at start-up, or by the first consumer.
pub const CONSUMERS: &str = "/consumers";
/// One ephemeral child per live broker; read by
/// [`BrokerRegistration::parse`](super::broker::BrokerRegistration::parse).
pub const BROKER_IDS: &str = "/brokers/ids";
/// One child per topic; read by [`partition_ids`](super::topic::partition_ids).
pub const BROKER_TOPICS: &str = "/brokers/topics";

/// Registration of one broker: `/brokers/ids/<id>`.
pub fn broker(id: i32) -> String {
    format!("{BROKER_IDS}/{id}")
}

/// Partitions of one topic: `/brokers/topics/<topic>`.
pub fn topic(name: &str) -> String {
    format!("{BROKER_TOPICS}/{name}")
}

/// The tree of one group, `/consumers/<group>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupPaths {
    root: String,
}

impl GroupPaths {
    /// Paths of `group`, a name that the configuration has accepted (no slash, not `.` or `..`).
    pub fn new(group: &str) -> Self {
        Self { root: format!("{CONSUMERS}/{group}") }
    }

    /// `/consumers/<group>`.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// `…/ids`: persistent; its children are the members.
    pub fn ids(&self) -> String {
        format!("{}/ids", self.root)
    }

    /// `…/ids/<consumer>`: ephemeral registration of one member.
    pub fn id(&self, consumer_id: &str) -> String {
        format!("{}/ids/{consumer_id}", self.root)
    }

    /// `…/owners`: persistent, made when the first owner node is.
    pub fn owners(&self) -> String {
        format!("{}/owners", self.root)
    }

    /// `…/owners/<topic>`: persistent; its children are the owned partitions.
    pub fn owner_topic(&self, topic: &str) -> String {
        format!("{}/owners/{topic}", self.root)
    }

    /// `…/owners/<topic>/<partition>`: ephemeral; its data is the owner's thread id as plain text.
    pub fn owner(&self, partition: &TopicPartition) -> String {
        format!("{}/owners/{}/{}", self.root, partition.topic, partition.partition)
    }

    /// `…/topics/<topic>`: persistent; see [`topic_ids`](super::topic_ids). The old consumer has no such node, and
    /// looks at none but the others.
    pub fn topic(&self, topic: &str) -> String {
        format!("{}/topics/{topic}", self.root)
    }

    /// `…/offsets`: persistent, made by the first commit.
    pub fn offsets(&self) -> String {
        format!("{}/offsets", self.root)
    }

    /// `…/offsets/<topic>`: persistent; its children are the partitions with a commit.
    pub fn offsets_topic(&self, topic: &str) -> String {
        format!("{}/offsets/{topic}", self.root)
    }

    /// `…/offsets/<topic>/<partition>`: persistent; see [`offset`](super::offset).
    pub fn offset(&self, partition: &TopicPartition) -> String {
        format!("{}/offsets/{}/{}", self.root, partition.topic, partition.partition)
    }
}

/// Parents of an absolute path, outermost first and without the path itself: the order in which to make them.
///
/// The root `/` is not among them: it always exists, and under a chroot it is the chroot, which a consumer
/// never makes.
pub fn parents(path: &str) -> Vec<&str> {
    path.match_indices('/').map(|(end, _)| &path[..end]).filter(|parent| !parent.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_old_consumer() {
        let paths = GroupPaths::new("g");
        let partition = TopicPartition::new("t.x", 7);
        assert_eq!(paths.root(), "/consumers/g");
        assert_eq!(paths.ids(), "/consumers/g/ids");
        assert_eq!(paths.id("g_h-1-a"), "/consumers/g/ids/g_h-1-a");
        assert_eq!(paths.owners(), "/consumers/g/owners");
        assert_eq!(paths.owner_topic("t.x"), "/consumers/g/owners/t.x");
        assert_eq!(paths.owner(&partition), "/consumers/g/owners/t.x/7");
        assert_eq!(paths.topic("t.x"), "/consumers/g/topics/t.x");
        assert_eq!(paths.offsets(), "/consumers/g/offsets");
        assert_eq!(paths.offsets_topic("t.x"), "/consumers/g/offsets/t.x");
        assert_eq!(paths.offset(&partition), "/consumers/g/offsets/t.x/7");
        assert_eq!(broker(3), "/brokers/ids/3");
        assert_eq!(topic("t.x"), "/brokers/topics/t.x");
    }

    #[test]
    fn parents_run_from_the_outside_in() {
        assert_eq!(parents("/consumers/g/ids/x"), ["/consumers", "/consumers/g", "/consumers/g/ids"]);
        assert!(parents("/consumers").is_empty());
        assert!(parents("/").is_empty());
    }
}
