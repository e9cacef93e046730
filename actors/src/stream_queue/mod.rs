//! # StreamQueue: the chunks of one stream (= consumer thread = queue), in order
//!
//! Several partitions may share one stream. Chunks come from the fetchers against [`Credit`], and go one by
//! one to whoever consumes the stream: a handler actor of the user's, made by a factory and driven in its own
//! context, one record or batch after the other (`driver.rs`) or with several in flight (`in_flight.rs`), or a
//! [`KafkaStream`] that pulls.
//!
//! - *Mailbox*: requests [`NextChunk`], [`Clear`], [`Describe`], [`Stop`]; events [`FetchedChunk`],
//!   [`ChunkFailed`], [`HandlerGone`], [`HaltsChanged`]; what the failure policy has decided ([`PartitionFailed`],
//!   [`StreamFailed`], [`Skipped`], [`DeadLettered`]).
//! - *State*: the queue, the one request waiting for it, the partitions that it serves, those with a gap to be
//!   filled and those that cannot be read on, the handler's factory, the records with which handlers have ended, and
//!   the one by which a policy has stopped the stream.
//! - *Supervision*: tells its parent of a panic by an [`ExitGuard`]; restarts its handler, within a budget,
//!   and then goes on at the acknowledged position.
//! - *Talks to*: the `FetcherManager`, to fetch a partition again from its acknowledged position; the registry, for
//!   the partitions that it has; its drivers to the `DeadLetterWriter`.

mod answer;
mod blocking;
mod chunk;
mod commit_after;
mod credit;
mod driver;
mod ending;
mod failing;
mod hand;
mod handler_span;
mod in_flight;
mod pull;
mod read_options;
mod reader;
mod streams;
#[cfg(feature = "opentelemetry")]
mod trace_headers;
mod unreadable;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use actix::prelude::*;
use kafka_troupe_proto::TopicPartition;
use tokio::sync::oneshot;

pub use blocking::{BlockingStream, PullError};
pub use chunk::FetchedChunk;
pub use commit_after::CommitAfter;
pub(crate) use commit_after::{CommitDue, Tally};
pub use credit::{Credit, CreditGranted};
pub use driver::HandlerFactory;
pub(crate) use driver::Handling;
use ending::Endings;
pub use ending::HandlerEnding;
pub use failing::{DeadLettered, Failure, HaltsChanged, PartitionFailed, PassedOver, Skipped, StreamFailed};
use failing::{FailedWith, KnownFailures};
pub use pull::KafkaStream;
pub use read_options::ReadOptions;
pub(crate) use reader::why as why_unreadable;
pub use streams::{StreamHandle, Streams};
pub use unreadable::Unreadable;
use unreadable::UnreadablePartitions;

use crate::dead_letters::DeadLetters;
use crate::fetcher_manager::{Assigned, FetcherManager, StartFetching};
use crate::record::ConsumeError;
use crate::registry::{Halt, HaltReason, Joint, OwnedPartition, TopicRegistry};
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
    /// The record (or batch) with which it has ended: in its hand, or about to come to it again. And others that have
    /// failed and are not done.
    failed: Vec<FailedWith>,
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
    /// Records with the handler now; of batches and of who pulls, partitions.
    pub in_flight: usize,
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
    /// Records that a failure policy has passed over.
    pub skipped: u64,
    /// The last of them.
    pub last_skipped: Option<PassedOver>,
    /// Records that were written to a dead-letter topic.
    pub dead_letters: u64,
    /// The last of them.
    pub last_dead_letter: Option<PassedOver>,
    /// Why a failure policy has stopped the stream.
    pub stopped: Option<String>,
    /// Its handler ends as soon as it is made.
    pub handler_ending: Option<HandlerEnding>,
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
    /// The way to the writer of dead letters, where a subscription names a topic for them.
    pub letters: Option<DeadLetters>,
    /// What the member owns.
    pub registry: Arc<TopicRegistry>,
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
    /// Records with which handlers have ended.
    known: KnownFailures,
    /// The record by which a failure policy has stopped the stream.
    failed: Option<Failure>,
    /// Which of the handler's lives this is.
    life: u64,
    /// Records with it now, where several are in flight.
    running: Arc<AtomicU32>,
    budget: RestartBudget,
    endings: Endings,
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
            known: KnownFailures::default(),
            failed: None,
            life: 0,
            running: Arc::default(),
            budget: RestartBudget::default(),
            endings: Endings::default(),
            stopped: false,
            status,
        }
    }

    fn launch_handler(&mut self, ctx: &mut Context<Self>) {
        if let Some(factory) = &self.parts.handler
            && !self.stopped
        {
            self.known.clean();
            let handed_over = self.handed_over();
            self.running = Arc::default();
            let running = Arc::clone(&self.running);
            let (queue, parts, known) = (ctx.address(), &self.parts, self.known.clone());
            self.endings.make(handed_over, || factory.launch(queue, parts, self.life, known, running));
        }
    }

    /// Records of the partitions that it has now.
    fn handed_over(&self) -> u64 {
        self.its_partitions().iter().map(|partition| self.parts.registry.counted_of(partition).0).sum()
    }

    fn next(&mut self) -> Option<FetchedChunk> {
        std::iter::from_fn(|| self.chunks.pop_front()).find(FetchedChunk::is_current)
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

    /// Fetches all that is not halted again from the acknowledged position, dropping what is queued past it.
    fn refetch(&mut self, ctx: &mut Context<Self>) {
        self.partitions.retain(|_, partition| !partition.is_closed());
        let again: Vec<_> = self.partitions.values().filter(|it| it.begin_again()).cloned().collect();
        self.drop_stale();
        self.fetch_anew(again, ctx);
    }

    fn fetch_anew(
        &mut self,
        partitions: impl IntoIterator<Item = Arc<OwnedPartition>>,
        ctx: &mut Context<Self>,
    ) {
        let stream = ctx.address().recipient();
        let assigned = partitions.into_iter().map(|partition| {
            self.gaps.remove(&partition.topic_partition);
            Assigned { partition, stream: stream.clone() }
        });
        let assigned = assigned.collect();
        self.parts.fetchers.do_send(StartFetching(assigned));
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
        let partition = Arc::clone(&chunk.partition);
        // one that is halted is fetched again from before this chunk
        if partition.is_closed() || partition.is_halted() || self.is_stopped_with_stream(&partition) {
            return;
        }
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
        self.drop_stale();
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
        self.status.last_error = Some(error.to_string());
        let known = self.unreadable.failed(&partition, error, &self.parts.name);
        let Unreadable { error, since, attempts } = known;
        let halt = Halt { offset: Some(error.offset), since, why: error.to_string(), attempts };
        partition.halt(HaltReason::Unreadable, halt);
        // what is queued lies past the error
        self.drop_stale();
        ctx.run_later(unreadable::pause_after(attempts), move |this, ctx| {
            partition.try_to_read();
            this.go_on(&partition, ctx);
        });
    }
}

impl Handler<Describe> for StreamQueue {
    type Result = MessageResult<Describe>;

    fn handle(&mut self, _: Describe, _: &mut Self::Context) -> Self::Result {
        self.status.messages += 1;
        (self.status.queued_chunks, self.status.queued_bytes) = self.parts.credit.used();
        let in_hand = self.its_partitions().iter().filter(|partition| partition.is_in_hand()).count();
        self.status.in_flight = in_hand.max(self.running.load(Relaxed) as usize);
        self.status.unreadable = self.unreadable.now();
        self.status.stopped = self.failed.as_ref().map(|failure| failure.why.clone());
        self.status.handler_ending = self.endings.now(self.handed_over());
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
