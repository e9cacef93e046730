//! The sizes that are checked.

use std::time::Instant;

use stateright::{Checker, Model};

use super::faults::Fault;
use super::state::TOPIC;
use super::{Action, Budget, Group, Reset};
use crate::TopicPartition;

const NOTHING: Budget = Budget {
    crashes: 0,
    pauses: 0,
    cuts: 0,
    thefts: 0,
    rings: 1,
    leaves: 0,
    returns: 0,
    lags: 0,
    partings: 0,
    panics: 0,
    appends: 0,
    growths: 0,
    remakes: 0,
    seeks: 0,
};

pub const JOIN: Group = Group {
    settled: &[1],
    joining: &[1],
    begun: Vec::new,
    scala: &[],
    partitions: 2,
    budget: NOTHING,
    records: 1,
    commits_each: false,
    reset: None,
    unreadable: false,
    wanted: &["whole", "conflict", "slow handler", "record"],
    mutation: None,
};

/// Two join at once.
pub const CROWD: Group = Group { joining: &[1, 1], partitions: 3, records: 0, wanted: &["conflict"], ..JOIN };
/// Two streams; one that joins makes a partition go from one to the other.
pub const MOVE: Group = Group { settled: &[2], partitions: 3, wanted: &["move", "record"], ..JOIN };
pub const LEAVE: Group =
    Group { budget: Budget { leaves: 1, ..NOTHING }, records: 0, wanted: &["conflict", "takeover"], ..JOIN };
/// One expires while it sets a node to another of its threads; the set is executed in its next session.
pub const SET_IN_NEXT: Group = Group {
    settled: &[2],
    begun: || {
        let tp = |number| TopicPartition::new(TOPIC, number);
        vec![
            Action::Take(1),
            Action::Execute(1),
            Action::Take(0),
            Action::Execute(0),
            Action::Drained(0, tp(1)),
            Action::Drained(0, tp(2)),
            Action::Execute(0),
            Action::Take(0),
            Action::Fault(Fault::LeaseEnds(0, 0)),
            Action::Fault(Fault::Expire(0)),
            Action::Execute(1),
            Action::Execute(1),
            Action::Execute(1),
            Action::Fault(Fault::NewSession(0, true)),
        ]
    },
    partitions: 3,
    budget: Budget { pauses: 1, ..NOTHING },
    records: 0,
    wanted: &["conflict", "another's set"],
    ..JOIN
};
pub const EXPIRY: Group =
    Group { budget: Budget { pauses: 1, ..NOTHING }, records: 0, wanted: &["new session"], ..JOIN };
/// One leaves with a slow handler, and expires meanwhile; the other takes over.
pub const COMMITS: Group = Group {
    settled: &[1, 1],
    joining: &[],
    partitions: 1,
    budget: Budget { leaves: 1, pauses: 1, ..NOTHING },
    records: 2,
    commits_each: true,
    wanted: &["record", "takeover"],
    ..JOIN
};
/// A create is executed in the session after the one that planned it, while another member joins.
pub const NEXT_SESSION: Group = Group {
    settled: &[],
    joining: &[1, 1],
    begun: || {
        vec![
            Action::Take(0),
            Action::Execute(0),
            Action::Execute(0),
            Action::Execute(0),
            Action::Fault(Fault::LeaseEnds(0, 0)),
            Action::Fault(Fault::Expire(0)),
            Action::Fault(Fault::NewSession(0, true)),
        ]
    },
    budget: Budget { pauses: 1, ..NOTHING },
    records: 0,
    wanted: &["conflict", "next session's create"],
    ..JOIN
};
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

/// A follower shows an older state of the tree than writes meet.
pub const LAG: Group =
    Group { budget: Budget { lags: 1, ..NOTHING }, wanted: &["whole", "conflict", "stale read"], ..JOIN };
/// A follower is cut off from the ensemble, and answers reads even of a session that has ended.
pub const PARTING: Group = Group {
    budget: Budget { partings: 1, ..NOTHING },
    records: 0,
    wanted: &["read after the end", "new session", "rejoined"],
    ..JOIN
};
pub const PANIC: Group = Group {
    budget: Budget { panics: 1, leaves: 1, ..NOTHING },
    records: 0,
    wanted: &["whole", "conflict", "adoption"],
    ..JOIN
};
pub const SCALA_JOINS: Group =
    Group { scala: &[1], wanted: &["whole", "overdue handler", "repeated by a Scala member"], ..JOIN };
pub const SCALA_IS_JOINED: Group = Group { scala: &[0], wanted: &["whole", "conflict", "record"], ..JOIN };
/// One of each joins at once, and no Scala member may give up.
pub const SCALA_CROWD: Group =
    Group { scala: &[1], joining: &[1, 1], partitions: 3, records: 0, wanted: &["conflict"], ..JOIN };
/// A Scala member goes on in its next session with what it was doing in the last.
pub const SCALA_EXPIRES: Group = Group {
    budget: Budget { pauses: 1, ..NOTHING },
    records: 0,
    wanted: &["whole", "blind delete"],
    ..SCALA_IS_JOINED
};
/// Two join a new group at the end of the log.
pub const RESET: Group = Group {
    settled: &[],
    joining: &[1, 1],
    partitions: 1,
    budget: Budget { crashes: 1, appends: 2, ..NOTHING },
    records: 0,
    reset: Some(Reset::Largest),
    wanted: &["whole", "reset", "record"],
    ..JOIN
};
pub const GROWTH: Group = Group {
    settled: &[1, 1],
    joining: &[],
    budget: Budget { growths: 1, appends: 1, crashes: 1, ..NOTHING },
    wanted: &["growth", "reset", "record"],
    ..RESET
};
/// The topic is made again: what is stored is not in the log.
pub const REMAKE: Group = Group {
    settled: &[1, 1],
    joining: &[],
    budget: Budget { remakes: 1, appends: 2, crashes: 1, ..NOTHING },
    records: 1,
    commits_each: true,
    reset: Some(Reset::Smallest),
    wanted: &["whole", "reset", "lowered", "record"],
    ..RESET
};
/// A tool writes an offset under a running group.
pub const SEEK: Group = Group {
    budget: Budget { seeks: 1, crashes: 1, ..NOTHING },
    records: 2,
    wanted: &["whole", "record"],
    ..REMAKE
};
/// A fixed consumer id leaves, and comes back with another number of streams.
pub const RETURN: Group = Group {
    settled: &[1, 1],
    joining: &[],
    partitions: 3,
    budget: Budget { leaves: 1, returns: 1, ..NOTHING },
    records: 0,
    wanted: &["return", "conflict"],
    ..JOIN
};
pub const UNREADABLE: Group = Group { unreadable: true, records: 0, wanted: &["whole"], ..JOIN };

/// Each fault may strike, at any of three.
pub const TRIO: Group = Group {
    settled: &[1, 1, 1],
    joining: &[],
    partitions: 3,
    budget: Budget { crashes: 1, pauses: 1, cuts: 1, thefts: 1, leaves: 1, ..NOTHING },
    records: 0,
    wanted: &["whole", "theft", "slow handler"],
    ..JOIN
};

/// The same with a Scala member among them, and a coordinator that panics.
pub const MIXED: Group = Group {
    scala: &[1],
    budget: Budget { crashes: 1, pauses: 1, cuts: 1, panics: 1, lags: 1, partings: 1, ..NOTHING },
    wanted: &["whole"],
    ..TRIO
};

/// Checks all states up to a number, nearest first, and prints how many. In the closing size those that have more
/// are searched in depth as well.
fn check(what: &str, group: Group, states: usize) {
    let begun = Instant::now();
    let checker = group.clone().checker().threads(1).target_state_count(states).spawn_bfs().join();
    report(what, begun, states, &checker);
    if is_closing() && checker.state_count() >= states {
        check_deep(&format!("{what}, deep"), Group { wanted: &[], ..group }, states);
    }
}

/// Checks some states of each depth, where all would be too many.
fn check_deep(what: &str, group: Group, states: usize) {
    let begun = Instant::now();
    let checker = group.checker().threads(1).target_state_count(states).spawn_dfs().join();
    report(what, begun, states, &checker);
}

fn report(what: &str, begun: Instant, states: usize, checker: &impl Checker<Group>) {
    let (unique, all, depth) = (checker.unique_state_count(), checker.state_count(), checker.max_depth());
    let extent = if all < states { "exhaustive" } else { "bounded" };
    println!("{what}: {unique} unique states of {all}, {extent}, depth {depth}, {:?}", begun.elapsed());
    checker.assert_properties();
}

/// `TROUPE_MODEL=closing` takes some minutes and GiB (best with `--test-threads 1`).
fn is_closing() -> bool {
    std::env::var("TROUPE_MODEL").as_deref() == Ok("closing")
}

/// In the size for every day the larger scenarios are checked breadth first up to this number.
fn limit() -> usize {
    if is_closing() { 1_500_000 } else { 60_000 }
}

#[test]
fn three_members_meet_every_fault() {
    check("trio", TRIO, limit());
    check_deep("trio, deep", TRIO, limit());
}

#[test]
fn three_members_of_which_one_is_scala_meet_faults() {
    check("mixed", MIXED, limit());
    check_deep("mixed, deep", MIXED, limit());
}

#[test]
fn a_follower_lags() {
    check("lag", LAG, limit());
}

#[test]
fn a_follower_is_cut_off() {
    check("parting", PARTING, limit());
}

#[test]
fn a_coordinator_panics() {
    check("panic", PANIC, limit());
}

#[test]
fn a_scala_member_joins() {
    check("scala joins", SCALA_JOINS, limit());
}

#[test]
fn one_of_each_joins() {
    check("scala crowd", SCALA_CROWD, limit());
}

#[test]
fn a_scala_member_is_joined() {
    check("scala is joined", SCALA_IS_JOINED, limit());
}

#[test]
fn a_scala_member_expires() {
    check("scala expires", SCALA_EXPIRES, limit());
}

#[test]
fn a_position_is_made() {
    check("reset", RESET, limit());
}

#[test]
fn a_partition_is_added() {
    check("growth", GROWTH, limit());
}

#[test]
fn a_topic_is_made_again() {
    check("remake", REMAKE, limit());
}

#[test]
fn a_tool_writes_an_offset() {
    check("seek", SEEK, limit());
}

#[test]
fn an_id_comes_back_with_other_streams() {
    check("return", RETURN, limit());
}

#[test]
fn a_registration_cannot_be_read() {
    check("unreadable", UNREADABLE, limit());
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
fn a_create_runs_in_the_next_session() {
    check("next session", NEXT_SESSION, limit());
}

#[test]
fn a_set_runs_in_the_next_session() {
    check("set in next session", SET_IN_NEXT, limit().max(150_000));
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
