use std::time::Duration;

use super::*;
use crate::broker_fetcher::test_claims::claim;
use crate::stream_queue::Credit;

fn settings(reset: OffsetReset) -> FetchSettings {
    let connect = ConnectOptions::new("test", Duration::from_secs(1));
    FetchSettings { offset_reset: reset, ..FetchSettings::new(connect) }
}

#[test]
fn a_new_partition_starts_at_its_beginning_but_one_out_of_range_goes_by_the_policy() {
    let settings = settings(OffsetReset::Largest);
    for (appeared, out_of_range, reset) in [
        (false, false, OffsetReset::Largest),
        (false, true, OffsetReset::Largest),
        (true, false, OffsetReset::Smallest),
        (true, true, OffsetReset::Largest),
    ] {
        let rule = reset_rule(&settings, appeared, out_of_range);
        assert_eq!(rule.reset, reset, "appeared {appeared}, out of range {out_of_range}");
    }
}

#[test]
fn none_fails_the_partition_with_the_property_in_the_error() {
    let credit = Arc::new(Credit::new(2, 1_000));
    let positionless = vec![Positionless { partition: claim(0, Some(7), &credit), out_of_range: true }];
    let (wanted, refused) = sort_out(&settings(OffsetReset::None), positionless);
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
    let positionless = || vec![Positionless { partition: Arc::clone(&partition), out_of_range: true }];
    let (wanted, refused) = sort_out(&settings(OffsetReset::Largest), positionless());
    assert!(wanted.is_empty());
    assert!(matches!(&refused[0].outcome, Err((Disposition::Retry, _))));
    partition.advance_delivered(9);
    partition.ack(9);
    let (wanted, refused) = sort_out(&settings(OffsetReset::Largest), positionless());
    assert_eq!((wanted.len(), refused.len()), (1, 0));
}
