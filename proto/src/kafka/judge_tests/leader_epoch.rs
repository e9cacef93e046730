use super::{cuts_fail, judge_decode, judge_encode, judge_topic, text};
use crate::kafka::frame::Response;
use crate::kafka::offset_for_leader_epoch::{
    EpochEnd, EpochEndTopic, EpochPartition, EpochTopic, OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
};
use kafka_protocol::messages as judge;
use kafka_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn offset_for_leader_epoch_request(asked in vec((text(), vec(any::<(i32, i32, i32)>(), 0..4)), 0..4)) {
        let topics = asked.into_iter().map(|(topic, partitions)| EpochTopic {
            topic,
            partitions: partitions.into_iter().map(|(partition, current_leader_epoch, leader_epoch)| EpochPartition {
                partition, current_leader_epoch, leader_epoch,
            }).collect(),
        });
        let request = OffsetForLeaderEpochRequest { topics: topics.collect() };
        let judged: judge::OffsetForLeaderEpochRequest = judge_decode(&request, 3);
        prop_assert_eq!(judged.replica_id.0, -1);
        let asked: Vec<_> = judged.topics.iter().map(|topic| EpochTopic {
            topic: Arc::from(topic.topic.as_str()),
            partitions: topic.partitions.iter().map(|asked| EpochPartition {
                partition: asked.partition,
                current_leader_epoch: asked.current_leader_epoch,
                leader_epoch: asked.leader_epoch,
            }).collect(),
        }).collect();
        prop_assert_eq!(asked, request.topics);
    }

    #[test]
    fn offset_for_leader_epoch_response(
        throttle_ms: i32,
        topics in vec((text(), vec(any::<(i16, i32, i32, i64)>(), 0..4)), 0..4),
    ) {
        let encoded = judge::OffsetForLeaderEpochResponse::default()
            .with_throttle_time_ms(throttle_ms)
            .with_topics(topics.iter().map(|(topic, partitions)| {
                OffsetForLeaderTopicResult::default()
                    .with_topic(judge_topic(topic))
                    .with_partitions(partitions.iter().map(|(error, partition, epoch, end)| {
                        EpochEndOffset::default()
                            .with_error_code(*error)
                            .with_partition(*partition)
                            .with_leader_epoch(*epoch)
                            .with_end_offset(*end)
                    }).collect())
            }).collect());
        let body = judge_encode(&encoded, 3);
        let topics = topics.into_iter().map(|(topic, partitions)| EpochEndTopic {
            topic,
            partitions: partitions.into_iter().map(|(error, partition, epoch, end)| EpochEnd {
                error: error.into(),
                partition,
                leader_epoch: Some(epoch).filter(|epoch| *epoch >= 0),
                end_offset: Some(end).filter(|end| *end >= 0),
            }).collect(),
        });
        let expected = OffsetForLeaderEpochResponse { throttle_ms, topics: topics.collect() };
        prop_assert_eq!(OffsetForLeaderEpochResponse::decode(3, body.clone()).expect("we decode"), expected);
        cuts_fail::<OffsetForLeaderEpochResponse>(3, &body);
    }
}
