//! What the tests stand on: clusters, members as processes or in this process, and an observer outside of them all.

pub mod accounts;
pub mod by_hand;
pub mod clusters;
pub mod exposition;
pub mod group;
pub mod history;
pub mod listener;
pub mod load;
pub mod member;
pub mod records;
pub mod scala;
pub mod stored;
pub mod system;
pub mod wait;
pub mod walk;
pub mod zk_log;

/// How often to do what is done a few times here, and 20 times to close an issue: `TROUPE_ROUNDS`, if set.
pub fn rounds() -> Option<usize> {
    std::env::var("TROUPE_ROUNDS").ok().map(|rounds| rounds.parse().expect("TROUPE_ROUNDS is a number"))
}
