//! Operations on owner nodes, those of one node one after the other.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;

use actix::prelude::*;
use futures_util::FutureExt;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::{ClaimAnswer, Input};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::RebalanceCoordinator;

impl RebalanceCoordinator {
    /// The operations on one owner node run one after the other, so that their results come in ZooKeeper's order: a
    /// read that was answered before a create must not be told after it.
    pub(super) fn turn(&mut self, partition: &TopicPartition) -> Arc<Mutex<()>> {
        Arc::clone(self.turns.entry(partition.clone()).or_default())
    }

    pub(super) fn spawn_in_turn(
        &mut self,
        turn: Arc<Mutex<()>>,
        io: impl Future<Output = Input> + 'static,
        ctx: &mut Context<Self>,
    ) {
        while self.operations.try_join_next().is_some() {}
        let actor = ctx.address();
        self.operations.spawn_local(async move {
            let turn = turn.lock_owned().await;
            let result = AssertUnwindSafe(io).catch_unwind().await;
            actor.do_send(Ended { result, _turn: turn });
        });
    }
}

/// An operation on an owner node has ended; its turn ends when the result is told.
#[derive(Message)]
#[rtype(result = "()")]
struct Ended {
    result: std::thread::Result<Input>,
    _turn: OwnedMutexGuard<()>,
}

impl Handler<Ended> for RebalanceCoordinator {
    type Result = ();

    fn handle(&mut self, Ended { result, _turn }: Ended, ctx: &mut Self::Context) {
        self.messages += 1;
        // its panic is ours: the machine would wait for the result for ever
        let input = result.unwrap_or_else(|panic| resume_unwind(panic));
        if let Input::Claimed { partition, answer: ClaimAnswer::Held(_), .. } = &input {
            self.watched = Some(partition.clone());
        }
        self.take(input, ctx);
        self.watched = None;
    }
}
