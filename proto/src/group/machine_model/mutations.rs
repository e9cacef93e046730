//! Each rule broken once. The driver is what is broken, not the machine: the machine has no seam for tests,
//! and what it is told and what becomes of its effects is where each rule shows. Rules 6, 8, 11 and 12 are
//! not here: they are of time, offsets and caches, which the machine does not have.

use std::collections::BTreeSet;

use stateright::{Checker, HasDiscoveries, Model};

use super::Group;
use super::checking::{COMMITS, EXPIRY, JOIN, LEAVE, MOVE, THEFT};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Rule 1: delivery starts with the claim, not with its answer.
    DeliverBeforeClaim,
    /// Rule 1: a stop stops everything.
    StopEverything,
    /// INV-2: a stop is answered at once while delivery goes on.
    ReleaseWithoutStop,
    /// INV-3: a stop is answered without the flush.
    FlushForgotten,
    /// Rule 2: a trigger during a wait is not told.
    WaitOnOldPlan,
    /// Rule 3: a create answered in a later generation is not told.
    LateCreateForgotten,
    /// Rule 3, INV-7: an answer of the old session counts in the new one.
    OldSessionCounts,
    /// Rule 4: no watch on owner nodes.
    OwnersUnwatched,
    /// Rule 5: a move between threads is a delete and a create.
    MoveByDelete,
    /// Rule 7: the position is read when the claim is sent.
    PositionBeforeClaim,
    /// Rule 9: the server may expire a session whose lease has not ended.
    ExpiryWithinLease,
    /// Rule 10: a commit is written whoever owns the partition.
    UnfencedCommit,
}

/// The property that finds it, and in which scenario.
fn found_by(mutation: Mutation) -> (&'static str, Group) {
    match mutation {
        Mutation::DeliverBeforeClaim => ("INV-1", JOIN),
        Mutation::StopEverything => ("INV-6, INV-8, INV-9", JOIN),
        Mutation::ReleaseWithoutStop => ("INV-2, INV-3", JOIN),
        Mutation::FlushForgotten | Mutation::PositionBeforeClaim => ("INV-6: twice", JOIN),
        Mutation::WaitOnOldPlan | Mutation::LateCreateForgotten => ("INV-6, INV-8, INV-9", LEAVE),
        Mutation::OldSessionCounts => ("INV-10", EXPIRY),
        Mutation::OwnersUnwatched => ("INV-6, INV-8, INV-9", THEFT),
        Mutation::MoveByDelete => ("rule 5", MOVE),
        Mutation::ExpiryWithinLease => ("INV-1", EXPIRY),
        Mutation::UnfencedCommit => ("INV-4", COMMITS),
    }
}

fn is_found(mutation: Mutation) {
    let (property, group) = found_by(mutation);
    let group = Group { mutation: Some(mutation), ..group };
    let finish = HasDiscoveries::AnyOf(BTreeSet::from([property]));
    let checker = group.checker().threads(1).finish_when(finish).spawn_bfs().join();
    let states = checker.unique_state_count();
    let Some(path) = checker.discovery(property) else {
        panic!("{mutation:?} is not found in {states} states: {:?}", checker.discoveries().keys());
    };
    let steps = path.into_actions();
    println!("{mutation:?} is found by {property} after {states} states, in {} steps", steps.len());
}

macro_rules! is_found {
    ($($test:ident: $mutation:ident),* $(,)?) => {
        $(#[test] fn $test() { is_found(Mutation::$mutation); })*
    };
}

is_found! {
    rule_1_each_starts_when_it_is_claimed: DeliverBeforeClaim,
    rule_1_what_stays_flows_on: StopEverything,
    rule_2_no_wait_on_an_old_plan: WaitOnOldPlan,
    rule_3_a_late_create_counts: LateCreateForgotten,
    rule_3_an_old_session_does_not_count: OldSessionCounts,
    rule_4_owned_nodes_are_watched: OwnersUnwatched,
    rule_5_a_move_is_no_delete: MoveByDelete,
    rule_7_the_position_is_read_after_the_claim: PositionBeforeClaim,
    rule_9_the_lease_ends_before_the_session: ExpiryWithinLease,
    rule_10_commits_are_fenced: UnfencedCommit,
    inv_2_delivery_stops_before_the_release: ReleaseWithoutStop,
    inv_3_the_flush_comes_before_the_release: FlushForgotten,
}
