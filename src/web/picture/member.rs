//! A member on the page, with its session, actors, streams and brokers.

use std::collections::BTreeMap;

use kafka_troupe_proto::health::Health;
use kafka_troupe_proto::schemas::group::v1::GroupView;
use kafka_troupe_proto::schemas::rebalance::v1::RebalanceTrace;
use kafka_troupe_proto::schemas::status::v1::{self as status, StatusSnapshot};
use serde::Serialize;

use super::{Observed, Rebalance};

/// A member: all of it when it is of this process, else what ZooKeeper shows.
#[derive(Serialize, Default, Clone, PartialEq, Debug)]
pub(in crate::web) struct Member {
    /// Whether it is of this process.
    pub(in crate::web) here: bool,
    /// From 0: its letter and colours, which are no other's while it is there.
    pub(in crate::web) mark: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::web) since: Option<i64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(in crate::web) subscription: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(in crate::web) error: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(in crate::web) phase: String,
    pub(in crate::web) generation: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::web) session: Option<Session>,
    pub(in crate::web) records: u64,
    pub(in crate::web) bytes: u64,
    /// Records delivered each second.
    pub(in crate::web) rate: f64,
    pub(in crate::web) commits: u64,
    pub(in crate::web) failed_commits: u64,
    pub(in crate::web) actors: BTreeMap<String, Actor>,
    pub(in crate::web) streams: BTreeMap<String, Stream>,
    pub(in crate::web) brokers: BTreeMap<String, Broker>,
}

#[derive(Serialize, Default, Clone, PartialEq, Debug)]
pub(in crate::web) struct Session {
    state: &'static str,
    /// In hexadecimal, as ZooKeeper's tools write it.
    id: String,
    timeout: u32,
    /// How long it may deliver without another heartbeat, when it was asked.
    lease: u64,
}

#[derive(Serialize, Default, Clone, PartialEq, Debug)]
pub(in crate::web) struct Actor {
    restarts: u64,
    handled: u64,
    /// How long it took to answer, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    answered: Option<u64>,
}

#[derive(Serialize, Default, Clone, PartialEq, Debug)]
pub(in crate::web) struct Stream {
    chunks: u32,
    bytes: u64,
    restarts: u64,
    /// Records that its failure policy has passed over.
    skipped: u64,
    dead_letters: u64,
}

#[derive(Serialize, Default, Clone, PartialEq, Debug)]
pub(in crate::web) struct Broker {
    address: String,
    connected: bool,
    partitions: u32,
    requests: u64,
    bytes: u64,
}

impl Member {
    pub(super) fn of(status: &StatusSnapshot) -> Self {
        let commits = status.commits.clone().unwrap_or_default();
        Self {
            here: true,
            phase: status.phase.clone(),
            generation: status.generation,
            session: status.session.as_ref().map(session),
            records: status.records,
            bytes: status.bytes,
            commits: commits.written,
            failed_commits: commits.failures,
            actors: status.actors.iter().map(actor).collect(),
            streams: status.streams.iter().map(stream).collect(),
            brokers: status.brokers.iter().map(broker).collect(),
            ..Self::default()
        }
    }
}

fn session(session: &status::Session) -> Session {
    let (timeout, lease) = (session.negotiated_timeout_ms, session.lease_remaining_ms);
    Session { state: session.state().word(), id: format!("{:#x}", session.id), timeout, lease }
}

fn actor(actor: &status::ActorStatus) -> (String, Actor) {
    let (restarts, handled, answered) = (actor.restarts, actor.handled, actor.answered_in_ms);
    (actor.name.clone(), Actor { restarts, handled, answered })
}

fn stream(stream: &status::Stream) -> (String, Stream) {
    let it = Stream {
        chunks: stream.queued_chunks,
        bytes: stream.queued_bytes,
        restarts: stream.handler_restarts,
        skipped: stream.skipped,
        dead_letters: stream.dead_letters,
    };
    (stream.name.clone(), it)
}

fn broker(broker: &status::Broker) -> (String, Broker) {
    let it = Broker {
        address: broker.address.clone(),
        connected: broker.connected,
        partitions: broker.partitions,
        requests: broker.requests,
        bytes: broker.bytes,
    };
    (format!("{}-{}", broker.id, broker.fetcher), it)
}

/// Members as ZooKeeper shows them.
pub(super) fn add_foreign(members: &mut BTreeMap<String, Member>, view: &GroupView) {
    for member in &view.members {
        let foreign = || Member {
            since: Some(member.since_ms),
            subscription: member.subscription.clone(),
            error: member.error.clone(),
            ..Member::default()
        };
        members.entry(member.id.clone()).or_insert_with(foreign);
    }
}

/// How a system is, in a word, and why.
pub(super) fn health(system: &Observed<'_>) -> (&'static str, Vec<String>) {
    let status = &system.observation.status;
    if system.ended.is_some() {
        return ("ended", Vec::new());
    }
    if system.silent {
        return ("silent", vec![format!("{} does not answer", status.consumer_id)]);
    }
    let health = Health::of(status);
    let word = health.as_str();
    (word, if let Health::Failing { why } = health { why } else { Vec::new() })
}

/// One rebalance of a member.
pub(super) fn rebalance(member: &str, trace: &RebalanceTrace) -> Rebalance {
    let waited = trace.waited_for.iter().map(|waited| {
        let partition = waited.partition.clone().unwrap_or_default();
        format!("{} {}, held by {}", partition.topic, partition.partition, waited.holder)
    });
    Rebalance {
        at: trace.started_ms,
        member: member.to_owned(),
        generation: trace.generation,
        took: trace.duration_ms,
        reasons: trace.reasons.clone(),
        kept: trace.kept,
        released: trace.released,
        claimed: trace.claimed,
        moved: trace.moved,
        waited: waited.collect(),
        outcome: trace.outcome().word(),
        error: trace.error.clone(),
    }
}
