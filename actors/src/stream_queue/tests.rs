//! A stream without a member around it.

use std::time::Duration;

use bytes::Bytes;
use kafka_troupe_proto::group::Then;
use kafka_troupe_proto::group::{FailurePolicy, InFlight};
use kafka_troupe_proto::kafka::records::{NewRecord, RecordBatchWriter};

use super::*;
use crate::broker_fetcher::test_claims::{Sink, claim, live_claim};
use crate::handler_result::HandlerResult;
use crate::record::Record;
use crate::subscription::Subscription;
use crate::supervise::ChildExited;

struct Parent;

impl Actor for Parent {
    type Context = Context<Self>;
}

impl Handler<ChildExited> for Parent {
    type Result = ();

    fn handle(&mut self, _: ChildExited, _: &mut Context<Self>) {}
}

fn stream(credit: &Arc<Credit>) -> Addr<StreamQueue> {
    handled_stream(credit, None)
}

fn handled_stream(credit: &Arc<Credit>, handler: Option<HandlerFactory>) -> Addr<StreamQueue> {
    let parts = StreamParts {
        name: "topic-0".to_owned(),
        credit: Arc::clone(credit),
        options: ReadOptions::default(),
        handler,
        commit_after: None,
        letters: None,
        registry: Arc::default(),
        fetchers: Slot::default(),
        guard: ExitGuard::new("stream", 1, Parent.start().recipient()),
    };
    StreamQueue::new(parts).start()
}

fn chunk(partition: &Arc<OwnedPartition>, from: i64) -> FetchedChunk {
    FetchedChunk::new(Arc::clone(partition), from, from + 2, Bytes::new(), Vec::new())
}

/// Else no position of it could be made, or found good, for as long as it is claimed.
#[actix::test]
async fn a_chunk_that_a_stream_does_not_take_in_is_not_on_its_way_any_more() {
    type Hinder = fn(&OwnedPartition);
    let hindrances: [(Hinder, &str); 4] = [
        (|partition| partition.halt(HaltReason::Paused, Halt::asked_for("test")), "halted"),
        (OwnedPartition::close, "closed"),
        (|partition| partition.reset(9), "it repeats"),
        (|partition| partition.reset(0), "a gap"),
    ];
    for (hinder, why) in hindrances {
        let credit = Arc::new(Credit::new(2, 1_000));
        let (stream, partition) = (stream(&credit), claim(0, Some(7), &credit));
        stream.do_send(chunk(&partition, 7));
        hinder(&partition);
        assert!(partition.is_on_the_way(), "{why}");
        stream.send(Describe).await.expect("it runs");
        assert!(!partition.is_on_the_way(), "{why}");
    }
}

#[actix::test]
async fn a_chunk_for_a_stream_that_has_ended_is_not_on_its_way() {
    let credit = Arc::new(Credit::new(2, 1_000));
    let (ended, partition) = (stream(&credit), claim(0, Some(7), &credit));
    ended.send(Stop).await.expect("it runs");
    ended.do_send(chunk(&partition, 7));
    // one that ends with the chunk in its mailbox
    let ends = Sink.start();
    ends.do_send(crate::broker_fetcher::test_claims::End);
    ends.do_send(chunk(&partition, 7));
    while ended.connected() || ends.connected() {
        tokio::task::yield_now().await;
    }
    tokio::task::yield_now().await;
    assert!(!partition.is_on_the_way());
}

/// At the first record.
struct Fails;

impl Actor for Fails {
    type Context = Context<Self>;
}

impl Handler<Record> for Fails {
    type Result = HandlerResult;

    fn handle(&mut self, record: Record, _: &mut Context<Self>) -> HandlerResult {
        if record.offset() == 0 { Err("it is bad".into()) } else { Ok(()) }
    }
}

/// Nothing is acknowledged that is neither handled nor kept: the next chunk would go past it.
#[actix::test]
async fn a_dead_letter_that_nobody_is_there_to_write_stops_its_partition() {
    for in_flight in [InFlight::one(), InFlight::window(2)] {
        let policy = FailurePolicy::retry(0).then(Then::DeadLetter("dead".into()));
        let subscription = Subscription::topic("topic").on_failure(policy).in_flight(in_flight);
        let credit = Arc::new(Credit::new(4, 1_000));
        let partition = live_claim(0, Some(0), &credit);
        let stream = handled_stream(&credit, subscription.handle(|| Fails).into_handler());
        for offset in 0..2 {
            let mut batch = RecordBatchWriter::new(offset);
            batch.push(&NewRecord { value: Some(b"v"), ..NewRecord::default() });
            let records = batch.finish().expect("it is small");
            let partition = Arc::clone(&partition);
            stream.do_send(FetchedChunk::new(partition, offset, offset + 1, records, Vec::new()));
        }
        let done = async {
            while !partition.is_halted_as(HaltReason::Failed) && partition.acked() == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), done).await.expect("it is dealt with");
        assert!(partition.is_halted_as(HaltReason::Failed), "{in_flight:?}");
        assert_eq!(partition.acked(), 0, "{in_flight:?}");
        assert_eq!(partition.halts()[0].1.offset, Some(0));
        stream.send(Stop).await.expect("it runs");
    }
}
