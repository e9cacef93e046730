//! One group that goes through all events.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::thread::sleep;
use std::time::{Duration, Instant};

use troupe_cluster::Cluster;

use crate::load::Load;
use crate::member::{Kind, Member, now};
use crate::ownership::Ownership;
use crate::{Arguments, Event, Result};

/// Nothing has changed for so long: the rebalance is over.
const QUIET: Duration = Duration::from_secs(1);
/// How often the log is read: it takes no time that counts, for what counts is in the log.
const LOOK: Duration = Duration::from_millis(50);
const LIMIT: Duration = Duration::from_secs(90);
/// The one that comes and goes; last by name, so that partitions of all members move.
const THIRD: &str = "m3";

/// What one event took, in milliseconds.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Until every partition had its last owner.
    pub owned: f64,
    /// Until each flowed to this owner: until its first record came, less the time in which there was none to come.
    pub flowing: f64,
    /// The longest that a broker that was busy with other things kept the producer waiting: above some 100 ms that is
    /// what was measured.
    pub held_up: f64,
    /// In which some partition had no owner.
    pub without_owner: f64,
    /// The most partitions without an owner at one time.
    pub let_go: usize,
    /// Requests that ZooKeeper got meanwhile, pings and the broker's few among them.
    pub requests: u64,
    /// From the signal until the registration was gone; none for a join.
    pub gone: Option<f64>,
}

pub struct Group<'a> {
    cluster: &'a Cluster,
    load: &'a Load,
    arguments: &'a Arguments,
    kind: Kind,
    name: String,
    partitions: usize,
    members: BTreeMap<&'static str, Member>,
    /// Those that have left or were killed, for what they have delivered.
    past: Vec<Member>,
    /// When the present event began, and how many requests ZooKeeper had got by then.
    begun: i64,
    requests: u64,
    ownership: Ownership,
}

impl<'a> Group<'a> {
    /// Of two members, settled.
    pub fn new(
        cluster: &'a Cluster,
        load: &'a Load,
        arguments: &'a Arguments,
        kind: Kind,
        name: String,
        partitions: usize,
    ) -> Result<Self> {
        let ownership = Ownership::of(cluster, &name);
        let members = BTreeMap::new();
        let mut group = Self {
            cluster,
            load,
            arguments,
            kind,
            name,
            partitions,
            members,
            past: Vec::new(),
            begun: 0,
            requests: 0,
            ownership,
        };
        for member in ["m1", "m2"] {
            group.start(member)?;
        }
        group.settle(|_| Some(0))?;
        Ok(group)
    }

    fn start(&mut self, name: &'static str) -> Result {
        let member = Member::start(self.cluster, self.arguments, self.kind, &self.name, name)?;
        self.members.insert(name, member);
        Ok(())
    }

    /// Each event, some more than once, with what it took; then the group ends.
    pub fn go_through_all(mut self) -> Result<Vec<(Event, Outcome)>> {
        let mut outcomes = Vec::new();
        for event in [Event::Join, Event::Leave, Event::Join, Event::Kill] {
            outcomes.push((event, self.go_through(event)?));
        }
        for member in self.members.values() {
            member.term()?;
        }
        for member in self.members.values_mut() {
            member.wait()?;
        }
        match (self.lost(), self.kind) {
            (0, _) => {}
            (lost, Kind::Troupe) => {
                return Err(format!("{} has delivered {lost} records to nobody", self.name).into());
            }
            // it may: it commits what it has not printed, and resolves `largest` anew where nothing was committed
            (lost, Kind::Scala) => eprintln!("{} has delivered {lost} records to nobody", self.name),
        }
        Ok(outcomes)
    }

    /// Records that nobody has delivered, though the ones before and after were.
    fn lost(&self) -> u64 {
        let mut numbers: BTreeMap<i32, BTreeSet<u64>> = BTreeMap::new();
        for member in self.members.values().chain(&self.past) {
            for delivery in member.delivered().iter() {
                numbers.entry(delivery.partition).or_default().insert(delivery.number);
            }
        }
        let missing = |numbers: &BTreeSet<u64>| {
            let ends = numbers.first().zip(numbers.last());
            ends.map_or(0, |(first, last)| last - first + 1 - numbers.len() as u64)
        };
        numbers.values().map(missing).sum()
    }

    /// Time zero is the registration of who joins, the signal to who leaves, the end of the session of who was killed.
    fn go_through(&mut self, event: Event) -> Result<Outcome> {
        self.ownership.begin();
        self.load.begin();
        self.requests = self.requests_so_far()?;
        self.begun = now();
        let begun = self.begun;
        match event {
            Event::Join => {
                self.start(THIRD)?;
                self.settle(|ownership| ownership.registered(THIRD))
            }
            Event::Leave => {
                let leaving = self.members.remove(THIRD).ok_or("nobody to leave")?;
                leaving.term()?;
                self.past.push(leaving);
                let outcome = self.settle(|ownership| ownership.gone(THIRD).map(|_| begun))?;
                let gone = self.ownership.gone(THIRD).map(|at| millis(at - begun));
                Ok(Outcome { gone, ..outcome })
            }
            Event::Kill => {
                let mut killed = self.members.remove(THIRD).ok_or("nobody to kill")?;
                killed.kill()?;
                self.past.push(killed);
                let outcome = self.settle(|ownership| ownership.gone(THIRD))?;
                let gone = self.ownership.gone(THIRD).map(|at| millis(at - begun));
                Ok(Outcome { gone, ..outcome })
            }
        }
    }

    fn requests_so_far(&self) -> Result<u64> {
        let status = self.cluster.zookeeper().command("srvr")?;
        let count = status.lines().find_map(|line| line.strip_prefix("Received: "));
        Ok(count.ok_or("ZooKeeper's status has no count of requests")?.parse()?)
    }

    /// Waits until time zero has come, all partitions are owned evenly and flow, and nothing changes any more.
    fn settle(&mut self, zero: impl Fn(&Ownership) -> Option<i64>) -> Result<Outcome> {
        let (begun, mut changed) = (Instant::now(), Instant::now());
        loop {
            if self.ownership.read() {
                changed = Instant::now();
            }
            let names: Vec<&str> = self.members.keys().copied().collect();
            if changed.elapsed() >= QUIET
                && self.ownership.is_whole(self.partitions, &names)
                && let Some(zero) = zero(&self.ownership)
                && let Some(outcome) = self.outcome(zero)
            {
                return Ok(outcome);
            }
            for (name, member) in &mut self.members {
                if member.has_ended()? {
                    return Err(format!("{name} of {} has ended", self.name).into());
                }
            }
            if begun.elapsed() > LIMIT {
                return Err(format!("{} has not settled in {LIMIT:?}", self.name).into());
            }
            sleep(LOOK);
        }
    }

    /// What it took since `zero`, if every partition flows.
    fn outcome(&self, zero: i64) -> Option<Outcome> {
        let firsts: BTreeMap<&str, Times> =
            self.members.iter().map(|(name, member)| (*name, by_partition(member, self.begun))).collect();
        let (mut owned, mut flowing) = (zero, zero);
        for (partition, member, since) in self.ownership.owners() {
            let from = since.max(zero);
            let records = firsts.get(member)?.get(&partition)?;
            let (at, produced) = *records.iter().rfind(|(at, _)| *at >= from)?;
            owned = owned.max(from);
            flowing = flowing.max(at - (produced - from).max(0));
        }
        let (without_owner, let_go) = self.ownership.without_owner(self.partitions);
        Some(Outcome {
            owned: millis(owned - zero),
            flowing: millis(flowing - zero),
            held_up: self.load.longest().as_secs_f64() * 1000.0,
            without_owner: millis(without_owner),
            let_go,
            requests: self.requests_so_far().unwrap_or_default().saturating_sub(self.requests),
            gone: None,
        })
    }
}

/// By partition, of each record when it came and when it was produced, the last first.
type Times = HashMap<i32, Vec<(i64, i64)>>;

fn by_partition(member: &Member, since: i64) -> Times {
    let mut times = Times::new();
    for delivery in member.delivered().iter().rev().take_while(|delivery| delivery.at >= since) {
        times.entry(delivery.partition).or_default().push((delivery.at, delivery.produced));
    }
    times
}

fn millis(micros: i64) -> f64 {
    micros as f64 / 1000.0
}
