//! # StreamQueue: the chunks of one stream (= consumer thread = queue), in order
//!
//! Several partitions may share one stream. Chunks come from the fetchers against [`Credit`], and go one by
//! one to whoever consumes the stream: a handler actor of the user's, made by a factory and driven in its own
//! context (`driver.rs`), or a [`KafkaStream`] that pulls.
//!
//! - *Mailbox*: requests [`NextChunk`], [`Clear`], [`Describe`], [`Stop`]; events [`FetchedChunk`],
//!   [`ChunkFailed`], [`HandlerGone`].
//! - *State*: the queue, the one request waiting for it, the partitions that it serves, those with a gap to be
//!   filled and those that cannot be read on, the handler's factory.
//! - *Supervision*: tells its parent of a panic by an [`ExitGuard`]; restarts its handler, within a budget,
//!   and then goes on at the acknowledged position.
//! - *Talks to*: the `FetcherManager`, to fetch a partition again from its acknowledged position.

mod answer;
mod chunk;
mod commit_after;
mod credit;
mod driver;
mod hand;
mod pull;
mod read_options;
mod reader;
mod streams;
mod unreadable;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe_proto::TopicPartition;
use tokio::sync::oneshot;

pub use chunk::FetchedChunk;
pub use commit_after::CommitAfter;
pub(crate) use commit_after::{CommitDue, Tally};
pub use credit::{Credit, CreditGranted};
pub use driver::HandlerFactory;
pub use pull::KafkaStream;
pub use read_options::ReadOptions;
pub use streams::{StreamHandle, Streams};
pub use unreadable::Unreadable;
use unreadable::UnreadablePartitions;

use crate::fetcher_manager::{Assigned, FetcherManager, StartFetching};
use crate::record::ConsumeError;
use crate::registry::{Joint, OwnedPartition};
use crate::supervise::{ExitGuard, RestartBudget, Slot};

/// Asks for the next chunk; answered when there is one, with none at the end of the stream.
#[derive(Message)]
#[rtype(result = "Option<FetchedChunk>")]
pub struct NextChunk;

/// Forget the chunks of these partitions: they are given up.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Clear(pub Vec<TopicPartition>);

/// How it stands.
#[derive(Message)]
#[rtype(result = "StreamStatus")]
pub struct Describe;

/// End the stream: its consumer is told so.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Stop;

/// The rest of a chunk could not be read as records: its partition is fetched again after a pause, and nothing past it
/// is handed over.
#[derive(Message)]
#[rtype(result = "()")]
pub struct ChunkFailed {
    /// The claim.
    pub partition: Arc<OwnedPartition>,
    /// Where and why.
    pub error: ConsumeError,
}

/// The handler has ended: it panicked or stopped itself.
#[derive(Message)]
#[rtype(result = "()")]
pub struct HandlerGone {
    life: u64,
}

/// What a stream reports of itself.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StreamStatus {
    /// `topic-index`, or the index alone for a topic filter's stream.
    pub name: String,
    /// Chunks queued or being handled.
    pub queued_chunks: usize,
    /// Their bytes.
    pub queued_bytes: usize,
    /// Chunks received in all.
    pub chunks: u64,
    /// How often the handler was made anew.
    pub handler_restarts: u64,
    /// Messages that this actor has handled.
    pub messages: u64,
    /// The last chunk that could not be read.
    pub last_error: Option<String>,
    /// Partitions that cannot be read on now.
    pub unreadable: Vec<Unreadable>,
}

/// What a stream is made of.
pub struct StreamParts {
    /// For logs and metrics.
    pub name: String,
    /// Shared with the partitions of this stream and their fetchers.
    pub credit: Arc<Credit>,
    /// How chunks are turned into records.
    pub options: ReadOptions,
    /// The user's handler; none for a stream that is pulled.
    pub handler: Option<HandlerFactory>,
    /// Told of what the handler has done, if somebody wants to know.
    pub commit_after: Option<Arc<CommitAfter>>,
    /// Where a partition is asked for again.
    pub fetchers: Slot<FetcherManager>,
    /// Tells the parent of a panic.
    pub guard: ExitGuard,
}

/// See the [module's page](self).
pub struct StreamQueue {
    parts: StreamParts,
    chunks: VecDeque<FetchedChunk>,
    /// The one consumer, when the queue was empty.
    waiting: Option<oneshot::Sender<Option<FetchedChunk>>>,
    /// Partitions seen, to fetch them again after the handler is gone.
    partitions: BTreeMap<TopicPartition, Arc<OwnedPartition>>,
    /// Partitions of which a chunk was missing, and which are fetched again because of it.
    gaps: BTreeSet<TopicPartition>,
    unreadable: UnreadablePartitions,
    /// Which of the handler's lives this is.
    life: u64,
    budget: RestartBudget,
    stopped: bool,
    status: StreamStatus,
}

impl StreamQueue {
    /// A stream that is not started yet.
    pub fn new(parts: StreamParts) -> Self {
        let status = StreamStatus { name: parts.name.clone(), ..StreamStatus::default() };
        Self {
            parts,
            chunks: VecDeque::new(),
            waiting: None,
            partitions: BTreeMap::new(),
            gaps: BTreeSet::new(),
            unreadable: UnreadablePartitions::default(),
            life: 0,
            budget: RestartBudget::default(),
            stopped: false,
            status,
        }
    }

    fn launch_handler(&mut self, ctx: &mut Context<Self>) {
        if let Some(factory) = &self.parts.handler
            && !self.stopped
        {
            let tally = Tally::new(self.parts.commit_after.clone());
            factory.launch(ctx.address(), self.parts.options, tally, self.life);
        }
    }

    fn next(&mut self) -> Option<FetchedChunk> {
        std::iter::from_fn(|| self.chunks.pop_front()).find(|chunk| !chunk.partition.is_closed())
    }

    fn offer(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            match self.next() {
                Some(chunk) => {
                    if let Err(Some(chunk)) = waiting.send(Some(chunk)) {
                        self.chunks.push_front(chunk);
                    }
                }
                None => self.waiting = Some(waiting),
            }
        }
    }

    /// Has what is missing fetched, once: until it comes, the chunks behind the gap are dropped.
    fn fill_gap(&mut self, partition: &Arc<OwnedPartition>, ctx: &mut Context<Self>) {
        if self.gaps.insert(partition.topic_partition.clone()) {
            let assigned = Assigned { partition: Arc::clone(partition), stream: ctx.address().recipient() };
            self.parts.fetchers.do_send(StartFetching(vec![assigned]));
        }
    }

    /// Fetches again from the acknowledged position, dropping what is queued past it.
    fn refetch(&mut self, ctx: &mut Context<Self>, which: impl Fn(&OwnedPartition) -> bool) {
        self.partitions.retain(|_, partition| !partition.is_closed());
        self.chunks.retain(|chunk| !which(&chunk.partition));
        let stream = ctx.address().recipient();
        let again: Vec<_> = self.partitions.values().filter(|partition| which(partition)).cloned().collect();
        let again = again.into_iter().map(|partition| {
            partition.rewind();
            partition.set_held(false);
            Assigned { partition, stream: stream.clone() }
        });
        self.parts.fetchers.do_send(StartFetching(again.collect()));
    }
}

impl Actor for StreamQueue {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.launch_handler(ctx);
    }
}

impl Handler<FetchedChunk> for StreamQueue {
    type Result = ();

    fn handle(&mut self, mut chunk: FetchedChunk, ctx: &mut Self::Context) {
        self.status.messages += 1;
        // one that is held is fetched again from before this chunk
        if chunk.partition.is_closed() || chunk.partition.is_held() {
            return;
        }
        let partition = Arc::clone(&chunk.partition);
        self.partitions.insert(partition.topic_partition.clone(), Arc::clone(&partition));
        match chunk.take_in() {
            Joint::Next => self.gaps.remove(&partition.topic_partition),
            Joint::Repeated => return,
            Joint::Gap => return self.fill_gap(&partition, ctx),
        };
        self.status.chunks += 1;
        self.chunks.push_back(chunk);
        self.offer();
    }
}

impl Handler<NextChunk> for StreamQueue {
    type Result = ResponseFuture<Option<FetchedChunk>>;

    fn handle(&mut self, _: NextChunk, _: &mut Self::Context) -> Self::Result {
        self.status.messages += 1;
        if self.stopped {
            return Box::pin(async { None });
        }
        let (answer, chunk) = oneshot::channel();
        self.waiting = Some(answer);
        self.offer();
        Box::pin(async move { chunk.await.ok().flatten() })
    }
}

impl Handler<Clear> for StreamQueue {
    type Result = ();

    fn handle(&mut self, Clear(partitions): Clear, _: &mut Self::Context) {
        self.status.messages += 1;
        self.chunks.retain(|chunk| !chunk.partition.is_closed());
        for tp in partitions {
            if self.partitions.get(&tp).is_some_and(|partition| partition.is_closed()) {
                self.partitions.remove(&tp);
                self.gaps.remove(&tp);
            }
        }
    }
}

impl Handler<ChunkFailed> for StreamQueue {
    type Result = ();

    fn handle(&mut self, ChunkFailed { partition, error }: ChunkFailed, ctx: &mut Self::Context) {
        self.status.messages += 1;
        if partition.is_closed() {
            return;
        }
        // what is queued lies past the error
        partition.set_held(true);
        self.chunks.retain(|chunk| !Arc::ptr_eq(&chunk.partition, &partition));
        self.status.last_error = Some(error.to_string());
        let pause = self.unreadable.failed(&partition, error, &self.parts.name);
        ctx.run_later(pause, move |this, ctx| {
            if partition.is_held() {
                this.refetch(ctx, |other| std::ptr::eq(other, Arc::as_ptr(&partition)));
            }
        });
    }
}

impl Handler<HandlerGone> for StreamQueue {
    type Result = ();

    fn handle(&mut self, HandlerGone { life }: HandlerGone, ctx: &mut Self::Context) {
        self.status.messages += 1;
        if self.stopped || life != self.life {
            return;
        }
        self.life += 1;
        self.waiting = None;
        self.status.handler_restarts += 1;
        let delay = self.budget.next_delay().unwrap_or(Duration::from_secs(5));
        tracing::error!(stream = self.parts.name, ?delay, why = "handler ended", "making the handler anew");
        ctx.run_later(delay, |this, ctx| {
            this.refetch(ctx, |_| true);
            this.launch_handler(ctx);
        });
    }
}

impl Handler<Describe> for StreamQueue {
    type Result = MessageResult<Describe>;

    fn handle(&mut self, _: Describe, _: &mut Self::Context) -> Self::Result {
        self.status.messages += 1;
        (self.status.queued_chunks, self.status.queued_bytes) = self.parts.credit.used();
        self.status.unreadable = self.unreadable.now();
        MessageResult(self.status.clone())
    }
}

impl Handler<Stop> for StreamQueue {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.parts.guard.dismiss();
        self.stopped = true;
        self.chunks.clear();
        if let Some(waiting) = self.waiting.take() {
            // a consumer that is gone needs no end mark
            let _ = waiting.send(None);
        }
        ctx.stop();
    }
}

#[cfg(test)]
mod tests;
