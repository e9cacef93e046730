//! Offsets in Kafka, kept by the group's coordinator.
//!
//! Nothing fences them but the lease: see [`offsets_channel`](super::offsets_channel). So what is written is never less
//! than what is stored, or may be; and every commit writes all, also what is unchanged, for a broker drops what was not
//! written for `offsets.retention.minutes` (KAFKA-1510).

use std::sync::Arc;

use kafka_troupe_proto::TopicPartition;
use tokio::time::Instant;

use super::offsets_channel::{Commit, FlushDeadline, OffsetsChannel};
use super::stores::Purpose;
use super::{CommitError, CommitReset};
use crate::fetcher_manager::BrokerAddress;
use crate::registry::OwnedPartition;

/// Reads and writes the group's offsets through the channel.
pub(super) struct KafkaStore {
    channel: OffsetsChannel,
}

impl KafkaStore {
    pub(super) fn new(channel: OffsetsChannel) -> Self {
        Self { channel }
    }

    /// Where the coordinator may be asked for.
    pub(super) fn set_brokers(&self, brokers: Vec<BrokerAddress>) {
        self.channel.set_brokers(brokers);
    }

    /// The coordinator's address, while there is a connection to it.
    pub(super) fn coordinator(&self) -> Option<String> {
        self.channel.coordinator()
    }

    /// As long as this is held, what fails is tried again until then at most.
    pub(super) fn flush_until(&self, until: Instant) -> FlushDeadline {
        self.channel.flush_until(until)
    }

    /// The stored offset.
    pub(super) async fn read(&self, partition: &TopicPartition) -> Result<Option<i64>, CommitError> {
        self.channel.read(partition).await
    }

    /// Stores an offset, or the larger one that is stored; whether it wrote.
    pub(super) async fn commit(&self, claim: &Arc<OwnedPartition>, offset: i64) -> Result<bool, CommitError> {
        // one that was made in this place may stand, and would be taken back
        let may_stand = claim.made_before(offset).is_some_and(|made| made > offset);
        let offset = claim.raised_for_kafka(offset);
        if offset < 0 || may_stand || !claim.may_commit() {
            return Ok(false);
        }
        self.write(claim, claim.topic_number(), offset, Purpose::Commit).await?;
        claim.set_in_kafka(offset);
        Ok(true)
    }

    /// Stores a position that was made, whatever is stored.
    pub(super) async fn reset(&self, asked: &CommitReset, offset: i64) -> Result<(), CommitError> {
        let CommitReset { partition: claim, instead_of, topic, .. } = asked;
        self.write(claim, *topic, offset, Purpose::Reset { instead_of: *instead_of }).await?;
        claim.set_in_kafka(offset);
        Ok(())
    }

    /// Stores one that somebody asked for: `sought` is to take the place of `claim`.
    pub(super) async fn seek(
        &self,
        claim: &Arc<OwnedPartition>,
        sought: &OwnedPartition,
        offset: i64,
    ) -> Result<(), CommitError> {
        // of these two only the claim is told when the topic is made again
        self.write(claim, sought.topic_number(), offset, Purpose::Seek).await?;
        sought.set_in_kafka(offset);
        Ok(())
    }

    async fn write(
        &self,
        claim: &Arc<OwnedPartition>,
        topic: u64,
        offset: i64,
        purpose: Purpose,
    ) -> Result<(), CommitError> {
        self.channel.commit(Commit::new(claim, topic, offset, purpose)).await
    }
}
