//! Claims and streams for unit tests.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, Addr, Context, Handler, Message};
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::{Generation, SessionNumber};
use kafka_troupe_proto::zk::ConsumerThreadId;

use crate::fetcher_manager::Assigned;
use crate::lease::{BootInstant, Lease, SessionEpoch};
use crate::registry::{Claim, OwnedPartition, Position};
use crate::stream_queue::{Credit, FetchedChunk};

/// A stream that drops what it gets.
pub(crate) struct Sink;

impl Actor for Sink {
    type Context = Context<Self>;
}

impl Handler<FetchedChunk> for Sink {
    type Result = ();

    fn handle(&mut self, _: FetchedChunk, _: &mut Context<Self>) {}
}

/// End.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct End;

impl Handler<End> for Sink {
    type Result = ();

    fn handle(&mut self, _: End, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

/// A claim of `topic-partition` at `committed`, with room for `chunks`.
pub(crate) fn claim(partition: i32, committed: Option<i64>, credit: &Arc<Credit>) -> Arc<OwnedPartition> {
    claim_under(Arc::new(Lease::new()), partition, committed, credit)
}

/// As [`claim`], under a lease that lasts.
pub(crate) fn live_claim(
    partition: i32,
    committed: Option<i64>,
    credit: &Arc<Credit>,
) -> Arc<OwnedPartition> {
    let lease = Arc::new(Lease::new());
    lease.extend_to(SessionEpoch(1), BootInstant::now() + Duration::from_secs(3_600));
    claim_under(lease, partition, committed, credit)
}

fn claim_under(
    lease: Arc<Lease>,
    partition: i32,
    committed: Option<i64>,
    credit: &Arc<Credit>,
) -> Arc<OwnedPartition> {
    let claim = Claim {
        topic_partition: TopicPartition::new("topic", partition),
        generation: Generation(1),
        session: SessionNumber(1),
        epoch: SessionEpoch(1),
        thread: ConsumerThreadId::new("group_host", 0),
        appeared: false,
        position: Position { offset: committed, ..Position::NONE },
    };
    Arc::new(OwnedPartition::new(claim, Arc::clone(credit), lease))
}

/// As [`claim`], for a stream.
pub(crate) fn assigned(partition: &Arc<OwnedPartition>, stream: &Addr<Sink>) -> Assigned {
    Assigned { partition: Arc::clone(partition), stream: stream.clone().recipient() }
}
