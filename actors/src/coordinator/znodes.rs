//! The group's own nodes, through the session actor.

use std::collections::BTreeSet;

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::{ClaimAnswer, Owner, SessionNumber};
use kafka_troupe_proto::zk::ConsumerThreadId;
use kafka_troupe_proto::zk::paths::GroupPaths;

use crate::supervise::Slot;
use crate::zk_session::{
    Claim, CreateEphemeral, CreatePersistent, Delete, ReadChildren, ReadData, Register, Registered,
    SessionEpoch, SetData, Unwatch, ZkCall, ZkError, ZkSession, port::Stat,
};

/// The operations on owner and registration nodes that the effects are made of.
#[derive(Clone)]
pub(super) struct Znodes {
    pub(super) paths: GroupPaths,
    session: Slot<ZkSession>,
}

impl Znodes {
    pub(super) fn new(paths: GroupPaths, session: Slot<ZkSession>) -> Self {
        Self { paths, session }
    }

    /// The partition whose owner node this is.
    pub(super) fn owner_partition(&self, path: &str) -> Option<TopicPartition> {
        let rest = path.strip_prefix(&self.paths.owners())?.strip_prefix('/')?;
        let (topic, partition) = rest.split_once('/')?;
        Some(TopicPartition::new(topic, partition.parse().ok()?))
    }

    pub(super) async fn register(&self, consumer_id: &str, record: String) -> Result<Registered, ZkError> {
        let path = self.paths.id(consumer_id);
        let register = Register { path: path.clone(), data: record.into_bytes() };
        self.session.send(register).await.unwrap_or_else(|_| Err(gone("register", &path)))
    }

    /// A node that is not there has none.
    pub(super) async fn children(&self, path: &str, watch: bool) -> Result<Vec<String>, ZkError> {
        let read = ReadChildren { path: path.to_owned(), watch };
        match self.session.send(read).await.unwrap_or_else(|_| Err(gone("read children of", path))) {
            Err(ZkError::NoNode(_)) => Ok(Vec::new()),
            read => read,
        }
    }

    /// The partitions that have an owner node, of the topics that are wanted.
    pub(super) async fn owned(
        &self,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<BTreeSet<TopicPartition>, ZkError> {
        let mut found = BTreeSet::new();
        for topic in self.children(&self.paths.owners(), false).await? {
            if wanted(&topic) {
                let nodes = self.children(&self.paths.owner_topic(&topic), false).await?;
                let numbers = nodes.iter().filter_map(|node| node.parse().ok());
                found.extend(numbers.map(|partition| TopicPartition::new(topic.as_str(), partition)));
            }
        }
        Ok(found)
    }

    pub(super) async fn data(&self, path: &str, watch: bool) -> Result<(Vec<u8>, Stat), ZkError> {
        let read = ReadData { path: path.to_owned(), watch };
        self.session.send(read).await.unwrap_or_else(|_| Err(gone("read", path)))
    }

    pub(super) async fn create(
        &self,
        session: SessionEpoch,
        path: &str,
        data: String,
    ) -> Result<(), ZkError> {
        let create = CreatePersistent { session, path: path.to_owned(), data: data.into_bytes() };
        self.session.send(create).await.unwrap_or_else(|_| Err(gone("create", path)))
    }

    pub(super) async fn set(
        &self,
        session: SessionEpoch,
        path: &str,
        data: String,
        version: i32,
    ) -> Result<(), ZkError> {
        let set = SetData { session, path: path.to_owned(), data: data.into_bytes(), version };
        self.session.send(set).await.unwrap_or_else(|_| Err(gone("set", path))).map(|_| ())
    }

    pub(super) fn unwatch(&self, path: String) {
        self.session.do_send(Unwatch { path });
    }

    /// Who holds the partition now.
    pub(super) async fn owner(&self, tp: &TopicPartition, watch: bool) -> Result<Option<Owner>, ZkError> {
        match self.data(&self.paths.owner(tp), watch).await {
            Ok((data, stat)) => Ok(Some(owner(&data, &stat))),
            Err(ZkError::NoNode(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn claim(
        &self,
        session: SessionEpoch,
        tp: &TopicPartition,
        thread: &ConsumerThreadId,
    ) -> ClaimAnswer {
        let path = self.paths.owner(tp);
        let create = CreateEphemeral { session, path: path.clone(), data: thread.as_str().into() };
        match self.session.send(create).await.unwrap_or_else(|_| Err(gone("create", &path))) {
            Ok(Claim::Created { .. }) => ClaimAnswer::Created,
            Ok(Claim::Exists { data, stat }) => ClaimAnswer::Held(owner(&data, &stat)),
            Err(error) => ClaimAnswer::Unknown(error.to_string()),
        }
    }

    /// Sets a node that is ours to another of our threads, by version: the partition is never without an owner.
    pub(super) async fn rethread(
        &self,
        epoch: SessionEpoch,
        session: SessionNumber,
        tp: &TopicPartition,
        thread: &ConsumerThreadId,
    ) -> Result<ClaimAnswer, ZkError> {
        let path = self.paths.owner(tp);
        let (_, stat) = self.data(&path, false).await?;
        if stat.ephemeral_owner != session.0 {
            // another's is watched, as by a claim
            let (data, stat) = self.data(&path, true).await?;
            return Ok(ClaimAnswer::Held(owner(&data, &stat)));
        }
        let data = thread.as_str().into();
        let set = SetData { session: epoch, path: path.clone(), data, version: stat.version };
        self.session.send(set).await.unwrap_or_else(|_| Err(gone("set", &path)))?;
        Ok(ClaimAnswer::Created)
    }

    /// Deletes an owner node if it is that session's; another's is left alone.
    pub(super) async fn release(
        &self,
        epoch: SessionEpoch,
        session: SessionNumber,
        tp: &TopicPartition,
    ) -> Result<(), ZkError> {
        let path = self.paths.owner(tp);
        self.unwatch(path.clone());
        match self.data(&path, false).await {
            Ok((_, stat)) if stat.ephemeral_owner == session.0 => {
                let delete = Delete { session: epoch, path: path.clone(), version: Some(stat.version) };
                self.session.send(delete).await.unwrap_or_else(|_| Err(gone("delete", &path)))
            }
            Ok(_) | Err(ZkError::NoNode(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn owner(data: &[u8], stat: &Stat) -> Owner {
    Owner { session: SessionNumber(stat.ephemeral_owner), thread: String::from_utf8_lossy(data).into_owned() }
}

/// The session actor is being restarted.
pub(crate) fn gone(operation: &'static str, path: &str) -> ZkError {
    ZkError::ConnectionLoss(ZkCall::new(operation, path))
}
