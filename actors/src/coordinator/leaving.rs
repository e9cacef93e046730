//! Being told to leave.

use actix::prelude::*;
use kafka_troupe_proto::group::Input;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{RebalanceCoordinator, Shutdown};

impl Handler<Shutdown> for RebalanceCoordinator {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, Shutdown { drain }: Shutdown, ctx: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        self.stopped_by.bring_forward(Instant::now() + drain);
        let (answer, done) = oneshot::channel();
        self.leaving.push(answer);
        self.take(Input::Shutdown, ctx);
        // an error means that this actor is gone, and with it what it would have given up
        Box::pin(async { done.await.unwrap_or(()) })
    }
}
