use std::time::Duration;

use super::*;
use crate::broker_connection::ConnectOptions;
use crate::broker_fetcher::test_claims::claim;
use crate::registry::Joint;
use crate::stream_queue::{Credit, FetchedChunk};
use crate::testkit::fetch_settings;

fn settings(reset: OffsetReset) -> FetchSettings {
    let connect = ConnectOptions::new("test", Duration::from_secs(1));
    FetchSettings { offset_reset: reset, ..fetch_settings(connect) }
}

#[test]
fn none_fails_the_partition_with_the_property_in_the_error() {
    let credit = Arc::new(Credit::new(2, 1_000));
    let in_doubt =
        vec![InDoubt { partition: claim(0, Some(7), &credit), doubt: Doubt::OutOfRange, epoch: None }];
    let (wanted, refused) = sort_out(&settings(OffsetReset::None), in_doubt);
    assert!(wanted.is_empty());
    let Err((disposition, why)) = &refused[0].outcome else { panic!("a position was made") };
    assert_eq!(*disposition, Disposition::Fatal);
    assert!(why.contains("auto.offset.reset=none") && why.contains('7'), "{why}");
}

#[test]
fn what_is_passed_over_is_counted_from_where_the_log_or_the_old_position_was() {
    assert_eq!(passed_over(-1, 0, 10), 10, "none before");
    assert_eq!(passed_over(-1, 4, 10), 6, "deleted by age");
    assert_eq!(passed_over(2, 4, 10), 6, "fell behind the log");
    assert_eq!(passed_over(99, 4, 10), 0, "was beyond it");
}

#[test]
fn what_was_fetched_is_handled_before_a_new_position_is_made() {
    let credit = Arc::new(Credit::new(2, 1_000));
    let partition = claim(0, Some(7), &credit);
    partition.take_in(7, 9);
    let in_doubt =
        || vec![InDoubt { partition: Arc::clone(&partition), doubt: Doubt::OutOfRange, epoch: None }];
    let (wanted, refused) = sort_out(&settings(OffsetReset::Largest), in_doubt());
    assert!(wanted.is_empty());
    assert!(matches!(&refused[0].outcome, Err((Disposition::Retry, _))));
    partition.advance_delivered(9);
    partition.ack(9);
    let (wanted, refused) = sort_out(&settings(OffsetReset::Largest), in_doubt());
    assert_eq!((wanted.len(), refused.len()), (1, 0));
}

/// Fetched up to 15 and handled up to there; the leader says where its log goes on elsewhere.
fn truncated_at_10(reset: OffsetReset, handled: i64) -> Result<Outcome, Failure> {
    let partition = claim(0, Some(7), &Arc::new(Credit::new(2, 1_000)));
    partition.take_in(7, 15);
    partition.advance_delivered(handled);
    partition.ack(handled);
    partition.set_last_epoch(3);
    let it = InDoubt { partition, doubt: Doubt::NewLeader, epoch: Some(4) };
    let (open, refused) = sort_out(&settings(reset), vec![it]);
    assert_eq!((open.len(), refused.len()), (1, 0), "its position may be good");
    truncated(&open[0].it.partition, open[0].rule, 10, 2)
}

#[test]
fn where_a_truncated_log_goes_on_is_where_we_do_whatever_the_policy() {
    for reset in [OffsetReset::Largest, OffsetReset::Smallest, OffsetReset::ToTime(0)] {
        let Ok(Outcome::Made(position)) = truncated_at_10(reset, 15) else { panic!("no position") };
        assert_eq!((position.old, position.offset, position.lost, position.epoch), (15, 10, Some(5), 2));
    }
}

#[test]
fn a_truncated_log_is_not_gone_back_in_while_something_is_unhandled_or_the_policy_is_none() {
    let Err((disposition, why)) = truncated_at_10(OffsetReset::Smallest, 12) else { panic!("a position") };
    assert!(disposition == Disposition::Retry && why.contains("is handled"), "{why}");
    let Err((disposition, why)) = truncated_at_10(OffsetReset::None, 15) else { panic!("a position") };
    assert!(disposition == Disposition::Fatal && why.contains("at 10") && why.contains("none"), "{why}");
}

/// The stream's thread is kept busy by a handler: it takes in what it got only then.
#[test]
fn what_lies_in_a_mailbox_is_waited_for_before_a_position_is_made_or_found_good() {
    let partition = claim(0, Some(7), &Arc::new(Credit::new(2, 1_000)));
    partition.set_last_epoch(3);
    let mut chunk = FetchedChunk::new(Arc::clone(&partition), 7, 9, bytes::Bytes::new(), Vec::new());
    let refused = |doubt| {
        let it = InDoubt { partition: Arc::clone(&partition), doubt, epoch: Some(4) };
        sort_out(&settings(OffsetReset::Largest), vec![it]).1.len()
    };
    assert_eq!(
        (refused(Doubt::OutOfRange), refused(Doubt::NewLeader), refused(Doubt::TopicRemade)),
        (1, 1, 1)
    );
    assert_eq!(chunk.take_in(), Joint::Next);
    assert_eq!((refused(Doubt::OutOfRange), refused(Doubt::NewLeader)), (1, 0), "it is not handled yet");
    partition.advance_delivered(9);
    partition.ack(9);
    assert_eq!((refused(Doubt::OutOfRange), refused(Doubt::TopicRemade)), (0, 0));
}

/// With a policy of none only what may be a truncated log is asked about.
#[test]
fn an_offset_out_of_range_is_taken_for_truncated_only_under_a_leader_that_was_elected_since() {
    for (last, known, found, asked) in
        [(3, 3, Some(4), 1), (3, 4, Some(4), 0), (-1, 3, Some(4), 0), (3, 3, None, 0), (3, 5, Some(0), 0)]
    {
        let partition = claim(0, Some(7), &Arc::new(Credit::new(2, 1_000)));
        partition.set_last_epoch(last);
        partition.set_leader_epoch(known);
        let it = InDoubt { partition, doubt: Doubt::OutOfRange, epoch: found };
        let open = sort_out(&settings(OffsetReset::None), vec![it]).0.len();
        assert_eq!(open, asked, "last {last}, known {known}, found {found:?}");
    }
}

/// It is looked at every 200 ms, and a reason that is not the same is logged.
#[test]
fn the_reason_why_a_position_must_wait_is_the_same_while_records_are_handled() {
    let partition = claim(0, Some(7), &Arc::new(Credit::new(2, 1_000)));
    partition.take_in(7, 9);
    let before = unhandled(&partition);
    partition.advance_delivered(8);
    partition.ack(8);
    assert!(before.is_some() && unhandled(&partition) == before, "{before:?}");
}
