use super::{judge_decode, text};
use crate::kafka::api_versions::ApiVersionsRequest;
use crate::kafka::fetch::{FetchPartition, FetchRequest, FetchTopic, ForgottenTopic};
use crate::kafka::find_coordinator::FindCoordinatorRequest;
use crate::kafka::list_offsets::{ListOffsetsRequest, ListOffsetsTopic};
use crate::kafka::offset_commit::{CommitPartition, CommitTopic, OffsetCommitRequest};
use crate::kafka::offset_fetch::OffsetFetchRequest;
use kafka_protocol::messages as judge;
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;

fn topics<T: std::fmt::Debug + Clone>(
    partition: impl Strategy<Value = T>,
) -> impl Strategy<Value = Vec<(Arc<str>, Vec<T>)>> {
    vec((text(), vec(partition, 0..4)), 0..4)
}

fn fetch_partition() -> impl Strategy<Value = FetchPartition> {
    any::<(i32, i32, i64, i32)>().prop_map(|(partition, leader_epoch, offset, max_bytes)| FetchPartition {
        partition,
        leader_epoch,
        offset,
        max_bytes,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn fetch(
        version in 0..=11i16,
        (max_wait_ms, min_bytes, max_bytes, session_id) in any::<(i32, i32, i32, i32)>(),
        (session_epoch, read_committed) in any::<(i32, bool)>(),
        asked in topics(fetch_partition()),
        dropped in topics(any::<i32>()),
        rack in text(),
    ) {
        let request = FetchRequest {
            max_wait_ms, min_bytes, max_bytes, read_committed, session_id, session_epoch, rack,
            topics: asked.into_iter().map(|(topic, partitions)| FetchTopic { topic, partitions }).collect(),
            forgotten: dropped.into_iter().map(|(topic, partitions)| ForgottenTopic { topic, partitions }).collect(),
        };
        let judged: judge::FetchRequest = judge_decode(&request, version);
        prop_assert_eq!(judged.replica_id.0, -1);
        prop_assert_eq!((judged.max_wait_ms, judged.min_bytes), (max_wait_ms, min_bytes));
        prop_assert!(version < 3 || judged.max_bytes == max_bytes);
        prop_assert!(version < 4 || (judged.isolation_level == 1) == read_committed);
        prop_assert!(version < 7 || (judged.session_id, judged.session_epoch) == (session_id, session_epoch));
        prop_assert!(version < 11 || *judged.rack_id == *request.rack);
        let asked: Vec<_> = judged.topics.iter().map(|topic| FetchTopic {
            topic: Arc::from(&**topic.topic),
            partitions: topic.partitions.iter().map(|p| FetchPartition {
                partition: p.partition,
                leader_epoch: p.current_leader_epoch,
                offset: p.fetch_offset,
                max_bytes: p.partition_max_bytes,
            }).collect(),
        }).collect();
        let mut expected = request.topics.clone();
        if version < 9 {
            expected.iter_mut().flat_map(|t| &mut t.partitions).for_each(|p| p.leader_epoch = -1);
        }
        prop_assert_eq!(asked, expected);
        let dropped: Vec<_> = judged.forgotten_topics_data.iter().map(|topic| ForgottenTopic {
            topic: Arc::from(&**topic.topic),
            partitions: topic.partitions.clone(),
        }).collect();
        prop_assert!(version < 7 || dropped == request.forgotten);
    }

    #[test]
    fn list_offsets(version in 0..=2i16, read_committed: bool, asked in topics(any::<(i32, i64)>())) {
        let topics = asked.into_iter().map(|(topic, partitions)| ListOffsetsTopic { topic, partitions });
        let request = ListOffsetsRequest { read_committed, topics: topics.collect() };
        let judged: judge::ListOffsetsRequest = judge_decode(&request, version);
        prop_assert_eq!(judged.replica_id.0, -1);
        prop_assert!(version < 2 || (judged.isolation_level == 1) == read_committed);
        let asked: Vec<_> = judged.topics.iter().map(|topic| ListOffsetsTopic {
            topic: Arc::from(topic.name.as_str()),
            partitions: topic.partitions.iter().map(|p| (p.partition_index, p.timestamp)).collect(),
        }).collect();
        prop_assert_eq!(asked, request.topics);
        let all = || judged.topics.iter().flat_map(|topic| &topic.partitions);
        prop_assert!(version > 0 || all().all(|p| p.max_num_offsets == 1));
    }

    #[test]
    fn offset_commit(
        version in 1..=2i16,
        (group, member) in (text(), text()),
        generation: i32,
        stored in topics((any::<(i32, i64)>(), text())),
    ) {
        let topics = stored.into_iter().map(|(topic, partitions)| CommitTopic {
            topic,
            partitions: partitions.into_iter().map(|((partition, offset), metadata)| CommitPartition {
                partition, offset, metadata,
            }).collect(),
        });
        let request = OffsetCommitRequest { group, generation, member, topics: topics.collect() };
        let judged: judge::OffsetCommitRequest = judge_decode(&request, version);
        prop_assert_eq!(&**judged.group_id, &*request.group);
        prop_assert_eq!(&*judged.member_id, &*request.member);
        prop_assert_eq!((judged.generation_id_or_member_epoch, judged.retention_time_ms), (generation, -1));
        let stored: Vec<_> = judged.topics.iter().map(|topic| CommitTopic {
            topic: Arc::from(topic.name.as_str()),
            partitions: topic.partitions.iter().map(|p| CommitPartition {
                partition: p.partition_index,
                offset: p.committed_offset,
                metadata: Arc::from(p.committed_metadata.as_deref().expect("metadata")),
            }).collect(),
        }).collect();
        prop_assert_eq!(stored, request.topics);
        let all = || judged.topics.iter().flat_map(|topic| &topic.partitions);
        prop_assert!(all().all(|p| p.commit_timestamp == -1));
    }

    #[test]
    fn offset_fetch(version in 1..=2i16, group in text(), asked in proptest::option::of(topics(any::<i32>()))) {
        let request = OffsetFetchRequest { group, topics: asked.clone() };
        let judged: judge::OffsetFetchRequest = judge_decode(&request, version);
        prop_assert_eq!(&**judged.group_id, &*request.group);
        let judged = judged.topics.map(|topics| {
            topics.iter().map(|t| (Arc::from(t.name.as_str()), t.partition_indexes.clone())).collect::<Vec<_>>()
        });
        let expected = if version < 2 { Some(asked.unwrap_or_default()) } else { asked };
        prop_assert_eq!(judged, expected);
    }

    #[test]
    fn find_coordinator(group in text()) {
        let judged: judge::FindCoordinatorRequest =
            judge_decode(&FindCoordinatorRequest { group: group.clone() }, 0);
        prop_assert_eq!(&*judged.key, &*group);
    }
}

#[test]
fn api_versions() {
    let _: judge::ApiVersionsRequest = judge_decode(&ApiVersionsRequest, 0);
}
