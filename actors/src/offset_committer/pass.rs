//! One commit after another.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::commit::{self, Refusal};
use tokio::sync::{RwLockReadGuard, RwLockWriteGuard};
use tokio::time::Instant;
use tracing::Instrument;

use super::commit_span;
use super::stores::Stores;
use super::turn::{Inherited, Turn};
use super::{CommitError, CommitOutcome, CommittedOffset, CommitterStatus, FailingCommit, PartitionsLost};
use crate::clock;
use crate::coordinator::RebalanceCoordinator;
use crate::registry::{OwnedPartition, TopicRegistry};
use crate::supervise::Slot;

/// The stores, and what is told of them.
pub(super) struct Pass {
    pub(super) stores: Stores,
    inherited: Arc<Inherited>,
    coordinator: Slot<RebalanceCoordinator>,
    commits: AtomicU64,
    failures: AtomicU64,
    last_error: Mutex<Option<String>>,
    /// What fails now, by partition: what goes on and on is logged once.
    failing: Mutex<BTreeMap<TopicPartition, FailingCommit>>,
}

impl Pass {
    pub(super) fn new(
        stores: Stores,
        coordinator: Slot<RebalanceCoordinator>,
        inherited: Arc<Inherited>,
    ) -> Self {
        Self {
            stores,
            inherited,
            coordinator,
            commits: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            last_error: Mutex::default(),
            failing: Mutex::default(),
        }
    }

    fn turn(&self) -> &Turn {
        &self.inherited.turn
    }

    /// Waits until this claim's position may be set to another. While the guard is held nobody else writes.
    pub(super) async fn turn_of_seek(
        &self,
        claim: &OwnedPartition,
    ) -> Result<RwLockWriteGuard<'_, ()>, CommitError> {
        self.turn().alone().await.ok_or_else(|| too_late(claim))
    }

    /// Waits until the position that was made for this claim may be stored, beside those of other claims.
    pub(super) async fn turn_of_reset(
        &self,
        claim: &OwnedPartition,
    ) -> Result<RwLockReadGuard<'_, ()>, CommitError> {
        self.turn().side_by_side().await.ok_or_else(|| too_late(claim))
    }

    /// Its part of the status.
    pub(super) fn describe(&self) -> CommitterStatus {
        CommitterStatus {
            commits: self.commits.load(Relaxed),
            to_zookeeper: self.stores.written.to_zookeeper.load(Relaxed),
            to_kafka: self.stores.written.to_kafka.load(Relaxed),
            coordinator: self.stores.coordinator(),
            failures: self.failures.load(Relaxed),
            messages: 0,
            last_error: self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            failing: self.failing().values().cloned().collect(),
        }
    }

    /// Commits each partition's acknowledged offset. Which they are is asked when it is our turn: a seek that we waited
    /// for has put another claim in place.
    pub(super) async fn run(
        &self,
        partitions: impl FnOnce() -> Vec<Arc<OwnedPartition>>,
        why: &str,
    ) -> CommitOutcome {
        let turn = self.turn().alone().await;
        let partitions = partitions();
        if turn.is_none() {
            let refused = |it: Arc<OwnedPartition>| (it.topic_partition.clone(), Err(too_late(&it)));
            return partitions.into_iter().map(refused).collect();
        }
        self.commit_acknowledged(partitions, why).await
    }

    /// The last commit of partitions that are given up: what fails is tried again until then at most. Whoever else
    /// waits for its turn is not waited for beyond that, but a request in flight is.
    pub(super) async fn flush(&self, partitions: Vec<Arc<OwnedPartition>>, until: Instant) {
        let _for_those_before_us = self.turn().flush_until(until);
        let _for_retries = self.stores.flush_until(until);
        let _turn = self.turn().of_flush().await;
        // a failure is logged; what it leaves uncommitted is delivered again
        let _ = self.commit_acknowledged(partitions, "the partitions are given up").await;
    }

    async fn commit_acknowledged(&self, partitions: Vec<Arc<OwnedPartition>>, why: &str) -> CommitOutcome {
        let acknowledged = |partition: Arc<OwnedPartition>| (partition.acked(), partition);
        self.commit(partitions.into_iter().map(acknowledged).collect(), why).await
    }

    /// Commits these offsets.
    async fn commit(&self, offsets: Vec<(i64, Arc<OwnedPartition>)>, why: &str) -> CommitOutcome {
        let offsets: Vec<_> = offsets.into_iter().filter(|(offset, _)| *offset >= 0).collect();
        let span = commit_span::committing(&offsets, why);
        let outcome = self.write(offsets, why).instrument(span.clone()).await;
        commit_span::committed(&span, &outcome);
        outcome
    }

    async fn write(&self, offsets: Vec<(i64, Arc<OwnedPartition>)>, why: &str) -> CommitOutcome {
        let outcomes = self.stores.commit(offsets).await.into_iter().map(|(claim, outcome)| {
            let outcome = match outcome {
                Ok(written) => {
                    self.failing().remove(&claim.topic_partition);
                    claim.set_committed_now();
                    Ok(written)
                }
                Err(error) => Err(self.failed(&claim.topic_partition, error, why)),
            };
            let committed = |written| CommittedOffset { offset: claim.committed(), written };
            (claim.topic_partition.clone(), outcome.map(committed))
        });
        let outcome: CommitOutcome = outcomes.collect();
        let written = outcome.iter().filter(|(_, it)| it.as_ref().is_ok_and(|it| it.written)).count();
        self.commits.fetch_add(written as u64, Relaxed);
        tracing::debug!(written, why, "offsets committed");
        outcome
    }

    /// Commits the offsets that were asked for, as far as they may be.
    pub(super) async fn run_asked(
        &self,
        offsets: BTreeMap<TopicPartition, i64>,
        registry: &TopicRegistry,
        why: &str,
    ) -> CommitOutcome {
        let turn = self.turn().alone().await;
        let (mut allowed, mut refused) = (Vec::new(), Vec::new());
        for (partition, offset) in offsets {
            match may_commit(registry, &partition, offset) {
                Ok(owned) if turn.is_none() => refused.push((partition, Err(too_late(&owned)))),
                Ok(owned) => allowed.push((offset, owned)),
                Err(error) => refused.push((partition, Err(error))),
            }
        }
        let mut outcome = self.commit(allowed, why).await;
        outcome.extend(refused.into_iter().collect());
        outcome
    }

    fn failing(&self) -> MutexGuard<'_, BTreeMap<TopicPartition, FailingCommit>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a failure; says whether it is news, and not the last one over again.
    fn is_news(&self, partition: &TopicPartition, why: &str) -> bool {
        let mut failing = self.failing();
        let earlier = failing.get(partition);
        let is_news = earlier.is_none_or(|earlier| earlier.why != why);
        let failure = FailingCommit {
            partition: partition.clone(),
            why: why.to_owned(),
            since: earlier.map_or_else(clock::now, |earlier| earlier.since),
            attempts: earlier.map_or(0, |earlier| earlier.attempts) + 1,
        };
        failing.insert(partition.clone(), failure);
        is_news
    }

    pub(super) fn failed(&self, partition: &TopicPartition, error: CommitError, why: &str) -> CommitError {
        let text = error.to_string();
        if self.is_news(partition, &text) {
            tracing::warn!(%error, why, "commit failed");
        } else {
            tracing::debug!(%error, why, "commit failed again");
        }
        self.failures.fetch_add(1, Relaxed);
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        if let CommitError::Lost { partition, why } = &error {
            self.coordinator.do_send(PartitionsLost { partition: partition.clone(), why: why.clone() });
        }
        error
    }
}

/// For who has waited for its turn while partitions were given up.
fn too_late(claim: &OwnedPartition) -> CommitError {
    let why = "nothing was tried, for it waited behind other commits while partitions are given up, which must not take longer; ask again after the rebalance";
    CommitError::Store { partition: claim.topic_partition.clone(), why: why.to_owned() }
}

/// The claim whose offset is to be committed, if that may be.
fn may_commit(
    registry: &TopicRegistry,
    partition: &TopicPartition,
    offset: i64,
) -> Result<Arc<OwnedPartition>, CommitError> {
    let not_owned = || CommitError::NotOwned(partition.clone());
    let owned = registry.committable_one(partition).ok_or_else(not_owned)?;
    let (partition, stored, delivered) = (partition.clone(), owned.committed(), owned.delivered());
    if owned.is_of_earlier_topic() {
        let why = "not committed, its topic was deleted and made again, or is gone".to_owned();
        return Err(CommitError::Store { partition, why });
    }
    if owned.is_superseded() {
        let why = "not committed, it was set to another position, or is lost".to_owned();
        return Err(CommitError::Store { partition, why });
    }
    match commit::may_commit(offset, stored, delivered) {
        Ok(()) => Ok(owned),
        Err(Refusal::Negative) => Err(CommitError::Negative { partition, offset }),
        Err(Refusal::Backwards) => Err(CommitError::Backwards { partition, stored, offset }),
        Err(Refusal::NotDelivered) => Err(CommitError::NotDelivered { partition, delivered, offset }),
    }
}
