//! What one read of the group's znodes said.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::zk::ConsumerThreadId;
use crate::zk::registration::Subscription;
use crate::zk::topic_filter::TopicFilterError;

/// One registered member with its subscription already expanded to topics.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// The consumer id: the name of its node under `ids`.
    pub id: String,
    /// Topic to number of streams; every count is at least 1.
    pub topics: BTreeMap<Arc<str>, u32>,
}

impl Member {
    /// A member with its subscription expanded, as every other member of the group must expand it.
    ///
    /// Topics by name stay, whether they exist or not; a filter takes from `all`, the topics that exist,
    /// but for `kept_out`, the internal topics that the *reader* keeps out
    /// ([`kept_out_topics`](crate::config::ConsumerConfig::kept_out_topics)). An error if the filter cannot be used.
    pub fn expand(
        id: impl Into<String>,
        subscription: &Subscription,
        all: &[String],
        kept_out: &[&str],
    ) -> Result<Self, TopicFilterError> {
        let topics = match subscription {
            Subscription::Static(topics) => {
                topics.iter().map(|(topic, n)| (topic.as_str().into(), *n)).collect()
            }
            Subscription::WhiteList { streams, .. } | Subscription::BlackList { streams, .. } => {
                let filter = subscription.topic_filter().transpose()?;
                let allowed =
                    all.iter().filter(|topic| filter.as_ref().is_some_and(|f| f.allows(topic, kept_out)));
                allowed.map(|topic| (topic.as_str().into(), *streams)).collect()
            }
        };
        Ok(Self { id: id.into(), topics })
    }
}

/// The group as read at one rebalance. The reads are not atomic (ZooKeeper gives no such read); a change
/// during them fires a watch, and so another rebalance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct GroupSnapshot {
    /// The members that are registered, in any order.
    pub members: Vec<Member>,
    /// Topic to its partition numbers, ascending; a topic that does not exist is absent or empty.
    pub partitions: BTreeMap<Arc<str>, Vec<i32>>,
    /// How many brokers are registered. At 0 a member keeps what it has and waits.
    pub brokers: usize,
}

impl GroupSnapshot {
    /// The member with this consumer id.
    pub fn member(&self, id: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    /// All thread ids subscribed to a topic, in the order that every member sorts them (UTF-16 text).
    pub fn threads(&self, topic: &str) -> BTreeSet<ConsumerThreadId> {
        self.members
            .iter()
            .filter_map(|member| member.topics.get(topic).map(|streams| (member, *streams)))
            .flat_map(|(member, streams)| (0..streams).map(|index| ConsumerThreadId::new(&member.id, index)))
            .collect()
    }

    /// Every topic that any member subscribes to.
    pub fn subscribed_topics(&self) -> BTreeSet<Arc<str>> {
        self.members.iter().flat_map(|member| member.topics.keys().cloned()).collect()
    }

    /// The partitions of a topic, ascending; empty when it does not exist.
    pub fn partitions_of(&self, topic: &str) -> &[i32] {
        self.partitions.get(topic).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zk::topic_filter::INTERNAL_TOPICS;

    fn topics(subscription: &Subscription) -> Result<Vec<(String, u32)>, TopicFilterError> {
        let all = ["a", "b", "__consumer_offsets"].map(str::to_owned);
        let member = Member::expand("m", subscription, &all, INTERNAL_TOPICS)?;
        Ok(member.topics.iter().map(|(topic, streams)| (topic.to_string(), *streams)).collect())
    }

    #[test]
    fn a_filter_takes_what_exists_and_a_name_is_kept() {
        let named = Subscription::Static(vec![("absent".into(), 2), ("__consumer_offsets".into(), 1)]);
        assert_eq!(topics(&named), Ok(vec![("__consumer_offsets".into(), 1), ("absent".into(), 2)]));
        assert_eq!(
            topics(&Subscription::WhiteList { filter: ".*".into(), streams: 3 }),
            Ok(vec![("a".into(), 3), ("b".into(), 3)])
        );
        assert_eq!(
            topics(&Subscription::BlackList { filter: "a".into(), streams: 1 }),
            Ok(vec![("b".into(), 1)])
        );
    }

    #[test]
    fn a_filter_that_cannot_be_used_is_an_error_not_an_empty_member() {
        assert!(topics(&Subscription::WhiteList { filter: "(".into(), streams: 1 }).is_err());
    }
}
