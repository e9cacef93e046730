//! A group that is not there: told as a real one tells itself, with whatever is to be seen.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use kafka_troupe::StatusSnapshot;
use kafka_troupe::proto::schemas::group::v1::{GroupMember, GroupPartition, GroupView};
use kafka_troupe::proto::schemas::rebalance::v1::{Outcome, RebalanceTrace};
use kafka_troupe::proto::schemas::status::v1::{
    ActorStatus, Broker, OwnedPartition, Rebalances, Session, SessionState, Stream,
};
use kafka_troupe::web::{Observation, Source};

/// How many of what, and how they are called.
#[derive(Clone)]
pub struct Fixture {
    pub group: String,
    pub topics: Vec<(String, i32)>,
    /// The first is of this process.
    pub members: Vec<String>,
    pub rebalances: Vec<RebalanceTrace>,
    /// Anything else.
    pub change: fn(&mut StatusSnapshot, &mut GroupView),
}

impl Fixture {
    pub fn new(group: &str, topics: &[(&str, i32)], members: &[&str]) -> Self {
        Self {
            group: group.to_owned(),
            topics: topics.iter().map(|(topic, partitions)| ((*topic).to_owned(), *partitions)).collect(),
            members: members.iter().map(|member| (*member).to_owned()).collect(),
            rebalances: Vec::new(),
            change: |_, _| {},
        }
    }

    /// With a rebalance of the first member that took place so many seconds ago.
    pub fn rebalanced(mut self, seconds_ago: i64, reasons: &[&str]) -> Self {
        let generation = self.rebalances.len() as u64 + 1;
        self.rebalances.insert(
            0,
            RebalanceTrace {
                generation,
                started_ms: now_ms() - seconds_ago * 1000,
                duration_ms: 312,
                reasons: reasons.iter().map(|reason| (*reason).to_owned()).collect(),
                kept: 4,
                claimed: 4,
                outcome: Outcome::Stable.into(),
                ..RebalanceTrace::default()
            },
        );
        self
    }

    pub fn changed(mut self, change: fn(&mut StatusSnapshot, &mut GroupView)) -> Self {
        self.change = change;
        self
    }

    /// A system of it, which ends when `running` becomes false.
    pub fn source(self, running: &Arc<Mutex<bool>>) -> Source {
        let running = Arc::clone(running);
        let began = now_ms();
        Source::from_fn("zk1:2181,zk2:2181/kafka", move |_| {
            let is_running = *running.lock().unwrap_or_else(PoisonError::into_inner);
            let told = is_running.then(|| self.observe(began));
            async move { told }
        })
    }

    fn observe(&self, began: i64) -> Observation {
        let now = now_ms();
        let mut view = self.view(began, now);
        let mut status = self.status(&view, began, now);
        (self.change)(&mut status, &mut view);
        Observation::new(status, Some(view))
    }

    fn view(&self, began: i64, now: i64) -> GroupView {
        let member = |id: &String| GroupMember {
            id: id.clone(),
            is_own: *id == self.members[0],
            subscription: "orders (4)".to_owned(),
            since_ms: began - 600_000,
            ..GroupMember::default()
        };
        let mut partitions = Vec::new();
        for (topic, count) in &self.topics {
            for partition in 0..*count {
                let owner = &self.members[partition as usize * self.members.len() / (*count).max(1) as usize];
                let (end, lag) = position(partition, now - began);
                partitions.push(GroupPartition {
                    topic: topic.clone(),
                    partition,
                    owner_thread: Some(format!("{owner}-{}", partition % 4)),
                    owner_member: owner.clone(),
                    is_own: *owner == self.members[0],
                    since_ms: Some(began - 754_000 + i64::from(partition) * 1000),
                    committed_zookeeper: Some(end - lag),
                    log_end: Some(end),
                    lag: Some(lag),
                    exists: Some(true),
                    ..GroupPartition::default()
                });
            }
        }
        let members = self.members.iter().map(member).collect();
        GroupView { group: self.group.clone(), taken_ms: now, members, partitions, ..GroupView::default() }
    }

    fn status(&self, view: &GroupView, began: i64, now: i64) -> StatusSnapshot {
        let own = view.partitions.iter().filter(|partition| partition.is_own);
        let partitions: Vec<_> = own
            .map(|partition| OwnedPartition {
                topic: partition.topic.clone(),
                partition: partition.partition,
                thread: partition.owner_thread.clone().unwrap_or_default(),
                owned_since_ms: partition.since_ms.unwrap_or_default(),
                acked: partition.committed_zookeeper.unwrap_or_default() + 40,
                committed: partition.committed_zookeeper,
                high_watermark: partition.log_end,
                lag: partition.lag,
                ..OwnedPartition::default()
            })
            .collect();
        let records = 48_000 * (now - began).unsigned_abs() / 1000;
        let actor = |name: &str| ActorStatus {
            name: name.to_owned(),
            handled: records / 1700,
            answered_in_ms: Some(1),
            ..ActorStatus::default()
        };
        StatusSnapshot {
            group: self.group.clone(),
            consumer_id: self.members[0].clone(),
            session: Some(Session {
                state: SessionState::Connected.into(),
                id: 0x1_0000_0001_2345,
                negotiated_timeout_ms: 6000,
                lease_remaining_ms: 3_600,
            }),
            phase: "stable".to_owned(),
            generation: self.rebalances.len() as u64,
            streams: (0..4)
                .map(|stream| Stream {
                    name: format!("orders-{stream}"),
                    queued_chunks: 2,
                    queued_bytes: 240_000,
                    chunks: records / 900,
                    ..Stream::default()
                })
                .collect(),
            actors: [
                "zk-session",
                "rebalance-coordinator",
                "fetcher-manager",
                "offset-committer",
                "broker-fetcher-1-0",
                "stream-queue/orders-0",
                "stream-queue/orders-1",
            ]
            .map(actor)
            .to_vec(),
            brokers: vec![Broker {
                id: 1,
                address: "kafka1:9092".to_owned(),
                connected: true,
                partitions: partitions.len() as u32,
                requests: 4123,
                bytes: records * 88,
                ..Broker::default()
            }],
            partitions,
            rebalances: Some(Rebalances {
                count: self.rebalances.len() as u64,
                last: self.rebalances.clone(),
                ..Rebalances::default()
            }),
            records,
            bytes: records * 84,
            taken_ms: now,
            ..StatusSnapshot::default()
        }
    }
}

/// End and lag of a partition after so many milliseconds: every seventh falls behind.
fn position(partition: i32, ms: i64) -> (i64, i64) {
    let end = 100_000 + ms * 6;
    let lag = if partition % 7 == 3 { 900 + ms / 9 } else { (i64::from(partition) * 37 + ms / 500) % 90 };
    (end, lag)
}

pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
