//! One picture of the member, gathered from the actors by message.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use actix::MailboxError;
use actix::prelude::*;
use futures_util::future::join_all;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::peers::PeerFault;
use kafka_troupe_proto::health::Health;
use kafka_troupe_proto::schemas::rebalance::v1::Partition;
use kafka_troupe_proto::schemas::status::v1 as status;
use kafka_troupe_proto::schemas::status::v1::StatusSnapshot;
use tokio::time::{Instant, timeout};

use super::{ConsumerSystem, Metrics, Parts, children};
use crate::clock::{self, millis};
use crate::coordinator::GroupStatus;
use crate::fetcher_manager::FetchingStatus;
use crate::offset_committer::CommitterStatus;
use crate::registry::{NO_OFFSET, OwnedPartition, TopicRegistry};
use crate::stream_queue::{PassedOver, StreamStatus, Unreadable};
use crate::topic_metadata::TopicMetadataStatus;
use crate::zk_session::{SessionState, SessionStatus};
use crate::{
    coordinator, dead_letters, fetcher_manager, group_view, offset_committer, stream_queue, topic_metadata,
    zk_session,
};

impl Handler<Metrics> for ConsumerSystem {
    type Result = ResponseFuture<StatusSnapshot>;

    fn handle(&mut self, _: Metrics, _: &mut Self::Context) -> Self::Result {
        let added = self.describe_added();
        let parts = &self.parts;
        let session = ask(parts.session.send(zk_session::Describe));
        let topics = ask(parts.metadata.send(topic_metadata::Describe));
        let group = ask(parts.coordinator.send(coordinator::DescribeGroup));
        let committer = ask(parts.committer.send(offset_committer::Describe));
        let fetchers = ask(parts.fetchers.send(fetcher_manager::Describe));
        let letters = ask(parts.letters.send(dead_letters::Describe));
        let group_reader = ask(parts.group_reader.send(group_view::Describe));
        let streams =
            join_all(parts.streams.all().map(|stream| ask(stream.queue.send(stream_queue::Describe))));
        let mut snapshot = begin(parts);
        snapshot.stuck = self.stuck.describe();
        let is_leaving = self.stopping;
        let restarts: Vec<_> = self.lives.iter().map(|(child, life)| (child.clone(), life - 1)).collect();
        let registry = Arc::clone(&parts.registry);
        Box::pin(async move {
            let (session, topics, group, committer, fetchers, letters, group_reader, streams, added) = tokio::join!(
                session,
                topics,
                group,
                committer,
                fetchers,
                letters,
                group_reader,
                streams,
                added
            );
            let asked = Asked { session, topics, group, committer, fetchers, letters, group_reader, streams };
            snapshot.actors =
                restarts.into_iter().map(|(name, restarts)| asked.describe(name, restarts)).collect();
            asked.tell(&mut snapshot);
            describe_unwritten(&mut snapshot, &registry);
            (snapshot.records, snapshot.bytes) = registry.counted();
            snapshot.added = added;
            if is_leaving {
                // also when those who would say so have ended
                snapshot.phase = "leaving".to_owned();
            }
            snapshot.health = Some(Health::of(&snapshot).into());
            snapshot
        })
    }
}

/// What no actor needs to be asked for.
fn begin(parts: &Parts) -> StatusSnapshot {
    StatusSnapshot {
        group: parts.config.group_id.clone(),
        consumer_id: parts.consumer_id.as_str().to_owned(),
        client_id: parts.config.client_id.clone(),
        partitions: parts
            .registry
            .all()
            .iter()
            .map(|partition| describe(&parts.registry, partition))
            .collect(),
        halted: parts.registry.all().iter().flat_map(|partition| describe_halts(partition)).collect(),
        retried: parts.registry.all().iter().filter_map(|it| describe_retried(parts, it)).collect(),
        listener: parts.listener.as_ref().map(|listener| listener.describe()),
        taken_ms: millis(clock::now()),
        ..StatusSnapshot::default()
    }
}

/// How long an actor may take to describe itself.
pub(super) const DESCRIBE: Duration = Duration::from_secs(1);

/// What an actor says of itself, and how long it took to.
type Answer<T> = Option<(T, Duration)>;

/// An actor that does not answer in time is left out of the picture.
async fn ask<T>(answer: impl Future<Output = Result<T, MailboxError>>) -> Answer<T> {
    let asked = Instant::now();
    let answer = timeout(DESCRIBE, answer).await.ok()?.ok()?;
    Some((answer, asked.elapsed()))
}

/// What the actors say.
struct Asked {
    session: Answer<SessionStatus>,
    topics: Answer<TopicMetadataStatus>,
    group: Answer<GroupStatus>,
    committer: Answer<CommitterStatus>,
    fetchers: Answer<FetchingStatus>,
    letters: Answer<dead_letters::WriterStatus>,
    group_reader: Answer<u64>,
    streams: Vec<Answer<StreamStatus>>,
}

impl Asked {
    fn describe(&self, name: String, restarts: u64) -> status::ActorStatus {
        let answer = match name.as_str() {
            children::SESSION => self.session.as_ref().map(|(session, took)| (session.messages, took)),
            children::METADATA => self.topics.as_ref().map(|(topics, took)| (topics.messages, took)),
            children::FETCHERS => self.fetchers.as_ref().map(|(fetchers, took)| (fetchers.messages, took)),
            children::COORDINATOR => self.group.as_ref().map(|(group, took)| (group.messages, took)),
            children::COMMITTER => {
                self.committer.as_ref().map(|(committer, took)| (committer.messages, took))
            }
            children::LETTERS => self.letters.as_ref().map(|(writer, took)| (writer.messages, took)),
            children::GROUP_READER => self.group_reader.as_ref().map(|(messages, took)| (*messages, took)),
            stream => {
                let is_its =
                    |status: &StreamStatus| stream.strip_prefix(children::STREAM) == Some(&status.name);
                let its = self.streams.iter().flatten().find(|(status, _)| is_its(status));
                its.map(|(status, took)| (status.messages, took))
            }
        };
        let handled = answer.map_or(0, |(messages, _)| messages);
        let answered_in_ms = answer.map(|(_, took)| as_millis(*took));
        status::ActorStatus { name, restarts, handled, answered_in_ms }
    }

    /// Puts it in the picture.
    fn tell(&self, snapshot: &mut StatusSnapshot) {
        snapshot.topic_metadata = self.topics.as_ref().map(|(topics, _)| describe_topics(topics));
        snapshot.session = self.session.as_ref().map(|(session, _)| describe_session(session));
        if let Some((group, _)) = &self.group {
            describe_group(snapshot, group);
        }
        if let Some((fetching, _)) = &self.fetchers {
            describe_fetching(snapshot, fetching);
        }
        snapshot.commits =
            self.committer.as_ref().map(|(committer, _)| describe_commits(committer, &snapshot.partitions));
        snapshot.dead_letters = self.letters.as_ref().map(|(writer, _)| writer.letters.clone());
        snapshot.streams = self.streams.iter().flatten().map(|(stream, _)| describe_stream(stream)).collect();
    }
}

fn describe_fetching(snapshot: &mut StatusSnapshot, fetching: &FetchingStatus) {
    let actor = |broker: &fetcher_manager::BrokerStatus| status::ActorStatus {
        name: broker.name.clone(),
        restarts: broker.restarts,
        handled: broker.requests,
        answered_in_ms: None,
    };
    snapshot.actors.extend(fetching.brokers.iter().map(actor));
    snapshot.brokers = fetching.brokers.iter().map(describe_broker).collect();
    let waiting = |waiting: &fetcher_manager::WaitingPartition| status::WaitingPartition {
        topic: waiting.partition.topic.to_string(),
        partition: waiting.partition.partition,
        failed: waiting.failed,
        why: waiting.why.clone().unwrap_or_default(),
    };
    snapshot.waiting = fetching.waiting.iter().map(waiting).collect();
}

fn describe_broker(broker: &fetcher_manager::BrokerStatus) -> status::Broker {
    status::Broker {
        id: broker.broker,
        address: broker.address.clone(),
        connected: broker.connected,
        partitions: u32::try_from(broker.partitions).unwrap_or(u32::MAX),
        requests: broker.requests,
        bytes: broker.bytes,
        last_error: broker.last_error.clone().unwrap_or_default(),
        fetcher: broker.fetcher,
        errors: broker.errors,
        waited_ms: as_millis(broker.waited),
    }
}

fn describe_topics(topics: &TopicMetadataStatus) -> status::TopicMetadata {
    status::TopicMetadata {
        polls: topics.polls,
        age_ms: topics.age.map(as_millis),
        last_error: topics.last_error.clone().unwrap_or_default(),
    }
}

/// What was given up with a commit that failed is the next owner's.
fn describe_commits(committer: &CommitterStatus, owned: &[status::OwnedPartition]) -> status::Commits {
    let is_owned = |tp: &TopicPartition| {
        owned.iter().any(|owned| owned.partition == tp.partition && *owned.topic == *tp.topic)
    };
    let failing = committer.failing.iter().filter(|failing| is_owned(&failing.partition));
    status::Commits {
        written: committer.commits,
        to_zookeeper: committer.to_zookeeper,
        to_kafka: committer.to_kafka,
        coordinator: committer.coordinator.clone().unwrap_or_default(),
        failures: committer.failures,
        last_error: committer.last_error.clone().unwrap_or_default(),
        failing: failing.map(describe_failing).collect(),
    }
}

fn describe_failing(failing: &offset_committer::FailingCommit) -> status::FailingCommit {
    status::FailingCommit {
        topic: failing.partition.topic.to_string(),
        partition: failing.partition.partition,
        why: failing.why.clone(),
        since_ms: millis(failing.since),
        attempts: failing.attempts,
    }
}

fn describe(registry: &TopicRegistry, partition: &OwnedPartition) -> status::OwnedPartition {
    let (records, bytes) = registry.counted_of(partition);
    let unfetched = partition.unfetched();
    let known = |offset: i64| Some(offset).filter(|offset| *offset != NO_OFFSET);
    status::OwnedPartition {
        topic: partition.topic_partition.topic.to_string(),
        partition: partition.topic_partition.partition,
        thread: partition.thread.to_string(),
        owned_since_ms: millis(partition.owned_since),
        fetched: partition.fetched(),
        delivered: partition.delivered(),
        acked: partition.acked(),
        committed: known(partition.committed()),
        high_watermark: known(partition.high_watermark()),
        lag: partition.lag(),
        records,
        bytes,
        unfetched_since_ms: unfetched.as_ref().map_or(0, |(since, _)| millis(*since)),
        unfetched: unfetched.map_or_else(String::new, |(_, why)| why),
        committed_ms: partition.committed_ms(),
        halted: partition.halts().iter().map(|(reason, _)| reason.as_str().to_owned()).collect(),
    }
}

fn describe_halts(partition: &OwnedPartition) -> Vec<status::HaltedPartition> {
    let halts = partition.halts().into_iter();
    halts
        .map(|(reason, halt)| status::HaltedPartition {
            topic: partition.topic_partition.topic.to_string(),
            partition: partition.topic_partition.partition,
            reason: reason.as_str().to_owned(),
            offset: halt.offset.unwrap_or_else(|| partition.acked()),
            since_ms: millis(halt.since),
            why: halt.why,
            attempts: halt.attempts,
        })
        .collect()
}

fn describe_retried(parts: &Parts, partition: &OwnedPartition) -> Option<status::RetriedRecord> {
    let limit = parts.config.handler_stuck;
    partition.retried().map(|retried| status::RetriedRecord {
        topic: partition.topic_partition.topic.to_string(),
        partition: partition.topic_partition.partition,
        offset: retried.offset,
        attempts: retried.attempts,
        since_ms: millis(retried.since),
        why: retried.why,
        is_stuck: !limit.is_zero() && retried.began.elapsed() >= limit,
    })
}

/// Also while the writer does not answer.
fn describe_unwritten(snapshot: &mut StatusSnapshot, registry: &TopicRegistry) {
    let unwritten: Vec<_> = registry.all().iter().flat_map(|partition| unwritten(partition)).collect();
    if !unwritten.is_empty() {
        snapshot.dead_letters.get_or_insert_default().unwritten = unwritten;
    }
}

fn unwritten(partition: &OwnedPartition) -> Vec<status::UnwrittenLetter> {
    let letters = partition.unwritten_letters().into_iter();
    letters
        .map(|(offset, letter)| status::UnwrittenLetter {
            topic: partition.topic_partition.topic.to_string(),
            partition: partition.topic_partition.partition,
            offset,
            dead_letter_topic: letter.topic.to_string(),
            since_ms: millis(letter.since),
            why: letter.why.unwrap_or_default(),
            lasting: letter.is_lasting,
        })
        .collect()
}

fn describe_session(session: &SessionStatus) -> status::Session {
    let state = match session.state {
        SessionState::Connecting => status::SessionState::Connecting,
        SessionState::Connected => status::SessionState::Connected,
        SessionState::Suspended => status::SessionState::Suspended,
        SessionState::Failed | SessionState::Closed => status::SessionState::Expired,
    };
    let timeout = session.session_timeout.unwrap_or_default().as_millis();
    status::Session {
        state: state.into(),
        id: session.id.unwrap_or_default(),
        negotiated_timeout_ms: u32::try_from(timeout).unwrap_or(u32::MAX),
        lease_remaining_ms: as_millis(session.lease_remaining),
    }
}

fn describe_group(snapshot: &mut StatusSnapshot, group: &GroupStatus) {
    snapshot.phase = format!("{:?}", group.phase).to_lowercase();
    snapshot.generation = group.generation.0;
    snapshot.failing = group.failing.clone().unwrap_or_default();
    snapshot.peers = group.peers.iter().map(describe_peer).collect();
    let last = group.traces.iter().rev().cloned().collect();
    snapshot.rebalances =
        Some(status::Rebalances { count: group.rebalances, last, total_ms: as_millis(group.took) });
}

fn describe_peer(fault: &PeerFault) -> status::PeerFault {
    let partition = |tp: &TopicPartition| Partition { topic: tp.topic.to_string(), partition: tp.partition };
    status::PeerFault {
        member: fault.member.clone(),
        partitions: fault.partitions.iter().map(partition).collect(),
        why: fault.to_string(),
        problem: fault.problem.as_str().to_owned(),
    }
}

fn describe_stream(stream: &StreamStatus) -> status::Stream {
    status::Stream {
        name: stream.name.clone(),
        queued_chunks: u32::try_from(stream.queued_chunks).unwrap_or(u32::MAX),
        in_flight: u32::try_from(stream.in_flight).unwrap_or(u32::MAX),
        queued_bytes: stream.queued_bytes as u64,
        chunks: stream.chunks,
        handler_restarts: stream.handler_restarts,
        last_error: stream.last_error.clone().unwrap_or_default(),
        unreadable: stream.unreadable.iter().map(describe_unreadable).collect(),
        skipped: stream.skipped,
        dead_letters: stream.dead_letters,
        stopped: stream.stopped.clone().unwrap_or_default(),
        handler_ending: stream.handler_ending.as_ref().map(|ending| status::HandlerEnding {
            since_ms: millis(ending.since),
            times: ending.times,
            why: ending.why.clone(),
        }),
        last_skipped: stream.last_skipped.as_ref().map(describe_passed_over),
        last_dead_letter: stream.last_dead_letter.as_ref().map(describe_passed_over),
    }
}

fn describe_passed_over(record: &PassedOver) -> status::PassedOverRecord {
    status::PassedOverRecord {
        topic: record.partition.topic.to_string(),
        partition: record.partition.partition,
        offset: record.offset,
        why: record.why.clone(),
        attempts: record.attempts,
        at_ms: millis(record.at),
    }
}

fn describe_unreadable(unreadable: &Unreadable) -> status::UnreadablePartition {
    let error = &unreadable.error;
    status::UnreadablePartition {
        topic: error.topic.clone(),
        partition: error.partition,
        offset: error.offset,
        resume_at: error.resume_at,
        why: error.why.clone(),
        since_ms: millis(unreadable.since),
        attempts: unreadable.attempts,
    }
}

fn as_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
