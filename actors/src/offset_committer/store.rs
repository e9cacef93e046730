//! Offsets in ZooKeeper: one node per partition, its data the next offset to consume in decimal.

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::commit::{self, Resolution};
use kafka_troupe_proto::group::{Owner, SessionNumber};
use kafka_troupe_proto::zk::{offset, paths::GroupPaths};

use super::CommitError;
use crate::lease::SessionEpoch;
use crate::registry::{NO_VERSION, OwnedPartition, Position};
use crate::supervise::Slot;
use crate::zk_session::{CreatePersistent, ReadData, SetData, ZkError, ZkSession, port::Stat};

/// How often a commit is tried against others that write the same node.
const ATTEMPTS: usize = 4;

/// What a write is for, and so what it does about a value that came meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// The larger of both is written.
    Commit,
    /// The other stands: it is our own, whose answer was lost, or a late commit of the owner before us. To write over
    /// our own would pass over what came to the log since (rule 8: `largest` is resolved once).
    Reset,
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
        let path = self.paths.offset(partition);
        let failed = |why: String| CommitError::Store { partition: partition.clone(), why };
        match self.data(path.clone()).await {
            Ok((data, stat)) => {
                let offset = offset::parse_offset(&path, &data).map_err(|error| failed(error.to_string()))?;
                Ok(Position { offset, version: stat.version })
            }
            Err(ZkError::NoNode(_)) => Ok(Position { offset: None, version: NO_VERSION }),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// Stores the acknowledged offset if it is ahead of what is stored; whether it wrote.
    ///
    /// # Errors
    /// See [`CommitError`].
    pub async fn commit(&self, partition: &OwnedPartition) -> Result<bool, CommitError> {
        let acked = partition.acked();
        if acked < 0 || acked <= partition.committed() {
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
        for _ in 0..ATTEMPTS {
            if !partition.is_leased() {
                return Err(CommitError::Fenced(tp.clone()));
            }
            match self.put(partition.epoch, path.clone(), value, version).await {
                Ok(version) => {
                    partition.set_committed(value, version);
                    return Ok(value);
                }
                Err(ZkError::BadVersion(_) | ZkError::NodeExists(_) | ZkError::NoNode(_)) => {
                    let stored;
                    (stored, value, version) = self.resolve(partition, offset).await?;
                    if purpose == Purpose::Reset
                        && let Some(stored) = stored
                    {
                        tracing::warn!(partition = %tp, stored, offset, why = "stored meanwhile", "no new position");
                        partition.set_committed(stored, version);
                        return Ok(stored);
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

/// The session actor is being restarted.
fn gone(path: &str) -> ZkError {
    ZkError::ConnectionLoss(crate::zk_session::ZkCall::new("ask the session actor for", path))
}
