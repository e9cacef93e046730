//! What Kafka's formatters of 3.9 and later print of the records of `__consumer_offsets`: JSON.
//!
//! They put no line's end behind it; here each record is a line. What stands for the kind of a key is called `version`
//! by those of 3.9, and so here; `type` by those of 4.x.

use kafka_troupe::Record;
use kafka_troupe::proto::kafka::offsets_topic::{
    CommittedOffset, GroupMember, GroupMetadata, OffsetsRecord, RecordValue, decode,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::Formatter;
use crate::consume::decoder::base64;

/// A line for each record of its kind, nothing for others.
pub enum OffsetsJson {
    /// `org.apache.kafka.tools.consumer.OffsetsMessageFormatter`
    Offsets,
    /// `org.apache.kafka.tools.consumer.GroupMetadataMessageFormatter`
    Groups,
}

impl OffsetsJson {
    /// By the Java class.
    pub fn of_class(name: &str) -> Option<Self> {
        match name.strip_prefix("org.apache.kafka.tools.consumer.")? {
            "OffsetsMessageFormatter" => Some(Self::Offsets),
            "GroupMetadataMessageFormatter" => Some(Self::Groups),
            _ => None,
        }
    }
}

/// A record, or a part of one.
#[derive(Serialize)]
struct Pair<K, V> {
    key: Versioned<K>,
    value: Option<Versioned<V>>,
}

#[derive(Serialize)]
struct Versioned<T> {
    version: i16,
    data: T,
}

#[derive(Serialize)]
struct OffsetKey<'a> {
    group: &'a str,
    topic: &'a str,
    partition: i32,
}

#[derive(Serialize)]
struct GroupKey<'a> {
    group: &'a str,
}

/// Fields that a version does not have are left out; what is not known in one that has them is -1.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Committed<'a> {
    offset: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    leader_epoch: Option<i32>,
    metadata: &'a str,
    commit_timestamp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    expire_timestamp: Option<i64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Group<'a> {
    protocol_type: &'a str,
    generation: i32,
    protocol: Option<&'a str>,
    leader: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_state_timestamp: Option<i64>,
    members: Vec<Member<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Member<'a> {
    member_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_instance_id: Option<Option<&'a str>>,
    client_id: &'a str,
    client_host: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rebalance_timeout: Option<i32>,
    session_timeout: i32,
    subscription: String,
    assignment: String,
}

impl Formatter for OffsetsJson {
    fn write(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), String> {
        let version = record.key().and_then(|key| key.first_chunk()).map_or(0, |it| i16::from_be_bytes(*it));
        let line = match (self, &decode(record.key(), record.value_bytes())) {
            (Self::Offsets, OffsetsRecord::Offset { group, partition, value }) => {
                let data = OffsetKey { group, topic: &partition.topic, partition: partition.partition };
                line(Versioned { version, data }, value, |value| (value.version, committed(value)))?
            }
            (Self::Groups, OffsetsRecord::Group { group, value }) => {
                let data = GroupKey { group };
                line(Versioned { version, data }, value, |value| (value.version, group_of(value)))?
            }
            (Self::Offsets, OffsetsRecord::Damaged { error, .. }) => return Err(error.to_string()),
            _ => return Ok(()),
        };
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
        Ok(())
    }

    fn is_json(&self) -> bool {
        true
    }
}

fn line<'a, K: Serialize, T, V: Serialize>(
    key: Versioned<K>,
    value: &'a RecordValue<T>,
    data: impl Fn(&'a T) -> (i16, V),
) -> Result<String, String> {
    let value: Option<Versioned<Value>> = match value {
        RecordValue::Tombstone => None,
        RecordValue::Read(value) => {
            let (version, data) = data(value);
            let text = serde_json::to_string(&Pair { key, value: Some(Versioned { version, data }) });
            return text.map_err(|error| error.to_string());
        }
        RecordValue::Unknown { version, .. } => Some(Versioned { version: *version, data: json!("unknown") }),
        RecordValue::Damaged { error, .. } => return Err(error.to_string()),
        _ => return Err("a value of a kind that is not known here".to_owned()),
    };
    serde_json::to_string(&Pair { key, value }).map_err(|error| error.to_string())
}

fn committed(value: &CommittedOffset) -> Committed<'_> {
    Committed {
        offset: value.offset,
        leader_epoch: (value.version >= 3).then(|| value.leader_epoch.unwrap_or(-1)),
        metadata: &value.metadata,
        commit_timestamp: value.commit_timestamp.unwrap_or(-1),
        expire_timestamp: (value.version == 1).then(|| value.expire_timestamp.unwrap_or(-1)),
    }
}

fn group_of(value: &GroupMetadata) -> Group<'_> {
    Group {
        protocol_type: &value.protocol_type,
        generation: value.generation,
        protocol: value.protocol.as_deref(),
        leader: value.leader.as_deref(),
        current_state_timestamp: (value.version >= 2).then(|| value.state_timestamp.unwrap_or(-1)),
        members: value.members.iter().map(|member| member_of(value.version, member)).collect(),
    }
}

fn member_of(version: i16, member: &GroupMember) -> Member<'_> {
    Member {
        member_id: &member.member_id,
        group_instance_id: (version >= 3).then_some(member.instance_id.as_deref()),
        client_id: &member.client_id,
        client_host: &member.client_host,
        rebalance_timeout: member.rebalance_timeout_ms,
        session_timeout: member.session_timeout_ms,
        subscription: base64(&member.subscription),
        assignment: base64(&member.assignment),
    }
}
