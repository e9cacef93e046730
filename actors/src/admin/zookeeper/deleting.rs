//! Deleting groups that nobody uses, while somebody may begin to.

use std::collections::BTreeSet;

use kafka_troupe_proto::zk::paths::GroupPaths;

use super::{AdminError, ZooKeeperAdmin, named};
use crate::group_view::nodes::{Nodes, each};
use crate::zk_session::ZkError;

/// A node to delete.
struct Node {
    path: String,
    version: i32,
}

/// Attempts against nodes that come while others are deleted.
const ATTEMPTS: usize = 8;

impl ZooKeeperAdmin {
    /// Deletes all that the group has in ZooKeeper.
    ///
    /// It is looked through first. Then `ids` goes, which no server deletes while a member is registered; then the rest,
    /// each node only as it was looked at: what a member that comes meanwhile writes is never deleted.
    ///
    /// # Errors
    /// [`AdminError::NoSuchGroup`]; [`AdminError::Active`] while a member is registered (then nothing is deleted);
    /// [`AdminError::Used`] when a member came while it was deleted; ZooKeeper does not answer.
    pub async fn delete_group(&self, group: &str) -> Result<(), AdminError> {
        let paths = self.group(group)?;
        if !self.group_exists(group).await? {
            return Err(AdminError::NoSuchGroup { group: group.to_owned() });
        }
        let seen = self.below(paths.root()).await?;
        self.delete_ids(group, &paths).await?;
        self.delete_seen(group, &paths, seen).await
    }

    /// Deletes what the group has of one topic; and the group whole, if nothing of another topic is left of it.
    ///
    /// # Errors
    /// As [`delete_group`](Self::delete_group); [`AdminError::NothingOfTopic`], and then the group stays as it is.
    pub async fn delete_group_topic(&self, group: &str, topic: &str) -> Result<(), AdminError> {
        let paths = self.group(group)?;
        let topic = named("topic", topic)?;
        if !self.group_exists(group).await? {
            return Err(AdminError::NoSuchGroup { group: group.to_owned() });
        }
        self.check_idle(group).await?;
        let topics = self.topics(&paths).await?;
        // a group without any topic is no group of this one
        if !topics.is_empty() && topics.iter().all(|it| it == topic) {
            return self.delete_group(group).await;
        }
        if !topics.contains(topic) && self.client.stat(&paths.topic(topic)).await?.is_none() {
            return Err(AdminError::NothingOfTopic { group: group.to_owned(), topic: topic.to_owned() });
        }
        for root in [paths.owner_topic(topic), paths.offsets_topic(topic), paths.topic(topic)] {
            let seen = self.below(&root).await?;
            self.check_idle(group).await?;
            self.delete_seen(group, &paths, seen).await?;
        }
        Ok(())
    }

    /// The topics of which the group has something.
    async fn topics(&self, paths: &GroupPaths) -> Result<BTreeSet<String>, AdminError> {
        let nodes = self.nodes("");
        let mut topics = BTreeSet::new();
        for root in [paths.owners(), paths.offsets()] {
            topics.extend(nodes.children(&root).await?);
        }
        Ok(topics)
    }

    async fn check_idle(&self, group: &str) -> Result<(), AdminError> {
        match self.members(group).await? {
            members if members.is_empty() => Ok(()),
            members => Err(AdminError::Active { group: group.to_owned(), members }),
        }
    }

    /// The guard: it cannot be deleted while a member is registered.
    async fn delete_ids(&self, group: &str, paths: &GroupPaths) -> Result<(), AdminError> {
        for _ in 0..ATTEMPTS {
            match self.client.delete(&paths.ids(), None).await {
                // one that has gone again is no member
                Err(ZkError::NotEmpty(_)) => self.check_idle(group).await?,
                deleted => return Ok(deleted?),
            }
        }
        Err(self.used(group, &paths.ids()))
    }

    /// A node and all below it, children before their parents.
    async fn below(&self, root: &str) -> Result<Vec<Node>, AdminError> {
        let nodes = self.nodes("");
        let mut found = Vec::new();
        let mut level = vec![root.to_owned()];
        while !level.is_empty() {
            let read = each(level, async |path: String| look(&nodes, path).await);
            let read = self.client.unless_silent(root, read).await?;
            level = Vec::new();
            for node in read {
                let Some((node, children)) = node? else { continue };
                level.extend(children.iter().map(|child| format!("{}/{child}", node.path)));
                found.push(node);
            }
        }
        found.reverse();
        Ok(found)
    }

    async fn delete_seen(&self, group: &str, paths: &GroupPaths, seen: Vec<Node>) -> Result<(), AdminError> {
        // gone before, by a guard of its own
        for node in seen.iter().filter(|node| node.path != paths.ids()) {
            match self.client.delete(&node.path, Some(node.version)).await {
                Ok(()) => {}
                Err(ZkError::NotEmpty(_) | ZkError::BadVersion(_)) => {
                    return Err(self.used(group, &node.path));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn used(&self, group: &str, path: &str) -> AdminError {
        AdminError::Used { group: group.to_owned(), path: path.to_owned() }
    }
}

async fn look(nodes: &Nodes, path: String) -> Result<Option<(Node, Vec<String>)>, ZkError> {
    let Some((_, stat)) = nodes.data(&path).await? else { return Ok(None) };
    let children = nodes.children(&path).await?;
    Ok(Some((Node { path, version: stat.version }, children)))
}
