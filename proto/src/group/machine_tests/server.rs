//! A fake ZooKeeper ensemble: one history of all writes, and for each session a view of it that may lag
//! (reads are answered by a follower) but never goes back and holds the session's own answered writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::TopicPartition;
use crate::group::{Member, SessionNumber};

pub type Topics = BTreeMap<Arc<str>, Vec<i32>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerNode {
    pub session: SessionNumber,
    pub thread: String,
    pub version: i32,
}

/// What can be watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Path {
    Ids,
    Topics,
    Brokers,
    Owner(TopicPartition),
}

#[derive(Clone, Debug)]
pub enum Op {
    /// Reads and watches in one operation.
    Read(Path),
    ReadOffset(TopicPartition),
    Register(Member),
    CreateOwner(TopicPartition, String),
    SetOwner(TopicPartition, String, i32),
    /// With a version, or without looking.
    DeleteOwner(TopicPartition, Option<i32>),
    /// With the version read (none: the node did not exist), or `None`: without looking.
    WriteOffset(TopicPartition, i64, Option<Option<i32>>),
    Close,
}

#[derive(Clone, Debug)]
pub enum Reply {
    Ids(Vec<Member>),
    Topics(Topics),
    Brokers(usize),
    Owner(Option<OwnerNode>),
    Offset(Option<(i64, i32)>),
    Registered(SessionNumber),
    Done,
    Exists,
    /// Another version, or no such node.
    Refused,
    /// The answer did not come.
    Lost,
}

/// An owner node changed.
pub struct OwnerChange {
    pub partition: TopicPartition,
    pub before: Option<OwnerNode>,
    pub after: Option<OwnerNode>,
    /// The session that did it; `None` when it is the server (expiry) or an operator.
    pub by: Option<SessionNumber>,
    pub expiry: bool,
}

struct History<T>(Vec<(u64, T)>);

impl<T: Clone> History<T> {
    fn latest(&self) -> T {
        self.0[self.0.len() - 1].1.clone()
    }

    fn at(&self, zxid: u64) -> T {
        self.0.iter().rev().find(|(since, _)| *since <= zxid).expect("written at 0").1.clone()
    }

    fn changed_after(&self, zxid: u64) -> bool {
        self.0[self.0.len() - 1].0 > zxid
    }
}

struct Session {
    alive: bool,
    view: u64,
}

pub struct Server {
    /// When each write was made: the index is its zxid.
    times: Vec<u64>,
    sessions: BTreeMap<SessionNumber, Session>,
    ids: History<BTreeMap<String, (SessionNumber, Member)>>,
    topics: History<Topics>,
    brokers: History<usize>,
    owners: BTreeMap<TopicPartition, History<Option<OwnerNode>>>,
    offsets: BTreeMap<TopicPartition, History<Option<(i64, i32)>>>,
    watches: BTreeMap<Path, BTreeSet<SessionNumber>>,
    /// Watches that fired, and owner nodes that changed, since the world last looked.
    pub fired: Vec<(SessionNumber, Path)>,
    pub changes: Vec<OwnerChange>,
    /// Commits: by whom, of what, from and to.
    pub commits: Vec<(SessionNumber, TopicPartition, Option<i64>, i64)>,
}

impl Server {
    pub fn new(topics: Topics) -> Self {
        Self {
            times: vec![0],
            sessions: BTreeMap::new(),
            ids: History(vec![(0, BTreeMap::new())]),
            topics: History(vec![(0, topics)]),
            brokers: History(vec![(0, 1)]),
            owners: BTreeMap::new(),
            offsets: BTreeMap::new(),
            watches: BTreeMap::new(),
            fired: Vec::new(),
            changes: Vec::new(),
            commits: Vec::new(),
        }
    }

    pub fn open(&mut self) -> SessionNumber {
        let session = SessionNumber(1 + i64::try_from(self.sessions.len()).expect("few"));
        self.sessions.insert(session, Session { alive: true, view: 0 });
        session
    }

    pub fn is_alive(&self, session: SessionNumber) -> bool {
        self.sessions.get(&session).is_some_and(|session| session.alive)
    }

    pub fn topics(&self) -> Topics {
        self.topics.latest()
    }

    pub fn owner(&self, partition: &TopicPartition) -> Option<OwnerNode> {
        self.owners.get(partition).and_then(History::latest)
    }

    /// Every partition there ever was.
    pub fn partitions_ever(&self) -> BTreeSet<TopicPartition> {
        let topics = self.topics.0.iter().flat_map(|(_, topics)| topics);
        topics
            .flat_map(|(topic, numbers)| numbers.iter().map(|n| TopicPartition::new(topic.clone(), *n)))
            .collect()
    }

    pub fn owners(&self) -> impl Iterator<Item = (&TopicPartition, OwnerNode)> {
        self.owners.iter().filter_map(|(tp, history)| history.latest().map(|node| (tp, node)))
    }

    pub fn set_topics(&mut self, now: u64, topics: Topics) {
        let zxid = self.write(now);
        self.topics.0.push((zxid, topics));
        self.fire(&Path::Topics);
    }

    pub fn set_brokers(&mut self, now: u64, brokers: usize) {
        let zxid = self.write(now);
        self.brokers.0.push((zxid, brokers));
        self.fire(&Path::Brokers);
    }

    /// An operator deletes a member's registration.
    pub fn delete_id(&mut self, now: u64, id: &str) {
        let mut ids = self.ids.latest();
        if ids.remove(id).is_some() {
            let zxid = self.write(now);
            self.ids.0.push((zxid, ids));
            self.fire(&Path::Ids);
        }
    }

    /// An operator deletes an owner node.
    pub fn delete_owner(&mut self, now: u64, partition: &TopicPartition) {
        if self.owner(partition).is_some() {
            self.set_owner(now, partition, None, None, false);
        }
    }

    /// The server ends a session: its nodes vanish.
    pub fn end(&mut self, now: u64, session: SessionNumber, expiry: bool) {
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        if !std::mem::replace(&mut entry.alive, false) {
            return;
        }
        let by = (!expiry).then_some(session);
        let mine = self.owners().filter(|(_, node)| node.session == session);
        for partition in mine.map(|(tp, _)| tp.clone()).collect::<Vec<_>>() {
            self.set_owner(now, &partition, None, by, expiry);
        }
        let mut ids = self.ids.latest();
        let before = ids.len();
        ids.retain(|_, (holder, _)| *holder != session);
        if ids.len() != before {
            let zxid = self.write(now);
            self.ids.0.push((zxid, ids));
            self.fire(&Path::Ids);
        }
    }

    /// The connection of a session broke: its watches are gone.
    pub fn forget_watches(&mut self, session: SessionNumber) {
        self.watches.values_mut().for_each(|watchers| {
            watchers.remove(&session);
        });
    }

    /// One operation of a session, whose follower lags by up to `lag` ms.
    pub fn execute(&mut self, now: u64, session: SessionNumber, lag: u64, op: Op) -> Reply {
        if !self.is_alive(session) {
            return Reply::Lost;
        }
        match op {
            Op::Read(path) => self.read(now, session, lag, path),
            Op::ReadOffset(tp) => {
                let view = self.look(now, session, lag);
                Reply::Offset(self.offsets.get(&tp).and_then(|history| history.at(view)))
            }
            op => {
                let reply = self.change(now, session, op);
                let view = self.times.len() as u64 - 1;
                self.sessions.get_mut(&session).expect("alive").view = view;
                reply
            }
        }
    }

    fn look(&mut self, now: u64, session: SessionNumber, lag: u64) -> u64 {
        let behind = self.times.partition_point(|time| time + lag <= now) as u64;
        let session = self.sessions.get_mut(&session).expect("alive");
        session.view = session.view.max(behind.saturating_sub(1));
        session.view
    }

    fn read(&mut self, now: u64, session: SessionNumber, lag: u64, path: Path) -> Reply {
        let view = self.look(now, session, lag);
        let (reply, stale) = match &path {
            Path::Ids => {
                let members = self.ids.at(view).into_values().map(|(_, member)| member).collect();
                (Reply::Ids(members), self.ids.changed_after(view))
            }
            Path::Topics => (Reply::Topics(self.topics.at(view)), self.topics.changed_after(view)),
            Path::Brokers => (Reply::Brokers(self.brokers.at(view)), self.brokers.changed_after(view)),
            Path::Owner(tp) => match self.owners.get(tp) {
                Some(history) => (Reply::Owner(history.at(view)), history.changed_after(view)),
                None => (Reply::Owner(None), false),
            },
        };
        if stale {
            self.fired.push((session, path));
        } else {
            self.watches.entry(path).or_default().insert(session);
        }
        reply
    }

    fn change(&mut self, now: u64, session: SessionNumber, op: Op) -> Reply {
        match op {
            Op::Register(member) => self.register(now, session, member),
            Op::CreateOwner(tp, thread) => match self.owner(&tp) {
                Some(_) => Reply::Exists,
                None => {
                    let node = OwnerNode { session, thread, version: 0 };
                    self.set_owner(now, &tp, Some(node), Some(session), false);
                    Reply::Done
                }
            },
            Op::SetOwner(tp, thread, version) => match self.owner(&tp) {
                Some(node) if node.version == version => {
                    let node = OwnerNode { thread, version: version + 1, ..node };
                    self.set_owner(now, &tp, Some(node), Some(session), false);
                    Reply::Done
                }
                _ => Reply::Refused,
            },
            Op::DeleteOwner(tp, version) => match self.owner(&tp) {
                Some(node) if version.is_none_or(|version| version == node.version) => {
                    self.set_owner(now, &tp, None, Some(session), false);
                    Reply::Done
                }
                _ => Reply::Refused,
            },
            Op::WriteOffset(tp, value, expected) => self.write_offset(now, session, tp, value, expected),
            Op::Close => {
                self.end(now, session, false);
                Reply::Done
            }
            Op::Read(_) | Op::ReadOffset(_) => unreachable!("reads change nothing"),
        }
    }

    fn register(&mut self, now: u64, session: SessionNumber, member: Member) -> Reply {
        let mut ids = self.ids.latest();
        match ids.get(&member.id) {
            Some((holder, _)) if *holder == session => Reply::Registered(session),
            Some(_) => Reply::Exists,
            None => {
                ids.insert(member.id.clone(), (session, member));
                let zxid = self.write(now);
                self.ids.0.push((zxid, ids));
                self.fire(&Path::Ids);
                Reply::Registered(session)
            }
        }
    }

    fn write_offset(
        &mut self,
        now: u64,
        session: SessionNumber,
        tp: TopicPartition,
        value: i64,
        expected: Option<Option<i32>>,
    ) -> Reply {
        let stored = self.offsets.get(&tp).and_then(History::latest);
        let version = stored.map(|(_, version)| version);
        if expected.is_some_and(|expected| expected != version) {
            return Reply::Refused;
        }
        self.commits.push((session, tp.clone(), stored.map(|(value, _)| value), value));
        let zxid = self.write(now);
        let history = self.offsets.entry(tp).or_insert_with(|| History(vec![(0, None)]));
        history.0.push((zxid, Some((value, version.map_or(0, |version| version + 1)))));
        Reply::Done
    }

    fn set_owner(
        &mut self,
        now: u64,
        partition: &TopicPartition,
        after: Option<OwnerNode>,
        by: Option<SessionNumber>,
        expiry: bool,
    ) {
        let zxid = self.write(now);
        let history = self.owners.entry(partition.clone()).or_insert_with(|| History(vec![(0, None)]));
        let before = history.latest();
        history.0.push((zxid, after.clone()));
        self.changes.push(OwnerChange { partition: partition.clone(), before, after, by, expiry });
        self.fire(&Path::Owner(partition.clone()));
    }

    fn write(&mut self, now: u64) -> u64 {
        self.times.push(now);
        self.times.len() as u64 - 1
    }

    fn fire(&mut self, path: &Path) {
        let watchers = self.watches.remove(path).unwrap_or_default();
        self.fired.extend(watchers.into_iter().map(|session| (session, path.clone())));
    }
}
