//! Every codec against the crate `kafka-protocol`: what it writes we read, what we write it reads.

mod consumer_groups;
mod groups;
mod groups_golden;
mod leader_epoch;
mod metadata;
mod offset_delete;
mod produce;
#[cfg(all(feature = "gzip", feature = "lz4", feature = "snappy", feature = "zstd"))]
mod records;
mod requests;
mod responses;
mod sasl;

use super::frame::{Request, Response, encode_request, split_response};
use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::messages::{GroupId, RequestHeader, ResponseHeader, TopicName};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

fn text() -> impl Strategy<Value = Arc<str>> {
    "[a-zäß0-9._-]{0,12}".prop_map(Arc::from)
}

fn judge_text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn judge_topic(text: &str) -> TopicName {
    TopicName(judge_text(text))
}

fn judge_group(text: &str) -> GroupId {
    GroupId(judge_text(text))
}

/// What follows the correlation id of a response.
fn judge_encode<J: Encodable + HeaderVersion>(message: &J, version: i16) -> Bytes {
    let mut out = BytesMut::new();
    let header = ResponseHeader::default().with_unknown_tagged_fields(judge_tags());
    let header = if J::header_version(version) == 0 { ResponseHeader::default() } else { header };
    header.encode(&mut out, J::header_version(version)).expect("the judge encodes the header");
    message.encode(&mut out, version).expect("the judge encodes the body");
    out.freeze().slice(4..)
}

/// Tagged fields that nobody knows.
fn judge_tags() -> BTreeMap<i32, Bytes> {
    BTreeMap::from([(70, Bytes::from_static(b"new")), (71, Bytes::new()), (300, Bytes::from(vec![9; 200]))])
}

/// Encodes our request as a whole frame, checks its header, and lets the judge decode the body.
fn judge_decode<J: Decodable + HeaderVersion>(request: &impl Request, version: i16) -> J {
    let frame = encode_request(request, version, 77, "troupe").expect("we encode");
    let (size, mut body) = split_response(frame.freeze()).expect("a size prefix");
    assert_eq!(size as usize, body.len());
    let header =
        RequestHeader::decode(&mut body, J::header_version(version)).expect("the judge reads the header");
    assert_eq!((header.correlation_id, header.request_api_version), (77, version));
    assert_eq!(header.client_id.as_deref(), Some("troupe"));
    let judged = J::decode(&mut body, version).expect("the judge reads the body");
    assert!(!body.has_remaining(), "the judge leaves {} bytes", body.remaining());
    judged
}

/// Every cut of a valid body is an error, and never a panic.
fn cuts_fail<R: Response + std::fmt::Debug>(version: i16, body: &Bytes) {
    for end in 0..body.len() {
        let cut = R::decode(version, body.slice(..end));
        assert!(cut.is_err(), "{end} of {} bytes decode to {cut:?}", body.len());
    }
}
