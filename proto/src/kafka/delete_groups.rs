//! DeleteGroups 0 (brokers from 1.1): forgets empty groups with their offsets, asked of their coordinator.

use super::error_code::ErrorCode;
use super::frame::{ApiKey, Request, Response, VersionRange};
use super::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use std::sync::Arc;

/// Names the groups to delete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteGroupsRequest {
    /// Their names.
    pub groups: Vec<Arc<str>>,
}

/// What became of each.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeleteGroupsResponse {
    /// How long to wait before the next request, in ms.
    pub throttle_ms: i32,
    /// Names with their outcome: 68 for a group with members, 69 for one that does not exist.
    pub results: Vec<(Arc<str>, ErrorCode)>,
}

impl Request for DeleteGroupsRequest {
    const API: ApiKey = ApiKey::DeleteGroups;
    const NAME: &'static str = "DeleteGroupsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    type Response = DeleteGroupsResponse;

    fn encode(&self, _version: i16, out: &mut Writer) {
        out.array("DeleteGroupsRequest.groups_names", &self.groups, |out, group| {
            out.string("DeleteGroupsRequest.groups_names", group);
        });
    }
}

impl Response for DeleteGroupsResponse {
    fn decode(version: i16, body: Bytes) -> Result<Self, WireError> {
        DeleteGroupsRequest::VERSIONS.check("DeleteGroupsResponse", version)?;
        let mut r = Reader::new(body);
        let throttle_ms = r.i32("DeleteGroupsResponse.throttle_time_ms")?;
        let results = r.array("DeleteGroupsResponse.results", 4, |r| {
            let group = r.string("DeleteGroupsResponse.results.group_id")?;
            Ok((group, r.i16("DeleteGroupsResponse.results.error_code")?.into()))
        })?;
        r.finish("DeleteGroupsResponse")?;
        Ok(Self { throttle_ms, results })
    }

    fn throttle_ms(&self) -> i32 {
        self.throttle_ms
    }
}
