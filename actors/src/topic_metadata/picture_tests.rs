use kafka_protocol::messages as wire;
use kafka_protocol::messages::{BrokerId, TopicName};
use kafka_protocol::protocol::{Encodable as _, StrBytes};
use kafka_troupe_proto::kafka::frame::Response as _;

use super::*;

/// Name, error code, topic id and partitions.
type Told<'a> = (&'a str, i16, u8, &'a [i32]);

const V12: i16 = 12;

/// As a broker encodes it: the fields of a response can be set nowhere else.
fn response(brokers: &[(i32, i32)], topics: &[Told<'_>]) -> MetadataResponse {
    let text = |text: &str| StrBytes::from_string(text.to_owned());
    let brokers = brokers.iter().map(|(id, port)| {
        wire::metadata_response::MetadataResponseBroker::default()
            .with_node_id(BrokerId(*id))
            .with_host(text("h"))
            .with_port(*port)
    });
    let topics = topics.iter().map(|(name, error, id, partitions)| {
        let partitions = partitions.iter().map(|index| {
            wire::metadata_response::MetadataResponsePartition::default().with_partition_index(*index)
        });
        wire::metadata_response::MetadataResponseTopic::default()
            .with_error_code(*error)
            .with_name(Some(TopicName(text(name))))
            .with_topic_id(format!("{id:032x}").parse().expect("an id"))
            .with_is_internal(name.starts_with("__"))
            .with_partitions(partitions.collect())
    });
    let response =
        wire::MetadataResponse::default().with_brokers(brokers.collect()).with_topics(topics.collect());
    let mut out = bytes::BytesMut::from(&[0][..]);
    response.encode(&mut out, V12).expect("it can be encoded");
    MetadataResponse::decode(V12, out.freeze()).expect("it can be decoded")
}

fn picture(topics: &[Told<'_>]) -> Picture {
    Picture::next(None, response(&[(1, 9092)], topics)).expect("a picture")
}

fn after(known: &Picture, topics: &[Told<'_>]) -> Picture {
    Picture::next(Some(known), response(&[(1, 9092)], topics)).expect("a picture")
}

fn partitions(changes: &Changes) -> Vec<&str> {
    changes.partitions.iter().map(AsRef::as_ref).collect()
}

#[test]
fn partitions_come_in_order_and_all_is_new_at_first() {
    let picture = picture(&[("a", 0, 1, &[2, 0, 1]), ("__b", 0, 2, &[0])]);
    assert_eq!(picture.topics["a"].partitions, [0, 1, 2]);
    assert!(picture.topics["__b"].is_internal && !picture.topics["a"].is_internal);
    let changes = picture.changes(None);
    assert!(changes.topics && changes.brokers);
    assert_eq!(partitions(&changes), ["__b", "a"]);
    assert!(picture.changes(Some(&picture)).is_empty());
}

#[test]
fn only_what_changed_is_told() {
    let known = picture(&[("a", 0, 1, &[0]), ("b", 0, 2, &[0])]);
    let grown = after(&known, &[("a", 0, 1, &[0, 1]), ("b", 0, 2, &[0])]);
    let changes = grown.changes(Some(&known));
    assert!(!changes.topics && !changes.brokers && !grown.lacks(&known));
    assert_eq!(partitions(&changes), ["a"]);
    let more = after(&known, &[("a", 0, 1, &[0]), ("b", 0, 2, &[0]), ("c", 0, 3, &[0])]);
    let changes = more.changes(Some(&known));
    assert!(changes.topics && !changes.brokers);
    assert_eq!(partitions(&changes), ["c"]);
    let moved = Picture::next(Some(&known), response(&[(1, 9093)], &[("a", 0, 1, &[0]), ("b", 0, 2, &[0])]));
    let changes = moved.expect("a picture").changes(Some(&known));
    assert!(changes.brokers && !changes.topics && changes.partitions.is_empty());
}

#[test]
fn a_topic_made_again_is_a_change_although_it_looks_the_same() {
    let known = picture(&[("a", 0, 1, &[0, 1])]);
    let remade = after(&known, &[("a", 0, 9, &[0])]);
    assert_eq!(partitions(&remade.changes(Some(&known))), ["a"]);
    assert!(!remade.lacks(&known), "it has fewer partitions because it is another");
    // an upgraded cluster gives ids to topics that had none
    let nameless = picture(&[("a", 0, 0, &[0, 1])]);
    assert_eq!(nameless.topics["a"].id, None);
    assert!(known.changes(Some(&nameless)).is_empty());
}

#[test]
fn what_is_missing_is_noticed() {
    let known = picture(&[("a", 0, 1, &[0, 1]), ("b", 0, 2, &[0])]);
    assert!(after(&known, &[("a", 0, 1, &[0, 1])]).lacks(&known));
    assert!(after(&known, &[("a", 0, 1, &[0]), ("b", 0, 2, &[0])]).lacks(&known));
    assert!(after(&known, &[("a", 3, 1, &[]), ("b", 0, 2, &[0])]).lacks(&known), "unknown is gone");
    assert!(!after(&known, &[("a", 0, 1, &[0, 1]), ("b", 0, 2, &[0])]).lacks(&known));
}

#[test]
fn a_topic_whose_partitions_cannot_be_told_now_stays_as_it_was() {
    let known = picture(&[("a", 0, 1, &[0, 1])]);
    let being_made = after(&known, &[("a", 5, 1, &[]), ("new", 5, 2, &[])]);
    assert_eq!(being_made.topics, known.topics);
    // the error of the topic is that of one partition without a leader, in old versions
    let leaderless = after(&known, &[("a", 5, 1, &[0, 1, 2])]);
    assert_eq!(leaderless.topics["a"].partitions, [0, 1, 2]);
}

#[test]
fn a_broker_that_knows_of_no_brokers_knows_nothing() {
    let known = picture(&[("a", 0, 1, &[0])]);
    assert!(Picture::next(Some(&known), response(&[], &[])).is_err());
    assert!(Picture::next(None, response(&[(1, 0), (2, -1), (3, 70000)], &[])).is_err());
    let some = Picture::next(None, response(&[(2, 9092), (1, -1)], &[])).expect("one can be dialled");
    assert_eq!(some.brokers.iter().map(|broker| broker.id).collect::<Vec<_>>(), [2]);
}
