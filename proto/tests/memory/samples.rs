//! Valid response bodies, written by the crate `kafka-protocol`, whose arrays all have `count` small entries.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Encodable, HeaderVersion, StrBytes};
use kafka_troupe_proto::kafka::frame::ApiKey;

/// What follows the correlation id.
pub fn bodies(api: ApiKey, version: i16, count: usize) -> Vec<u8> {
    match api {
        ApiKey::Fetch => encode(&fetch(version, count), version),
        ApiKey::ListOffsets => encode(&list_offsets(version, count), version),
        ApiKey::Metadata => encode(&metadata(version, count), version),
        ApiKey::OffsetCommit => encode(&offset_commit(count), version),
        ApiKey::OffsetFetch => encode(&offset_fetch(count), version),
        ApiKey::FindCoordinator => encode(&FindCoordinatorResponse::default().with_host(text()), version),
        ApiKey::ApiVersions => {
            let keys = (0..count).map(|api| {
                api_versions_response::ApiVersion::default().with_api_key(api as i16).with_max_version(1)
            });
            encode(&ApiVersionsResponse::default().with_api_keys(keys.collect()), version)
        }
        ApiKey::OffsetForLeaderEpoch => encode(&leader_epoch(count), version),
        ApiKey::ListGroups => {
            encode(&ListGroupsResponse::default().with_groups(vec![Default::default(); count]), version)
        }
        ApiKey::DescribeGroups => encode(&describe_groups(count), version),
        ApiKey::DeleteGroups => {
            encode(&DeleteGroupsResponse::default().with_results(vec![Default::default(); count]), version)
        }
        ApiKey::OffsetDelete => encode(&offset_delete(count), version),
        ApiKey::ConsumerGroupDescribe => consumer_group_describe(version, count),
        ApiKey::SaslHandshake => encode(
            &SaslHandshakeResponse::default().with_mechanisms(vec![StrBytes::default(); count]),
            version,
        ),
        ApiKey::SaslAuthenticate => {
            let response = SaslAuthenticateResponse::default().with_auth_bytes(Bytes::from(vec![7; count]));
            encode(&response.with_error_message(Some(text())), version)
        }
        ApiKey::Produce => encode(&produce(count), version),
        other => panic!("no sample of {other:?}"),
    }
}

fn encode<J: Encodable + HeaderVersion>(response: &J, version: i16) -> Vec<u8> {
    let mut out = BytesMut::new();
    ResponseHeader::default().encode(&mut out, J::header_version(version)).expect("a header");
    response.encode(&mut out, version).expect("a body");
    out[4..].to_vec()
}

fn text() -> StrBytes {
    StrBytes::from_static_str("host")
}

/// `count` empty topics, and one of `count` partitions.
fn one_full<T: Clone>(empty: T, full: T, count: usize) -> Vec<T> {
    let mut all = vec![empty; count];
    all.push(full);
    all
}

fn fetch(version: i16, count: usize) -> FetchResponse {
    use fetch_response::{AbortedTransaction, FetchableTopicResponse, PartitionData};
    let partition = PartitionData::default().with_records(Some(Bytes::new()));
    let aborted = if version >= 4 { vec![AbortedTransaction::default(); count] } else { Vec::new() };
    let last = PartitionData::default()
        .with_aborted_transactions(Some(aborted))
        .with_records(Some(Bytes::from(vec![0; 2 * count])));
    let full = FetchableTopicResponse::default()
        .with_topic(TopicName(text()))
        .with_partitions(one_full(partition, last, count));
    FetchResponse::default().with_responses(one_full(Default::default(), full, count))
}

fn list_offsets(version: i16, count: usize) -> ListOffsetsResponse {
    use list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
    let old = if version == 0 { vec![5; count] } else { Vec::new() };
    let last = ListOffsetsPartitionResponse::default().with_old_style_offsets(old);
    let full = ListOffsetsTopicResponse::default().with_partitions(one_full(Default::default(), last, count));
    ListOffsetsResponse::default().with_topics(one_full(Default::default(), full, count))
}

fn metadata(version: i16, count: usize) -> MetadataResponse {
    use metadata_response::{MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic};
    let last = MetadataResponsePartition::default().with_isr_nodes(vec![BrokerId(1); count]);
    // a name may be null only from version 12
    let named = MetadataResponseTopic::default().with_name(Some(TopicName::default()));
    let full = named.clone().with_partitions(one_full(Default::default(), last, count));
    let empty = if version >= 12 { MetadataResponseTopic::default().with_name(None) } else { named };
    MetadataResponse::default()
        .with_brokers(vec![MetadataResponseBroker::default(); count])
        .with_topics(one_full(empty, full, count))
}

fn offset_commit(count: usize) -> OffsetCommitResponse {
    use offset_commit_response::OffsetCommitResponseTopic;
    let full = OffsetCommitResponseTopic::default().with_partitions(vec![Default::default(); count]);
    OffsetCommitResponse::default().with_topics(one_full(Default::default(), full, count))
}

fn offset_delete(count: usize) -> OffsetDeleteResponse {
    use offset_delete_response::OffsetDeleteResponseTopic;
    let full = OffsetDeleteResponseTopic::default().with_partitions(vec![Default::default(); count]);
    OffsetDeleteResponse::default().with_topics(one_full(Default::default(), full, count))
}

fn offset_fetch(count: usize) -> OffsetFetchResponse {
    use offset_fetch_response::OffsetFetchResponseTopic;
    let full = OffsetFetchResponseTopic::default().with_partitions(vec![Default::default(); count]);
    OffsetFetchResponse::default().with_topics(one_full(Default::default(), full, count))
}

fn leader_epoch(count: usize) -> OffsetForLeaderEpochResponse {
    use offset_for_leader_epoch_response::OffsetForLeaderTopicResult;
    let full = OffsetForLeaderTopicResult::default().with_partitions(vec![Default::default(); count]);
    OffsetForLeaderEpochResponse::default().with_topics(one_full(Default::default(), full, count))
}

fn describe_groups(count: usize) -> DescribeGroupsResponse {
    use describe_groups_response::DescribedGroup;
    let full = DescribedGroup::default().with_members(vec![Default::default(); count]);
    DescribeGroupsResponse::default().with_groups(one_full(Default::default(), full, count))
}

/// The crate knows no version but 0; version 1 adds a byte to each member.
fn consumer_group_describe(version: i16, count: usize) -> Vec<u8> {
    use consumer_group_describe_response::{Assignment, DescribedGroup, Member, TopicPartitions};
    let topic = TopicPartitions::default().with_partitions(vec![1; count]);
    let assignment = Assignment::default().with_topic_partitions(one_full(Default::default(), topic, count));
    let member = Member::default().with_assignment(assignment);
    let members = if version == 0 { one_full(Default::default(), member, count) } else { Vec::new() };
    let full = DescribedGroup::default().with_members(members);
    let groups = one_full(Default::default(), full, count);
    encode(&ConsumerGroupDescribeResponse::default().with_groups(groups), 0)
}

fn produce(count: usize) -> ProduceResponse {
    use produce_response::TopicProduceResponse;
    let full = TopicProduceResponse::default().with_partition_responses(vec![Default::default(); count]);
    ProduceResponse::default().with_responses(one_full(Default::default(), full, count))
}
