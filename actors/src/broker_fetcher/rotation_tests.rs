use actix::Actor;
use kafka_troupe_proto::kafka::fetch::FetchResponse;
use kafka_troupe_proto::kafka::frame::Response;
use kafka_troupe_proto::kafka::records::{NewRecord, RecordBatchWriter};
use kafka_troupe_proto::kafka::wire::Writer;

use super::*;
use crate::broker_connection::ConnectOptions;
use crate::broker_fetcher::test_claims::{End, Sink, assigned, claim};
use crate::registry::OwnedPartition;

fn settings() -> FetchSettings {
    FetchSettings::new(ConnectOptions::new("test", Duration::from_secs(1)))
}

fn batch(base: i64, count: i64) -> Bytes {
    let mut writer = RecordBatchWriter::new(base);
    for _ in 0..count {
        writer.push(&NewRecord { value: Some(b"value"), ..NewRecord::default() });
    }
    writer.finish().expect("a small batch")
}

/// The partitions of a version 4 response with these (partition, error, records).
fn response(partitions: &[(i32, i16, Bytes)]) -> Vec<(TopicPartition, FetchedPartition)> {
    let mut out = Writer::default();
    out.i32(0);
    out.array("topics", &[()], |out, ()| {
        out.string("topic", "topic");
        out.array("partitions", partitions, |out, (partition, error, records)| {
            out.i32(*partition);
            out.i16(*error);
            out.i64(1_000);
            out.i64(1_000);
            out.i32(-1);
            out.nullable_bytes("records", Some(records));
        });
    });
    let body = out.finish().expect("a response").freeze();
    let response = FetchResponse::decode(4, body).expect("what was written can be read");
    let partitions = response.topics.into_iter().flat_map(|topic| topic.partitions);
    partitions.map(|fetched| (TopicPartition::new("topic", fetched.partition), fetched)).collect()
}

fn asked(plan: Plan) -> Option<(FetchRequest, Vec<(i32, i64)>)> {
    let Plan::Ask(request) = plan else { return None };
    let partitions = request.topics.iter().flat_map(|topic| &topic.partitions);
    let pairs = partitions.map(|partition| (partition.partition, partition.offset)).collect();
    Some((request, pairs))
}

struct Bench {
    rotation: Rotation,
    claims: Vec<Arc<OwnedPartition>>,
    credits: Vec<Arc<Credit>>,
}

/// Partitions 0, 1, 2 at offsets 0, 10, 20, each with a stream of its own.
fn bench() -> Bench {
    let stream = Sink.start();
    let credits: Vec<_> = (0..3).map(|_| Arc::new(Credit::new(2, 1_000))).collect();
    let claims: Vec<_> =
        (0..3).zip(&credits).map(|(n, credit)| claim(n, Some(i64::from(n) * 10), credit)).collect();
    let mut rotation = Rotation::default();
    for claim in &claims {
        rotation.add(assigned(claim, &stream));
    }
    Bench { rotation, claims, credits }
}

#[actix::test]
async fn who_got_data_goes_to_the_back_and_on_from_there() {
    let mut bench = bench();
    let (request, pairs) = asked(bench.rotation.plan(&settings())).expect("a request");
    assert_eq!(pairs, [(0, 0), (1, 10), (2, 20)]);
    assert_eq!((request.max_wait_ms, request.max_bytes), (100, 3_000));
    let records = batch(0, 5);
    let size = records.len();
    let harvest = bench
        .rotation
        .harvest(response(&[(0, 0, records), (1, 0, Bytes::new()), (2, 0, Bytes::new())]), &settings());
    let chunk = &harvest.chunks[0].1;
    assert_eq!((chunk.fetch_offset, chunk.next_offset, chunk.records.len()), (0, 5, size));
    assert_eq!(bench.claims[0].high_watermark(), 1_000);
    assert_eq!(bench.credits[0].used(), (1, size));
    let (_, pairs) = asked(bench.rotation.plan(&settings())).expect("a request");
    assert_eq!(pairs, [(1, 10), (2, 20), (0, 5)]);
    drop(harvest);
    assert_eq!(bench.credits[0].used(), (0, 0));
}

#[actix::test]
async fn a_full_stream_is_left_out_and_the_wait_is_short() {
    let mut bench = bench();
    bench.credits[1].take(1_000);
    let (request, pairs) = asked(bench.rotation.plan(&settings())).expect("a request");
    assert_eq!(pairs, [(0, 0), (2, 20)]);
    assert_eq!((request.max_wait_ms, request.max_bytes), (10, 2_000));
    bench.credits[0].take(1_000);
    bench.credits[2].take(1_000);
    let Plan::Full(credits) = bench.rotation.plan(&settings()) else { panic!("no stream has room") };
    assert_eq!(credits.len(), 3);
    bench.claims.iter().for_each(|claim| claim.close());
    assert!(matches!(bench.rotation.plan(&settings()), Plan::Rest));
}

#[actix::test]
async fn nothing_is_fetched_for_a_stream_that_has_ended() {
    let mut bench = bench();
    let stream = Sink.start();
    bench.rotation.add(assigned(&bench.claims[1], &stream));
    stream.send(End).await.expect("it answers before it ends");
    let (_, pairs) = asked(bench.rotation.plan(&settings())).expect("a request");
    assert_eq!(pairs, [(0, 0), (2, 20)]);
}

#[actix::test]
async fn an_answer_to_an_earlier_claim_is_dropped() {
    let mut bench = bench();
    bench.rotation.plan(&settings());
    let stream = Sink.start();
    let again = claim(0, Some(0), &bench.credits[0]);
    bench.rotation.add(assigned(&again, &stream));
    bench.rotation.remove(&bench.claims[2].topic_partition);
    bench.claims[1].reset(3);
    bench.rotation.add(assigned(&bench.claims[1], &stream));
    let full = |base| batch(base, 5);
    let harvest =
        bench.rotation.harvest(response(&[(0, 0, full(0)), (1, 0, full(10)), (2, 0, full(20))]), &settings());
    assert!(harvest.chunks.is_empty() && harvest.failed.is_empty());
    let (_, pairs) = asked(bench.rotation.plan(&settings())).expect("a request");
    assert_eq!(pairs, [(0, 0), (1, 3)]);
}

#[actix::test]
async fn a_failed_partition_is_given_back_and_the_others_stay() {
    let mut bench = bench();
    bench.rotation.plan(&settings());
    let harvest = bench
        .rotation
        .harvest(response(&[(0, 6, Bytes::new()), (1, 1, Bytes::new()), (2, 0, batch(20, 1))]), &settings());
    let dispositions: Vec<_> = harvest.failed.iter().map(|(_, disposition, _)| *disposition).collect();
    assert_eq!(dispositions, [Disposition::FindLeader, Disposition::ResetOffset]);
    assert_eq!((harvest.chunks.len(), bench.rotation.len()), (1, 1));
}

#[test]
fn records_are_judged_by_their_whole_batches() {
    let two = [batch(5, 5), batch(10, 5)].concat();
    let first = batch(5, 5).len();
    let judged = |asked, bytes: &[u8]| judge(asked, ErrorCode::None, &Bytes::copy_from_slice(bytes), 1_000);
    assert_eq!(judged(5, &[]), Verdict::Nothing);
    assert_eq!(judged(7, &two), Verdict::Records { next_offset: 15, bytes: two.len() });
    assert_eq!(judged(7, &two[..two.len() - 1]), Verdict::Records { next_offset: 10, bytes: first });
    let Verdict::Failed(Disposition::Fatal, why) = judged(5, &two[..first - 1]) else { panic!("oversize") };
    assert!(why.contains("offset 5") && why.contains("fetch.message.max.bytes (1000)"), "{why}");
    assert!(matches!(judged(15, &two), Verdict::Failed(Disposition::Retry, _)), "no progress");
    let mut bad = two;
    bad[16] = 9;
    assert!(matches!(judged(5, &bad), Verdict::Failed(Disposition::Retry, _)), "unknown magic");
}
