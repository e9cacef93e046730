//! Each rule broken once. The driver is what is broken, not the machine: the machine has no seam for tests,
//! and what it is told and what becomes of its effects is where each rule shows.
//!
//! What rules 6, 8, 11 and 12 (and half of 9 and 10) decide lives in actors, not in the machine. Of these the
//! model has the small protocol only, in `offsets`, `follower`, `legacy` and `server`: so these show that the rule is
//! needed, and that it suffices together with the machine; that the actors keep it is shown by their own tests, by
//! the simulation and on real servers. Not checked here: how long anything takes, the `failing` report of rule 2, reading
//! the offset before the owner (rule 10), stores in Kafka (rules 10, 12), filters (rule 11).

use std::collections::BTreeSet;

use stateright::{Checker, HasDiscoveries, Model};

use super::Group;
use super::checking::{
    COMMITS, CUT, EXPIRY, GROWTH, JOIN, LEAVE, MOVE, NEXT_SESSION, PANIC, PARTING, REMAKE, RESET, RETURN,
    SCALA_JOINS, SEEK, THEFT, UNREADABLE,
};

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
    /// Rule 3: a create that was executed in the next session is not deleted.
    NextSessionCreateKept,
    /// Rule 3: a restarted coordinator does not ask what it holds.
    RestartForgets,
    /// Rule 3: it asks before what the old one sent is executed.
    AdoptsWhatIsSeenAtOnce,
    /// Rule 4: no watch on owner nodes.
    OwnersUnwatched,
    /// Rule 5: a move between threads is a delete and a create.
    MoveByDelete,
    /// Rule 6: nothing bounds how long handlers get when a partition moves away.
    UnboundedRevoke,
    /// Rule 6: a record that is cut off is committed all the same.
    CutIsAcked,
    /// Rule 7: the position is read when the claim is sent.
    PositionBeforeClaim,
    /// Rule 8: records are delivered from a position that a reset made, and that is not stored.
    ResetNotStored,
    /// Rule 8: a partition that appears under a running group starts at its end.
    AppearedAtEnd,
    /// Rule 9: what a follower answers to a read extends the lease.
    ReadsExtendLease,
    /// Rule 9: the server may expire a session whose lease has not ended.
    ExpiryWithinLease,
    /// Rule 10: a commit is written whoever owns the partition.
    UnfencedCommit,
    /// Rule 11: registrations are cached by the name of their node alone.
    CachedByName,
    /// Rule 11: one that cannot be read stops everybody.
    UnreadableStops,
    /// Rule 12: an explicit reset does not lower what is stored.
    ResetNeverLowers,
    /// Rule 12: any commit may.
    CommitLowers,
    /// INV-8: after a reconnect nothing is read again.
    ReconnectUntold,
    /// INV-9: a trigger that comes while something is given up is not told.
    TriggerWhileRevokingForgotten,
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
        Mutation::NextSessionCreateKept => ("INV-11", NEXT_SESSION),
        Mutation::RestartForgets => ("INV-11", PANIC),
        Mutation::AdoptsWhatIsSeenAtOnce => ("INV-10", PANIC),
        Mutation::UnboundedRevoke => ("rule 6", SCALA_JOINS),
        Mutation::CutIsAcked => ("INV-4", SCALA_JOINS),
        Mutation::ResetNotStored => ("INV-6: gap", RESET),
        Mutation::AppearedAtEnd => ("INV-6: gap", GROWTH),
        Mutation::ReadsExtendLease => ("INV-1", PARTING),
        Mutation::CachedByName => ("INV-6, INV-8, INV-9", RETURN),
        Mutation::UnreadableStops => ("INV-6, INV-8, INV-9", UNREADABLE),
        Mutation::ResetNeverLowers => ("INV-6: gap", REMAKE),
        Mutation::CommitLowers => ("INV-4", SEEK),
        Mutation::ReconnectUntold => ("INV-6, INV-8, INV-9", CUT),
        Mutation::TriggerWhileRevokingForgotten => ("INV-6, INV-8, INV-9", LEAVE),
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
    rule_3_a_create_of_the_next_session_is_deleted: NextSessionCreateKept,
    rule_3_a_restart_adopts_what_is_held: RestartForgets,
    rule_3_a_restart_asks_after_all_that_was_sent: AdoptsWhatIsSeenAtOnce,
    rule_6_a_revocation_is_bounded: UnboundedRevoke,
    rule_6_what_is_cut_off_is_handled_again: CutIsAcked,
    rule_8_a_position_made_is_stored_first: ResetNotStored,
    rule_8_what_appears_begins_at_its_beginning: AppearedAtEnd,
    rule_9_reads_do_not_extend_the_lease: ReadsExtendLease,
    rule_11_a_name_may_come_back_with_other_streams: CachedByName,
    rule_11_an_unreadable_record_stops_nobody: UnreadableStops,
    rule_12_an_explicit_reset_lowers: ResetNeverLowers,
    rule_12_nothing_else_lowers: CommitLowers,
    inv_8_a_reconnect_reads_again: ReconnectUntold,
    inv_9_a_trigger_during_a_revocation_counts: TriggerWhileRevokingForgotten,
    inv_2_delivery_stops_before_the_release: ReleaseWithoutStop,
    inv_3_the_flush_comes_before_the_release: FlushForgotten,
}
