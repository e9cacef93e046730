//! A rebalance listener that writes down what it is told, and answers as it was told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actix::prelude::*;
use kafka_troupe::proto::group::assignor::Plan;
use kafka_troupe::{
    BeforeReleasingPartitions, BeforeStartingPartitions, ConsumerHandle, OwnershipLost, ReleaseReason,
    TopicPartition,
};
use tokio::sync::Semaphore;

use super::system::now_ms;

/// What a listener was told.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    Starting,
    Releasing(ReleaseReason),
    Lost(String),
}

/// How it answers.
pub enum Answer {
    AtOnce,
    /// With the next permit.
    When(Arc<Semaphore>),
    AfterCommit(ConsumerHandle),
    Never,
    Panic,
}

#[derive(Clone, Debug)]
pub struct Event {
    pub member: String,
    pub what: What,
    /// By partition number; none where a message has none.
    pub positions: BTreeMap<i32, Option<i64>>,
    pub assignment: Arc<Plan>,
    /// Epoch milliseconds.
    pub told: i64,
    answered: Option<i64>,
}

/// In the order in which they came.
#[derive(Clone, Default)]
pub struct Events(Arc<Mutex<Vec<Event>>>);

impl Events {
    fn locked(&self) -> MutexGuard<'_, Vec<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn all(&self) -> Vec<Event> {
        self.locked().clone()
    }

    /// The partitions of some events, as often as they were named.
    pub fn partitions_of(&self, which: impl Fn(&What) -> bool) -> Vec<i32> {
        let all = self.all();
        all.iter()
            .filter(|event| which(&event.what))
            .flat_map(|event| event.positions.keys().copied())
            .collect()
    }

    /// When an event was answered.
    pub fn answered(&self, event: &Event) -> i64 {
        let all = self.all();
        let same = |it: &&Event| it.told == event.told && it.positions == event.positions;
        all.iter().find(same).and_then(|event| event.answered).expect("it was answered")
    }
}

pub struct Listener {
    events: Events,
    answer: Box<dyn Fn(&What) -> Answer + Send>,
}

impl Listener {
    /// Starts one where the caller runs.
    pub fn start(events: &Events, answer: impl Fn(&What) -> Answer + Send + 'static) -> Addr<Self> {
        Actor::start(Self { events: events.clone(), answer: Box::new(answer) })
    }

    fn told(
        &self,
        member: String,
        what: What,
        partitions: BTreeMap<TopicPartition, Option<i64>>,
        assignment: Arc<Plan>,
    ) -> ResponseFuture<()> {
        let answer = (self.answer)(&what);
        let positions = partitions.into_iter().map(|(tp, position)| (tp.partition, position)).collect();
        let index = {
            let mut events = self.events.locked();
            events.push(Event { member, what, positions, assignment, told: now_ms(), answered: None });
            events.len() - 1
        };
        assert!(!matches!(answer, Answer::Panic), "a listener's panic, as it should be");
        let events = self.events.clone();
        Box::pin(async move {
            match answer {
                Answer::AtOnce | Answer::Panic => {}
                Answer::When(gate) => gate.acquire().await.expect("it is never closed").forget(),
                Answer::AfterCommit(member) => {
                    member.commit().await.unwrap().all().expect("it can be committed");
                }
                Answer::Never => std::future::pending().await,
            }
            events.locked()[index].answered = Some(now_ms());
        })
    }
}

impl Actor for Listener {
    type Context = Context<Self>;
}

impl Handler<BeforeStartingPartitions> for Listener {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, it: BeforeStartingPartitions, _: &mut Context<Self>) -> Self::Result {
        self.told(it.consumer_id, What::Starting, it.partitions, it.assignment)
    }
}

impl Handler<BeforeReleasingPartitions> for Listener {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, it: BeforeReleasingPartitions, _: &mut Context<Self>) -> Self::Result {
        self.told(it.consumer_id, What::Releasing(it.why), it.partitions, Arc::default())
    }
}

impl Handler<OwnershipLost> for Listener {
    type Result = ();

    fn handle(&mut self, it: OwnershipLost, _: &mut Context<Self>) {
        let partitions: BTreeSet<TopicPartition> = it.partitions;
        let positions = partitions.into_iter().map(|tp| (tp, None)).collect();
        drop(self.told(it.consumer_id, What::Lost(it.why), positions, Arc::default()));
    }
}
