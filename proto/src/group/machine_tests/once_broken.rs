//! Interleavings in which the machine was once wrong.

use std::collections::BTreeSet;

use super::super::{Input, Phase, Reason};
use super::story::{NOTHING, OTHER, SESSION, Story, tp};

/// A member waits for a node; a watch on another node fails, so it backs off; the node becomes free. It
/// claimed it then, on a plan that it had already given up, and held it idle until the backoff had passed.
#[test]
fn a_backoff_ends_the_waits_of_the_plan_before_it() {
    let mut b = Story::owner_of_two();
    b.triggered(Reason::PartitionsChanged);
    b.group(&[("g_b", 1)], 3);
    b.occupied("a-2", OTHER, "g_c-0");
    assert_eq!(b.owner_unknown("a-0"), ["wake at 2000"]);
    assert_eq!(b.owner_is("a-2", None), NOTHING);
}

/// Two partitions are being given up; the watch on a third cannot be set. The whole machine backed off, so
/// the two, although stopped, were released only after the backoff and another read: with the time that
/// handlers get, later than a Scala successor is ready to wait.
#[test]
fn a_failed_step_does_not_delay_what_others_wait_for() {
    let mut b = Story::owner_of_two();
    b.triggered(Reason::ConsumersChanged);
    assert_eq!(b.group(&[("g_b", 1), ("g_c", 1)], 2), ["stop a-1"]);
    assert_eq!(b.owner_unknown("a-0"), NOTHING);
    assert_eq!(b.stopped("a-1"), ["release a-1"]);
    assert_eq!(b.released("a-1"), ["wake at 2000"]);
    assert_eq!(b.rings(2_000), ["read owner a-0", "read group"]);
    // a delete without an answer is read before the next plan, and repeated if need be
    let mut b = Story::owner_of_two();
    b.triggered(Reason::ConsumersChanged);
    b.group(&[("g_b", 1), ("g_c", 1)], 2);
    b.stopped("a-1");
    assert_eq!(b.not_released("a-1"), ["wake at 2000"]);
    assert_eq!(b.rings(2_000), ["read owner a-1", "read group"]);
    assert_eq!(b.group(&[("g_b", 1), ("g_c", 1)], 2), NOTHING);
    assert_eq!(b.owner_is("a-1", Some((SESSION, "g_b-0"))), ["release a-1"]);
}

/// Members come and go faster than the group can be read (a crash loop of many). Each read was overtaken and
/// begun again, so nothing was ever given up or claimed while it lasted.
#[test]
fn a_storm_of_triggers_does_not_keep_it_from_acting() {
    let mut b = Story::owner_of_two();
    b.triggered(Reason::ConsumersChanged);
    let mut reads = 0;
    let heard = loop {
        b.triggered(Reason::ConsumersChanged);
        let heard = b.group(&[("g_b", 1), ("g_c", 1)], 2);
        if heard != ["read group"] {
            break heard;
        }
        reads += 1;
        assert!(reads < 10);
    };
    assert_eq!(heard, ["stop a-1"]);
    b.stopped("a-1");
    // what came meanwhile is not forgotten
    assert_eq!(b.released("a-1"), ["read group"]);
    assert_eq!(b.group(&[("g_b", 1), ("g_c", 1)], 2), NOTHING);
    assert_eq!(b.machine.phase(), Phase::Stable);
}

/// A read sent before the end was answered after it, and led to a release and a second `Leave`.
#[test]
fn it_leaves_once() {
    let mut b = Story::owner_of_two();
    assert_eq!(b.told(Input::Shutdown), ["stop a-0 a-1"]);
    b.stopped("a-0");
    b.stopped("a-1");
    b.released("a-0");
    assert_eq!(b.released("a-1"), ["leave"]);
    assert_eq!(b.owner_is("a-0", Some((SESSION, "g_b-0"))), NOTHING);
    assert_eq!(b.told(Input::SessionExpired), NOTHING);
    assert_eq!(Story::new().told(Input::Shutdown), ["leave"]);
}

/// Were the news of an expiry ever lost between client and machine, nodes of the old session would have been
/// kept as ours for ever.
#[test]
fn another_session_means_that_the_old_one_is_gone() {
    let mut b = Story::owner_of_two();
    assert_eq!(b.told(Input::SessionStarted), ["register"]);
    assert_eq!(b.registered(OTHER), ["drop a-0 a-1", "read group"]);
}

/// A move to another thread got no answer, and a read found the old thread, so the old thread went on; then
/// the move got through. The node was taken for lost and forgotten, though it is ours: nobody released it.
#[test]
fn a_node_moved_late_is_still_held() {
    let mut b = Story::owner_of_two();
    assert_eq!(b.owner_is("a-1", Some((SESSION, "g_b-1"))), ["drop a-1", "read group"]);
    assert_eq!(b.group(&[("g_b", 1), ("g_c", 1)], 2), ["release a-1"]);
}

/// A member joined, and another while handlers still finished for the first. What the second was to get began to
/// stop only when all for the first was given up: a Scala member waited for twice as long as rule 6 allows, gave up
/// after its fourth attempt, and its partition was nobody's until something else changed.
#[test]
fn what_is_dropped_begins_to_stop_at_once() {
    let mut b = Story::owner_of_two();
    b.triggered(Reason::ConsumersChanged);
    assert_eq!(b.group(&[("g_b", 1), ("g_c", 1)], 2), ["stop a-1"]);
    let before = b.generation();
    assert_eq!(b.triggered(Reason::ConsumersChanged), ["read group"]);
    // and what stops meanwhile does not wait for the read
    let partitions = BTreeSet::from([tp("a-1")]);
    assert_eq!(b.told(Input::Stopped { generation: before, partitions }), ["release a-1"]);
    assert_eq!(b.group(&[("g_a", 1), ("g_b", 1), ("g_c", 1)], 2), ["stop a-0"]);
    assert_eq!(b.released("a-1"), NOTHING);
    assert_eq!(b.stopped("a-0"), ["release a-0"]);
    assert_eq!(b.released("a-0"), ["claim a-1 for g_b-0"]);
}

/// Another member set its node to another of its threads; it expired meanwhile, we claimed the partition, and
/// the set, which knew only the version, met our node. That node named a thread of theirs, so it was not taken for
/// ours: forgotten, neither set right nor released, and all waited for it until our session ended.
#[test]
fn a_node_of_our_session_is_ours_whatever_it_says() {
    for text in ["g_a-1", "what an operator wrote"] {
        let mut b = Story::owner_of_two();
        assert_eq!(b.owner_is("a-1", Some((SESSION, text))), ["drop a-1", "read group"]);
        assert_eq!(b.group(&[("g_b", 1)], 2), ["move a-1 to g_b-0"]);
        assert_eq!(b.created("a-1"), ["read owner a-1", "start a-1 for g_b-0"]);

        let mut b = Story::owner_of_two();
        b.owner_is("a-1", Some((SESSION, text)));
        assert_eq!(b.group(&[("g_b", 1), ("g_c", 1)], 2), ["release a-1"]);
    }
}

/// Whatever it was that refused a create or a move (an ACL of another principal, say) refused it again: the
/// read that settled it said nobody, so the create was sent again, at once, for ever, and `Failing` was never
/// reported.
#[test]
fn what_is_refused_is_not_tried_again_at_once() {
    let mut b = Story::new();
    b.told(Input::SessionStarted);
    b.registered(SESSION);
    for _ in 0..4 {
        assert_eq!(b.group(&[("g_b", 1)], 1), ["claim a-0 for g_b-0"]);
        assert_eq!(b.unknown("a-0"), ["read owner a-0"]);
        let heard = b.owner_is("a-0", None);
        assert_eq!(heard, [format!("wake at {}", b.now + 2_000)]);
        assert_eq!(b.rings(2_000), ["read group"]);
    }
    b.group(&[("g_b", 1)], 1);
    b.unknown("a-0");
    assert_eq!(b.owner_is("a-0", None), ["failing: a-0 could not be claimed", "wake at 10000"]);

    let mut b = Story::owner_of_two();
    b.triggered(Reason::ConsumersChanged);
    b.group(&[("g_b", 2)], 2);
    assert_eq!(b.stopped("a-1"), ["move a-1 to g_b-1"]);
    assert_eq!(b.unknown("a-1"), ["read owner a-1"]);
    assert_eq!(b.owner_is("a-1", Some((SESSION, "g_b-0"))), ["wake at 2000"]);
    assert_eq!(b.rings(2_000), ["read group"]);
    assert_eq!(b.group(&[("g_b", 2)], 2), ["move a-1 to g_b-1"]);
}
