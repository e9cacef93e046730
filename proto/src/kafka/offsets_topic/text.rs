//! What Kafka's own formatters of the console consumer print of a record.
//!
//! # Non-obvious
//! - The text of a class changed from release to release. A line is that of the releases that write such values: of
//!   0.9 and 0.10 by the class that only these have, else of 0.9 to 2.0 for offsets of versions 0 and 1, of 2.1 and
//!   later for those since 2, and of 3.9 for groups since 3.
//! - Java prints the members of a group in the order of a hash map; here they stand as in the record.
//! - A formatter prints nothing of records that are not of its kind. What is of its kind and cannot be read is a line
//!   as well, which says so in words of ours (`UNKNOWN`, `DAMAGED`): Java's formatters end the reading there.

use super::{CommittedOffset, GroupMember, GroupMetadata, OffsetsRecord, RecordValue};
use std::fmt::Display;

const OFFSETS: &str = "GroupMetadataManager$OffsetsMessageFormatter";
const GROUPS: &str = "GroupMetadataManager$GroupMetadataMessageFormatter";

/// A formatter of Kafka's console consumer (its option `--formatter`) for records of the offsets topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OffsetsFormatter {
    /// `kafka.server.OffsetManager$OffsetsMessageFormatter` of 0.8.2: offsets.
    OffsetManager,
    /// `kafka.coordinator.GroupMetadataManager$OffsetsMessageFormatter` of 0.9 and 0.10, and
    /// `kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter` since 0.11: offsets.
    Offsets,
    /// `kafka.coordinator.GroupMetadataManager$GroupMetadataMessageFormatter` of 0.9 and 0.10: groups.
    OldGroups,
    /// `kafka.coordinator.group.GroupMetadataManager$GroupMetadataMessageFormatter` since 0.11: groups.
    Groups,
}

impl OffsetsFormatter {
    /// By the Java class, as it is given to `--formatter`; nothing for one that we do not have.
    pub fn of_class(name: &str) -> Option<Self> {
        // a script that has it in single quotes passes the backslash on
        let name = name.trim().replace("\\$", "$");
        let (package, class) = name.split_at(name.rfind('.')? + 1);
        match (package, class) {
            ("kafka.server.", "OffsetManager$OffsetsMessageFormatter") => Some(Self::OffsetManager),
            ("kafka.coordinator." | "kafka.coordinator.group.", OFFSETS) => Some(Self::Offsets),
            ("kafka.coordinator.", GROUPS) => Some(Self::OldGroups),
            ("kafka.coordinator.group.", GROUPS) => Some(Self::Groups),
            _ => None,
        }
    }

    /// The line, without its end; nothing for a record that is not of its kind.
    pub fn line(self, record: &OffsetsRecord) -> Option<String> {
        match (self, record) {
            (Self::OffsetManager | Self::Offsets, OffsetsRecord::Offset { group, partition, value }) => {
                let (topic, partition) = (&partition.topic, partition.partition);
                let value = value_text(value, |value| self.offset(value));
                Some(format!("[{group},{topic},{partition}]::{value}"))
            }
            (Self::OldGroups, OffsetsRecord::Group { group, value }) => {
                Some(format!("{group}::{}", value_text(value, |value| old_group(group, value))))
            }
            (Self::Groups, OffsetsRecord::Group { group, value }) => {
                Some(format!("{group}::{}", value_text(value, |value| group_text(group, value))))
            }
            // of which kind it was cannot be told; one of them says it, so that it is said once
            (Self::OffsetManager | Self::Offsets, OffsetsRecord::Damaged { key: Some(key), error, .. }) => {
                Some(format!("DAMAGED[key of {} bytes: {error}]", key.len()))
            }
            _ => None,
        }
    }

    fn offset(self, value: &CommittedOffset) -> String {
        let CommittedOffset { offset, metadata, .. } = value;
        let or_none = if metadata.is_empty() { "NO_METADATA" } else { metadata };
        let committed = or_minus_1(value.commit_timestamp);
        if self == Self::OffsetManager {
            let time = value.commit_timestamp.map_or(String::new(), |time| format!(",{time}"));
            return format!("OffsetAndMetadata[{offset},{or_none}{time}]");
        }
        if value.version <= 1 {
            let expires = or_minus_1(value.expire_timestamp);
            let offset = format!("OffsetMetadata[{offset},{or_none}]");
            return format!("[{offset},CommitTime {committed},ExpirationTime {expires}]");
        }
        let epoch = value.leader_epoch.map_or("Optional.empty".to_owned(), |it| format!("Optional[{it}]"));
        format!(
            "OffsetAndMetadata(offset={offset}, leaderEpoch={epoch}, metadata={metadata}, \
             commitTimestamp={committed}, expireTimestamp={})",
            option(value.expire_timestamp),
        )
    }
}

fn value_text<T>(value: &RecordValue<T>, text: impl Fn(&T) -> String) -> String {
    match value {
        RecordValue::Read(value) => text(value),
        RecordValue::Tombstone => "NULL".to_owned(),
        RecordValue::Unknown { version, bytes } => {
            format!("UNKNOWN[value of version {version}, {} bytes]", bytes.len())
        }
        RecordValue::Damaged { bytes, error } => format!("DAMAGED[value of {} bytes: {error}]", bytes.len()),
    }
}

fn or_minus_1(time: Option<i64>) -> i64 {
    time.unwrap_or(-1)
}

/// As Scala prints it.
fn option(value: Option<impl Display>) -> String {
    value.map_or("None".to_owned(), |value| format!("Some({value})"))
}

fn state(group: &GroupMetadata) -> &'static str {
    if group.members.is_empty() { "Empty" } else { "Stable" }
}

fn members(group: &GroupMetadata, text: impl Fn(&GroupMember) -> String) -> String {
    let members = group.members.iter().map(|member| format!("{} -> {}", member.member_id, text(member)));
    members.collect::<Vec<_>>().join(", ")
}

/// Of 0.9, which writes version 0, or of 0.10.
fn old_group(name: &str, group: &GroupMetadata) -> String {
    let kind = match group.version {
        0 => group.protocol_type.to_string(),
        // that of an empty group is not looked at
        _ => option((!group.members.is_empty()).then_some(&group.protocol_type)),
    };
    let members = members(group, |member| {
        let GroupMember { member_id, client_id, client_host, session_timeout_ms, .. } = member;
        format!("[{member_id},{client_id},{client_host},{session_timeout_ms}]")
    });
    format!("[{name},{kind},{},Map({members})]", state(group))
}

/// Of 1.x, or where members may be static, of 3.9.
fn group_text(name: &str, group: &GroupMetadata) -> String {
    let GroupMetadata { protocol_type, generation, .. } = group;
    let map = if group.version >= 3 { "HashMap" } else { "Map" };
    format!(
        "GroupMetadata(groupId={name}, generation={generation}, protocolType=Some({protocol_type}), \
         currentState={}, members={map}({}))",
        state(group),
        members(group, |member| member_text(group, member)),
    )
}

fn member_text(group: &GroupMetadata, member: &GroupMember) -> String {
    let GroupMember { member_id, client_id, client_host, session_timeout_ms, .. } = member;
    let (instance, end) = match group.version {
        ..=2 => (String::new(), ", "),
        _ => (format!("groupInstanceId={}, ", option(member.instance_id.as_ref())), ""),
    };
    format!(
        "MemberMetadata(memberId={member_id}, {instance}clientId={client_id}, clientHost={client_host}, \
         sessionTimeoutMs={session_timeout_ms}, rebalanceTimeoutMs={}, supportedProtocols=List({}){end})",
        // where there is none, as in 0.9, sessions and rebalances end alike
        member.rebalance_timeout_ms.unwrap_or(*session_timeout_ms),
        group.protocol.as_deref().unwrap_or_default(),
    )
}
