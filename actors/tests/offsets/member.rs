//! A member's session and committer, as the coordinator would use them, and the others who write the same nodes.
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe_actors::lease::{Lease, SessionEpoch};
use kafka_troupe_actors::offset_committer::{
    CommitError, CommitNow, CommitReset, CommitSeek, CommitterParts, FlushGeneration, OffsetCommitter,
    ReadPosition, TopicNodes,
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

use crate::scripted::Scripted;
use kafka_troupe_actors::testkit::MemoryZooKeeper;

/// Longer than anything here takes on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(30);
const OFFSET: &str = "/consumers/g/offsets/t/0";
const OWNER: &str = "/consumers/g/owners/t/0";

pub fn partition() -> TopicPartition {
    TopicPartition::new("t", 0)
}

fn config() -> SessionConfig {
    let mut config = SessionConfig::new("memory".parse().expect("a connect string"));
    // no session ends but on command
    config.session_timeout = Duration::from_secs(600);
    config
}

/// Fails the test when a child exits by itself.
struct Parent;

impl Actor for Parent {
    type Context = Context<Self>;
}

impl Handler<ChildExited> for Parent {
    type Result = ();

    fn handle(&mut self, exited: ChildExited, _: &mut Context<Self>) {
        panic!("{exited:?}");
    }
}

pub fn guard() -> ExitGuard {
    ExitGuard::new("child", 1, Parent.start().recipient())
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
}

impl Member {
    /// Registered in a session of its own.
    pub async fn join(ensemble: &MemoryZooKeeper, name: &str, automatic: bool) -> Self {
        let (zk, lease) = (Scripted::over(ensemble), Arc::new(Lease::new()));
        let holder = ClientHolder::new(lease.clone());
        let session = ZkSession::start(&Arbiter::current(), config(), Arc::new(zk.clone()), holder, None);
        asked(session.send(WaitConnected)).await.unwrap();
        let ids = Register { path: format!("/consumers/g/ids/g_{name}"), data: b"{}".to_vec() };
        let registered = asked(session.send(ids)).await.unwrap();
        let (slot, registry) = (Slot::default(), Arc::new(TopicRegistry::default()));
        slot.set(session.clone());
        let parts = CommitterParts {
            paths: GroupPaths::new("g"),
            registry: registry.clone(),
            session: slot,
            coordinator: Slot::default(),
            interval: automatic.then_some(Duration::from_secs(3600)),
            guard: guard(),
        };
        let thread = ConsumerThreadId::new(&format!("g_{name}"), 0);
        Self {
            zk,
            session,
            committer: OffsetCommitter::new(parts).start(),
            lease,
            registered,
            registry,
            thread,
        }
    }

    pub fn id(&self) -> i64 {
        self.registered.id
    }

    /// Claims the partition and starts it at its stored position, as the coordinator does; the script begins then.
    pub async fn claim(&self) -> Arc<OwnedPartition> {
        self.claim_appeared(false).await
    }

    pub async fn claim_appeared(&self, appeared: bool) -> Arc<OwnedPartition> {
        self.claim_of(appeared, false).await
    }

    /// The same, knowing whether the stored offset is of an earlier topic.
    pub async fn claim_of(&self, appeared: bool, earlier_topic: bool) -> Arc<OwnedPartition> {
        let session = self.registered.session;
        let create = CreateEphemeral { session, path: OWNER.to_owned(), data: self.thread.as_str().into() };
        let created = asked(self.session.send(create)).await.unwrap();
        assert_eq!(created, zk_session::Claim::Created { owner: self.id() });
        let read = ReadPosition { partition: partition(), topics: None };
        let position = asked(self.committer.send(read)).await.unwrap().position;
        let claim = Claim {
            topic_partition: partition(),
            generation: Generation(1),
            session: SessionNumber(self.id()),
            epoch: session,
            thread: self.thread.clone(),
            appeared,
            position: Position { earlier_topic, ..position },
        };
        let credit = Arc::new(Credit::new(2, 1 << 20));
        let claimed = Arc::new(OwnedPartition::new(claim, credit, self.lease.clone()));
        self.registry.insert(claimed.clone());
        assert_eq!(self.zk.steps(), ["create owner", "read offset"], "a claim writes no offset");
        self.zk.begin();
        claimed
    }

    /// Reads the stored offset, and holds it against the topic.
    pub async fn read_position(&self, topics: TopicNodes) -> Position {
        let read = ReadPosition { partition: partition(), topics: Some(topics) };
        asked(self.committer.send(read)).await.unwrap().position
    }

    /// Acknowledges up to an offset, and commits.
    pub async fn commit(&self, claimed: &OwnedPartition, acked: i64) -> Result<usize, CommitError> {
        claimed.advance_delivered(acked);
        claimed.ack(acked);
        self.commit_again().await
    }

    pub async fn commit_again(&self) -> Result<usize, CommitError> {
        asked(self.committer.send(CommitNow { why: "test" })).await
    }

    pub async fn reset(&self, claimed: &Arc<OwnedPartition>, offset: i64) -> Result<i64, CommitError> {
        self.reset_from(claimed, claimed.fetched(), offset).await
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

    /// Has the claim given up, when it is called.
    pub fn retiring(&self) -> impl FnOnce() + Send + use<> {
        let registry = self.registry.clone();
        move || drop(registry.retire(&partition()))
    }

    pub async fn flush(&self, retired: Vec<Arc<OwnedPartition>>) {
        asked(self.committer.send(FlushGeneration(retired))).await;
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

/// Somebody else with a session: another member, old or new, or a tool. What it does is done at once.
#[derive(Clone)]
pub struct Other {
    ensemble: MemoryZooKeeper,
}

impl Other {
    /// No client of this ensemble has it.
    const SESSION: i64 = 1 << 40;

    /// With the parents of all nodes made.
    pub fn connect(ensemble: &MemoryZooKeeper) -> Self {
        ensemble.put("/consumers/g/offsets/t", b"");
        ensemble.put("/consumers/g/owners/t", b"");
        Self { ensemble: ensemble.clone() }
    }

    /// Makes a persistent node.
    pub fn make_with(&self, path: &str, data: &str) {
        self.ensemble.put(path, data.as_bytes());
    }

    /// Writes the offset node without looking, as Scala members do.
    pub fn commit(&self, offset: i64) {
        self.ensemble.put(OFFSET, offset.to_string().as_bytes());
    }

    pub fn delete_offset(&self) {
        self.ensemble.remove(OFFSET);
    }

    /// The value and version of the offset node.
    pub fn stored(&self) -> Option<(i64, i32)> {
        let node = self.ensemble.node(OFFSET)?;
        Some((String::from_utf8(node.data).unwrap().parse().unwrap(), node.stat.version))
    }

    /// Deletes the owner node, whosever it is.
    pub fn disown(&self) {
        assert!(self.ensemble.node(OWNER).is_some(), "nobody owns it");
        self.ensemble.remove(OWNER);
    }

    /// Owns the partition.
    pub fn own(&self, thread: &str) {
        assert!(self.ensemble.node(OWNER).is_none(), "somebody owns it");
        self.ensemble.put_ephemeral(OWNER, thread.as_bytes(), Self::SESSION);
    }

    /// Writes another thread into the owner node.
    pub fn rethread(&self, thread: &str) {
        self.ensemble.put(OWNER, thread.as_bytes());
    }

    /// Takes the partition over and goes on from there.
    pub fn take_over(&self, thread: &str, commits: i64) {
        self.disown();
        self.own(thread);
        self.commit(commits);
    }
}

/// An actor's answer.
async fn asked<T>(answer: impl Future<Output = Result<T, MailboxError>>) -> T {
    tokio::time::timeout(PATIENCE, answer).await.expect("an answer in time").expect("the actor runs")
}
