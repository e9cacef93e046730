//! Your application, handlers and all, in its own `cargo test`: no servers, no waiting, and what seldom happens made to
//! happen. Only with the feature `testkit`.
//!
//! ```toml
//! [dev-dependencies]
//! kafka-troupe = { version = "0.1", features = ["testkit"] }
//! ```
//!
//! # In five minutes
//!
//! Give the application one seam: a function that adds its subscriptions to a [`Builder`](crate::Builder). `main` calls
//! it with [`ConsumerSystem::builder(config)`](crate::ConsumerSystem::builder), a test with
//! [`TestCluster::builder`]`(config)`, where `config` may be the application's own: the servers that it names are
//! replaced.
//!
//! ```
//! # mod app {
//! use std::sync::{Arc, Mutex};
//!
//! use actix::prelude::*;
//! use kafka_troupe::{Builder, HandlerResult, Record};
//!
//! pub struct Orders {
//!     pub booked: Arc<Mutex<Vec<String>>>, // for a database
//! }
//!
//! impl Actor for Orders {
//!     type Context = Context<Self>;
//! }
//!
//! impl Handler<Record> for Orders {
//!     type Result = HandlerResult;
//!
//!     fn handle(&mut self, record: Record, _: &mut Context<Self>) -> HandlerResult {
//!         self.booked.lock().unwrap().push(record.text().into_owned());
//!         Ok(())
//!     }
//! }
//!
//! pub fn consumers(builder: Builder, booked: &Arc<Mutex<Vec<String>>>) -> Builder {
//!     let booked = Arc::clone(booked);
//!     builder.handle("orders", 2, move || Orders { booked: Arc::clone(&booked) })
//! }
//! # }
//! # use std::sync::Arc;
//! use kafka_troupe::testkit::{self, TestCluster, TestRecord};
//!
//! // #[test]
//! fn an_order_is_booked_once_although_the_session_expires() {
//!     testkit::run(async {
//!         let cluster = TestCluster::new().topic("orders", 4);
//!         let (booked, billing) = (Arc::default(), cluster.group("billing"));
//!         let config = cluster.config("billing").build().unwrap();
//!         let app = app::consumers(cluster.builder(config), &booked).start().await.unwrap();
//!
//!         cluster.produce("orders", TestRecord::value("a book").key("alice").header("trace", "1"));
//!         billing.until_handled("orders").await;
//!         app.commit().await.unwrap();
//!
//!         cluster.expire_session(&app).await;
//!         cluster.produce("orders", "a lamp");
//!         billing.until_committed("orders").await;
//!         assert_eq!(*booked.lock().unwrap(), ["a book", "a lamp"]);
//!         app.shutdown().await;
//!     });
//! }
//! # an_order_is_booked_once_although_the_session_expires();
//! ```
//!
//! # What to make happen
//!
//! | what | how |
//! |---|---|
//! | records | [`TestCluster::produce`]: a text, bytes, or a [`TestRecord`] with key, headers, partition, time |
//! | a rebalance | start another member by [`TestCluster::builder`]; [`shutdown`](crate::ConsumerHandle::shutdown) it |
//! | a session expires | [`TestCluster::expire_session`] |
//! | a handler fails | have the application's fakes fail; the failure policy is its subscription's |
//! | a broker is lost and returns | [`TestCluster::stop_broker`], [`TestCluster::start_broker`] |
//! | fetches fail | [`TestCluster::fail_fetches`] |
//! | offsets of an earlier run | [`TestGroup::commit`], before the start |
//! | topics come, grow and go | [`TestCluster::create_topic`], [`TestCluster::delete_topic`] |
//! | all else that the fakes can do | [`TestCluster::zookeeper`], [`TestCluster::brokers`] |
//!
//! # What to expect
//!
//! | what | how |
//! |---|---|
//! | what was produced is handled, or passed over by a failure policy | [`TestGroup::until_handled`] |
//! | it is committed as well | [`TestGroup::until_committed`] |
//! | the partitions have owners and positions | [`TestGroup::until_owned`] |
//! | anything of your own | [`until`] |
//! | who owns what, what is committed, the lag | [`TestGroup::owner`], [`TestGroup::committed`], [`TestGroup::lag`] |
//! | what is in a topic; dead letters in it | [`TestCluster::records`], [`StoredRecord::dead_letter`] |
//! | health, errors, restarts | [`ConsumerHandle::metrics`](crate::ConsumerHandle::metrics) |
//!
//! # The clock
//!
//! [`run`] is one thread with a clock that stands while anything can run, and jumps to the next timer when nothing can.
//! So backoffs, session timeouts and commit intervals pass at once, in order, and the same on each machine: a test of
//! an hour takes milliseconds, `tokio::time::sleep` is how to let time pass, and what waits in vain fails after five
//! minutes that nobody sits through. What follows:
//!
//! - No sockets, and no other threads: a handler's database must be a fake. (The clock does stand still for
//!   `tokio::task::spawn_blocking`.) A thread that blocks, blocks all.
//! - A handler that panics is made anew and its record comes again, as in earnest: an `assert!` in it fails no test.
//!   Have handlers note what they do, and assert in the test.
//! - `auto.offset.reset` is `largest` by default: what is produced before [`TestGroup::until_owned`] is then passed
//!   over. [`TestCluster::config`] sets `smallest`.
//!
//! The fakes pass the same conformance tests as the real servers; what is between them and your handler is no fake but
//! Troupe as it runs in production. `tests/testkit.rs` in the repository tests an application with retries, dead letters
//! and a rebalance listener. Brokers are of the latest generation; older ones:
//! [`MemoryBrokers::set_generation`].

mod cluster;
mod group;
mod record;
mod waiting;

pub use cluster::TestCluster;
pub use group::TestGroup;
pub use kafka_troupe_actors::testkit::clock::on_paused_clock as run;
pub use kafka_troupe_actors::testkit::{Generation, MemoryBrokers, MemoryZooKeeper, StoredRecord};
pub use kafka_troupe_proto::kafka::error_code::ErrorCode;
pub use record::TestRecord;
pub use waiting::until;
