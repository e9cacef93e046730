use proptest::prelude::*;

use super::*;

const LOG: LogRange = LogRange { start: 5, end: 10 };

fn planned(target: ResetTarget, committed: Option<i64>, at_time: Option<i64>) -> String {
    match target.plan(committed, LOG, at_time) {
        Ok(PlannedOffset { offset, mark: None }) => offset.to_string(),
        Ok(PlannedOffset { offset, mark: Some(mark) }) => format!("{offset} ({mark})"),
        Err(why) => why.to_string(),
    }
}

#[test]
fn each_target_is_what_kafkas_own_tool_makes_of_it() {
    for (target, committed, at_time, outcome) in [
        (ResetTarget::Earliest, Some(7), None, "5"),
        (ResetTarget::Latest, Some(7), None, "10"),
        (ResetTarget::Latest, None, None, "10"),
        (ResetTarget::Current, Some(7), None, "7"),
        (ResetTarget::Current, None, None, "10 (nothing was committed: the log's end)"),
        (ResetTarget::Current, Some(3), None, "3 (outside the log, which holds 5 to 10)"),
        (ResetTarget::Current, Some(11), None, "11 (outside the log, which holds 5 to 10)"),
        (ResetTarget::Offset(8), None, None, "8"),
        (ResetTarget::Offset(5), None, None, "5"),
        (ResetTarget::Offset(10), None, None, "10"),
        (ResetTarget::Offset(4), None, None, "5 (4 is below the log's start)"),
        (ResetTarget::Offset(-4), None, None, "5 (-4 is below the log's start)"),
        (ResetTarget::Offset(11), None, None, "10 (11 is beyond the log's end)"),
        (ResetTarget::Shift(2), Some(7), None, "9"),
        (ResetTarget::Shift(-2), Some(7), None, "5"),
        (ResetTarget::Shift(-3), Some(7), None, "5 (4 is below the log's start)"),
        (ResetTarget::Shift(4), Some(7), None, "10 (11 is beyond the log's end)"),
        (ResetTarget::Shift(i64::MAX), Some(7), None, "10 (9223372036854775807 is beyond the log's end)"),
        (ResetTarget::Shift(1), None, None, "nothing is committed that could be shifted"),
        (ResetTarget::Time(99), Some(7), Some(6), "6"),
        (ResetTarget::Time(99), Some(7), None, "10 (no record is so late: the log's end)"),
    ] {
        assert_eq!(planned(target, committed, at_time), outcome, "{target:?} of {committed:?}");
    }
}

#[test]
fn with_dual_commit_the_larger_is_the_position_and_both_are_written() {
    let committed = |zookeeper, kafka| StoredOffsets { zookeeper, kafka };
    assert_eq!(committed(Some(120), Some(100)).position(), Some(120));
    assert_eq!(committed(Some(100), Some(120)).position(), Some(120));
    assert_eq!(committed(None, Some(1)).position(), Some(1));
    assert_eq!(committed(None, None).position(), None);

    let stores = |zookeeper, kafka| Stores { zookeeper, kafka };
    assert_eq!(Stores::of(&[committed(Some(1), None), committed(None, None)]), stores(true, false));
    assert_eq!(Stores::of(&[committed(None, None), committed(None, Some(1))]), stores(false, true));
    assert_eq!(Stores::of(&[committed(Some(1), None), committed(None, Some(1))]), stores(true, true));
    assert_eq!(Stores::of(&[]), stores(true, false));
}

fn target() -> impl Strategy<Value = ResetTarget> {
    prop_oneof![
        Just(ResetTarget::Earliest),
        Just(ResetTarget::Latest),
        Just(ResetTarget::Current),
        any::<i64>().prop_map(ResetTarget::Offset),
        any::<i64>().prop_map(ResetTarget::Shift),
        any::<i64>().prop_map(ResetTarget::Time),
    ]
}

proptest! {
    #[test]
    fn what_is_planned_is_in_the_log_or_marked(
        target in target(),
        committed in proptest::option::of(0..i64::MAX),
        (start, length, place) in (0..i64::MAX / 2, 0..i64::MAX / 2, proptest::option::of(0.0..1.0_f64)),
    ) {
        let log = LogRange { start, end: start + length };
        let at_time = place.map(|place| start + (length as f64 * place) as i64);
        match target.plan(committed, log, at_time) {
            Ok(PlannedOffset { offset, mark }) => {
                let is_outside = matches!(mark, Some(Mark::OutsideLog(_)));
                prop_assert!(offset >= 0);
                prop_assert_eq!(log.holds(offset), !is_outside);
                prop_assert!(!is_outside || target == ResetTarget::Current && Some(offset) == committed);
                // what is marked as asked for was not to be had
                if let Some(Mark::BelowStart(asked) | Mark::BeyondEnd(asked)) = mark {
                    prop_assert!(!log.holds(asked));
                }
            }
            Err(Unplanned::NothingToShift) => {
                prop_assert!(committed.is_none() && matches!(target, ResetTarget::Shift(_)));
            }
        }
    }
}
