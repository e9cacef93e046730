//! ConsumerGroupDescribe 0 and 1: state and members of groups of the new protocol (KIP-848), asked of their
//! coordinator. Brokers have it from 3.7 (as a preview) or 4.0; flexible from the first version.

use super::error_code::ErrorCode;
use super::frame::{ApiKey, Request, Response, VersionRange};
use super::wire::{Reader, WireError, Writer};
use crate::TopicPartition;
use bytes::Bytes;
use std::sync::Arc;

/// Asks for some groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConsumerGroupDescribeRequest {
    /// Their names.
    pub groups: Vec<Arc<str>>,
}

/// The groups asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsumerGroupDescribeResponse {
    /// How long to wait before the next request, in ms.
    pub throttle_ms: i32,
    /// One entry per name.
    pub groups: Vec<DescribedConsumerGroup>,
}

/// One group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DescribedConsumerGroup {
    /// Of this group; 69 for one that does not exist or is of another protocol.
    pub error: ErrorCode,
    /// What the broker says about the error.
    pub message: Option<Arc<str>>,
    /// Its name.
    pub group: Arc<str>,
    /// `Stable`, `Assigning`, `Reconciling`, `Empty`.
    pub state: Arc<str>,
    /// The assignor of the broker that it uses.
    pub assignor: Arc<str>,
    /// All of them.
    pub members: Vec<DescribedConsumer>,
}

/// One member of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DescribedConsumer {
    /// Its id, which it chose itself.
    pub member: Arc<str>,
    /// Kafka property `group.instance.id`, where it is set.
    pub instance: Option<Arc<str>>,
    /// Kafka property `client.id`.
    pub client_id: Arc<str>,
    /// Its address, as `/host`.
    pub client_host: Arc<str>,
    /// What it has now.
    pub partitions: Vec<TopicPartition>,
    /// What it is to have when all have let go of what they are to give up.
    pub target: Vec<TopicPartition>,
}

impl Request for ConsumerGroupDescribeRequest {
    const API: ApiKey = ApiKey::ConsumerGroupDescribe;
    const NAME: &'static str = "ConsumerGroupDescribeRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 0;
    type Response = ConsumerGroupDescribeResponse;

    fn encode(&self, _version: i16, out: &mut Writer) {
        out.array("ConsumerGroupDescribeRequest.group_ids", &self.groups, |out, group| {
            out.string("ConsumerGroupDescribeRequest.group_ids", group);
        });
        out.bool(false); // include_authorized_operations
        out.no_tagged_fields();
    }
}

impl Response for ConsumerGroupDescribeResponse {
    fn decode(version: i16, body: Bytes) -> Result<Self, WireError> {
        ConsumerGroupDescribeRequest::VERSIONS.check("ConsumerGroupDescribeResponse", version)?;
        let mut r = Reader::new(body).flexible(true);
        r.tagged_fields("ConsumerGroupDescribeResponse.header")?;
        let response = Self {
            throttle_ms: r.i32("ConsumerGroupDescribeResponse.throttle_time_ms")?,
            groups: r.array("ConsumerGroupDescribeResponse.groups", 20, |r| group(version, r))?,
        };
        r.tagged_fields("ConsumerGroupDescribeResponse")?;
        r.finish("ConsumerGroupDescribeResponse")?;
        Ok(response)
    }

    fn throttle_ms(&self) -> i32 {
        self.throttle_ms
    }
}

fn group(version: i16, r: &mut Reader) -> Result<DescribedConsumerGroup, WireError> {
    let error = r.i16("ConsumerGroupDescribeResponse.groups.error_code")?.into();
    let message = r.nullable_string("ConsumerGroupDescribeResponse.groups.error_message")?;
    let group = r.string("ConsumerGroupDescribeResponse.groups.group_id")?;
    let state = r.string("ConsumerGroupDescribeResponse.groups.group_state")?;
    r.i32("ConsumerGroupDescribeResponse.groups.group_epoch")?;
    r.i32("ConsumerGroupDescribeResponse.groups.assignment_epoch")?;
    let assignor = r.string("ConsumerGroupDescribeResponse.groups.assignor_name")?;
    let members = r.array("ConsumerGroupDescribeResponse.groups.members", 16, |r| member(version, r))?;
    r.i32("ConsumerGroupDescribeResponse.groups.authorized_operations")?;
    r.tagged_fields("ConsumerGroupDescribeResponse.groups")?;
    Ok(DescribedConsumerGroup { error, message, group, state, assignor, members })
}

fn member(version: i16, r: &mut Reader) -> Result<DescribedConsumer, WireError> {
    let member = r.string("ConsumerGroupDescribeResponse.groups.members.member_id")?;
    let instance = r.nullable_string("ConsumerGroupDescribeResponse.groups.members.instance_id")?;
    r.nullable_string("ConsumerGroupDescribeResponse.groups.members.rack_id")?;
    r.i32("ConsumerGroupDescribeResponse.groups.members.member_epoch")?;
    let client_id = r.string("ConsumerGroupDescribeResponse.groups.members.client_id")?;
    let client_host = r.string("ConsumerGroupDescribeResponse.groups.members.client_host")?;
    let what = "ConsumerGroupDescribeResponse.groups.members.subscribed_topic_names";
    r.array(what, 1, |r| r.string(what).map(drop))?;
    r.nullable_string("ConsumerGroupDescribeResponse.groups.members.subscribed_topic_regex")?;
    let partitions = assignment(r)?;
    let target = assignment(r)?;
    if version >= 1 {
        r.i8("ConsumerGroupDescribeResponse.groups.members.member_type")?;
    }
    r.tagged_fields("ConsumerGroupDescribeResponse.groups.members")?;
    Ok(DescribedConsumer { member, instance, client_id, client_host, partitions, target })
}

fn assignment(r: &mut Reader) -> Result<Vec<TopicPartition>, WireError> {
    let what = "ConsumerGroupDescribeResponse.groups.members.assignment";
    let mut all = Vec::new();
    r.array(what, 19, |r| {
        r.uuid("ConsumerGroupDescribeResponse.groups.members.assignment.topic_id")?;
        let topic = r.string("ConsumerGroupDescribeResponse.groups.members.assignment.topic_name")?;
        r.array(what, 4, |r| {
            all.push(TopicPartition::new(Arc::clone(&topic), r.i32(what)?));
            Ok(())
        })?;
        r.tagged_fields(what)
    })?;
    r.tagged_fields(what)?;
    Ok(all)
}
