//! The offsets that a group has in ZooKeeper.

use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::zk::offset::{format_offset, parse_offset};

use super::{AdminError, ZooKeeperAdmin, named};
use crate::group_view::nodes::each;
use crate::group_view::reading::partitions_below;
use crate::zk_session::ZkError;

/// A node below a group's `offsets`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OffsetNode {
    /// The partition.
    pub key: TopicPartition,
    /// The next offset to consume (-1 where somebody wrote that), or what stands there in its place.
    pub offset: Result<i64, String>,
    /// The node's version, for [`ZooKeeperAdmin::set_offset`].
    pub version: i32,
}

impl ZooKeeperAdmin {
    /// Every offset that the group has in ZooKeeper, by topic and number.
    ///
    /// # Errors
    /// ZooKeeper does not answer, or the name is none.
    pub async fn offsets(&self, group: &str) -> Result<Vec<OffsetNode>, AdminError> {
        let paths = self.group(group)?;
        let nodes = self.nodes(group);
        let (mut keys, errors) = partitions_below(&nodes, &paths.offsets()).await;
        if let Some(error) = errors.into_iter().next() {
            return Err(error.into());
        }
        keys.sort_unstable();
        let read = each(keys, async |key: TopicPartition| {
            let path = paths.offset(&key);
            let Some((data, stat)) = nodes.data(&path).await? else { return Ok(None) };
            let offset = read_offset(&path, &data);
            Ok::<_, ZkError>(Some(OffsetNode { key, offset, version: stat.version }))
        });
        let read = self.client.unless_silent(paths.root(), read).await?;
        let read: Result<Vec<_>, ZkError> = read.into_iter().collect();
        Ok(read?.into_iter().flatten().collect())
    }

    /// Writes an offset where nobody has since it was looked at. `version`: what [`offsets`](Self::offsets) said of its
    /// node; `None`: there is none, it is made, with its parents.
    ///
    /// # Errors
    /// [`AdminError::Changed`] when it is otherwise by now; ZooKeeper does not answer, or a name is none.
    pub async fn set_offset(
        &self,
        group: &str,
        key: &TopicPartition,
        offset: i64,
        version: Option<i32>,
    ) -> Result<(), AdminError> {
        let path = self.group(group)?.offset(key);
        named("topic", &key.topic)?;
        let text = format_offset(offset);
        let wrote = match version {
            Some(_) => self.client.set(&path, text.as_bytes(), version).await.map(drop),
            None => self.client.create(&path, text.as_bytes()).await,
        };
        match wrote {
            Ok(()) => Ok(()),
            Err(error) if self.stands_there(&error, &path, &text, version).await? => Ok(()),
            Err(ZkError::BadVersion(_) | ZkError::NodeExists(_) | ZkError::NoNode(_)) => {
                Err(AdminError::Changed { group: group.to_owned(), key: key.clone() })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a write whose answer was lost has run: the very next version holds what it wrote.
    async fn stands_there(
        &self,
        error: &ZkError,
        path: &str,
        text: &str,
        version: Option<i32>,
    ) -> Result<bool, AdminError> {
        let may_have_run = error.is_in_doubt() || matches!(error, ZkError::NodeExists(_));
        if !may_have_run {
            return Ok(false);
        }
        let now = self.nodes("").data(path).await?;
        let next = version.map_or(0, |version| version.wrapping_add(1));
        Ok(now.is_some_and(|(data, stat)| data == text.as_bytes() && stat.version == next))
    }

    /// Writes an offset, whatever is there; the node is made, with its parents, where there is none.
    ///
    /// # Errors
    /// ZooKeeper does not answer, or a name is none.
    pub async fn put_offset(&self, group: &str, key: &TopicPartition, offset: i64) -> Result<(), AdminError> {
        let path = self.group(group)?.offset(key);
        named("topic", &key.topic)?;
        let text = format_offset(offset);
        match self.client.set(&path, text.as_bytes(), None).await {
            Err(ZkError::NoNode(_)) => {}
            set => return Ok(set.map(drop)?),
        }
        match self.client.create(&path, text.as_bytes()).await {
            Err(ZkError::NodeExists(_)) => {
                Ok(self.client.set(&path, text.as_bytes(), None).await.map(drop)?)
            }
            made => Ok(made?),
        }
    }
}

fn read_offset(path: &str, data: &[u8]) -> Result<i64, String> {
    match parse_offset(path, data) {
        Ok(Some(offset)) => Ok(offset),
        // a negative number: it was read, so it is one
        Ok(None) => Ok(str::from_utf8(data).ok().and_then(|text| text.parse().ok()).unwrap_or(-1)),
        Err(error) => Err(error.to_string()),
    }
}
