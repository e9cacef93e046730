//! Every codec against the crate `kafka-protocol`: what it writes we read, what we write it reads.

#[cfg(all(feature = "gzip", feature = "lz4", feature = "snappy", feature = "zstd"))]
mod records;
mod requests;
mod responses;

use super::frame::{Request, encode_request, split_response};
use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::messages::{RequestHeader, TopicName};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use proptest::prelude::*;
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

fn judge_encode(message: &impl Encodable, version: i16) -> Bytes {
    let mut out = BytesMut::new();
    message.encode(&mut out, version).expect("the judge encodes");
    out.freeze()
}

/// Encodes our request as a whole frame, checks its header, and lets the judge decode the body.
fn judge_decode<J: Decodable>(request: &impl Request, version: i16) -> J {
    let frame = encode_request(request, version, 77, "troupe").expect("we encode");
    let (size, mut body) = split_response(frame.freeze()).expect("a size prefix");
    assert_eq!(size as usize, body.len());
    let header = RequestHeader::decode(&mut body, 1).expect("the judge reads the header");
    assert_eq!((header.correlation_id, header.request_api_version), (77, version));
    assert_eq!(header.client_id.as_deref(), Some("troupe"));
    let judged = J::decode(&mut body, version).expect("the judge reads the body");
    assert!(!body.has_remaining(), "the judge leaves {} bytes", body.remaining());
    judged
}
