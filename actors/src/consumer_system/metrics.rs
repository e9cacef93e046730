//! One picture of the member, gathered from the actors by message.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use actix::MailboxError;
use actix::prelude::*;
use futures_util::future::join_all;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::peers::PeerFault;
use kafka_troupe_proto::schemas::rebalance::v1::Partition;
use kafka_troupe_proto::schemas::status::v1 as status;
use kafka_troupe_proto::schemas::status::v1::StatusSnapshot;
use tokio::time::timeout;

use super::children::DESCRIBE;
use super::{ConsumerSystem, Metrics, Parts};
use crate::coordinator::GroupStatus;
use crate::registry::{NO_OFFSET, OwnedPartition};
use crate::stream_queue::{StreamStatus, Unreadable};
use crate::topic_metadata::TopicMetadataStatus;
use crate::zk_session::{SessionState, SessionStatus};
use crate::{coordinator, fetcher_manager, offset_committer, stream_queue, topic_metadata, zk_session};

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
        let streams =
            join_all(parts.streams.all().map(|stream| ask(stream.queue.send(stream_queue::Describe))));
        let mut snapshot = begin(parts);
        let restarts: Vec<_> = self.lives.iter().map(|(child, life)| (child.clone(), life - 1)).collect();
        let registry = Arc::clone(&parts.registry);
        Box::pin(async move {
            let (session, topics, group, committer, fetchers, streams, added) =
                tokio::join!(session, topics, group, committer, fetchers, streams, added);
            snapshot.topic_metadata = topics.as_ref().map(describe_topics);
            snapshot.session = session.as_ref().map(describe_session);
            if let Some(group) = &group {
                describe_group(&mut snapshot, group);
            }
            let streams: Vec<_> = streams.into_iter().flatten().collect();
            let handled = Handled { session, topics, group, committer, fetchers, streams: &streams };
            snapshot.actors =
                restarts.into_iter().map(|(name, restarts)| handled.describe(name, restarts)).collect();
            if let Some(fetching) = &handled.fetchers {
                describe_fetching(&mut snapshot, fetching);
            }
            snapshot.commits = handled.committer.as_ref().map(describe_commits);
            snapshot.streams = streams.iter().map(describe_stream).collect();
            let (records, bytes) = registry.counted();
            (snapshot.records, snapshot.bytes) = (records, bytes);
            snapshot.added = added;
            snapshot
        })
    }
}

/// What no actor needs to be asked for.
fn begin(parts: &Parts) -> StatusSnapshot {
    StatusSnapshot {
        group: parts.config.group_id.clone(),
        consumer_id: parts.consumer_id.as_str().to_owned(),
        partitions: parts.registry.all().iter().map(|partition| describe(partition)).collect(),
        listener: parts.listener.as_ref().map(|listener| listener.describe()),
        taken_ms: millis(SystemTime::now()),
        ..StatusSnapshot::default()
    }
}

/// An actor that does not answer in time is left out of the picture.
async fn ask<T>(answer: impl Future<Output = Result<T, MailboxError>>) -> Option<T> {
    timeout(DESCRIBE, answer).await.ok()?.ok()
}

/// Messages handled, by actor.
struct Handled<'a> {
    session: Option<SessionStatus>,
    topics: Option<TopicMetadataStatus>,
    group: Option<GroupStatus>,
    committer: Option<offset_committer::CommitterStatus>,
    fetchers: Option<fetcher_manager::FetchingStatus>,
    streams: &'a [StreamStatus],
}

impl Handled<'_> {
    fn describe(&self, name: String, restarts: u64) -> status::ActorStatus {
        let handled = match name.as_str() {
            "zk-session" => self.session.as_ref().map(|session| session.messages),
            "topic-metadata" => self.topics.as_ref().map(|topics| topics.messages),
            "fetcher-manager" => self.fetchers.as_ref().map(|fetchers| fetchers.messages),
            "rebalance-coordinator" => self.group.as_ref().map(|group| group.messages),
            "offset-committer" => self.committer.as_ref().map(|committer| committer.messages),
            stream => {
                let its = |status: &&StreamStatus| stream.strip_prefix("stream-queue/") == Some(&status.name);
                self.streams.iter().find(its).map(|status| status.messages)
            }
        };
        status::ActorStatus { name, restarts, handled: handled.unwrap_or_default() }
    }
}

fn describe_fetching(snapshot: &mut StatusSnapshot, fetching: &fetcher_manager::FetchingStatus) {
    let actor = |broker: &fetcher_manager::BrokerStatus| status::ActorStatus {
        name: broker.name.clone(),
        restarts: broker.restarts,
        handled: broker.requests,
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
    }
}

fn describe_topics(topics: &TopicMetadataStatus) -> status::TopicMetadata {
    let millis = |age: Duration| u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    status::TopicMetadata {
        polls: topics.polls,
        age_ms: topics.age.map(millis),
        last_error: topics.last_error.clone().unwrap_or_default(),
    }
}

fn describe_commits(committer: &offset_committer::CommitterStatus) -> status::Commits {
    status::Commits {
        written: committer.commits,
        to_zookeeper: committer.to_zookeeper,
        to_kafka: committer.to_kafka,
        coordinator: committer.coordinator.clone().unwrap_or_default(),
        failures: committer.failures,
        last_error: committer.last_error.clone().unwrap_or_default(),
    }
}

fn describe(partition: &OwnedPartition) -> status::OwnedPartition {
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
    }
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
        lease_remaining_ms: u64::try_from(session.lease_remaining.as_millis()).unwrap_or(u64::MAX),
    }
}

fn describe_group(snapshot: &mut StatusSnapshot, group: &GroupStatus) {
    snapshot.phase = format!("{:?}", group.phase).to_lowercase();
    snapshot.generation = group.generation.0;
    snapshot.failing = group.failing.clone().unwrap_or_default();
    snapshot.peers = group.peers.iter().map(describe_peer).collect();
    let last = group.traces.iter().rev().cloned().collect();
    snapshot.rebalances = Some(status::Rebalances { count: group.rebalances, last });
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
        queued_bytes: stream.queued_bytes as u64,
        chunks: stream.chunks,
        handler_restarts: stream.handler_restarts,
        last_error: stream.last_error.clone().unwrap_or_default(),
        unreadable: stream.unreadable.iter().map(describe_unreadable).collect(),
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

fn millis(time: SystemTime) -> i64 {
    let millis = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    i64::try_from(millis).unwrap_or(i64::MAX)
}
