//! One group, whatever its protocol.

use kafka_troupe_proto::kafka::consumer_group_describe::{
    ConsumerGroupDescribeRequest, DescribedConsumerGroup,
};
use kafka_troupe_proto::kafka::describe_groups::{DescribeGroupsRequest, DescribedGroup, DescribedMember};
use kafka_troupe_proto::kafka::error_code::ErrorCode;
use kafka_troupe_proto::kafka::offsets_topic::ConsumerAssignment;

use super::kafka::Trouble;
use super::kafka_groups::{CLASSIC, KafkaGroup, KafkaMember, list};
use crate::broker_connection::BrokerConnection;

/// The state of a classic group that is not there.
const DEAD: &str = "Dead";

/// Asks the coordinator: for a group of the new protocol, for a classic one, and in its list for others.
pub(super) async fn describe_at(
    connection: &mut BrokerConnection,
    group: &str,
) -> Result<KafkaGroup, Trouble> {
    if let Some(found) = consumer(connection, group).await? {
        return Ok(found);
    }
    if let Some(found) = classic(connection, group).await? {
        return Ok(found);
    }
    let listed = list(connection).await?.into_iter().find(|listed| listed.name == group);
    let listed = listed.ok_or(Trouble::NoSuchGroup)?;
    Ok(KafkaGroup {
        name: listed.name,
        group_type: listed.group_type.unwrap_or_else(|| CLASSIC.to_owned()),
        state: listed.state.unwrap_or_default(),
        assignor: String::new(),
        members: Vec::new(),
    })
}

async fn consumer(connection: &mut BrokerConnection, group: &str) -> Result<Option<KafkaGroup>, Trouble> {
    if connection.version_of::<ConsumerGroupDescribeRequest>().is_err() {
        return Ok(None);
    }
    let request = ConsumerGroupDescribeRequest { groups: vec![group.into()] };
    let answer = connection.call(&request).await?;
    let Some(described) = answer.groups.into_iter().next() else { return Ok(None) };
    match described.error {
        ErrorCode::None => Ok(Some(of_consumers(described))),
        // none of that name, or of another protocol; or the new protocol is switched off there
        ErrorCode::GroupIdNotFound | ErrorCode::UnsupportedVersion => Ok(None),
        error => Err(error.into()),
    }
}

fn of_consumers(group: DescribedConsumerGroup) -> KafkaGroup {
    let members = group.members.into_iter().map(|member| KafkaMember {
        id: member.member.to_string(),
        client_id: member.client_id.to_string(),
        host: host(&member.client_host),
        instance: member.instance.map(|instance| instance.to_string()),
        partitions: member.partitions,
    });
    KafkaGroup {
        name: group.group.to_string(),
        group_type: "consumer".to_owned(),
        state: group.state.to_string(),
        assignor: group.assignor.to_string(),
        members: in_order(members.collect()),
    }
}

async fn classic(connection: &mut BrokerConnection, group: &str) -> Result<Option<KafkaGroup>, Trouble> {
    let request = DescribeGroupsRequest { groups: vec![group.into()] };
    let answer = connection.call(&request).await?;
    let Some(described) = answer.groups.into_iter().next() else { return Ok(None) };
    described.error.ok()?;
    Ok((&*described.state != DEAD).then(|| of_classic(described)))
}

fn of_classic(group: DescribedGroup) -> KafkaGroup {
    let are_consumers = &*group.protocol_type == "consumer";
    let members = group.members.into_iter().map(|member| of_member(member, are_consumers));
    KafkaGroup {
        name: group.group.to_string(),
        group_type: CLASSIC.to_owned(),
        state: group.state.to_string(),
        assignor: group.protocol.to_string(),
        members: in_order(members.collect()),
    }
}

/// What cannot be read of its assignment is none: it is of another kind.
fn of_member(member: DescribedMember, is_consumer: bool) -> KafkaMember {
    let assignment = is_consumer.then(|| ConsumerAssignment::decode(member.assignment).ok()).flatten();
    KafkaMember {
        id: member.member.to_string(),
        client_id: member.client_id.to_string(),
        host: host(&member.client_host),
        instance: member.instance.map(|instance| instance.to_string()),
        partitions: assignment.map(|it| it.partitions).unwrap_or_default(),
    }
}

/// Java writes an address without a name as `/127.0.0.1`.
fn host(told: &str) -> String {
    told.trim_start_matches('/').to_owned()
}

fn in_order(mut members: Vec<KafkaMember>) -> Vec<KafkaMember> {
    members.iter_mut().for_each(|member| member.partitions.sort_unstable());
    members.sort_by(|one, other| one.id.cmp(&other.id));
    members
}
