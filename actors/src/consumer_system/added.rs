//! Members that were added while this one ran: they share its group, its commits and its end.

use std::future::Future;

use actix::prelude::*;
use futures_util::future::join_all;
use kafka_troupe_proto::schemas::status::v1::StatusSnapshot;
use tokio::time::timeout;

use super::children::DESCRIBE;
use super::{Commit, ConsumerHandle, ConsumerSystem, StartError};
use crate::offset_committer::{CommitError, CommitNow};

/// A second member has registered: it is this system's from now on.
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
        self.added.push(member);
        Ok(())
    }
}

impl Handler<Commit> for ConsumerSystem {
    type Result = ResponseFuture<Result<usize, CommitError>>;

    fn handle(&mut self, _: Commit, _: &mut Self::Context) -> Self::Result {
        self.forget_ended();
        let (committer, added) = (self.parts.committer.clone(), self.added.clone());
        Box::pin(async move {
            let own = async {
                let answer = committer.send(CommitNow { why: "asked for" }).await;
                answer.unwrap_or(Err(CommitError::NotRunning))
            };
            let (own, added) = tokio::join!(own, join_all(added.iter().map(ConsumerHandle::commit)));
            added.into_iter().try_fold(own?, |written, added| Ok(written + added?))
        })
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
