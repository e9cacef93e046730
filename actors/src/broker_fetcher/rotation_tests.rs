use actix::Actor;
use bytes::Bytes;
use kafka_troupe_proto::config::IsolationLevel;
use kafka_troupe_proto::kafka::fetch::FetchResponse;
use kafka_troupe_proto::kafka::frame::Response;
use kafka_troupe_proto::kafka::records::{NewRecord, RecordBatchWriter};
use kafka_troupe_proto::kafka::wire::Writer;

use super::*;
use crate::broker_connection::ConnectOptions;
use crate::broker_fetcher::test_claims::{End, Sink, assigned, claim};
use crate::registry::OwnedPartition;
use crate::testkit::fetch_settings;

fn settings() -> FetchSettings {
    fetch_settings(ConnectOptions::new("test", Duration::from_secs(1)))
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

/// What a plan asks for: partitions and offsets.
fn asked(plan: Plan) -> Option<(Wanted, Vec<(i32, i64)>)> {
    let Plan::Ask(wanted) = plan else { return None };
    let pairs = wanted.partitions.iter().map(|(_, partition)| (partition.partition, partition.offset));
    let pairs = pairs.collect();
    Some((wanted, pairs))
}

fn fetched(error: i16, records: &[u8]) -> FetchedPartition {
    response(&[(0, error, Bytes::copy_from_slice(records))]).remove(0).1
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
        rotation.add(assigned(claim, &stream), false);
    }
    Bench { rotation, claims, credits }
}

#[actix::test]
async fn who_got_data_goes_to_the_back_and_on_from_there() {
    let mut bench = bench();
    let (wanted, pairs) = asked(bench.rotation.plan(&settings(), true)).expect("a request");
    assert_eq!(pairs, [(0, 0), (1, 10), (2, 20)]);
    assert_eq!((wanted.wait.as_millis(), wanted.asked.max_bytes()), (100, 3_000));
    let records = batch(0, 5);
    let size = records.len();
    let harvest = bench
        .rotation
        .harvest(response(&[(0, 0, records), (1, 0, Bytes::new()), (2, 0, Bytes::new())]), &settings());
    let chunk = &harvest.chunks[0].1;
    assert_eq!((chunk.fetch_offset, chunk.next_offset, chunk.records.len()), (0, 5, size));
    assert_eq!(bench.claims[0].high_watermark(), 1_000);
    assert_eq!(bench.credits[0].used(), (1, size));
    let (_, pairs) = asked(bench.rotation.plan(&settings(), true)).expect("a request");
    assert_eq!(pairs, [(1, 10), (2, 20), (0, 5)]);
    drop(harvest);
    assert_eq!(bench.credits[0].used(), (0, 0));
}

#[actix::test]
async fn a_full_stream_is_left_out_and_the_wait_is_short() {
    let mut bench = bench();
    bench.credits[1].take(1_000);
    let (wanted, pairs) = asked(bench.rotation.plan(&settings(), true)).expect("a request");
    assert_eq!(pairs, [(0, 0), (2, 20)]);
    assert_eq!((wanted.wait.as_millis(), wanted.asked.max_bytes()), (10, 2_000));
    bench.credits[0].take(1_000);
    bench.credits[2].take(1_000);
    let Plan::Full(credits) = bench.rotation.plan(&settings(), true) else { panic!("no stream has room") };
    assert_eq!(credits.len(), 3);
    bench.claims.iter().for_each(|claim| claim.close());
    assert!(matches!(bench.rotation.plan(&settings(), true), Plan::Rest));
}

#[actix::test]
async fn a_stream_that_stays_full_has_the_wait_grow_until_it_had_room() {
    let mut bench = bench();
    let wait = |bench: &mut Bench| {
        let (wanted, _) = asked(bench.rotation.plan(&settings(), true)).expect("a request");
        wanted.wait.as_millis()
    };
    bench.credits[1].take(1_000);
    let waits: Vec<_> = (0..6).map(|_| wait(&mut bench)).collect();
    assert_eq!(waits, [10, 20, 40, 80, 100, 100]);
    bench.credits[0].take(1_000);
    assert_eq!(wait(&mut bench), 10, "others are full");
    (0..2).for_each(|stream| bench.credits[stream].give_back(1_000));
    assert_eq!(wait(&mut bench), 100);
    bench.credits[1].take(1_000);
    assert_eq!(wait(&mut bench), 10);
}

#[actix::test]
async fn nothing_is_fetched_for_a_stream_that_has_ended() {
    let mut bench = bench();
    let stream = Sink.start();
    bench.rotation.add(assigned(&bench.claims[1], &stream), false);
    stream.send(End).await.expect("it answers before it ends");
    let (_, pairs) = asked(bench.rotation.plan(&settings(), true)).expect("a request");
    assert_eq!(pairs, [(0, 0), (2, 20)]);
}

#[actix::test]
async fn an_answer_to_an_earlier_claim_is_dropped() {
    let mut bench = bench();
    bench.rotation.plan(&settings(), true);
    let stream = Sink.start();
    let again = claim(0, Some(0), &bench.credits[0]);
    bench.rotation.add(assigned(&again, &stream), false);
    bench.rotation.remove(&bench.claims[2].topic_partition);
    bench.claims[1].reset(3);
    bench.rotation.add(assigned(&bench.claims[1], &stream), false);
    let full = |base| batch(base, 5);
    let harvest =
        bench.rotation.harvest(response(&[(0, 0, full(0)), (1, 0, full(10)), (2, 0, full(20))]), &settings());
    assert!(harvest.chunks.is_empty() && harvest.failed.is_empty());
    let (_, pairs) = asked(bench.rotation.plan(&settings(), true)).expect("a request");
    assert_eq!(pairs, [(0, 0), (1, 3)]);
}

#[actix::test]
async fn a_failed_partition_is_given_back_and_the_others_stay() {
    let mut bench = bench();
    bench.rotation.plan(&settings(), true);
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
    let judged = |asked, bytes: &[u8]| judge(asked, false, &fetched(0, bytes));
    let records = |next_offset, bytes| Verdict::Records { next_offset, bytes, leader_epoch: -1 };
    assert_eq!(judged(5, &[]), Verdict::Nothing);
    assert_eq!(judged(7, &two), records(15, two.len()));
    assert_eq!(judged(7, &two[..two.len() - 1]), records(10, first));
    assert_eq!(judged(5, &two[..first - 1]), Verdict::Oversize { size: Some(first) });
    assert_eq!(judged(5, &two[..11]), Verdict::Oversize { size: None });
    assert!(matches!(judged(15, &two), Verdict::Failed(Disposition::Retry, _)), "no progress");
    let mut bad = two;
    bad[16] = 9;
    assert!(matches!(judged(5, &bad), Verdict::Failed(Disposition::Retry, _)), "unknown magic");
}

#[test]
fn a_follower_decides_nothing_about_positions() {
    let of = |follows, error| match judge(7, follows, &fetched(error, &[])) {
        Verdict::Failed(disposition, why) => (disposition, why),
        other => panic!("{other:?}"),
    };
    assert_eq!(of(false, 1).0, Disposition::ResetOffset);
    let (disposition, why) = of(true, 1);
    assert_eq!(disposition, Disposition::FindLeader);
    assert!(why.contains("offset 7 from a follower") && why.contains("leader"), "{why}");
    assert_eq!(of(true, 75).0, Disposition::Retry, "it does not know of the newest leader yet");
    assert_eq!(of(false, 74).0, Disposition::FindLeader, "metadata is stale");
}

#[actix::test]
async fn a_partition_with_a_nearer_replica_is_given_to_it() {
    let mut bench = bench();
    bench.rotation.plan(&settings(), true);
    let mut answer = response(&[(0, 0, Bytes::new()), (1, 0, batch(10, 1))]);
    answer.iter_mut().for_each(|(_, partition)| partition.preferred_read_replica = Some(4));
    let harvest = bench.rotation.harvest(answer, &settings());
    let moved: Vec<_> = harvest.moved.iter().map(|(it, to)| (it.topic_partition.partition, *to)).collect();
    assert_eq!(moved, [(0, 4)], "one that brought records is asked again");
    assert_eq!((harvest.chunks.len(), bench.rotation.len()), (1, 2));
}

#[actix::test]
async fn the_end_is_the_last_stable_offset_where_committed_is_read() {
    for (isolation, end) in [(IsolationLevel::ReadUncommitted, 1_000), (IsolationLevel::ReadCommitted, 400)] {
        let settings = FetchSettings { isolation, ..settings() };
        let mut bench = bench();
        bench.rotation.plan(&settings, true);
        let mut answer = response(&[(0, 0, Bytes::new())]);
        answer[0].1.last_stable_offset = Some(400);
        bench.rotation.harvest(answer, &settings);
        assert_eq!(bench.claims[0].high_watermark(), end);
    }
}

#[actix::test]
async fn leader_epochs_are_sent_and_those_of_batches_noted() {
    let mut bench = bench();
    bench.claims[0].set_leader_epoch(5);
    let (wanted, _) = asked(bench.rotation.plan(&settings(), true)).expect("a request");
    let epochs: Vec<_> = wanted.partitions.iter().map(|(_, it)| it.leader_epoch).collect();
    assert_eq!(epochs, [5, -1, -1]);
    let mut records = batch(0, 1).to_vec();
    records[12..16].copy_from_slice(&4_i32.to_be_bytes());
    bench.rotation.harvest(response(&[(0, 0, records.into()), (1, 0, batch(10, 1))]), &settings());
    assert_eq!((bench.claims[0].last_epoch(), bench.claims[1].last_epoch()), (4, -1));
}

/// Fetches of 100 bytes, which may grow to so many.
fn small(limit: i32) -> FetchSettings {
    FetchSettings { partition_max_bytes: 100, partition_max_bytes_limit: limit, ..settings() }
}

#[actix::test]
async fn below_fetch_3_only_what_fits_in_is_asked_for_in_turn() {
    let mut bench = bench();
    bench.credits.iter().for_each(|credit| credit.take(920));
    let settings = small(100);
    let mut turns = Vec::new();
    for _ in 0..3 {
        // room for 240 bytes
        let (wanted, pairs) = asked(bench.rotation.plan(&settings, false)).expect("a request");
        assert_eq!(wanted.wait.as_millis(), 50, "as long for all as one request would take");
        turns.extend(pairs.into_iter().map(|(partition, _)| partition));
    }
    assert_eq!(turns, [0, 1, 2, 0, 1, 2]);
    let (wanted, _) = asked(bench.rotation.plan(&settings, true)).expect("a request");
    assert_eq!(wanted.partitions.len(), 3);
    let mut bench = self::bench();
    bench.credits.iter().for_each(|credit| credit.take(999));
    let (wanted, _) = asked(bench.rotation.plan(&settings, false)).expect("a request");
    assert_eq!(wanted.partitions.len(), 1, "at least one");
}

#[actix::test]
async fn a_batch_that_is_too_large_is_named_and_the_others_go_on() {
    let mut bench = bench();
    let large = batch(0, 20);
    bench.rotation.plan(&small(100), false);
    let answer = response(&[(0, 0, large.slice(..100)), (1, 0, batch(10, 1))]);
    let harvest = bench.rotation.harvest(answer, &small(100));
    let (partition, disposition, why) = &harvest.oversize[0];
    assert_eq!((partition.topic_partition.partition, *disposition), (0, Disposition::Retry));
    for told in ["offset 0", &format!("{} bytes", large.len()), "fetch.message.max.bytes (100)"] {
        assert!(why.contains(told), "{why}");
    }
    assert_eq!((harvest.chunks.len(), harvest.failed.len(), bench.rotation.len()), (1, 0, 2));
}

#[actix::test]
async fn a_fetch_grows_for_one_batch_as_far_as_it_may() {
    let large = batch(0, 20);
    let size = i32::try_from(large.len()).expect("a small batch");
    let settings = small(size);
    let mut bench = bench();
    let mut next = |answer: Option<Bytes>| {
        let harvest = answer.map(|records| bench.rotation.harvest(response(&[(0, 0, records)]), &settings));
        assert!(harvest.is_none_or(|harvest| harvest.oversize.is_empty()));
        let (wanted, _) = asked(bench.rotation.plan(&settings, true)).expect("a request");
        let of_first = wanted.partitions.iter().find(|(_, it)| it.partition == 0);
        of_first.map(|(_, it)| (it.offset, it.max_bytes))
    };
    assert_eq!(next(None), Some((0, 100)));
    assert_eq!(next(Some(large.slice(..11))), Some((0, 200)), "its size is not known");
    assert_eq!(next(Some(large.slice(..100))), Some((0, size)), "its size is known");
    assert_eq!(next(Some(large.clone())), Some((20, 100)));
    for (asked, size, limit, grown_to) in [
        (100, Some(101), 100, None),
        (100, Some(300), 200, None),
        (100, None, 150, Some(150)),
        (150, None, 150, None),
        (100, Some(90), 200, None),
    ] {
        assert_eq!(grown(asked, size, &small(limit)), grown_to, "{asked} {size:?} {limit}");
    }
}

#[test]
fn zstd_that_is_not_to_be_had_is_named() {
    let Verdict::Failed(Disposition::Fatal, why) = judge(3, false, &fetched(76, &[])) else {
        panic!("it cannot be fetched")
    };
    assert!(why.contains("zstd") && why.contains("Fetch 10"), "{why}");
}
