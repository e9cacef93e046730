//! One consumer group.

use std::fmt::Write as _;

use kafka_troupe_actors::registry::{Halt, HaltReason};
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::zk::paths::GroupPaths;

use super::TestCluster;
use super::waiting::{PATIENCE, wait};

/// What a group is at, as its servers and its members know it: see [`TestCluster::group`].
#[derive(Clone, Debug)]
pub struct TestGroup {
    cluster: TestCluster,
    name: String,
    paths: GroupPaths,
}

impl TestGroup {
    pub(super) fn new(cluster: TestCluster, name: &str) -> Self {
        Self { cluster, name: name.to_owned(), paths: GroupPaths::new(name) }
    }

    /// Its members, by the names under which they are registered, in order.
    pub fn members(&self) -> Vec<String> {
        self.cluster.zookeeper().children(&self.paths.ids())
    }

    /// The consumer thread that owns a partition: a member's name, `-`, and the number of the stream.
    pub fn owner(&self, topic: &str, partition: i32) -> Option<String> {
        self.text(&self.paths.owner(&TopicPartition::new(topic, partition)))
    }

    /// What is committed of a partition: the next offset to consume. The larger of ZooKeeper's and Kafka's.
    pub fn committed(&self, topic: &str, partition: i32) -> Option<i64> {
        let partition = TopicPartition::new(topic, partition);
        let in_zookeeper = self.text(&self.paths.offset(&partition)).and_then(|text| text.parse().ok());
        in_zookeeper.max(self.cluster.brokers().stored_offset(&self.name, &partition))
    }

    /// Commits an offset in ZooKeeper, as if an earlier member had: before the group starts.
    pub fn commit(&self, topic: &str, partition: i32, offset: i64) {
        let node = self.paths.offset(&TopicPartition::new(topic, partition));
        self.cluster.zookeeper().put(&node, offset.to_string().as_bytes());
    }

    /// How many records of a topic are not handled yet.
    ///
    /// # Panics
    /// If there is no such topic.
    #[track_caller]
    pub fn lag(&self, topic: &str) -> i64 {
        self.positions(topic).iter().map(Position::lag).sum()
    }

    /// Waits until each partition of a topic is owned by a member and has a position: records that are produced now
    /// reach it. For at most five minutes of the clock that stands.
    ///
    /// # Panics
    /// With what is missing, if it is never so.
    #[track_caller]
    pub fn until_owned(&self, topic: &str) -> impl Future<Output = ()> + use<> {
        self.until(topic, |it| it.handled.is_some() && it.thread.is_some())
    }

    /// Waits until all that a topic holds is handled, or passed over by a failure policy. For at most five minutes of
    /// the clock that stands.
    ///
    /// # Panics
    /// With what is missing, if it is never so.
    #[track_caller]
    pub fn until_handled(&self, topic: &str) -> impl Future<Output = ()> + use<> {
        self.until(topic, |it| it.lag() == 0)
    }

    /// Waits until all that a topic holds is handled and committed. For at most five minutes of the clock that stands:
    /// by the defaults members commit every minute.
    ///
    /// # Panics
    /// With what is missing, if it is never so.
    #[track_caller]
    pub fn until_committed(&self, topic: &str) -> impl Future<Output = ()> + use<> {
        self.until(topic, |it| it.start == it.end || it.committed >= Some(it.end))
    }

    #[track_caller]
    fn until(&self, topic: &str, holds: fn(&Position) -> bool) -> impl Future<Output = ()> + use<> {
        let (group, topic) = (self.clone(), topic.to_owned());
        // so that it is told where it was asked
        group.cluster.partitions(&topic);
        wait(PATIENCE, move || {
            let mut missing = String::new();
            for it in group.positions(&topic).iter().filter(|it| !holds(it)) {
                // a string takes all
                let _ = write!(missing, "\n  {}", it.describe());
            }
            if missing.is_empty() { Ok(()) } else { Err(format!("group {}:{missing}", group.name)) }
        })
    }

    #[track_caller]
    fn positions(&self, topic: &str) -> Vec<Position> {
        let brokers = self.cluster.brokers();
        let owned = brokers.owned(&self.name);
        let position = |partition: TopicPartition| {
            let (start, end) = brokers.range(&partition).unwrap_or_default();
            let its = || owned.iter().filter(|it| it.topic_partition == partition);
            let committed = self.committed(topic, partition.partition);
            Position {
                start,
                end,
                committed,
                handled: its().map(|it| it.acked()).filter(|acked| *acked >= 0).max(),
                thread: its().next_back().map(|it| it.thread.to_string()),
                halted: its().flat_map(|it| it.halts()).map(|(reason, halt)| told(reason, &halt)).collect(),
                partition,
            }
        };
        self.cluster.partitions(topic).into_iter().map(position).collect()
    }

    fn text(&self, path: &str) -> Option<String> {
        self.cluster.zookeeper().node(path).and_then(|node| String::from_utf8(node.data).ok())
    }
}

/// How far a group is with one partition.
struct Position {
    partition: TopicPartition,
    /// What it holds, up to the next offset.
    start: i64,
    end: i64,
    /// By its owner.
    handled: Option<i64>,
    committed: Option<i64>,
    thread: Option<String>,
    /// Why its owner hands nothing over.
    halted: Vec<String>,
}

fn told(reason: HaltReason, halt: &Halt) -> String {
    format!(", {}: {}", reason.as_str(), halt.why)
}

impl Position {
    fn lag(&self) -> i64 {
        // without an owner, what is committed is where the next one begins
        let from = self.handled.or(self.committed).unwrap_or(self.start);
        (self.end - from.max(self.start)).max(0)
    }

    fn describe(&self) -> String {
        let offset =
            |offset: Option<i64>| offset.map_or("nothing".to_owned(), |offset| format!("up to {offset}"));
        format!(
            "{}: handled {} of {}, committed {}, {}{}",
            self.partition,
            offset(self.handled),
            self.end,
            offset(self.committed),
            self.thread.as_ref().map_or("owned by nobody".to_owned(), |thread| format!("owned by {thread}")),
            self.halted.concat(),
        )
    }
}
