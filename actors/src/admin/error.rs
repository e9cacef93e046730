//! Why something could not be done to a group.

use std::time::Duration;

use kafka_troupe_proto::TopicPartition;

use crate::zk_session::ZkError;

/// Why something could not be found out, or done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// ZooKeeper did not answer, or refused.
    #[error(transparent)]
    ZooKeeper(#[from] ZkError),
    /// A name of a group or a topic that would name another node.
    #[error("{name:?} is no name of a {what}: no slash, no control character, not empty, not . or ..")]
    Name {
        /// `group` or `topic`.
        what: &'static str,
        /// As it was given.
        name: String,
    },
    /// A node holds what cannot be read.
    #[error("{why}")]
    Unreadable {
        /// Names the node, and what is wrong with it.
        why: String,
    },
    /// No broker that stands in ZooKeeper can be dialled.
    #[error("no broker in ZooKeeper can be reached over {protocol}: {why}")]
    NoListener {
        /// What was to be spoken, such as `PLAINTEXT`.
        protocol: String,
        /// What is on offer, or what is wrong with each.
        why: String,
    },
    /// The group was used while it was deleted: a part of it is gone, a part is new.
    #[error("the group {group:?} was used while it was deleted, at {path}: delete it again when it is idle")]
    Used {
        /// Its name.
        group: String,
        /// The node that changed.
        path: String,
    },
    /// Somebody committed since the offset was read.
    #[error(
        "the offset of {key} in group {group:?} has changed since it was read: read it again, then decide"
    )]
    Changed {
        /// The group.
        group: String,
        /// The partition.
        key: TopicPartition,
    },
    /// Nobody knows the group.
    #[error("the group {group:?} does not exist")]
    NoSuchGroup {
        /// Its name.
        group: String,
    },
    /// The group is there, and has nothing of the topic: nothing is deleted.
    #[error("the group {group:?} has nothing of topic {topic}")]
    NothingOfTopic {
        /// The group.
        group: String,
        /// The topic.
        topic: String,
    },
    /// The group has members, or has got one meanwhile.
    #[error("the group {group:?} is active{}; stop its members first", listed(members))]
    Active {
        /// Its name.
        group: String,
        /// Who is registered; empty where that is not told.
        members: Vec<String>,
    },
    /// It is none of consumers, and what it has is kept otherwise.
    #[error(
        "the group {group:?} is a {group_type} group, not one of consumers: it has a tool of its own, \
         kafka-{group_type}-groups.sh"
    )]
    OfAnotherType {
        /// Its name.
        group: String,
        /// `share` or `streams`.
        group_type: String,
    },
    /// No broker was reached.
    #[error(
        "no broker answers: {why}; see that they run, and that the addresses are those of their listeners"
    )]
    Unreachable {
        /// What each said.
        why: String,
    },
    /// The brokers are too old.
    #[error("{what}: the brokers are too old: {why}")]
    Unsupported {
        /// What was asked for.
        what: String,
        /// What they lack.
        why: String,
    },
    /// It was refused for good.
    #[error("{what}: {why}")]
    Refused {
        /// What was asked for.
        what: String,
        /// What the broker said.
        why: String,
    },
    /// It was tried until the time was up.
    #[error("{what}: not within {limit:?}: {why}")]
    TimedOut {
        /// What was asked for.
        what: String,
        /// How long it was tried.
        limit: Duration,
        /// What went wrong last.
        why: String,
    },
}

fn listed(members: &[String]) -> String {
    match members {
        [] => String::new(),
        members => format!(": {}", members.join(", ")),
    }
}
