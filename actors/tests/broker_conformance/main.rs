//! What every broker must answer alike: a real one, and the one in memory that stands in for it.

mod offsets;
mod produce;

use std::sync::Arc;
use std::time::Duration;

use kafka_troupe_actors::broker_connection::{BrokerConnection, ConnectOptions, Transport};
use kafka_troupe_actors::testkit::MemoryBrokers;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::compression::Decompressor;
use kafka_troupe_proto::kafka::error_code::ErrorCode;
use kafka_troupe_proto::kafka::fetch::{
    FetchPartition, FetchRequest, FetchTopic, FetchedPartition, ForgottenTopic, NO_SESSION_EPOCH,
};
use kafka_troupe_proto::kafka::list_offsets::{
    EARLIEST, LATEST, ListOffsetsRequest, ListOffsetsTopic, ListedOffset,
};
use kafka_troupe_proto::kafka::metadata::{MetadataRequest, MetadataResponse};
use kafka_troupe_proto::kafka::records::{DecodeOptions, RecordBatches};
use tokio::time::{Instant, timeout};
use troupe_cluster::{Cluster, KafkaVersion, ProduceRecord};

/// Longer than anything here takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
const TOPIC: &str = "orders";

/// Two brokers, real or not.
#[derive(Clone)]
enum Brokers {
    Real(Arc<Cluster>),
    Memory(MemoryBrokers),
}

impl Brokers {
    fn create_topic(&self, name: &str, partitions: usize) {
        match self {
            Self::Real(cluster) => cluster.create_topic(name, partitions as i32, 1).expect("a topic"),
            Self::Memory(brokers) => brokers.create_topic(name, partitions),
        }
    }

    /// Appends to a partition; a real producer takes its time.
    async fn produce(&self, partition: i32, values: &[&str]) {
        match self.clone() {
            Self::Real(cluster) => {
                let record = |value: &&str| ProduceRecord {
                    partition: Some(partition),
                    key: None,
                    value: value.as_bytes().to_vec(),
                };
                let records: Vec<_> = values.iter().map(record).collect();
                let produced = tokio::task::spawn_blocking(move || cluster.produce(TOPIC, records));
                produced.await.expect("no panic").expect("it is produced");
            }
            Self::Memory(brokers) => {
                brokers.append(&TopicPartition::new(TOPIC, partition), values);
            }
        }
    }

    async fn dial(&self, host: &str, port: u16) -> BrokerConnection {
        let mut options = ConnectOptions::new("conformance", PATIENCE);
        if let Self::Memory(brokers) = self {
            options.transport = Transport::Memory { brokers: brokers.clone(), client: "conformance".into() };
        }
        BrokerConnection::connect(host, port, options).await.expect("a connection")
    }

    async fn first(&self) -> BrokerConnection {
        match self {
            Self::Real(cluster) => self.dial(cluster.broker(0).host(), cluster.broker(0).port()).await,
            Self::Memory(_) => self.dial("broker-0", 9092).await,
        }
    }

    async fn metadata(&self, topics: Option<&[&str]>) -> MetadataResponse {
        let topics = topics.map(|topics| topics.iter().map(|name| Arc::from(*name)).collect());
        self.first().await.call(&MetadataRequest { topics }).await.expect("metadata")
    }

    /// Connections to the leader of a partition, and to a broker that is not.
    async fn leader_and_other(&self, partition: i32) -> (BrokerConnection, BrokerConnection) {
        let metadata = self.metadata(Some(&[TOPIC])).await;
        let leader = metadata.topics[0].partitions.iter().find(|it| it.partition == partition);
        let leader = leader.and_then(|it| it.leader).expect("a leader");
        let (mut its, mut other) = (None, None);
        for broker in &metadata.brokers {
            let connection = self.dial(&broker.host, u16::try_from(broker.port).expect("a port")).await;
            if broker.id == leader { its = Some(connection) } else { other = Some(connection) }
        }
        (its.expect("the leader is a broker"), other.expect("two brokers"))
    }
}

#[tokio::test]
async fn a_real_broker_conforms() {
    let cluster = Cluster::start(KafkaVersion::V3_9_1, 2).expect("a cluster");
    let brokers = Brokers::Real(Arc::new(cluster));
    conforms(&brokers).await;
    produce::conform(&brokers).await;
    offsets::conform(&brokers).await;
}

#[tokio::test]
async fn the_one_in_memory_conforms() {
    let brokers = Brokers::Memory(MemoryBrokers::new(2));
    conforms(&brokers).await;
    produce::conform(&brokers).await;
}

async fn conforms(brokers: &Brokers) {
    brokers.create_topic(TOPIC, 2);
    brokers.produce(0, &["a", "b", "c"]).await;
    brokers.produce(0, &["d", "e"]).await;
    metadata_shows_brokers_topics_and_leaders(brokers).await;
    ends_of_logs_are_listed(brokers).await;
    records_are_fetched_from_where_it_was_asked(brokers).await;
    what_cannot_be_fetched_says_why(brokers).await;
    the_first_batch_comes_whole(brokers).await;
    a_fetch_waits_for_data(brokers).await;
    a_session_tells_news_only(brokers).await;
}

async fn metadata_shows_brokers_topics_and_leaders(brokers: &Brokers) {
    let metadata = brokers.metadata(Some(&[TOPIC, "nowhere"])).await;
    let mut ids: Vec<_> = metadata.brokers.iter().map(|broker| broker.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, [0, 1]);
    let topic =
        |name| metadata.topics.iter().find(|topic| &*topic.name == name).expect("the topic asked for");
    assert!(topic(TOPIC).error.is_ok() && topic(TOPIC).partitions.iter().all(|it| it.error.is_ok()));
    let mut partitions: Vec<_> = topic(TOPIC).partitions.iter().map(|it| it.partition).collect();
    partitions.sort_unstable();
    assert_eq!(partitions, [0, 1]);
    assert!(topic(TOPIC).partitions.iter().all(|it| it.leader.is_some_and(|leader| ids.contains(&leader))));
    assert_eq!(topic("nowhere").error, ErrorCode::UnknownTopicOrPartition);
    assert!(topic("nowhere").partitions.is_empty());
    let all = brokers.metadata(None).await;
    assert!(all.topics.iter().any(|topic| &*topic.name == TOPIC));
    assert!(brokers.metadata(Some(&[])).await.topics.is_empty());
}

async fn list(connection: &mut BrokerConnection, topic: &str, partition: i32, time: i64) -> ListedOffset {
    let topics = vec![ListOffsetsTopic { topic: topic.into(), partitions: vec![(partition, time)] }];
    let request = ListOffsetsRequest { read_committed: false, topics };
    let mut listed = connection.call(&request).await.expect("offsets").topics;
    listed.remove(0).partitions.remove(0)
}

async fn ends_of_logs_are_listed(brokers: &Brokers) {
    let (mut leader, mut other) = brokers.leader_and_other(0).await;
    assert_eq!(list(&mut leader, TOPIC, 0, EARLIEST).await.offset, Some(0));
    assert_eq!(list(&mut leader, TOPIC, 0, LATEST).await.offset, Some(5));
    let refused = list(&mut other, TOPIC, 0, LATEST).await;
    assert_eq!((refused.error, refused.offset), (ErrorCode::NotLeaderOrFollower, None));
    assert_eq!(list(&mut leader, TOPIC, 7, LATEST).await.error, ErrorCode::UnknownTopicOrPartition);
    assert_eq!(list(&mut leader, "nowhere", 0, LATEST).await.error, ErrorCode::UnknownTopicOrPartition);
    let (mut leader, _) = brokers.leader_and_other(1).await;
    assert_eq!(list(&mut leader, TOPIC, 1, EARLIEST).await.offset, Some(0));
    assert_eq!(list(&mut leader, TOPIC, 1, LATEST).await.offset, Some(0));
}

fn request(topic: &str, partition: i32, offset: i64, max_bytes: i32, wait: Duration) -> FetchRequest {
    let partition = FetchPartition { partition, leader_epoch: -1, offset, max_bytes };
    FetchRequest {
        max_wait_ms: wait.as_millis() as i32,
        min_bytes: 1,
        max_bytes: 8 << 20,
        read_committed: false,
        session_id: 0,
        session_epoch: NO_SESSION_EPOCH,
        topics: vec![FetchTopic { topic: topic.into(), partitions: vec![partition] }],
        forgotten: Vec::new(),
        rack: "".into(),
    }
}

async fn fetch(
    connection: &mut BrokerConnection,
    topic: &str,
    partition: i32,
    offset: i64,
) -> FetchedPartition {
    let asked = request(topic, partition, offset, 1 << 20, Duration::from_millis(20));
    let mut answer = connection.fetch(&asked).await.expect("an answer");
    assert!(answer.head.error.is_ok());
    assert_eq!(answer.partitions.len(), 1);
    let (key, fetched) = answer.partitions.remove(0);
    assert_eq!(key, TopicPartition::new(topic, partition));
    fetched
}

/// Offsets and values from `from` on.
fn read(fetched: &FetchedPartition, from: i64) -> Vec<(i64, String)> {
    let mut decompressor = Decompressor::default();
    let mut batches = RecordBatches::new(fetched.records.clone(), from, DecodeOptions::default());
    let mut all = Vec::new();
    while let Some(batch) = batches.next_batch(&mut decompressor) {
        let batch = batch.expect("a whole batch");
        let mut records = batch.records();
        while let Some(record) = records.next() {
            let record = record.expect("a whole record");
            let value = record.value(&batch.payload).expect("a value").to_vec();
            all.push((record.offset, String::from_utf8(value).expect("text")));
        }
    }
    all
}

async fn records_are_fetched_from_where_it_was_asked(brokers: &Brokers) {
    let (mut leader, _) = brokers.leader_and_other(0).await;
    let all: Vec<_> =
        ["a", "b", "c", "d", "e"].iter().zip(0..).map(|(it, at)| (at, (*it).to_owned())).collect();
    for from in [0, 1, 3, 4] {
        let fetched = fetch(&mut leader, TOPIC, 0, from).await;
        assert!(fetched.error.is_ok());
        assert_eq!((fetched.high_watermark, read(&fetched, from)), (5, all[from as usize..].to_vec()));
    }
    let at_end = fetch(&mut leader, TOPIC, 0, 5).await;
    assert!(at_end.error.is_ok());
    assert_eq!((at_end.high_watermark, at_end.records.len()), (5, 0));
}

async fn what_cannot_be_fetched_says_why(brokers: &Brokers) {
    let (mut leader, mut other) = brokers.leader_and_other(0).await;
    for offset in [6, 1_000, -5] {
        let refused = fetch(&mut leader, TOPIC, 0, offset).await;
        assert_eq!(refused.error, ErrorCode::OffsetOutOfRange, "at {offset}");
        assert!(refused.records.is_empty());
    }
    assert_eq!(fetch(&mut other, TOPIC, 0, 0).await.error, ErrorCode::NotLeaderOrFollower);
    assert_eq!(fetch(&mut leader, TOPIC, 7, 0).await.error, ErrorCode::UnknownTopicOrPartition);
    assert_eq!(fetch(&mut leader, "nowhere", 0, 0).await.error, ErrorCode::UnknownTopicOrPartition);
}

/// Whatever the limit is, and no more than that.
async fn the_first_batch_comes_whole(brokers: &Brokers) {
    let (mut leader, _) = brokers.leader_and_other(0).await;
    let asked = request(TOPIC, 0, 1, 1, Duration::ZERO);
    let answer = leader.fetch(&asked).await.expect("an answer");
    let offsets: Vec<_> = read(&answer.partitions[0].1, 0).into_iter().map(|(offset, _)| offset).collect();
    assert_eq!(offsets, [0, 1, 2]);
}

async fn a_fetch_waits_for_data(brokers: &Brokers) {
    let (mut leader, _) = brokers.leader_and_other(1).await;
    let began = Instant::now();
    let wait = Duration::from_millis(300);
    let nothing = leader.fetch(&request(TOPIC, 1, 0, 1 << 20, wait)).await.expect("an answer");
    assert!(nothing.partitions[0].1.records.is_empty());
    assert!(began.elapsed() >= wait / 2, "it waited {:?} of {wait:?}", began.elapsed());
    let asked = request(TOPIC, 1, 0, 1 << 20, PATIENCE / 2);
    let both = async { tokio::join!(leader.fetch(&asked), brokers.produce(1, &["late"])).0 };
    let answer =
        timeout(PATIENCE / 3, both).await.expect("it waits no longer than it has to").expect("an answer");
    assert_eq!(read(&answer.partitions[0].1, 0), [(0, "late".to_owned())]);
}

/// A fetch within a session, of these partitions from these offsets and without those: its error, and what it told.
async fn fetch_in_session(
    connection: &mut BrokerConnection,
    (session_id, session_epoch): (i32, i32),
    from: &[(i32, i64)],
    forgotten: &[i32],
) -> (ErrorCode, i32, Vec<(i32, i64, bool)>) {
    let asked = |&(partition, offset): &(i32, i64)| {
        let max_bytes = 1 << 20;
        FetchPartition { partition, leader_epoch: -1, offset, max_bytes }
    };
    let topic = FetchTopic { topic: TOPIC.into(), partitions: from.iter().map(asked).collect() };
    let gone = ForgottenTopic { topic: TOPIC.into(), partitions: forgotten.to_vec() };
    let request = FetchRequest {
        session_id,
        session_epoch,
        topics: if from.is_empty() { Vec::new() } else { vec![topic] },
        forgotten: if forgotten.is_empty() { Vec::new() } else { vec![gone] },
        ..request(TOPIC, 0, 0, 0, Duration::from_millis(20))
    };
    let answer = connection.fetch(&request).await.expect("an answer");
    let told = answer.partitions.iter();
    let told = told.map(|(key, it)| (key.partition, it.high_watermark, !it.records.is_empty()));
    (answer.head.error, answer.head.session_id, told.collect())
}

/// KIP-227.
async fn a_session_tells_news_only(brokers: &Brokers) {
    let (mut leader, _) = brokers.leader_and_other(0).await;
    let (error, id, told) = fetch_in_session(&mut leader, (0, 0), &[(0, 5)], &[]).await;
    assert!(error.is_ok() && id != 0);
    assert_eq!(told, [(0, 5, false)]);
    let (error, same, told) = fetch_in_session(&mut leader, (id, 1), &[], &[]).await;
    assert_eq!((error.is_ok(), same, told), (true, id, Vec::new()), "no news");
    brokers.produce(0, &["f"]).await;
    let (.., told) = fetch_in_session(&mut leader, (id, 2), &[], &[]).await;
    assert_eq!(told, [(0, 6, true)]);
    let (.., told) = fetch_in_session(&mut leader, (id, 3), &[], &[]).await;
    assert_eq!(told, [(0, 6, true)], "again, until the offset is moved");
    let (.., told) = fetch_in_session(&mut leader, (id, 4), &[(0, 6)], &[]).await;
    assert!(told.is_empty());
    brokers.produce(0, &["g"]).await;
    let (error, gone, told) = fetch_in_session(&mut leader, (id, 5), &[], &[0]).await;
    assert_eq!((error.is_ok(), gone, told), (true, 0, Vec::new()), "without partitions it ends");
    let (error, ..) = fetch_in_session(&mut leader, (id, 6), &[(0, 7)], &[]).await;
    assert_eq!(error, ErrorCode::FetchSessionIdNotFound);
    let (_, id, told) = fetch_in_session(&mut leader, (0, 0), &[(0, 7)], &[]).await;
    assert_eq!(told, [(0, 7, false)]);
    let (error, ..) = fetch_in_session(&mut leader, (id, 2), &[], &[]).await;
    assert_eq!(error, ErrorCode::InvalidFetchSessionEpoch);
    let (error, new, told) = fetch_in_session(&mut leader, (id, 0), &[(0, 0)], &[]).await;
    assert!(error.is_ok() && new != 0 && new != id);
    assert_eq!(told, [(0, 7, true)]);
    let (error, ..) = fetch_in_session(&mut leader, (id, 1), &[], &[]).await;
    assert_eq!(error, ErrorCode::FetchSessionIdNotFound, "it was replaced");
}
