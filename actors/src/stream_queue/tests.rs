//! Chunks that are dropped on their way are not waited for.

use bytes::Bytes;

use super::*;
use crate::broker_fetcher::test_claims::{Sink, claim};
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
    let parts = StreamParts {
        name: "topic-0".to_owned(),
        credit: Arc::clone(credit),
        options: ReadOptions::default(),
        handler: None,
        commit_after: None,
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
        (|partition| partition.set_held(true), "held"),
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
