//! Every version with arbitrary fields, as the schemas lay them out; and the assignment, by the crate `kafka-protocol`.

use super::*;
use kafka_protocol::messages::ConsumerProtocolAssignment;
use kafka_protocol::messages::TopicName;
use kafka_protocol::messages::consumer_protocol_assignment::TopicPartition as JudgeTopic;
use kafka_protocol::protocol::{Encodable, StrBytes};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

/// Empty, with more bytes than characters, and of more than 127 bytes, whose compact length has two.
fn text() -> impl Strategy<Value = Arc<str>> {
    prop_oneof!["[a-z0-9._-]{0,12}", "[aä€𝄞\u{0}]{0,8}", "[a-z]{126,300}"].prop_map(Arc::from)
}

fn blob() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

/// -1 stands for none.
fn time() -> impl Strategy<Value = Option<i64>> {
    of(prop_oneof![Just(0), Just(i64::MIN), Just(i64::MAX), 1_600_000_000_000..1_800_000_000_000_i64])
}

prop_compose! {
    fn committed_offset()(
        version in 0..=4_i16,
        offset: i64,
        leader_epoch in of(0..=i32::MAX),
        metadata in text(),
        commit_timestamp in time(),
        expire_timestamp in time(),
        topic_id in of(any::<[u8; 16]>().prop_filter("all zeros are none", |id| *id != [0; 16])),
    ) -> CommittedOffset {
        CommittedOffset {
            version,
            offset,
            leader_epoch: leader_epoch.filter(|_| version >= 3),
            metadata,
            commit_timestamp,
            expire_timestamp: expire_timestamp.filter(|_| version == 1),
            topic_id: topic_id.filter(|_| version >= 4),
        }
    }
}

prop_compose! {
    fn member()(
        member_id in text(),
        instance_id in of(text()),
        client_id in text(),
        client_host in text(),
        rebalance_timeout_ms: i32,
        session_timeout_ms: i32,
        (subscription, assignment) in (blob(), blob()),
    ) -> GroupMember {
        let rebalance_timeout_ms = Some(rebalance_timeout_ms);
        GroupMember {
            member_id, instance_id, client_id, client_host,
            rebalance_timeout_ms, session_timeout_ms, subscription, assignment,
        }
    }
}

prop_compose! {
    fn group_metadata()(
        version in 0..=4_i16,
        protocol_type in text(),
        generation: i32,
        protocol in of(text()),
        leader in of(text()),
        state_timestamp in time(),
        mut members in vec(member(), 0..4),
    ) -> GroupMetadata {
        for member in &mut members {
            member.instance_id = member.instance_id.take().filter(|_| version >= 3);
            member.rebalance_timeout_ms = member.rebalance_timeout_ms.filter(|_| version >= 1);
        }
        let state_timestamp = state_timestamp.filter(|_| version >= 2);
        GroupMetadata { version, protocol_type, generation, protocol, leader, state_timestamp, members }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn keys_survive_the_round_trip(version in 0..=1_i16, group in text(), topic in text(), partition: i32) {
        let key = offset_key(version, &group, &topic, partition);
        let value = RecordValue::Tombstone;
        let partition = TopicPartition::new(topic, partition);
        let expected = OffsetsRecord::Offset { group: group.clone(), partition, value };
        prop_assert_eq!(decode(Some(&key), None), expected);
        let value = RecordValue::Tombstone;
        prop_assert_eq!(decode(Some(&group_key(2, &group)), None), OffsetsRecord::Group { group, value });
    }

    #[test]
    fn offsets_of_every_version_survive_the_round_trip(committed in committed_offset(), extra in blob()) {
        let mut bytes = encode_offset(&committed, Order::Right);
        prop_assert_eq!(offset_value(&bytes), RecordValue::Read(committed.clone()));
        for end in 0..bytes.len() {
            prop_assert!(matches!(offset_value(&bytes[..end]), RecordValue::Damaged { .. }), "cut at {}", end);
        }
        bytes.extend(extra);
        prop_assert_eq!(offset_value(&bytes), RecordValue::Read(committed), "with more fields");
    }

    #[test]
    fn groups_of_every_version_survive_the_round_trip(group in group_metadata(), extra in blob()) {
        let mut bytes = encode_group(&group);
        prop_assert_eq!(group_value(&bytes), RecordValue::Read(group.clone()));
        for end in 0..bytes.len() {
            prop_assert!(matches!(group_value(&bytes[..end]), RecordValue::Damaged { .. }), "cut at {}", end);
        }
        bytes.extend(extra);
        prop_assert_eq!(group_value(&bytes), RecordValue::Read(group), "with more fields");
    }

    #[test]
    fn what_the_judge_assigns_we_read(
        version in 0..=3_i16,
        topics in vec((text(), vec(any::<i32>(), 0..5)), 0..4),
        user_data in of(blob()),
    ) {
        let judged = ConsumerProtocolAssignment::default()
            .with_assigned_partitions(topics.iter().map(|(topic, partitions)| {
                let topic = TopicName(StrBytes::from_string(topic.to_string()));
                JudgeTopic::default().with_topic(topic).with_partitions(partitions.clone())
            }).collect())
            .with_user_data(user_data.clone());
        let mut bytes = version.to_be_bytes().to_vec();
        judged.encode(&mut bytes, version).expect("the judge encodes");
        prop_assert_eq!(&bytes, &encode_assignment(version, &topics, user_data.as_deref()));

        let each = |(topic, partitions): &(Arc<str>, Vec<i32>)| {
            let topic = topic.clone();
            partitions.clone().into_iter().map(move |number| TopicPartition::new(topic.clone(), number))
        };
        let partitions = topics.iter().flat_map(each).collect();
        let expected = ConsumerAssignment { version, partitions, user_data };
        prop_assert_eq!(ConsumerAssignment::decode(bytes.clone().into()), Ok(expected));
        for end in 1..bytes.len() {
            prop_assert!(ConsumerAssignment::decode(bytes[..end].to_vec().into()).is_err(), "cut at {}", end);
        }
    }
}
