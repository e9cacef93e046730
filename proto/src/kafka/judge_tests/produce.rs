use super::{cuts_fail, judge_decode, judge_encode, judge_topic, text};
use crate::kafka::frame::Response;
use crate::kafka::produce::{ProduceRequest, ProduceResponse, ProduceTopic, ProducedBatch, ProducedTopic};
use bytes::Bytes;
use kafka_protocol::messages as judge;
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn produce_request(
        version in 0..=3i16,
        (acks, timeout_ms) in any::<(i16, i32)>(),
        topics in vec((text(), vec((any::<i32>(), vec(any::<u8>(), 0..40)), 0..4)), 0..4),
    ) {
        let topics = topics.into_iter().map(|(topic, partitions)| ProduceTopic {
            topic,
            partitions: partitions.into_iter().map(|(partition, batch)| (partition, batch.into())).collect(),
        });
        let request = ProduceRequest { acks, timeout_ms, topics: topics.collect() };
        let judged: judge::ProduceRequest = judge_decode(&request, version);
        prop_assert_eq!(judged.transactional_id, None);
        prop_assert_eq!((judged.acks, judged.timeout_ms), (acks, timeout_ms));
        let topics: Vec<_> = judged.topic_data.iter().map(|topic| ProduceTopic {
            topic: Arc::from(topic.name.as_str()),
            partitions: topic.partition_data.iter()
                .map(|data| (data.index, data.records.clone().map_or(Bytes::new(), |batch| batch)))
                .collect(),
        }).collect();
        prop_assert_eq!(topics, request.topics);
    }

    #[test]
    fn produce_response(
        version in 0..=3i16,
        throttle_ms: i32,
        topics in vec((text(), vec(any::<(i32, i16, i64, i64)>(), 0..4)), 0..4),
    ) {
        let throttle_ms = if version >= 1 { throttle_ms } else { 0 };
        let encoded = judge::ProduceResponse::default().with_throttle_time_ms(throttle_ms).with_responses(
            topics.iter().map(|(topic, partitions)| {
                TopicProduceResponse::default().with_name(judge_topic(topic)).with_partition_responses(
                    partitions.iter().map(|(partition, error, offset, time)| {
                        PartitionProduceResponse::default()
                            .with_index(*partition)
                            .with_error_code(*error)
                            .with_base_offset(*offset)
                            .with_log_append_time_ms(*time)
                    }).collect(),
                )
            }).collect(),
        );
        let body = judge_encode(&encoded, version);
        let topics = topics.into_iter().map(|(topic, partitions)| ProducedTopic {
            topic,
            partitions: partitions.into_iter().map(|(partition, error, offset, time)| ProducedBatch {
                partition,
                error: error.into(),
                base_offset: Some(offset).filter(|offset| *offset >= 0),
                log_append_time: Some(time).filter(|time| version >= 2 && *time >= 0),
            }).collect(),
        });
        let expected = ProduceResponse { topics: topics.collect(), throttle_ms };
        prop_assert_eq!(ProduceResponse::decode(version, body.clone()).expect("we decode"), expected);
        cuts_fail::<ProduceResponse>(version, &body);
    }
}
