//! A group that is led from one offset storage to another, member by member.

use std::collections::BTreeMap;
use std::time::Instant;

use troupe_cluster::{Cluster, JavaMember, KafkaVersion};

use super::accounts::{Accounts, Side};
use super::clusters::reached_by;
use super::group::Group;
use super::member::Member;
use super::stored::{check_only_grows, history, stored};
use super::wait::until;

/// Where a member stores its offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    ZooKeeper,
    Both,
    Kafka,
}

impl Storage {
    pub fn properties(self) -> [&'static str; 2] {
        match self {
            Self::ZooKeeper => ["offsets.storage=zookeeper", "dual.commit.enabled=false"],
            Self::Both => ["offsets.storage=kafka", "dual.commit.enabled=true"],
            Self::Kafka => ["offsets.storage=kafka", "dual.commit.enabled=false"],
        }
    }
}

/// By partition.
pub type Offsets = BTreeMap<i32, i64>;

/// A group whose members are told by their names: `scala` is of 1.1.1, `scala8` of 0.8.2.2, `java` is Kafka's own, and
/// all others are ours.
pub struct Walk<'a> {
    pub group: Group<'a>,
    /// In the order in which they are restarted.
    members: Vec<(&'static str, Running)>,
    partitions: i32,
    /// Where they have gone, when they began to, and how many records had been handled by then.
    stages: Vec<(String, Instant, usize)>,
    now: Storage,
}

enum Running {
    Ours(Member),
    Scala(JavaMember),
}

impl Running {
    fn leave(self) {
        match self {
            Self::Ours(member) => drop(member.leave()),
            Self::Scala(member) => member.leave().expect("it leaves"),
        }
    }
}

fn side(member: &str) -> Side {
    match member {
        "java" => Side::Java,
        "scala" | "scala8" => Side::Scala,
        _ => Side::Ours,
    }
}

impl<'a> Walk<'a> {
    /// Of a topic, new, that has as many partitions for each member; nobody has joined yet.
    pub fn new(cluster: &'a Cluster, name: &str, partitions: i32) -> Self {
        let group = Group::new(cluster, name, partitions);
        let (members, stages) = (Vec::new(), Vec::new());
        Self { group, members, partitions, stages, now: Storage::ZooKeeper }
    }

    /// All members join.
    #[track_caller]
    pub fn begin(&mut self, storage: Storage, members: &[&'static str]) {
        self.stage(&format!("{storage:?}"));
        self.now = storage;
        for name in members {
            let member = self.start(name, storage, || ());
            self.members.push((name, member));
        }
        self.wait_for_owners();
        self.check();
    }

    /// Each member is started anew with the next setting, one after the other.
    #[track_caller]
    pub fn go(&mut self, next: Storage) {
        self.stage(&format!("to {next:?}"));
        for index in 0..self.members.len() {
            let (name, running) = self.members.remove(index);
            let member = self.start(name, next, || running.leave());
            self.members.insert(index, (name, member));
            self.wait_for_owners();
            // all flows on, and the store that both settings have tells so
            let both = [self.now, next].contains(&Storage::Kafka);
            self.wait_for_growth(if both { Self::in_kafka } else { Self::in_zookeeper });
        }
        self.now = next;
        self.check();
    }

    /// All members leave.
    pub fn leave(&mut self) {
        std::mem::take(&mut self.members).into_iter().for_each(|(_, member)| member.leave());
    }

    /// What is handled from now on is accounted for under this name.
    pub fn stage(&mut self, name: &str) {
        self.stages.push((name.to_owned(), Instant::now(), self.group.history().deliveries.len()));
    }

    /// Starts a member; `before` is done when its program is up, where that takes long.
    fn start(&self, name: &'static str, storage: Storage, before: impl FnOnce()) -> Running {
        let [storage, dual] = storage.properties();
        if side(name) == Side::Ours {
            before();
            let reach = reached_by(self.group.cluster);
            let properties =
                reach.iter().map(String::as_str).chain(["auto.commit.interval.ms=200", storage, dual]);
            return Running::Ours(self.group.join(name, 1, &properties.collect::<Vec<_>>()));
        }
        let mut member = scala_member(&self.group, name, &[storage, dual]);
        before();
        member.join().expect("it joins");
        Running::Scala(member)
    }

    /// Waits until each member has its share.
    #[track_caller]
    pub fn wait_for_owners(&self) {
        let mut threads: Vec<String> = self.members.iter().map(|(name, _)| format!("{name}-0")).collect();
        threads.sort_unstable();
        let each = usize::try_from(self.partitions).expect("a number") / threads.len();
        let owners = threads.iter().flat_map(|thread| std::iter::repeat_n(thread.as_str(), each));
        self.group.wait_for_owners(&owners.collect::<Vec<_>>());
    }

    pub fn in_zookeeper(&self) -> Offsets {
        self.group.zookeeper().committed(&self.group.name)
    }

    pub fn in_kafka(&self) -> Offsets {
        stored(self.group.cluster, &self.group.name)
    }

    /// Waits until a store has more of each partition than it has now.
    #[track_caller]
    pub fn wait_for_growth(&self, store: impl Fn(&Self) -> Offsets) {
        let before = store(self);
        let more = |partition| (partition, before.get(&partition).map_or(0, |offset| offset + 1));
        self.wait_for(store, &(0..self.partitions).map(more).collect());
    }

    /// Waits until a store has at least this.
    #[track_caller]
    pub fn wait_for(&self, store: impl Fn(&Self) -> Offsets, least: &Offsets) {
        until(&format!("offsets from {least:?} on"), || {
            let now = store(self);
            let enough = least.iter().all(|(partition, offset)| now.get(partition) >= Some(offset));
            if enough { Ok(()) } else { Err(format!("{now:?}")) }
        });
    }

    /// What must hold before the next step: each store that is used grows, and one that is not stands still.
    #[track_caller]
    fn check(&self) {
        let (zookeeper, kafka) = (self.in_zookeeper(), self.in_kafka());
        match self.now {
            Storage::ZooKeeper => {
                self.wait_for_growth(Self::in_zookeeper);
                assert_eq!(self.in_kafka(), kafka, "nobody stores in Kafka");
            }
            Storage::Kafka => {
                self.wait_for_growth(Self::in_kafka);
                assert_eq!(self.in_zookeeper(), zookeeper, "nobody stores in ZooKeeper");
            }
            Storage::Both => {
                // what one has had, the other has too, so that it may go either way
                self.wait_for(Self::in_zookeeper, &kafka);
                self.wait_for(Self::in_kafka, &zookeeper);
                self.wait_for_growth(Self::in_zookeeper);
                self.wait_for_growth(Self::in_kafka);
            }
        }
    }

    /// When all have left: everything was handled, and what was handled again is what may be; says how much that was.
    /// Gives how many offsets Kafka has dropped.
    #[track_caller]
    pub fn end(mut self) -> usize {
        assert!(self.members.is_empty(), "they have left");
        self.stage("end");
        let name = &self.group.name;
        let (handled, zookeeper) = (self.group.history(), self.group.zookeeper());
        handled
            .covers(&self.group.cluster.log_end_offsets(name).expect("it has ends"))
            .expect("all was handled");
        let kafka = history(self.group.cluster, name);
        let dropped = check_only_grows(&kafka);
        let accounts = Accounts { history: handled, zookeeper: &zookeeper, kafka: &kafka, side };
        accounts.check();
        for ends in self.stages.windows(2) {
            let [(stage, begun, from), (_, ended, to)] = ends else { unreachable!("there are two") };
            let again = accounts.again(*from, *to);
            let (count, took) = (to - from, *ended - *begun);
            println!("{name}: {stage}: {count} handled in {took:.1?}, again {again:?}");
        }
        assert!(zookeeper.children("ids").is_empty() && zookeeper.owners(name).is_empty());
        dropped
    }
}

/// A Scala member that is ready to join, from the beginning of the topic, with quick commits; `more` goes before.
pub fn scala_member(group: &Group<'_>, name: &str, more: &[&str]) -> JavaMember {
    let version = if name == "scala8" { KafkaVersion::V0_8_2_2 } else { KafkaVersion::V1_1_1 };
    let (id, consumer) = (format!("group.id={}", group.name), format!("consumer.id={name}"));
    let properties = [
        &id,
        &consumer,
        "auto.offset.reset=smallest",
        "zookeeper.session.timeout.ms=20000",
        "zookeeper.connection.timeout.ms=30000",
        // patient, since it gives up for good after its last attempt, and a machine under load is slow
        "rebalance.max.retries=60",
        "rebalance.backoff.ms=300",
        "auto.commit.interval.ms=200",
    ];
    let properties = [&properties, more].concat();
    let member = group.cluster.old_member(version, (&group.name, 1), (&group.output(), name), &properties);
    member.expect("a consumer starts")
}
