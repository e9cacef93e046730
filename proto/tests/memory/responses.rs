use crate::samples::bodies;
use crate::{SLACK, alone, arbitrary, changed, peak_of};
use bytes::Bytes;
use kafka_troupe_proto::kafka::api_versions::ApiVersionsRequest;
use kafka_troupe_proto::kafka::consumer_group_describe::ConsumerGroupDescribeRequest;
use kafka_troupe_proto::kafka::delete_groups::DeleteGroupsRequest;
use kafka_troupe_proto::kafka::describe_groups::DescribeGroupsRequest;
use kafka_troupe_proto::kafka::fetch::{FetchDecoder, FetchPart, FetchRequest};
use kafka_troupe_proto::kafka::find_coordinator::FindCoordinatorRequest;
use kafka_troupe_proto::kafka::frame::{ApiKey, Request, Response};
use kafka_troupe_proto::kafka::list_groups::ListGroupsRequest;
use kafka_troupe_proto::kafka::list_offsets::ListOffsetsRequest;
use kafka_troupe_proto::kafka::metadata::MetadataRequest;
use kafka_troupe_proto::kafka::offset_commit::OffsetCommitRequest;
use kafka_troupe_proto::kafka::offset_delete::OffsetDeleteRequest;
use kafka_troupe_proto::kafka::offset_fetch::OffsetFetchRequest;
use kafka_troupe_proto::kafka::offset_for_leader_epoch::OffsetForLeaderEpochRequest;
use kafka_troupe_proto::kafka::produce::ProduceRequest;
use kafka_troupe_proto::kafka::sasl::{SaslAuthenticateRequest, SaslHandshakeRequest};

/// The stated limit: a decoded response, while it is built, takes at most this much per byte of its frame.
const PER_BYTE: usize = 24;

/// One API in one version; decodes a body and says whether that went well.
struct Decoder {
    api: ApiKey,
    version: i16,
    decode: fn(i16, Bytes) -> bool,
}

fn of<R: Request>() -> impl Iterator<Item = Decoder> {
    (R::VERSIONS.min..=R::VERSIONS.max).map(|version| Decoder {
        api: R::API,
        version,
        decode: |version, body| std::hint::black_box(R::Response::decode(version, body)).is_ok(),
    })
}

fn decoders() -> impl Iterator<Item = Decoder> {
    of::<FetchRequest>()
        .chain(of::<ListOffsetsRequest>())
        .chain(of::<MetadataRequest>())
        .chain(of::<OffsetCommitRequest>())
        .chain(of::<OffsetFetchRequest>())
        .chain(of::<FindCoordinatorRequest>())
        .chain(of::<ApiVersionsRequest>())
        .chain(of::<OffsetForLeaderEpochRequest>())
        .chain(of::<ListGroupsRequest>())
        .chain(of::<DescribeGroupsRequest>())
        .chain(of::<DeleteGroupsRequest>())
        .chain(of::<OffsetDeleteRequest>())
        .chain(of::<ConsumerGroupDescribeRequest>())
        .chain(of::<SaslHandshakeRequest>())
        .chain(of::<SaslAuthenticateRequest>())
        .chain(of::<ProduceRequest>())
}

fn stays_within(decoder: &Decoder, body: Vec<u8>, what: &dyn std::fmt::Display) -> bool {
    let (limit, body) = (PER_BYTE * body.len() + SLACK, Bytes::from(body));
    let mut decoded = false;
    let peak = peak_of(|| decoded = (decoder.decode)(decoder.version, body));
    let Decoder { api, version, .. } = decoder;
    assert!(peak <= limit, "{api:?} {version}, {what}: took {peak} of {limit} bytes");
    decoded
}

#[test]
fn every_response_decoder_bounds_its_memory_on_changed_bytes() {
    alone(|| {
        for decoder in decoders() {
            let valid = bodies(decoder.api, decoder.version, 2);
            assert!(stays_within(&decoder, valid.clone(), &"as it is"), "{:?} is not valid", decoder.api);
            for (at, body) in changed(&valid) {
                stays_within(&decoder, body, &format_args!("byte {at} changed"));
            }
        }
    });
}

#[test]
fn every_response_decoder_bounds_its_memory_on_arbitrary_bytes() {
    alone(|| {
        // and in versions that we do not speak
        let beside = |it: Decoder| [-1, 0, 1].map(|step| Decoder { version: it.version + step, ..it });
        for decoder in decoders().flat_map(beside) {
            for body in arbitrary(500) {
                stays_within(&decoder, body, &"arbitrary");
            }
        }
    });
}

#[test]
fn every_response_decoder_bounds_its_memory_on_many_small_entries() {
    alone(|| {
        for decoder in decoders() {
            let valid = bodies(decoder.api, decoder.version, 3000);
            assert!(stays_within(&decoder, valid, &"many small entries"));
        }
    });
}

/// Feeds `body` in two pieces; the walk ends with an error, at the end, or for want of bytes.
fn walk(version: i16, body: &[u8], split: usize) {
    let mut decoder = FetchDecoder::new(version, body.len()).expect("a version of ours");
    let (mut at, mut arrived, mut steps) = (0, split, 0);
    loop {
        steps += 1;
        assert!(steps <= body.len() + 3, "an endless walk");
        match decoder.next(&body[at.min(arrived)..arrived]) {
            Err(_) | Ok(Some((FetchPart::End, _))) => return,
            Ok(None) if arrived == body.len() => return,
            Ok(None) => arrived = body.len(),
            Ok(Some((part, consumed))) => {
                at += consumed;
                if let FetchPart::Partition { records_size, .. } = part {
                    at += records_size;
                    assert!(at <= body.len(), "records beyond the body");
                    arrived = arrived.max(at);
                }
            }
        }
    }
}

#[test]
fn a_fetch_response_that_arrives_in_pieces_bounds_its_memory() {
    alone(|| {
        for version in FetchRequest::VERSIONS.min..=FetchRequest::VERSIONS.max {
            let valid = bodies(ApiKey::Fetch, version, 2);
            let all = changed(&valid).map(|(_, body)| body).chain(arbitrary(300));
            for (index, body) in all.enumerate() {
                let split = index % (body.len() + 1);
                let peak = peak_of(|| walk(version, &body, split));
                assert!(peak <= PER_BYTE * body.len() + SLACK, "version {version}: took {peak} bytes");
            }
        }
    });
}
