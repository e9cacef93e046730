//! The groups' coordinator: offsets stored in Kafka, and what goes wrong with them.
//!
//! One broker coordinates all groups, as if the offsets topic had one partition. What is stored outlives it. Version 0
//! of commits and fetches, which means ZooKeeper, is not spoken.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::messages as wire;
use kafka_protocol::messages::{BrokerId, TopicName};
use kafka_protocol::protocol::StrBytes;
use kafka_troupe_proto::TopicPartition;
use tokio::time::Instant;

use super::super::pause_until;
use super::answers::UNKNOWN_TOPIC_OR_PARTITION;
use super::connection::HungUp;
use super::generation::Generation;
use super::{MemoryBrokers, PORT, State, host_of};

const COORDINATOR_LOAD_IN_PROGRESS: i16 = 14;
const COORDINATOR_NOT_AVAILABLE: i16 = 15;
const NOT_COORDINATOR: i16 = 16;
/// What is answered where nothing is stored.
const NO_OFFSET: i64 = -1;

/// An offset that was stored in Kafka.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OffsetStored {
    /// Whose.
    pub group: Arc<str>,
    /// Of which partition.
    pub partition: TopicPartition,
    /// As it was sent, also if it is negative.
    pub offset: i64,
    /// Its client had hung up by then: who sent it does not wait for it any more.
    pub late: bool,
}

/// Told of each offset that is stored in Kafka, in order.
type Observer = Arc<dyn Fn(&OffsetStored) + Send + Sync>;

/// Something that goes wrong once with offsets stored in Kafka.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OffsetsFault {
    /// The next commit is executed, and its connection ends instead of an answer.
    CommitAnswerLost,
    /// The next commit is executed, and not answered.
    CommitUnanswered,
    /// The next commit is executed so much later, whatever becomes of its connection.
    CommitLate(Duration),
    /// The next commit of this partition is refused with a code; what else is in the request is stored.
    CommitRefused(TopicPartition, i16),
    /// The next fetch of this partition's offset is answered with a code.
    FetchRefused(TopicPartition, i16),
}

#[derive(Default)]
pub(super) struct Coordinator {
    /// None while nobody leads the offsets.
    broker: Option<i32>,
    /// What it answers instead, until then.
    refuses: Option<(i16, Instant)>,
    stored: BTreeMap<(Arc<str>, TopicPartition), i64>,
    /// Groups with members of Kafka's own protocol, and what they answer others.
    active: BTreeMap<Arc<str>, i16>,
    faults: Vec<OffsetsFault>,
    observer: Option<Observer>,
}

impl MemoryBrokers {
    /// Has a broker coordinate the groups, or nobody, which look-ups then say (15). Whoever else is asked says that it
    /// does not (16), and the new one that it is loading (14) for so long.
    pub fn set_coordinator(&self, broker: Option<i32>, loading: Duration) {
        let mut state = self.state();
        state.coordinator.broker = broker;
        state.coordinator.refuses = Some((COORDINATOR_LOAD_IN_PROGRESS, Instant::now() + loading));
    }

    /// The broker that coordinates the groups.
    pub fn coordinator(&self) -> Option<i32> {
        self.state().coordinator.broker
    }

    /// For so long the coordinator answers commits and fetches of offsets with a code, also one that says it is none;
    /// look-ups name it all the same.
    pub fn refuse_offsets(&self, code: i16, time: Duration) {
        self.state().coordinator.refuses = Some((code, Instant::now() + time));
    }

    /// Something goes wrong once; several wait for each other.
    pub fn spoil_offsets(&self, fault: OffsetsFault) {
        self.state().coordinator.faults.push(fault);
    }

    /// A group of this name has members of Kafka's own protocol, and answers commits of others with a code (25 or 22);
    /// or has none any more.
    pub fn set_active_group(&self, group: &str, code: Option<i16>) {
        let active = &mut self.state().coordinator.active;
        match code {
            Some(code) => active.insert(group.into(), code),
            None => active.remove(group),
        };
    }

    /// Nothing goes wrong with offsets any more.
    pub fn heal_offsets(&self) {
        let coordinator = &mut self.state().coordinator;
        (coordinator.refuses, coordinator.faults) = (None, Vec::new());
    }

    /// Shows every offset that is stored in Kafka to `observer`, in order.
    pub fn observe_offsets(&self, observer: impl Fn(&OffsetStored) + Send + Sync + 'static) {
        self.state().coordinator.observer = Some(Arc::new(observer));
    }

    /// The offset stored in Kafka, which may be negative.
    pub fn stored_offset(&self, group: &str, partition: &TopicPartition) -> Option<i64> {
        let key = (group.into(), partition.clone());
        self.state().coordinator.stored.get(&key).copied()
    }

    /// Stores an offset, as another member or a tool does.
    pub fn store_offset(&self, group: &str, partition: &TopicPartition, offset: i64) {
        let (group, partition) = (group.into(), partition.clone());
        self.show_stored(vec![OffsetStored { group, partition, offset, late: false }]);
    }

    /// Stores them; the observer may ask the brokers.
    fn show_stored(&self, stored: Vec<OffsetStored>) {
        let mut state = self.state();
        stored.iter().for_each(|stored| state.coordinator.store(stored));
        let observer = state.coordinator.observer.clone();
        drop(state);
        if let Some(observer) = observer {
            stored.iter().for_each(|stored| observer(stored));
        }
    }

    fn execute(
        &self,
        broker: i32,
        request: &wire::OffsetCommitRequest,
        fault: Option<&OffsetsFault>,
        late: bool,
    ) -> wire::OffsetCommitResponse {
        let (answer, stored) = self.state().commit_offsets(broker, request, fault, late);
        self.show_stored(stored);
        answer
    }

    /// A commit with what goes wrong with it; none is left unanswered.
    pub(super) async fn commit_offsets(
        &self,
        broker: i32,
        request: wire::OffsetCommitRequest,
        client: &HungUp,
    ) -> io::Result<Option<wire::OffsetCommitResponse>> {
        let fault = self.state().coordinator.next_fault(|fault| match fault {
            OffsetsFault::CommitRefused(partition, _) => names(&request, partition),
            OffsetsFault::FetchRefused(..) => false,
            _ => true,
        });
        let arrival = self.state().arrival();
        let delay = if let Some(OffsetsFault::CommitLate(time)) = fault { time } else { Duration::ZERO };
        let (brokers, client, refused) = (self.clone(), client.clone(), fault.clone());
        let executed = async move {
            pause_until(arrival + delay).await;
            brokers.execute(broker, &request, refused.as_ref(), client.is())
        };
        // a task of its own: a client that hangs up does not take its request back
        let answer = tokio::spawn(executed).await.map_err(io::Error::other)?;
        match fault {
            Some(OffsetsFault::CommitAnswerLost) => Err(io::ErrorKind::ConnectionReset.into()),
            Some(OffsetsFault::CommitUnanswered) => Ok(None),
            _ => Ok(Some(answer)),
        }
    }
}

fn names(request: &wire::OffsetCommitRequest, partition: &TopicPartition) -> bool {
    request.topics.iter().any(|topic| {
        topic.name.as_str() == &*partition.topic
            && topic.partitions.iter().any(|it| it.partition_index == partition.partition)
    })
}

impl Coordinator {
    /// Why a broker does not take what concerns offsets.
    fn refusal(&self, broker: i32) -> Option<i16> {
        if self.broker != Some(broker) {
            return Some(NOT_COORDINATOR);
        }
        self.refuses.filter(|(_, until)| Instant::now() < *until).map(|(code, _)| code)
    }

    fn next_fault(&mut self, concerns: impl Fn(&OffsetsFault) -> bool) -> Option<OffsetsFault> {
        let index = self.faults.iter().position(concerns)?;
        Some(self.faults.remove(index))
    }

    fn store(&mut self, OffsetStored { group, partition, offset, .. }: &OffsetStored) {
        self.stored.insert((Arc::clone(group), partition.clone()), *offset);
    }

    /// A broker is down.
    pub(super) fn lose(&mut self, broker: i32) {
        if self.broker == Some(broker) {
            self.broker = None;
        }
    }

    /// One that is up coordinates, if nobody does.
    pub(super) fn elect(&mut self, up: Option<i32>) {
        self.broker = self.broker.or(up);
    }

    /// Its offsets go with a topic, but for old brokers (KAFKA-2000).
    pub(super) fn forget_topic(&mut self, topic: &str, generations: &BTreeMap<i32, Generation>) {
        let generation = self.broker.and_then(|broker| generations.get(&broker));
        if !matches!(generation, Some(Generation::Kafka0_8_2 | Generation::Kafka0_9)) {
            self.stored.retain(|(_, partition), _| &*partition.topic != topic);
        }
    }
}

impl State {
    pub(super) fn find_coordinator(&self) -> wire::FindCoordinatorResponse {
        let found = wire::FindCoordinatorResponse::default();
        match self.coordinator.broker {
            Some(broker) => found
                .with_node_id(BrokerId(broker))
                .with_host(StrBytes::from_string(host_of(broker)))
                .with_port(PORT.into()),
            None => found.with_error_code(COORDINATOR_NOT_AVAILABLE).with_node_id(BrokerId(-1)).with_port(-1),
        }
    }

    fn exists(&self, topic: &TopicName, partition: i32) -> bool {
        let count = self.topics.get(topic.as_str()).map_or(0, Vec::len);
        usize::try_from(partition).is_ok_and(|partition| partition < count)
    }

    /// The answer, and what is to be stored.
    fn commit_offsets(
        &self,
        broker: i32,
        request: &wire::OffsetCommitRequest,
        fault: Option<&OffsetsFault>,
        late: bool,
    ) -> (wire::OffsetCommitResponse, Vec<OffsetStored>) {
        use wire::offset_commit_response::{OffsetCommitResponsePartition, OffsetCommitResponseTopic};
        let group = request.group_id.as_str();
        // -1 and no member: whoever commits is in no group of Kafka's own
        let refusal = self.coordinator.refusal(broker).or(self.coordinator.active.get(group).copied());
        // 0.8.2 does not look whether there is such a topic, and says otherwise that it keeps no offsets
        let takes_all = self.generations.get(&broker) == Some(&Generation::Kafka0_8_2);
        let is_not_it = takes_all && refusal == Some(NOT_COORDINATOR);
        let refusal = if is_not_it { Some(COORDINATOR_NOT_AVAILABLE) } else { refusal };
        let (mut topics, mut stored) = (Vec::new(), Vec::new());
        for topic in &request.topics {
            let mut partitions = Vec::new();
            for asked in &topic.partitions {
                let partition = TopicPartition::new(topic.name.as_str(), asked.partition_index);
                let code = match (fault, refusal) {
                    _ if !takes_all && !self.exists(&topic.name, asked.partition_index) => {
                        UNKNOWN_TOPIC_OR_PARTITION
                    }
                    (_, Some(code)) => code,
                    (Some(OffsetsFault::CommitRefused(refused, code)), _) if *refused == partition => *code,
                    _ => {
                        let (group, offset) = (group.into(), asked.committed_offset);
                        stored.push(OffsetStored { group, partition, offset, late });
                        0
                    }
                };
                let answer = OffsetCommitResponsePartition::default();
                partitions.push(answer.with_partition_index(asked.partition_index).with_error_code(code));
            }
            let answer = OffsetCommitResponseTopic::default();
            topics.push(answer.with_name(topic.name.clone()).with_partitions(partitions));
        }
        (wire::OffsetCommitResponse::default().with_topics(topics), stored)
    }

    /// From version 2 on what concerns the whole is said at the top, with an empty list.
    pub(super) fn fetch_offsets(
        &mut self,
        broker: i32,
        request: wire::OffsetFetchRequest,
        version: i16,
    ) -> wire::OffsetFetchResponse {
        use wire::offset_fetch_response::OffsetFetchResponseTopic;
        let refusal = self.coordinator.refusal(broker);
        if let Some(code) = refusal.filter(|_| version >= 2) {
            return wire::OffsetFetchResponse::default().with_error_code(code);
        }
        let group = request.group_id.as_str();
        let topics = request.topics.unwrap_or_else(|| self.coordinator.all_of(group));
        let topics = topics.into_iter().map(|topic| {
            let name = topic.name;
            let indexes = topic.partition_indexes.into_iter();
            let partitions = indexes.map(|index| self.coordinator.fetch_one(group, &name, index, refusal));
            let partitions = partitions.collect();
            OffsetFetchResponseTopic::default().with_partitions(partitions).with_name(name)
        });
        wire::OffsetFetchResponse::default().with_topics(topics.collect())
    }
}

impl Coordinator {
    /// Who names no topics asks for all that the group has.
    fn all_of(&self, group: &str) -> Vec<wire::offset_fetch_request::OffsetFetchRequestTopic> {
        use wire::offset_fetch_request::OffsetFetchRequestTopic;
        let stored = self.stored.keys().filter(|(of, _)| &**of == group);
        let one = |(_, key): &(Arc<str>, TopicPartition)| {
            OffsetFetchRequestTopic::default()
                .with_name(TopicName(StrBytes::from_string(key.topic.to_string())))
                .with_partition_indexes(vec![key.partition])
        };
        stored.map(one).collect()
    }

    fn fetch_one(
        &mut self,
        group: &str,
        topic: &TopicName,
        index: i32,
        refusal: Option<i16>,
    ) -> wire::offset_fetch_response::OffsetFetchResponsePartition {
        let partition = TopicPartition::new(topic.as_str(), index);
        let fault = self.next_fault(
            |fault| matches!(fault, OffsetsFault::FetchRefused(refused, _) if *refused == partition),
        );
        let code = match (refusal, fault) {
            (Some(code), _) | (None, Some(OffsetsFault::FetchRefused(_, code))) => code,
            _ => 0,
        };
        let stored = self.stored.get(&(group.into(), partition)).filter(|_| code == 0);
        wire::offset_fetch_response::OffsetFetchResponsePartition::default()
            .with_partition_index(index)
            .with_committed_offset(stored.copied().unwrap_or(NO_OFFSET))
            .with_metadata(Some(StrBytes::from_static_str("")))
            .with_error_code(code)
    }
}
