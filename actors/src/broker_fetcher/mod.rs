//! # BrokerFetcher: the fetch loop of one broker
//!
//! Asks one broker for the records of the partitions that it leads, and sends them on as chunks: one message per
//! partition and response. One request is in flight; the next is sent as soon as the response is split, before
//! anything is decoded (that happens where the user's code runs).
//!
//! *Mailbox*: requests [`AddPartitions`], [`RemovePartitions`], [`Stop`]; event [`CreditGranted`].
//!
//! *State*: the partitions in their rotation (`rotation.rs` decides what the next fetch asks for and what a response
//! means), the connection while no request is in flight, counters.
//!
//! *Supervision*: a partition that fails, or all of them when a request fails, goes back to the manager, which waits,
//! finds the leader and adds it again, perhaps here; so there is no retry and no backoff in this actor. A panic
//! reaches the manager as `ChildExited`.
//!
//! *Talks to*: the broker; the streams ([`FetchedChunk`](crate::stream_queue::FetchedChunk)); the
//! [`FetcherManager`](crate::fetcher_manager::FetcherManager) ([`PartitionsFailed`]).
//!
//! # Flow
//! A partition is asked for only while its stream has room; one that has none is left out, so that it stops nobody
//! else. When none has room the fetcher rests, without a timer, until a stream says that it has.

mod fetch;
mod rotation;
mod stats;
#[cfg(test)]
pub(crate) mod test_claims;

use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::Disposition;

use crate::broker_connection::{BrokerConnection, ConnectionError};
use crate::fetcher_manager::{Assigned, BrokerAddress, FailedPartition, FetchSettings, PartitionsFailed};
use crate::stream_queue::{Credit, CreditGranted};
use crate::supervise::ExitGuard;
use fetch::{Fetched, fetch};
use rotation::{Plan, Rotation};
pub use stats::FetcherStats;

/// Fetch these from now on, each from its [`fetched`](crate::registry::OwnedPartition::fetched) offset.
#[derive(Message)]
#[rtype(result = "()")]
pub struct AddPartitions(pub Vec<Assigned>);

/// Fetch these no more.
#[derive(Message)]
#[rtype(result = "()")]
pub struct RemovePartitions(pub Vec<TopicPartition>);

/// End, and close the connection.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Stop;

/// The fetch loop of one broker.
pub struct BrokerFetcher {
    broker: BrokerAddress,
    settings: Arc<FetchSettings>,
    /// Gets back what fails.
    manager: Recipient<PartitionsFailed>,
    /// Tells the manager when we are gone without having been told to.
    guard: ExitGuard,
    /// Kept by the manager as well, over our lives.
    stats: Arc<FetcherStats>,
    rotation: Rotation,
    /// Open and idle; none before the first fetch and while one is in flight.
    connection: Option<BrokerConnection>,
    /// A request is in flight, or a pause after one.
    busy: bool,
}

impl BrokerFetcher {
    /// A fetcher without partitions; it dials when it gets some.
    pub fn new(
        broker: BrokerAddress,
        settings: Arc<FetchSettings>,
        manager: Recipient<PartitionsFailed>,
        guard: ExitGuard,
        stats: Arc<FetcherStats>,
    ) -> Self {
        Self {
            broker,
            settings,
            manager,
            guard,
            stats,
            rotation: Rotation::default(),
            connection: None,
            busy: false,
        }
    }

    /// Sends the next request, unless one is in flight or no stream has room.
    fn fetch_next(&mut self, ctx: &mut Context<Self>) {
        self.stats.set_partitions(self.rotation.len());
        if self.busy {
            return;
        }
        match self.rotation.plan(&self.settings) {
            Plan::Rest => {}
            Plan::Full(credits) => Self::wait_for_room(&credits, ctx),
            Plan::Ask(request) => {
                self.busy = true;
                let call = fetch(
                    self.connection.take(),
                    self.broker.clone(),
                    self.settings.connect.clone(),
                    request,
                );
                ctx.spawn(call.into_actor(self).map(Self::answered));
            }
        }
    }

    fn wait_for_room(credits: &[Arc<Credit>], ctx: &mut Context<Self>) {
        let has_room_by_now = |credit: &Arc<Credit>| !credit.notify_when_room(ctx.address().recipient());
        if credits.iter().any(has_room_by_now) {
            ctx.notify(CreditGranted);
        }
    }

    /// The request in flight has ended.
    fn answered(outcome: Result<Fetched, ConnectionError>, act: &mut Self, ctx: &mut Context<Self>) {
        match outcome {
            Ok(fetched) => {
                let pause = act.deliver(fetched);
                act.go_on_after(pause, ctx);
            }
            Err(error) => {
                act.busy = false;
                act.fail_all(&error.to_string());
            }
        }
    }

    /// Splits a response and sends its chunks off; says how long to wait before the next request.
    fn deliver(&mut self, fetched: Fetched) -> Duration {
        if let Err(error) = fetched.answer.head.error.ok() {
            self.fail_all(&error.to_string());
            return Duration::ZERO;
        }
        let pause = fetched.pause();
        let harvest = self.rotation.harvest(fetched.answer.partitions, &self.settings);
        self.stats.answered(harvest.bytes);
        self.connection = Some(fetched.connection);
        for (stream, chunk) in harvest.chunks {
            stream.do_send(chunk);
        }
        self.give_back(harvest.failed);
        pause
    }

    fn go_on_after(&mut self, pause: Duration, ctx: &mut Context<Self>) {
        if pause.is_zero() {
            self.busy = false;
            self.fetch_next(ctx);
        } else {
            ctx.run_later(pause, |act, ctx| act.go_on_after(Duration::ZERO, ctx));
        }
    }

    fn fail_all(&mut self, why: &str) {
        let partitions = self.rotation.len();
        if self.stats.failed(why) {
            tracing::warn!(broker = self.broker.id, partitions, why, "fetch failed");
        }
        let failed = self.rotation.fail_all(Disposition::FindLeader, why);
        self.give_back(failed);
    }

    fn give_back(&self, partitions: Vec<FailedPartition>) {
        if !partitions.is_empty() {
            self.manager.do_send(PartitionsFailed { broker: self.broker.id, partitions });
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

    fn handle(&mut self, AddPartitions(partitions): AddPartitions, ctx: &mut Context<Self>) {
        for assigned in partitions {
            self.rotation.add(assigned);
        }
        self.fetch_next(ctx);
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
