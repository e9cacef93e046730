//! What one member does, told step by step. `g_b` is the member; its effects are written in short words.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::{Generation, Input, Machine, Phase, Reason};
use super::story::{NOTHING, OTHER, SESSION, Story, names, tp};
use crate::group::{GroupSnapshot, Member, Owner, SessionNumber};

#[test]
fn a_member_joins_alone() {
    let mut b = Story::new();
    assert_eq!(b.told(Input::SessionStarted), ["register"]);
    assert_eq!(b.registered(SESSION), ["read group"]);
    assert_eq!(b.group(&[("g_b", 1)], 2), ["claim a-0 for g_b-0", "claim a-1 for g_b-0"]);
    // each partition starts by itself; its owner node is watched from then on
    assert_eq!(b.created("a-1"), ["read owner a-1", "start a-1 for g_b-0"]);
    assert_eq!(b.machine.phase(), Phase::Claiming);
    assert_eq!(b.created("a-0"), ["read owner a-0", "start a-0 for g_b-0"]);
    assert_eq!(b.machine.phase(), Phase::Stable);
}

#[test]
fn another_member_joins_and_only_what_moves_is_stopped() {
    let mut b = Story::owner_of_two();
    assert_eq!(b.triggered(Reason::ConsumersChanged), ["read group"]);
    assert_eq!(b.group(&[("g_b", 1), ("g_c", 1)], 2), ["stop a-1"]);
    assert_eq!(b.stopped("a-1"), ["release a-1"]);
    assert_eq!(b.released("a-1"), NOTHING);
    assert_eq!(b.machine.phase(), Phase::Stable);
    assert_eq!(names(b.machine.running().map(|(tp, _)| tp)), "a-0");
}

#[test]
fn another_member_leaves_and_what_it_had_is_claimed() {
    let mut b = Story::owner_of_two();
    b.triggered(Reason::ConsumersChanged);
    b.group(&[("g_b", 1), ("g_c", 1)], 2);
    b.stopped("a-1");
    b.released("a-1");
    b.triggered(Reason::ConsumersChanged);
    assert_eq!(b.group(&[("g_b", 1)], 2), ["claim a-1 for g_b-0"]);
    assert_eq!(b.created("a-1"), ["read owner a-1", "start a-1 for g_b-0"]);
}

#[test]
fn a_partition_that_appears_later_is_marked() {
    let mut b = Story::owner_of_two();
    b.triggered(Reason::PartitionsChanged);
    assert_eq!(b.group(&[("g_b", 1)], 3), ["claim a-2 for g_b-0"]);
    assert_eq!(b.created("a-2"), ["read owner a-2", "start new a-2 for g_b-0"]);
}

#[test]
fn a_conflict_is_waited_for_until_the_other_lets_go() {
    let mut b = Story::new();
    b.told(Input::SessionStarted);
    b.registered(SESSION);
    b.group(&[("g_b", 1)], 2);
    assert_eq!(b.occupied("a-1", OTHER, "g_c-0"), ["read owner a-1"]);
    // nothing else waits for it
    assert_eq!(b.created("a-0"), ["read owner a-0", "start a-0 for g_b-0", "wake at 2000"]);
    assert_eq!(b.owner_is("a-1", Some((OTHER, "g_c-0"))), NOTHING);
    // the watch fires, and is read again
    assert_eq!(b.owner_is("a-1", None), ["claim a-1 for g_b-0"]);
    assert_eq!(b.created("a-1"), ["read owner a-1", "start a-1 for g_b-0"]);
    assert_eq!(b.machine.phase(), Phase::Stable);
}

/// Else two members whose snapshots differ in age wait for each other.
#[test]
fn a_trigger_aborts_the_wait_and_what_the_new_plan_drops_is_given_up() {
    let mut b = Story::owner_of_two();
    b.triggered(Reason::PartitionsChanged);
    b.group(&[("g_b", 1)], 3);
    b.occupied("a-2", OTHER, "g_c-0");
    assert_eq!(b.triggered(Reason::ConsumersChanged), ["read group"]);
    // the old wait is over: that the node is free leads to nothing
    assert_eq!(b.owner_is("a-2", None), NOTHING);
    assert_eq!(b.group(&[("g_a", 1), ("g_b", 1), ("g_c", 1)], 3), ["stop a-0"]);
}

#[test]
fn a_wait_never_ends_in_idleness() {
    let mut b = Story::new();
    b.told(Input::SessionStarted);
    b.registered(SESSION);
    for _ in 0..4 {
        b.group(&[("g_b", 1)], 1);
        b.occupied("a-0", OTHER, "g_c-0");
        assert_eq!(b.machine.phase(), Phase::Claiming);
        let heard = b.rings(2_000);
        assert_eq!(heard.last().map(String::as_str), Some("read group"));
        assert_eq!(heard.len() == 2, b.now == 8_000, "{heard:?}");
    }
    b.group(&[("g_b", 1)], 1);
    assert_eq!(b.created("a-0"), ["read owner a-0", "start a-0 for g_b-0"]);
}

/// After an expiry our own node of the older session is in the way like any other's.
#[test]
fn a_node_with_our_thread_but_of_another_session_is_not_ours() {
    let mut b = Story::new();
    b.told(Input::SessionStarted);
    b.registered(SESSION);
    b.group(&[("g_b", 1)], 1);
    assert_eq!(b.occupied("a-0", OTHER, "g_b-0"), ["read owner a-0", "wake at 2000"]);
}

#[test]
fn a_partition_moves_between_threads_of_one_member() {
    let mut b = Story::owner_of_two();
    b.triggered(Reason::ConsumersChanged);
    assert_eq!(b.group(&[("g_b", 2)], 2), ["stop a-1"]);
    // set, never deleted and made again; a-0 flows on
    assert_eq!(b.stopped("a-1"), ["move a-1 to g_b-1"]);
    assert_eq!(b.created("a-1"), ["read owner a-1", "start a-1 for g_b-1"]);
    assert_eq!(b.machine.phase(), Phase::Stable);
}

#[test]
fn a_create_answered_late_is_settled_before_the_next_plan() {
    let mut b = Story::new();
    b.told(Input::SessionStarted);
    b.registered(SESSION);
    b.group(&[("g_b", 1)], 2);
    b.created("a-0");
    assert_eq!(b.triggered(Reason::ConsumersChanged), ["read group"]);
    assert_eq!(b.group(&[("g_b", 1), ("g_c", 1)], 2), NOTHING);
    // only now is it known that a-1 is ours, and that it is to be given up
    assert_eq!(b.created("a-1"), ["release a-1"]);
    assert_eq!(b.released("a-1"), NOTHING);
    assert_eq!(b.machine.phase(), Phase::Stable);
}

#[test]
fn a_lost_reply_is_settled_by_reading() {
    let claiming = || {
        let mut b = Story::new();
        b.told(Input::SessionStarted);
        b.registered(SESSION);
        b.group(&[("g_b", 1)], 1);
        assert_eq!(b.unknown("a-0"), ["read owner a-0"]);
        b
    };
    let ours = claiming().owner_is("a-0", Some((SESSION, "g_b-0")));
    assert_eq!(ours, ["read owner a-0", "start a-0 for g_b-0"]);
    assert_eq!(claiming().owner_is("a-0", None), ["wake at 2000"]);
    assert_eq!(claiming().owner_is("a-0", Some((OTHER, "g_c-0"))), ["read owner a-0", "wake at 2000"]);
    let mut b = claiming();
    assert_eq!(b.owner_unknown("a-0"), ["wake at 2000"]);
    assert_eq!(b.rings(2_000), ["read owner a-0", "read group"]);
    assert_eq!(b.group(&[("g_b", 1)], 1), NOTHING);
    assert_eq!(b.owner_is("a-0", Some((SESSION, "g_b-0"))), ["read owner a-0", "start a-0 for g_b-0"]);
}

#[test]
fn the_session_expires_while_partitions_are_given_up() {
    let mut b = Story::owner_of_two();
    b.triggered(Reason::ConsumersChanged);
    b.group(&[("g_a", 2), ("g_b", 1)], 2);
    let generation = b.generation();
    b.stopped("a-0");
    assert_eq!(b.told(Input::SessionExpired), ["drop a-0 a-1"]);
    // late results of the old session change nothing
    let partitions = BTreeSet::from([tp("a-1")]);
    assert_eq!(b.told(Input::Stopped { generation, partitions }), NOTHING);
    assert_eq!(b.released("a-0"), NOTHING);
    assert_eq!(b.created("a-1"), NOTHING);
    assert_eq!(b.told(Input::SessionStarted), ["register"]);
    assert_eq!(b.registered(OTHER), ["read group"]);
}

#[test]
fn somebody_deletes_our_owner_node() {
    let mut b = Story::owner_of_two();
    // delivery stops at once, without a flush; a-0 flows on
    assert_eq!(b.owner_is("a-1", None), ["drop a-1", "read group"]);
    assert_eq!(b.group(&[("g_b", 1)], 2), ["claim a-1 for g_b-0"]);
    assert_eq!(b.occupied("a-1", OTHER, "g_c-0"), ["read owner a-1", "wake at 2000"]);
}

/// A partition is stopped, then taken from us and claimed again: that the first stop ended says nothing of
/// the second delivery.
#[test]
fn the_answer_to_an_older_stop_counts_no_more() {
    let mut b = Story::owner_of_two();
    b.triggered(Reason::ConsumersChanged);
    assert_eq!(b.group(&[("g_b", 1), ("g_c", 1)], 2), ["stop a-1"]);
    let first = b.generation();
    assert_eq!(b.owner_is("a-1", None), ["drop a-1", "read group"]);
    b.group(&[("g_b", 1)], 2);
    b.created("a-1");
    b.triggered(Reason::ConsumersChanged);
    assert_eq!(b.group(&[("g_b", 1), ("g_c", 1)], 2), ["stop a-1"]);
    let partitions = BTreeSet::from([tp("a-1")]);
    assert_eq!(b.told(Input::Stopped { generation: first, partitions }), NOTHING);
    assert_eq!(b.stopped("a-1"), ["release a-1"]);
}

#[test]
fn shutdown_in_the_midst_of_claiming() {
    let mut b = Story::new();
    b.told(Input::SessionStarted);
    b.registered(SESSION);
    b.group(&[("g_b", 1)], 3);
    b.created("a-0");
    assert_eq!(b.told(Input::Shutdown), ["stop a-0"]);
    assert_eq!(b.created("a-1"), ["release a-1"]);
    assert_eq!(b.occupied("a-2", OTHER, "g_c-0"), NOTHING);
    assert_eq!(b.stopped("a-0"), ["release a-0"]);
    assert_eq!(b.released("a-1"), NOTHING);
    assert_eq!(b.released("a-0"), ["leave"]);
}

#[test]
fn a_restarted_coordinator_adopts_its_nodes() {
    let Story { machine, .. } = Story::owner_of_two();
    let node = |name, session, thread: &str| (tp(name), Owner { session, thread: thread.to_owned() });
    let another = SessionNumber(SESSION.0 + 1);
    // a node of our session is ours whatever it says
    let nodes =
        [node("a-0", SESSION, "g_b-0"), node("a-1", SESSION, "scribble"), node("a-2", another, "g_b-0")];
    let generation = Generation(machine.generation().0 + 1);
    let machine = Machine::adopt(machine.settings, SESSION, generation, nodes);
    let mut b = Story { machine, now: 0 };
    assert_eq!(b.triggered(Reason::Restarted), ["read group"]);
    let heard = b.group(&[("g_b", 1), ("g_c", 1)], 2);
    assert_eq!(heard, ["release a-1"]);
    assert_eq!(b.released("a-1"), ["read owner a-0", "start a-0 for g_b-0"]);
    assert_eq!(b.machine.phase(), Phase::Stable);
}

#[test]
fn any_number_of_triggers_lead_to_one_more_read() {
    let mut b = Story::owner_of_two();
    assert_eq!(b.triggered(Reason::ConsumersChanged), ["read group"]);
    for _ in 0..5 {
        assert_eq!(b.triggered(Reason::PartitionsChanged), NOTHING);
    }
    assert_eq!(b.group(&[("g_b", 1)], 2), ["read group"]);
    assert_eq!(b.group(&[("g_b", 1)], 2), NOTHING);
    assert_eq!(b.machine.phase(), Phase::Stable);
}

#[test]
fn without_brokers_it_keeps_what_it_has() {
    let mut b = Story::owner_of_two();
    b.triggered(Reason::BrokersChanged);
    let generation = b.generation();
    let members = vec![Member { id: "g_b".to_owned(), topics: BTreeMap::from([(Arc::from("a"), 1)]) }];
    let snapshot = GroupSnapshot { members, ..GroupSnapshot::default() };
    assert_eq!(b.told(Input::GroupRead { generation, outcome: Ok(snapshot) }), ["wake at 2000"]);
    assert_eq!(names(b.machine.running().map(|(tp, _)| tp)), "a-0 a-1");
    // a broker comes: the backoff is not waited for
    assert_eq!(b.triggered(Reason::BrokersChanged), ["read group"]);
}

#[test]
fn a_position_that_cannot_be_read_is_tried_again_after_the_backoff() {
    let mut b = Story::owner_of_two();
    let (generation, why) = (Generation(2), "no leader".to_owned());
    let failed = Input::StartFailed { generation, partition: tp("a-1"), why };
    assert_eq!(b.told(failed), ["wake at 2000"]);
    assert_eq!(b.rings(2_000), ["read group"]);
    assert_eq!(b.group(&[("g_b", 1)], 2), ["read owner a-1", "start a-1 for g_b-0"]);
}
