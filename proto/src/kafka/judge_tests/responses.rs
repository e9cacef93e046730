use super::{cuts_fail, judge_encode, judge_text, judge_topic, text};
use crate::kafka::api_versions::ApiVersionsResponse;
use crate::kafka::error_code::ErrorCode;
use crate::kafka::fetch::{FetchDecoder, FetchPart, FetchResponse, FetchedTopic};
use crate::kafka::find_coordinator::FindCoordinatorResponse;
use crate::kafka::frame::{ApiKey, Response, VersionRange};
use crate::kafka::list_offsets::ListOffsetsResponse;
use crate::kafka::offset_commit::OffsetCommitResponse;
use crate::kafka::offset_fetch::OffsetFetchResponse;
use bytes::Bytes;
use kafka_protocol::messages as judge;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::sync::Arc;

type FetchedTuple = ((i32, i16, i64, i64, i64), Option<Vec<(i64, i64)>>, i32, Option<Vec<u8>>);

fn fetched() -> impl Strategy<Value = FetchedTuple> {
    (
        any::<(i32, i16, i64, i64, i64)>(),
        option::of(vec(any::<(i64, i64)>(), 0..3)),
        -1..9i32,
        option::of(vec(any::<u8>(), 0..40)),
    )
}

fn partition_data(version: i16, fetched: &FetchedTuple) -> judge::fetch_response::PartitionData {
    let ((partition, error, high, stable, start), aborted, replica, records) = fetched.clone();
    let aborted = aborted.map(|all| {
        all.into_iter()
            .map(|(producer, first)| {
                judge::fetch_response::AbortedTransaction::default()
                    .with_producer_id(producer.into())
                    .with_first_offset(first)
            })
            .collect()
    });
    judge::fetch_response::PartitionData::default()
        .with_partition_index(partition)
        .with_error_code(error)
        .with_high_watermark(high)
        .with_last_stable_offset(stable)
        .with_log_start_offset(start)
        .with_aborted_transactions(if version >= 4 { aborted } else { Some(vec![]) })
        .with_preferred_read_replica(if version >= 11 { replica } else { -1 }.into())
        .with_records(records.map(Bytes::from))
}

/// Decodes the body as it would arrive: `until` answers how much is there next, after how much.
fn decode_arriving(version: i16, body: &Bytes, until: impl Fn(usize) -> usize) -> FetchResponse {
    let mut decoder = FetchDecoder::new(version, body.len()).expect("a version of ours");
    let (mut at, mut arrived, mut topics) = (0, 0, Vec::<FetchedTopic>::new());
    let mut head = None;
    loop {
        match decoder.next(&body[at..arrived]).expect("we decode") {
            None => {
                assert!(arrived < body.len(), "more is asked for than there is");
                arrived = until(arrived).min(body.len());
                continue;
            }
            Some((FetchPart::Head(first), consumed)) => {
                head = Some(first);
                at += consumed;
            }
            Some((FetchPart::Topic(topic), consumed)) => {
                topics.push(FetchedTopic { topic, partitions: Vec::new() });
                at += consumed;
            }
            Some((FetchPart::Partition { mut partition, records_size }, consumed)) => {
                at += consumed;
                partition.records = body.slice(at..at + records_size);
                at += records_size;
                topics.last_mut().expect("a topic first").partitions.push(partition);
            }
            Some((FetchPart::End, 0)) => break,
            Some(other) => panic!("{other:?}"),
        }
        arrived = arrived.max(at);
    }
    assert_eq!((at, decoder.left()), (body.len(), 0));
    FetchResponse { head: head.expect("a head first"), topics }
}

fn since<T>(holds: bool, value: T) -> Option<T> {
    holds.then_some(value)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    #[test]
    fn fetch(
        version in 0..=11i16,
        (throttle_ms, error, session_id) in any::<(i32, i16, i32)>(),
        topics in vec((text(), vec(fetched(), 0..4)), 0..4),
    ) {
        let (error, session_id) = if version >= 7 { (error, session_id) } else { (0, 0) };
        let encoded = judge::FetchResponse::default()
            .with_throttle_time_ms(throttle_ms)
            .with_error_code(error)
            .with_session_id(session_id)
            .with_responses(topics.iter().map(|(topic, partitions)| {
                judge::fetch_response::FetchableTopicResponse::default()
                    .with_topic(judge_topic(topic))
                    .with_partitions(partitions.iter().map(|p| partition_data(version, p)).collect())
            }).collect());
        let body = judge_encode(&encoded, version);
        let decoded = FetchResponse::decode(version, body.clone()).expect("we decode");
        prop_assert_eq!(decoded.head.throttle_ms, if version >= 1 { throttle_ms } else { 0 });
        prop_assert_eq!((decoded.head.error.code(), decoded.head.session_id), (error, session_id));
        prop_assert_eq!(decoded.topics.len(), topics.len());
        for (ours, (topic, partitions)) in decoded.topics.iter().zip(&topics) {
            prop_assert_eq!(&ours.topic, topic);
            prop_assert_eq!(ours.partitions.len(), partitions.len());
            for (ours, ((partition, error, high, stable, start), aborted, replica, records))
                in ours.partitions.iter().zip(partitions)
            {
                prop_assert_eq!((ours.partition, ours.error.code()), (*partition, *error));
                prop_assert_eq!(ours.high_watermark, *high);
                prop_assert_eq!(ours.last_stable_offset, since(version >= 4 && *stable >= 0, *stable));
                prop_assert_eq!(ours.log_start_offset, since(version >= 5 && *start >= 0, *start));
                prop_assert_eq!(ours.preferred_read_replica, since(version >= 11 && *replica >= 0, *replica));
                let expected = aborted.clone().filter(|_| version >= 4).unwrap_or_default();
                let aborted: Vec<_> = ours.aborted.iter().map(|a| (a.producer_id, a.first_offset)).collect();
                prop_assert_eq!(aborted, expected);
                prop_assert_eq!(&ours.records[..], records.as_deref().unwrap_or_default());
                let within = body.as_ptr_range();
                prop_assert!(ours.records.is_empty() || within.contains(&ours.records.as_ptr()), "copied");
            }
        }
        // in steps, and split in two at every position
        for step in [1, 7] {
            prop_assert_eq!(&decode_arriving(version, &body, |arrived| arrived + step), &decoded);
        }
        for split in 0..=body.len() {
            let arriving = |arrived| if arrived < split { split } else { body.len() };
            prop_assert_eq!(&decode_arriving(version, &body, arriving), &decoded);
        }
        cuts_fail::<FetchResponse>(version, &body);
    }

    #[test]
    fn list_offsets(
        version in 0..=2i16,
        throttle_ms: i32,
        topics in vec((text(), vec((any::<(i32, i16, i64, i64)>(), vec(0..99i64, 0..3)), 0..4)), 0..4),
    ) {
        let encoded = judge::ListOffsetsResponse::default()
            .with_throttle_time_ms(throttle_ms)
            .with_topics(topics.iter().map(|(topic, partitions)| {
                judge::list_offsets_response::ListOffsetsTopicResponse::default()
                    .with_name(judge_topic(topic))
                    .with_partitions(partitions.iter().map(|((partition, error, time, offset), old)| {
                        let listed = judge::list_offsets_response::ListOffsetsPartitionResponse::default()
                            .with_partition_index(*partition)
                            .with_error_code(*error);
                        if version == 0 {
                            listed.with_old_style_offsets(old.clone())
                        } else {
                            listed.with_timestamp(*time).with_offset(*offset)
                        }
                    }).collect())
            }).collect());
        let body = judge_encode(&encoded, version);
        let decoded = ListOffsetsResponse::decode(version, body.clone()).expect("we decode");
        prop_assert_eq!(decoded.throttle_ms, if version >= 2 { throttle_ms } else { 0 });
        let got: Vec<(Arc<str>, Vec<_>)> = decoded.topics.into_iter().map(|t| {
            (t.topic, t.partitions.iter().map(|p| (p.partition, p.error.code(), p.timestamp, p.offset)).collect())
        }).collect();
        let expected: Vec<(Arc<str>, Vec<_>)> = topics.into_iter().map(|(topic, partitions)| {
            (topic, partitions.into_iter().map(|((partition, error, time, offset), old)| {
                let time = since(version > 0 && time >= 0, time);
                let offset = if version == 0 { old.first().copied() } else { since(offset >= 0, offset) };
                (partition, error, time, offset)
            }).collect())
        }).collect();
        prop_assert_eq!(got, expected);
        cuts_fail::<ListOffsetsResponse>(version, &body);
    }

    #[test]
    fn offset_commit(version in 1..=2i16, topics in vec((text(), vec(any::<(i32, i16)>(), 0..4)), 0..4)) {
        let encoded = judge::OffsetCommitResponse::default().with_topics(topics.iter().map(|(topic, partitions)| {
            judge::offset_commit_response::OffsetCommitResponseTopic::default()
                .with_name(judge_topic(topic))
                .with_partitions(partitions.iter().map(|(partition, error)| {
                    judge::offset_commit_response::OffsetCommitResponsePartition::default()
                        .with_partition_index(*partition)
                        .with_error_code(*error)
                }).collect())
        }).collect());
        let body = judge_encode(&encoded, version);
        let decoded = OffsetCommitResponse::decode(version, body.clone()).expect("we decode");
        let got: Vec<(Arc<str>, Vec<_>)> = decoded.topics.into_iter().map(|t| {
            (t.topic, t.partitions.iter().map(|(partition, error)| (*partition, error.code())).collect())
        }).collect();
        prop_assert_eq!(got, topics);
        cuts_fail::<OffsetCommitResponse>(version, &body);
    }

    #[test]
    fn offset_fetch(
        version in 1..=2i16,
        error: i16,
        topics in vec((text(), vec((any::<(i32, i64, i16)>(), option::of(text())), 0..4)), 0..4),
    ) {
        let error = if version >= 2 { error } else { 0 };
        let encoded = judge::OffsetFetchResponse::default()
            .with_error_code(error)
            .with_topics(topics.iter().map(|(topic, partitions)| {
                judge::offset_fetch_response::OffsetFetchResponseTopic::default()
                    .with_name(judge_topic(topic))
                    .with_partitions(partitions.iter().map(|((partition, offset, error), metadata)| {
                        judge::offset_fetch_response::OffsetFetchResponsePartition::default()
                            .with_partition_index(*partition)
                            .with_committed_offset(*offset)
                            .with_metadata(metadata.as_deref().map(judge_text))
                            .with_error_code(*error)
                    }).collect())
            }).collect());
        let body = judge_encode(&encoded, version);
        let decoded = OffsetFetchResponse::decode(version, body.clone()).expect("we decode");
        prop_assert_eq!(decoded.error.code(), error);
        let got: Vec<(Arc<str>, Vec<_>)> = decoded.topics.into_iter().map(|t| {
            (t.topic, t.partitions.into_iter()
                .map(|p| (p.partition, p.offset, p.error.code(), p.metadata)).collect())
        }).collect();
        let expected: Vec<(Arc<str>, Vec<_>)> = topics.into_iter().map(|(topic, partitions)| {
            (topic, partitions.into_iter().map(|((partition, offset, error), metadata)| {
                (partition, since(offset >= 0, offset), error, metadata)
            }).collect())
        }).collect();
        prop_assert_eq!(got, expected);
        cuts_fail::<OffsetFetchResponse>(version, &body);
    }

    #[test]
    fn find_coordinator((error, id, port) in any::<(i16, i32, i32)>(), host in text()) {
        let encoded = judge::FindCoordinatorResponse::default()
            .with_error_code(error)
            .with_node_id(id.into())
            .with_host(judge_text(&host))
            .with_port(port);
        let body = judge_encode(&encoded, 0);
        let decoded = FindCoordinatorResponse::decode(0, body.clone()).expect("we decode");
        prop_assert_eq!((decoded.error.code(), decoded.id, decoded.host, decoded.port), (error, id, host, port));
        cuts_fail::<FindCoordinatorResponse>(0, &body);
    }

    #[test]
    fn api_versions(error: i16, ranges in vec(any::<(i16, i16, i16)>(), 0..8)) {
        let keys = ranges.iter().map(|(api, min, max)| {
            judge::api_versions_response::ApiVersion::default()
                .with_api_key(*api)
                .with_min_version(*min)
                .with_max_version(*max)
        });
        let encoded = judge::ApiVersionsResponse::default().with_error_code(error).with_api_keys(keys.collect());
        let body = judge_encode(&encoded, 0);
        let decoded = ApiVersionsResponse::decode(0, body.clone()).expect("we decode");
        prop_assert_eq!(decoded.error.code(), error);
        // of an API that is told twice the last counts
        let expected = ranges.into_iter().map(|(api, min, max)| (api, VersionRange::new(min, max)));
        prop_assert_eq!(decoded.versions, expected.collect());
        cuts_fail::<ApiVersionsResponse>(0, &body);
    }
}

#[test]
fn versions_are_chosen_from_what_a_broker_tells() {
    let ranges = [(1, 4, 17), (18, 0, 4), (999, 0, 0)];
    let encoded = judge::ApiVersionsResponse::default().with_error_code(35).with_api_keys(
        ranges
            .iter()
            .map(|(api, min, max)| {
                judge::api_versions_response::ApiVersion::default()
                    .with_api_key(*api)
                    .with_min_version(*min)
                    .with_max_version(*max)
            })
            .collect(),
    );
    let body = judge_encode(&encoded, 0);
    let decoded = ApiVersionsResponse::decode(0, body).expect("we decode");
    assert_eq!(decoded.error, ErrorCode::UnsupportedVersion);
    assert_eq!(decoded.versions.range(ApiKey::Fetch), Some(VersionRange::new(4, 17)));
    assert_eq!(decoded.versions.choose(ApiKey::Fetch, VersionRange::new(0, 11)), Some(11));
    assert_eq!(decoded.versions.choose(ApiKey::Fetch, VersionRange::new(0, 3)), None);
    assert_eq!(decoded.versions.choose(ApiKey::Metadata, VersionRange::new(0, 5)), None);
}
