//! # BrokerFetcher: a fetch loop of one broker
//!
//! Asks one broker for the records of partitions that it leads, or follows in our rack, and sends them on as chunks: one
//! message per partition and response. A broker has `num.consumer.fetchers` of these, each with a connection and
//! partitions of its own. One request is in flight; the next is sent as soon as the response is split, before anything
//! is decoded (that happens where the user's code runs).
//!
//! *Mailbox*: requests [`AddPartitions`], [`NameNoReplica`], [`RemovePartitions`], [`Stop`]; event
//! [`CreditGranted`].
//!
//! *State*: the partitions in their rotation (`rotation.rs` decides what the next fetch asks for and what a response
//! means), what the broker remembers of that (`session.rs`), the connection while no request is in flight, what is
//! asked for (`budget.rs`), counters.
//!
//! *Supervision*: a partition that fails, or all of them when a request fails, goes back to the manager, which waits,
//! finds the leader and adds it again, perhaps here; so there is no retry and no backoff in this actor, but for one: a
//! connection that was closed while it was at rest is opened anew. A panic reaches the manager as `ChildExited`.
//!
//! *Talks to*: the broker; the streams ([`FetchedChunk`](crate::stream_queue::FetchedChunk)); the
//! [`FetcherManager`](crate::fetcher_manager::FetcherManager) ([`PartitionsFailed`], [`ReplicaPreferred`]).
//!
//! # Flow
//! A partition is asked for only while its stream has room; one that has none is left out, so that it stops nobody
//! else. When none has room the fetcher rests, without a timer, until a stream says that it has. Brokers close
//! connections on which nothing has come for a while (`connections.max.idle.ms`); the next request shows it.
//!
//! Before Fetch 3 (0.10.1) a response has no limit, and a batch larger than a partition's fetch comes cut off: then
//! only as many partitions are asked for as fit in, in turn; and the batch is asked for with more, as far as
//! `troupe.fetch.message.max.bytes.limit` allows, or else its partition goes back to the manager for [`OVERSIZE_REST`]:
//! nothing is skipped, and it goes on when retention has removed the batch.

mod budget;
mod fetch;
mod fetch_span;
mod rotation;
mod session;
mod stats;
#[cfg(test)]
pub(crate) mod test_claims;

use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::Disposition;
use tokio::time::Instant;
use tracing::Instrument;

use crate::broker_connection::{BrokerConnection, ConnectionError};
use crate::fetcher_manager::{
    Assigned, BrokerAddress, FailedPartition, FetchSettings, PartitionsFailed, ReplicaPreferred,
};
use crate::stream_queue::{Credit, CreditGranted};
use crate::supervise::ExitGuard;
use budget::Asked;
pub use budget::Budget;
use fetch::{Fetched, dial, fetch, limits_whole};
use kafka_troupe_proto::kafka::fetch::FetchRequest;
use rotation::{Plan, Rotation, Wanted};
use session::{Continued, FetchSession};
pub use stats::FetcherStats;

/// How long a partition is left alone whose next batch is larger than may be asked for: each try costs a whole fetch.
pub const OVERSIZE_REST: Duration = Duration::from_secs(5);

/// Fetch these from now on, each from its [`fetched`](crate::registry::OwnedPartition::fetched) offset.
#[derive(Message)]
#[rtype(result = "()")]
pub struct AddPartitions {
    /// The claims, and where their chunks go.
    pub partitions: Vec<Assigned>,
    /// The broker only follows their leader: an offset that it does not have goes back to the leader (KIP-392).
    pub follows: bool,
}

/// Ask without `client.rack` until then, so that the broker names no replica: what it named could not be read from.
#[derive(Message)]
#[rtype(result = "()")]
pub struct NameNoReplica {
    /// Until when.
    pub until: Instant,
}

/// Fetch these no more.
#[derive(Message)]
#[rtype(result = "()")]
pub struct RemovePartitions(pub Vec<TopicPartition>);

/// End, and close the connection.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Stop;

/// One of the fetch loops of one broker.
pub struct BrokerFetcher {
    broker: BrokerAddress,
    /// Which of the broker's fetchers it is, for the log.
    index: u32,
    settings: Arc<FetchSettings>,
    manager: Manager,
    /// Tells the manager when we are gone without having been told to.
    guard: ExitGuard,
    /// Kept by the manager as well, over our lives.
    stats: Arc<FetcherStats>,
    rotation: Rotation,
    session: FetchSession,
    /// Open and idle; none before the first fetch and while one is in flight.
    connection: Option<BrokerConnection>,
    /// Until then no rack is told.
    rackless_until: Option<Instant>,
    /// A dial or a request is in flight, or a pause after one.
    busy: bool,
    /// What the request in flight asks for.
    asked: Option<Asked>,
    /// There was a time without a request since the last answer, in which the broker may have closed the connection.
    was_at_rest: bool,
}

/// Gets partitions back.
#[derive(Clone)]
pub struct Manager {
    /// Those that fail.
    pub failed: Recipient<PartitionsFailed>,
    /// Those that are to be read elsewhere.
    pub moved: Recipient<ReplicaPreferred>,
}

impl From<Addr<crate::fetcher_manager::FetcherManager>> for Manager {
    fn from(manager: Addr<crate::fetcher_manager::FetcherManager>) -> Self {
        Self { failed: manager.clone().recipient(), moved: manager.recipient() }
    }
}

impl BrokerFetcher {
    /// A fetcher without partitions; it dials when it gets some. `index`: which of the broker's it is; they share
    /// `budget`.
    pub fn new(
        broker: BrokerAddress,
        index: u32,
        settings: Arc<FetchSettings>,
        manager: Manager,
        guard: ExitGuard,
        stats: Arc<FetcherStats>,
        budget: Arc<Budget>,
    ) -> Self {
        Self {
            broker,
            index,
            settings,
            manager,
            guard,
            stats,
            rotation: Rotation::new(budget),
            session: FetchSession::default(),
            connection: None,
            rackless_until: None,
            busy: false,
            asked: None,
            was_at_rest: false,
        }
    }

    /// Sends the next request, unless one is in flight or no stream has room.
    fn fetch_next(&mut self, ctx: &mut Context<Self>) {
        self.stats.set_partitions(self.rotation.len());
        if self.busy {
            return;
        }
        let limits_whole = self.connection.as_ref().is_none_or(limits_whole);
        match self.rotation.plan(&self.settings, limits_whole) {
            Plan::Rest => self.was_at_rest = true,
            Plan::Full(credits) => {
                self.was_at_rest = true;
                Self::wait_for_room(&credits, ctx);
            }
            Plan::Ask(wanted) => {
                self.busy = true;
                match self.connection.take() {
                    Some(connection) => {
                        let request = self.request(wanted);
                        let span = fetch_span::fetching(&self.broker, self.index, &request);
                        let call = fetch(connection, request).instrument(span);
                        ctx.spawn(call.into_actor(self).map(Self::answered));
                    }
                    // what to ask depends on what the broker speaks
                    None => self.dial(ctx),
                }
            }
        }
    }

    fn dial(&mut self, ctx: &mut Context<Self>) {
        let span = fetch_span::dialling(&self.broker, self.index);
        let dialling = dial(self.broker.clone(), self.settings.connect.clone()).instrument(span);
        ctx.spawn(dialling.into_actor(self).map(|dialled, act, ctx| {
            act.busy = false;
            match dialled {
                Ok(connection) => {
                    act.was_at_rest = false;
                    act.session.renew();
                    act.connection = Some(connection);
                    act.fetch_next(ctx);
                }
                Err(error) => act.fail_all(&error.to_string()),
            }
        }));
    }

    fn request(&mut self, wanted: Wanted) -> FetchRequest {
        let (asked, max_bytes) = (self.session.ask(&wanted.partitions), wanted.asked.max_bytes());
        self.asked = Some(wanted.asked);
        FetchRequest {
            max_wait_ms: i32::try_from(wanted.wait.as_millis()).unwrap_or(i32::MAX),
            min_bytes: self.settings.min_bytes,
            max_bytes,
            read_committed: self.settings.read_committed(),
            session_id: asked.session_id,
            session_epoch: asked.session_epoch,
            topics: asked.topics,
            forgotten: asked.forgotten,
            rack: self.rack(),
        }
    }

    fn rack(&self) -> Arc<str> {
        let is_told = self.rackless_until.is_none_or(|until| until <= Instant::now());
        if is_told { Arc::clone(&self.settings.rack) } else { Arc::from("") }
    }

    fn wait_for_room(credits: &[Arc<Credit>], ctx: &mut Context<Self>) {
        let has_room_by_now = |credit: &Arc<Credit>| !credit.notify_when_room(ctx.address().recipient());
        if credits.iter().any(has_room_by_now) {
            ctx.notify(CreditGranted);
        }
    }

    /// The request in flight has ended.
    fn answered(outcome: Result<Fetched, ConnectionError>, act: &mut Self, ctx: &mut Context<Self>) {
        let was_at_rest = std::mem::take(&mut act.was_at_rest);
        match outcome {
            Ok(fetched) => {
                let pause = act.deliver(fetched);
                act.asked = None;
                act.go_on_after(pause, ctx);
            }
            Err(error) => {
                act.asked = None;
                act.busy = false;
                if was_at_rest && error.unanswered {
                    tracing::debug!(broker = act.broker.id, fetcher = act.index, why = %error, "reconnects after a rest");
                    act.fetch_next(ctx);
                } else {
                    act.fail_all(&error.to_string());
                }
            }
        }
    }

    /// Splits a response and sends its chunks off; says how long to wait before the next request.
    fn deliver(&mut self, fetched: Fetched) -> Duration {
        let pause = match self.session.answered(&fetched.answer.head) {
            Ok(Continued::Yes) => fetched.pause(),
            Ok(Continued::Lost) => {
                let error = fetched.answer.head.error;
                tracing::debug!(broker = self.broker.id, fetcher = self.index, %error, "fetch session lost, another is begun");
                fetched.connection.deaf_for()
            }
            Err(error) => {
                self.fail_all(&error.to_string());
                return Duration::ZERO;
            }
        };
        let harvest = self.rotation.harvest(fetched.answer.partitions, &self.settings);
        self.stats.answered(harvest.bytes, fetched.took);
        self.connection = Some(fetched.connection);
        for (stream, chunk) in harvest.chunks {
            stream.do_send(chunk);
        }
        self.give_back(harvest.failed, None);
        self.give_back(harvest.oversize, Some(OVERSIZE_REST));
        if !harvest.moved.is_empty() {
            self.manager
                .moved
                .do_send(ReplicaPreferred { broker: self.broker.id, partitions: harvest.moved });
        }
        pause
    }

    fn go_on_after(&mut self, pause: Duration, ctx: &mut Context<Self>) {
        if pause.is_zero() {
            self.busy = false;
            self.fetch_next(ctx);
        } else {
            self.was_at_rest = true;
            ctx.run_later(pause, |act, ctx| act.go_on_after(Duration::ZERO, ctx));
        }
    }

    fn fail_all(&mut self, why: &str) {
        let partitions = self.rotation.len();
        if self.stats.failed(why) {
            tracing::warn!(broker = self.broker.id, fetcher = self.index, partitions, why, "fetch failed");
        }
        let failed = self.rotation.fail_all(Disposition::FindLeader, why);
        self.give_back(failed, None);
    }

    fn give_back(&self, partitions: Vec<FailedPartition>, rest: Option<Duration>) {
        if !partitions.is_empty() {
            self.manager.failed.do_send(PartitionsFailed { broker: self.broker.id, partitions, rest });
        }
    }
}

impl Actor for BrokerFetcher {
    type Context = Context<Self>;

    fn stopped(&mut self, _: &mut Context<Self>) {
        self.stats.disconnected();
    }
}

impl Handler<AddPartitions> for BrokerFetcher {
    type Result = ();

    fn handle(&mut self, added: AddPartitions, ctx: &mut Context<Self>) {
        for assigned in added.partitions {
            self.session.renew_if_knows(&assigned.partition.topic_partition);
            self.rotation.add(assigned, added.follows);
        }
        self.fetch_next(ctx);
    }
}

impl Handler<NameNoReplica> for BrokerFetcher {
    type Result = ();

    fn handle(&mut self, NameNoReplica { until }: NameNoReplica, _: &mut Context<Self>) {
        self.rackless_until = self.rackless_until.max(Some(until));
    }
}

impl Handler<RemovePartitions> for BrokerFetcher {
    type Result = ();

    fn handle(&mut self, RemovePartitions(partitions): RemovePartitions, _: &mut Context<Self>) {
        for partition in &partitions {
            self.rotation.remove(partition);
        }
        self.stats.set_partitions(self.rotation.len());
    }
}

impl Handler<CreditGranted> for BrokerFetcher {
    type Result = ();

    fn handle(&mut self, _: CreditGranted, ctx: &mut Context<Self>) {
        self.fetch_next(ctx);
    }
}

impl Handler<Stop> for BrokerFetcher {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Context<Self>) {
        // here and not in `stopped`, which actix calls after a panic as well
        self.guard.dismiss();
        ctx.stop();
    }
}
