//! ListGroups 0 to 5: the groups that a broker coordinates.
//!
//! | version | brings |
//! |---|---|
//! | 1, 3 | throttle time; the flexible form |
//! | 4, 5 | states (2.6); types: classic, consumer (KIP-848), share, streams (3.8) |

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
    /// How long to wait before the next request, in ms; 0 below version 1.
    pub throttle_ms: i32,
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
    /// From version 4: `Stable`, `Empty` and so on.
    pub state: Option<Arc<str>>,
    /// From version 5: `classic`, `consumer`, `share` or `streams`, in the broker's spelling.
    pub group_type: Option<Arc<str>>,
}

impl Request for ListGroupsRequest {
    const API: ApiKey = ApiKey::ListGroups;
    const NAME: &'static str = "ListGroupsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 5);
    const FLEXIBLE_FROM: i16 = 3;
    type Response = ListGroupsResponse;

    fn encode(&self, version: i16, out: &mut Writer) {
        // no filter: all
        let none: &[Arc<str>] = &[];
        if version >= 4 {
            out.array("ListGroupsRequest.states_filter", none, |_, _| ());
        }
        if version >= 5 {
            out.array("ListGroupsRequest.types_filter", none, |_, _| ());
        }
        out.no_tagged_fields();
    }
}

impl Response for ListGroupsResponse {
    fn decode(version: i16, body: Bytes) -> Result<Self, WireError> {
        ListGroupsRequest::VERSIONS.check("ListGroupsResponse", version)?;
        let mut r = Reader::new(body).flexible(version >= ListGroupsRequest::FLEXIBLE_FROM);
        r.tagged_fields("ListGroupsResponse.header")?;
        let response = Self {
            throttle_ms: if version >= 1 { r.i32("ListGroupsResponse.throttle_time_ms")? } else { 0 },
            error: r.i16("ListGroupsResponse.error_code")?.into(),
            groups: groups(version, &mut r)?,
        };
        r.tagged_fields("ListGroupsResponse")?;
        r.finish("ListGroupsResponse")?;
        Ok(response)
    }

    fn throttle_ms(&self) -> i32 {
        self.throttle_ms
    }
}

/// All at once: an entry is 64 bytes and at least 3 in the frame, which is within the module's limit, and growing step
/// by step would not be.
fn groups(version: i16, r: &mut Reader) -> Result<Vec<ListedGroup>, WireError> {
    let what = "ListGroupsResponse.groups";
    let count = r.array_len(what, 3)?.unwrap_or_default();
    let mut groups = Vec::with_capacity(count);
    for _ in 0..count {
        groups.push(group(version, r)?);
    }
    Ok(groups)
}

fn group(version: i16, r: &mut Reader) -> Result<ListedGroup, WireError> {
    let from = |since: i16, r: &mut Reader, what: &'static str| match version >= since {
        true => r.string(what).map(Some),
        false => Ok(None),
    };
    let group = ListedGroup {
        group: r.string("ListGroupsResponse.groups.group_id")?,
        protocol_type: r.string("ListGroupsResponse.groups.protocol_type")?,
        state: from(4, r, "ListGroupsResponse.groups.group_state")?,
        group_type: from(5, r, "ListGroupsResponse.groups.group_type")?,
    };
    r.tagged_fields("ListGroupsResponse.groups")?;
    Ok(group)
}
