//! Actor-model Kafka consumer groups coordinated through ZooKeeper, wire- and znode-compatible with Kafka's old
//! high-level consumer (`ZookeeperConsumerConnector`, 0.8.2 to 1.1): one group may mix both.
//!
//! ```no_run
//! use actix::prelude::*;
//! use kafka_troupe::{ConsumerConfig, ConsumerSystem, HandlerResult, Record};
//!
//! struct Orders;
//!
//! impl Actor for Orders {
//!     type Context = Context<Self>;
//! }
//!
//! impl Handler<Record> for Orders {
//!     type Result = HandlerResult;
//!
//!     fn handle(&mut self, record: Record, _: &mut Context<Self>) -> HandlerResult {
//!         println!("{}-{}@{}: {}", record.topic(), record.partition(), record.offset(), record.text());
//!         Ok(()) // an error: it comes again before the next, 10 times by default; then its partition stops
//!     }
//! }
//!
//! #[actix::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let config = ConsumerConfig::builder().zookeeper_connect("localhost:2181/kafka").group_id("billing").build()?;
//!     // four streams, each a handler on a thread of its own, share the topic's partitions
//!     let system = ConsumerSystem::builder(config).handle("orders", 4, || Orders).start().await?;
//!     println!("{:?}", system.metrics().await?);
//!     system.shutdown().await;
//!     Ok(())
//! }
//! ```
//!
//! # Where things are
//!
//! | floor | what |
//! |---|---|
//! | this crate | the facade, and the program `troupe` |
//! | [`actors`] | mailboxes, sockets, timers; supervision |
//! | [`proto`] | wire codecs, znode formats and the group protocol, as pure functions |
//!
//! # How records come
//!
//! As in the old consumer's `createMessageStreams`: a topic is subscribed to with a number of *streams*; a stream is a
//! thread and a queue; a partition is read by one stream, and several partitions may share one. A stream is consumed
//! by a *handler actor* ([`Builder::handle`]) or *pulled* ([`Builder::pull`], [`KafkaStream`]). A record counts as
//! handled when its handler is done, or when the next one is pulled; only then may a commit cover it. So every record
//! is handled at least once, and again only when it failed, or after a crash, a cut-off or a lost session, back to the
//! last commit ([what exactly](committing)).
//!
//! # Handling
//!
//! A [`Subscription`] says what is read, how it is decoded, and who handles it:
//!
//! ```
//! # use actix::prelude::*;
//! # use kafka_troupe::{ConsumerConfig, ConsumerSystem, HandlerResult, Record};
//! use kafka_troupe::{FailurePolicy, InFlight, Subscription, Then, Utf8};
//!
//! # struct Orders;
//! # impl Actor for Orders {
//! #     type Context = Context<Self>;
//! # }
//! # impl Handler<Record<String>> for Orders {
//! #     type Result = HandlerResult;
//! #     fn handle(&mut self, _: Record<String>, _: &mut Context<Self>) -> HandlerResult {
//! #         Ok(())
//! #     }
//! # }
//! # fn builder(config: ConsumerConfig) -> kafka_troupe::Builder {
//! let orders = Subscription::topic("orders")
//!     .streams(4)
//!     .decoder(Utf8)
//!     .on_failure(FailurePolicy::retry(5).then(Then::DeadLetter("orders.dead".into())))
//!     .in_flight(InFlight::by_key(16))
//!     .handle(|| Orders); // impl Handler<Record<String>>
//! ConsumerSystem::builder(config).subscription(orders)
//! # }
//! ```
//!
//! | you want | it is |
//! |---|---|
//! | typed records | [`Subscription::decoder`]: [`Utf8`], `Json`, [`Protobuf`], a closure, your own [`Decoder`] |
//! | batches, walked as you read them | [`Subscription::handle_batches`], [`RecordBatch`] |
//! | an actor that exists, through its mailbox | [`Subscription::send_to`], [`Subscription::send_batches_to`] |
//! | several records at once, for futures | [`Subscription::in_flight`], [`InFlight`]: in order of each key, or of none |
//! | failures retried, skipped, kept | [`Subscription::on_failure`], [`FailurePolicy`], [`Then`] |
//! | what could not be handled | a dead-letter topic, each record in a [`DeadLetter`] |
//! | to pull on a plain thread | [`KafkaStream::blocking`] |
//! | to stop partitions and go on | [`ConsumerHandle::pause`], [`ConsumerHandle::pause_topic`] |
//!
//! # When a record cannot be handled
//!
//! A handler answers with an error, or panics, or the decoder does not know the value: then the [`FailurePolicy`] of its
//! subscription decides. By default the record comes again, before the next one, up to 10 times in three quarters of a
//! minute; then its partition stops, stays owned, and is reported ([`StatusSnapshot::halted`], [`ConsumerHandle::health`])
//! until it is [resumed](ConsumerHandle::resume) or [sought](ConsumerHandle::seek). It may be skipped or written to a
//! dead-letter topic instead ([`Then`]). Nothing is acknowledged meanwhile, and other partitions go on.
//!
//! # Committing
//!
//! What is committed of a partition is the next offset to consume, where its next owner begins. By itself, a member
//! commits what is acknowledged every `auto.commit.interval.ms`, once more when partitions are given up or it shuts
//! down, and a position that `auto.offset.reset` has made before its first record is delivered. With
//! `auto.commit.enable=false` it does none of this, unless commits after so many records take the interval's place: an
//! offset is stored only when you ask for it.
//!
//! | asked for by | commits |
//! |---|---|
//! | [`Offsets::commit`], [`ConsumerHandle::commit`] | what is acknowledged of all partitions |
//! | [`Offsets::commit_offsets`] | these offsets, of these partitions |
//! | [`Offsets::commit_record`] | this record and all before it, also the one in hand |
//! | [`Builder::commit_after`] | what is acknowledged, after so many records; the interval, if on, limits the time |
//!
//! An answer says how it came out for each partition ([`CommitOutcome`]), and one that fails keeps no other back. An
//! offset may be committed from what is stored up to what was handed over; to go back or to pass something over is to
//! [seek](ConsumerHandle::seek). A commit moves no delivery, and no later commit takes it back.
//!
//! Offsets are stored in ZooKeeper, with `offsets.storage=kafka` in Kafka, or with `dual.commit.enabled=true` besides in
//! both. Only ZooKeeper's are fenced; Kafka takes many more commits. [`committing`] has an example, and says what is
//! handled again after which failure; [`migration`] how a running group goes from one to the other.
//!
//! # Before partitions come and go
//!
//! An application that keeps state beside its offsets has an actor asked before partitions are released and before they
//! start, and told when they are lost: a [rebalance listener](Builder::rebalance_listener).
//!
//! # Seeing what it does
//!
//! [`ConsumerHandle::health`] for probes, [`ConsumerHandle::metrics`] for programs, Prometheus text with the old
//! consumer's metrics beside ours, and spans of `tracing` that put topic, partition and offset before what a handler logs:
//! [`observing`].
//!
//! # Groups from outside
//!
//! [`admin`] looks after groups without joining one: members, owners, offsets and lag, of groups in ZooKeeper and of those
//! that Kafka coordinates; offsets set, groups deleted, partitions read. The program `troupe` (feature `cli`) does it on
//! the command line, in place of Kafka's old scripts.
//!
//! # Which topics
//!
//! Topics by name ([`Builder::handle`], [`Builder::pull`]), each with its own streams, or all that a [`TopicFilter`]
//! allows ([`Builder::handle_matching`], [`Builder::pull_matching`]), created later or not, on the same streams. A
//! filter is a regular expression of Java, because every member expands the filters of all: one that would mean
//! something else here is refused by name. A member does not join a group in which a peer has such a filter, and when
//! one comes later, it goes on with what it owns and claims nothing ([`StatusSnapshot::failing`] says so) until that
//! peer has left. [`ConsumerHandle::subscribe`] adds subscriptions while running.
//!
//! # In one group with others
//!
//! Every member computes the whole plan from the same nodes, so all must compute alike; how they do is nowhere written
//! in ZooKeeper. Where generations of the old consumer disagree, a property chooses whom to be in step with:
//!
//! | property | where they disagree |
//! |---|---|
//! | `partition.assignment.strategy` | `range` is the same in all; `roundrobin` is not |
//! | `troupe.roundrobin.peers` | the order of partitions by `roundrobin`, which Kafka 1.0 changed |
//! | `troupe.internal.topics.peers` | whether filters take in `__transaction_state`: they do before 0.11 |
//!
//! A member that plans differently all the same, or that has given up, as the old consumer does after
//! `rebalance.max.retries`, is named with its partitions in [`StatusSnapshot::peers`] and once in the log, after
//! `rebalance.max.retries` x `rebalance.backoff.ms`, until it does its part or is gone.
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `json` (default) | the decoder of JSON values |
//! | `metrics` | Prometheus text: the module `metrics` |
//! | `opentelemetry` | trace headers of records become the parents of their handlers' spans |
//! | `web` | health, metrics, status and a dashboard for an actix-web app: the module `web` |
//! | `cli` | the program `troupe`; nothing for the library |
//! | `testkit` | your application in its own `cargo test`, without servers: the module `testkit` |
//!
//! # What a version promises
//!
//! What this crate has under names of its own keeps to semantic versioning. [`actors`] and [`proto`] are its floors,
//! for those who look beneath, and change with any release; so do messages of [`proto::schemas`], which gain fields:
//! make them with `..Default::default()`.
#![deny(missing_docs)]

pub mod committing;
#[cfg(feature = "metrics")]
pub mod metrics;
pub mod migration;
pub mod observing;
#[cfg(feature = "testkit")]
pub mod testkit;
#[cfg(feature = "web")]
pub mod web;

pub use kafka_troupe_actors as actors;
pub use kafka_troupe_proto as proto;

pub use kafka_troupe_actors::admin;
pub use kafka_troupe_actors::consumer_system::{
    Builder, Commit, Group, Metrics, Offsets, Pause, PauseError, PauseTopic, Resume, ResumeTopic, Seek,
    SeekError, Shutdown, Subscribed,
};
pub use kafka_troupe_actors::dead_letters::{DeadLetterError, DeadLetterProblem};
#[cfg(feature = "json")]
pub use kafka_troupe_actors::decoder::Json;
pub use kafka_troupe_actors::decoder::{self, Decoder, Protobuf, Utf8};
pub use kafka_troupe_actors::group_view::GroupViewError;
pub use kafka_troupe_actors::offset_committer::{CommitError, CommitOutcome, CommittedOffset, ToCommit};
pub use kafka_troupe_actors::rebalance_listener::{
    BeforeReleasingPartitions, BeforeStartingPartitions, OwnershipLost, ReleaseReason,
};
pub use kafka_troupe_actors::{
    BlockingStream, ConsumeError, ConsumerHandle, ConsumerSystem, DecodeError, HandlerError, HandlerResult,
    Header, KafkaStream, PullError, Record, RecordBatch, ShutdownOutcome, StartError, Subscription,
    TimestampType,
};
pub use kafka_troupe_proto::TopicPartition;
pub use kafka_troupe_proto::config::{ConsumerConfig, ConsumerConfigBuilder};
pub use kafka_troupe_proto::group::{FailurePolicy, InFlight, Then};
pub use kafka_troupe_proto::health::Health;
pub use kafka_troupe_proto::schemas::dead_letter::v1::DeadLetter;
pub use kafka_troupe_proto::schemas::group::v1::GroupView;
pub use kafka_troupe_proto::schemas::status::v1::StatusSnapshot;
pub use kafka_troupe_proto::zk::topic_filter::{TopicFilter, TopicFilterError};
