//! The servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use kafka_troupe_actors::testkit::{MemoryBrokers, MemoryZooKeeper, StoredRecord};
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::config::{ConsumerConfig, ConsumerConfigBuilder};
use kafka_troupe_proto::kafka::error_code::ErrorCode;
use kafka_troupe_proto::kafka::records::NewRecord;
use kafka_troupe_proto::zk::paths::GroupPaths;

use super::TestGroup;
use super::record::{TestRecord, partition_of};
use crate::{Builder, ConsumerHandle, ConsumerSystem};

/// ZooKeeper and brokers in memory, for members that are started on the same thread inside [`run`](super::run).
/// Clones are the same cluster.
#[derive(Clone, Debug)]
pub struct TestCluster(Arc<Servers>);

#[derive(Debug)]
struct Servers {
    zookeeper: MemoryZooKeeper,
    brokers: MemoryBrokers,
    /// Records that were produced without key and partition.
    turn: AtomicUsize,
    /// Members without a `consumer.id` of their own.
    members: AtomicU32,
}

impl Default for TestCluster {
    fn default() -> Self {
        Self::new()
    }
}

impl TestCluster {
    /// One broker, without topics.
    pub fn new() -> Self {
        Self::with_brokers(1)
    }

    /// Brokers `0..count`, without topics.
    pub fn with_brokers(count: i32) -> Self {
        let (zookeeper, brokers) = (MemoryZooKeeper::default(), MemoryBrokers::new(count));
        brokers.register(&zookeeper);
        Self(Arc::new(Servers { zookeeper, brokers, turn: AtomicUsize::new(0), members: AtomicU32::new(0) }))
    }

    /// With this topic, as [`create_topic`](Self::create_topic) makes it.
    pub fn topic(self, name: &str, partitions: usize) -> Self {
        self.create_topic(name, partitions);
        self
    }

    /// Creates a topic, or lets one grow to so many partitions.
    pub fn create_topic(&self, name: &str, partitions: usize) {
        self.0.brokers.create_topic(name, partitions);
    }

    /// Deletes a topic with its records.
    pub fn delete_topic(&self, name: &str) {
        self.0.brokers.delete_topic(name);
    }

    /// The beginning of a configuration, if the application's own is not to be tested: a member of `group` that begins
    /// where the topics begin (`auto.offset.reset=smallest`; the default is their end).
    pub fn config(&self, group: &str) -> ConsumerConfigBuilder {
        ConsumerConfig::builder()
            .zookeeper_connect("zookeeper:2181")
            .group_id(group)
            .property("auto.offset.reset", "smallest")
    }

    /// The beginning of a member that joins here, whatever servers its configuration names: give it the application's
    /// subscriptions and start it. Without a `consumer.id` it is called `member-1` and so on, in the order in which
    /// they were built; that is the order in which partitions are shared out.
    pub fn builder(&self, mut config: ConsumerConfig) -> Builder {
        let here = self.config("here").property("bootstrap.servers", "broker-0:9092").build();
        let here = here.expect("a configuration that is always the same");
        config.zookeeper_connect = here.zookeeper_connect;
        if !config.bootstrap_servers.is_empty() {
            config.bootstrap_servers = here.bootstrap_servers;
        }
        let number = self.0.members.fetch_add(1, Relaxed) + 1;
        let id = config.consumer_id.get_or_insert_with(|| format!("member-{number}")).clone();
        ConsumerSystem::builder(config)
            .connector(Arc::new(self.0.zookeeper.connector(&id)))
            .in_memory(self.0.brokers.clone())
    }

    /// Appends a record to a topic; gives its partition and offset.
    ///
    /// # Panics
    /// If there is no such topic or partition.
    #[track_caller]
    pub fn produce(&self, topic: &str, record: impl Into<TestRecord>) -> (i32, i64) {
        let record = record.into();
        let count = self.partitions(topic).len();
        let partition = record.partition.unwrap_or_else(|| self.choose(&record, count) as i32);
        let headers: Vec<_> =
            record.headers.iter().map(|(name, value)| (name.as_str(), Some(&value[..]))).collect();
        let new = NewRecord {
            timestamp: record.timestamp,
            key: record.key.as_deref(),
            value: record.value.as_deref(),
            headers: &headers,
        };
        match self.0.brokers.append_record(&TopicPartition::new(topic, partition), &new) {
            Some(offset) => (partition, offset),
            None => panic!("topic {topic} has {count} partitions, there is none of number {partition}"),
        }
    }

    fn choose(&self, record: &TestRecord, partitions: usize) -> usize {
        match &record.key {
            Some(key) => partition_of(key, partitions),
            None => self.0.turn.fetch_add(1, Relaxed) % partitions,
        }
    }

    /// All that a topic holds, by partition and in order: what was produced here, and dead letters.
    ///
    /// # Panics
    /// If there is no such topic, or a record in it was damaged.
    #[track_caller]
    pub fn records(&self, topic: &str) -> Vec<StoredRecord> {
        let read = |partition: &TopicPartition| match self.0.brokers.records(partition) {
            Ok(records) => records,
            Err(error) => panic!("{partition}: {error}"),
        };
        self.partitions(topic).iter().flat_map(read).collect()
    }

    /// What a consumer group is at.
    pub fn group(&self, group: &str) -> TestGroup {
        TestGroup::new(self.clone(), group)
    }

    /// Takes a broker down: others that are up lead its partitions from now on; without any, nobody does.
    pub fn stop_broker(&self, id: i32) {
        self.0.brokers.stop(id);
        self.0.brokers.elect();
    }

    /// Brings a broker up again, to lead what nobody leads.
    pub fn start_broker(&self, id: i32) {
        self.0.brokers.start(id);
        self.0.brokers.elect();
    }

    /// The next `times` fetches of a partition are answered with this error.
    pub fn fail_fetches(&self, topic: &str, partition: i32, error: ErrorCode, times: u32) {
        self.0.brokers.refuse_fetches(&TopicPartition::new(topic, partition), error, times);
    }

    /// Ends a member's ZooKeeper session, which loses it all its partitions; it joins again by itself.
    ///
    /// # Panics
    /// If it is not registered here.
    #[track_caller]
    pub fn expire_session(&self, member: &ConsumerHandle) -> impl Future<Output = ()> {
        let asked_at = std::panic::Location::caller();
        async move {
            let Ok(status) = member.metrics().await else { panic!("{asked_at}: the member has shut down") };
            let node = GroupPaths::new(&status.group).id(&status.consumer_id);
            match self.0.zookeeper.node(&node) {
                Some(node) => self.0.zookeeper.expire(node.stat.ephemeral_owner),
                None => panic!("{asked_at}: no member is registered as {node}"),
            }
        }
    }

    /// Beneath: the ensemble, with all that can happen to sessions and nodes.
    pub fn zookeeper(&self) -> &MemoryZooKeeper {
        &self.0.zookeeper
    }

    /// Beneath: the brokers, with all that can happen to connections, logs and stored offsets.
    pub fn brokers(&self) -> &MemoryBrokers {
        &self.0.brokers
    }

    #[track_caller]
    pub(super) fn partitions(&self, topic: &str) -> Vec<TopicPartition> {
        match self.0.brokers.topics().get(topic) {
            Some(count) => (0..*count as i32).map(|number| TopicPartition::new(topic, number)).collect(),
            None => panic!("there is no topic {topic}: create it first"),
        }
    }
}
