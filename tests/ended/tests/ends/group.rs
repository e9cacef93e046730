//! What ZooKeeper holds of a group, by its own log: nobody is asked.

use std::collections::BTreeMap;

use troupe_cluster::{Change, Cluster};

/// Kafka's path in ZooKeeper.
pub const CHROOT: &str = "/kafka";

/// At this moment.
#[derive(Debug, Default)]
pub struct Group {
    /// By partition.
    pub committed: BTreeMap<i32, i64>,
    /// Nodes that live as long as their session: of owners and members.
    pub ephemeral: BTreeMap<String, i64>,
}

impl Group {
    pub fn of(cluster: &Cluster, name: &str) -> Self {
        let (mut group, root) = (Self::default(), format!("{CHROOT}/consumers/{name}/"));
        for transaction in cluster.zookeeper().transaction_log().more().expect("it has a log") {
            group.apply(&root, transaction.session, &transaction.change);
        }
        group
    }

    fn apply(&mut self, root: &str, session: i64, change: &Change) {
        match change {
            Change::Create { path, data, ephemeral, .. } if path.starts_with(root) => {
                if *ephemeral {
                    self.ephemeral.insert(path.clone(), session);
                }
                self.set(&path[root.len()..], data.as_deref());
            }
            Change::SetData { path, data } if path.starts_with(root) => {
                self.set(&path[root.len()..], data.as_deref());
            }
            Change::Delete { path } => drop(self.ephemeral.remove(path)),
            Change::CloseSession => self.ephemeral.retain(|_, its| *its != session),
            Change::Create { .. } | Change::SetData { .. } => {}
        }
    }

    fn set(&mut self, path: &str, data: Option<&[u8]>) {
        let offset = path.strip_prefix("offsets/").and_then(|rest| rest.split_once('/'));
        if let Some((_, partition)) = offset {
            let text = String::from_utf8_lossy(data.unwrap_or_default());
            let offset = text.parse().expect("an offset is a number");
            self.committed.insert(partition.parse().expect("a partition is a number"), offset);
        }
    }
}
