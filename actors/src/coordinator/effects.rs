//! Carries out what the machine decided.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use futures_util::future::join_all;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::{ClaimAnswer, Effect, Generation, Input, Phase, Progress, SessionNumber};
use kafka_troupe_proto::zk::ConsumerThreadId;
use kafka_troupe_proto::zk::registration::Registration;
use tokio::time::Instant;

use super::starting::Start;
use super::{RebalanceCoordinator, snapshot};
use crate::clock;
use crate::fetcher_manager::{SetBrokers, StopFetching};
use crate::offset_committer::FlushGeneration;
use crate::rebalance_listener::{Occasion, ReleaseQuestion, ReleaseReason};
use crate::registry::OwnedPartition;
use crate::stream_queue::Clear;

impl RebalanceCoordinator {
    pub(super) fn run(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        match effect {
            Effect::Register { generation } => self.register(generation, ctx),
            Effect::ReadGroup { generation } => self.read_group(generation, ctx),
            Effect::Stop { generation, partitions, deadline } => {
                self.stop(generation, partitions, deadline, ctx);
            }
            Effect::Drop { partitions, why } => self.lose(&partitions, &why),
            Effect::Release { session, partition } => self.release(session, partition, ctx),
            Effect::Claim { session, partition, thread } => self.claim(session, partition, thread, ctx),
            Effect::Rethread { session, partition, thread } => self.rethread(session, partition, thread, ctx),
            Effect::ReadOwner { session, partition } => self.read_owner(session, partition, ctx),
            Effect::Start { generation, session, partition, thread, appeared } => {
                self.start(Start { generation, session, thread, appeared }, partition, ctx);
            }
            Effect::SetTimer { generation, at } => {
                let delay = Duration::from_millis(at.saturating_sub(self.now()));
                ctx.run_later(delay, move |this, ctx| this.take(Input::TimerRang { generation }, ctx));
            }
            Effect::Report(progress) => {
                self.traces.note(&progress);
                if matches!(progress, Progress::Settled { .. }) {
                    self.forget_unstarted();
                }
            }
            Effect::Leave => {
                self.parts.guard.dismiss();
                ctx.stop();
                for leaving in self.leaving.drain(..) {
                    // who asked may have gone
                    let _ = leaving.send(());
                }
            }
            unknown => tracing::error!(?unknown, "effect is not known here"),
        }
    }

    fn register(&mut self, generation: Generation, ctx: &mut Context<Self>) {
        let timestamp = clock::millis(clock::now());
        let record = Registration::new(self.parts.subscription.clone(), timestamp).to_json();
        let (znodes, id) = (self.znodes.clone(), self.parts.consumer_id.clone());
        let io = async move {
            snapshot::check_peers(&znodes).await?;
            znodes.register(id.as_str(), record).await.map_err(|error| error.to_string())
        };
        ctx.spawn(io.into_actor(self).map(move |registered, this, ctx| {
            let outcome = registered.map(|registered| {
                this.session = registered.session;
                SessionNumber(registered.id)
            });
            this.answer_registered(&outcome);
            this.take(Input::Registered { generation, outcome }, ctx);
        }));
    }

    fn read_group(&mut self, generation: Generation, ctx: &mut Context<Self>) {
        self.turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        let read = snapshot::read(
            self.znodes.clone(),
            self.source.clone(),
            self.session,
            Arc::clone(&self.parts.config),
            self.parts.subscription.clone(),
            self.topics.clone(),
        );
        ctx.spawn(read.into_actor(self).map(move |read, this, ctx| {
            let outcome = read.map(|read| {
                this.parts.brokers.set(&read.brokers);
                this.parts.committer.do_send(SetBrokers(read.brokers.clone()));
                this.parts.fetchers.do_send(SetBrokers(read.brokers));
                if generation == this.machine.generation() {
                    this.expect_of_peers(&read.snapshot, ctx);
                    this.take_topics(read.topics, read.filtered);
                }
                read.snapshot
            });
            this.take(Input::GroupRead { generation, outcome }, ctx);
        }));
    }

    /// Closes the gates now: from here on nothing is handed over. What was being started is forgotten.
    fn close(&mut self, partitions: &BTreeSet<TopicPartition>) -> Vec<Arc<OwnedPartition>> {
        self.starting.retain(|tp, _| !partitions.contains(tp));
        let owned: Vec<_> = partitions.iter().filter_map(|tp| self.parts.registry.retire(tp)).collect();
        for partition in &owned {
            partition.close();
        }
        let names = || partitions.iter().cloned().collect::<Vec<_>>();
        self.parts.fetchers.do_send(StopFetching(names()));
        for stream in self.parts.streams.all() {
            stream.queue.do_send(Clear(names()));
        }
        owned
    }

    /// They are somebody else's: nothing of theirs is flushed any more, not even what was being stopped (INV-7).
    fn lose(&mut self, partitions: &BTreeSet<TopicPartition>, why: &str) {
        self.close(partitions);
        partitions.iter().for_each(|tp| self.parts.registry.forget(tp));
        if let Some(listener) = &self.parts.listener {
            listener.lost(self.occasion(self.machine.generation()), partitions, why);
        }
    }

    pub(super) fn occasion(&self, generation: Generation) -> Occasion {
        Occasion { consumer_id: self.parts.consumer_id.as_str().to_owned(), generation }
    }

    pub(super) fn release_question(
        &self,
        generation: Generation,
        partitions: &BTreeSet<TopicPartition>,
    ) -> ReleaseQuestion {
        ReleaseQuestion::about(self.parts.listener.clone(), self.occasion(generation), partitions)
    }

    /// Delivery has stopped before the listener is asked; it has answered, or had its time, before the flush; and the
    /// flush is done before the release (INV-2, INV-3).
    fn stop(
        &mut self,
        generation: Generation,
        partitions: BTreeSet<TopicPartition>,
        deadline: u64,
        ctx: &mut Context<Self>,
    ) {
        let now = Instant::now();
        let stopped_by = self.stopped_by.clone();
        let end = now + Duration::from_millis(deadline.saturating_sub(self.now()));
        let end = stopped_by.get().map_or(end, |by| by.min(end));
        let limit = end.saturating_duration_since(now);
        let question = self.release_question(generation, &partitions);
        let owned = self.close(&partitions);
        owned.iter().for_each(|partition| self.keep_unflushed_if_gone(partition));
        let (committer, registry) = (self.parts.committer.clone(), Arc::clone(&self.parts.registry));
        let why = match self.machine.phase() {
            Phase::Leaving => ReleaseReason::Shutdown,
            _ => ReleaseReason::Rebalance,
        };
        let io = async move {
            let share = question.share_of_handlers(limit);
            let drained = join_all(owned.iter().map(|partition| drain(partition, share)));
            if stopped_by.bound(drained).await.is_none() {
                tracing::warn!(why = "the end was brought forward", "handlers cut off");
            }
            let end = stopped_by.get().map_or(end, |by| by.min(end));
            question.ask(&owned, why, end.saturating_duration_since(Instant::now())).await;
            let flush = FlushGeneration { partitions: registry.settle(owned), until: end };
            // a committer that is being restarted commits nothing; the records come again
            let _ = committer.send(flush).await;
            Input::Stopped { generation, partitions }
        };
        self.spawn_input(io, ctx);
    }

    fn release(&mut self, session: SessionNumber, partition: TopicPartition, ctx: &mut Context<Self>) {
        self.parts.registry.released(&partition);
        let turn = self.turn(&partition);
        let (znodes, epoch) = (self.znodes.clone(), self.session);
        let io = async move {
            let outcome = znodes.release(epoch, session, &partition).await.map_err(|error| error.to_string());
            Input::Released { session, partition, outcome }
        };
        self.spawn_in_turn(turn, io, ctx);
    }

    fn claim(
        &mut self,
        session: SessionNumber,
        partition: TopicPartition,
        thread: ConsumerThreadId,
        ctx: &mut Context<Self>,
    ) {
        let turn = self.turn(&partition);
        let (znodes, epoch) = (self.znodes.clone(), self.session);
        let io = async move {
            let answer = znodes.claim(epoch, &partition, &thread).await;
            Input::Claimed { session, partition, answer }
        };
        self.spawn_in_turn(turn, io, ctx);
    }

    fn rethread(
        &mut self,
        session: SessionNumber,
        partition: TopicPartition,
        thread: ConsumerThreadId,
        ctx: &mut Context<Self>,
    ) {
        let turn = self.turn(&partition);
        let (znodes, epoch) = (self.znodes.clone(), self.session);
        let io = async move {
            let answer = znodes.rethread(epoch, session, &partition, &thread).await;
            let answer = answer.unwrap_or_else(|error| ClaimAnswer::Unknown(error.to_string()));
            Input::Claimed { session, partition, answer }
        };
        self.spawn_in_turn(turn, io, ctx);
    }

    fn read_owner(&mut self, session: SessionNumber, partition: TopicPartition, ctx: &mut Context<Self>) {
        if self.watched.as_ref() == Some(&partition) {
            // the claim that found the holder watches it
            return;
        }
        let turn = self.turn(&partition);
        let znodes = self.znodes.clone();
        let io = async move {
            let outcome = znodes.owner(&partition, true).await.map_err(|error| error.to_string());
            Input::OwnerRead { session, partition, outcome }
        };
        self.spawn_in_turn(turn, io, ctx);
    }
}

/// Waits for the record in a handler's hand; cut off after `limit` (rule 6).
pub(super) async fn drain(partition: &OwnedPartition, limit: Duration) {
    if !partition.drained(limit).await {
        let tp = &partition.topic_partition;
        tracing::warn!(partition = %tp, offset = partition.acked(), ?limit, why = "troupe.drain.timeout.ms", "handler cut off: the record at this offset is handled again by the next owner");
    }
}
