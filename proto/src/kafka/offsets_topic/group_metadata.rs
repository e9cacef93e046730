use crate::kafka::wire::{Reader, WireError, WireProblem};
use bytes::Bytes;
use std::sync::Arc;

/// A group of Kafka's own protocol, written whenever all members have their assignment: value versions 0 (0.9), 1 (since
/// 0.10.1), 2 (since 2.1), 3 (since 2.3) and 4 (read since 3.5; 4.4.0 still writes 3).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupMetadata {
    /// Version of the value that it was read from.
    pub version: i16,
    /// `consumer` for consumers; empty for a group that only stores offsets.
    pub protocol_type: Arc<str>,
    /// How often it has been rebalanced.
    pub generation: i32,
    /// The assignor that all members share; none in a group without members.
    pub protocol: Option<Arc<str>>,
    /// The member that assigns; none in a group without members.
    pub leader: Option<Arc<str>>,
    /// When the group came into its state, in milliseconds since 1970; since version 2.
    pub state_timestamp: Option<i64>,
    /// All members; none in an empty group.
    pub members: Vec<GroupMember>,
}

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupMember {
    /// The coordinator's name for it.
    pub member_id: Arc<str>,
    /// Kafka property `group.instance.id` of a static member (KIP-345); since version 3.
    pub instance_id: Option<Arc<str>>,
    /// Kafka property `client.id`.
    pub client_id: Arc<str>,
    /// Its address, as `/host`.
    pub client_host: Arc<str>,
    /// How long a rebalance waits for it, in milliseconds; since version 1.
    pub rebalance_timeout_ms: Option<i32>,
    /// Kafka property `session.timeout.ms`, in milliseconds.
    pub session_timeout_ms: i32,
    /// What it subscribes to, in the format of the group's protocol type.
    pub subscription: Bytes,
    /// What it was assigned, in the format of the group's protocol type; that of consumers is read by
    /// [`ConsumerAssignment::decode`](super::ConsumerAssignment::decode).
    pub assignment: Bytes,
}

impl GroupMetadata {
    /// Reads what follows the version; nothing for a version that we do not know.
    pub(super) fn decode(version: i16, r: Reader) -> Result<Option<Self>, WireError> {
        if !(0..=4).contains(&version) {
            return Ok(None);
        }
        let mut r = r.flexible(version >= 4);
        let protocol_type = r.string("GroupMetadataValue.protocol_type")?;
        let generation = r.i32("GroupMetadataValue.generation")?;
        let protocol = r.nullable_string("GroupMetadataValue.protocol")?;
        let leader = r.nullable_string("GroupMetadataValue.leader")?;
        let state_timestamp =
            if version >= 2 { r.i64("GroupMetadataValue.current_state_timestamp")? } else { -1 };
        let members = members(version, &mut r)?;
        r.tagged_fields("GroupMetadataValue.tagged_fields")?;
        let state_timestamp = (state_timestamp != -1).then_some(state_timestamp);
        Ok(Some(Self { version, protocol_type, generation, protocol, leader, state_timestamp, members }))
    }
}

/// They are much larger than what they are read from, and a vector that grows is held twice: reserved at once they take
/// at most 10 bytes per byte, as the least of them has 15.
fn members(version: i16, r: &mut Reader) -> Result<Vec<GroupMember>, WireError> {
    let (what, at) = ("GroupMetadataValue.members", r.position());
    let null = WireError { what, at, problem: WireProblem::Length(-1) };
    let count = r.array_len(what, 15)?.ok_or(null)?;
    let mut members = Vec::with_capacity(count);
    for _ in 0..count {
        members.push(member(version, r)?);
    }
    Ok(members)
}

fn member(version: i16, r: &mut Reader) -> Result<GroupMember, WireError> {
    let member_id = r.string("GroupMetadataValue.members.member_id")?;
    let instance_id = match version {
        3.. => r.nullable_string("GroupMetadataValue.members.group_instance_id")?,
        _ => None,
    };
    let client_id = r.string("GroupMetadataValue.members.client_id")?;
    let client_host = r.string("GroupMetadataValue.members.client_host")?;
    let rebalance_timeout_ms = match version {
        1.. => Some(r.i32("GroupMetadataValue.members.rebalance_timeout")?),
        _ => None,
    };
    let member = GroupMember {
        member_id,
        instance_id,
        client_id,
        client_host,
        rebalance_timeout_ms,
        session_timeout_ms: r.i32("GroupMetadataValue.members.session_timeout")?,
        subscription: r.bytes("GroupMetadataValue.members.subscription")?,
        assignment: r.bytes("GroupMetadataValue.members.assignment")?,
    };
    r.tagged_fields("GroupMetadataValue.members.tagged_fields")?;
    Ok(member)
}
