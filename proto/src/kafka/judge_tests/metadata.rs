use super::{cuts_fail, judge_decode, judge_encode, judge_tags, judge_text, judge_topic, text};
use crate::kafka::frame::{Request, Response};
use crate::kafka::metadata::{Broker, MetadataRequest, MetadataResponse, Partition, Topic, TopicId};
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{self as judge, BrokerId};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

fn broker() -> impl Strategy<Value = Broker> {
    (any::<(i32, i32)>(), text(), option::of(text())).prop_map(|((id, port), host, rack)| Broker {
        id,
        host,
        port,
        rack,
    })
}

fn topic() -> impl Strategy<Value = Topic> {
    (any::<(i16, bool)>(), text(), option::of(any::<[u8; 16]>()), vec(partition(), 0..4)).prop_map(
        |((error, is_internal), name, id, partitions)| {
            let id = id.filter(|id| *id != [0; 16]).map(TopicId);
            Topic { error: error.into(), name, is_internal, id, partitions }
        },
    )
}

fn partition() -> impl Strategy<Value = Partition> {
    let numbers = || option::of(0..=i32::MAX);
    let replicas = || vec(any::<i32>(), 0..4);
    (any::<(i16, i32)>(), numbers(), numbers(), replicas(), replicas(), replicas()).prop_map(
        |((error, partition), leader, leader_epoch, replicas, isr, offline_replicas)| Partition {
            error: error.into(),
            partition,
            leader,
            leader_epoch,
            replicas,
            isr,
            offline_replicas,
        },
    )
}

/// What is left of it in `version`.
fn in_version(version: i16, mut response: MetadataResponse) -> MetadataResponse {
    if version < 1 {
        response.controller_id = -1;
        response.brokers.iter_mut().for_each(|broker| broker.rack = None);
        response.topics.iter_mut().for_each(|topic| topic.is_internal = false);
    }
    response.cluster_id.take_if(|_| version < 2);
    if version < 3 {
        response.throttle_ms = 0;
    }
    for topic in &mut response.topics {
        topic.id.take_if(|_| version < 10);
        for partition in &mut topic.partitions {
            partition.leader_epoch.take_if(|_| version < 7);
            if version < 5 {
                partition.offline_replicas.clear();
            }
        }
    }
    response
}

fn judge_response(version: i16, response: &MetadataResponse, operations: i32) -> judge::MetadataResponse {
    let tags = if version >= MetadataRequest::FLEXIBLE_FROM { judge_tags() } else { BTreeMap::new() };
    let brokers = response.brokers.iter().map(|broker| {
        MetadataResponseBroker::default()
            .with_node_id(broker.id.into())
            .with_host(judge_text(&broker.host))
            .with_port(broker.port)
            .with_rack(broker.rack.as_deref().map(judge_text))
            .with_unknown_tagged_fields(tags.clone())
    });
    judge::MetadataResponse::default()
        .with_throttle_time_ms(response.throttle_ms)
        .with_brokers(brokers.collect())
        .with_cluster_id(response.cluster_id.as_deref().map(judge_text))
        .with_controller_id(response.controller_id.into())
        .with_topics(
            response.topics.iter().map(|topic| judge_one_topic(version, topic, operations, &tags)).collect(),
        )
        .with_cluster_authorized_operations(if (8..=10).contains(&version) { operations } else { i32::MIN })
        .with_unknown_tagged_fields(tags)
}

fn judge_one_topic(
    version: i16,
    topic: &Topic,
    operations: i32,
    tags: &BTreeMap<i32, bytes::Bytes>,
) -> MetadataResponseTopic {
    let ids = |ids: &[i32]| ids.iter().map(|id| BrokerId(*id)).collect::<Vec<_>>();
    let partitions = topic.partitions.iter().map(|partition| {
        MetadataResponsePartition::default()
            .with_error_code(partition.error.code())
            .with_partition_index(partition.partition)
            .with_leader_id(partition.leader.unwrap_or(-1).into())
            .with_leader_epoch(partition.leader_epoch.unwrap_or(-1))
            .with_replica_nodes(ids(&partition.replicas))
            .with_isr_nodes(ids(&partition.isr))
            .with_offline_replicas(ids(&partition.offline_replicas))
            .with_unknown_tagged_fields(tags.clone())
    });
    let id = topic.id.map_or([0; 16], |id| id.0);
    // from version 12 the name may be null, which we read as empty
    let name = Some(judge_topic(&topic.name)).filter(|name| version < 12 || !name.is_empty());
    MetadataResponseTopic::default()
        .with_error_code(topic.error.code())
        .with_name(name)
        .with_topic_id(id.to_vec().try_into().expect("16 bytes"))
        .with_is_internal(topic.is_internal)
        .with_partitions(partitions.collect())
        .with_topic_authorized_operations(if version >= 8 { operations } else { i32::MIN })
        .with_unknown_tagged_fields(tags.clone())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn metadata_request_in_all_versions(version in 0..=12i16, asked in option::of(vec(text(), 0..4))) {
        let judged: judge::MetadataRequest = judge_decode(&MetadataRequest { topics: asked.clone() }, version);
        prop_assert!(version < 4 || !judged.allow_auto_topic_creation, "it would create topics");
        prop_assert!(!judged.include_topic_authorized_operations && !judged.include_cluster_authorized_operations);
        let judged: Option<Vec<Arc<str>>> = judged.topics.map(|topics| {
            assert!(topics.iter().all(|topic| topic.topic_id.is_nil()));
            topics.iter().map(|topic| Arc::from(topic.name.as_ref().expect("a name").as_str())).collect()
        });
        let expected = if version == 0 { Some(asked.unwrap_or_default()) } else { asked };
        prop_assert_eq!(judged, expected);
    }

    #[test]
    fn metadata_response_in_all_versions_with_tagged_fields_that_nobody_knows(
        version in 0..=12i16,
        (throttle_ms, controller_id, operations) in any::<(i32, i32, i32)>(),
        brokers in vec(broker(), 0..3),
        cluster_id in option::of(text()),
        topics in vec(topic(), 0..3),
    ) {
        let whole = MetadataResponse { throttle_ms, brokers, cluster_id, controller_id, topics };
        let expected = in_version(version, whole);
        let body = judge_encode(&judge_response(version, &expected, operations), version);
        prop_assert_eq!(MetadataResponse::decode(version, body.clone()).expect("we decode"), expected);
        cuts_fail::<MetadataResponse>(version, &body);
    }
}
