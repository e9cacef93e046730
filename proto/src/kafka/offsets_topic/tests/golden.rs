//! Records of real brokers, held against what Kafka's own code of the same release says of them, row by row; and the
//! partitions of groups, as Java computes them. Both by `tests/cluster/examples/golden_offsets`.

use super::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Of the offsets topic of those brokers.
const PARTITIONS: NonZeroU32 = NonZeroU32::new(3).unwrap();

pub(super) struct Row {
    pub(super) release: &'static str,
    pub(super) partition: i32,
    key: Bytes,
    pub(super) value: Option<Bytes>,
    /// What the formatter of offsets writes, that of groups, and what Kafka's consumer takes the assignments for.
    pub(super) said: [&'static str; 3],
}

impl Row {
    pub(super) fn record(&self) -> OffsetsRecord {
        decode(Some(&self.key), self.value.clone())
    }
}

pub(super) fn rows() -> impl Iterator<Item = Row> {
    include_str!("golden/records.txt").lines().map(|line| {
        let fields: Vec<_> = line.split('\t').collect();
        let [release, partition, key, value, said @ ..] = &fields[..] else { panic!("{line}") };
        Row {
            release,
            partition: partition.parse().expect("a partition"),
            key: unhex(key),
            value: (*value != "-").then(|| unhex(value)),
            said: said.try_into().expect("three answers"),
        }
    })
}

fn unhex(hex: &str) -> Bytes {
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
    (0..hex.len()).step_by(2).map(byte).collect()
}

/// As Kafka's formatter of the release would write it.
fn offset_text(release: &str, value: &CommittedOffset) -> String {
    let CommittedOffset { offset, metadata, .. } = value;
    let or_none = |text: &str| if text.is_empty() { "NO_METADATA".to_owned() } else { text.to_owned() };
    let time = value.commit_timestamp.expect("brokers set it");
    let expires = value.expire_timestamp;
    match release {
        "0.8.2.2" => format!("OffsetAndMetadata[{offset},{},{time}]", or_none(metadata)),
        "0.9.0.1" | "0.10.2.2" | "0.11.0.3" | "1.1.1" => format!(
            "[OffsetMetadata[{offset},{}],CommitTime {time},ExpirationTime {}]",
            or_none(metadata),
            expires.expect("version 1")
        ),
        _ => format!(
            "OffsetAndMetadata(offset={offset}, leaderEpoch={}, metadata={metadata}, commitTimestamp={time}, \
             expireTimestamp={})",
            value.leader_epoch.map_or("Optional.empty".to_owned(), |epoch| format!("Optional[{epoch}]")),
            option(expires),
        ),
    }
}

/// As Scala prints it.
fn option<T: std::fmt::Display>(value: Option<T>) -> String {
    value.map_or("None".to_owned(), |value| format!("Some({value})"))
}

/// As Kafka's formatter of the release would write it, the members in the order given.
fn group_text(release: &str, name: &str, group: &GroupMetadata, members: &[&GroupMember]) -> String {
    let members = members.iter().map(|member| member_text(release, group, member));
    let members = members.collect::<Vec<_>>().join(", ");
    let GroupMetadata { protocol_type, generation, .. } = group;
    let (state, map) = (
        if group.members.is_empty() { "Empty" } else { "Stable" },
        if matches!(release, "2.8.2" | "3.9.1") { "HashMap" } else { "Map" },
    );
    // that of an empty group is not looked at below 1.0
    let looked_at = !group.members.is_empty() || matches!(release, "1.1.1" | "2.8.2" | "3.9.1");
    let kind = option(looked_at.then_some(protocol_type));
    match release {
        "0.9.0.1" => format!("[{name},{protocol_type},{state},{map}({members})]"),
        "0.10.2.2" => format!("[{name},{kind},{state},{map}({members})]"),
        _ => format!(
            "GroupMetadata(groupId={name}, generation={generation}, protocolType={kind}, currentState={state}, \
             members={map}({members}))"
        ),
    }
}

fn member_text(release: &str, group: &GroupMetadata, member: &GroupMember) -> String {
    let GroupMember { member_id, client_id, client_host, session_timeout_ms, .. } = member;
    if matches!(release, "0.9.0.1" | "0.10.2.2") {
        return format!("{member_id} -> [{member_id},{client_id},{client_host},{session_timeout_ms}]");
    }
    let instance = match release {
        "2.8.2" | "3.9.1" => format!("groupInstanceId={}, ", option(member.instance_id.as_ref())),
        _ => String::new(),
    };
    format!(
        "{member_id} -> MemberMetadata(memberId={member_id}, {instance}clientId={client_id}, \
         clientHost={client_host}, sessionTimeoutMs={session_timeout_ms}, rebalanceTimeoutMs={}, \
         supportedProtocols=List({}){})",
        member.rebalance_timeout_ms.expect("since version 1"),
        group.protocol.as_deref().expect("there are members"),
        if release == "3.9.1" { "" } else { ", " },
    )
}

fn offset_json(value: &CommittedOffset) -> Value {
    let mut data = json!({
        "offset": value.offset,
        "metadata": *value.metadata,
        "commitTimestamp": value.commit_timestamp,
    });
    if value.version == 1 {
        data["expireTimestamp"] = value.expire_timestamp.into();
    }
    if value.version >= 3 {
        data["leaderEpoch"] = value.leader_epoch.unwrap_or(-1).into();
    }
    if let Some(id) = value.topic_id {
        data["topicId"] = base64(&id).replace('+', "-").replace('/', "_").trim_end_matches('=').into();
    }
    json!({ "version": value.version, "data": data })
}

fn group_json(group: &GroupMetadata) -> Value {
    let member = |member: &GroupMember| {
        json!({
            "memberId": *member.member_id,
            "groupInstanceId": member.instance_id.as_deref(),
            "clientId": *member.client_id,
            "clientHost": *member.client_host,
            "rebalanceTimeout": member.rebalance_timeout_ms,
            "sessionTimeout": member.session_timeout_ms,
            "subscription": base64(&member.subscription),
            "assignment": base64(&member.assignment),
        })
    };
    json!({ "version": group.version, "data": {
        "protocolType": *group.protocol_type,
        "generation": group.generation,
        "protocol": group.protocol.as_deref(),
        "leader": group.leader.as_deref(),
        "currentStateTimestamp": group.state_timestamp,
        "members": group.members.iter().map(member).collect::<Vec<_>>(),
    }})
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let at = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit) & 63) as usize;
            text.push(if digit > three.len() { '=' } else { DIGITS[value].into() });
        }
    }
    text
}

fn check_offset(row: &Row, group: &str, partition: &TopicPartition, value: &RecordValue<CommittedOffset>) {
    assert_eq!(row.said[1..], ["", ""], "each formatter prints only its kind");
    let TopicPartition { topic, partition } = partition;
    if row.release == "4.4.0" {
        let data = json!({ "group": group, "topic": **topic, "partition": partition });
        return check_json(row.said[0], json!({ "type": 1, "data": data }), value, offset_json);
    }
    let text = value.read().map_or("NULL".to_owned(), |value| offset_text(row.release, value));
    assert_eq!(row.said[0], format!("[{group},{topic},{partition}]::{text}"), "{}", row.release);
}

fn check_group(row: &Row, name: &str, value: &RecordValue<GroupMetadata>) {
    assert_eq!(row.said[0], "", "each formatter prints only its kind");
    if row.release == "4.4.0" {
        let key = json!({ "type": 2, "data": { "group": name } });
        return check_json(row.said[1], key, value, group_json);
    }
    let Some(group) = value.read() else {
        return assert_eq!(row.said[1], format!("{name}::NULL"), "{}", row.release);
    };
    // Kafka has put them into a hash map; there are two at most
    let orders = [group.members.iter().collect::<Vec<_>>(), group.members.iter().rev().collect()];
    let texts = orders.map(|order| format!("{name}::{}", group_text(row.release, name, group, &order)));
    assert!(
        texts.iter().any(|text| text == row.said[1]),
        "{}: {} is not {texts:#?}",
        row.release,
        row.said[1]
    );
}

fn check_json<T>(said: &str, key: Value, value: &RecordValue<T>, json: impl Fn(&T) -> Value) {
    let expected = json!({ "key": key, "value": value.read().map(json) });
    assert_eq!(serde_json::from_str::<Value>(said).expect("JSON"), expected);
}

#[test]
fn b25_we_read_what_kafka_reads() {
    for row in rows() {
        match row.record() {
            OffsetsRecord::Offset { group, partition, value } => {
                check_offset(&row, &group, &partition, &value);
            }
            OffsetsRecord::Group { group, value } => check_group(&row, &group, &value),
            OffsetsRecord::Unknown { .. } => assert_eq!(row.said, ["", "", ""], "not for these formatters"),
            damaged @ OffsetsRecord::Damaged { .. } => panic!("{}: {damaged:?}", row.release),
        }
    }
}

#[test]
fn who_has_what_is_what_kafka_says() {
    let mut members = 0;
    for row in rows() {
        let OffsetsRecord::Group { value: RecordValue::Read(group), .. } = row.record() else { continue };
        let all = group.members.iter().map(|member| {
            let assignment = ConsumerAssignment::decode(member.assignment.clone()).expect("an assignment");
            format!("{}={:?}", member.member_id, assignment.partitions)
        });
        let mut all: Vec<_> = all.collect();
        members += all.len();
        let mut said: Vec<_> = row.said[2].split(';').filter(|member| !member.is_empty()).collect();
        all.sort();
        said.sort_unstable();
        assert_eq!(all, said, "{}", row.release);
    }
    // three of each release with groups, and a static one of each of the last three
    assert!(members >= 3 * 7 + 3, "{members}");
}

#[test]
fn every_record_lies_in_the_partition_of_its_group() {
    for row in rows() {
        let (OffsetsRecord::Offset { group, .. } | OffsetsRecord::Group { group, .. }) = row.record() else {
            continue;
        };
        assert_eq!(partition_for_group(&group, PARTITIONS), row.partition, "{} {group}", row.release);
    }
}

#[test]
fn each_release_has_written_what_it_writes() {
    let mut seen = BTreeSet::new();
    for row in rows() {
        let value = row.value.as_ref().map_or(-1, |value| i16::from_be_bytes([value[0], value[1]]));
        seen.insert((row.release, i16::from_be_bytes([row.key[0], row.key[1]]), value));
    }
    let mut expected = BTreeSet::from([("0.8.2.2", 0, 0), ("0.8.2.2", 0, -1)]);
    let mut add = |release, key: i16, values: &[i16]| {
        expected.extend(values.iter().map(|value| (release, key, *value)));
    };
    for (release, offsets, groups) in [
        ("0.9.0.1", &[-1, 1][..], &[-1, 0][..]),
        ("0.10.2.2", &[-1, 1], &[1]),
        ("0.11.0.3", &[-1, 1], &[1]),
        ("1.1.1", &[-1, 1], &[1]),
        ("2.8.2", &[-1, 1, 3], &[3]),
        ("3.9.1", &[-1, 1, 3], &[3]),
        ("4.4.0", &[-1, 1, 4], &[-1, 3]),
    ] {
        add(release, 1, offsets);
        add(release, 2, groups);
    }
    // a group of KIP-848: itself, its members, and what they are to have and have
    for (kind, values) in [(3, &[0][..]), (5, &[-1, 0]), (6, &[0]), (7, &[-1, 0]), (8, &[-1, 0])] {
        add("4.4.0", kind, values);
    }
    assert_eq!(seen, expected);
    let statics = rows().filter(|row| match row.record() {
        OffsetsRecord::Group { value: RecordValue::Read(group), .. } => {
            group.members.iter().any(|member| member.instance_id.as_deref() == Some("static-1"))
        }
        _ => false,
    });
    assert_eq!(
        statics.map(|row| row.release).collect::<BTreeSet<_>>(),
        BTreeSet::from(["2.8.2", "3.9.1", "4.4.0"])
    );
}

#[test]
fn the_partition_of_a_group_is_javas() {
    let mut beyond_the_plane = 0;
    for line in include_str!("golden/groups.txt").lines() {
        let fields: Vec<_> = line.split('\t').collect();
        let [group, hash, partitions @ ..] = &fields[..] else { panic!("{line}") };
        assert_eq!(java_hash(group).to_string(), *hash, "{group}");
        let ours = [50, 3, 8, 1, i32::MAX as u32]
            .map(|count| partition_for_group(group, NonZeroU32::new(count).expect("not 0")).to_string());
        assert_eq!(ours, partitions, "{group}");
        beyond_the_plane += usize::from(group.chars().any(|c| c.len_utf16() == 2));
    }
    assert!(beyond_the_plane > 20, "{beyond_the_plane} names with surrogates");
}
