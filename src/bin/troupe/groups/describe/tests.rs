use kafka_troupe::GroupView;
use kafka_troupe::proto::schemas::group::v1::{GroupMember, GroupPartition};
use serde_json::{Value, json};

use super::rows::{PartitionRow, StateRow};
use super::{Coordination, of_topics, zookeeper};
use crate::output::Row;

const MEMBER: &str = "g_host.example-1795989640439-8f02c2d2";

fn partition(number: i32) -> GroupPartition {
    GroupPartition { topic: "orders".to_owned(), partition: number, ..GroupPartition::default() }
}

fn view(partitions: Vec<GroupPartition>, members: Vec<GroupMember>) -> GroupView {
    GroupView { group: "g".to_owned(), members, partitions, ..GroupView::default() }
}

fn member(id: &str) -> GroupMember {
    GroupMember {
        id: id.to_owned(),
        session_id: 7,
        since_ms: 1_795_989_640_439,
        streams: 1,
        ..GroupMember::default()
    }
}

fn rows(view: &GroupView) -> Vec<Value> {
    zookeeper::described(view).partitions.iter().map(|row| serde_json::to_value(row).unwrap()).collect()
}

#[test]
fn the_larger_offset_counts_and_both_are_told() {
    let at = |zookeeper, kafka, end| {
        let row = PartitionRow::new("g", Coordination::ZooKeeper).at(zookeeper, kafka, end);
        let row = serde_json::to_value(row).unwrap();
        json!([row["committed"], row["offset_store"], row["lag"], row["note"]])
    };
    assert_eq!(at(Some(7), None, Some(9)), json!([7, "zookeeper", 2, null]));
    assert_eq!(at(Some(7), Some(8), Some(9)), json!([8, "kafka", 1, null]));
    assert_eq!(at(Some(8), Some(8), Some(9)), json!([8, "both", 1, null]));
    assert_eq!(at(Some(0), None, None), json!([0, "zookeeper", null, null]));
    assert_eq!(at(None, None, Some(9)), json!([null, null, null, null]), "b24: not the end and one more");
    let beyond = json!([12, "zookeeper", 0, "the offset is beyond the end of the log"]);
    assert_eq!(at(Some(12), None, Some(9)), beyond, "b24: never below 0");
}

#[test]
fn topics_that_are_asked_for_are_all_that_is_left() {
    let other = GroupPartition { topic: "other".to_owned(), ..partition(0) };
    let left = |topics: &[&str]| {
        let mut groups =
            [zookeeper::described(&view(vec![partition(1), other.clone()], vec![member(MEMBER)]))];
        let topics: Vec<_> = topics.iter().map(|topic| (*topic).to_owned()).collect();
        let all_are_there = of_topics(&mut groups, &topics);
        let left = groups[0].partitions.iter().map(|row| row.topic.clone().unwrap_or_default());
        (left.collect::<Vec<_>>().join(" "), all_are_there)
    };
    assert_eq!(left(&[]), ("orders other ".to_owned(), true), "with the member that has none");
    assert_eq!(left(&["other"]), ("other".to_owned(), true));
    assert_eq!(left(&["orders", "other"]), ("orders other".to_owned(), true));
    assert_eq!(left(&["orders", "gone"]), ("orders".to_owned(), false));
}

#[test]
fn the_host_is_in_the_id_of_a_member_that_was_given_one() {
    let told = |group: &str, id: &str| {
        let view = GroupView { group: group.to_owned(), ..view(Vec::new(), vec![member(id)]) };
        zookeeper::described(&view).members[0].client_host.clone()
    };
    assert_eq!(told("g", MEMBER).as_deref(), Some("host.example"));
    assert_eq!(told("g-1_x", "g-1_x_a-b-1795989640439-8f02c2d2").as_deref(), Some("a-b"));
    for fixed in ["g_fix", "g_a-b-c", "g_-1795989640439-8f02c2d2", "other_h-1795989640439-8f02c2d2", ""] {
        assert_eq!(told("g", fixed), None, "{fixed}");
    }
}

#[test]
fn owners_that_are_not_as_they_should_be_are_noted() {
    let owned = |number, member: &str, session_id| GroupPartition {
        owner_thread: Some(format!("{MEMBER}-0")),
        owner_member: member.to_owned(),
        owner_is_missing: member.is_empty(),
        session_id,
        ..partition(number)
    };
    let differs = GroupPartition { session_differs: true, ..owned(2, MEMBER, 5) };
    let gone = GroupPartition { exists: Some(false), error: "unreadable".to_owned(), ..partition(3) };
    let view = view(vec![owned(0, "", 0), owned(1, "", 5), differs, gone], vec![member(MEMBER)]);
    let rows = rows(&view);
    let notes: Vec<_> = rows.iter().map(|row| row["note"].as_str().unwrap()).collect();
    assert!(notes[0].contains("by no session"), "{notes:?}");
    assert_eq!(notes[1], "owned by nobody who is registered");
    assert!(notes[2].contains("another session"), "{notes:?}");
    assert_eq!(notes[3], "it does not exist; unreadable");
    assert_eq!(rows[0]["member"], Value::Null);
    assert_eq!(rows[2]["member"], MEMBER);
}

#[test]
fn a_member_without_partitions_has_a_row_of_its_own() {
    let owned = GroupPartition { owner_member: MEMBER.to_owned(), ..partition(0) };
    let described = zookeeper::described(&view(vec![owned], vec![member(MEMBER), member("g_spare")]));
    assert_eq!(described.partitions.len(), 2);
    let spare = &described.partitions[1];
    assert_eq!((spare.partition, spare.member.as_deref()), (None, Some("g_spare")));
    assert_eq!((described.state.members, described.state.partitions), (Some(2), Some(1)));
}

#[test]
fn every_row_has_a_cell_for_each_head_and_a_dash_for_what_is_not_known() {
    let partition = PartitionRow::new("g", Coordination::Kafka).cells();
    assert_eq!(partition.len(), PartitionRow::HEAD.len());
    assert!(partition[2..].iter().all(|cell| cell == "-"), "{partition:?}");
    let state = StateRow::new("g", Coordination::Kafka).cells();
    assert_eq!(state.len(), StateRow::HEAD.len());
    let member = super::rows::MemberRow::new("g", Coordination::Kafka, "m").cells();
    assert_eq!(member.len(), super::rows::MemberRow::HEAD.len());
}
