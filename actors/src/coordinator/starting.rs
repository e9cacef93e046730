//! Starts what is claimed: reads the position, asks the listener, hands the partition to its stream and the fetchers.

use std::collections::BTreeMap;
use std::sync::Arc;

use actix::prelude::*;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::{Generation, Input, SessionNumber};
use kafka_troupe_proto::zk::ConsumerThreadId;
use tokio::time::Instant;

use super::RebalanceCoordinator;
use super::topics::Incarnation;
use crate::fetcher_manager::{Assigned, StartFetching};
use crate::offset_committer::{ReadPosition, Stored};
use crate::rebalance_listener::{RebalanceListener, ReleaseReason};
use crate::registry::{Claim, OwnedPartition, Position};

/// Under which rebalance and claim a partition starts.
pub(super) struct Start {
    pub(super) generation: Generation,
    pub(super) session: SessionNumber,
    pub(super) thread: ConsumerThreadId,
    pub(super) appeared: bool,
}

/// A partition whose position is read.
pub(super) struct Ready {
    start: Start,
    partition: TopicPartition,
    position: Position,
    /// The topic that the position was held against.
    incarnation: Option<Incarnation>,
}

/// Ask the listener about what is ready.
#[derive(Message)]
#[rtype(result = "()")]
struct AskListener;

impl RebalanceCoordinator {
    /// The position is read now, after the claim (rule 7).
    pub(super) fn start(&mut self, start: Start, partition: TopicPartition, ctx: &mut Context<Self>) {
        self.starting.insert(partition.clone(), start.generation);
        let topics = Some(self.source.topic_nodes());
        let read = self.parts.committer.send(ReadPosition { partition: partition.clone(), topics });
        ctx.spawn(read.into_actor(self).map(move |answer, this, ctx| {
            if !this.is_starting(&start, &partition) {
                return;
            }
            match answer {
                Ok(Ok(Stored { position, since })) => {
                    let incarnation = since.map(Incarnation);
                    this.ready(Ready { start, partition, position, incarnation }, ctx);
                }
                Ok(Err(error)) => this.start_failed(&start, partition, error.to_string(), ctx),
                Err(_) => {
                    let why = "the offset committer is not running".to_owned();
                    this.start_failed(&start, partition, why, ctx);
                }
            }
        }));
    }

    /// Not stopped meanwhile.
    fn is_starting(&self, start: &Start, partition: &TopicPartition) -> bool {
        self.starting.get(partition) == Some(&start.generation)
    }

    fn ready(&mut self, ready: Ready, ctx: &mut Context<Self>) {
        if self.parts.listener.is_none() {
            return self.go(ready, ctx);
        }
        self.asked_next.push(ready);
        if self.asked_next.len() == 1 {
            ctx.notify(AskListener);
        }
    }

    /// The claims of one rebalance that are ready start together, when the listener has answered.
    fn ask(&self, listener: &Arc<RebalanceListener>, ready: Vec<Ready>, ctx: &mut Context<Self>) {
        let Some(generation) = ready.first().map(|ready| ready.start.generation) else { return };
        let positions = ready.iter().map(|it| (it.partition.clone(), it.position.offset)).collect();
        let assignment = Arc::clone(self.peers.plan());
        let answer = listener.before_starting(self.occasion(generation), positions, assignment);
        ctx.spawn(answer.into_actor(self).map(|(), this, ctx| {
            for ready in ready {
                if this.is_starting(&ready.start, &ready.partition) {
                    this.go(ready, ctx);
                }
            }
        }));
    }

    fn go(&mut self, ready: Ready, ctx: &mut Context<Self>) {
        if let Err(why) = self.deliver(&ready) {
            self.start_failed(&ready.start, ready.partition, why, ctx);
        } else {
            self.starting.remove(&ready.partition);
            if self.unstarted.remove(&ready.partition).is_some() {
                self.look_at_unstarted();
            }
        }
    }

    /// For as long as whole ownership may be missing (rule 2).
    fn is_late(&self, since: Instant) -> bool {
        let config = &self.parts.config;
        since.elapsed() >= config.rebalance_backoff * config.rebalance_max_retries
    }

    fn note_unstarted(&mut self, generation: Generation, partition: &TopicPartition, why: &str) {
        let since = *self.unstarted.entry(partition.clone()).or_insert_with(Instant::now);
        if self.is_late(since) {
            self.traces.start_is_missing(generation, why);
        }
    }

    /// A rebalance has settled: what is not ours by now is for others to start.
    pub(super) fn forget_unstarted(&mut self) {
        self.unstarted.retain(|tp, _| self.machine.holds(tp));
        self.look_at_unstarted();
    }

    /// The spell is over when nothing is late any more.
    fn look_at_unstarted(&mut self) {
        if !self.unstarted.values().any(|since| self.is_late(*since)) {
            self.traces.no_start_is_missing();
        }
    }

    fn deliver(&mut self, Ready { start, partition, position, incarnation }: &Ready) -> Result<(), String> {
        let mut position = *position;
        position.earlier_topic |=
            self.begin_under(partition, *incarnation) && position.offset.is_some_and(|at| at > 0);
        let stream = self.parts.streams.of(&partition.topic, start.thread.index());
        let stream = stream.ok_or_else(|| format!("there is no stream for {}", start.thread))?;
        let queue = stream.queue.get().ok_or_else(|| format!("stream {} is not running", stream.name))?;
        let claim = Claim {
            topic_partition: partition.clone(),
            generation: start.generation,
            session: start.session,
            epoch: self.session,
            thread: start.thread.clone(),
            appeared: start.appeared,
            position,
        };
        tracing::info!(%partition, offset = ?position.offset, thread = %start.thread, "partition starts");
        let partition = OwnedPartition::new(claim, Arc::clone(&stream.credit), Arc::clone(&self.parts.lease));
        let partition = Arc::new(partition);
        self.parts.registry.insert(Arc::clone(&partition));
        let assigned = Assigned { partition, stream: queue.recipient() };
        self.parts.fetchers.do_send(StartFetching(vec![assigned]));
        Ok(())
    }

    /// A listener that was asked already is told first.
    fn start_failed(
        &mut self,
        start: &Start,
        partition: TopicPartition,
        why: String,
        ctx: &mut Context<Self>,
    ) {
        self.starting.remove(&partition);
        let generation = start.generation;
        self.note_unstarted(generation, &partition, &why);
        let told = self.release_question(generation, &[partition.clone()].into());
        let limit = self.parts.config.drain_timeout;
        let io = async move {
            told.ask(&[], ReleaseReason::StartFailed, limit).await;
            Input::StartFailed { generation, partition, why }
        };
        self.spawn_input(io, ctx);
    }
}

impl Handler<AskListener> for RebalanceCoordinator {
    type Result = ();

    fn handle(&mut self, _: AskListener, ctx: &mut Self::Context) {
        let Some(listener) = self.parts.listener.clone() else { return };
        let mut by_rebalance: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for ready in std::mem::take(&mut self.asked_next) {
            if self.is_starting(&ready.start, &ready.partition) {
                by_rebalance.entry(ready.start.generation).or_default().push(ready);
            }
        }
        for ready in by_rebalance.into_values() {
            self.ask(&listener, ready, ctx);
        }
    }
}
