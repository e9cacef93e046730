//! Offsets in ZooKeeper: one node per partition, its data the next offset to consume in decimal.

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::commit::{self, Resolution};
use kafka_troupe_proto::group::{Owner, SessionNumber};
use kafka_troupe_proto::zk::{offset, paths, paths::GroupPaths, topic_ids};

use super::{CommitError, Stored, TopicNodes};
use crate::lease::SessionEpoch;
use crate::registry::{NO_OFFSET, NO_VERSION, OwnedPartition, Position, Unanswered};
use crate::supervise::Slot;
use crate::zk_session::{CreatePersistent, ReadData, SetData, ZkError, ZkSession, port::Stat};

/// How often a commit is tried against others that write the same node.
const ATTEMPTS: usize = 4;

/// What a write is for, and so what it does about a value that came meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// The larger of both is written.
    Commit,
    /// The other stands if it is a position that we made, whose answer was lost: to make it again would pass over what
    /// came to the log since (rule 8: `largest` is resolved once). So does a late commit of the owner before us, as
    /// long as we have no position. Else it is an offset that does not count any more, such as a commit of ours.
    Reset,
    /// Ours, whatever it is: somebody asked for it.
    Seek,
}

/// Reads and writes the group's offset nodes through the session actor.
pub struct OffsetStore {
    paths: GroupPaths,
    session: Slot<ZkSession>,
}

impl OffsetStore {
    /// The offsets of one group.
    pub fn new(paths: GroupPaths, session: Slot<ZkSession>) -> Self {
        Self { paths, session }
    }

    /// The stored offset and its node's version.
    ///
    /// # Errors
    /// [`CommitError::Store`] when it cannot be read, or is not a number; never taken for "no offset".
    pub async fn read(&self, partition: &TopicPartition) -> Result<Position, CommitError> {
        self.read_node(partition).await.map(|(position, _)| position)
    }

    /// The same, and whether it was stored for an earlier topic of this name. Offset and topic stand in one ensemble,
    /// which numbers all changes in one order.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn read_with_topic(
        &self,
        partition: &TopicPartition,
        nodes: TopicNodes,
    ) -> Result<Stored, CommitError> {
        // the offset first: a topic that is made again between the reads is then seen to be later
        let (mut position, stored_in) = self.read_node(partition).await?;
        let path = match nodes {
            TopicNodes::Kafka => paths::topic(&partition.topic),
            TopicNodes::Group => self.paths.topic(&partition.topic),
        };
        let since = match (self.data(path).await, nodes) {
            (Ok((_, stat)), TopicNodes::Kafka) => stat.czxid,
            (Ok((_, stat)), TopicNodes::Group) => topic_ids::since(stat.version, stat.mzxid),
            // deleted just now, or never noted: any that comes is later
            (Err(ZkError::NoNode(_)), _) => 0,
            (Err(error), _) => {
                return Err(CommitError::Store { partition: partition.clone(), why: error.to_string() });
            }
        };
        // 0 passes over nothing, and operators store it before a topic is made
        let may_be_earlier = position.offset != Some(0);
        position.earlier_topic = may_be_earlier && stored_in.is_some_and(|zxid| zxid < since);
        Ok(Stored { position, since: Some(since) })
    }

    /// The position, and the transaction that stored it.
    async fn read_node(&self, partition: &TopicPartition) -> Result<(Position, Option<i64>), CommitError> {
        let path = self.paths.offset(partition);
        let failed = |why: String| CommitError::Store { partition: partition.clone(), why };
        match self.data(path.clone()).await {
            Ok((data, stat)) => {
                let offset = offset::parse_offset(&path, &data).map_err(|error| failed(error.to_string()))?;
                Ok((Position { offset, version: stat.version, earlier_topic: false }, Some(stat.mzxid)))
            }
            Err(ZkError::NoNode(_)) => {
                Ok((Position { offset: None, version: NO_VERSION, earlier_topic: false }, None))
            }
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// Stores the acknowledged offset if it is ahead of what is stored; whether it wrote.
    ///
    /// # Errors
    /// See [`CommitError`].
    pub async fn commit(&self, partition: &OwnedPartition) -> Result<bool, CommitError> {
        // an offset of an earlier topic, written now, would look like one of the present
        if !partition.may_commit() {
            return Ok(false);
        }
        let (acked, committed) = (partition.acked(), partition.committed());
        let takes_back = matches!(partition.unanswered(), Some(Unanswered::Seek(_)));
        if acked < 0 || (acked <= committed && !takes_back) {
            return Ok(false);
        }
        self.write(partition, acked, Purpose::Commit).await.map(|_| true)
    }

    /// Stores a position made by `auto.offset.reset`, which may be lower than what is stored. Gives the position that
    /// counts: this one, or what was stored since the partition was claimed.
    ///
    /// # Errors
    /// See [`CommitError`].
    pub async fn reset(&self, partition: &OwnedPartition, offset: i64) -> Result<i64, CommitError> {
        self.write(partition, offset, Purpose::Reset).await
    }

    /// Stores a position that somebody asked for, whatever is stored.
    ///
    /// # Errors
    /// See [`CommitError`].
    pub async fn seek(&self, partition: &OwnedPartition, offset: i64) -> Result<(), CommitError> {
        self.write(partition, offset, Purpose::Seek).await.map(drop)
    }

    /// Gives what is stored then.
    async fn write(
        &self,
        partition: &OwnedPartition,
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
            if purpose == Purpose::Reset {
                partition.set_unanswered(Some(Unanswered::Reset(value)));
            }
            match self.put(partition.epoch, path.clone(), value, version).await {
                Ok(version) => {
                    partition.set_committed(value, version);
                    return Ok(value);
                }
                Err(ZkError::BadVersion(_) | ZkError::NodeExists(_) | ZkError::NoNode(_)) => {
                    partition.set_unanswered(unanswered);
                    let stored;
                    (stored, value, version) = self.resolve(partition, offset).await?;
                    match (purpose, stored) {
                        (Purpose::Reset, Some(stored)) if stands(partition, stored) => {
                            tracing::warn!(partition = %tp, stored, offset, why = "stored meanwhile", "no new position");
                            partition.set_committed(stored, version);
                            return Ok(stored);
                        }
                        // our own, which was taken for failed
                        (Purpose::Commit, Some(stored)) if unanswered != Some(Unanswered::Seek(stored)) => {}
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
fn stands(partition: &OwnedPartition, stored: i64) -> bool {
    let has_none = partition.acked() == NO_OFFSET && !partition.is_of_earlier_topic();
    has_none || partition.unanswered() == Some(Unanswered::Reset(stored))
}

/// The session actor is being restarted.
fn gone(path: &str) -> ZkError {
    ZkError::ConnectionLoss(crate::zk_session::ZkCall::new("ask the session actor for", path))
}
