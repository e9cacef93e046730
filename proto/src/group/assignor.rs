//! Partition assignment: the same snapshot must give every member, ours or Scala's, the same answer (INV-5).

use std::collections::BTreeMap;

use super::GroupSnapshot;
use crate::TopicPartition;
use crate::config::{AssignmentStrategy, ConsumerConfig, RoundRobinPeers};
use crate::java::java_hash;
use crate::zk::ConsumerThreadId;

/// `partition.assignment.strategy`. It is not recorded in ZooKeeper: every member of a group must be
/// configured alike, or they plan differently and never converge.
///
/// # Where generations of the Scala consumer disagree
/// - `range` is the same in all. So is the order of threads: as text, by UTF-16 code units.
/// - `roundrobin` sorts partitions by the hash of a key that Kafka 1.0 changed, hence two variants;
///   `troupe.roundrobin.peers` chooses.
/// - Before 0.10.2 (KAFKA-2434) `roundrobin` wants the same threads on every topic: the same topics in each
///   member, and in each the same number of streams on all of them. Otherwise, or without any topic at all,
///   such a member throws in every attempt and gives up after `rebalance.max.retries`. It stays registered,
///   and what falls to it is nobody's. We answer by the later rule, as 0.10.2 does.
/// - Partitions whose keys have one hash (topics `Aa` and `BB`) are in no defined order in Scala: its hash
///   maps decide. Ours are in the order of topic and partition.
/// - To members before 0.11 a filter such as `.*` includes `__transaction_state` whatever
///   `exclude.internal.topics` says; `troupe.internal.topics.peers` chooses. Where they mix with later members,
///   with `range` only that topic is planned differently, with `roundrobin` all may be: use a filter there that
///   keeps it out, such as the black list of its name.
///
/// A member that plans differently all the same, or has given up, is named by [`PeerCheck`](super::PeerCheck).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strategy {
    /// `range` (default): per topic, consecutive runs to the threads in text order.
    #[default]
    Range,
    /// `roundrobin` with the key of Scala consumers before 1.0, `[topic,partition]`.
    RoundRobinBefore1,
    /// `roundrobin` with the key of Scala consumers from 1.0 on, `topic-partition`.
    RoundRobin,
}

/// Partition to the thread that is to own it, for the whole group.
pub type Plan = BTreeMap<TopicPartition, ConsumerThreadId>;

impl Strategy {
    /// The strategy that a configuration asks for.
    pub fn configured(config: &ConsumerConfig) -> Self {
        match (config.partition_assignment_strategy, config.roundrobin_peers) {
            (AssignmentStrategy::Range, _) => Self::Range,
            (AssignmentStrategy::RoundRobin, RoundRobinPeers::Before1) => Self::RoundRobinBefore1,
            (AssignmentStrategy::RoundRobin, RoundRobinPeers::From1) => Self::RoundRobin,
        }
    }

    /// The plan for all members.
    pub fn assign(self, snapshot: &GroupSnapshot) -> Plan {
        match self {
            Self::Range => range(snapshot),
            Self::RoundRobinBefore1 => round_robin(snapshot, |tp| format!("[{},{}]", tp.topic, tp.partition)),
            Self::RoundRobin => round_robin(snapshot, |tp| format!("{}-{}", tp.topic, tp.partition)),
        }
    }

    /// The part of the plan that falls to one member.
    pub fn assign_to(self, snapshot: &GroupSnapshot, consumer_id: &str) -> Plan {
        let mut plan = self.assign(snapshot);
        plan.retain(|_, thread| thread.consumer() == consumer_id);
        plan
    }
}

fn range(snapshot: &GroupSnapshot) -> Plan {
    let mut plan = Plan::new();
    for topic in snapshot.subscribed_topics() {
        let partitions = snapshot.partitions_of(&topic);
        let threads = snapshot.threads(&topic);
        let (run, extra) = (partitions.len() / threads.len(), partitions.len() % threads.len());
        let mut rest = partitions.iter();
        for (index, thread) in threads.into_iter().enumerate() {
            for partition in rest.by_ref().take(run + usize::from(index < extra)) {
                plan.insert(TopicPartition::new(topic.clone(), *partition), thread.clone());
            }
        }
    }
    plan
}

/// The relaxed rule of 0.10.2 and later: one circular pointer over all threads, which skips those that are
/// not subscribed to the topic at hand.
fn round_robin(snapshot: &GroupSnapshot, key: impl Fn(&TopicPartition) -> String) -> Plan {
    let topics = snapshot.subscribed_topics();
    let subscribed: BTreeMap<_, _> = topics.iter().map(|topic| (topic, snapshot.threads(topic))).collect();
    let mut threads: Vec<_> = subscribed.values().flatten().collect();
    threads.sort();
    threads.dedup();
    let mut partitions: Vec<_> = topics
        .iter()
        .flat_map(|topic| {
            let numbers = snapshot.partitions_of(topic).iter();
            numbers.map(move |partition| TopicPartition::new(topic.clone(), *partition))
        })
        .collect();
    partitions.sort_by_key(|tp| java_hash(&key(tp)));

    let mut circle = threads.iter().cycle();
    partitions
        .into_iter()
        .map(|tp| {
            let mine = &subscribed[&tp.topic];
            // every topic here has a subscriber, so the circle comes round to one
            let thread = circle
                .by_ref()
                .find(|thread| mine.contains(**thread))
                .expect("a subscribed topic has threads");
            (tp, (*thread).clone())
        })
        .collect()
}

/// Whether Scala members before 0.10.2 refuse `roundrobin` for this group (KAFKA-2434): no topic at all, or
/// topics with unequal threads.
pub(super) fn refused_before_0_10_2(snapshot: &GroupSnapshot) -> bool {
    let topics = snapshot.subscribed_topics();
    let mut threads: Vec<_> = topics.iter().map(|topic| snapshot.threads(topic)).collect();
    threads.dedup();
    threads.len() != 1
}

#[cfg(test)]
#[path = "assignor_tests.rs"]
mod tests;
