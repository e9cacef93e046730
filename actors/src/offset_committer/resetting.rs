//! A position that was made.

use std::sync::Arc;

use actix::prelude::*;

use super::{CommitError, OffsetCommitter};
use crate::registry::OwnedPartition;

/// A position made by `auto.offset.reset`: stored before its first record is delivered, when automatic commit
/// is on (rule 8), and then the partition's. Answers the position that counts: this one, what was stored since the
/// partition was claimed, or the one that it was given meanwhile.
#[derive(Message)]
#[rtype(result = "Result<i64, CommitError>")]
pub struct CommitReset {
    /// The claim.
    pub partition: Arc<OwnedPartition>,
    /// The position in whose place it is made, or [`NO_OFFSET`](crate::registry::NO_OFFSET). If the partition has moved
    /// from there, somebody has made one already, whose asker may have ended before it was answered; but not where the
    /// topic was made again and the partition [has none yet](OwnedPartition::is_of_earlier_topic).
    pub instead_of: i64,
    /// The topic in which it is made, by its [number](OwnedPartition::topic_number).
    pub topic: u64,
    /// Its new position.
    pub offset: i64,
}

impl Handler<CommitReset> for OffsetCommitter {
    type Result = ResponseFuture<Result<i64, CommitError>>;

    fn handle(&mut self, asked: CommitReset, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        let pass = Arc::clone(&self.pass);
        let automatic = self.parts.automatic;
        Box::pin(async move {
            let CommitReset { ref partition, instead_of, topic, offset } = asked;
            let failed = |error| pass.failed(&partition.topic_partition, error, "auto.offset.reset");
            let _making = partition.making().await;
            if let Some(answer) = overtaken(partition, instead_of, topic) {
                return answer;
            }
            if partition.has_unhandled() {
                return Err(not_now(partition, "what was fetched is not handled yet".to_owned()));
            }
            // a reader at the end of what it had would pass over what is from the new position on
            if !partition.end_round() {
                return Err(not_now(partition, "its stream has a hand on it".to_owned()));
            }
            // before it is our turn: others are not to wait while a coordinator loads
            let stands = if automatic { pass.stores.standing(partition).await } else { Ok(None) };
            let stands = stands.map_err(failed)?;
            let _turn = pass.turn_of_reset(partition).await?;
            if let Some(answer) = overtaken(partition, instead_of, topic) {
                return answer;
            }
            let position = match automatic {
                true => pass.stores.reset(&asked, stands).await,
                false => Ok(offset),
            };
            // first: that it was given up meanwhile is no failure
            if let Some(answer) = overtaken(partition, instead_of, topic) {
                return answer;
            }
            let position = position.map_err(failed)?;
            partition.set_unanswered(topic, None);
            // at once: whoever asked may have ended, and must not have it made again
            partition.reset_in(topic, position);
            Ok(position)
        })
    }
}

/// The answer for a position that was asked for something that is so no more: none is made then, or another was. What
/// moved a partition whose topic was made again was a chunk that was on its way, and it still has no position.
fn overtaken(partition: &OwnedPartition, from: i64, topic: u64) -> Option<Result<i64, CommitError>> {
    let now = partition.fetched();
    let why = match () {
        () if partition.is_closed() => "given up meanwhile".to_owned(),
        () if partition.topic_number() != topic => "its topic was made again meanwhile".to_owned(),
        () if partition.is_on_the_way() => "a chunk is on its way to its stream".to_owned(),
        () if now == from => return None,
        () if !partition.is_of_earlier_topic() => return Some(Ok(now)),
        () => format!("it has moved from {from} to {now} meanwhile, in the earlier topic"),
    };
    Some(Err(not_now(partition, why)))
}

fn not_now(partition: &OwnedPartition, why: String) -> CommitError {
    CommitError::Store { partition: partition.topic_partition.clone(), why }
}
