use super::{cuts_fail, judge_decode, judge_encode, judge_group, judge_tags, judge_text, text};
use crate::kafka::delete_groups::{DeleteGroupsRequest, DeleteGroupsResponse};
use crate::kafka::describe_groups::{
    DescribeGroupsRequest, DescribeGroupsResponse, DescribedGroup, DescribedMember,
};
use crate::kafka::frame::{Request, Response};
use crate::kafka::list_groups::{ListGroupsRequest, ListGroupsResponse, ListedGroup};
use bytes::Bytes;
use kafka_protocol::messages::{self as judge, GroupId};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Tagged fields that nobody knows, where a version has any.
fn tags<R: Request>(version: i16) -> BTreeMap<i32, Bytes> {
    if version >= R::FLEXIBLE_FROM { judge_tags() } else { BTreeMap::new() }
}

fn names(groups: &[GroupId]) -> Vec<Arc<str>> {
    groups.iter().map(|group| Arc::from(group.0.as_str())).collect()
}

fn member() -> impl Strategy<Value = DescribedMember> {
    let bytes = || vec(any::<u8>(), 0..20).prop_map(Bytes::from);
    (text(), option::of(text()), text(), text(), bytes(), bytes()).prop_map(
        |(member, instance, client_id, client_host, metadata, assignment)| DescribedMember {
            member,
            instance,
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

fn judge_described(version: i16, group: &DescribedGroup) -> judge::describe_groups_response::DescribedGroup {
    let tags = tags::<DescribeGroupsRequest>(version);
    let members = group.members.iter().map(|member| {
        judge::describe_groups_response::DescribedGroupMember::default()
            .with_member_id(judge_text(&member.member))
            .with_group_instance_id(member.instance.as_deref().map(judge_text).filter(|_| version >= 4))
            .with_client_id(judge_text(&member.client_id))
            .with_client_host(judge_text(&member.client_host))
            .with_member_metadata(member.metadata.clone())
            .with_member_assignment(member.assignment.clone())
            .with_unknown_tagged_fields(tags.clone())
    });
    let group = judge::describe_groups_response::DescribedGroup::default()
        .with_error_code(group.error.code())
        .with_group_id(judge_group(&group.group))
        .with_group_state(judge_text(&group.state))
        .with_protocol_type(judge_text(&group.protocol_type))
        .with_protocol_data(judge_text(&group.protocol))
        .with_members(members.collect())
        .with_unknown_tagged_fields(tags.clone());
    if version >= 3 { group.with_authorized_operations(7) } else { group }
}

fn listed() -> impl Strategy<Value = ListedGroup> {
    (text(), text(), text(), text()).prop_map(|(group, protocol_type, state, group_type)| ListedGroup {
        group,
        protocol_type,
        state: Some(state),
        group_type: Some(group_type),
    })
}

fn judge_listed(version: i16, group: &ListedGroup) -> judge::list_groups_response::ListedGroup {
    let text = |text: &Option<Arc<str>>| judge_text(text.as_deref().unwrap_or_default());
    judge::list_groups_response::ListedGroup::default()
        .with_group_id(judge_group(&group.group))
        .with_protocol_type(judge_text(&group.protocol_type))
        .with_group_state(text(&group.state))
        .with_group_type(text(&group.group_type))
        .with_unknown_tagged_fields(tags::<ListGroupsRequest>(version))
}

#[test]
fn list_groups_request() {
    for version in 0..=5 {
        let judged: judge::ListGroupsRequest = judge_decode(&ListGroupsRequest, version);
        assert_eq!(judged, judge::ListGroupsRequest::default(), "no filter");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn list_groups_response(
        version in 0..=5_i16, throttle_ms: i32, error: i16, groups in vec(listed(), 0..5),
    ) {
        let throttle_ms = if version >= 1 { throttle_ms } else { 0 };
        let groups: Vec<_> = groups.into_iter().map(|group| ListedGroup {
            state: group.state.filter(|_| version >= 4),
            group_type: group.group_type.filter(|_| version >= 5),
            ..group
        }).collect();
        let encoded = judge::ListGroupsResponse::default()
            .with_throttle_time_ms(throttle_ms)
            .with_error_code(error)
            .with_groups(groups.iter().map(|group| judge_listed(version, group)).collect())
            .with_unknown_tagged_fields(tags::<ListGroupsRequest>(version));
        let body = judge_encode(&encoded, version);
        let expected = ListGroupsResponse { throttle_ms, error: error.into(), groups };
        prop_assert_eq!(ListGroupsResponse::decode(version, body.clone()).expect("we decode"), expected);
        cuts_fail::<ListGroupsResponse>(version, &body);
    }

    #[test]
    fn describe_groups_request(version in 0..=4_i16, groups in vec(text(), 0..5)) {
        let request = DescribeGroupsRequest { groups };
        let judged: judge::DescribeGroupsRequest = judge_decode(&request, version);
        prop_assert!(!judged.include_authorized_operations);
        prop_assert_eq!(names(&judged.groups), request.groups);
    }

    #[test]
    fn describe_groups_response(
        version in 0..=4_i16, throttle_ms: i32, mut groups in vec(group(), 0..4),
    ) {
        let throttle_ms = if version >= 1 { throttle_ms } else { 0 };
        if version < 4 {
            groups.iter_mut().flat_map(|group| &mut group.members).for_each(|it| it.instance = None);
        }
        let encoded = judge::DescribeGroupsResponse::default()
            .with_throttle_time_ms(throttle_ms)
            .with_groups(groups.iter().map(|group| judge_described(version, group)).collect())
            .with_unknown_tagged_fields(tags::<DescribeGroupsRequest>(version));
        let body = judge_encode(&encoded, version);
        let decoded = DescribeGroupsResponse::decode(version, body.clone()).expect("we decode");
        prop_assert_eq!(decoded, DescribeGroupsResponse { throttle_ms, groups });
        cuts_fail::<DescribeGroupsResponse>(version, &body);
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
