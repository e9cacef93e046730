//! One round: a topic, a group, and members that come and are killed until all is handled.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fastrand::Rng;
use troupe_cluster::{Cluster, ProduceRecord};

use crate::journal::Journal;
use crate::kills::{Kill, Moment};
use crate::member::Member;
use crate::storage::Storage;

const RECORDS: usize = 10_000;
const PARTITIONS: i32 = 8;
const KILLS: usize = 3;
/// Of each member.
const STREAMS: usize = 4;
/// What a kill may leave uncommitted: see the member's `Commits`.
const BOUND: usize = 2 * 100 + STREAMS;
/// Between two looks at the journal: short, for whole commits fit into it.
const PAUSE: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(60);

/// One round, of a topic and a group of one name.
pub struct Round<'a> {
    cluster: &'a Cluster,
    storage: Storage,
    name: String,
    folder: PathBuf,
    journal: Journal,
    rng: Rng,
    members: Vec<Member>,
    killed: BTreeSet<String>,
    started: usize,
    produced: usize,
}

impl<'a> Round<'a> {
    pub fn new(cluster: &'a Cluster, storage: Storage, seed: u64) -> Self {
        let name = format!("{storage}-{seed}");
        cluster.create_topic(&name, PARTITIONS, 1).expect("a topic can be made");
        let folder = cluster.folder().join(&name);
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let journal = Journal::create(&folder.join("journal"));
        let rng = Rng::with_seed(seed);
        let (members, killed) = (Vec::new(), BTreeSet::new());
        Self { cluster, storage, name, folder, journal, rng, members, killed, started: 0, produced: 0 }
    }

    /// Kills, lets what is left be handled, and checks. Gives the name of its topic and group.
    pub fn run(mut self) -> String {
        let begun = Instant::now();
        for _ in 0..KILLS {
            let records = RECORDS / (KILLS + 1);
            self.produce(records);
            let kill = Kill::draw(&mut self.rng, records);
            self.kill(kill);
            let (at, after) = (self.journal.read_on().distinct(), begun.elapsed());
            println!("{}: {kill:?} at {at} of {} after {after:.1?}", self.name, self.produced);
        }
        self.produce(RECORDS - self.produced);
        self.start_up_to(1);
        self.wait_for("all that is left", |_| false);
        self.members.drain(..).for_each(Member::leave);
        let again = self.journal.read_on().check(&self.killed, STREAMS);
        let most = again.values().copied().max().unwrap_or_default();
        assert!(most <= BOUND, "{}: more than {BOUND} for one kill: {again:?}", self.name);
        println!("{}: handled again {again:?}; {:.1?}", self.name, begun.elapsed());
        self.name
    }

    /// Each with a key of its own.
    fn produce(&mut self, count: usize) {
        let numbers = self.produced..self.produced + count;
        let records = numbers.map(|number| ProduceRecord {
            key: Some(number.to_string().into()),
            partition: Some(number as i32 % PARTITIONS),
            ..ProduceRecord::value("x")
        });
        self.cluster.produce(&self.name, records).expect("records can be produced");
        self.produced += count;
    }

    fn start_up_to(&mut self, count: usize) {
        while self.members.len() < count {
            self.started += 1;
            let member = Member::start(&self.folder, format!("m{}", self.started), &self.arguments());
            self.members.push(member);
        }
    }

    fn arguments(&self) -> Vec<String> {
        let connect = format!("zookeeper.connect={}", self.cluster.zookeeper_connect());
        let group = format!("group.id={}", self.name);
        let fixed = [
            "zookeeper.session.timeout.ms=4000",
            "rebalance.backoff.ms=1000",
            "auto.offset.reset=smallest",
            // only what the member asks for, and when it gives partitions up
            "auto.commit.interval.ms=3600000",
        ];
        let head = [self.name.clone(), STREAMS.to_string(), connect, group];
        let properties = fixed.iter().chain(self.storage.properties()).map(|it| (*it).to_owned());
        head.into_iter().chain(properties).collect()
    }

    /// Sees to it that there are so many members, waits for the moment, and kills.
    fn kill(&mut self, kill: Kill) {
        if matches!(kill.moment, Moment::Rebalance(_)) && self.members.len() < 2 {
            self.start_up_to(1);
            let first = self.members[0].name.clone();
            self.wait_for("the first of a group", |journal| journal.handled_by(&first) > 0);
        }
        self.start_up_to(kill.members);
        let victim = kill.victim.min(self.members.len() - 1);
        let (name, begun) = (self.members[victim].name.clone(), self.members[victim].begun);
        let last = self.members.iter().map(|member| member.begun).max().unwrap_or(begun);
        match kill.moment {
            Moment::Start(after) => sleep_until(begun + after),
            Moment::Rebalance(after) => sleep_until(last + after),
            Moment::Handled(count) => self.wait_for("records", |journal| journal.handled_by(&name) >= count),
            Moment::Commit(number) => {
                self.wait_for("commits", |journal| journal.commits_of(&name) >= number);
            }
        }
        self.members.remove(victim).kill();
        self.killed.insert(name);
    }

    /// Waits until it is so, or everything that was produced is handled.
    #[track_caller]
    fn wait_for(&mut self, what: &str, is_so: impl Fn(&Journal) -> bool) {
        let begun = Instant::now();
        loop {
            let journal = self.journal.read_on();
            if is_so(journal) || journal.distinct() == self.produced {
                return;
            }
            if begun.elapsed() > PATIENCE {
                // says more, if it fails
                journal.check_nothing_is_skipped();
                let handled = journal.distinct();
                panic!("{}: {what}: {handled} of {} handled", self.name, self.produced);
            }
            self.members.iter_mut().for_each(Member::check_that_it_runs);
            std::thread::sleep(PAUSE);
        }
    }
}

fn sleep_until(moment: Instant) {
    std::thread::sleep(moment.saturating_duration_since(Instant::now()));
}
