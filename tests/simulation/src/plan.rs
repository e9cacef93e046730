//! The shape of a run, from its seed.

use std::time::Duration;

use kafka_troupe_proto::group::InFlight;

use crate::chance::Chance;
use crate::handling::{self, GivingUp};
use crate::storage::{self, Storage};

/// The shape of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Members at the beginning.
    pub members: usize,
    /// Most members at one time.
    pub most_members: usize,
    /// Topics and their partitions.
    pub topics: Vec<(String, usize)>,
    /// Brokers.
    pub brokers: i32,
    /// How long things go wrong.
    pub troubled: Duration,
    /// Only what must not cost a duplicate: members come and leave, leaders move, partitions are added.
    pub calm: bool,
    /// `auto.offset.reset`: the end of the log, where nothing is known of a partition; else its beginning.
    pub largest: bool,
    /// `auto.commit.enable`.
    pub auto_commit: bool,
    /// `partition.assignment.strategy`: round-robin instead of range.
    pub round_robin: bool,
    /// Handlers take long at times.
    pub slow_handlers: bool,
    /// `zookeeper.session.timeout.ms`.
    pub session_timeout: u64,
    /// `auto.commit.interval.ms`.
    pub commit_interval: u64,
    /// `rebalance.backoff.ms`.
    pub backoff: u64,
    /// Messages to and from ZooKeeper are under way for at most so many milliseconds, usually.
    pub pace: u64,
    /// Between two faults, at most.
    pub between_faults: u64,
    /// Where offsets are stored; members are restarted one by one for each but the first.
    pub storages: Vec<Storage>,
    /// `offsets.channel.backoff.ms`.
    pub channel_backoff: u64,
    /// `offsets.channel.socket.timeout.ms`.
    pub channel_timeout: u64,
    /// `num.consumer.fetchers`.
    pub fetchers: u32,
    /// How many records of a stream are with its handler at once.
    pub in_flight: InFlight,
    /// What becomes of records that a handler fails on.
    pub giving_up: GivingUp,
    /// Members pause topics.
    pub pauses: bool,
}

impl Plan {
    /// Drawn from the seed.
    pub fn new(seed: u64) -> Self {
        let chance = Chance::new(seed, 0);
        // of its own, so that it changes nothing else
        let how = Chance::new(seed, 4);
        let buries = Chance::new(seed, 6).once_in(4);
        let largest = chance.once_in(4);
        let members = chance.draw(|rng| rng.usize(1..=3));
        let partitions = |most: usize| chance.draw(|rng| rng.usize(1..=most));
        Self {
            members,
            most_members: 4,
            topics: vec![("orders".to_owned(), partitions(6)), ("payments".to_owned(), partitions(3))],
            brokers: chance.draw(|rng| rng.i32(1..=3)),
            troubled: chance.millis(30_000, 80_000),
            calm: chance.once_in(5),
            largest,
            // else nothing stands for where a partition began, and who comes next begins elsewhere
            auto_commit: largest || !chance.once_in(6),
            round_robin: chance.once_in(4),
            slow_handlers: chance.once_in(3),
            session_timeout: chance.draw(|rng| rng.u64(2..=8)) * 1_000,
            commit_interval: chance.draw(|rng| rng.u64(200..=10_000)),
            backoff: chance.draw(|rng| rng.u64(500..=2_500)),
            pace: chance.one_of(&[1, 5, 20, 100]).unwrap_or(5),
            between_faults: chance.one_of(&[500, 1_500, 4_000]).unwrap_or(4_000),
            storages: storage::draw(&chance),
            channel_backoff: chance.draw(|rng| rng.u64(50..=1_000)),
            channel_timeout: chance.draw(|rng| rng.u64(500..=10_000)),
            fetchers: chance.one_of(&[1, 3, 1]).unwrap_or(1),
            in_flight: handling::draw_in_flight(&how),
            giving_up: Some(handling::draw_giving_up(&how)).filter(|_| !buries).unwrap_or(GivingUp::Buries),
            pauses: how.once_in(3),
        }
    }

    /// Whether what is given up is written to a dead-letter topic.
    pub fn writes_letters(&self) -> bool {
        self.giving_up == GivingUp::Buries
    }
}
