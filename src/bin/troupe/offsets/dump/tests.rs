use super::*;

#[test]
fn kinds_go_by_short_names_and_by_those_of_kafkas_classes() {
    use OffsetsFormatter::{Groups, OffsetManager, Offsets, OldGroups};
    for (name, expected) in [
        ("both", &[Offsets, Groups][..]),
        ("offsets", &[Offsets]),
        ("groups", &[Groups]),
        ("kafka.server.OffsetManager$OffsetsMessageFormatter", &[OffsetManager]),
        ("kafka.coordinator.GroupMetadataManager\\$OffsetsMessageFormatter", &[Offsets]),
        ("kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter", &[Offsets]),
        ("kafka.coordinator.GroupMetadataManager$GroupMetadataMessageFormatter", &[OldGroups]),
        ("kafka.coordinator.group.GroupMetadataManager$GroupMetadataMessageFormatter", &[Groups]),
    ] {
        assert_eq!(name.parse::<Kinds>().expect("a formatter").formatters, expected, "{name}");
    }
    assert!("kafka.tools.DefaultMessageFormatter".parse::<Kinds>().is_err());
}

#[test]
fn b25_what_no_formatter_has_is_marked_where_all_is_asked_for() {
    let unknown = decode(Some(b"\0\x05new"), None);
    let kinds = |name: &str| name.parse::<Kinds>().expect("a formatter").line(&unknown);
    assert_eq!(kinds("both").as_deref(), Some("UNKNOWN[key of version 5, 5 bytes]"));
    assert_eq!((kinds("offsets"), kinds("groups")), (None, None));
}
