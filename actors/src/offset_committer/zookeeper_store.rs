//! Offsets in ZooKeeper: one node per partition, its data the next offset to consume in decimal.

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::commit::{self, Resolution};
use kafka_troupe_proto::group::{Owner, SessionNumber};
use kafka_troupe_proto::zk::{offset, paths, paths::GroupPaths, topic_ids};

use super::stores::Purpose;
use super::{CommitError, CommitReset, Stored, TopicNodes};
use crate::lease::SessionEpoch;
use crate::registry::{NO_OFFSET, NO_VERSION, OwnedPartition, Position, Unanswered};
use crate::supervise::Slot;
use crate::zk_session::{CreatePersistent, ReadData, SetData, ZkError, ZkSession, port::Stat};

/// How often a commit is tried against others that write the same node.
const ATTEMPTS: usize = 4;

/// Reads and writes the group's offset nodes through the session actor.
pub(super) struct ZookeeperStore {
    paths: GroupPaths,
    session: Slot<ZkSession>,
}

impl ZookeeperStore {
    /// The offsets of one group.
    pub(super) fn new(paths: GroupPaths, session: Slot<ZkSession>) -> Self {
        Self { paths, session }
    }

    /// The stored offset and its node's version. One that cannot be read, or is not a number, is never taken for "no
    /// offset".
    pub(super) async fn read(&self, partition: &TopicPartition) -> Result<Position, CommitError> {
        self.read_node(partition).await.map(|(position, _)| position)
    }

    /// The same, and whether it was stored for an earlier topic of this name. Offset and topic stand in one ensemble,
    /// which numbers all changes in one order.
    pub(super) async fn read_with_topic(
        &self,
        partition: &TopicPartition,
        nodes: TopicNodes,
    ) -> Result<Stored, CommitError> {
        // the offset first: a topic that is made again between the reads is then seen to be later
        let (mut position, stored_in) = self.read_node(partition).await?;
        let since = self.since(partition, nodes).await?;
        // 0 passes over nothing, and operators store it before a topic is made
        let may_be_earlier = position.offset != Some(0);
        position.earlier_topic = may_be_earlier && stored_in.is_some_and(|zxid| zxid < since);
        Ok(Stored { position, since: Some(since) })
    }

    /// The transaction since which the present topic stands under its name; 0 without a node.
    pub(super) async fn since(
        &self,
        partition: &TopicPartition,
        nodes: TopicNodes,
    ) -> Result<i64, CommitError> {
        let path = match nodes {
            TopicNodes::Kafka => paths::topic(&partition.topic),
            TopicNodes::Group => self.paths.topic(&partition.topic),
        };
        match (self.data(path).await, nodes) {
            (Ok((_, stat)), TopicNodes::Kafka) => Ok(stat.czxid),
            (Ok((_, stat)), TopicNodes::Group) => Ok(topic_ids::since(stat.version, stat.mzxid)),
            // deleted just now, or never noted: any that comes is later
            (Err(ZkError::NoNode(_)), _) => Ok(0),
            (Err(error), _) => {
                Err(CommitError::Store { partition: partition.clone(), why: error.to_string() })
            }
        }
    }

    /// The position, and the transaction that stored it.
    async fn read_node(&self, partition: &TopicPartition) -> Result<(Position, Option<i64>), CommitError> {
        let path = self.paths.offset(partition);
        let failed = |why: String| CommitError::Store { partition: partition.clone(), why };
        match self.data(path.clone()).await {
            Ok((data, stat)) => {
                let offset = offset::parse_offset(&path, &data).map_err(|error| failed(error.to_string()))?;
                Ok((Position::of(offset, None, stat.version), Some(stat.mzxid)))
            }
            Err(ZkError::NoNode(_)) => Ok((Position::NONE, None)),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// Stores an offset if it is ahead of what is stored; whether it wrote.
    pub(super) async fn commit(&self, partition: &OwnedPartition, offset: i64) -> Result<bool, CommitError> {
        // an offset of an earlier topic, written now, would look like one of the present
        if !partition.may_commit() {
            return Ok(false);
        }
        let takes_back = matches!(partition.unanswered(), Some(Unanswered::Seek(_)));
        let Some(offset) = commit::to_write(offset, partition.in_zookeeper(), takes_back) else {
            return Ok(false);
        };
        self.write(partition, partition.topic_number(), offset, Purpose::Commit).await.map(|_| true)
    }

    /// Stores a position made by `auto.offset.reset`, which may be lower than what is stored. Gives the position that
    /// counts: this one, or what was stored since the partition was claimed.
    pub(super) async fn reset(&self, asked: &CommitReset, offset: i64) -> Result<i64, CommitError> {
        let purpose = Purpose::Reset { instead_of: asked.instead_of };
        self.write(&asked.partition, asked.topic, offset, purpose).await
    }

    /// Stores a position that somebody asked for, whatever is stored; once more where it is not known whether it was
    /// done. `sought` is to take the place of `claim`, which is told when the topic is made again.
    pub(super) async fn seek(
        &self,
        claim: &OwnedPartition,
        sought: &OwnedPartition,
        offset: i64,
    ) -> Result<(), CommitError> {
        let seek = || self.write(sought, claim.topic_number(), offset, Purpose::Seek);
        match seek().await {
            Err(CommitError::Store { .. }) => seek().await.map(drop),
            outcome => outcome.map(drop),
        }
    }

    /// Gives what is stored then. Nothing of an earlier topic than the present one is written.
    async fn write(
        &self,
        partition: &OwnedPartition,
        topic: u64,
        offset: i64,
        purpose: Purpose,
    ) -> Result<i64, CommitError> {
        let tp = &partition.topic_partition;
        let path = self.paths.offset(tp);
        let (mut value, mut version) = (offset, partition.offset_version());
        let unanswered = partition.unanswered();
        for _ in 0..ATTEMPTS {
            if !partition.is_leased() {
                return Err(CommitError::Fenced(tp.clone()));
            }
            if partition.topic_number() != topic {
                let why = "its topic was made again meanwhile".to_owned();
                return Err(CommitError::Store { partition: tp.clone(), why });
            }
            if let Purpose::Reset { instead_of } = purpose {
                partition.set_unanswered(topic, Some(Unanswered::Reset { instead_of, made: value }));
            }
            match self.put(partition.epoch, path.clone(), value, version).await {
                Ok(version) => {
                    partition.set_in_zookeeper(value, version);
                    return Ok(value);
                }
                Err(ZkError::BadVersion(_) | ZkError::NodeExists(_) | ZkError::NoNode(_)) => {
                    partition.set_unanswered(topic, unanswered);
                    let stored;
                    (stored, value, version) = self.resolve(partition, offset).await?;
                    match (purpose, stored) {
                        (Purpose::Reset { instead_of }, Some(stored))
                            if stands(partition, instead_of, stored, offset) =>
                        {
                            tracing::warn!(partition = %tp, stored, offset, why = "stored meanwhile", "no new position");
                            partition.set_in_zookeeper(stored, version);
                            return Ok(stored);
                        }
                        // else it may be of a seek of ours which was taken for failed, of the last or one before
                        (Purpose::Commit, Some(_)) if !matches!(unanswered, Some(Unanswered::Seek(_))) => {}
                        _ => value = offset,
                    }
                }
                Err(error) => {
                    return Err(CommitError::Store { partition: tp.clone(), why: error.to_string() });
                }
            }
        }
        let why = format!("{path}: others keep writing it");
        Err(CommitError::Store { partition: tp.clone(), why })
    }

    async fn put(
        &self,
        session: SessionEpoch,
        path: String,
        value: i64,
        version: i32,
    ) -> Result<i32, ZkError> {
        let data = offset::format_offset(value).into();
        if version == NO_VERSION {
            self.session
                .send(CreatePersistent { session, path: path.clone(), data })
                .await
                .map_err(|_| gone(&path))??;
            return Ok(0);
        }
        let set = SetData { session, path: path.clone(), data, version };
        let stat = self.session.send(set).await.map_err(|_| gone(&path))??;
        Ok(stat.version)
    }

    /// Somebody else wrote the node: what is stored, and what to write with which version, if the partition is still
    /// ours.
    async fn resolve(
        &self,
        partition: &OwnedPartition,
        ours: i64,
    ) -> Result<(Option<i64>, i64, i32), CommitError> {
        let tp = &partition.topic_partition;
        // the offset first, the owner THEN: else a write of the next owner could be overwritten (rule 10)
        let stored = self.read(tp).await?;
        let owner = self.owner(tp).await?;
        let known = (stored.offset, stored.version);
        match commit::resolve(known, owner.as_ref(), partition.session, &partition.thread, ours) {
            Resolution::Write { value, version } => Ok((stored.offset, value, version)),
            Resolution::Lost => {
                let why = match owner {
                    Some(owner) => format!("{} of session {} owns it", owner.thread, owner.session),
                    None => "nobody owns it".to_owned(),
                };
                Err(CommitError::Lost { partition: tp.clone(), why })
            }
        }
    }

    async fn owner(&self, tp: &TopicPartition) -> Result<Option<Owner>, CommitError> {
        match self.data(self.paths.owner(tp)).await {
            Ok((data, stat)) => Ok(Some(Owner {
                session: SessionNumber(stat.ephemeral_owner),
                thread: String::from_utf8_lossy(&data).into_owned(),
            })),
            Err(ZkError::NoNode(_)) => Ok(None),
            Err(error) => Err(CommitError::Store { partition: tp.clone(), why: error.to_string() }),
        }
    }

    async fn data(&self, path: String) -> Result<(Vec<u8>, Stat), ZkError> {
        let read = ReadData { path: path.clone(), watch: false };
        self.session.send(read).await.map_err(|_| gone(&path))?
    }
}

/// Whether what was stored meanwhile counts more than a position that is made now.
fn stands(partition: &OwnedPartition, instead_of: i64, stored: i64, offset: i64) -> bool {
    has_none(partition) || (partition.made_before(instead_of) == Some(stored) && stored <= offset)
}

/// Whether it has no position yet, not even one that does not count.
pub(super) fn has_none(partition: &OwnedPartition) -> bool {
    partition.acked() == NO_OFFSET && !partition.is_of_earlier_topic()
}

/// The session actor is being restarted.
fn gone(path: &str) -> ZkError {
    ZkError::ConnectionLoss(crate::zk_session::ZkCall::new("ask the session actor for", path))
}
