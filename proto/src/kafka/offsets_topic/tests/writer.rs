//! The layouts, written as Kafka's schemas have them (`OffsetCommitValue.json` and its neighbours), field by field.

use super::*;
use crate::kafka::wire::Writer;

/// A mistake that a writer could make, to see that it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As the schemas say.
    Right,
    /// With the leader epoch after the metadata, as one would guess (B25).
    EpochLast,
}

fn begin(version: i16) -> Writer {
    let mut w = Writer::default();
    w.i16(version);
    w
}

fn end(w: Writer) -> Vec<u8> {
    w.finish().expect("short texts").to_vec()
}

pub fn offset_key(version: i16, group: &str, topic: &str, partition: i32) -> Vec<u8> {
    let mut w = begin(version);
    w.string("group", group);
    w.string("topic", topic);
    w.i32(partition);
    end(w)
}

pub fn group_key(version: i16, group: &str) -> Vec<u8> {
    let mut w = begin(version);
    w.string("group", group);
    end(w)
}

pub fn encode_offset(it: &CommittedOffset, order: Order) -> Vec<u8> {
    let mut w = begin(it.version);
    if it.version >= 4 {
        w.begin_flexible();
    }
    w.i64(it.offset);
    let epoch = it.leader_epoch.unwrap_or(-1);
    if it.version >= 3 && order == Order::Right {
        w.i32(epoch);
    }
    w.string("metadata", &it.metadata);
    if it.version >= 3 && order == Order::EpochLast {
        w.i32(epoch);
    }
    w.i64(it.commit_timestamp.unwrap_or(-1));
    if it.version == 1 {
        w.i64(it.expire_timestamp.unwrap_or(-1));
    }
    match it.topic_id {
        Some(id) => {
            // two tagged fields, as tag, size and bytes
            [2, 0, 16].into_iter().for_each(|byte| w.i8(byte));
            w.uuid(id);
            [70, 1, 9].into_iter().for_each(|byte| w.i8(byte));
        }
        None => w.no_tagged_fields(),
    }
    end(w)
}

pub fn encode_group(it: &GroupMetadata) -> Vec<u8> {
    let mut w = begin(it.version);
    if it.version >= 4 {
        w.begin_flexible();
    }
    w.string("protocol_type", &it.protocol_type);
    w.i32(it.generation);
    w.nullable_string("protocol", it.protocol.as_deref());
    w.nullable_string("leader", it.leader.as_deref());
    if it.version >= 2 {
        w.i64(it.state_timestamp.unwrap_or(-1));
    }
    w.array("members", &it.members, |w, member| {
        w.string("member_id", &member.member_id);
        if it.version >= 3 {
            w.nullable_string("group_instance_id", member.instance_id.as_deref());
        }
        w.string("client_id", &member.client_id);
        w.string("client_host", &member.client_host);
        if it.version >= 1 {
            w.i32(member.rebalance_timeout_ms.expect("since version 1"));
        }
        w.i32(member.session_timeout_ms);
        w.nullable_bytes("subscription", Some(&member.subscription));
        w.nullable_bytes("assignment", Some(&member.assignment));
        w.no_tagged_fields();
    });
    w.no_tagged_fields();
    end(w)
}

/// Topics and their partitions.
pub fn encode_assignment(version: i16, topics: &[(Arc<str>, Vec<i32>)], user_data: Option<&[u8]>) -> Vec<u8> {
    let mut w = begin(version);
    w.array("assigned_partitions", topics, |w, (topic, partitions)| {
        w.string("topic", topic);
        w.array("partitions", partitions, |w, partition| w.i32(*partition));
    });
    w.nullable_bytes("user_data", user_data);
    end(w)
}
