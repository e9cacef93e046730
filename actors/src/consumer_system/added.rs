//! Members that were added while this one ran: they share its group, its [commits](super::offsets) and its end.

use std::future::Future;

use actix::prelude::*;
use futures_util::future::join_all;
use kafka_troupe_proto::schemas::status::v1::StatusSnapshot;
use tokio::time::timeout;

use super::metrics::DESCRIBE;
use super::{ConsumerHandle, ConsumerSystem, StartError};

/// A second member is about to register: it is this system's from now on, before its handlers can ask for a commit.
#[derive(Message)]
#[rtype(result = "Result<(), StartError>")]
pub(super) struct Added(pub(super) ConsumerHandle);

impl Handler<Added> for ConsumerSystem {
    type Result = Result<(), StartError>;

    fn handle(&mut self, Added(member): Added, _: &mut Self::Context) -> Self::Result {
        if self.stopping {
            return Err(StartError::Group("the consumer system has shut down".to_owned()));
        }
        self.forget_ended();
        // since it was begun; it owns nothing before it has joined
        member.registry.pause_as(&self.parts.registry);
        self.added.push(member);
        Ok(())
    }
}

impl ConsumerSystem {
    /// An added member may have been shut down alone.
    pub(super) fn forget_ended(&mut self) {
        self.added.retain(|member| member.address().connected());
    }

    /// How the added ones stand; one that does not answer in time is left out of the picture.
    pub(super) fn describe_added(&mut self) -> impl Future<Output = Vec<StatusSnapshot>> + use<> {
        self.forget_ended();
        let added = self.added.clone();
        async move {
            // each has to wait for its own actors first
            let asked = added.iter().map(|member| timeout(2 * DESCRIBE, member.metrics()));
            join_all(asked).await.into_iter().filter_map(|answer| answer.ok()?.ok()).collect()
        }
    }
}
