//! Another position for a partition, while the member runs.

use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe_proto::TopicPartition;

use super::{ConsumerHandle, ConsumerSystem};
use crate::offset_committer::{CommitError, CommitSeek, OffsetCommitter};
use crate::registry::TopicRegistry;
use crate::stream_queue::{Clear, Streams};
use crate::supervise::Slot;

/// Go on with a partition at another offset: see [`ConsumerHandle::seek`].
#[derive(Message, Clone, Debug)]
#[rtype(result = "Result<(), SeekError>")]
pub struct Seek {
    /// Which; this member must own it.
    pub partition: TopicPartition,
    /// The next offset to deliver.
    pub offset: i64,
}

/// Why a partition was not given another position; it keeps the one that it has.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SeekError {
    /// Another member owns it, or nobody does.
    #[error("seek {0}: this member does not own it; ask the one that does, or wait until this one does")]
    NotOwned(TopicPartition),
    /// Offsets begin at 0.
    #[error("seek {partition}: {offset} is no offset, they begin at 0")]
    Negative {
        /// Which.
        partition: TopicPartition,
        /// What was asked for.
        offset: i64,
    },
    /// The position could not be stored, or it is not known whether it was: the next commit stores where the partition
    /// is. (Should the member die before that, the next owner may begin at the one that was asked for.)
    #[error("seek {partition} to {offset}: {source}")]
    NotStored {
        /// Which.
        partition: TopicPartition,
        /// What was asked for.
        offset: i64,
        /// Why.
        source: CommitError,
    },
    /// The system has shut down.
    #[error("seek {0}: the consumer system has shut down")]
    NotRunning(TopicPartition),
}

impl Handler<Seek> for ConsumerSystem {
    type Result = ResponseActFuture<Self, Result<(), SeekError>>;

    fn handle(&mut self, seek: Seek, _: &mut Self::Context) -> Self::Result {
        self.forget_ended();
        let (parts, added) = (&self.parts, self.added.clone());
        let seeking = Seeking {
            registry: Arc::clone(&parts.registry),
            streams: Arc::clone(&parts.streams),
            committer: parts.committer.clone(),
            drain_timeout: parts.config.drain_timeout,
        };
        let partition = seek.partition.clone();
        let sought = async move {
            match seeking.seek(&seek).await {
                Err(SeekError::NotOwned(_)) => seek_in(&added, seek).await,
                outcome => outcome,
            }
        };
        Box::pin(sought.into_actor(self).map(move |outcome, this, _| {
            // a stream that was stopped goes on with it
            this.tell_halts(this.parts.registry.get(&partition).into_iter().collect());
            this.fetch_again(|owned| owned.topic_partition == partition);
            outcome
        }))
    }
}

/// The added member that owns it does it.
async fn seek_in(added: &[ConsumerHandle], Seek { partition, offset }: Seek) -> Result<(), SeekError> {
    for member in added {
        match member.seek(&partition.topic, partition.partition, offset).await {
            Err(SeekError::NotOwned(_) | SeekError::NotRunning(_)) => {}
            outcome => return outcome,
        }
    }
    Err(SeekError::NotOwned(partition))
}

struct Seeking {
    registry: Arc<TopicRegistry>,
    streams: Arc<Streams>,
    committer: Slot<OffsetCommitter>,
    drain_timeout: Duration,
}

impl Seeking {
    /// Whoever still holds the claim as it was (a chunk on its way, a record in hand) changes nothing any more: the
    /// partition is claimed once more, at the new position.
    async fn seek(&self, Seek { partition, offset }: &Seek) -> Result<(), SeekError> {
        let (partition, offset) = (partition.clone(), *offset);
        if offset < 0 {
            return Err(SeekError::Negative { partition, offset });
        }
        // again when a stream was made anew meanwhile, and with it the claim
        loop {
            let claim =
                self.registry.get(&partition).ok_or_else(|| SeekError::NotOwned(partition.clone()))?;
            claim.close();
            if let Some(stream) = self.streams.of(&partition.topic, claim.thread.index()) {
                stream.queue.do_send(Clear(vec![partition.clone()]));
            }
            if !claim.drained(self.drain_timeout).await {
                tracing::warn!(%partition, why = "seek", "the record in hand is not waited for any longer");
            }
            let sought = CommitSeek { claim: Arc::clone(&claim), offset };
            match self.committer.send(sought).await.unwrap_or(Err(CommitError::NotRunning)) {
                Ok(Some(_)) => {
                    tracing::info!(%partition, old = claim.acked(), new = offset, why = "seek", "position set");
                    return Ok(());
                }
                Ok(None) => {}
                Err(source) => {
                    // the claim as it was goes on
                    self.registry.renew(&claim, Arc::new(claim.renewed()));
                    return Err(SeekError::NotStored { partition, offset, source });
                }
            }
        }
    }
}
