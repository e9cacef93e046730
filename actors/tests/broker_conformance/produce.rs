//! Records that are appended by Produce, in each of the versions that both speak.

use kafka_troupe_actors::broker_connection::BrokerConnection;
use kafka_troupe_proto::kafka::error_code::ErrorCode;
use kafka_troupe_proto::kafka::produce::{ProduceRequest, ProduceTopic, ProducedBatch};
use kafka_troupe_proto::kafka::records::{NewRecord, RecordBatchWriter, write_messages};

use super::{Brokers, TOPIC, fetch, read};

const KEY: Option<&[u8]> = Some(b"key");

async fn produce(
    connection: &mut BrokerConnection,
    topic: &str,
    partition: i32,
    records: bytes::Bytes,
) -> ProducedBatch {
    let partitions = vec![(partition, records)];
    let topics = vec![ProduceTopic { topic: topic.into(), partitions }];
    let request = ProduceRequest { acks: -1, timeout_ms: 30_000, topics };
    let mut answer = connection.call(&request).await.expect("an answer");
    answer.topics.remove(0).partitions.remove(0)
}

fn batch(values: &[&str]) -> bytes::Bytes {
    let mut batch = RecordBatchWriter::new(0);
    for value in values {
        let value = Some(value.as_bytes());
        batch.push(&NewRecord { timestamp: 1_700_000_000_000, key: KEY, value, headers: &[] });
    }
    batch.finish().expect("small enough")
}

/// Begins where partition 1 holds one record.
pub async fn conform(brokers: &Brokers) {
    let (mut leader, mut other) = brokers.leader_and_other(1).await;
    let produced = produce(&mut leader, TOPIC, 1, batch(&["x", "y"])).await;
    assert_eq!((produced.error, produced.base_offset, produced.partition), (ErrorCode::None, Some(1), 1));
    let produced = produce(&mut leader, TOPIC, 1, batch(&["z"])).await;
    assert_eq!(
        (produced.error, produced.base_offset, produced.log_append_time),
        (ErrorCode::None, Some(3), None)
    );
    let fetched = fetch(&mut leader, TOPIC, 1, 1).await;
    let expected = [(1, "x"), (2, "y"), (3, "z")].map(|(offset, value)| (offset, value.to_owned()));
    assert_eq!((fetched.high_watermark, read(&fetched, 1)), (4, expected.to_vec()));
    for (connection, topic, partition, error) in [
        (&mut other, TOPIC, 1, ErrorCode::NotLeaderOrFollower),
        (&mut leader, TOPIC, 7, ErrorCode::UnknownTopicOrPartition),
    ] {
        let refused = produce(connection, topic, partition, batch(&["lost"])).await;
        assert_eq!((refused.error, refused.base_offset), (error, None), "{topic}-{partition}");
    }
    let old = write_messages(1, &[NewRecord { value: Some(b"lost"), ..NewRecord::default() }]);
    let refused = produce(&mut leader, TOPIC, 1, old.expect("small enough")).await;
    assert_eq!(
        (refused.error, refused.base_offset),
        (ErrorCode::InvalidRecord, None),
        "the magic of another version"
    );
    assert_eq!(fetch(&mut leader, TOPIC, 1, 4).await.high_watermark, 4);
}
