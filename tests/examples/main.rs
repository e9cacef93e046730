//! Each example as its reader runs it, against one real cluster: what it prints, writes and commits.
//!
//! `cargo test` builds the examples beside this; `cargo test --test examples` alone does not, so then
//! `cargo build --examples` first.

mod databases;
mod printing;
mod process;
mod web;
