//! FindCoordinator 0: the broker that keeps a group's offsets.

use super::error_code::ErrorCode;
use super::frame::{ApiKey, Request, Response, VersionRange};
use super::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use std::sync::Arc;

/// Asks for a group's coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindCoordinatorRequest {
    /// Kafka property `group.id`.
    pub group: Arc<str>,
}

/// The coordinator; id, host and port mean something only without error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FindCoordinatorResponse {
    /// Of the look-up.
    pub error: ErrorCode,
    /// Broker id.
    pub id: i32,
    /// Host name or address.
    pub host: Arc<str>,
    /// Port.
    pub port: i32,
}

impl Request for FindCoordinatorRequest {
    const API: ApiKey = ApiKey::FindCoordinator;
    const NAME: &'static str = "FindCoordinatorRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    type Response = FindCoordinatorResponse;

    fn encode(&self, _version: i16, out: &mut Writer) {
        out.string("FindCoordinatorRequest.key", &self.group);
    }
}

impl Response for FindCoordinatorResponse {
    fn decode(version: i16, body: Bytes) -> Result<Self, WireError> {
        FindCoordinatorRequest::VERSIONS.check("FindCoordinatorResponse", version)?;
        let mut r = Reader::new(body);
        let response = Self {
            error: r.i16("FindCoordinatorResponse.error_code")?.into(),
            id: r.i32("FindCoordinatorResponse.node_id")?,
            host: r.string("FindCoordinatorResponse.host")?,
            port: r.i32("FindCoordinatorResponse.port")?,
        };
        r.finish("FindCoordinatorResponse")?;
        Ok(response)
    }
}
