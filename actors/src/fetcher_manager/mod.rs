//! # FetcherManager: which broker serves which partition
//!
//! Finds leaders, makes positions that are not known or do not count any more, and keeps the
//! [`BrokerFetcher`](crate::broker_fetcher::BrokerFetcher)s of the brokers that we read a partition of ours from:
//! `num.consumer.fetchers` for each, of which those run that have partitions (`sharing.rs`).
//!
//! *Mailbox*: requests [`StartFetching`], [`StopFetching`], [`SetBrokers`], [`Describe`], [`Stop`]; events
//! [`PartitionsFailed`], [`ReplicaPreferred`], [`TopicsRemade`], [`ChildExited`]; and the ends of its own I/O: leaders
//! found, positions made. Internal: `Drive`.
//!
//! *State*: where each partition stands (`placements.rs`: leaderless, position being made, fetching, following,
//! failed), the brokers, and the fetchers that run. `drive` looks at these after every message and does what is due;
//! after a burst of starts once, by `Drive`.
//!
//! *Supervision*: a child of the consumer system. A fetcher that exits gives its partitions back: their
//! [`fetched`](OwnedPartition::fetched) offsets are the truth. When the manager ends, for whatever reason, its
//! fetchers end as well.
//!
//! *Talks to*: brokers (Metadata, ListOffsets, OffsetForLeaderEpoch, on connections of their own that live for one
//! question); its fetchers; the [`OffsetCommitter`](crate::offset_committer)
//! ([`CommitReset`](crate::offset_committer::CommitReset)); [`TopicMetadata`](crate::topic_metadata) ([`PollNow`]).
//!
//! # Rules
//! * Whatever fails waits `refresh.leader.backoff.ms`, then its leader is looked up; others go on meanwhile.
//! * One lookup is under way, at the broker that answered the last; when it refuses, or is silent for 3 s, at the next
//!   as well. What it told counts for 10 s for partitions that start and have not failed. It makes no topics.
//! * A position that was made is stored before its first record is fetched (rule 8); only a seek lowers one otherwise.
//!   It is made when there is none, when it is out of range, when the topic was made again, and when the log was
//!   truncated (`reset_rule.rs`, `truncation.rs`); never before all that was fetched is handled.
//! * Who leads is asked of the broker; where to read is the leader's to say (`client.rack`), for five minutes. A
//!   replica that fails is not followed for 30 s.
//! * A leader epoch that is never heard of again is forgotten after 5 s (`placed.rs`).

mod coordinator;
mod describe;
mod driving;
mod fetchers;
mod known_brokers;
mod leaders;
mod log_ends;
mod placed;
mod placements;
mod positions;
mod reset_rule;
mod settings;
mod sharing;
mod truncation;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::Disposition;
use tokio::time::Instant;

use crate::broker_fetcher::RemovePartitions;
use crate::registry::OwnedPartition;
use crate::stream_queue::FetchedChunk;
use crate::supervise::{ChildExited, ExitGuard};
use crate::topic_metadata::PollNow;
pub(crate) use coordinator::find_coordinator;
pub use describe::{BrokerStatus, Describe, FetchingStatus, WaitingPartition};
use fetchers::Fetchers;
pub use known_brokers::KnownBrokers;
pub(crate) use leaders::{Leaders, PATIENCE, ask_metadata, find_leaders, in_turn};
pub(crate) use log_ends::{LeaderConnection, Listed};
use placements::{GivenBack, Place, Placements};
pub use positions::ResetStore;
pub use settings::FetchSettings;
use sharing::FetcherId;

/// A partition to be fetched, and the stream that gets its chunks.
#[derive(Clone)]
pub struct Assigned {
    /// The claim; its [`fetched`](OwnedPartition::fetched) offset is where fetching begins, or none.
    pub partition: Arc<OwnedPartition>,
    /// The stream's mailbox.
    pub stream: Recipient<FetchedChunk>,
}

/// Begin to fetch these, or begin again at their (rewound) offset. An earlier claim of the same partition is
/// replaced.
#[derive(Message)]
#[rtype(result = "()")]
pub struct StartFetching(pub Vec<Assigned>);

/// Stop fetching these. Chunks that are still on their way are refused by the partition's closed gate.
#[derive(Message)]
#[rtype(result = "()")]
pub struct StopFetching(pub Vec<TopicPartition>);

/// A broker's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerAddress {
    /// `broker.id`.
    pub id: i32,
    /// Host name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// The brokers that are registered now; a broker that came back on another port is dialled there.
#[derive(Message)]
#[rtype(result = "()")]
pub struct SetBrokers(pub Vec<BrokerAddress>);

/// Claim, disposition and the reason in words.
pub type FailedPartition = (Arc<OwnedPartition>, Disposition, String);

/// A fetcher gives partitions back, each with what is to be done about it.
#[derive(Message)]
#[rtype(result = "()")]
pub struct PartitionsFailed {
    /// The broker.
    pub broker: i32,
    /// Claim, disposition and the reason in words.
    pub partitions: Vec<FailedPartition>,
    /// How long to leave them alone, in place of `refresh.leader.backoff.ms`: trying again is dear, or helps nobody
    /// soon.
    pub rest: Option<Duration>,
}

/// A fetcher gives partitions back that its broker tells us to read from another replica, one in our rack (KIP-392).
#[derive(Message)]
#[rtype(result = "()")]
pub struct ReplicaPreferred {
    /// The broker, which leads them.
    pub broker: i32,
    /// Claim, and the broker to read it from.
    pub partitions: Vec<(Arc<OwnedPartition>, i32)>,
}

/// These partitions are those of a new topic of the same name: what is known of their positions is not theirs. Each
/// gets a new one, once what was fetched of it is handled.
#[derive(Message)]
#[rtype(result = "()")]
pub struct TopicsRemade(pub Vec<TopicPartition>);

/// End, with all fetchers.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Stop;

/// Look at what is due, once for all the starts that came before.
#[derive(Message)]
#[rtype(result = "()")]
struct Drive;

/// Which broker serves which partition.
pub struct FetcherManager {
    settings: Arc<FetchSettings>,
    store: ResetStore,
    /// Tells the parent when we are gone without having been told to.
    guard: ExitGuard,
    placements: Placements,
    /// Where to dial, by id: as the coordinator and as metadata told it, whichever changed last.
    brokers: BTreeMap<i32, BrokerAddress>,
    /// As the coordinator told them last.
    registered: BTreeMap<i32, BrokerAddress>,
    fetchers: Fetchers,
    /// A Metadata request is in flight.
    looking_up: bool,
    /// What the last one told, and when. In a rebalance partitions start one by one; each would wait for its own.
    known: Option<(Instant, Leaders)>,
    /// A [`Drive`] is on its way to us.
    driving: bool,
    /// The broker to ask first: the one that answered last.
    ask_first: i32,
    /// Why the last lookup failed, so that it is logged once.
    lookup_error: Option<String>,
    /// Wakes us for the next lookup.
    alarm: Option<SpawnHandle>,
    /// Messages handled, for the metrics.
    messages: u64,
}

impl FetcherManager {
    /// A manager without partitions and brokers. Its fetchers run on `arbiter`.
    pub fn new(settings: FetchSettings, store: ResetStore, arbiter: ArbiterHandle, guard: ExitGuard) -> Self {
        let settings = Arc::new(settings);
        Self {
            fetchers: Fetchers::new(Arc::clone(&settings), arbiter),
            settings,
            store,
            guard,
            placements: Placements::default(),
            brokers: BTreeMap::new(),
            registered: BTreeMap::new(),
            looking_up: false,
            known: None,
            driving: false,
            ask_first: i32::MIN,
            lookup_error: None,
            alarm: None,
            messages: 0,
        }
    }

    #[cfg(feature = "chaos")]
    pub(crate) fn crash_fetchers(&self) {
        for fetcher in self.fetchers.all() {
            self.fetchers.send(fetcher, crate::chaos::Crash);
        }
    }

    /// Has the fetchers stop with what they have of these; `place` moves one, and says at which broker it is.
    fn take_from_fetchers(
        &mut self,
        partitions: Vec<TopicPartition>,
        place: impl Fn(&mut Placements, &TopicPartition) -> Option<i32>,
    ) {
        let taken = partitions.into_iter().filter_map(|key| Some((place(&mut self.placements, &key)?, key)));
        let taken: Vec<_> = taken.collect();
        self.remove_from_fetchers(taken);
    }

    /// Each with the broker that it is fetched from.
    fn remove_from_fetchers(&self, partitions: impl IntoIterator<Item = (i32, TopicPartition)>) {
        let (sharing, mut by_fetcher) = (self.fetchers.sharing(), BTreeMap::<_, Vec<_>>::new());
        for (broker, partition) in partitions {
            by_fetcher.entry(sharing.fetcher_of(broker, &partition)).or_default().push(partition);
        }
        for (fetcher, partitions) in by_fetcher {
            self.fetchers.send(fetcher, RemovePartitions(partitions));
        }
    }

    /// When what fails now is tried again.
    fn retry_at(&self) -> Instant {
        Instant::now() + self.settings.leader_backoff
    }
}

impl Actor for FetcherManager {
    type Context = Context<Self>;
}

impl Handler<StartFetching> for FetcherManager {
    type Result = ();

    fn handle(&mut self, StartFetching(assigned): StartFetching, ctx: &mut Context<Self>) {
        self.messages += 1;
        for assigned in assigned {
            let key = assigned.partition.topic_partition.clone();
            if let Some(broker) = self.placements.start(assigned, Instant::now()) {
                self.remove_from_fetchers([(broker, key)]);
            }
        }
        if !std::mem::replace(&mut self.driving, true) {
            ctx.notify(Drive);
        }
    }
}

impl Handler<Drive> for FetcherManager {
    type Result = ();

    fn handle(&mut self, _: Drive, ctx: &mut Context<Self>) {
        self.driving = false;
        self.drive(ctx);
    }
}

impl Handler<StopFetching> for FetcherManager {
    type Result = ();

    fn handle(&mut self, StopFetching(partitions): StopFetching, ctx: &mut Context<Self>) {
        self.messages += 1;
        self.take_from_fetchers(partitions, Placements::stop);
        self.drive(ctx);
    }
}

impl Handler<SetBrokers> for FetcherManager {
    type Result = ();

    fn handle(&mut self, SetBrokers(brokers): SetBrokers, ctx: &mut Context<Self>) {
        self.messages += 1;
        self.registered(brokers);
        self.drive(ctx);
    }
}

impl Handler<TopicsRemade> for FetcherManager {
    type Result = ();

    fn handle(&mut self, TopicsRemade(partitions): TopicsRemade, ctx: &mut Context<Self>) {
        self.messages += 1;
        self.known = None;
        let now = Instant::now();
        self.take_from_fetchers(partitions, |placements, partition| placements.topic_remade(partition, now));
        self.drive(ctx);
    }
}

impl Handler<PartitionsFailed> for FetcherManager {
    type Result = ();

    fn handle(&mut self, failed: PartitionsFailed, ctx: &mut Context<Self>) {
        self.messages += 1;
        let at = Place::Fetching { broker: failed.broker };
        let retry_at = failed.rest.map_or(self.retry_at(), |rest| Instant::now() + rest);
        let (mut given_back, mut topic_in_doubt) = (failed.partitions, false);
        given_back.retain(|(partition, disposition, why)| {
            let outcome = self.partition_failed(&at, partition, *disposition, why, retry_at);
            let tells = matches!(disposition, Disposition::FindLeader | Disposition::ResetOffset);
            topic_in_doubt |= tells && outcome == GivenBack::News;
            outcome != GivenBack::Stale
        });
        if topic_in_doubt {
            self.settings.metadata.do_send(PollNow);
        }
        // an earlier life of the fetcher may have given back what the present one has
        let keys = given_back.iter().map(|(partition, ..)| partition.topic_partition.clone());
        self.remove_from_fetchers(keys.map(|key| (failed.broker, key)));
        self.drive(ctx);
    }
}

impl Handler<ReplicaPreferred> for FetcherManager {
    type Result = ();

    fn handle(&mut self, preferred: ReplicaPreferred, ctx: &mut Context<Self>) {
        self.messages += 1;
        let now = Instant::now();
        let mut moved = preferred.partitions;
        moved.retain(|(partition, _)| self.placements.is_fetched_by(preferred.broker, partition));
        // an earlier life of the fetcher may have named what the present one has
        let keys = moved.iter().map(|(partition, _)| partition.topic_partition.clone());
        self.remove_from_fetchers(keys.map(|key| (preferred.broker, key)));
        for (partition, replica) in moved {
            let Some(moved) = self.placements.moved(preferred.broker, &partition, replica, now) else {
                continue;
            };
            if moved.is_news {
                tracing::info!(partition = %partition.topic_partition, replica, why = "client.rack", "reads from a replica");
            }
            self.hand_over(replica, vec![moved.assigned], true, ctx);
        }
        self.drive(ctx);
    }
}

impl Handler<ChildExited> for FetcherManager {
    type Result = ();

    fn handle(&mut self, exited: ChildExited, ctx: &mut Context<Self>) {
        self.messages += 1;
        if let Some((fetcher, delay)) = self.fetchers.exited(&exited) {
            self.fetcher_gone(fetcher, "its fetcher exited", Instant::now() + delay);
        }
        self.drive(ctx);
    }
}

impl Handler<Describe> for FetcherManager {
    type Result = FetchingStatus;

    fn handle(&mut self, _: Describe, _: &mut Context<Self>) -> FetchingStatus {
        self.messages += 1;
        FetchingStatus {
            messages: self.messages,
            brokers: self.fetchers.describe(),
            waiting: describe::waiting(&self.placements),
        }
    }
}

impl Handler<Stop> for FetcherManager {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Context<Self>) {
        self.messages += 1;
        // here and not in `stopped`, which actix calls after a panic as well
        self.guard.dismiss();
        ctx.stop();
    }
}
