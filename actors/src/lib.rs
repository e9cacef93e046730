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
//! - [`registry`]: positions and gates of owned partitions, shared.
//! - [`consumer_system`]: assembly, supervision, metrics, shutdown.
//!
//! # Non-obvious
//!
//! Invariants that once broke, or would silently:
//!
//! - A lease speaks of *one* session: a partition claimed in the last session is not covered by the next one's
//!   lease, although expiry may reach the coordinator's mailbox late ([`lease::Lease::is_live_in`]).
//! - [`registry::OwnedPartition`] belongs to one claim, not to a partition: whatever still holds the old one changes
//!   nothing any more.
//! - A fetcher that starts anew begins where the stream stood *then*, while a chunk of its predecessor may still lie in
//!   the stream's mailbox. So chunks may overlap, repeat or leave a gap ([`registry::OwnedPartition::take_in`]): what
//!   overlaps is skipped, what repeats dropped, a gap fetched again. (Accepting only exact joints stalls for good.)
//! - Results of operations on one owner node are told in the order in which ZooKeeper gave them: actix polls the futures
//!   of an actor in the order of their start, so the coordinator runs those of one node one after the other.
//! - In the rebalance machine (each with its interleaving in `proto/src/group/machine_tests/once_broken.rs`): a watch that
//!   fires during a backoff must not claim on the plan that was given up; a failed step must not delay releases that
//!   others wait for; a create that is refused must not be tried again at network speed; a storm of triggers must not
//!   keep a member from ever acting; our own thread id under another session is not ours; a read sent before a create
//!   must not settle it; a move answered late leaves a node that is still ours.
//! - A position is made by `auto.offset.reset` only when all that was fetched is handled: it is stored at once (rule 8 of
//!   the design), and a crash then would pass over what still waits in the queue.
//! - Dropping a panicked actor's context happens after the unwind, so `thread::panicking()` is false there; an
//!   [`supervise::ExitGuard`] that was not dismissed is what tells.
#![deny(missing_docs)]

pub mod broker_connection;
pub mod broker_fetcher;
#[cfg(feature = "chaos")]
pub mod chaos;
pub mod consumer_system;
pub mod coordinator;
pub mod fetcher_manager;
pub mod lease;
pub mod offset_committer;
mod record;
pub mod registry;
pub mod stream_queue;
pub mod supervise;
pub mod zk_session;

pub use consumer_system::{ConsumerHandle, ConsumerSystem, StartError};
pub use record::{ConsumeError, DecodeError, HandlerError, HandlerResult, Header, Record};
pub use stream_queue::KafkaStream;
