//! DescribeGroups 0: state and members of groups of Kafka's own protocol, asked of their coordinator.

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
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    type Response = DescribeGroupsResponse;

    fn encode(&self, _version: i16, out: &mut Writer) {
        out.array("DescribeGroupsRequest.groups", &self.groups, |out, group| {
            out.string("DescribeGroupsRequest.groups", group);
        });
    }
}

impl Response for DescribeGroupsResponse {
    fn decode(version: i16, body: Bytes) -> Result<Self, WireError> {
        DescribeGroupsRequest::VERSIONS.check("DescribeGroupsResponse", version)?;
        let mut r = Reader::new(body);
        let groups = r.array("DescribeGroupsResponse.groups", 14, group)?;
        r.finish("DescribeGroupsResponse")?;
        Ok(Self { groups })
    }
}

fn group(r: &mut Reader) -> Result<DescribedGroup, WireError> {
    Ok(DescribedGroup {
        error: r.i16("DescribeGroupsResponse.groups.error_code")?.into(),
        group: r.string("DescribeGroupsResponse.groups.group_id")?,
        state: r.string("DescribeGroupsResponse.groups.group_state")?,
        protocol_type: r.string("DescribeGroupsResponse.groups.protocol_type")?,
        protocol: r.string("DescribeGroupsResponse.groups.protocol_data")?,
        members: r.array("DescribeGroupsResponse.groups.members", 14, member)?,
    })
}

fn member(r: &mut Reader) -> Result<DescribedMember, WireError> {
    Ok(DescribedMember {
        member: r.string("DescribeGroupsResponse.groups.members.member_id")?,
        client_id: r.string("DescribeGroupsResponse.groups.members.client_id")?,
        client_host: r.string("DescribeGroupsResponse.groups.members.client_host")?,
        metadata: r.bytes("DescribeGroupsResponse.groups.members.member_metadata")?,
        assignment: r.bytes("DescribeGroupsResponse.groups.members.member_assignment")?,
    })
}
