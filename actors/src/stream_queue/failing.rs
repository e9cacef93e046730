//! What the failure policy has decided about a record, as its stream carries it out; nothing of this is met while
//! records are handled as they should be.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use actix::prelude::*;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::Decision;

use super::{HandlerGone, StreamQueue};
use crate::clock;
use crate::registry::{Halt, HaltReason, OwnedPartition};

/// A record that could not be handled.
#[derive(Clone)]
pub struct Failure {
    /// The claim.
    pub partition: Arc<OwnedPartition>,
    /// The record's offset.
    pub offset: i64,
    /// Why, as the handler or the decoder said it last.
    pub why: String,
    /// How often it was tried.
    pub attempts: u32,
}

impl Failure {
    /// The policy has decided: whether the record comes again is told with its partition.
    pub(super) fn decided(&self, decision: &Decision) {
        match decision {
            Decision::RetryAfter(_) => self.partition.set_retried(self.offset, self.attempts, &self.why),
            _ => self.partition.set_not_retried(self.offset),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { partition, offset, why, attempts } = self;
        let times = if *attempts == 1 { "once" } else { &format!("{attempts} times") };
        write!(f, "{}@{offset}, tried {times}: {why}", partition.topic_partition)
    }
}

/// The policy stops the partition: nothing more of it is handed over until somebody wants it to be tried again.
#[derive(Message, Clone)]
#[rtype(result = "()")]
pub struct PartitionFailed(pub Failure);

/// The policy stops the stream: the same for all its partitions, also for those that it is given later.
#[derive(Message, Clone)]
#[rtype(result = "()")]
pub struct StreamFailed(pub Failure);

/// The policy has the record passed over: it is acknowledged without having been handled.
#[derive(Message, Clone)]
#[rtype(result = "()")]
pub struct Skipped(pub Failure);

/// The record was written to a dead-letter topic, and is acknowledged.
#[derive(Message, Clone)]
#[rtype(result = "()")]
pub struct DeadLettered(pub Failure);

/// Reasons to halt these partitions came or went.
#[derive(Message)]
#[rtype(result = "()")]
pub struct HaltsChanged(pub Vec<Arc<OwnedPartition>>);

/// A record that a policy has passed over.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PassedOver {
    /// Which partition.
    pub partition: TopicPartition,
    /// The record's offset.
    pub offset: i64,
    /// Why it could not be handled.
    pub why: String,
    /// How often it was tried.
    pub attempts: u32,
    /// When it was passed over.
    pub at: SystemTime,
}

impl From<Failure> for PassedOver {
    fn from(Failure { partition, offset, why, attempts }: Failure) -> Self {
        let partition = partition.topic_partition.clone();
        Self { partition, offset, why, attempts, at: clock::now() }
    }
}

/// The record with which a handler has ended, or the batch.
#[derive(Clone)]
pub(super) struct FailedWith {
    pub(super) partition: Arc<OwnedPartition>,
    /// Of the (first) record.
    pub(super) offset: i64,
    /// Behind what failed: each time, so that nothing is given up that was not tried as often.
    pub(super) next: i64,
    /// How many there were.
    pub(super) records: u32,
    /// In a row, over all lives of its handler.
    pub(super) failures: u32,
    /// The last time by ending its handler: the policy is asked before it is handed over again.
    pub(super) ended_handler: bool,
}

impl FailedWith {
    /// It failed once more, if this is the same.
    pub(super) fn after(self, before: Option<&Self>) -> Self {
        match before {
            Some(it) if it.offset == self.offset && Arc::ptr_eq(&it.partition, &self.partition) => Self {
                next: self.next.min(it.next),
                records: self.records.min(it.records),
                failures: it.failures.saturating_add(1),
                ..self
            },
            _ => self,
        }
    }
}

impl fmt::Display for FailedWith {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { partition, offset, failures, .. } = self;
        write!(f, "{}@{offset}, which has failed {failures} times", partition.topic_partition)
    }
}

/// Records with which handlers have ended: one that ends its handler every time falls under the policy as well, which
/// decides before the next handler gets it. Several of a partition, where several are in flight: each would be forgotten
/// by the other, and none of them ever given up.
#[derive(Clone, Default)]
pub(super) struct KnownFailures(BTreeMap<(TopicPartition, i64), FailedWith>);

impl KnownFailures {
    pub(super) fn note(&mut self, failed: FailedWith) {
        self.0.insert((failed.partition.topic_partition.clone(), failed.offset), failed);
    }

    /// Those that are past, or of a claim that is, count no more.
    pub(super) fn clean(&mut self) {
        self.0.retain(|_, failed| !failed.partition.is_closed() && failed.partition.acked() <= failed.offset);
    }

    /// The first record of this claim that is known to fail.
    pub(super) fn of(&self, partition: &Arc<OwnedPartition>) -> Option<&FailedWith> {
        self.0.values().find(|failed| Arc::ptr_eq(&failed.partition, partition))
    }

    /// Whether it is known to have failed as often.
    fn has(&self, failed: &FailedWith) -> bool {
        let known = self.0.get(&(failed.partition.topic_partition.clone(), failed.offset));
        known.is_some_and(|known| {
            Arc::ptr_eq(&known.partition, &failed.partition) && known.failures >= failed.failures
        })
    }

    /// The first known of a partition; it is known no more.
    pub(super) fn take(&mut self, partition: &OwnedPartition) -> Option<FailedWith> {
        let mut known = self.0.keys().filter(|(of, _)| *of == partition.topic_partition);
        let first = known.next().cloned()?;
        self.0.remove(&first)
    }

    /// What is known of this record; it is known no more.
    pub(super) fn take_at(&mut self, partition: &Arc<OwnedPartition>, offset: i64) -> Option<FailedWith> {
        if self.0.is_empty() {
            return None;
        }
        let known = self.0.remove(&(partition.topic_partition.clone(), offset))?;
        Arc::ptr_eq(&known.partition, partition).then_some(known)
    }

    /// None of a partition is known any more.
    fn forget(&mut self, partition: &OwnedPartition) {
        self.0.retain(|(of, _), _| *of != partition.topic_partition);
    }
}

impl StreamQueue {
    /// Those that the stream has now, whether anything came of them or not.
    pub(super) fn its_partitions(&self) -> Vec<Arc<OwnedPartition>> {
        let all = self.parts.registry.all();
        all.into_iter().filter(|partition| Arc::ptr_eq(&partition.credit, &self.parts.credit)).collect()
    }

    fn stop_partition(&mut self, failure: &Failure, partition: &Arc<OwnedPartition>, why: String) {
        let Failure { offset, attempts, .. } = *failure;
        let its_own = Arc::ptr_eq(partition, &failure.partition);
        let (offset, attempts) = if its_own { (Some(offset), attempts) } else { (None, 0) };
        partition.halt(HaltReason::Failed, Halt { offset, attempts, ..Halt::asked_for(&why) });
        self.known.forget(partition);
        self.drop_stale();
    }

    /// A partition that comes to a stream that is stopped is stopped as well; whether it was.
    pub(super) fn is_stopped_with_stream(&mut self, partition: &Arc<OwnedPartition>) -> bool {
        let Some(failure) = self.failed.clone() else { return false };
        let is_new = !self.partitions.contains_key(&partition.topic_partition);
        if is_new {
            self.stop_partition(&failure, partition, stopped_with(&failure));
        }
        is_new
    }

    /// What was fetched before its partition was halted or given up is never handed over.
    pub(super) fn drop_stale(&mut self) {
        self.chunks.retain(super::FetchedChunk::is_current);
    }

    /// Has it fetched again from the acknowledged position once nothing of it is in hand, if no reason to halt it is
    /// left then.
    pub(super) fn go_on(&self, partition: &Arc<OwnedPartition>, ctx: &mut Context<Self>) {
        let partition = Arc::clone(partition);
        let halted = Arc::clone(&partition);
        let idle = async move { halted.idle().await };
        ctx.spawn(idle.into_actor(self).map(move |(), this, ctx| {
            if partition.is_halted() && partition.begin_again() {
                this.fetch_anew([partition], ctx);
            }
        }));
    }
}

/// Why a partition is stopped with its stream.
pub(super) fn stopped_with(failure: &Failure) -> String {
    let Failure { partition, offset, why, .. } = failure;
    format!("its stream was stopped by {}@{offset}: {why}", partition.topic_partition)
}

impl Handler<PartitionFailed> for StreamQueue {
    type Result = ();

    fn handle(&mut self, PartitionFailed(failure): PartitionFailed, _: &mut Self::Context) {
        self.status.messages += 1;
        let partition = Arc::clone(&failure.partition);
        if partition.is_closed() {
            return;
        }
        tracing::error!(%failure, "the partition is stopped: resume or seek it to have the record tried again");
        self.stop_partition(&failure, &partition, failure.why.clone());
    }
}

impl Handler<StreamFailed> for StreamQueue {
    type Result = ();

    fn handle(&mut self, StreamFailed(failure): StreamFailed, _: &mut Self::Context) {
        self.status.messages += 1;
        if failure.partition.is_closed() {
            return;
        }
        let stream = &self.parts.name;
        tracing::error!(stream, %failure, "the stream is stopped: resume its partitions to have the record tried again");
        for partition in self.its_partitions() {
            let its_own = Arc::ptr_eq(&partition, &failure.partition);
            let why = if its_own { failure.why.clone() } else { stopped_with(&failure) };
            self.stop_partition(&failure, &partition, why);
        }
        self.failed = Some(failure);
    }
}

impl Handler<Skipped> for StreamQueue {
    type Result = ();

    fn handle(&mut self, Skipped(failure): Skipped, _: &mut Self::Context) {
        self.status.messages += 1;
        tracing::error!(%failure, "the record is skipped, as its failure policy says");
        self.known.take_at(&failure.partition, failure.offset);
        self.status.skipped += 1;
        self.status.last_skipped = Some(failure.into());
    }
}

impl Handler<DeadLettered> for StreamQueue {
    type Result = ();

    fn handle(&mut self, DeadLettered(failure): DeadLettered, _: &mut Self::Context) {
        self.status.messages += 1;
        self.known.take_at(&failure.partition, failure.offset);
        self.status.dead_letters += 1;
        self.status.last_dead_letter = Some(failure.into());
    }
}

impl Handler<HaltsChanged> for StreamQueue {
    type Result = ();

    fn handle(&mut self, HaltsChanged(partitions): HaltsChanged, ctx: &mut Self::Context) {
        self.status.messages += 1;
        self.drop_stale();
        for partition in &partitions {
            if partition.may_go_on() {
                // resumed, or sought
                self.failed = None;
            }
            if partition.is_halted() {
                self.go_on(partition, ctx);
            }
        }
    }
}

impl Handler<HandlerGone> for StreamQueue {
    type Result = ();

    fn handle(&mut self, HandlerGone { life, failed }: HandlerGone, ctx: &mut Self::Context) {
        self.status.messages += 1;
        if self.stopped || life != self.life {
            return;
        }
        self.life += 1;
        self.waiting = None;
        self.status.handler_restarts += 1;
        // one that waited to be tried again, and has not been, is no reason for the end
        let ended_with = failed.iter().find(|it| it.ended_handler && !self.known.has(it));
        let delay = match ended_with {
            // the policy says how long to wait before this record comes again
            Some(_) => Duration::ZERO,
            None => self.budget.next_delay().unwrap_or(Duration::from_secs(5)),
        };
        if ended_with.is_none() {
            self.endings.ended(self.handed_over());
        }
        let (at, failures) = ended_with.map(|it| (it.offset, it.failures)).unzip();
        let partition = ended_with.map(|it| it.partition.topic_partition.to_string());
        tracing::error!(
            stream = self.parts.name,
            partition,
            offset = at,
            failures,
            ?delay,
            why = "handler ended",
            "making the handler anew"
        );
        failed.into_iter().for_each(|failed| self.known.note(failed));
        ctx.run_later(delay, |this, ctx| {
            this.refetch(ctx);
            this.launch_handler(ctx);
        });
    }
}
