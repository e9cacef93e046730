//! A record as JSON.

use kafka_troupe::Record;
use kafka_troupe::proto::kafka::offsets_topic::{
    CommittedOffset, ConsumerAssignment, GroupMember, GroupMetadata, OffsetsRecord, RecordValue,
};
use serde::Serialize;

/// One record of the topic.
#[derive(Serialize)]
pub struct DumpedRow<'a> {
    /// What its key says: `offset`, `group`, `unknown` or `damaged`.
    kind: &'static str,
    group: Option<&'a str>,
    topic: Option<&'a str>,
    partition: Option<i32>,
    /// The offset or the group; null where it was deleted, or could not be read.
    value: Option<Value<'a>>,
    /// The record deletes what its key names.
    deleted: bool,
    /// What could not be read, and why.
    problem: Option<String>,
    /// Where it stands.
    record: Place,
}

/// Where a record stands.
#[derive(Clone, Copy, Serialize)]
pub struct Place {
    partition: i32,
    offset: i64,
    timestamp: Option<i64>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Value<'a> {
    Offset {
        version: i16,
        offset: i64,
        leader_epoch: Option<i32>,
        metadata: &'a str,
        commit_timestamp: Option<i64>,
        expire_timestamp: Option<i64>,
        topic_id: Option<String>,
    },
    Group {
        version: i16,
        protocol_type: &'a str,
        generation: i32,
        protocol: Option<&'a str>,
        leader: Option<&'a str>,
        state_timestamp: Option<i64>,
        members: Vec<Member<'a>>,
    },
}

#[derive(Serialize)]
struct Member<'a> {
    member_id: &'a str,
    instance_id: Option<&'a str>,
    client_id: &'a str,
    client_host: &'a str,
    rebalance_timeout_ms: Option<i32>,
    session_timeout_ms: i32,
    /// Of a group of consumers, as `topic-partition`.
    partitions: Option<Vec<String>>,
}

impl Place {
    pub fn of(record: &Record) -> Self {
        let (partition, offset, timestamp) = (record.partition(), record.offset(), record.timestamp());
        Self { partition, offset, timestamp }
    }

    /// In the order of the partitions.
    pub fn order(&self) -> (i32, i64) {
        (self.partition, self.offset)
    }
}

impl<'a> DumpedRow<'a> {
    /// What a record says, of which this stands there.
    pub fn new(place: Place, deleted: bool, decoded: &'a OffsetsRecord) -> Self {
        let mut row = Self {
            kind: "unknown",
            group: None,
            topic: None,
            partition: None,
            value: None,
            deleted,
            problem: None,
            record: place,
        };
        match decoded {
            OffsetsRecord::Offset { group, partition, value } => {
                (row.kind, row.group) = ("offset", Some(&**group));
                (row.topic, row.partition) = (Some(&*partition.topic), Some(partition.partition));
                row.set(value, offset_value);
            }
            OffsetsRecord::Group { group, value } => {
                (row.kind, row.group) = ("group", Some(&**group));
                row.set(value, group_value);
            }
            OffsetsRecord::Unknown { version, .. } => {
                row.problem = Some(format!("a key of version {version} is not known"));
            }
            OffsetsRecord::Damaged { error, .. } => {
                (row.kind, row.problem) = ("damaged", Some(error.to_string()));
            }
            _ => {}
        }
        row
    }

    fn set<T>(&mut self, value: &'a RecordValue<T>, shown: impl Fn(&'a T) -> Value<'a>) {
        match value {
            RecordValue::Read(value) => self.value = Some(shown(value)),
            RecordValue::Unknown { version, .. } => {
                self.problem = Some(format!("a value of version {version} is not known"));
            }
            RecordValue::Damaged { error, .. } => self.problem = Some(error.to_string()),
            _ => {}
        }
    }
}

fn offset_value(value: &CommittedOffset) -> Value<'_> {
    Value::Offset {
        version: value.version,
        offset: value.offset,
        leader_epoch: value.leader_epoch,
        metadata: &value.metadata,
        commit_timestamp: value.commit_timestamp,
        expire_timestamp: value.expire_timestamp,
        topic_id: value.topic_id.map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect()),
    }
}

fn group_value(value: &GroupMetadata) -> Value<'_> {
    let of_consumers = &*value.protocol_type == "consumer";
    Value::Group {
        version: value.version,
        protocol_type: &value.protocol_type,
        generation: value.generation,
        protocol: value.protocol.as_deref(),
        leader: value.leader.as_deref(),
        state_timestamp: value.state_timestamp,
        members: value.members.iter().map(|it| member(it, of_consumers)).collect(),
    }
}

fn member(it: &GroupMember, of_consumers: bool) -> Member<'_> {
    let assignment = of_consumers.then(|| ConsumerAssignment::decode(it.assignment.clone()).ok()).flatten();
    Member {
        member_id: &it.member_id,
        instance_id: it.instance_id.as_deref(),
        client_id: &it.client_id,
        client_host: &it.client_host,
        rebalance_timeout_ms: it.rebalance_timeout_ms,
        session_timeout_ms: it.session_timeout_ms,
        partitions: assignment.map(|it| it.partitions.iter().map(ToString::to_string).collect()),
    }
}
