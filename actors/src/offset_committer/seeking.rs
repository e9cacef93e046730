//! A position that somebody asked for.

use std::sync::Arc;

use actix::prelude::*;

use super::{CommitError, OffsetCommitter};
use crate::registry::{OwnedPartition, Unanswered};

/// Renews a claim at another offset, and stores that when automatic commit is on: an explicit reset (rule 12), by which
/// a stored offset may go down. Answers the claim as renewed; none, and nothing done, when `claim` is not the current
/// one any more. One that is given up while it is stored is not renewed, and what was stored stands. After an error the
/// store may hold either: the claim, [renewed](OwnedPartition::renewed) as it was, has its next commit write its own.
/// In Kafka a commit that was given up before may be carried out after this, until the next one puts it right.
#[derive(Message)]
#[rtype(result = "Result<Option<Arc<OwnedPartition>>, CommitError>")]
pub struct CommitSeek {
    /// The claim, closed: what was fetched under it is of no effect.
    pub claim: Arc<OwnedPartition>,
    /// Its new position.
    pub offset: i64,
}

impl Handler<CommitSeek> for OffsetCommitter {
    type Result = ResponseFuture<Result<Option<Arc<OwnedPartition>>, CommitError>>;

    fn handle(&mut self, CommitSeek { claim, offset }: CommitSeek, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        let (pass, registry) = (Arc::clone(&self.pass), Arc::clone(&self.parts.registry));
        let automatic = self.parts.automatic;
        Box::pin(async move {
            // no commit of the earlier position may come between the new one and the new claim
            let _turn = pass.turn_of_seek(&claim).await?;
            if !registry.get(&claim.topic_partition).is_some_and(|current| Arc::ptr_eq(&current, &claim)) {
                return Ok(None);
            }
            let sought = Arc::new(claim.sought(offset));
            if automatic {
                // first: should it be stored and nobody know of it, whoever goes on with the claim takes it back
                claim.set_unanswered(sought.topic_number(), Some(Unanswered::Seek(offset)));
                pass.stores
                    .seek(&claim, &sought, offset)
                    .await
                    .map_err(|error| pass.failed(&claim.topic_partition, error, "seek"))?;
                claim.set_unanswered(sought.topic_number(), None);
            }
            if registry.renew(&claim, Arc::clone(&sought)) {
                return Ok(Some(sought));
            }
            let is_given_up = registry.get(&claim.topic_partition).is_none();
            if automatic && is_given_up {
                // it is the next owner's to go on from there
                sought.close();
                claim.supersede();
                return Ok(Some(sought));
            }
            Ok(None)
        })
    }
}
