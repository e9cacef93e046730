//! Where offsets are stored: in ZooKeeper, in Kafka, or in both (`offsets.storage`, `dual.commit.enabled`).
//!
//! In both, ZooKeeper is written first, for it is the fence: who has lost the partition writes nothing to Kafka either.
//! (The old consumer writes to Kafka first; readers take the larger, so that nobody sees the order.) What one store has
//! taken stays when the other fails, and the error names that one.
//!
//! A position that is lower than what is stored, by a reset or a seek, is stored when both hold it: else the larger one
//! would be read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use futures_util::future::join_all;
use kafka_troupe_proto::TopicPartition;
use tokio::time::Instant;

use super::kafka_store::KafkaStore;
use super::offsets_channel::FlushDeadline;
use super::zookeeper_store::{ZookeeperStore, has_none};
use super::{CommitError, CommitReset, Stored, TopicNodes};
use crate::fetcher_manager::BrokerAddress;
use crate::registry::{NO_OFFSET, OwnedPartition, Position, Unanswered};

/// What a write is for, and so what it does about a value that came meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The larger of both is written.
    Commit,
    /// The other stands if it is a position that we made, whose answer was lost: to make it again would pass over what
    /// came to the log since (rule 8: `largest` is resolved once). So does a late commit of the owner before us, as
    /// long as we have no position. Else it is an offset that does not count any more, such as a commit of ours.
    Reset {
        /// In whose place it is made.
        instead_of: i64,
    },
    /// Ours, whatever it is: somebody asked for it.
    Seek,
}

/// The stores in use.
pub(super) struct Stores {
    zookeeper: ZookeeperStore,
    /// None with `offsets.storage=zookeeper`.
    kafka: Option<KafkaStore>,
    /// Offsets are stored in ZooKeeper, alone or as well; topics are looked up there in any case.
    in_zookeeper: bool,
    /// Offsets written.
    pub(super) written: Written,
}

/// Offsets written, by store (the old consumer's meters `ZooKeeperCommitsPerSec` and `KafkaCommitsPerSec`).
#[derive(Default)]
pub(super) struct Written {
    pub(super) to_zookeeper: AtomicU64,
    pub(super) to_kafka: AtomicU64,
}

/// How the commit of one claim came out: whether something was written.
type Outcome = (Arc<OwnedPartition>, Result<bool, CommitError>);

impl Stores {
    pub(super) fn zookeeper(zookeeper: ZookeeperStore) -> Self {
        Self { zookeeper, kafka: None, in_zookeeper: true, written: Written::default() }
    }

    /// In Kafka, and with `dual` in ZooKeeper as well.
    pub(super) fn kafka(zookeeper: ZookeeperStore, kafka: KafkaStore, dual: bool) -> Self {
        Self { zookeeper, kafka: Some(kafka), in_zookeeper: dual, written: Written::default() }
    }

    /// Where the coordinator may be asked for.
    pub(super) fn set_brokers(&self, brokers: Vec<BrokerAddress>) {
        if let Some(kafka) = &self.kafka {
            kafka.set_brokers(brokers);
        }
    }

    /// The coordinator's address, while there is a connection to it.
    pub(super) fn coordinator(&self) -> Option<String> {
        self.kafka.as_ref()?.coordinator()
    }

    /// As long as this is held, what fails is tried again until then at most.
    pub(super) fn flush_until(&self, until: Instant) -> Option<FlushDeadline> {
        Some(self.kafka.as_ref()?.flush_until(until))
    }

    /// Where the group stopped: the larger of both stores.
    pub(super) async fn read(
        &self,
        partition: &TopicPartition,
        topics: Option<TopicNodes>,
    ) -> Result<Stored, CommitError> {
        let stored = self.read_zookeeper(partition, topics).await?;
        // Kafka after that, not beside it: a topic that is made again between the two is then seen to be later
        let in_kafka = match &self.kafka {
            Some(kafka) => kafka.read(partition).await?,
            None => None,
        };
        Ok(Stored { position: merged(stored.position, in_kafka), ..stored })
    }

    async fn read_zookeeper(
        &self,
        partition: &TopicPartition,
        topics: Option<TopicNodes>,
    ) -> Result<Stored, CommitError> {
        match (self.in_zookeeper, topics) {
            (true, Some(nodes)) => self.zookeeper.read_with_topic(partition, nodes).await,
            (true, None) => Ok(Stored { position: self.zookeeper.read(partition).await?, since: None }),
            (false, Some(nodes)) => {
                let since = self.zookeeper.since(partition, nodes).await?;
                Ok(Stored { position: Position::NONE, since: Some(since) })
            }
            (false, None) => Ok(Stored { position: Position::NONE, since: None }),
        }
    }

    /// Stores these offsets, each if it is ahead of what is stored; Kafka is always written.
    pub(super) async fn commit(&self, offsets: Vec<(i64, Arc<OwnedPartition>)>) -> Vec<Outcome> {
        let to_zookeeper = offsets.into_iter().map(async |(offset, claim)| {
            let written = match self.in_zookeeper {
                true => self.zookeeper.commit(&claim, offset).await,
                false => Ok(false),
            };
            self.written.to_zookeeper.fetch_add(u64::from(written == Ok(true)), Relaxed);
            (offset, claim, written)
        });
        // all of them first: they are one request to Kafka then
        let to_kafka = join_all(to_zookeeper).await.into_iter().map(async |(offset, claim, written)| {
            let (Ok(before), Some(kafka)) = (&written, &self.kafka) else { return (claim, written) };
            let written = kafka.commit(&claim, offset).await;
            self.written.to_kafka.fetch_add(u64::from(written == Ok(true)), Relaxed);
            (claim, written.map(|written| written | before))
        });
        join_all(to_kafka).await
    }

    /// What stands in Kafka although we have no position: a late commit of the owner before us.
    pub(super) async fn standing(&self, claim: &OwnedPartition) -> Result<Option<i64>, CommitError> {
        match &self.kafka {
            Some(kafka) if has_none(claim) => kafka.read(&claim.topic_partition).await,
            _ => Ok(None),
        }
    }

    /// Stores a position made by `auto.offset.reset`, which may be lower than what is stored. Gives the position that
    /// counts: this one, or one that stands already; also one that was made before in the same place and whose storing
    /// failed: it may be done yet, and what came to the log since would be passed over (rule 8:
    /// `largest` is resolved once). But one that is lower counts more: the log was truncated once more.
    pub(super) async fn reset(&self, asked: &CommitReset, stands: Option<i64>) -> Result<i64, CommitError> {
        let CommitReset { partition: claim, instead_of, topic, offset } = asked;
        let before = claim.made_before(*instead_of).filter(|before| before < offset);
        let Some(kafka) = &self.kafka else {
            return match before {
                // a commit that came between has found it
                Some(before) if before == claim.in_zookeeper() => Ok(before),
                _ => self.zookeeper.reset(asked, before.unwrap_or(*offset)).await,
            };
        };
        let mut position = stands.unwrap_or(before.unwrap_or(*offset));
        if self.in_zookeeper {
            let in_zookeeper = self.zookeeper.reset(asked, position).await?;
            position = in_zookeeper.max(stands.unwrap_or(NO_OFFSET));
        }
        let made = Unanswered::Reset { instead_of: *instead_of, made: position };
        claim.set_unanswered(*topic, Some(made));
        kafka.reset(asked, position).await?;
        Ok(position)
    }

    /// Stores a position that somebody asked for, whatever is stored: `sought` is to take the place of `claim`.
    pub(super) async fn seek(
        &self,
        claim: &Arc<OwnedPartition>,
        sought: &OwnedPartition,
        offset: i64,
    ) -> Result<(), CommitError> {
        if self.in_zookeeper {
            self.zookeeper.seek(claim, sought, offset).await?;
        }
        match &self.kafka {
            Some(kafka) => kafka.seek(claim, sought, offset).await,
            None => Ok(()),
        }
    }
}

/// What both stores say. Where ZooKeeper's offset is of an earlier topic of the name, the same one in Kafka is too, and
/// another one is taken for one of the present topic: brokers from 0.10.2 drop what is stored for a deleted one.
fn merged(in_zookeeper: Position, in_kafka: Option<i64>) -> Position {
    match in_zookeeper {
        Position { earlier_topic: true, offset, .. } if in_kafka.is_none() || in_kafka == offset => {
            Position { in_kafka, ..in_zookeeper }
        }
        Position { earlier_topic: true, version, .. } => Position::of(None, in_kafka, version),
        Position { offset, version, .. } => Position::of(offset, in_kafka, version),
    }
}
