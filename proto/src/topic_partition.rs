use std::fmt;
use std::sync::Arc;

/// One partition of one topic. Cheap to clone: the topic name is shared.
///
/// Orders by topic name, then numerically by partition.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The topic's name, as it stands in ZooKeeper.
    pub topic: Arc<str>,
    /// The partition's number, from 0.
    pub partition: i32,
}

impl TopicPartition {
    /// Names one partition.
    pub fn new(topic: impl Into<Arc<str>>, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

impl fmt::Debug for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
