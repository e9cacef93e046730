//! Offsets stored in Kafka, by brokers of several generations and the ones in memory that stand in for them.

use kafka_troupe_actors::testkit::Generation;
use kafka_troupe_proto::kafka::find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_troupe_proto::kafka::offset_commit::{CommitPartition, CommitTopic, OffsetCommitRequest};
use kafka_troupe_proto::kafka::offset_fetch::OffsetFetchRequest;
use tokio::time::sleep;

use super::*;

const GROUP: &str = "conformance";
/// Between two looks at what a broker does in its own time.
const LOOK: Duration = Duration::from_millis(50);

/// Of the generations that differ in this, but for 3.9, whose cluster has what else there is to show.
macro_rules! on_real_brokers {
    ($($test:ident $version:ident),+ $(,)?) => {
        $(#[tokio::test] async fn $test() {
            let cluster = Cluster::start(KafkaVersion::$version, 2).expect("a cluster");
            conform_on_new(&Brokers::Real(Arc::new(cluster))).await;
        })+
    };
}

on_real_brokers!(
    offsets_of_a_real_0_8_2_broker_conform V0_8_2_2,
    offsets_of_a_real_0_9_broker_conform V0_9_0_1,
    offsets_of_a_real_1_1_broker_conform V1_1_1,
    offsets_of_a_real_4_1_broker_conform V4_1_1,
);

#[tokio::test]
async fn offsets_in_memory_conform() {
    for generation in [
        Generation::Kafka0_8_2,
        Generation::Kafka0_9,
        Generation::Kafka1_1,
        Generation::Kafka2_4,
        Generation::Latest,
        Generation::Kafka4,
    ] {
        let brokers = MemoryBrokers::new(2);
        (0..2).for_each(|broker| brokers.set_generation(broker, generation));
        conform_on_new(&Brokers::Memory(brokers)).await;
    }
}

async fn conform_on_new(brokers: &Brokers) {
    brokers.create_topic(TOPIC, 2);
    conform(brokers).await;
}

/// Of two partitions of the topic, for which nobody has committed yet.
pub async fn conform(brokers: &Brokers) {
    let mut coordinator = brokers.coordinator(GROUP).await;
    assert_eq!(fetched(&mut coordinator, GROUP, &[0, 1]).await, [Ok(None), Ok(None)], "nothing stored");
    assert_eq!(commit(&mut coordinator, TOPIC, &[(0, 3), (1, 0)]).await, [0, 0]);
    assert_eq!(fetched(&mut coordinator, GROUP, &[0, 1]).await, [Ok(Some(3)), Ok(Some(0))], "in one request");
    assert_eq!(commit(&mut coordinator, TOPIC, &[(1, 7)]).await, [0]);
    assert_eq!(fetched(&mut coordinator, GROUP, &[1]).await, [Ok(Some(7))], "it is alone");
    assert_eq!(fetched(&mut coordinator, GROUP, &[0]).await, [Ok(Some(3))], "the other is as it was");
    assert_eq!(commit(&mut coordinator, TOPIC, &[(1, 5)]).await, [0], "nothing keeps it from going back");
    assert_eq!(fetched(&mut coordinator, GROUP, &[1]).await, [Ok(Some(5))]);
    assert_eq!(commit(&mut coordinator, TOPIC, &[(0, -1)]).await, [0], "as the old consumer does");
    assert_eq!(fetched(&mut coordinator, GROUP, &[0, 1]).await, [Ok(None), Ok(Some(5))]);
    let mut another = brokers.coordinator("nobody").await;
    assert_eq!(fetched(&mut another, "nobody", &[0, 1]).await, [Ok(None), Ok(None)], "an unknown group");
    let of_unknown = commit(&mut coordinator, "nowhere", &[(0, 1)]).await[0];
    // 0.8.2 does not look whether there is such a topic
    let is_old = version(&coordinator) == 1;
    assert!(of_unknown == ErrorCode::UnknownTopicOrPartition.code() || is_old && of_unknown == 0);
    who_does_not_coordinate_says_so(brokers).await;
}

async fn who_does_not_coordinate_says_so(brokers: &Brokers) {
    let mut other = brokers.not_the_coordinator(GROUP).await;
    let answer = fetch_once(&mut other, GROUP, &[0, 1]).await;
    assert_eq!(answer, [Err(ErrorCode::NotCoordinator); 2]);
    let codes = commit(&mut other, TOPIC, &[(0, 9), (1, 9)]).await;
    let says_it = |code: &i16| {
        // 0.8.2 says of itself that it keeps no offsets
        let is_old = version(&other) == 1 && *code == ErrorCode::CoordinatorNotAvailable.code();
        is_old || *code == ErrorCode::NotCoordinator.code()
    };
    assert!(codes.iter().all(says_it), "{codes:?}");
    let mut coordinator = brokers.coordinator(GROUP).await;
    assert_eq!(fetched(&mut coordinator, GROUP, &[0, 1]).await, [Ok(None), Ok(Some(5))], "nothing is stored");
}

impl Brokers {
    /// As any broker names it. A real one makes the topic of offsets first, and needs time for it.
    async fn find(&self, group: &str) -> FindCoordinatorResponse {
        let mut connection = self.first().await;
        let began = Instant::now();
        loop {
            let asked = FindCoordinatorRequest { group: group.into() };
            let found = connection.call(&asked).await.expect("an answer");
            if found.error.is_ok() {
                return found;
            }
            assert_eq!(found.error, ErrorCode::CoordinatorNotAvailable);
            assert!(began.elapsed() < PATIENCE, "no coordinator in time");
            sleep(LOOK).await;
        }
    }

    async fn coordinator(&self, group: &str) -> BrokerConnection {
        let found = self.find(group).await;
        self.dial(&found.host, u16::try_from(found.port).expect("a port")).await
    }

    async fn not_the_coordinator(&self, group: &str) -> BrokerConnection {
        let id = self.find(group).await.id;
        let metadata = self.metadata(Some(&[TOPIC])).await;
        let other = metadata.brokers.iter().find(|broker| broker.id != id).expect("two brokers");
        self.dial(&other.host, u16::try_from(other.port).expect("a port")).await
    }
}

/// 0.8 and 0.9 cannot be told apart by it.
fn version(connection: &BrokerConnection) -> i16 {
    connection.version_of::<OffsetCommitRequest>().expect("it is spoken")
}

/// Codes, by partition as asked.
async fn commit(connection: &mut BrokerConnection, topic: &str, offsets: &[(i32, i64)]) -> Vec<i16> {
    let partition = |&(partition, offset): &(i32, i64)| {
        let metadata = "".into();
        CommitPartition { partition, offset, metadata }
    };
    let partitions = offsets.iter().map(partition).collect();
    let topics = vec![CommitTopic { topic: topic.into(), partitions }];
    let request = OffsetCommitRequest { group: GROUP.into(), generation: -1, member: "".into(), topics };
    let answer = connection.call(&request).await.expect("an answer");
    assert_eq!(answer.topics.len(), 1);
    let of = |(asked, _): &(i32, i64)| {
        let told = answer.topics[0].partitions.iter().find(|(partition, _)| partition == asked);
        told.expect("each that was asked").1.code()
    };
    offsets.iter().map(of).collect()
}

/// Offsets or errors, by partition as asked. An error of the whole, which comes with an empty list, is everyone's.
async fn fetch_once(
    connection: &mut BrokerConnection,
    group: &str,
    partitions: &[i32],
) -> Vec<Result<Option<i64>, ErrorCode>> {
    let topics = Some(vec![(TOPIC.into(), partitions.to_vec())]);
    let request = OffsetFetchRequest { group: group.into(), topics };
    let answer = connection.call(&request).await.expect("an answer");
    if !answer.error.is_ok() {
        assert!(answer.topics.is_empty());
        return vec![Err(answer.error); partitions.len()];
    }
    let of = |asked: &i32| {
        let told = answer.topics[0].partitions.iter().find(|it| it.partition == *asked);
        let told = told.expect("each that was asked");
        if told.error.is_ok() { Ok(told.offset) } else { Err(told.error) }
    };
    partitions.iter().map(of).collect()
}

/// The same, once a coordinator that was just made is not loading any more.
async fn fetched(
    connection: &mut BrokerConnection,
    group: &str,
    partitions: &[i32],
) -> Vec<Result<Option<i64>, ErrorCode>> {
    let began = Instant::now();
    loop {
        let answer = fetch_once(connection, group, partitions).await;
        let is_passing = |error: &ErrorCode| {
            [ErrorCode::CoordinatorLoadInProgress, ErrorCode::NotCoordinator].contains(error)
        };
        if !answer.iter().any(|it| it.as_ref().is_err_and(is_passing)) {
            return answer;
        }
        assert!(began.elapsed() < PATIENCE, "{answer:?}");
        sleep(LOOK).await;
    }
}
