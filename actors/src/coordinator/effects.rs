//! Carries out what the machine decided.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use actix::prelude::*;
use futures_util::future::join_all;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::{ClaimAnswer, Effect, Generation, GroupSnapshot, Input, SessionNumber};
use kafka_troupe_proto::zk::registration::Registration;
use kafka_troupe_proto::zk::{ConsumerThreadId, paths};
use tokio::sync::Mutex;

use super::{RebalanceCoordinator, snapshot};
use crate::fetcher_manager::{Assigned, SetBrokers, StartFetching, StopFetching};
use crate::offset_committer::{FlushGeneration, ReadPosition};
use crate::registry::{Claim, OwnedPartition, Position};
use crate::stream_queue::Clear;

impl RebalanceCoordinator {
    pub(super) fn run(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        match effect {
            Effect::Register { generation } => self.register(generation, ctx),
            Effect::ReadGroup { generation } => self.read_group(generation, ctx),
            Effect::Stop { generation, partitions, deadline } => {
                self.stop(generation, partitions, deadline, ctx);
            }
            Effect::Drop { partitions, .. } => {
                self.close(&partitions);
            }
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
            Effect::Report(progress) => self.traces.note(&progress),
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
        let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let timestamp = i64::try_from(millis).unwrap_or(i64::MAX);
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
            Arc::clone(&self.parts.config),
            self.parts.subscription.clone(),
        );
        ctx.spawn(read.into_actor(self).map(move |read, this, ctx| {
            let outcome = read.map(|(snapshot, brokers)| {
                this.parts.fetchers.do_send(SetBrokers(brokers));
                if generation == this.machine.generation() {
                    this.unwatch_others(&snapshot);
                }
                snapshot
            });
            this.take(Input::GroupRead { generation, outcome }, ctx);
        }));
    }

    /// Topics that were read before and are of no concern now: deleted ones of a filter, those of a member that left.
    fn unwatch_others(&mut self, snapshot: &GroupSnapshot) {
        let read = snapshot.partitions.keys().cloned().collect();
        for topic in std::mem::replace(&mut self.topics, read).difference(&self.topics) {
            self.znodes.unwatch(paths::topic(topic));
        }
    }

    /// Closes the gates now: from here on nothing is handed over. What was being started is forgotten.
    fn close(&mut self, partitions: &BTreeSet<TopicPartition>) -> Vec<Arc<OwnedPartition>> {
        self.starting.retain(|tp, _| !partitions.contains(tp));
        let owned: Vec<_> = partitions.iter().filter_map(|tp| self.parts.registry.remove(tp)).collect();
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

    /// Delivery has stopped before the flush, and the flush is done before the release (INV-2, INV-3).
    fn stop(
        &mut self,
        generation: Generation,
        partitions: BTreeSet<TopicPartition>,
        deadline: u64,
        ctx: &mut Context<Self>,
    ) {
        let limit = Duration::from_millis(deadline.saturating_sub(self.now()));
        let owned = self.close(&partitions);
        let committer = self.parts.committer.clone();
        let io = async move {
            join_all(owned.iter().map(|partition| drain(partition, limit))).await;
            // a committer that is being restarted commits nothing; the records come again
            let _ = committer.send(FlushGeneration(owned)).await;
            Input::Stopped { generation, partitions }
        };
        self.spawn_input(io, ctx);
    }

    /// The operations on one owner node run one after the other, so that their results come in ZooKeeper's order: a
    /// read that was answered before a create must not be told after it.
    fn turn(&mut self, partition: &TopicPartition) -> Arc<Mutex<()>> {
        Arc::clone(self.turns.entry(partition.clone()).or_default())
    }

    fn spawn_in_turn(
        &self,
        turn: Arc<Mutex<()>>,
        io: impl Future<Output = Input> + 'static,
        ctx: &mut Context<Self>,
    ) {
        // the turn ends when the result is told
        let io = async move { (turn.lock_owned().await, io.await) };
        ctx.spawn(io.into_actor(self).map(|(turn, input), this, ctx| {
            this.take(input, ctx);
            drop(turn);
        }));
    }

    fn release(&mut self, session: SessionNumber, partition: TopicPartition, ctx: &mut Context<Self>) {
        let turn = self.turn(&partition);
        let znodes = self.znodes.clone();
        let io = async move {
            let outcome = znodes.release(session, &partition).await.map_err(|error| error.to_string());
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
        let znodes = self.znodes.clone();
        let io = async move {
            let answer = znodes.rethread(session, &partition, &thread).await;
            let answer = answer.unwrap_or_else(|error| ClaimAnswer::Unknown(error.to_string()));
            Input::Claimed { session, partition, answer }
        };
        self.spawn_in_turn(turn, io, ctx);
    }

    fn read_owner(&mut self, session: SessionNumber, partition: TopicPartition, ctx: &mut Context<Self>) {
        let turn = self.turn(&partition);
        let znodes = self.znodes.clone();
        let io = async move {
            let outcome = znodes.owner(&partition, true).await.map_err(|error| error.to_string());
            Input::OwnerRead { session, partition, outcome }
        };
        self.spawn_in_turn(turn, io, ctx);
    }

    /// The position is read now, after the claim (rule 7).
    fn start(&mut self, start: Start, partition: TopicPartition, ctx: &mut Context<Self>) {
        self.starting.insert(partition.clone(), start.generation);
        let read = self.parts.committer.send(ReadPosition { partition: partition.clone() });
        ctx.spawn(read.into_actor(self).map(move |answer, this, ctx| {
            if this.starting.get(&partition) != Some(&start.generation) {
                return;
            }
            this.starting.remove(&partition);
            let why = match answer {
                Ok(Ok(position)) => match this.deliver(&start, &partition, position) {
                    Ok(()) => return,
                    Err(why) => why,
                },
                Ok(Err(error)) => error.to_string(),
                Err(_) => "the offset committer is not running".to_owned(),
            };
            this.take(Input::StartFailed { generation: start.generation, partition, why }, ctx);
        }));
    }

    fn deliver(
        &mut self,
        start: &Start,
        partition: &TopicPartition,
        position: Position,
    ) -> Result<(), String> {
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
}

/// Under which rebalance and claim a partition starts.
pub(super) struct Start {
    generation: Generation,
    session: SessionNumber,
    thread: ConsumerThreadId,
    appeared: bool,
}

/// Waits for the record in a handler's hand; cut off after `limit` (rule 6).
pub(super) async fn drain(partition: &OwnedPartition, limit: Duration) {
    if !partition.drained(limit).await {
        let tp = &partition.topic_partition;
        tracing::warn!(partition = %tp, offset = partition.acked(), ?limit, why = "troupe.drain.timeout.ms", "handler cut off: the record at this offset is handled again by the next owner");
    }
}
