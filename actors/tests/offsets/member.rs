//! A member's session and committer, as the coordinator would use them.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe_actors::chaos::Crash;
use kafka_troupe_actors::fetcher_manager::{BrokerAddress, SetBrokers};
use kafka_troupe_actors::lease::{BootInstant, Lease, SessionEpoch};
use kafka_troupe_actors::offset_committer::{
    ChannelSettings, CommitError, CommitNow, CommitOutcome, CommitReset, CommitSeek, CommitterParts,
    FlushGeneration, Inherited, OffsetCommitter, ReadPosition, Stored, ToCommit, TopicNodes,
};
use kafka_troupe_actors::registry::{Claim, OwnedPartition, Position, TopicRegistry};
use kafka_troupe_actors::stream_queue::Credit;
use kafka_troupe_actors::supervise::{ChildExited, ExitGuard, Slot};
use kafka_troupe_actors::zk_session::{
    self, ClientHolder, CreateEphemeral, Register, Registered, SessionConfig, WaitConnected, ZkSession,
};
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::{Generation, SessionNumber};
use kafka_troupe_proto::zk::ConsumerThreadId;
use kafka_troupe_proto::zk::paths::GroupPaths;

use tokio::time::Instant;

use crate::scripted::Scripted;
use kafka_troupe_actors::testkit::MemoryZooKeeper;

/// Longer than anything here takes on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub fn partition() -> TopicPartition {
    TopicPartition::new("t", 0)
}

fn config() -> SessionConfig {
    let mut config = SessionConfig::new("memory".parse().expect("a connect string"));
    // no session ends but on command
    config.session_timeout = Duration::from_secs(600);
    config
}

/// Fails the test when a child exits by itself, unless that is meant.
#[derive(Clone, Default)]
struct Parent(Arc<AtomicBool>);

impl Actor for Parent {
    type Context = Context<Self>;
}

impl Handler<ChildExited> for Parent {
    type Result = ();

    fn handle(&mut self, exited: ChildExited, _: &mut Context<Self>) {
        assert!(self.0.load(Relaxed), "{exited:?}");
    }
}

pub fn guard() -> ExitGuard {
    ExitGuard::new("child", 1, Parent::default().start().recipient())
}

/// One of our members: consumer id `g_<name>`, thread 0.
pub struct Member {
    pub zk: Scripted,
    pub session: Addr<ZkSession>,
    pub committer: Addr<OffsetCommitter>,
    lease: Arc<Lease>,
    registered: Registered,
    registry: Arc<TopicRegistry>,
    thread: ConsumerThreadId,
    /// Makes a committer of the member; more than one would be its lives.
    make: Box<dyn Fn() -> Addr<OffsetCommitter>>,
    /// It is to panic.
    crashes: Arc<AtomicBool>,
}

/// What is claimed, and what is known of it: by default partition 0, and nothing.
#[derive(Default)]
pub struct Claiming {
    pub number: i32,
    /// What the stored offset is held against.
    pub topics: Option<TopicNodes>,
    /// In place of the member's.
    pub lease: Option<Arc<Lease>>,
    /// Under a running group.
    pub appeared: bool,
    /// The stored offset is of one.
    pub earlier_topic: bool,
}

impl Member {
    /// Registered in a session of its own.
    pub async fn join(ensemble: &MemoryZooKeeper, name: &str, automatic: bool) -> Self {
        Self::join_storing(ensemble, name, automatic, None).await
    }

    /// The same, with offsets in Kafka.
    pub async fn join_storing(
        ensemble: &MemoryZooKeeper,
        name: &str,
        automatic: bool,
        kafka: Option<ChannelSettings>,
    ) -> Self {
        let (zk, lease) = (Scripted::over(ensemble), Arc::new(Lease::new()));
        let holder = ClientHolder::new(lease.clone());
        let session = ZkSession::start(&Arbiter::current(), config(), Arc::new(zk.clone()), holder, None);
        asked(session.send(WaitConnected)).await.unwrap();
        let ids = Register { path: format!("/consumers/g/ids/g_{name}"), data: b"{}".to_vec() };
        let registered = asked(session.send(ids)).await.unwrap();
        let (slot, registry) = (Slot::default(), Arc::new(TopicRegistry::default()));
        slot.set(session.clone());
        let shared = registry.clone();
        let crashes = Arc::<AtomicBool>::default();
        let parent = Parent(crashes.clone());
        let inherited = Arc::<Inherited>::default();
        let make = move || {
            let parts = CommitterParts {
                paths: GroupPaths::new("g"),
                registry: shared.clone(),
                session: slot.clone(),
                kafka: kafka.clone(),
                coordinator: Slot::default(),
                interval: automatic.then_some(Duration::from_secs(3600)),
                automatic,
                inherited: inherited.clone(),
                guard: ExitGuard::new("committer", 1, parent.clone().start().recipient()),
            };
            OffsetCommitter::new(parts).start()
        };
        let thread = ConsumerThreadId::new(&format!("g_{name}"), 0);
        Self {
            zk,
            session,
            committer: make(),
            lease,
            registered,
            registry,
            thread,
            crashes,
            make: Box::new(make),
        }
    }

    pub fn id(&self) -> i64 {
        self.registered.id
    }

    /// Claims the partition and starts it at its stored position, as the coordinator does; the script begins then.
    pub async fn claim(&self) -> Arc<OwnedPartition> {
        self.claim_scripted(Claiming::default()).await
    }

    pub async fn claim_appeared(&self) -> Arc<OwnedPartition> {
        self.claim_scripted(Claiming { appeared: true, ..Claiming::default() }).await
    }

    /// The same, knowing that the stored offset is of an earlier topic.
    pub async fn claim_of_earlier_topic(&self) -> Arc<OwnedPartition> {
        self.claim_scripted(Claiming { earlier_topic: true, ..Claiming::default() }).await
    }

    async fn claim_scripted(&self, claiming: Claiming) -> Arc<OwnedPartition> {
        let claimed = self.claim_by(claiming).await;
        assert_eq!(self.zk.steps(), ["create owner", "read offset"], "a claim writes no offset");
        self.zk.begin();
        claimed
    }

    /// Claims a partition and starts it at its stored position, wherever that is.
    pub async fn claim_number(&self, number: i32) -> Arc<OwnedPartition> {
        self.claim_by(Claiming { number, ..Claiming::default() }).await
    }

    pub async fn claim_by(&self, claiming: Claiming) -> Arc<OwnedPartition> {
        let Claiming { number, topics, lease, appeared, earlier_topic } = claiming;
        let session = self.registered.session;
        let path = format!("/consumers/g/owners/t/{number}");
        let create = CreateEphemeral { session, path, data: self.thread.as_str().into() };
        let created = asked(self.session.send(create)).await.unwrap();
        assert_eq!(created, zk_session::Claim::Created { owner: self.id() });
        let mut position = self.read_number(number, topics).await.unwrap();
        position.earlier_topic |= earlier_topic;
        let claim = Claim {
            topic_partition: TopicPartition::new("t", number),
            generation: Generation(1),
            session: SessionNumber(self.id()),
            epoch: session,
            thread: self.thread.clone(),
            appeared,
            position,
        };
        let lease = lease.unwrap_or_else(|| self.lease.clone());
        let claimed = Arc::new(OwnedPartition::new(claim, Arc::new(Credit::new(2, 1 << 20)), lease));
        self.registry.insert(claimed.clone());
        claimed
    }

    /// Ours, of our session, that ends after this time.
    pub fn lease_of(&self, time: Duration) -> Arc<Lease> {
        let lease = Arc::new(Lease::new());
        assert!(lease.extend_to(self.registered.session, BootInstant::now() + time));
        lease
    }

    pub async fn read_number(
        &self,
        number: i32,
        topics: Option<TopicNodes>,
    ) -> Result<Position, CommitError> {
        let read = ReadPosition { partition: TopicPartition::new("t", number), topics };
        asked(self.committer.send(read)).await.map(|stored| stored.position)
    }

    /// The committer panics, and another takes its place.
    pub async fn restart_committer(&mut self, brokers: Vec<BrokerAddress>) {
        self.restart_committer_untold().await;
        self.committer.do_send(SetBrokers(brokers));
    }

    /// The same, and nobody tells it of brokers.
    pub async fn restart_committer_untold(&mut self) {
        self.crashes.store(true, Relaxed);
        self.committer.do_send(Crash);
        while self.committer.connected() {
            tokio::task::yield_now().await;
        }
        self.committer = (self.make)();
    }

    /// Reads the stored offset, and holds it against the topic.
    pub async fn read_position(&self, topics: TopicNodes) -> Position {
        self.read_stored(topics).await.position
    }

    /// The same, with the transaction that made the topic.
    pub async fn read_stored(&self, topics: TopicNodes) -> Stored {
        let read = ReadPosition { partition: partition(), topics: Some(topics) };
        asked(self.committer.send(read)).await.unwrap()
    }

    /// Acknowledges up to an offset, and commits.
    pub async fn commit(&self, claimed: &OwnedPartition, acked: i64) -> Result<usize, CommitError> {
        claimed.advance_delivered(acked);
        claimed.ack(acked);
        self.commit_again().await
    }

    pub async fn commit_again(&self) -> Result<usize, CommitError> {
        self.commit_what(ToCommit::Acknowledged).await.all()
    }

    pub async fn commit_what(&self, what: ToCommit) -> CommitOutcome {
        asked(self.committer.send(CommitNow { what, why: "test" })).await
    }

    pub async fn reset(&self, claimed: &Arc<OwnedPartition>, offset: i64) -> Result<i64, CommitError> {
        self.reset_from(claimed, claimed.fetched(), offset).await
    }

    /// The same, to be waited for while the member is used.
    pub fn resetting(
        &self,
        claimed: &Arc<OwnedPartition>,
        offset: i64,
    ) -> impl Future<Output = Result<i64, CommitError>> + use<> {
        let (partition, topic) = (claimed.clone(), claimed.topic_number());
        asked(self.committer.send(CommitReset { partition, instead_of: claimed.fetched(), topic, offset }))
    }

    pub async fn reset_from(
        &self,
        claimed: &Arc<OwnedPartition>,
        instead_of: i64,
        offset: i64,
    ) -> Result<i64, CommitError> {
        let reset =
            CommitReset { partition: claimed.clone(), instead_of, topic: claimed.topic_number(), offset };
        asked(self.committer.send(reset)).await
    }

    /// Answers the claim as renewed at the offset.
    pub async fn seek(
        &self,
        claimed: &Arc<OwnedPartition>,
        offset: i64,
    ) -> Result<Option<Arc<OwnedPartition>>, CommitError> {
        claimed.close();
        asked(self.committer.send(CommitSeek { claim: claimed.clone(), offset })).await
    }

    /// The claim goes on as it was, once more.
    pub fn renew(&self, claimed: &Arc<OwnedPartition>) -> Arc<OwnedPartition> {
        let renewed = Arc::new(claimed.renewed());
        assert!(self.registry.renew(claimed, renewed.clone()));
        renewed
    }

    /// The claim is given up now.
    pub fn retire(&self, claimed: &Arc<OwnedPartition>) {
        claimed.close();
        self.registry.retire(&claimed.topic_partition);
    }

    /// Its last flush is due.
    pub fn settle(&self, claimed: &Arc<OwnedPartition>) -> Vec<Arc<OwnedPartition>> {
        self.registry.settle(vec![claimed.clone()])
    }

    /// It is somebody else's now, as far as we know.
    pub fn losing(&self, claimed: &Arc<OwnedPartition>) -> impl FnOnce() + Send + use<> {
        let (registry, claimed) = (self.registry.clone(), claimed.clone());
        move || {
            claimed.close();
            registry.retire(&claimed.topic_partition);
            registry.forget(&claimed.topic_partition);
        }
    }

    /// Has the claim given up, when it is called.
    pub fn retiring(&self) -> impl FnOnce() + Send + use<> {
        let registry = self.registry.clone();
        move || drop(registry.retire(&partition()))
    }

    pub async fn flush(&self, retired: Vec<Arc<OwnedPartition>>) {
        self.flush_until(retired, Instant::now()).await;
    }

    pub async fn flush_until(&self, partitions: Vec<Arc<OwnedPartition>>, until: Instant) {
        asked(self.committer.send(FlushGeneration { partitions, until })).await;
    }

    /// Waits for the session after the one that has ended.
    pub async fn wait_for_next_session(&self) {
        let next = SessionEpoch(self.registered.session.0 + 1);
        let wait = async {
            while !self.lease.is_live_in(next) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("a new session");
    }
}

/// An actor's answer.
async fn asked<T>(answer: impl Future<Output = Result<T, MailboxError>>) -> T {
    tokio::time::timeout(PATIENCE, answer).await.expect("an answer in time").expect("the actor runs")
}
