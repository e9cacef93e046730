//! The actors of Troupe: mailboxes, sockets and timers around the decisions of `kafka-troupe-proto`.
//!
//! ```text
//!                    ConsumerSystem (starts and restarts all of them)
//!        ┌────────────────┬──────────────┴───┬─────────────────┬──────────────────┐
//!    ZkSession ──▶ RebalanceCoordinator ─▶ FetcherManager ─▶ BrokerFetcher ─▶ StreamQueue ─▶ handler / KafkaStream
//!        ▲                │     ▲             (one)          (per broker)     (per thread)        │
//!        │                ▼     │ PartitionsLost                                                  │ acknowledges
//!        └─────────── OffsetCommitter ◀──────────── TopicRegistry (shared positions) ◀────────────┘
//! ```
//!
//! - [`zk_session`]: the ZooKeeper session, its watches and heartbeat; the [`lease`] that guards delivery.
//! - [`coordinator`]: which partitions are ours; runs the pure rebalance machine.
//! - [`fetcher_manager`], [`broker_fetcher`], [`broker_connection`]: from the brokers' sockets to chunks.
//! - [`stream_queue`]: chunks to records, one stream per consumer thread; drives handlers, feeds [`KafkaStream`].
//! - [`offset_committer`]: what is stored of how far we are.
//! - [`rebalance_listener`]: the application's actor that is asked before partitions go and before they start.
//! - [`registry`]: positions and gates of owned partitions, shared.
//! - [`consumer_system`]: assembly, supervision, metrics, shutdown.
//! - `testkit` (feature): ZooKeeper, brokers and a clock in memory, for tests.
//! - `chaos` (feature): actors that panic and members that vanish, for tests.
//!
//! # Non-obvious
//!
//! Invariants that once broke, or would silently:
//!
//! - A lease speaks of *one* session: a partition claimed in the last session is not covered by the next one's
//!   lease, although expiry may reach the coordinator's mailbox late ([`lease::Lease::is_live_in`]).
//! - An answered heartbeat does not prove that the leader counts our timeout from it: it hears of a follower's clients
//!   with the follower's answers to its pings only, not by what they write. Answered after a pause of 2/3 of the timeout,
//!   right before the follower was cut off, it gave a lease that outlived the session by a third of the timeout; so a
//!   heartbeat is proof for the ones before it (`zk_session/heartbeat.rs`, `Proof`).
//! - [`registry::OwnedPartition`] belongs to one claim, not to a partition: whatever still holds the old one changes
//!   nothing any more.
//! - A fetcher that starts anew begins where the stream stood *then*, while a chunk of its predecessor may still lie in
//!   the stream's mailbox. So chunks may overlap, repeat or leave a gap ([`registry::OwnedPartition::take_in`]): what
//!   overlaps is skipped, what repeats dropped, a gap fetched again. (Accepting only exact joints stalls for good.)
//! - Results of operations on one owner node are told in the order in which ZooKeeper gave them: the coordinator runs
//!   those of one node one after the other. They are tasks of their own, for a context polls all its futures whenever
//!   one has ended, which takes its time with a thousand partitions.
//! - The read that names the holder of a node in a claim's way also watches it. That watch is wanted before it is set: it
//!   may fire before the answer is handled. No operation takes a want back when it ends: one that ended late, after a
//!   restart of the session actor, took that of a read which had begun since, and the owner node's deletion was not told.
//! - What a watching read has seen counts only where its answer is given, and only for who heard of it: a restart of the
//!   session actor kept an answer from its caller, the change was noted as seen, and told to nobody. Whoever subscribes is
//!   told of every watch anew.
//! - A Scala member that has given up is in nobody's way: it stays registered and holds nothing, so that neither a
//!   conflict nor a watch tells. Only the owner nodes do, held against the plan once everybody has had the time to act
//!   on it ([`PeerCheck`](kafka_troupe_proto::group::PeerCheck)). That time begins when the group *looks* different, not
//!   with each rebalance: members with filters rebalance for topics that change nothing.
//! - In the rebalance machine (each with its interleaving in `proto/src/group/machine_tests/once_broken.rs`): a watch that
//!   fires during a backoff must not claim on the plan that was given up; a failed step must not delay releases that
//!   others wait for; a create that is refused must not be tried again at network speed; a storm of triggers must not
//!   keep a member from ever acting; our own thread id under another session is not ours; a read sent before a create
//!   must not settle it; a move answered late leaves a node that is still ours; a node of our session is ours whatever
//!   it says, for another member's set that was planned before its session expired may have met it; a plan that changes
//!   while handlers finish is acted on at once, else a Scala member waits for two bounds in a row and gives up.
//! - A position is made by `auto.offset.reset` only when all that was fetched is handled: it is stored at once (rule 8 of
//!   the design), and a crash then would pass over what still waits in the queue.
//! - A position that was made and whose storing was not answered must not be made again: `largest` is another place by
//!   then. What stands in the offset node counts ([`offset_committer::OffsetStore::reset`]), and whoever asked may have
//!   ended: so the committer, once it is stored, gives the position to the partition itself
//!   ([`offset_committer::CommitReset::instead_of`]).
//! - A partition that is given up leaves the registry when delivery stops, but can be committed until its last flush
//!   ([`registry::TopicRegistry::committable`]): a rebalance listener commits there. One that is lost meanwhile is not
//!   flushed.
//! - A rebalance listener is asked about a *start*, not about a partition: while a release waits for its handlers, the
//!   session may expire and the same partition start again, and must not be released then.
//! - A restarted coordinator must know *every* owner node of its session before it begins: one that it misses, because a
//!   read failed or a session event came first, is held for others until the session ends.
//! - An actor that panics lets go of the answers that it owes, which may read as an answer of none: only an empty
//!   [`supervise::Slot`] means that no other life is to come.
//! - Nothing that decides is left to a coin, a hash order or the machine's clock, but for the seams of `testkit`: else a
//!   seed of the simulation (`tests/simulation`) is not the same run again.
//! - Dropping a panicked actor's context happens after the unwind, so `thread::panicking()` is false there; an
//!   [`supervise::ExitGuard`] that was not dismissed is what tells.
#![deny(missing_docs)]

pub mod broker_connection;
pub mod broker_fetcher;
#[cfg(feature = "chaos")]
pub mod chaos;
mod clock;
pub mod consumer_system;
pub mod coordinator;
pub mod fetcher_manager;
pub mod lease;
pub mod offset_committer;
pub mod rebalance_listener;
mod record;
pub mod registry;
pub mod stream_queue;
pub mod supervise;
#[cfg(feature = "testkit")]
pub mod testkit;
pub mod zk_session;

pub use consumer_system::{ConsumerHandle, ConsumerSystem, StartError};
pub use record::{ConsumeError, DecodeError, HandlerError, HandlerResult, Header, Record};
pub use stream_queue::KafkaStream;
