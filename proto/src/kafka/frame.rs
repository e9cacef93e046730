//! Framing: size prefix, request header, correlation id; and the traits that pair a request with its response.

use super::wire::{Reader, WireError, WireProblem, Writer};
use bytes::{Bytes, BytesMut};
use std::fmt;

/// The APIs that this crate speaks, by their wire number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i16)]
#[non_exhaustive]
pub enum ApiKey {
    /// Appends records (dead letters).
    Produce = 0,
    /// Reads record sets.
    Fetch = 1,
    /// Resolves a time, or an end of the log, to an offset.
    ListOffsets = 2,
    /// Brokers, topics and leaders.
    Metadata = 3,
    /// Stores positions in Kafka.
    OffsetCommit = 8,
    /// Reads positions stored in Kafka.
    OffsetFetch = 9,
    /// Finds a group's coordinator.
    FindCoordinator = 10,
    /// Describes groups of Kafka's own group protocol.
    DescribeGroups = 15,
    /// Lists groups of Kafka's own group protocol.
    ListGroups = 16,
    /// Names the SASL mechanism.
    SaslHandshake = 17,
    /// The versions that a broker speaks.
    ApiVersions = 18,
    /// Where a leader's epoch ended: tells a truncated log (KIP-320).
    OffsetForLeaderEpoch = 23,
    /// One step of a SASL exchange.
    SaslAuthenticate = 36,
    /// Deletes empty groups.
    DeleteGroups = 42,
    /// Deletes offsets of a group.
    OffsetDelete = 47,
    /// Describes groups of the new protocol (KIP-848).
    ConsumerGroupDescribe = 69,
}

impl ApiKey {
    /// The number on the wire.
    pub const fn code(self) -> i16 {
        self as i16
    }
}

/// An inclusive range of versions of one API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionRange {
    /// Lowest version.
    pub min: i16,
    /// Highest version.
    pub max: i16,
}

impl VersionRange {
    /// `min` to `max`, both included.
    pub const fn new(min: i16, max: i16) -> Self {
        Self { min, max }
    }

    /// Whether `version` lies in the range.
    pub const fn contains(self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }

    /// The highest version that both ranges hold.
    pub fn highest_common(self, other: Self) -> Option<i16> {
        let version = self.max.min(other.max);
        (version >= self.min.max(other.min)).then_some(version)
    }

    /// An error that names `what`, unless `version` lies in the range.
    pub fn check(self, what: &'static str, version: i16) -> Result<(), WireError> {
        if self.contains(version) {
            return Ok(());
        }
        let problem = WireProblem::Version { version, min: self.min, max: self.max };
        Err(WireError { what, at: 0, problem })
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.min, self.max)
    }
}

/// A request that this crate can send, and the response that answers it.
pub trait Request {
    /// The API.
    const API: ApiKey;
    /// The message's name, for errors.
    const NAME: &'static str;
    /// The versions that `encode` and the response's `decode` know.
    const VERSIONS: VersionRange;
    /// The first flexible version (KIP-482): its header has tagged fields, as has that of its response.
    const FLEXIBLE_FROM: i16 = i16::MAX;
    /// What answers it.
    type Response: Response;

    /// Writes the body in `version`, which lies in [`Self::VERSIONS`].
    fn encode(&self, version: i16, out: &mut Writer);
}

/// A response that this crate can read.
pub trait Response: Sized {
    /// Reads the body of a response (what follows the correlation id) in `version`. In a flexible version it
    /// begins with the header's tagged fields.
    fn decode(version: i16, body: Bytes) -> Result<Self, WireError>;

    /// How long the client is throttled, in ms; 0 where the response does not say.
    fn throttle_ms(&self) -> i32 {
        0
    }
}

/// The header that every request begins with (header version 1; tagged fields follow it in a flexible version).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHeader<'a> {
    /// The API.
    pub api: ApiKey,
    /// Its version.
    pub version: i16,
    /// Echoed by the response.
    pub correlation_id: i32,
    /// Kafka property `client.id`; shows in broker logs, quotas and metrics. At most 32,767 bytes.
    pub client_id: &'a str,
}

impl RequestHeader<'_> {
    /// Writes the header.
    pub fn encode(&self, out: &mut Writer) {
        out.i16(self.api.code());
        out.i16(self.version);
        out.i32(self.correlation_id);
        out.string("client_id", self.client_id);
    }
}

/// Encodes a whole request, size prefix included. Errors when the version is not spoken or a name is too long.
pub fn encode_request<R: Request>(
    request: &R,
    version: i16,
    correlation_id: i32,
    client_id: &str,
) -> Result<BytesMut, WireError> {
    encode_request_into(BytesMut::new(), request, version, correlation_id, client_id)
}

/// Like [`encode_request`], appending to `out`, so that a buffer may be recycled.
pub fn encode_request_into<R: Request>(
    out: BytesMut,
    request: &R,
    version: i16,
    correlation_id: i32,
    client_id: &str,
) -> Result<BytesMut, WireError> {
    R::VERSIONS.check(R::NAME, version)?;
    let mut out = Writer::new(out);
    let start = out.position();
    out.i32(0);
    RequestHeader { api: R::API, version, correlation_id, client_id }.encode(&mut out);
    if version >= R::FLEXIBLE_FROM {
        out.begin_flexible();
        out.no_tagged_fields();
    }
    request.encode(version, &mut out);
    out.close_size(R::NAME, start);
    out.finish()
}

/// Bytes of the size prefix.
pub const SIZE_PREFIX: usize = 4;

/// Reads the size prefix of a response: the bytes that follow it, from 4 (the correlation id) to `limit`.
///
/// A port that speaks TLS or HTTP is told by its first bytes, so that nothing is reserved for its "size".
pub fn response_size(prefix: [u8; SIZE_PREFIX], limit: usize) -> Result<usize, WireError> {
    let size = u32::from_be_bytes(prefix);
    match usize::try_from(size) {
        Ok(size) if (4..=limit).contains(&size) => Ok(size),
        _ => {
            let problem = WireProblem::FrameSize { size, limit, hint: foreign_hint(prefix) };
            Err(WireError { what: "response", at: 0, problem })
        }
    }
}

fn foreign_hint(prefix: [u8; SIZE_PREFIX]) -> &'static str {
    match prefix {
        [0x14..=0x17, 3, ..] => ": not a Kafka reply but TLS; the port wants an encrypted connection",
        [b'H', b'T', b'T', b'P'] => ": not a Kafka reply but HTTP",
        [0, 0, 0, 0..4] => ": too short for a Kafka reply",
        _ => "",
    }
}

/// Splits a response (without its size prefix) into correlation id and body.
pub fn split_response(frame: Bytes) -> Result<(i32, Bytes), WireError> {
    let mut reader = Reader::new(frame);
    let correlation_id = reader.i32("response.correlation_id")?;
    Ok((correlation_id, reader.rest()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_meet_at_the_highest_of_both() {
        let range = VersionRange::new;
        assert_eq!(range(0, 11).highest_common(range(4, 17)), Some(11));
        assert_eq!(range(4, 17).highest_common(range(0, 4)), Some(4));
        assert_eq!(range(0, 3).highest_common(range(4, 17)), None);
        // a broker marks an API that it does not serve with max < min
        assert_eq!(range(0, 3).highest_common(range(0, -1)), None);
    }

    #[test]
    fn a_port_that_is_not_kafka_is_told_by_its_first_bytes() {
        let told = |prefix| response_size(prefix, 100 << 20).map_err(|error| error.to_string());
        assert_eq!(told([0, 0, 0, 4]), Ok(4));
        let tls = told([0x15, 3, 3, 0]).unwrap_err();
        assert!(tls.contains("not a Kafka reply but TLS"), "{tls}");
        let http = told(*b"HTTP").unwrap_err();
        assert!(http.contains("1213486160") && http.contains("HTTP"), "{http}");
        assert!(told([0, 0, 0, 3]).unwrap_err().contains("too short"));
        assert!(told([0x80, 0, 0, 0]).is_err());
        assert!(response_size([0, 0, 1, 0], 255).is_err());
    }

    #[test]
    fn a_response_splits_into_correlation_id_and_body() {
        let split = split_response(Bytes::from_static(&[0, 0, 0, 7, 9]));
        assert_eq!(split, Ok((7, Bytes::from_static(&[9]))));
        assert!(split_response(Bytes::from_static(&[0, 0, 0])).is_err());
    }
}
