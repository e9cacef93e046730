//! What is committed when, from where, and what is handled again after which failure.
//!
//! # From a handler
//!
//! A handler that keeps what it makes of a record in a database of its own commits when that is written:
//!
//! ```no_run
//! use actix::prelude::*;
//! use kafka_troupe::{ConsumerConfig, ConsumerSystem, HandlerResult, Offsets, Record};
//!
//! # #[derive(Clone)]
//! # struct Database;
//! # impl Database {
//! #     async fn put(&self, _: (&str, i32, i64), _: &str) -> std::io::Result<()> { Ok(()) }
//! # }
//! struct Orders {
//!     database: Database,
//!     offsets: Offsets,
//! }
//!
//! impl Actor for Orders {
//!     type Context = Context<Self>;
//! }
//!
//! impl Handler<Record> for Orders {
//!     type Result = ResponseFuture<HandlerResult>;
//!
//!     fn handle(&mut self, record: Record, _: &mut Context<Self>) -> Self::Result {
//!         let (database, offsets) = (self.database.clone(), self.offsets.clone());
//!         Box::pin(async move {
//!             // by its place, so that a record that comes again is written over itself
//!             let place = (record.topic(), record.partition(), record.offset());
//!             database.put(place, &record.text()).await?;
//!             offsets.commit_record(&record).await?; // an error: a failure of the handler as any other
//!             Ok(())
//!         })
//!     }
//! }
//!
//! #[actix::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     # let database = Database;
//!     let config = ConsumerConfig::builder()
//!         .zookeeper_connect("localhost:2181/kafka")
//!         .group_id("billing")
//!         .property("auto.commit.enable", "false")
//!         .build()?;
//!     let builder = ConsumerSystem::builder(config);
//!     let offsets = builder.offsets(); // before there is a member, for its handlers
//!     let make = move || Orders { database: database.clone(), offsets: offsets.clone() };
//!     let system = builder.handle("orders", 4, make).start().await?;
//!     # system.shutdown().await;
//!     Ok(())
//! }
//! ```
//!
//! # What is handled again
//!
//! By whoever owns the partition then:
//!
//! | after | again |
//! |---|---|
//! | a handler's error or panic | the record that it had in hand; others were waiting behind it |
//! | a rebalance, a shutdown | nothing; but the record of a handler that was cut off after `troupe.drain.timeout.ms`, and what could not be stored in that time |
//! | the same, with `auto.commit.enable=false` and without `commit_after` | what was not committed |
//! | a crash | what was acknowledged since the last commit, and the record in hand of each stream |
//! | the end of a session, a lost partition | the same: what cannot be committed in time is not |
//!
//! So automatic commit by time alone repeats an interval's worth of records after a crash; with
//! [`Builder::commit_after`](crate::Builder::commit_after) it is that many, and what was acknowledged while commits were
//! under way (and as many once more for each commit that failed before); with a commit of each record, that one.
//!
//! # What is fenced
//!
//! Offsets in ZooKeeper are fenced: a commit counts only if nobody else has written the node since this member claimed
//! the partition, or if it owns it still. One that was stopped or cut off while its session expired cannot write over its
//! successor, however late its request is executed ([`CommitError::Lost`](crate::CommitError::Lost),
//! [`CommitError::Fenced`](crate::CommitError::Fenced)).
//!
//! Offsets in Kafka are not: brokers take the commits of such groups from anybody. A member sends none that its lease may
//! not outlive, and gives a partition up only when the answer is there or was waited for in vain (or its committer has
//! panicked); but a request that it has given up may be carried out late, after others. The owner's next commit puts that
//! right. Whoever starts before, because the owner crashed,
//!
//! | begins | when what is carried out late is |
//! |---|---|
//! | earlier, and repeats | a commit, and Kafka is the only store |
//! | later, and passes over | a commit from before a [seek](crate::ConsumerHandle::seek) back, a reset or a truncated log |
//! | | a commit of an earlier topic of the same name |
//! | | a seek forward that was answered by [`SeekError::NotStored`](crate::SeekError::NotStored); also in ZooKeeper |
//!
//! With both stores (`dual.commit.enabled`) the larger counts, and ZooKeeper's, written first and by the owner alone,
//! does not go back: a commit carried out late repeats nothing. Who finds there that it has lost the partition commits it
//! nowhere; an offset that ZooKeeper has already is not written there, and so is refreshed in Kafka without that check.
