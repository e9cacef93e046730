use super::{cuts_fail, judge_decode, judge_encode, judge_group, judge_text, text};
use crate::kafka::delete_groups::{DeleteGroupsRequest, DeleteGroupsResponse};
use crate::kafka::describe_groups::{
    DescribeGroupsRequest, DescribeGroupsResponse, DescribedGroup, DescribedMember,
};
use crate::kafka::frame::Response;
use crate::kafka::list_groups::{ListGroupsRequest, ListGroupsResponse, ListedGroup};
use bytes::Bytes;
use kafka_protocol::messages::{self as judge, GroupId};
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;

fn names(groups: &[GroupId]) -> Vec<Arc<str>> {
    groups.iter().map(|group| Arc::from(group.0.as_str())).collect()
}

fn member() -> impl Strategy<Value = DescribedMember> {
    let bytes = || vec(any::<u8>(), 0..20).prop_map(Bytes::from);
    (text(), text(), text(), bytes(), bytes()).prop_map(
        |(member, client_id, client_host, metadata, assignment)| DescribedMember {
            member,
            client_id,
            client_host,
            metadata,
            assignment,
        },
    )
}

fn group() -> impl Strategy<Value = DescribedGroup> {
    (any::<i16>(), text(), text(), text(), text(), vec(member(), 0..3)).prop_map(
        |(error, group, state, protocol_type, protocol, members)| DescribedGroup {
            error: error.into(),
            group,
            state,
            protocol_type,
            protocol,
            members,
        },
    )
}

fn judge_described(group: &DescribedGroup) -> judge::describe_groups_response::DescribedGroup {
    let members = group.members.iter().map(|member| {
        judge::describe_groups_response::DescribedGroupMember::default()
            .with_member_id(judge_text(&member.member))
            .with_client_id(judge_text(&member.client_id))
            .with_client_host(judge_text(&member.client_host))
            .with_member_metadata(member.metadata.clone())
            .with_member_assignment(member.assignment.clone())
    });
    judge::describe_groups_response::DescribedGroup::default()
        .with_error_code(group.error.code())
        .with_group_id(judge_group(&group.group))
        .with_group_state(judge_text(&group.state))
        .with_protocol_type(judge_text(&group.protocol_type))
        .with_protocol_data(judge_text(&group.protocol))
        .with_members(members.collect())
}

#[test]
fn list_groups_request() {
    let _: judge::ListGroupsRequest = judge_decode(&ListGroupsRequest, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn list_groups_response(error: i16, groups in vec((text(), text()), 0..5)) {
        let encoded = judge::ListGroupsResponse::default().with_error_code(error).with_groups(
            groups.iter().map(|(group, protocol_type)| {
                judge::list_groups_response::ListedGroup::default()
                    .with_group_id(judge_group(group))
                    .with_protocol_type(judge_text(protocol_type))
            }).collect(),
        );
        let body = judge_encode(&encoded, 0);
        let groups = groups.into_iter().map(|(group, protocol_type)| ListedGroup { group, protocol_type });
        let expected = ListGroupsResponse { error: error.into(), groups: groups.collect() };
        prop_assert_eq!(ListGroupsResponse::decode(0, body.clone()).expect("we decode"), expected);
        cuts_fail::<ListGroupsResponse>(0, &body);
    }

    #[test]
    fn describe_groups_request(groups in vec(text(), 0..5)) {
        let request = DescribeGroupsRequest { groups };
        let judged: judge::DescribeGroupsRequest = judge_decode(&request, 0);
        prop_assert_eq!(names(&judged.groups), request.groups);
    }

    #[test]
    fn describe_groups_response(groups in vec(group(), 0..4)) {
        let encoded = judge::DescribeGroupsResponse::default()
            .with_groups(groups.iter().map(judge_described).collect());
        let body = judge_encode(&encoded, 0);
        let decoded = DescribeGroupsResponse::decode(0, body.clone()).expect("we decode");
        prop_assert_eq!(decoded.groups, groups);
        cuts_fail::<DescribeGroupsResponse>(0, &body);
    }

    #[test]
    fn delete_groups_request(groups in vec(text(), 0..5)) {
        let request = DeleteGroupsRequest { groups };
        let judged: judge::DeleteGroupsRequest = judge_decode(&request, 0);
        prop_assert_eq!(names(&judged.groups_names), request.groups);
    }

    #[test]
    fn delete_groups_response(throttle_ms: i32, results in vec((text(), any::<i16>()), 0..5)) {
        let encoded = judge::DeleteGroupsResponse::default().with_throttle_time_ms(throttle_ms).with_results(
            results.iter().map(|(group, error)| {
                judge::delete_groups_response::DeletableGroupResult::default()
                    .with_group_id(judge_group(group))
                    .with_error_code(*error)
            }).collect(),
        );
        let body = judge_encode(&encoded, 0);
        let results = results.into_iter().map(|(group, error)| (group, error.into())).collect();
        let expected = DeleteGroupsResponse { throttle_ms, results };
        prop_assert_eq!(DeleteGroupsResponse::decode(0, body.clone()).expect("we decode"), expected);
        cuts_fail::<DeleteGroupsResponse>(0, &body);
    }
}
