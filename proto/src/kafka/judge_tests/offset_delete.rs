use super::{cuts_fail, judge_decode, judge_encode, judge_topic, text};
use crate::kafka::frame::Response;
use crate::kafka::offset_delete::{DeletedTopic, OffsetDeleteRequest, OffsetDeleteResponse};
use kafka_protocol::messages as judge;
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn offset_delete_request(
        group in text(), topics in vec((text(), vec(any::<i32>(), 0..4)), 0..4),
    ) {
        let request = OffsetDeleteRequest { group, topics };
        let judged: judge::OffsetDeleteRequest = judge_decode(&request, 0);
        prop_assert_eq!(judged.group_id.0.as_str(), &*request.group);
        let named: Vec<_> = judged.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|it| it.partition_index).collect();
            (topic.name.0.as_str().into(), partitions)
        }).collect();
        prop_assert_eq!(named, request.topics);
    }

    #[test]
    fn offset_delete_response(
        throttle_ms: i32, error: i16, topics in vec((text(), vec(any::<(i32, i16)>(), 0..4)), 0..4),
    ) {
        use judge::offset_delete_response::{OffsetDeleteResponsePartition, OffsetDeleteResponseTopic};
        let encoded = judge::OffsetDeleteResponse::default()
            .with_error_code(error)
            .with_throttle_time_ms(throttle_ms)
            .with_topics(topics.iter().map(|(topic, partitions)| {
                let partitions = partitions.iter().map(|(partition, error)| {
                    OffsetDeleteResponsePartition::default()
                        .with_partition_index(*partition)
                        .with_error_code(*error)
                });
                OffsetDeleteResponseTopic::default()
                    .with_name(judge_topic(topic))
                    .with_partitions(partitions.collect())
            }).collect());
        let body = judge_encode(&encoded, 0);
        let topics = topics.into_iter().map(|(topic, partitions)| DeletedTopic {
            topic,
            partitions: partitions.into_iter().map(|(it, error)| (it, error.into())).collect(),
        });
        let expected = OffsetDeleteResponse { error: error.into(), throttle_ms, topics: topics.collect() };
        prop_assert_eq!(OffsetDeleteResponse::decode(0, body.clone()).expect("we decode"), expected);
        cuts_fail::<OffsetDeleteResponse>(0, &body);
    }
}
