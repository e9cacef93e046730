//! What Kafka's formatters print, line by line: against those of each release, and for what they cannot read.

use super::golden::rows;
use super::*;

/// The formatters of a release: of offsets and of groups, as they are given to `--formatter`.
fn classes(release: &str) -> [&'static str; 2] {
    match release {
        "0.8.2.2" => ["kafka.server.OffsetManager$OffsetsMessageFormatter", "none"],
        "0.9.0.1" | "0.10.2.2" => [
            "kafka.coordinator.GroupMetadataManager$OffsetsMessageFormatter",
            "kafka.coordinator.GroupMetadataManager$GroupMetadataMessageFormatter",
        ],
        _ => [
            "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter",
            "kafka.coordinator.group.GroupMetadataManager$GroupMetadataMessageFormatter",
        ],
    }
}

fn line(class: &str, record: &OffsetsRecord) -> String {
    let formatter = OffsetsFormatter::of_class(class);
    formatter.and_then(|formatter| formatter.line(record)).unwrap_or_default()
}

/// In the order of the record: Java's is that of a hash map. There are two members at most.
fn as_we_order(said: &str, record: &OffsetsRecord) -> String {
    let OffsetsRecord::Group { value: RecordValue::Read(group), .. } = record else { return said.to_owned() };
    let [first, second] = &group.members[..] else { return said.to_owned() };
    let at = |member: &GroupMember| said.find(&format!("{} -> ", member.member_id)).expect("it is named");
    let (first, second) = (at(first), at(second));
    if first < second {
        return said.to_owned();
    }
    let end = said.rfind(if said.contains("GroupMetadata(") { "))" } else { ")]" }).expect("it ends");
    [&said[..second], &said[first..end], ", ", &said[second..first - 2], &said[end..]].concat()
}

#[test]
fn b25_lines_are_those_of_kafkas_formatters() {
    let mut compared = 0;
    // those of 4.x write JSON
    for row in rows().filter(|row| row.release != "4.4.0") {
        let record = row.record();
        let [offsets, groups] = classes(row.release).map(|class| line(class, &record));
        let version = row.value.as_ref().map_or(-1, |value| i16::from_be_bytes([value[0], value[1]]));
        let mut said = [row.said[0].to_owned(), as_we_order(row.said[1], &record)];
        match (row.release, version) {
            // later releases print the old versions their way
            ("2.8.2" | "3.9.1", 1) => continue,
            ("2.8.2", 3) => said[1] = said[1].replace("List(range), )", "List(range))"),
            ("0.11.0.3", 1) => said[1] = said[1].replace("protocolType=None", "protocolType=Some(consumer)"),
            _ => {}
        }
        assert_eq!([offsets, groups], said, "{} {}", row.release, row.partition);
        compared += 1;
    }
    assert!(compared > 60, "{compared}");
}

#[test]
fn b25_what_is_not_known_is_a_marked_line_of_its_kind() {
    let [offsets, groups] = classes("1.1.1");
    let [value, later] = [Bytes::from_static(b"\0\x03\0"), Bytes::from_static(b"\0\x09new")];
    let offset = |value: &Bytes| decode(Some(&offset_key(1, "g", "t", 3)), Some(value.clone()));
    let group = |value: &Bytes| decode(Some(&group_key(2, "g")), Some(value.clone()));
    let damaged = "OffsetCommitValue.offset at byte 2: needs 8 bytes, 1 are left";
    assert_eq!(line(offsets, &offset(&later)), "[g,t,3]::UNKNOWN[value of version 9, 5 bytes]");
    assert_eq!(line(offsets, &offset(&value)), format!("[g,t,3]::DAMAGED[value of 3 bytes: {damaged}]"));
    assert_eq!(line(groups, &group(&later)), "g::UNKNOWN[value of version 9, 5 bytes]");
    assert_eq!((line(offsets, &group(&later)), line(groups, &offset(&later))), Default::default());
    let key = decode(Some(b"\0\x01\0\x09g"), None);
    let why = "OffsetCommitKey.group at byte 4: needs 9 bytes, 1 are left";
    assert_eq!(line(offsets, &key), format!("DAMAGED[key of 5 bytes: {why}]"));
    assert_eq!((line(groups, &key), line(offsets, &decode(None, Some(later)))), Default::default());
}

#[test]
fn only_kafkas_class_names_are_formatters() {
    for name in ["", "OffsetsMessageFormatter", "kafka.server.GroupMetadataManager$OffsetsMessageFormatter"] {
        assert_eq!(OffsetsFormatter::of_class(name), None, "{name}");
    }
    let of_old_groups = OffsetsFormatter::of_class(classes("0.10.2.2")[1]);
    assert_eq!(of_old_groups, Some(OffsetsFormatter::OldGroups));
}
