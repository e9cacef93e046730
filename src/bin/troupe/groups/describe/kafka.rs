//! A group that Kafka coordinates, or that only stores offsets there.

use std::collections::BTreeMap;

use kafka_troupe::TopicPartition;
use kafka_troupe::admin::{AdminError, KafkaAdmin, KafkaGroup, KafkaMember};

use super::super::kafka_group::{ReadGroup, hidden, shows_members};
use super::rows::{MemberRow, Owned, PartitionRow, StateRow};
use super::{Coordination, Described};

/// Its rows; none where there is no such group.
pub async fn described(admin: &KafkaAdmin, group: &str) -> Result<Option<Described>, AdminError> {
    let Some(read) = ReadGroup::read(admin, group).await? else { return Ok(None) };
    let partitions = read.keys().into_iter().map(|key| partition(&read, &key)).collect();
    Ok(Some(rows(&read.group, partitions)))
}

fn rows(group: &KafkaGroup, partitions: Vec<PartitionRow>) -> Described {
    let members = group.members.iter().map(|it| member(group, it)).collect();
    let shows_members = shows_members(&group.group_type);
    let state = StateRow {
        r#type: Some(group.group_type.clone()),
        state: not_empty(&group.state),
        assignor: not_empty(&group.assignor),
        note: hidden(&group.group_type),
        ..StateRow::new(&group.name, Coordination::Kafka)
    };
    let mut described = Described::new(state, members, partitions);
    if !shows_members {
        described.state.members = None;
    }
    described
}

fn partition(ReadGroup { group, committed, ends }: &ReadGroup, key: &TopicPartition) -> PartitionRow {
    let end = ends.get(key);
    let owner = group.members.iter().find(|member| member.partitions.contains(key));
    let mut row = PartitionRow {
        topic: Some(key.topic.to_string()),
        partition: Some(key.partition),
        owner: owner.map(|member| member.id.clone()),
        member: owner.map(|member| member.id.clone()),
        client_host: owner.map(|member| member.host.clone()),
        ..PartitionRow::new(&group.name, Coordination::Kafka)
    };
    match end {
        None => row.note("it does not exist"),
        Some(Err(why)) => row.note(&format!("end of the log: {why}")),
        Some(Ok(_)) => {}
    }
    let end = end.and_then(|end| end.as_ref().ok().copied().flatten());
    row.at(None, committed.get(key).map(|committed| committed.offset), end)
}

fn member(group: &KafkaGroup, member: &KafkaMember) -> MemberRow {
    let mut owned: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for key in &member.partitions {
        owned.entry(&key.topic).or_default().push(key.partition);
    }
    MemberRow {
        client_id: Some(member.client_id.clone()),
        client_host: Some(member.host.clone()),
        instance: member.instance.clone(),
        owned: member.partitions.len(),
        partitions: owned.into_iter().map(Owned::from).collect(),
        ..MemberRow::new(&group.name, Coordination::Kafka, &member.id)
    }
}

fn not_empty(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}
