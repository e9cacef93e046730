//! Topics that are deleted and made again under the same name (case B13): offsets of the earlier one say nothing of the
//! later.
//!
//! * An offset node that was written before the transaction that made the topic's node holds an offset of the earlier
//!   topic. So none may be written after it: not by a commit, from when the change is noticed until there is a new
//!   position; and not by the last flush of a topic that is gone, for a later one may stand there by then. What
//!   remains: a commit of the earlier topic's offset between the making of the later one and our notice (its watch), in
//!   a member that then dies before it has made a new position. Its successor takes that offset for one of the later
//!   topic.
//! * That a position is one of an earlier topic, the claim itself knows
//!   ([`is_of_earlier_topic`](OwnedPartition::is_of_earlier_topic)): it outlives a stream's restart, which renews the
//!   claim at the offset acknowledged in the earlier topic, and a restart of the fetcher manager.
//!   (`tests/offsets/fenced.rs`)
//! * A position that is being made when the topic is made again may be one of either topic: it is made once more. The
//!   claim counts its topics, for a manager that ends meanwhile forgets
//!   (`a_topic_that_is_made_again_while_a_position_is_stored_needs_another`); and one that is given up is told as well,
//!   until its last flush (`a_partition_whose_topic_is_made_again_while_it_is_given_up_is_not_flushed_into_the_later`).
//! * An offset of 0 is never one of an earlier topic: it passes over nothing, and operators store it before they make
//!   the topic. Other offsets that are copied into another ZooKeeper before its topics are made look earlier, and go by
//!   `auto.offset.reset`: write the offset nodes once more after the topics.
//!   (`an_offset_of_0_that_is_older_than_the_topic_counts_and_any_other_does_not`)
//! * With `bootstrap.servers` the group's own node tells ([`topic_ids`]). A topic whose id it knows as an earlier one
//!   waits, and stops no other (`a_topic_whose_id_was_followed_by_another_waits_and_the_others_flow_on`); what is read
//!   of one meanwhile is not committed (`what_is_read_of_a_topic_that_was_made_again_unheard_of_is_not_committed`).

use std::collections::BTreeMap;
use std::sync::Arc;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::metadata::TopicId;
use kafka_troupe_proto::zk::paths;
use kafka_troupe_proto::zk::topic_ids::{self, Standing, TopicIds};

use super::topics::{Incarnation, Topic};
use super::{RebalanceCoordinator, Znodes};
use crate::fetcher_manager::TopicsRemade;
use crate::lease::SessionEpoch;
use crate::registry::OwnedPartition;
use crate::zk_session::ZkError;

/// Attempts against other members that note the same.
const ATTEMPTS: usize = 4;

/// Why a topic could not be noted.
#[derive(Debug)]
pub(super) enum NotNoted {
    /// Others have noted a later topic since: it says what to do.
    Outdated(String),
    /// ZooKeeper's.
    Failed(String),
}

impl Znodes {
    /// Notes in the group's own node which topic the brokers have under this name; gives the transaction since which
    /// it has. The node is watched: members learn of it from who noticed first.
    ///
    /// # Errors
    /// [`NotNoted`].
    pub(super) async fn note_topic(
        &self,
        session: SessionEpoch,
        name: &str,
        id: TopicId,
    ) -> Result<i64, NotNoted> {
        let path = self.paths.topic(name);
        for _ in 0..ATTEMPTS {
            let noted = match self.data(&path, true).await {
                Ok((data, stat)) => {
                    let known = TopicIds::parse(&data);
                    match known.standing(id.0) {
                        Standing::Present => return Ok(topic_ids::since(stat.version, stat.mzxid)),
                        Standing::Earlier => {
                            return Err(NotNoted::Outdated(format!(
                                "by {path} topic {name} was made again since, and the brokers that were asked do not know \
                                 it yet; or the group was moved back to another cluster: then delete this node"
                            )));
                        }
                        Standing::New => {}
                    }
                    self.set(session, &path, known.succeeded_by(id.0).to_string(), stat.version).await
                }
                Err(ZkError::NoNode(_)) => {
                    self.create(session, &path, TopicIds::default().succeeded_by(id.0).to_string()).await
                }
                Err(error) => Err(error),
            };
            match noted {
                // and watched by the read that follows
                Ok(()) | Err(ZkError::BadVersion(_) | ZkError::NodeExists(_) | ZkError::NoNode(_)) => {}
                Err(error) => return Err(NotNoted::Failed(error.to_string())),
            }
        }
        Err(NotNoted::Failed(format!("{path}: others keep writing it; it is tried again")))
    }
}

impl RebalanceCoordinator {
    /// What the last read said of topics. Those that were read before and are of no concern now are not watched any
    /// more: deleted ones of a filter, those of a member that left.
    pub(super) fn take_topics(&mut self, topics: BTreeMap<Arc<str>, Topic>, filtered: bool) {
        self.filtered = filtered;
        for topic in std::mem::replace(&mut self.topics, topics).keys() {
            if !self.topics.contains_key(topic) {
                self.znodes.unwatch(paths::topic(topic));
                self.znodes.unwatch(self.znodes.paths.topic(topic));
            }
        }
        self.keep_outdated_uncommitted();
        self.tell_remade();
        self.parts.registry.unflushed().iter().for_each(|partition| self.keep_unflushed_if_gone(partition));
    }

    /// An offset of the earlier topic would count as one of the later, which has been noted.
    fn keep_outdated_uncommitted(&self) {
        let is_outdated =
            |key: &&TopicPartition| self.topics.get(&key.topic).is_some_and(|topic| topic.is_outdated);
        let outdated = self.incarnations.keys().filter(is_outdated);
        for partition in outdated.filter_map(|key| self.parts.registry.get(key)) {
            partition.stop_commits();
        }
    }

    /// The topic that the last read found under this name.
    pub(super) fn incarnation(&self, topic: &str) -> Option<Incarnation> {
        self.topics.get(topic)?.incarnation
    }

    /// The partition begins under that topic. Whether the last read has found a later one already.
    pub(super) fn begin_under(
        &mut self,
        partition: &TopicPartition,
        incarnation: Option<Incarnation>,
    ) -> bool {
        let last = self.incarnation(&partition.topic);
        let is_remade = last.zip(incarnation).is_some_and(|(last, begun)| last > begun);
        self.incarnations.insert(partition.clone(), if is_remade { last } else { incarnation.or(last) });
        is_remade
    }

    /// Nothing of these is committed from now on, until they have a position in the later topic.
    fn tell_remade(&mut self) {
        let mut remade = Vec::new();
        // with those that are given up, until their last flush is done
        self.incarnations.retain(|partition, _| self.parts.registry.may_be_written(partition));
        for (partition, begun) in &mut self.incarnations {
            let Some(now) = self.topics.get(&partition.topic).and_then(|topic| topic.incarnation) else {
                continue;
            };
            // brokers that were upgraded tell ids of topics that had none; a read may be older than the start
            let began = begun.get_or_insert(now);
            if now > *began {
                *began = now;
                tracing::warn!(%partition, "its topic was deleted and made again; a new position is made");
                remade.push(partition.clone());
            }
        }
        remade.iter().for_each(|partition| self.parts.registry.topic_remade(partition));
        if !remade.is_empty() {
            self.parts.fetchers.do_send(TopicsRemade(remade));
        }
    }

    /// Where its topic is gone a partition is not flushed: by the time the offset is written, a later topic may stand
    /// under the name, and the offset would count as its own.
    pub(super) fn keep_unflushed_if_gone(&self, partition: &OwnedPartition) {
        if !self.topics.get(&partition.topic_partition.topic).is_some_and(|topic| topic.exists) {
            partition.stop_commits();
        }
    }
}
