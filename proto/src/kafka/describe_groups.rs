//! DescribeGroups 0 to 4: state and members of classic groups of Kafka's own protocol, asked of their coordinator.
//!
//! | version | brings |
//! |---|---|
//! | 1, 3 | throttle time; authorized operations, which are not asked for |
//! | 4 | `group.instance.id` |
//!
//! A group of the new protocol (KIP-848) is `Dead` here: see [`super::consumer_group_describe`].

use super::error_code::ErrorCode;
use super::frame::{ApiKey, Request, Response, VersionRange};
use super::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use std::sync::Arc;

/// Asks for some groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DescribeGroupsRequest {
    /// Their names.
    pub groups: Vec<Arc<str>>,
}

/// The groups asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DescribeGroupsResponse {
    /// How long to wait before the next request, in ms; 0 below version 1.
    pub throttle_ms: i32,
    /// One entry per name.
    pub groups: Vec<DescribedGroup>,
}

/// One group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DescribedGroup {
    /// Of this group.
    pub error: ErrorCode,
    /// Its name.
    pub group: Arc<str>,
    /// `Stable`, `PreparingRebalance`, `CompletingRebalance` (`AwaitingSync` below 1.1), `Empty`; `Dead` for a group
    /// that does not exist.
    pub state: Arc<str>,
    /// `consumer`, or empty where the group only stores offsets.
    pub protocol_type: Arc<str>,
    /// The assignor that all members share.
    pub protocol: Arc<str>,
    /// None unless the group is stable or rebalancing.
    pub members: Vec<DescribedMember>,
}

/// One member of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DescribedMember {
    /// The coordinator's name for it.
    pub member: Arc<str>,
    /// From version 4: Kafka property `group.instance.id`, where it is set.
    pub instance: Option<Arc<str>>,
    /// Kafka property `client.id`.
    pub client_id: Arc<str>,
    /// Its address, as `/host`.
    pub client_host: Arc<str>,
    /// What it subscribes to, in the format of its protocol type.
    pub metadata: Bytes,
    /// What it was assigned, in the format of its protocol type.
    pub assignment: Bytes,
}

impl Request for DescribeGroupsRequest {
    const API: ApiKey = ApiKey::DescribeGroups;
    const NAME: &'static str = "DescribeGroupsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 4);
    type Response = DescribeGroupsResponse;

    fn encode(&self, version: i16, out: &mut Writer) {
        out.array("DescribeGroupsRequest.groups", &self.groups, |out, group| {
            out.string("DescribeGroupsRequest.groups", group);
        });
        if version >= 3 {
            out.bool(false); // include_authorized_operations
        }
    }
}

impl Response for DescribeGroupsResponse {
    fn decode(version: i16, body: Bytes) -> Result<Self, WireError> {
        DescribeGroupsRequest::VERSIONS.check("DescribeGroupsResponse", version)?;
        let mut r = Reader::new(body);
        let response = Self {
            throttle_ms: if version >= 1 { r.i32("DescribeGroupsResponse.throttle_time_ms")? } else { 0 },
            groups: r.array("DescribeGroupsResponse.groups", 14, |r| group(version, r))?,
        };
        r.finish("DescribeGroupsResponse")?;
        Ok(response)
    }

    fn throttle_ms(&self) -> i32 {
        self.throttle_ms
    }
}

fn group(version: i16, r: &mut Reader) -> Result<DescribedGroup, WireError> {
    let group = DescribedGroup {
        error: r.i16("DescribeGroupsResponse.groups.error_code")?.into(),
        group: r.string("DescribeGroupsResponse.groups.group_id")?,
        state: r.string("DescribeGroupsResponse.groups.group_state")?,
        protocol_type: r.string("DescribeGroupsResponse.groups.protocol_type")?,
        protocol: r.string("DescribeGroupsResponse.groups.protocol_data")?,
        members: r.array("DescribeGroupsResponse.groups.members", 14, |r| member(version, r))?,
    };
    if version >= 3 {
        r.i32("DescribeGroupsResponse.groups.authorized_operations")?;
    }
    Ok(group)
}

fn member(version: i16, r: &mut Reader) -> Result<DescribedMember, WireError> {
    Ok(DescribedMember {
        member: r.string("DescribeGroupsResponse.groups.members.member_id")?,
        instance: match version {
            4.. => r.nullable_string("DescribeGroupsResponse.groups.members.group_instance_id")?,
            _ => None,
        },
        client_id: r.string("DescribeGroupsResponse.groups.members.client_id")?,
        client_host: r.string("DescribeGroupsResponse.groups.members.client_host")?,
        metadata: r.bytes("DescribeGroupsResponse.groups.members.member_metadata")?,
        assignment: r.bytes("DescribeGroupsResponse.groups.members.member_assignment")?,
    })
}
