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
//!         Ok(()) // an error: this record comes again before the next
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
//! is handled at least once, and again only after a crash, a cut-off or a lost session, back to the last commit.
//!
//! # Before partitions come and go
//!
//! An application that keeps state beside its offsets has an actor asked before partitions are released and before they
//! start, and told when they are lost: a [rebalance listener](Builder::rebalance_listener).
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
#![deny(missing_docs)]

pub use kafka_troupe_actors as actors;
pub use kafka_troupe_proto as proto;

pub use kafka_troupe_actors::consumer_system::{Builder, Commit, Metrics, Seek, SeekError, Shutdown};
pub use kafka_troupe_actors::offset_committer::CommitError;
pub use kafka_troupe_actors::rebalance_listener::{
    BeforeReleasingPartitions, BeforeStartingPartitions, OwnershipLost, ReleaseReason,
};
pub use kafka_troupe_actors::{
    ConsumeError, ConsumerHandle, ConsumerSystem, DecodeError, HandlerError, HandlerResult, Header,
    KafkaStream, Record, StartError, TimestampType,
};
pub use kafka_troupe_proto::TopicPartition;
pub use kafka_troupe_proto::config::{ConsumerConfig, ConsumerConfigBuilder};
pub use kafka_troupe_proto::schemas::status::v1::StatusSnapshot;
pub use kafka_troupe_proto::zk::topic_filter::{TopicFilter, TopicFilterError};
