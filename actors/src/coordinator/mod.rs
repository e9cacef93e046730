//! # RebalanceCoordinator: which partitions are ours
//!
//! Turns everything that happens to the group into inputs of [`group::Machine`](Machine), and its effects into
//! messages. It decides nothing itself, waits for nothing, and no record passes through it.
//!
//! - *Mailbox*: requests [`DescribeGroup`], [`WaitRegistered`], [`Shutdown`]; events [`SessionEvent`] (session up,
//!   suspended, expired, children or data of a node changed), [`Changes`](crate::topic_metadata::Changes) of topics and
//!   brokers, [`PartitionsLost`], [`ActorRestarted`]. Internal: `AskListener`, `Ended`.
//! - *State*: the machine; partitions that are being started, and those of them that the listener is asked about next;
//!   whose turn it is at each owner node; traces of past rebalances; which other members do not do their part.
//! - *Supervision*: restarted by the `ConsumerSystem` after a panic. The new one stops what the old one ran, reads
//!   which owner nodes are our session's, and goes on from there ([`Machine::adopt`]).
//! - *Talks to*: `ZkSession` (all znodes), `TopicMetadata` (topics and brokers, with `bootstrap.servers`),
//!   `OffsetCommitter` (positions, last flush, brokers), `FetcherManager` (start, stop, brokers, topics made again),
//!   `StreamQueue` (forget chunks), the application's [listener](crate::rebalance_listener).

mod effects;
mod leaving;
mod peers;
mod rebalance_span;
mod recovery;
mod remade;
mod report;
mod snapshot;
mod starting;
mod topics;
mod turns;
mod znodes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::config::ConsumerConfig;
use kafka_troupe_proto::group::peers::PeerFault;
use kafka_troupe_proto::group::{
    Effect, Generation, Input, Machine, Phase, Reason, SessionNumber, Settings, Strategy,
};
use kafka_troupe_proto::schemas::rebalance::v1::RebalanceTrace;
use kafka_troupe_proto::zk::registration::Subscription;
use kafka_troupe_proto::zk::{ConsumerId, paths, paths::GroupPaths};
use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::deadline::Deadline;
use crate::fetcher_manager::{FetcherManager, KnownBrokers};
use crate::lease::Lease;
use crate::offset_committer::{OffsetCommitter, PartitionsLost};
use crate::rebalance_listener::RebalanceListener;
use crate::registry::TopicRegistry;
use crate::stream_queue::Streams;
use crate::supervise::{ExitGuard, Slot};
use crate::topic_metadata::TopicMetadata;
use crate::zk_session::{self, SessionEpoch, SessionEvent, ZkSession};

use peers::Peers;
use report::Traces;
use starting::Ready;
use topics::{Incarnation, Source, Topic};
use znodes::Znodes;

/// How the group stands, as seen from here.
#[derive(Message)]
#[rtype(result = "GroupStatus")]
pub struct DescribeGroup;

/// Answers when this member is registered for the first time, or with why it could not be.
#[derive(Message)]
#[rtype(result = "Result<SessionNumber, String>")]
pub struct WaitRegistered;

/// Stop, flush and release everything; answered when that is done. A second one may bring the end forward.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Shutdown {
    /// Handlers have at most this long to finish, and the flush as well.
    pub drain: Duration,
}

/// Another actor of this member was restarted: what it knew must be told or read again.
#[derive(Message)]
#[rtype(result = "()")]
pub struct ActorRestarted;

/// What the coordinator reports.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GroupStatus {
    /// What the machine waits for.
    pub phase: Phase,
    /// The current rebalance.
    pub generation: Generation,
    /// Rebalances that were carried through.
    pub rebalances: u64,
    /// How long they took in all, with those that failed.
    pub took: Duration,
    /// The last of them, oldest first.
    pub traces: Vec<RebalanceTrace>,
    /// Why whole ownership has been missing for too long, or a partition could not start for as long, while it is so.
    pub failing: Option<String>,
    /// Other members that have given up or plan differently, while they do. We may be well all the same.
    pub peers: Vec<PeerFault>,
    /// Messages that this actor has handled.
    pub messages: u64,
}

/// What a coordinator is made of.
pub(crate) struct CoordinatorParts {
    /// The consumer's configuration.
    pub(crate) config: Arc<ConsumerConfig>,
    /// Our id: the name of our node under `ids`.
    pub(crate) consumer_id: ConsumerId,
    /// What we register.
    pub(crate) subscription: Subscription,
    /// What we own, shared.
    pub(crate) registry: Arc<TopicRegistry>,
    /// Guards every hand-over.
    pub(crate) lease: Arc<Lease>,
    /// Where records go.
    pub(crate) streams: Arc<Streams>,
    /// The session actor.
    pub(crate) session: Slot<ZkSession>,
    /// Tells topics and brokers; empty without `bootstrap.servers`.
    pub(crate) metadata: Slot<TopicMetadata>,
    /// The fetcher manager.
    pub(crate) fetchers: Slot<FetcherManager>,
    /// The committer.
    pub(crate) committer: Slot<OffsetCommitter>,
    /// Kept for those who ask brokers now and then.
    pub(crate) brokers: Arc<KnownBrokers>,
    /// The application's listener; none when it has none.
    pub(crate) listener: Option<Arc<RebalanceListener>>,
    /// Tells the parent of a panic.
    pub(crate) guard: ExitGuard,
}

/// See the [module's page](self).
pub struct RebalanceCoordinator {
    parts: CoordinatorParts,
    machine: Machine,
    /// What an earlier life left is being found; nothing else begins before.
    recovering: bool,
    znodes: Znodes,
    /// Where topics and brokers are read from.
    source: Source,
    /// The machine's clock counts milliseconds from here.
    began: Instant,
    /// The session of our registration, by the session actor's count.
    session: SessionEpoch,
    /// The last session that was reported up.
    seen: Option<SessionEpoch>,
    /// Claimed, and the position is being read or the listener asked: the rebalance that claimed it.
    starting: BTreeMap<TopicPartition, Generation>,
    /// Claimed, and not started since then: the machine takes a claim for whole ownership, and tells of no failure that
    /// goes on.
    unstarted: BTreeMap<TopicPartition, Instant>,
    /// What became ready since the listener was asked last: it is asked about all of it at once.
    asked_next: Vec<Ready>,
    /// Those that the last read found to concern us, whose nodes are watched.
    topics: BTreeMap<Arc<str>, Topic>,
    /// Under which topic each partition that runs began, or its position was made: none if the brokers do not say.
    incarnations: BTreeMap<TopicPartition, Option<Incarnation>>,
    /// The list of topics matters, by the last read.
    filtered: bool,
    /// Whose turn it is at each owner node.
    turns: BTreeMap<TopicPartition, Arc<Mutex<()>>>,
    /// These operations. They are not spawned in our context, which would look at all of them whenever one has ended.
    operations: JoinSet<()>,
    /// Set while the machine is told that another holds this partition: that claim has set a watch on the node, so the
    /// machine's `ReadOwner` for it is answered already.
    watched: Option<TopicPartition>,
    traces: Traces,
    /// Whether the others do what the plan says.
    peers: Peers,
    waiting: Vec<oneshot::Sender<Result<SessionNumber, String>>>,
    leaving: Vec<oneshot::Sender<()>>,
    /// How long handlers have, since we are told to leave.
    stopped_by: Deadline,
    messages: u64,
}

impl RebalanceCoordinator {
    /// A coordinator that is not started yet.
    pub(crate) fn new(parts: CoordinatorParts) -> Self {
        let znodes = Znodes::new(GroupPaths::new(&parts.config.group_id), parts.session.clone());
        Self {
            machine: Machine::new(settings(&parts)),
            recovering: true,
            source: Source::new(&parts.config, &znodes, &parts.metadata),
            znodes,
            began: Instant::now(),
            session: SessionEpoch::default(),
            seen: None,
            starting: BTreeMap::new(),
            unstarted: BTreeMap::new(),
            asked_next: Vec::new(),
            topics: BTreeMap::new(),
            incarnations: BTreeMap::new(),
            filtered: false,
            turns: BTreeMap::new(),
            operations: JoinSet::new(),
            watched: None,
            traces: Traces::new(&parts.config.group_id, parts.consumer_id.as_str()),
            peers: Peers::new(settings(&parts), topics::learnt_late(&parts.config)),
            waiting: Vec::new(),
            leaving: Vec::new(),
            stopped_by: Deadline::new(),
            messages: 0,
            parts,
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The one way into the machine: an input in, its effects out, in order.
    fn take(&mut self, input: Input, ctx: &mut Context<Self>) {
        let effects = self.machine.step(self.now(), input);
        for effect in effects {
            self.run(effect, ctx);
        }
    }

    /// Runs I/O beside the actor; its result is the machine's next input.
    fn spawn_input(&self, io: impl Future<Output = Input> + 'static, ctx: &mut Context<Self>) {
        ctx.spawn(io.into_actor(self).map(|input, this, ctx| this.take(input, ctx)));
    }

    fn session_event(&mut self, event: SessionEvent, ctx: &mut Context<Self>) {
        match event {
            SessionEvent::Connected { session } if self.seen == Some(session) => {
                self.take(Input::Reconnected, ctx);
            }
            SessionEvent::Connected { session } => {
                self.seen = Some(session);
                self.take(Input::SessionStarted, ctx);
            }
            SessionEvent::Expired { .. } => self.take(Input::SessionExpired, ctx),
            SessionEvent::ChildrenChanged { path } | SessionEvent::DataChanged { path } => {
                self.changed(&path, ctx);
            }
            SessionEvent::Deleted { path } => self.deleted(&path, ctx),
            SessionEvent::RegistrationMissing => self.take(Input::RegistrationMissing, ctx),
            SessionEvent::Failed { why } => self.answer_registered(&Err(why.to_string())),
            // the lease stops delivery by itself
            SessionEvent::Suspended => {
                tracing::warn!("zookeeper connection lost; delivery goes on until the lease ends");
            }
        }
    }

    /// A watched node changed: a trigger, or news of one owner node.
    fn changed(&mut self, path: &str, ctx: &mut Context<Self>) {
        if let Some(partition) = self.znodes.owner_partition(path) {
            if let Some(session) = self.machine.session() {
                self.run(Effect::ReadOwner { session, partition }, ctx);
            }
            return;
        }
        let reason = match path {
            path if path == self.znodes.paths.ids() => Reason::ConsumersChanged,
            paths::BROKER_IDS => Reason::BrokersChanged,
            paths::BROKER_TOPICS => Reason::TopicsChanged,
            _ => Reason::PartitionsChanged,
        };
        self.take(Input::Trigger(reason), ctx);
    }

    /// What is waited for need not be read: the create that follows tells how it stands.
    fn deleted(&mut self, path: &str, ctx: &mut Context<Self>) {
        let partition = self.znodes.owner_partition(path).filter(|tp| self.machine.waits_for(tp));
        match partition.zip(self.machine.session()) {
            Some((partition, session)) => {
                self.take(Input::OwnerRead { session, partition, outcome: Ok(None) }, ctx);
            }
            None => self.changed(path, ctx),
        }
    }

    fn answer_registered(&mut self, outcome: &Result<SessionNumber, String>) {
        for waiting in self.waiting.drain(..) {
            // who asked may have gone
            let _ = waiting.send(outcome.clone());
        }
    }
}

fn settings(parts: &CoordinatorParts) -> Settings {
    let config = &parts.config;
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Settings {
        consumer_id: parts.consumer_id.as_str().to_owned(),
        strategy: Strategy::configured(config),
        backoff: millis(config.rebalance_backoff),
        max_retries: config.rebalance_max_retries.into(),
        drain: millis(config.drain_timeout),
    }
}

impl Actor for RebalanceCoordinator {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        // what an earlier life owned is stopped and found again; then the session's events tell the rest
        let recovery = recovery::recover(&self.parts, self.znodes.clone());
        ctx.spawn(recovery.into_actor(self).map(|found, this, ctx| {
            this.recovering = false;
            if let Some(found) = found {
                this.session = found.epoch;
                this.machine =
                    Machine::adopt(settings(&this.parts), found.session, found.generation, found.nodes);
            }
            this.parts.session.do_send(zk_session::Subscribe(ctx.address().recipient()));
        }));
    }
}

impl Handler<SessionEvent> for RebalanceCoordinator {
    type Result = ();

    fn handle(&mut self, event: SessionEvent, ctx: &mut Self::Context) {
        self.messages += 1;
        self.session_event(event, ctx);
    }
}

impl Handler<PartitionsLost> for RebalanceCoordinator {
    type Result = ();

    fn handle(&mut self, lost: PartitionsLost, ctx: &mut Self::Context) {
        self.messages += 1;
        tracing::warn!(partition = %lost.partition, why = lost.why, "partition lost");
        if let Some(session) = self.machine.session() {
            self.run(Effect::ReadOwner { session, partition: lost.partition }, ctx);
        }
    }
}

impl Handler<ActorRestarted> for RebalanceCoordinator {
    type Result = ();

    fn handle(&mut self, _: ActorRestarted, ctx: &mut Self::Context) {
        self.messages += 1;
        if self.recovering {
            return;
        }
        self.parts.session.do_send(zk_session::Subscribe(ctx.address().recipient()));
        self.take(Input::Trigger(Reason::Restarted), ctx);
    }
}

impl Handler<WaitRegistered> for RebalanceCoordinator {
    type Result = ResponseFuture<Result<SessionNumber, String>>;

    fn handle(&mut self, _: WaitRegistered, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        let (answer, outcome) = oneshot::channel();
        match self.machine.session() {
            // the receiver is held below
            Some(session) => drop(answer.send(Ok(session))),
            None => self.waiting.push(answer),
        }
        Box::pin(async { outcome.await.unwrap_or_else(|_| Err("the coordinator ended".to_owned())) })
    }
}

impl Handler<DescribeGroup> for RebalanceCoordinator {
    type Result = MessageResult<DescribeGroup>;

    fn handle(&mut self, _: DescribeGroup, _: &mut Self::Context) -> Self::Result {
        self.messages += 1;
        MessageResult(GroupStatus {
            phase: self.machine.phase(),
            generation: self.machine.generation(),
            rebalances: self.traces.settled(),
            took: self.traces.took(),
            traces: self.traces.last(),
            failing: self.traces.failing().map(str::to_owned),
            peers: self.peers.faults().to_vec(),
            messages: self.messages,
        })
    }
}
