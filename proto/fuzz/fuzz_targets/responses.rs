#![no_main]
//! A response of any API in any version of ours, flexible ones among them; `fetch_response` looks closer at one.

use bytes::Bytes;
use kafka_troupe_proto::kafka::api_versions::ApiVersionsRequest;
use kafka_troupe_proto::kafka::consumer_group_describe::ConsumerGroupDescribeRequest;
use kafka_troupe_proto::kafka::delete_groups::DeleteGroupsRequest;
use kafka_troupe_proto::kafka::describe_groups::DescribeGroupsRequest;
use kafka_troupe_proto::kafka::fetch::FetchRequest;
use kafka_troupe_proto::kafka::find_coordinator::FindCoordinatorRequest;
use kafka_troupe_proto::kafka::frame::{Request, Response};
use kafka_troupe_proto::kafka::list_groups::ListGroupsRequest;
use kafka_troupe_proto::kafka::list_offsets::ListOffsetsRequest;
use kafka_troupe_proto::kafka::metadata::MetadataRequest;
use kafka_troupe_proto::kafka::offset_commit::OffsetCommitRequest;
use kafka_troupe_proto::kafka::offset_delete::OffsetDeleteRequest;
use kafka_troupe_proto::kafka::offset_fetch::OffsetFetchRequest;
use kafka_troupe_proto::kafka::offset_for_leader_epoch::OffsetForLeaderEpochRequest;
use kafka_troupe_proto::kafka::produce::ProduceRequest;
use kafka_troupe_proto::kafka::sasl::{SaslAuthenticateRequest, SaslHandshakeRequest};
use libfuzzer_sys::fuzz_target;

const DECODERS: [fn(u8, Bytes); 16] = [
    decode::<ApiVersionsRequest>,
    decode::<ConsumerGroupDescribeRequest>,
    decode::<DeleteGroupsRequest>,
    decode::<DescribeGroupsRequest>,
    decode::<FetchRequest>,
    decode::<FindCoordinatorRequest>,
    decode::<ListGroupsRequest>,
    decode::<ListOffsetsRequest>,
    decode::<MetadataRequest>,
    decode::<OffsetCommitRequest>,
    decode::<OffsetDeleteRequest>,
    decode::<OffsetFetchRequest>,
    decode::<OffsetForLeaderEpochRequest>,
    decode::<ProduceRequest>,
    decode::<SaslAuthenticateRequest>,
    decode::<SaslHandshakeRequest>,
];

fn decode<R: Request>(version: u8, body: Bytes) {
    let (min, max) = (R::VERSIONS.min, R::VERSIONS.max);
    let _ = R::Response::decode(min + i16::from(version) % (max - min + 1), body);
}

fuzz_target!(|input: (u8, u8, Vec<u8>)| {
    let (api, version, body) = input;
    DECODERS[usize::from(api) % DECODERS.len()](version, Bytes::from(body));
});
