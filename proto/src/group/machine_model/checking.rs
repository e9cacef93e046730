//! The sizes that are checked.

use std::time::Instant;

use stateright::{Checker, Model};

use super::{Budget, Group};

const NOTHING: Budget = Budget { crashes: 0, pauses: 0, cuts: 0, thefts: 0, rings: 1, leaves: 0 };

pub const JOIN: Group = Group {
    settled: &[1],
    joining: &[1],
    partitions: 2,
    budget: NOTHING,
    records: 1,
    commits_each: false,
    wanted: &["whole", "conflict", "slow handler", "record"],
    mutation: None,
};

/// Two join at once.
pub const CROWD: Group = Group { joining: &[1, 1], partitions: 3, records: 0, wanted: &["conflict"], ..JOIN };
/// Two streams; one that joins makes a partition go from one to the other.
pub const MOVE: Group = Group { settled: &[2], partitions: 3, wanted: &["move", "record"], ..JOIN };
pub const LEAVE: Group =
    Group { budget: Budget { leaves: 1, ..NOTHING }, records: 0, wanted: &["conflict", "takeover"], ..JOIN };
pub const EXPIRY: Group =
    Group { budget: Budget { pauses: 1, ..NOTHING }, records: 0, wanted: &["new session"], ..JOIN };
pub const COMMITS: Group = Group { commits_each: true, records: 1, wanted: &["record"], ..EXPIRY };
pub const CRASH: Group =
    Group { budget: Budget { crashes: 1, ..NOTHING }, records: 0, wanted: &["takeover"], ..JOIN };
pub const CUT: Group =
    Group { budget: Budget { cuts: 1, ..NOTHING }, records: 0, wanted: &["conflict"], ..JOIN };
pub const THEFT: Group = Group {
    settled: &[1, 1],
    joining: &[],
    budget: Budget { thefts: 1, ..NOTHING },
    wanted: &["theft", "record"],
    ..JOIN
};

/// Each fault may strike, at any of three.
pub const TRIO: Group = Group {
    settled: &[1, 1, 1],
    joining: &[],
    partitions: 3,
    budget: Budget { crashes: 1, pauses: 1, cuts: 1, thefts: 1, rings: 1, leaves: 1 },
    records: 0,
    wanted: &["whole", "theft", "slow handler"],
    ..JOIN
};

/// Checks all states up to a number, nearest first, and prints how many.
fn check(what: &str, group: Group, states: usize) {
    let begun = Instant::now();
    report(what, begun, &group.checker().threads(1).target_state_count(states).spawn_bfs().join());
}

/// Checks some states of each depth, where all would be too many.
fn check_deep(what: &str, group: Group, states: usize) {
    let begun = Instant::now();
    report(what, begun, &group.checker().threads(1).target_state_count(states).spawn_dfs().join());
}

fn report(what: &str, begun: Instant, checker: &impl Checker<Group>) {
    let (unique, all) = (checker.unique_state_count(), checker.state_count());
    println!("{what}: {unique} unique states of {all}, depth {}, {:?}", checker.max_depth(), begun.elapsed());
    checker.assert_properties();
}

/// Seven of the ten scenarios have fewer states than the closing size (`TROUPE_MODEL=closing`, some minutes and GiB); in
/// the size for every day the larger ones are checked breadth first up to this number.
fn limit() -> usize {
    match std::env::var("TROUPE_MODEL").as_deref() {
        Ok("closing") => 1_500_000,
        _ => 60_000,
    }
}

#[test]
fn three_members_meet_every_fault() {
    check("trio", TRIO, limit());
    check_deep("trio, deep", TRIO, limit());
}

#[test]
fn one_joins() {
    check("join", JOIN, limit());
}

#[test]
fn two_join() {
    check("crowd", CROWD, limit());
}

#[test]
fn a_partition_moves_between_threads() {
    check("move", MOVE, limit().max(120_000));
}

#[test]
fn a_member_leaves() {
    check("leave", LEAVE, limit());
}

#[test]
fn a_session_expires() {
    check("expiry", EXPIRY, limit());
}

#[test]
fn commits_are_fenced() {
    check("commits", COMMITS, limit());
}

#[test]
fn a_member_crashes() {
    check("crash", CRASH, limit());
}

#[test]
fn a_connection_breaks() {
    check("cut", CUT, limit());
}

#[test]
fn an_owner_node_is_deleted() {
    check("theft", THEFT, limit());
}
