//! Offsets in ZooKeeper against everybody else who writes them: each interleaving that rules 7, 8 and 10 of the design
//! name, made exact by a script that has others act between two of our operations ([`scripted`]).
//!
//! And offsets in Kafka ([`in_kafka`], [`kafka_positions`], [`kafka_flush`], [`hurried`]) and in both ([`dual`]),
//! by a script of what becomes of each request ([`coordinator`]).

mod coordinator;
mod dual;
#[path = "../fetching/fake_broker.rs"]
mod fake_broker;
mod fenced;
mod hurried;
mod in_kafka;
mod kafka_flush;
mod kafka_positions;
mod member;
mod other;
mod positions;
mod real_logs;
mod remade;
mod reset_halves;
mod resets;
mod scripted;
mod seeks;
mod times;
mod truncated;
