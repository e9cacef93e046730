//! ListGroups 0: the groups of Kafka's own protocol that a broker coordinates.

use super::error_code::ErrorCode;
use super::frame::{ApiKey, Request, Response, VersionRange};
use super::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use std::sync::Arc;

/// Asks one broker for the groups that it coordinates; only all brokers together know all groups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListGroupsRequest;

/// The groups of one broker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListGroupsResponse {
    /// 14 while the coordinator still reads its offsets topic: then the list is not whole.
    pub error: ErrorCode,
    /// In no order.
    pub groups: Vec<ListedGroup>,
}

/// One group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedGroup {
    /// Its name, as its members gave it.
    pub group: Arc<str>,
    /// `consumer`, or empty where the group only stores offsets.
    pub protocol_type: Arc<str>,
}

impl Request for ListGroupsRequest {
    const API: ApiKey = ApiKey::ListGroups;
    const NAME: &'static str = "ListGroupsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    type Response = ListGroupsResponse;

    fn encode(&self, _version: i16, _out: &mut Writer) {}
}

impl Response for ListGroupsResponse {
    fn decode(version: i16, body: Bytes) -> Result<Self, WireError> {
        ListGroupsRequest::VERSIONS.check("ListGroupsResponse", version)?;
        let mut r = Reader::new(body);
        let error = r.i16("ListGroupsResponse.error_code")?.into();
        let groups = r.array("ListGroupsResponse.groups", 4, |r| {
            Ok(ListedGroup {
                group: r.string("ListGroupsResponse.groups.group_id")?,
                protocol_type: r.string("ListGroupsResponse.groups.protocol_type")?,
            })
        })?;
        r.finish("ListGroupsResponse")?;
        Ok(Self { error, groups })
    }
}
