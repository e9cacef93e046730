//! Nodes and what can be done with them, as one server sees them.

use std::collections::BTreeMap;

use crate::clock;
use crate::zk_session::port::{NodeChange, Stat};
use crate::zk_session::{ZkCall, ZkError};

/// A node as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Znode {
    /// What it holds.
    pub data: Vec<u8>,
    /// Versions and owner.
    pub stat: Stat,
    /// Transaction that last created or deleted a child.
    pub(super) children_zxid: i64,
}

/// All nodes by their full path; the root always is.
#[derive(Clone, Default)]
pub(super) struct Tree {
    nodes: BTreeMap<String, Znode>,
    zxid: i64,
}

/// Nodes that a transaction changed, in order.
pub(super) type Changes = Vec<(String, NodeChange)>;

impl Tree {
    pub(super) fn get(&self, full: &str) -> Option<&Znode> {
        self.nodes.get(full)
    }

    pub(super) fn exists(&self, full: &str) -> bool {
        full == "/" || self.nodes.contains_key(full)
    }

    pub(super) fn stat(&self, full: &str) -> Option<Stat> {
        let root = (full == "/").then(Stat::default);
        self.nodes.get(full).map(|node| node.stat).or(root)
    }

    pub(super) fn children(&self, full: &str) -> Vec<String> {
        let prefix = if full == "/" { "/".to_owned() } else { format!("{full}/") };
        let below = self.nodes.range(prefix.clone()..).take_while(|(path, _)| path.starts_with(&prefix));
        let names = below.filter_map(|(path, _)| path.strip_prefix(&prefix));
        names.filter(|name| !name.is_empty() && !name.contains('/')).map(str::to_owned).collect()
    }

    fn next_zxid(&mut self) -> i64 {
        self.zxid += 1;
        self.zxid
    }

    pub(super) fn create(
        &mut self,
        full: &str,
        data: Vec<u8>,
        owner: i64,
        call: ZkCall,
    ) -> Result<Changes, ZkError> {
        if self.exists(full) {
            return Err(ZkError::NodeExists(call));
        }
        if !self.exists(parent(full)) {
            return Err(ZkError::NoNode(call));
        }
        let zxid = self.next_zxid();
        let time = clock::millis(clock::now());
        let stat = Stat { ctime: time, mtime: time, ..Stat::new(zxid, zxid, 0, owner) };
        self.nodes.insert(full.to_owned(), Znode { data, stat, children_zxid: zxid });
        Ok(self.with_parent(full, NodeChange::Created, zxid))
    }

    pub(super) fn set_data(
        &mut self,
        full: &str,
        data: Vec<u8>,
        version: Option<i32>,
        call: ZkCall,
    ) -> Result<(Stat, Changes), ZkError> {
        let (zxid, time) = (self.next_zxid(), clock::millis(clock::now()));
        let node = self.nodes.get_mut(full).ok_or_else(|| ZkError::NoNode(call.clone()))?;
        if version.is_some_and(|version| version != node.stat.version) {
            return Err(ZkError::BadVersion(call));
        }
        (node.data, node.stat.mzxid) = (data, zxid);
        node.stat.version += 1;
        node.stat.mtime = time;
        Ok((node.stat, vec![(full.to_owned(), NodeChange::Data)]))
    }

    pub(super) fn delete(
        &mut self,
        full: &str,
        version: Option<i32>,
        call: ZkCall,
    ) -> Result<Changes, ZkError> {
        let node = self.nodes.get(full).ok_or_else(|| ZkError::NoNode(call.clone()))?;
        if version.is_some_and(|version| version != node.stat.version) {
            return Err(ZkError::BadVersion(call));
        }
        if !self.children(full).is_empty() {
            return Err(ZkError::NotEmpty(call));
        }
        Ok(self.remove(full))
    }

    fn remove(&mut self, full: &str) -> Changes {
        self.nodes.remove(full);
        let zxid = self.next_zxid();
        self.with_parent(full, NodeChange::Deleted, zxid)
    }

    /// Removes the nodes of a session.
    pub(super) fn end_session(&mut self, id: i64) -> Changes {
        let owned = self.nodes.iter().filter(|(_, node)| node.stat.ephemeral_owner == id);
        let gone: Vec<_> = owned.map(|(path, _)| path.clone()).collect();
        gone.iter().flat_map(|path| self.remove(path)).collect()
    }

    fn with_parent(&mut self, full: &str, change: NodeChange, zxid: i64) -> Changes {
        let parent = parent(full).to_owned();
        if let Some(node) = self.nodes.get_mut(&parent) {
            node.children_zxid = zxid;
        }
        vec![(full.to_owned(), change), (parent, NodeChange::Children)]
    }

    /// What a watch on the data of `full` that was armed here would have told by `later`.
    pub(super) fn data_change(&self, later: &Self, full: &str) -> Option<NodeChange> {
        match (self.nodes.get(full), later.nodes.get(full)) {
            (None, None) => None,
            (None, Some(_)) => Some(NodeChange::Created),
            (Some(now), Some(then)) if now.stat.czxid == then.stat.czxid => {
                (now.stat.mzxid != then.stat.mzxid).then_some(NodeChange::Data)
            }
            (Some(_), _) => Some(NodeChange::Deleted),
        }
    }

    /// The same for a watch on its children.
    pub(super) fn children_change(&self, later: &Self, full: &str) -> Option<NodeChange> {
        match (self.nodes.get(full), later.nodes.get(full)) {
            (Some(now), Some(then)) if now.stat.czxid == then.stat.czxid => {
                (now.children_zxid != then.children_zxid).then_some(NodeChange::Children)
            }
            (Some(_), _) => Some(NodeChange::Deleted),
            (None, _) => None,
        }
    }
}

pub(super) fn parent(full: &str) -> &str {
    full.rsplit_once('/').map(|(parent, _)| parent).filter(|parent| !parent.is_empty()).unwrap_or("/")
}
