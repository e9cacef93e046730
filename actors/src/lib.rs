//! The actors of Troupe: mailboxes, sockets and timers around the decisions of `kafka-troupe-proto`.
//!
//! ```text
//!                    ConsumerSystem (starts and restarts all of them)
//!        ┌────────────────┬──────────────┴───┬─────────────────┬──────────────────┐
//!    ZkSession ──▶ RebalanceCoordinator ─▶ FetcherManager ─▶ BrokerFetcher ─▶ StreamQueue ─▶ handler / KafkaStream
//!        ▲           ▲    │     ▲             (one)       (some per broker)   (per thread)        │
//!        │           │    ▼     │ PartitionsLost                                                  │ acknowledges
//!        └───────────┼ OffsetCommitter ◀──────────── TopicRegistry (shared positions) ◀───────────┘
//!                    │      └─▶ the group's coordinator, a broker (with offsets.storage=kafka)
//!              TopicMetadata (with bootstrap.servers)
//!
//!    handler, given up ──▶ DeadLetterWriter ──▶ a topic          who asks ──▶ GroupReader (ZooKeeper, brokers)
//! ```
//!
//! - [`zk_session`]: the ZooKeeper session, its watches and heartbeat; the [`lease`] that guards delivery.
//! - [`topic_metadata`]: topics and brokers where Kafka has no ZooKeeper (`bootstrap.servers`).
//! - [`coordinator`]: which partitions are ours; runs the pure rebalance machine.
//! - [`fetcher_manager`], [`broker_fetcher`], [`broker_connection`]: from the brokers' sockets to chunks.
//! - [`stream_queue`]: chunks to records, one stream per consumer thread; drives handlers, feeds [`KafkaStream`].
//! - [`offset_committer`]: what is stored of how far we are, in ZooKeeper or Kafka.
//! - [`subscription`], [`decoder`]: what is read, as what values, and how it is handled.
//! - [`rebalance_listener`]: the application's actor that is asked before partitions go and before they start.
//! - [`dead_letters`]: records that were given up, kept in Kafka.
//! - [`group_view`]: the whole group, other members too, for people who look at it.
//! - [`admin`]: groups, offsets and topics from outside any group, for tools; no actor.
//! - [`registry`]: positions and gates of owned partitions, shared.
//! - [`consumer_system`]: assembly, metrics, shutdown; [`supervise`]: who comes back after a panic, and when.
//! - `testkit` (feature): ZooKeeper, brokers and a clock in memory, for tests.
//! - `chaos` (feature): actors that panic and members that vanish, for tests.
//!
#![doc = include_str!("non_obvious.md")]
#![deny(missing_docs)]

pub mod admin;
pub mod broker_connection;
pub mod broker_fetcher;
#[cfg(feature = "chaos")]
pub mod chaos;
mod clock;
pub mod consumer_system;
pub mod coordinator;
pub mod dead_letters;
mod deadline;
pub mod decoder;
pub mod fetcher_manager;
pub mod group_view;
mod handler_result;
pub mod lease;
pub mod offset_committer;
pub mod rebalance_listener;
mod record;
pub mod record_batch;
pub mod registry;
pub mod stream_queue;
pub mod subscription;
pub mod supervise;
#[cfg(feature = "testkit")]
pub mod testkit;
pub mod topic_metadata;
pub mod zk_session;

pub use consumer_system::{ConsumerHandle, ConsumerSystem, Offsets, ShutdownOutcome, StartError};
pub use decoder::{DecodeError, Decoder};
pub use handler_result::{HandlerError, HandlerResult};
pub use record::{ConsumeError, Header, Record, TimestampType};
pub use record_batch::RecordBatch;
pub use stream_queue::{BlockingStream, KafkaStream, PullError};
pub use subscription::Subscription;
