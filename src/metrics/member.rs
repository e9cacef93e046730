//! What of a snapshot becomes which series.

use std::collections::BTreeMap;

use super::emitter::Emitter;
use crate::StatusSnapshot;
use crate::proto::schemas::status::v1::{
    ActorStatus, Broker, Commits, DeadLetters, HealthState, OwnedPartition, RebalanceListener, Rebalances,
    Session, SessionState, Stream, TopicMetadata,
};

const HEALTH: [HealthState; 4] =
    [HealthState::Healthy, HealthState::Rebalancing, HealthState::Suspended, HealthState::Failing];
const SESSION: [SessionState; 4] =
    [SessionState::Connecting, SessionState::Connected, SessionState::Suspended, SessionState::Expired];

/// Without the added members.
pub(super) fn emit(member: &StatusSnapshot, to: &Emitter) {
    let info = [("client_id", &*member.client_id), ("version", env!("CARGO_PKG_VERSION"))];
    to.gauge("troupe_member_info", &info, 1.0);
    to.counter("troupe_records_total", &[], member.records);
    to.counter("troupe_record_bytes_total", &[], member.bytes);
    to.gauge("troupe_waiting_partitions", &[], member.waiting.len() as f64);
    health(member, to);
    member.session.iter().for_each(|session| emit_session(session, to));
    member.rebalances.iter().for_each(|rebalances| emit_rebalances(rebalances, to));
    owned(member, to);
    for partition in &member.partitions {
        emit_partition(partition, member, to);
    }
    halted(member, to);
    member.streams.iter().for_each(|stream| emit_stream(stream, to));
    member.dead_letters.iter().for_each(|letters| emit_dead_letters(letters, to));
    member.commits.iter().for_each(|commits| emit_commits(commits, to));
    member.brokers.iter().for_each(|broker| emit_broker(broker, to));
    member.actors.iter().for_each(|actor| emit_actor(actor, to));
    member.listener.iter().for_each(|listener| emit_listener(listener, to));
    member.topic_metadata.iter().for_each(|topics| emit_topic_metadata(topics, to));
    for peer in &member.peers {
        let labels = [("member", &*peer.member), ("problem", &peer.problem)];
        to.gauge("troupe_peer_fault_partitions", &labels, peer.partitions.len() as f64);
    }
}

/// One series for each state, so that an alert on one of them finds it before it has ever been so.
fn health(member: &StatusSnapshot, to: &Emitter) {
    let Some(health) = &member.health else { return };
    for state in HEALTH {
        to.gauge("troupe_health", &[("state", state.word())], one_if(health.state() == state));
    }
}

fn emit_session(session: &Session, to: &Emitter) {
    for state in SESSION {
        to.gauge("troupe_session_state", &[("state", state.word())], one_if(session.state() == state));
    }
    to.gauge("troupe_session_timeout_seconds", &[], f64::from(session.negotiated_timeout_ms) / 1000.0);
    to.gauge("troupe_session_lease_seconds", &[], seconds(session.lease_remaining_ms));
}

fn emit_rebalances(rebalances: &Rebalances, to: &Emitter) {
    to.counter("troupe_rebalances_total", &[], rebalances.count);
    to.gauge("troupe_rebalance_spent_seconds", &[], seconds(rebalances.total_ms));
    if let Some(last) = rebalances.last.first() {
        to.gauge("troupe_last_rebalance_seconds", &[], seconds(last.duration_ms));
        to.gauge("troupe_last_rebalance_timestamp_seconds", &[], timestamp(last.started_ms));
    }
}

fn owned(member: &StatusSnapshot, to: &Emitter) {
    let mut topics = BTreeMap::<_, u32>::new();
    for partition in &member.partitions {
        *topics.entry(&*partition.topic).or_default() += 1;
    }
    for (topic, partitions) in topics {
        to.gauge("troupe_owned_partitions", &[("topic", topic)], partitions.into());
    }
}

fn emit_partition(partition: &OwnedPartition, member: &StatusSnapshot, to: &Emitter) {
    let number = partition.partition.to_string();
    let labels = [("topic", &*partition.topic), ("partition", &number)];
    let gauge = |name, value: Option<f64>| {
        if let Some(value) = value {
            to.gauge(name, &labels, value);
        }
    };
    let end = partition.high_watermark;
    let fetch_lag = end.map(|end| (end - partition.fetched).max(0)).filter(|_| partition.fetched >= 0);
    gauge("troupe_partition_lag_records", partition.lag.map(number_of));
    gauge("troupe_partition_fetch_lag_records", fetch_lag.map(number_of));
    gauge("troupe_partition_fetched_offset", offset(partition.fetched));
    gauge("troupe_partition_delivered_offset", offset(partition.delivered));
    gauge("troupe_partition_acked_offset", offset(partition.acked));
    gauge("troupe_partition_committed_offset", partition.committed.and_then(offset));
    gauge("troupe_partition_end_offset", end.and_then(offset));
    gauge("troupe_partition_owned_timestamp_seconds", Some(timestamp(partition.owned_since_ms)));
    gauge("troupe_partition_commit_timestamp_seconds", partition.committed_ms.map(timestamp));
    let since = |since_ms: i64| seconds(u64::try_from(member.taken_ms - since_ms).unwrap_or(0));
    let is_unfetched = !partition.unfetched.is_empty();
    let unfetched = if is_unfetched { since(partition.unfetched_since_ms) } else { 0.0 };
    gauge("troupe_partition_unfetched_seconds", Some(unfetched));
    let mut failing = member.commits.iter().flat_map(|commits| &commits.failing);
    let failing = failing.find(|it| it.topic == partition.topic && it.partition == partition.partition);
    let uncommitted = failing.map_or(0.0, |failing| since(failing.since_ms));
    gauge("troupe_partition_commit_failing_seconds", Some(uncommitted));
    let mut stuck = member.stuck.iter();
    let stuck = stuck.find(|it| it.topic == partition.topic && it.partition == partition.partition);
    gauge("troupe_partition_stuck_seconds", Some(stuck.map_or(0.0, |stuck| since(stuck.since_ms))));
    to.counter("troupe_partition_records_total", &labels, partition.records);
    to.counter("troupe_partition_record_bytes_total", &labels, partition.bytes);
}

fn halted(member: &StatusSnapshot, to: &Emitter) {
    for halted in &member.halted {
        let number = halted.partition.to_string();
        let labels = [("topic", &*halted.topic), ("partition", &number), ("reason", &halted.reason)];
        to.gauge("troupe_partition_halted", &labels, 1.0);
    }
}

fn emit_stream(stream: &Stream, to: &Emitter) {
    let labels = [("stream", &*stream.name)];
    to.gauge("troupe_stream_queued_chunks", &labels, stream.queued_chunks.into());
    to.gauge("troupe_stream_queued_bytes", &labels, stream.queued_bytes as f64);
    to.gauge("troupe_stream_in_flight", &labels, stream.in_flight.into());
    to.counter("troupe_stream_chunks_total", &labels, stream.chunks);
    to.counter("troupe_stream_handler_restarts_total", &labels, stream.handler_restarts);
    to.counter("troupe_stream_skipped_total", &labels, stream.skipped);
    to.counter("troupe_stream_dead_letters_total", &labels, stream.dead_letters);
    to.gauge("troupe_stream_stopped", &labels, one_if(!stream.stopped.is_empty()));
}

fn emit_dead_letters(letters: &DeadLetters, to: &Emitter) {
    to.counter("troupe_dead_letters_written_total", &[], letters.written);
    to.counter("troupe_dead_letter_failures_total", &[], letters.failures);
}

fn emit_commits(commits: &Commits, to: &Emitter) {
    to.counter("troupe_commits_total", &[("store", "zookeeper")], commits.to_zookeeper);
    to.counter("troupe_commits_total", &[("store", "kafka")], commits.to_kafka);
    to.counter("troupe_commit_failures_total", &[], commits.failures);
}

fn emit_broker(broker: &Broker, to: &Emitter) {
    let (id, fetcher) = (broker.id.to_string(), broker.fetcher.to_string());
    let labels = [("broker", &*id), ("fetcher", &fetcher), ("address", &broker.address)];
    to.counter("troupe_fetch_requests_total", &labels, broker.requests);
    to.counter("troupe_fetch_errors_total", &labels, broker.errors);
    to.counter("troupe_fetch_bytes_total", &labels, broker.bytes);
    to.gauge("troupe_fetch_spent_seconds", &labels, seconds(broker.waited_ms));
    to.gauge("troupe_fetch_connected", &labels, one_if(broker.connected));
    to.gauge("troupe_fetch_partitions", &labels, broker.partitions.into());
}

fn emit_actor(actor: &ActorStatus, to: &Emitter) {
    let labels = [("actor", &*actor.name)];
    to.counter("troupe_actor_messages_total", &labels, actor.handled);
    to.counter("troupe_actor_restarts_total", &labels, actor.restarts);
    if let Some(answered_in_ms) = actor.answered_in_ms {
        to.gauge("troupe_actor_answer_seconds", &labels, seconds(answered_in_ms));
    }
}

fn emit_listener(listener: &RebalanceListener, to: &Emitter) {
    to.counter("troupe_listener_asked_total", &[], listener.asked);
    to.counter("troupe_listener_late_total", &[], listener.late);
    to.counter("troupe_listener_failed_total", &[], listener.failed);
}

fn emit_topic_metadata(topics: &TopicMetadata, to: &Emitter) {
    to.counter("troupe_topic_metadata_polls_total", &[], topics.polls);
    if let Some(age_ms) = topics.age_ms {
        to.gauge("troupe_topic_metadata_age_seconds", &[], seconds(age_ms));
    }
}

fn one_if(it_is: bool) -> f64 {
    f64::from(u8::from(it_is))
}

/// Exact up to 2^53, as all of Prometheus.
fn number_of(number: i64) -> f64 {
    number as f64
}

/// None for a position that is not known.
fn offset(offset: i64) -> Option<f64> {
    (offset >= 0).then(|| number_of(offset))
}

fn seconds(millis: u64) -> f64 {
    millis as f64 / 1000.0
}

fn timestamp(epoch_ms: i64) -> f64 {
    number_of(epoch_ms) / 1000.0
}
