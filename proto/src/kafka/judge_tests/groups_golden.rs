//! What a broker of 4.1.1 has answered, byte by byte; of ConsumerGroupDescribe the judge knows version 0 alone.

use super::cuts_fail;
use crate::TopicPartition;
use crate::kafka::consumer_group_describe::ConsumerGroupDescribeResponse;
use crate::kafka::describe_groups::DescribeGroupsResponse;
use crate::kafka::error_code::ErrorCode;
use crate::kafka::frame::Response;
use crate::kafka::list_groups::ListGroupsResponse;
use crate::kafka::offsets_topic::ConsumerAssignment;
use bytes::Bytes;

/// A group that only has offsets, one of the new protocol, a classic one.
const LIST_GROUPS_5: &str = "00000000000000040d61646d696e2d73746f7265640106456d70747908636c6173736963000f61646d696e2d636f6e73 \
         756d657209636f6e73756d657207537461626c6509636f6e73756d6572000e61646d696e2d636c617373696309636f6e \
         73756d657207537461626c6508636c61737369630000";
/// A member with a `group.instance.id` and two partitions.
const DESCRIBE_GROUPS_4: &str = "00000000000000010000000d61646d696e2d636c61737369630006537461626c650008636f6e73756d6572000572616e \
         67650000000100286f6e652d34633638303034352d323930662d343238332d616361622d333366376365633763323737 \
         00036f6e6500046a617661000a2f3132372e302e302e3100000023000300000001000d61646d696e2d636c6173736963 \
         ffffffff00000000ffffffffffff00000025000300000001000d61646d696e2d636c6173736963000000020000000000 \
         000001ffffffff80000000";
/// The same by the new protocol.
const CONSUMER_GROUP_DESCRIBE_1: &str = "0000000000020000000f61646d696e2d636f6e73756d657207537461626c65000000010000000108756e69666f726d02 \
         177235535141316d305232326836447a36536e622d6167046f6e650000000001056a6176610b2f3132372e302e302e31 \
         020f61646d696e2d636f6e73756d65720102728d8e3bbfa646f7967a026a941a3af10f61646d696e2d636f6e73756d65 \
         72030000000000000001000002728d8e3bbfa646f7967a026a941a3af10f61646d696e2d636f6e73756d657203000000 \
         000000000100000100800000000000";
/// There is no such group.
const CONSUMER_GROUP_DESCRIBE_1_OF_NONE: &str = "00000000000200452047726f75702061646d696e2d636f6e73756d6572206e6f7420666f756e642e0f61646d696e2d63 \
         6f6e73756d65720100000000000000000101800000000000";

fn unhex(hex: &str) -> Bytes {
    let digits: Vec<u8> =
        hex.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn decoded<R: Response + std::fmt::Debug>(version: i16, hex: &str) -> R {
    let body = unhex(hex);
    cuts_fail::<R>(version, &body);
    R::decode(version, body).expect("what a broker has written")
}

fn two(topic: &str) -> Vec<TopicPartition> {
    vec![TopicPartition::new(topic, 0), TopicPartition::new(topic, 1)]
}

#[test]
fn a_list_of_groups_of_4_1_1_tells_states_and_types() {
    let list: ListGroupsResponse = decoded(5, LIST_GROUPS_5);
    let groups = list.groups.iter().map(|it| {
        [&*it.group, &*it.protocol_type, it.state.as_deref().unwrap(), it.group_type.as_deref().unwrap()]
    });
    let expected = [
        ["admin-stored", "", "Empty", "classic"],
        ["admin-consumer", "consumer", "Stable", "consumer"],
        ["admin-classic", "consumer", "Stable", "classic"],
    ];
    assert!(groups.eq(expected), "{list:?}");
}

#[test]
fn a_classic_group_of_4_1_1_tells_its_member() {
    let mut answer: DescribeGroupsResponse = decoded(4, DESCRIBE_GROUPS_4);
    let mut group = answer.groups.remove(0);
    assert_eq!([&*group.group, &*group.state, &*group.protocol], ["admin-classic", "Stable", "range"]);
    let member = group.members.remove(0);
    assert_eq!((member.instance.as_deref(), &*member.client_host), (Some("one"), "/127.0.0.1"));
    let assignment = ConsumerAssignment::decode(member.assignment).expect("a consumer's");
    assert_eq!(assignment.partitions, two("admin-classic"));
}

#[test]
fn a_group_of_the_new_protocol_of_4_1_1_tells_its_member_in_version_1() {
    let mut answer: ConsumerGroupDescribeResponse = decoded(1, CONSUMER_GROUP_DESCRIBE_1);
    let mut group = answer.groups.remove(0);
    assert_eq!([&*group.group, &*group.state, &*group.assignor], ["admin-consumer", "Stable", "uniform"]);
    let member = group.members.remove(0);
    assert_eq!((member.instance.as_deref(), &*member.client_id), (Some("one"), "java"));
    assert_eq!((member.partitions, member.target), (two("admin-consumer"), two("admin-consumer")));
}

#[test]
fn a_group_that_is_not_there_is_told_by_its_code_and_in_words() {
    let answer: ConsumerGroupDescribeResponse = decoded(1, CONSUMER_GROUP_DESCRIBE_1_OF_NONE);
    let group = &answer.groups[0];
    assert_eq!(group.error, ErrorCode::GroupIdNotFound);
    assert_eq!(group.message.as_deref(), Some("Group admin-consumer not found."));
}
