//! ZooKeeper's own history, replayed from its transaction log: every node as it was stored, byte by byte, and who
//! owned what from when to when. Nothing of ours is asked, so it is a second opinion.

use std::collections::{BTreeMap, BTreeSet};

use troupe_cluster::{Change, Cluster, Transaction};

use super::clusters::CHROOT;

/// A node, as it is or was at its end.
#[derive(Clone, Debug)]
pub struct Node {
    /// None is null, which is not the same as empty.
    pub data: Option<Vec<u8>>,
    pub acl: Vec<(i32, String, String)>,
    /// Its session, when it is ephemeral.
    pub session: Option<i64>,
    /// Epoch milliseconds, and the transaction's number (`czxid`).
    pub created: (i64, i64),
    /// Values it was set to after it was made, with the transaction's number.
    pub versions: Vec<(i64, Option<Vec<u8>>)>,
}

impl Node {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.data.as_deref().unwrap_or_default()).into_owned()
    }
}

/// One life of an owner node with one value.
#[derive(Clone, Debug)]
pub struct Tenure {
    pub topic: String,
    pub partition: i32,
    /// The consumer thread id.
    pub thread: String,
    /// Epoch milliseconds, and the transaction's number.
    pub from: (i64, i64),
    /// Epoch milliseconds; none while it lasts.
    pub to: Option<i64>,
}

/// In order. What most servers have written is committed; what fewer have may have been lost with its leader. One
/// server alone may have a gap, filled by a snapshot when it came back.
fn of_cluster(cluster: &Cluster) -> Vec<Transaction> {
    let servers = cluster.ensemble().servers();
    let mut written: BTreeMap<i64, (usize, Transaction)> = BTreeMap::new();
    for server in servers {
        let mut last = -1;
        for transaction in server.transaction_log().more().expect("ZooKeeper has a log") {
            // a server that joined again may have written one twice
            if transaction.zxid > last {
                last = transaction.zxid;
                written.entry(last).or_insert((0, transaction)).0 += 1;
            }
        }
    }
    let committed = written.into_values().filter(|(count, _)| *count > servers.len() / 2);
    committed.map(|(_, transaction)| transaction).collect()
}

/// Whether a node, or one below it, was ever made; the path is absolute.
pub fn was_created(cluster: &Cluster, path: &str) -> bool {
    of_cluster(cluster).iter().any(|transaction| match &transaction.change {
        Change::Create { path: created, .. } => created.starts_with(path),
        _ => false,
    })
}

/// What ZooKeeper remembers of one group.
pub struct GroupHistory {
    root: String,
    /// All nodes below `/consumers/<group>` and their parents, that exist now; paths without the chroot.
    pub nodes: BTreeMap<String, Node>,
    /// Of all owner nodes, in order of their creation.
    pub tenures: Vec<Tenure>,
    /// When sessions ended, in epoch milliseconds.
    pub ended: BTreeMap<i64, i64>,
    /// Every write of an offset: transaction, topic/partition, value.
    pub commits: Vec<(i64, String, i64)>,
}

impl GroupHistory {
    /// Up to now.
    pub fn of(cluster: &Cluster, group: &str) -> Self {
        let root = format!("/consumers/{group}");
        let mut history = Self {
            root,
            nodes: BTreeMap::new(),
            tenures: Vec::new(),
            ended: BTreeMap::new(),
            commits: Vec::new(),
        };
        for transaction in of_cluster(cluster) {
            let at = (transaction.time, transaction.zxid);
            history.apply(transaction.session, at, transaction.change);
        }
        history
    }

    fn apply(&mut self, session: i64, at: (i64, i64), change: Change) {
        match change {
            Change::Create { path, data, acl, ephemeral } => {
                let Some(path) = self.relevant(&path) else { return };
                self.set(&path, data.as_deref(), at);
                let session = ephemeral.then_some(session);
                self.nodes.insert(path, Node { data, acl, session, created: at, versions: Vec::new() });
            }
            Change::SetData { path, data } => {
                let Some(path) = self.relevant(&path) else { return };
                self.set(&path, data.as_deref(), at);
                if let Some(node) = self.nodes.get_mut(&path) {
                    node.versions.push((at.1, data.clone()));
                    node.data = data;
                }
            }
            Change::Delete { path } => {
                if let Some(path) = self.relevant(&path) {
                    self.remove(&path, at.0);
                }
            }
            Change::CloseSession => {
                // one that has expired may be closed again, by a request that was held up
                self.ended.entry(session).or_insert(at.0);
                let its = self.nodes.iter().filter(|(_, node)| node.session == Some(session));
                let its: Vec<_> = its.map(|(path, _)| path.clone()).collect();
                its.iter().for_each(|path| self.remove(path, at.0));
            }
        }
    }

    fn relevant(&self, path: &str) -> Option<String> {
        let path = path.strip_prefix(CHROOT)?;
        let below =
            path.strip_prefix(&self.root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        (below || path == "/consumers").then(|| path.to_owned())
    }

    fn set(&mut self, path: &str, data: Option<&[u8]>, at: (i64, i64)) {
        let text = String::from_utf8_lossy(data.unwrap_or_default()).into_owned();
        if let Some((topic, partition)) = self.partition_of(path, "owners") {
            self.end_tenure(&topic, partition, at.0);
            self.tenures.push(Tenure { topic, partition, thread: text, from: at, to: None });
        } else if let Some((topic, partition)) = self.partition_of(path, "offsets") {
            let offset = text.parse().expect("an offset is a number");
            self.commits.push((at.1, format!("{topic}/{partition}"), offset));
        }
    }

    fn remove(&mut self, path: &str, time: i64) {
        if let Some((topic, partition)) = self.partition_of(path, "owners") {
            self.end_tenure(&topic, partition, time);
        }
        self.nodes.remove(path);
    }

    fn end_tenure(&mut self, topic: &str, partition: i32, time: i64) {
        let its = |tenure: &&mut Tenure| tenure.topic == topic && tenure.partition == partition;
        if let Some(tenure) = self.tenures.iter_mut().rfind(its) {
            tenure.to = tenure.to.or(Some(time));
        }
    }

    fn partition_of(&self, path: &str, family: &str) -> Option<(String, i32)> {
        let rest =
            path.strip_prefix(&self.root)?.strip_prefix('/')?.strip_prefix(family)?.strip_prefix('/')?;
        let (topic, partition) = rest.split_once('/')?;
        Some((topic.to_owned(), partition.parse().ok()?))
    }

    /// A node below the group's.
    pub fn node(&self, path: &str) -> Option<&Node> {
        self.nodes.get(&format!("{}/{path}", self.root))
    }

    /// Names of the children of a node below the group's.
    pub fn children(&self, path: &str) -> Vec<String> {
        let parent = format!("{}/{path}/", self.root);
        let names = self.nodes.keys().filter_map(|path| path.strip_prefix(&parent));
        names.filter(|name| !name.contains('/')).map(str::to_owned).collect()
    }

    /// Who owns each partition of a topic now: the thread id without the group's prefix.
    pub fn owners(&self, topic: &str) -> BTreeMap<i32, String> {
        let now = self.tenures.iter().filter(|tenure| tenure.topic == topic && tenure.to.is_none());
        now.map(|tenure| (tenure.partition, self.short(&tenure.thread))).collect()
    }

    /// A thread or consumer id without the group.
    pub fn short(&self, id: &str) -> String {
        let group = self.root.trim_start_matches("/consumers/");
        id.strip_prefix(group).and_then(|id| id.strip_prefix('_')).unwrap_or(id).to_owned()
    }

    /// The sessions of the owner nodes of a member of one topic, each once.
    pub fn owning_sessions(&self, topic: &str, member: &str) -> BTreeSet<Option<i64>> {
        let prefix = format!("{}/owners/{topic}/", self.root);
        let owners = self.nodes.iter().filter(|(path, _)| path.starts_with(&prefix));
        let its = owners.filter(|(_, node)| {
            self.short(&node.text()).rsplit_once('-').is_some_and(|(owner, _)| owner == member)
        });
        its.map(|(_, node)| node.session).collect()
    }

    /// The committed offset of each partition of a topic.
    pub fn committed(&self, topic: &str) -> BTreeMap<i32, i64> {
        let partitions = self.children(&format!("offsets/{topic}")).into_iter();
        let committed = partitions.map(|partition| {
            let text = self.node(&format!("offsets/{topic}/{partition}")).expect("it is listed").text();
            (partition.parse().expect("a number"), text.parse().expect("a number"))
        });
        committed.collect()
    }

    /// The committed offset of a partition before a transaction; 0 when there was none.
    pub fn committed_before(&self, zxid: i64, topic: &str, partition: i32) -> i64 {
        let which = format!("{topic}/{partition}");
        let before = self.commits.iter().filter(|(at, of, _)| *at < zxid && *of == which);
        before.map(|(_, _, offset)| *offset).next_back().unwrap_or(0)
    }

    /// Offsets never go down.
    #[track_caller]
    pub fn check_commits_only_grow(&self) {
        let mut last = BTreeMap::new();
        for (_, partition, offset) in &self.commits {
            let before = last.insert(partition, *offset).unwrap_or(0);
            assert!(*offset >= before, "{partition} was committed down from {before} to {offset}");
        }
    }
}
