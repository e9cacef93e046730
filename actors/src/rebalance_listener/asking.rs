//! Asks the listener, and waits for it no longer than is right.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix::dev::ToEnvelope;
use actix::prelude::*;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::Generation;
use kafka_troupe_proto::group::assignor::Plan;
use kafka_troupe_proto::schemas::status::v1 as status;
use tokio::time::timeout;

use super::{BeforeReleasingPartitions, BeforeStartingPartitions, OwnershipLost, ReleaseReason};
use crate::registry::{NO_OFFSET, OwnedPartition};

/// The listener of one member, and what it was told. It outlives the coordinator, so that a restarted one knows that.
pub(crate) struct RebalanceListener {
    /// The actor's type, for logs.
    name: &'static str,
    releasing: Recipient<BeforeReleasingPartitions>,
    starting: Recipient<BeforeStartingPartitions>,
    lost: Recipient<OwnershipLost>,
    /// How long a start waits for the answer.
    start_limit: Duration,
    told: Mutex<Told>,
}

/// Partitions with the rebalance that started them: one that is lost and started again is not the same.
pub(crate) type Started = BTreeMap<TopicPartition, Generation>;

/// What the listener was told, and how it answered.
#[derive(Default)]
struct Told {
    /// Started, and neither released nor lost since.
    started: Started,
    asked: u64,
    late: u64,
    failed: u64,
    last_error: String,
    /// The last question, if it was not answered in time and is not answered since.
    failing: String,
}

/// Under which rebalance of which member something is told.
pub(crate) struct Occasion {
    pub(crate) consumer_id: String,
    pub(crate) generation: Generation,
}

impl RebalanceListener {
    /// How long a start waits when nothing else is set: time to load state, far below what an operator would call a
    /// standstill.
    pub(crate) const START_LIMIT: Duration = Duration::from_secs(30);

    /// The actor; a start waits for it for at most 30 s.
    pub(crate) fn new<A>(listener: &Addr<A>) -> Self
    where
        A: Handler<BeforeReleasingPartitions> + Handler<BeforeStartingPartitions> + Handler<OwnershipLost>,
        A::Context: ToEnvelope<A, BeforeReleasingPartitions>
            + ToEnvelope<A, BeforeStartingPartitions>
            + ToEnvelope<A, OwnershipLost>,
    {
        Self {
            name: std::any::type_name::<A>(),
            releasing: listener.clone().recipient(),
            starting: listener.clone().recipient(),
            lost: listener.clone().recipient(),
            start_limit: Self::START_LIMIT,
            told: Mutex::default(),
        }
    }

    /// The same, with another limit.
    pub(crate) fn waiting_for(self, start_limit: Duration) -> Self {
        Self { start_limit, ..self }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks before these partitions start: now; the answer is waited for in the future.
    pub(crate) fn before_starting(
        self: &Arc<Self>,
        occasion: Occasion,
        partitions: BTreeMap<TopicPartition, Option<i64>>,
        assignment: Arc<Plan>,
    ) -> impl Future<Output = ()> + use<> {
        let Occasion { consumer_id, generation } = occasion;
        let (names, limit) = (partitions.keys().cloned().collect::<Vec<_>>(), self.start_limit);
        self.told().started.extend(names.iter().map(|tp| (tp.clone(), generation)));
        let message = BeforeStartingPartitions {
            consumer_id,
            generation,
            partitions,
            assignment,
            answer_within: limit,
        };
        let (this, answer) = (Arc::clone(self), self.starting.send(message));
        async move { this.wait("start", &names, limit, answer).await }
    }

    /// Tells that partitions are gone, as far as they were started.
    pub(crate) fn lost(&self, occasion: Occasion, partitions: &BTreeSet<TopicPartition>, why: &str) {
        let partitions: BTreeSet<_> = self.end(self.started_of(partitions)).into_iter().collect();
        if !partitions.is_empty() {
            let Occasion { consumer_id, generation } = occasion;
            self.lost.do_send(OwnershipLost { consumer_id, generation, partitions, why: why.to_owned() });
        }
    }

    /// Takes out those that are still what they were.
    fn end(&self, started: Started) -> Vec<TopicPartition> {
        let mut told = self.told();
        let is_same = |(tp, since): &(TopicPartition, Generation)| told.started.get(tp) == Some(since);
        let same: Vec<_> = started.into_iter().filter(is_same).map(|(tp, _)| tp).collect();
        told.started.retain(|tp, _| !same.contains(tp));
        same
    }

    /// All that were started and not ended since.
    pub(crate) fn started(&self) -> Started {
        self.told().started.clone()
    }

    fn started_of(&self, partitions: &BTreeSet<TopicPartition>) -> Started {
        let mut started = self.started();
        started.retain(|tp, _| partitions.contains(tp));
        started
    }

    async fn wait(
        self: &Arc<Self>,
        step: &'static str,
        partitions: &[TopicPartition],
        limit: Duration,
        answer: impl Future<Output = Result<(), MailboxError>> + 'static,
    ) {
        let mut answer = Box::pin(answer);
        let in_time = timeout(limit, answer.as_mut()).await;
        let mut told = self.told();
        told.asked += 1;
        let why = match in_time {
            Ok(Ok(())) => {
                told.failing.clear();
                return;
            }
            Err(_) => {
                told.late += 1;
                format!("no answer within {} ms", limit.as_millis())
            }
            Ok(Err(_)) => {
                told.failed += 1;
                "it panicked or stopped".to_owned()
            }
        };
        let partitions: Vec<_> = partitions.iter().map(ToString::to_string).collect();
        let partitions = partitions.join(", ");
        let error = format!("before the {step} of {partitions}: {why}");
        (told.last_error, told.failing) = (error.clone(), error.clone());
        drop(told);
        if in_time.is_err() {
            actix::spawn(Arc::clone(self).is_late(error, answer));
        }
        tracing::warn!(
            listener = self.name,
            partitions,
            why,
            "rebalance listener failed; the {step} goes on"
        );
    }

    /// It is failing until it answers. (It answers in order: what it was asked later is then to be waited for.)
    async fn is_late(self: Arc<Self>, error: String, answer: impl Future<Output = Result<(), MailboxError>>) {
        let answered = answer.await.is_ok();
        let mut told = self.told();
        if answered && told.failing == error {
            told.failing.clear();
        }
    }

    pub(crate) fn describe(&self) -> status::RebalanceListener {
        let told = self.told();
        status::RebalanceListener {
            name: self.name.to_owned(),
            asked: told.asked,
            late: told.late,
            failed: told.failed,
            last_error: told.last_error.clone(),
            failing: told.failing.clone(),
        }
    }
}

/// What is to be asked before a release. It names what was started when the release was decided: what is lost until
/// the question is put, and perhaps started again, is another claim.
pub(crate) struct ReleaseQuestion {
    listener: Option<Arc<RebalanceListener>>,
    occasion: Occasion,
    started: Started,
}

impl ReleaseQuestion {
    /// About those of these partitions that were started.
    pub(crate) fn about(
        listener: Option<Arc<RebalanceListener>>,
        occasion: Occasion,
        partitions: &BTreeSet<TopicPartition>,
    ) -> Self {
        let started = listener.as_ref().map(|it| it.started_of(partitions)).unwrap_or_default();
        Self { listener, occasion, started }
    }

    /// About all that were started.
    pub(crate) fn about_all(listener: Option<Arc<RebalanceListener>>, occasion: Occasion) -> Self {
        let started = listener.as_ref().map(|it| it.started()).unwrap_or_default();
        Self { listener, occasion, started }
    }

    /// How much of the time that a release may take (rule 6) handlers may use: a quarter is kept for the listener.
    pub(crate) fn share_of_handlers(&self, limit: Duration) -> Duration {
        if self.started.is_empty() { limit } else { limit * 3 / 4 }
    }

    /// Asks, and waits for the answer, if there is anything to ask. `stopped` say how far they are.
    pub(crate) async fn ask(self, stopped: &[Arc<OwnedPartition>], why: ReleaseReason, limit: Duration) {
        let Self { listener, occasion: Occasion { consumer_id, generation }, started } = self;
        let Some(listener) = listener else { return };
        let names = listener.end(started);
        if names.is_empty() {
            return;
        }
        let positions: BTreeMap<_, _> = stopped.iter().map(|it| (&it.topic_partition, it.acked())).collect();
        let position = |tp| positions.get(tp).copied().filter(|acked| *acked != NO_OFFSET);
        let partitions = names.iter().map(|tp| (tp.clone(), position(tp))).collect();
        let message =
            BeforeReleasingPartitions { consumer_id, generation, partitions, why, answer_within: limit };
        listener.wait("release", &names, limit, listener.releasing.send(message)).await;
    }
}
