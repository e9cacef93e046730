//! A group in a box: real members ([`ConsumerSystem`](kafka_troupe_actors::ConsumerSystem)) in one thread, over
//! ZooKeeper and brokers in memory, with a paused clock. Everything that is left to chance (how long messages are under
//! way, what handlers do, what goes wrong and when) is drawn from one seed, so a seed is a run.
//!
//! - `run`: a run, from its seed to its verdict.
//! - `chance`: what is drawn.
//! - `plan`: the shape of a run.
//! - `world`: the ensemble, the cluster and the members; how members come and go.
//! - `worker`: the handler actors of the members.
//! - `faults`: what goes wrong.
//! - `letters`: dead letters, and what goes wrong with them.
//! - `offsets_faults`: what goes wrong with offsets in Kafka.
//! - `history`: what happened, and the rules it is held against while it happens.
//! - `verdict`: what must hold when the faults are over.
//! - `storage`: where offsets are stored, and how a running group moves them.
//! - `trace`: what is told of a run.
#![deny(missing_docs)]

mod chance;
mod faults;
mod handling;
mod history;
mod letters;
mod offsets_faults;
mod plan;
mod run;
mod storage;
mod trace;
mod verdict;
mod worker;
mod world;

pub use chance::fresh_seed;
pub use history::Counts;
pub use run::{Report, replay, run};
