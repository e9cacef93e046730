//! Rebalance listener: an actor of the application that is asked before partitions are given up and before they start
//! (`ConsumerRebalanceListener` of the old consumer, Kafka 0.9 to 1.1).
//!
//! The coordinator sends it three messages; each partition that was started is ended by exactly one of the other two:
//!
//! | message | when | awaited for |
//! |---|---|---|
//! | [`BeforeStartingPartitions`] | after the claim, the position is read; before the first record is handed over | [`Builder::rebalance_listener_timeout`] |
//! | [`BeforeReleasingPartitions`] | delivery has stopped, the last acknowledgements are in; before the last flush and the release | what handlers leave of `troupe.drain.timeout.ms`, at least a quarter |
//! | [`OwnershipLost`] | the partitions are somebody else's already, or may be | not at all |
//!
//! Partitions that stay are not named, and flow on while the listener thinks. (The old consumer stopped everything and
//! named all partitions in each rebalance, with an empty map in the first.) A partition that moves to another thread of
//! this member is released and started.
//!
//! A listener that does not answer in time holds nothing up: a warning names it, the
//! [status](kafka_troupe_proto::schemas::status::v1::RebalanceListener) counts it, and the release or start goes on.
//! The same holds for one that panicked or stopped; run it under an actix `Supervisor` to have it back. (An exception
//! in the old listener failed the attempt, after ownership was taken.) What a listener must not do is wait for the
//! member to finish a rebalance or to shut down: that waits for the listener.
//!
//! ```
//! use actix::prelude::*;
//! use kafka_troupe_actors::rebalance_listener::{
//!     BeforeReleasingPartitions, BeforeStartingPartitions, OwnershipLost,
//! };
//! use kafka_troupe_actors::{ConsumerHandle, ConsumerSystem, HandlerResult, Record, StartError};
//! use kafka_troupe_proto::config::ConsumerConfig;
//!
//! /// Keeps sums beside the offsets, and writes them where the next owner finds them.
//! struct Sums;
//!
//! impl Actor for Sums {
//!     type Context = Context<Self>;
//! }
//!
//! impl Handler<BeforeStartingPartitions> for Sums {
//!     type Result = ();
//!
//!     fn handle(&mut self, starting: BeforeStartingPartitions, _: &mut Context<Self>) {
//!         for (partition, position) in &starting.partitions {
//!             println!("load the sums of {partition} up to {position:?}");
//!         }
//!     }
//! }
//!
//! impl Handler<BeforeReleasingPartitions> for Sums {
//!     type Result = ResponseFuture<()>; // what takes time is a future: the release waits for it
//!
//!     fn handle(&mut self, releasing: BeforeReleasingPartitions, _: &mut Context<Self>) -> Self::Result {
//!         Box::pin(async move {
//!             for (partition, position) in &releasing.partitions {
//!                 println!("write the sums of {partition} up to {position:?}");
//!             }
//!         })
//!     }
//! }
//!
//! impl Handler<OwnershipLost> for Sums {
//!     type Result = ();
//!
//!     fn handle(&mut self, lost: OwnershipLost, _: &mut Context<Self>) {
//!         println!("forget the sums of {:?}: {}", lost.partitions, lost.why);
//!     }
//! }
//!
//! # struct Orders;
//! # impl Actor for Orders { type Context = Context<Self>; }
//! # impl Handler<Record> for Orders {
//! #     type Result = HandlerResult;
//! #     fn handle(&mut self, _: Record, _: &mut Context<Self>) -> HandlerResult { Ok(()) }
//! # }
//! async fn start(config: ConsumerConfig) -> Result<ConsumerHandle, StartError> {
//!     let sums = Sums.start();
//!     ConsumerSystem::builder(config).handle("orders", 4, || Orders).rebalance_listener(sums).start().await
//! }
//! ```
//!
//! With `auto.commit.enable=false` a listener that holds the [`ConsumerHandle`] may
//! [commit](crate::ConsumerHandle::commit) in `BeforeReleasingPartitions`: the partitions that it names are included.
//!
//! [`Builder::rebalance_listener_timeout`]: crate::consumer_system::Builder::rebalance_listener_timeout
//! [`ConsumerHandle`]: crate::ConsumerHandle

mod asking;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::Generation;
use kafka_troupe_proto::group::assignor::Plan;

pub(crate) use asking::{Occasion, RebalanceListener, ReleaseQuestion};

/// Delivery of these partitions has stopped and every acknowledgement is in; when this is answered (or
/// [`answer_within`](Self::answer_within) has passed) their offsets are flushed if `auto.commit.enable`, then they are
/// given up.
#[derive(Message, Clone, Debug)]
#[rtype(result = "()")]
#[non_exhaustive]
pub struct BeforeReleasingPartitions {
    /// The member: the name of its node under `ids`.
    pub consumer_id: String,
    /// The rebalance that gives them up, by this member's count.
    pub generation: Generation,
    /// Those that go, each with the next offset that would be handed over here: all before it is handled. None when
    /// nothing of it ever was.
    pub partitions: BTreeMap<TopicPartition, Option<i64>>,
    /// Why they go.
    pub why: ReleaseReason,
    /// How long the answer is waited for.
    pub answer_within: Duration,
}

/// Why partitions are given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReleaseReason {
    /// They are another member's now, or another thread's of this one.
    Rebalance,
    /// This member leaves the group.
    Shutdown,
    /// The coordinator of this member was restarted after a panic, and starts them anew.
    Restarted,
    /// They could not be started after all; they are tried again after `rebalance.backoff.ms`.
    StartFailed,
}

/// These partitions are claimed and their positions read; when this is answered (or
/// [`answer_within`](Self::answer_within) has passed) they are delivered. Each partition starts by itself, so several
/// of these may come in one rebalance, and be under way at a time.
#[derive(Message, Clone, Debug)]
#[rtype(result = "()")]
#[non_exhaustive]
pub struct BeforeStartingPartitions {
    /// The member: the name of its node under `ids`.
    pub consumer_id: String,
    /// The rebalance that starts them, by this member's count.
    pub generation: Generation,
    /// Those that start, each with its stored offset: the next to be handed over. None when nothing is stored:
    /// `auto.offset.reset` (or `troupe.new.partitions.reset`) makes a position after this.
    pub partitions: BTreeMap<TopicPartition, Option<i64>>,
    /// What the whole group is to own, as planned: partition to consumer thread, of all members. With
    /// `partition.assignment.strategy=range` of the topics of this member only.
    pub assignment: Arc<Plan>,
    /// How long the answer is waited for.
    pub answer_within: Duration,
}

/// These partitions are not this member's any more: its session has expired, or their owner nodes were taken.
/// Delivery has stopped, nothing was flushed and nothing can be: the next owner may run already, from the last commit.
/// A release that is being asked about when that happens is not told again.
#[derive(Message, Clone, Debug)]
#[rtype(result = "()")]
#[non_exhaustive]
pub struct OwnershipLost {
    /// The member: the name of its node under `ids`.
    pub consumer_id: String,
    /// The rebalance in which it was noticed, by this member's count.
    pub generation: Generation,
    /// Those that are lost.
    pub partitions: BTreeSet<TopicPartition>,
    /// What happened, for people.
    pub why: String,
}

#[cfg(test)]
mod tests;
