use super::{cuts_fail, judge_decode, judge_encode, judge_group, judge_tags, judge_text, judge_topic, text};
use crate::TopicPartition;
use crate::kafka::consumer_group_describe::{
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, DescribedConsumer, DescribedConsumerGroup,
};
use crate::kafka::frame::Response;
use kafka_protocol::messages as judge;
use kafka_protocol::messages::consumer_group_describe_response::{
    Assignment, DescribedGroup, Member, TopicPartitions,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::sync::Arc;

/// Topics with numbers of partitions.
type Topics = Vec<(Arc<str>, Vec<i32>)>;

fn topics() -> impl Strategy<Value = Topics> {
    vec((text(), vec(any::<i32>(), 0..4)), 0..3)
}

fn partitions(topics: &Topics) -> Vec<TopicPartition> {
    let of = |(topic, numbers): &(Arc<str>, Vec<i32>)| {
        let topic = Arc::clone(topic);
        numbers.clone().into_iter().map(move |number| TopicPartition::new(Arc::clone(&topic), number))
    };
    topics.iter().flat_map(of).collect()
}

fn judge_assignment(topics: &Topics) -> Assignment {
    let topics = topics.iter().map(|(topic, numbers)| {
        TopicPartitions::default()
            .with_topic_id("12345678-1234-1234-1234-123456789abc".parse().expect("a UUID"))
            .with_topic_name(judge_topic(topic))
            .with_partitions(numbers.clone())
            .with_unknown_tagged_fields(judge_tags())
    });
    Assignment::default().with_topic_partitions(topics.collect()).with_unknown_tagged_fields(judge_tags())
}

/// A member in both forms.
fn member() -> impl Strategy<Value = (DescribedConsumer, Member)> {
    let names = (text(), option::of(text()), text(), text());
    (names, option::of(text()), any::<i32>(), vec(text(), 0..3), topics(), topics()).prop_map(
        |((member, instance, client_id, client_host), free, epoch, subscribed, has, target)| {
            let judged = Member::default()
                .with_member_id(judge_text(&member))
                .with_instance_id(instance.as_deref().map(judge_text))
                .with_rack_id(free.as_deref().map(judge_text))
                .with_member_epoch(epoch)
                .with_client_id(judge_text(&client_id))
                .with_client_host(judge_text(&client_host))
                .with_subscribed_topic_names(subscribed.iter().map(|topic| judge_topic(topic)).collect())
                .with_subscribed_topic_regex(free.as_deref().map(judge_text))
                .with_assignment(judge_assignment(&has))
                .with_target_assignment(judge_assignment(&target))
                .with_unknown_tagged_fields(judge_tags());
            let (partitions, target) = (partitions(&has), partitions(&target));
            (DescribedConsumer { member, instance, client_id, client_host, partitions, target }, judged)
        },
    )
}

fn group() -> impl Strategy<Value = (DescribedConsumerGroup, DescribedGroup)> {
    (any::<i16>(), option::of(text()), text(), text(), text(), any::<i32>(), vec(member(), 0..3)).prop_map(
        |(error, message, group, state, assignor, number, members)| {
            let (members, judged): (Vec<_>, Vec<_>) = members.into_iter().unzip();
            let judged = DescribedGroup::default()
                .with_error_code(error)
                .with_error_message(message.as_deref().map(judge_text))
                .with_group_id(judge_group(&group))
                .with_group_state(judge_text(&state))
                .with_group_epoch(number)
                .with_assignment_epoch(number)
                .with_assignor_name(judge_text(&assignor))
                .with_members(judged)
                .with_authorized_operations(number)
                .with_unknown_tagged_fields(judge_tags());
            (DescribedConsumerGroup { error: error.into(), message, group, state, assignor, members }, judged)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn consumer_group_describe_request(groups in vec(text(), 0..5)) {
        let request = ConsumerGroupDescribeRequest { groups };
        let judged: judge::ConsumerGroupDescribeRequest = judge_decode(&request, 0);
        let names: Vec<_> = judged.group_ids.iter().map(|group| Arc::from(group.0.as_str())).collect();
        prop_assert!(!judged.include_authorized_operations);
        prop_assert_eq!(names, request.groups);
    }

    #[test]
    fn consumer_group_describe_response(throttle_ms: i32, groups in vec(group(), 0..3)) {
        let (groups, judged): (Vec<_>, Vec<_>) = groups.into_iter().unzip();
        let encoded = judge::ConsumerGroupDescribeResponse::default()
            .with_throttle_time_ms(throttle_ms)
            .with_groups(judged)
            .with_unknown_tagged_fields(judge_tags());
        let body = judge_encode(&encoded, 0);
        let decoded = ConsumerGroupDescribeResponse::decode(0, body.clone()).expect("we decode");
        prop_assert_eq!(decoded, ConsumerGroupDescribeResponse { throttle_ms, groups });
        cuts_fail::<ConsumerGroupDescribeResponse>(0, &body);
    }
}
