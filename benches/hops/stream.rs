//! A stream without a member around it: fed with chunks, each as of a partition of its own, so that all begin at 0.

use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe::actors::lease::{BootInstant, Lease, SessionEpoch};
use kafka_troupe::actors::registry::{Claim, OwnedPartition, Position};
use kafka_troupe::actors::stream_queue::{
    Credit, FetchedChunk, HandlerFactory, ReadOptions, Stop, StreamParts, StreamQueue,
};
use kafka_troupe::actors::supervise::{ChildExited, ExitGuard, Slot};
use kafka_troupe::proto::TopicPartition;
use kafka_troupe::proto::group::{Generation, SessionNumber};
use kafka_troupe::proto::zk::ConsumerThreadId;
use tokio::time::sleep;

use crate::chunks::Chunk;

struct Parent;

impl Actor for Parent {
    type Context = Context<Self>;
}

impl Handler<ChildExited> for Parent {
    type Result = ();

    fn handle(&mut self, ChildExited { child, .. }: ChildExited, _: &mut Context<Self>) {
        panic!("{child} ended");
    }
}

pub struct Stream {
    pub queue: Slot<StreamQueue>,
    credit: Arc<Credit>,
    lease: Arc<Lease>,
    partitions: Vec<Arc<OwnedPartition>>,
}

impl Stream {
    /// With a handler, or to be pulled.
    pub fn start(handler: Option<HandlerFactory>) -> Self {
        let (credit, lease, queue) =
            (Arc::new(Credit::new(usize::MAX, usize::MAX)), Arc::new(Lease::new()), Slot::default());
        lease.extend_to(SessionEpoch(1), BootInstant::now() + Duration::from_secs(3_600));
        let parts = StreamParts {
            name: "bench-0".to_owned(),
            credit: Arc::clone(&credit),
            options: ReadOptions::default(),
            handler,
            commit_after: None,
            letters: None,
            registry: Arc::default(),
            fetchers: Slot::default(),
            guard: ExitGuard::new("stream", 1, Parent.start().recipient()),
        };
        queue.set(StreamQueue::new(parts).start());
        Self { queue, credit, lease, partitions: Vec::new() }
    }

    /// Feeds so many records, in whole chunks; answers how many.
    pub fn feed(&mut self, chunk: &Chunk, records: u64) -> u64 {
        let chunks = (records / chunk.records as u64).max(1);
        for _ in 0..chunks {
            let partition = self.partition();
            let bytes = chunk.bytes.clone();
            self.queue.do_send(FetchedChunk::new(partition, 0, chunk.records, bytes, Vec::new()));
        }
        chunks * chunk.records as u64
    }

    fn partition(&mut self) -> Arc<OwnedPartition> {
        let claim = Claim {
            topic_partition: TopicPartition::new("bench", self.partitions.len() as i32),
            generation: Generation(1),
            session: SessionNumber(1),
            epoch: SessionEpoch(1),
            thread: ConsumerThreadId::new("bench_here", 0),
            appeared: false,
            position: Position { offset: Some(0), ..Position::NONE },
        };
        let partition = OwnedPartition::new(claim, Arc::clone(&self.credit), Arc::clone(&self.lease));
        self.partitions.push(Arc::new(partition));
        Arc::clone(&self.partitions[self.partitions.len() - 1])
    }

    /// Ends it, once all is acknowledged.
    pub async fn end(self, records: u64) {
        let acked = || self.partitions.iter().map(|partition| partition.acked() as u64).sum::<u64>();
        while acked() < records {
            // not in a loop that is awake all the time: other threads may be at work, and its time would count
            sleep(Duration::from_millis(1)).await;
        }
        self.queue.send(Stop).await.expect("it runs");
    }
}
