//! Leaving the group, in order: delivery stops, offsets are flushed, owner nodes go, the session closes, threads end.

use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use futures_util::future::join_all;
use kafka_troupe_proto::config::{ConsumerConfig, OffsetsStorage};
use tokio::time::{Instant, timeout};

use super::life::{Life, ShutdownOutcome};
use super::metrics::DESCRIBE;
use super::{ConsumerHandle, ConsumerSystem, Parts};
use crate::registry::{NO_OFFSET, OwnedPartition};
use crate::zk_session::SessionState;
use crate::{
    coordinator, dead_letters, fetcher_manager, group_view, offset_committer, stream_queue, topic_metadata,
    zk_session,
};

/// What a step may take beyond the time that handlers get to finish.
const STEP: Duration = Duration::from_secs(5);
/// How long the session's last words may take.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Leave the group: stop, flush, release, close the session. Answered when that has begun; a second one may bring the
/// end forward, and changes nothing else. [`ConsumerHandle::shutdown`] waits for the end.
#[derive(Message, Clone, Debug)]
#[rtype(result = "()")]
pub struct Shutdown {
    /// As [`ConsumerHandle::shutdown_within`]; none: as long as its steps need.
    pub within: Option<Duration>,
    /// For the log.
    pub why: &'static str,
}

/// Why, where the application says no more.
const ASKED: &str = "the application";

impl Handler<Shutdown> for ConsumerSystem {
    type Result = ();

    fn handle(&mut self, shutdown: Shutdown, ctx: &mut Self::Context) {
        if !std::mem::replace(&mut self.stopping, true) {
            let leaving = self.leave(shutdown);
            ctx.spawn(leaving);
        } else if let Some(within) = shutdown.within {
            self.hurry(within, shutdown.why);
        }
    }
}

impl ConsumerSystem {
    /// What is under way is given less time, where this is less.
    fn hurry(&self, within: Duration, why: &'static str) {
        if end_within(self.alive.life(), Instant::now(), within) {
            self.parts.coordinator.do_send(coordinator::Shutdown { drain: within / 2 });
            let shutdown = Shutdown { within: Some(within), why };
            self.added.iter().for_each(|member| member.system.do_send(shutdown.clone()));
        }
    }

    fn leave(&mut self, Shutdown { within, why }: Shutdown) -> ResponseActFuture<Self, ()> {
        tracing::info!(why, ?within, "leaving the group");
        // they are kept: what their handlers have in hand may still be committed by this one's handle
        let added = self.added.clone();
        let others = async move {
            join_all(added.iter().map(|member| async move { member.leave(within, why).await })).await
        };
        let own = leave_group(Arc::clone(&self.parts), within, Arc::clone(self.alive.life()));
        let all = async move { tokio::join!(own, others) };
        Box::pin(all.into_actor(self).map(|((), others), this, ctx| {
            for what in others.into_iter().flat_map(|outcome| outcome.cut_off) {
                this.alive.life().cut_off(what);
            }
            this.alive.left();
            ctx.stop();
        }))
    }
}

/// All has to be over then, unless it has to be sooner already; whether that is a change.
fn end_within(life: &Life, begun: Instant, all: Duration) -> bool {
    let closed = begun + all;
    life.released.bring_forward(closed - LAST_WORDS.min(all / 4));
    life.closed.bring_forward(closed)
}

/// What all steps may take. Without a session nothing can be released, so the wait for one is bounded as at the start:
/// by two backoffs and `zookeeper.connection.timeout.ms`.
fn needed(config: &ConsumerConfig, is_connected: bool) -> Duration {
    if !is_connected {
        return config.drain_timeout.min(config.rebalance_backoff * 2) + config.zookeeper_connection_timeout;
    }
    let in_flight = match config.offsets_storage {
        // nothing fences them, so answers are waited for: that of the commit in flight, and of the last
        OffsetsStorage::Kafka => config.offsets_channel_socket_timeout * 2,
        _ => Duration::ZERO,
    };
    config.drain_timeout + in_flight + STEP + LAST_WORDS
}

/// An actor that is gone or hangs holds nothing up: closing the session releases what it left.
async fn leave_group(parts: Arc<Parts>, within: Option<Duration>, life: Arc<Life>) {
    let begun = Instant::now();
    let status = timeout(DESCRIBE, parts.session.send(zk_session::Describe)).await;
    let is_connected = matches!(status, Ok(Ok(status)) if status.state == SessionState::Connected);
    let needed = needed(&parts.config, is_connected);
    let all = within.map_or(needed, |within| within.min(needed));
    end_within(&life, begun, all);
    let drain = parts.config.drain_timeout.min(all / 2);
    let claims = parts.registry.committable();
    let released = life.released.bound(parts.coordinator.send(coordinator::Shutdown { drain })).await;
    tell_unfinished(&parts, &claims, &life);
    // a coordinator that has panicked answers as well, and has released nothing
    if !matches!(released, Some(Ok(_))) && !claims.is_empty() {
        life.cut_off(format!("{} partitions: they are not released yet", claims.len()));
    }
    stop_children(&parts);
    let closed = life.closed.bound(parts.session.send(zk_session::Shutdown)).await;
    if !matches!(closed, Some(Ok(true))) {
        life.cut_off("the zookeeper session is not closed: its nodes stay until it expires".to_owned());
    }
    tracing::info!("consumer system left the group");
}

fn stop_children(parts: &Parts) {
    for stream in parts.streams.all() {
        stream.queue.do_send(stream_queue::Stop);
        stream.queue.clear();
    }
    parts.metadata.do_send(topic_metadata::Stop);
    parts.fetchers.do_send(fetcher_manager::Stop);
    parts.committer.do_send(offset_committer::Stop);
    // whoever waits for its next life need not
    parts.committer.clear();
    parts.group_reader.do_send(group_view::Stop);
    parts.group_reader.clear();
    parts.letters.do_send(dead_letters::Stop);
    parts.letters.clear();
}

/// What the next owner will do again.
fn tell_unfinished(parts: &Parts, claims: &[Arc<OwnedPartition>], life: &Life) {
    let automatic = parts.config.auto_commit_enable || parts.commit_after.is_some();
    for claim in claims {
        let (partition, acked) = (&claim.topic_partition, claim.acked());
        if claim.is_in_hand() {
            life.cut_off(format!("{partition}: the record at offset {acked} is with its handler yet"));
        }
        let committed = claim.committed();
        if automatic && acked != NO_OFFSET && committed < acked {
            life.cut_off(format!("{partition}: handled up to offset {acked}, stored is {committed}"));
        }
    }
}

impl ConsumerHandle {
    /// Leaves the group: delivery stops, handlers finish (at most `troupe.drain.timeout.ms`), offsets are committed if
    /// they are automatically, partitions are released, the session is closed, the threads end. Added members do the
    /// same. Called again, it waits for the first, and does nothing when that is done.
    pub async fn shutdown(&self) -> ShutdownOutcome {
        self.leave(None, ASKED).await
    }

    /// The same, within a deadline: handlers get at most half of it, and what cannot be done in time is cut off, which
    /// the outcome tells. A shutdown that has begun already is brought forward by it, and is not put off.
    pub async fn shutdown_within(&self, deadline: Duration) -> ShutdownOutcome {
        self.leave(Some(deadline), ASKED).await
    }

    pub(super) async fn leave(&self, within: Option<Duration>, why: &'static str) -> ShutdownOutcome {
        self.system.do_send(Shutdown { within, why });
        let Some(deadline) = within else { return self.life.over().await };
        let over = timeout(deadline + DESCRIBE, self.life.over()).await;
        over.unwrap_or_else(|_| ShutdownOutcome { cut_off: vec!["the shutdown is not over yet".to_owned()] })
    }
}
