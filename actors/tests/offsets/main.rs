//! Offsets in ZooKeeper against everybody else who writes them: each interleaving that rules 7, 8 and 10 of the design
//! name, made exact by a script that has others act between two of our operations ([`scripted`]).

#[path = "../fetching/fake_broker.rs"]
mod fake_broker;
mod fenced;
mod member;
mod positions;
mod real_logs;
mod remade;
mod resets;
mod scripted;
mod seeks;
mod times;
mod truncated;
