//! Who owns what, told by ZooKeeper's transaction log: nobody is asked, so nobody is disturbed.

use std::collections::BTreeMap;

use troupe_cluster::{Change, Cluster, Transaction, TransactionLog};

use crate::TOPIC;

/// An owner node.
struct Owned {
    member: String,
    session: i64,
    /// In microseconds, as all times here.
    since: i64,
}

/// A member's registration.
struct Registered {
    session: i64,
    since: i64,
}

/// What a group's nodes are now, and how that came since a moment.
pub struct Ownership {
    log: TransactionLog,
    /// `/consumers/<group>/owners/<topic>/`
    owners_path: String,
    /// `/consumers/<group>/ids/<group>_`
    ids_path: String,
    owners: BTreeMap<i32, Owned>,
    ids: BTreeMap<String, Registered>,
    /// When registrations went away.
    gone: BTreeMap<String, i64>,
    /// Each change of the number of owned partitions: when, and to which.
    course: Vec<(i64, usize)>,
}

impl Ownership {
    pub fn of(cluster: &Cluster, group: &str) -> Self {
        let mut this = Self {
            log: cluster.zookeeper().transaction_log(),
            owners_path: format!("/consumers/{group}/owners/{TOPIC}/"),
            ids_path: format!("/consumers/{group}/ids/{group}_"),
            owners: BTreeMap::new(),
            ids: BTreeMap::new(),
            gone: BTreeMap::new(),
            course: Vec::new(),
        };
        this.read();
        this
    }

    /// Takes in what was written to the log; whether anybody's ownership changed.
    pub fn read(&mut self) -> bool {
        let before = self.course.len();
        for transaction in self.log.more().expect("ZooKeeper has a log") {
            self.apply(transaction);
        }
        self.course.len() > before
    }

    /// Forgets how it came, up to now.
    pub fn begin(&mut self) {
        self.read();
        self.course.clear();
        self.gone.clear();
    }

    fn apply(&mut self, Transaction { session, time, change, .. }: Transaction) {
        let at = time * 1000;
        match change {
            Change::Create { path, data, .. } => self.set(&path, data, session, at),
            Change::SetData { path, data } => {
                if let Some(owned) = self.partition(&path).and_then(|partition| self.owners.get(&partition)) {
                    self.set(&path, data, owned.session, at);
                }
            }
            Change::Delete { path } => self.delete(&path, at),
            Change::CloseSession => self.end(session, at),
        }
    }

    fn set(&mut self, path: &str, data: Option<Vec<u8>>, session: i64, since: i64) {
        if let Some(partition) = self.partition(path) {
            let thread = String::from_utf8_lossy(&data.unwrap_or_default()).into_owned();
            let consumer = thread.rsplit_once('-').map_or(thread.as_str(), |(consumer, _)| consumer);
            let member = consumer.rsplit_once('_').map_or(consumer, |(_, member)| member).to_owned();
            self.owners.insert(partition, Owned { member, session, since });
            self.course.push((since, self.owners.len()));
        } else if let Some(member) = path.strip_prefix(&self.ids_path) {
            self.ids.insert(member.to_owned(), Registered { session, since });
        }
    }

    fn delete(&mut self, path: &str, at: i64) {
        if let Some(partition) = self.partition(path) {
            self.owners.remove(&partition);
            self.course.push((at, self.owners.len()));
        } else if let Some(member) = path.strip_prefix(&self.ids_path) {
            self.ids.remove(member);
            self.gone.insert(member.to_owned(), at);
        }
    }

    fn end(&mut self, session: i64, at: i64) {
        for (member, _) in self.ids.iter().filter(|(_, its)| its.session == session) {
            self.gone.insert(member.clone(), at);
        }
        self.ids.retain(|_, its| its.session != session);
        self.owners.retain(|_, owned| owned.session != session);
        self.course.push((at, self.owners.len()));
    }

    fn partition(&self, path: &str) -> Option<i32> {
        path.strip_prefix(&self.owners_path)?.parse().ok()
    }

    /// When a member registered.
    pub fn registered(&self, member: &str) -> Option<i64> {
        self.ids.get(member).map(|registered| registered.since)
    }

    /// When a member's registration went away.
    pub fn gone(&self, member: &str) -> Option<i64> {
        self.gone.get(member).copied()
    }

    /// Whether all partitions are owned, evenly and by these members.
    pub fn is_whole(&self, partitions: usize, members: &[&str]) -> bool {
        let counts =
            members.iter().map(|member| self.owners.values().filter(|owned| owned.member == *member).count());
        let even = partitions / members.len()..=partitions.div_ceil(members.len());
        self.owners.len() == partitions && counts.into_iter().all(|count| even.contains(&count))
    }

    /// Each partition with its owner and since when.
    pub fn owners(&self) -> impl Iterator<Item = (i32, &str, i64)> {
        self.owners.iter().map(|(partition, owned)| (*partition, owned.member.as_str(), owned.since))
    }

    /// Since [`Ownership::begin`]: the time in which some partition had no owner, and the most that had none at once.
    pub fn without_owner(&self, partitions: usize) -> (i64, usize) {
        let times = self.course.windows(2).filter(|pair| pair[0].1 < partitions);
        let time = times.map(|pair| pair[1].0 - pair[0].0).sum();
        let least = self.course.iter().map(|(_, owned)| *owned).min().unwrap_or(partitions);
        (time, partitions - least)
    }
}
