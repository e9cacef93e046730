use super::*;
use crate::web::picture::{Member, Partition};

fn said(place: &str, text: &str, lasts: bool) -> ((String, String), Said) {
    (("a".to_owned(), place.to_owned()), Said { text: text.to_owned(), lasts })
}

fn group(at: i64, lags: &[(i32, i64)], records: u64) -> Group {
    let partition =
        |(number, lag): &(i32, i64)| (*number, Partition { lag: Some(*lag), ..Partition::default() });
    let member = Member { here: true, records, ..Member::default() };
    let mut group = Group { at, ..Group::default() };
    group.topics.insert("t".to_owned(), lags.iter().map(partition).collect());
    group.members.insert("a".to_owned(), member);
    group
}

fn key(number: i32) -> (String, i32) {
    ("t".to_owned(), number)
}

#[test]
fn a_trend_is_told_after_some_seconds_and_noise_is_none() {
    let mut memory = Memory::default();
    let mut told = Vec::new();
    for turn in 0..40 {
        let noise = if turn % 2 == 0 { 100 } else { 0 };
        let mut group = group(turn * 2000, &[(0, turn * 20), (1, noise)], 0);
        memory.note(&mut group, Problems::new());
        told.push((group.topics["t"][&0].trend, group.topics["t"][&1].trend));
    }
    assert_eq!(told[3], (None, None));
    assert_eq!(told[39].0, Some(10.0));
    assert!(told[39].1.is_some_and(|noise| noise.abs() < 0.5), "{:?}", told[39]);
}

#[test]
fn memory_is_bounded_whatever_happens() {
    let mut memory = Memory::default();
    let many: Vec<_> = (0..2_500).map(|number| (number, 1)).collect();
    for turn in 0..1000 {
        let few = [(0, turn)];
        let mut group = group(turn * 2000, if turn < 2 { &many } else { &few }, 0);
        let rebalance = Rebalance { at: turn, ..Rebalance::default() };
        group.rebalances.insert(rebalance.key(), rebalance);
        memory.note(&mut group, [said(&format!("place {turn}"), "it fails", true)].into());
        assert!(memory.lags.len() <= PARTITIONS);
        assert!(group.rebalances.len() <= REBALANCES && group.errors.len() <= ERRORS);
    }
    assert_eq!((memory.totals.len(), memory.times.len()), (TOTALS, LAGS));
    assert_eq!(memory.lags.len(), 1, "those that have gone are forgotten");
    assert_eq!(memory.lags[&key(0)].len(), LAGS);
    assert_eq!(memory.said.len(), 1);
}

#[test]
fn an_error_is_noted_when_its_text_changes_and_ends_when_it_goes() {
    let mut memory = Memory::default();
    let mut note = |at, texts: &[(&str, &str)]| {
        let mut group = group(at, &[], 0);
        memory.note(&mut group, texts.iter().map(|(place, text)| said(place, text, true)).collect());
        let told = |error: &Problem| (error.at, error.until, error.text.clone());
        group.errors.values().map(told).collect::<Vec<_>>()
    };
    note(1, &[("x", "one"), ("y", "two")]);
    note(2, &[("x", "one"), ("y", "two")]);
    assert_eq!(
        note(3, &[("x", "other")]),
        [(1, Some(3), "one".to_owned()), (1, Some(3), "two".to_owned()), (3, None, "other".to_owned()),]
    );
    assert_eq!(note(4, &[])[2], (3, Some(4), "other".to_owned()));
}

#[test]
fn what_may_long_be_over_is_noted_once_and_does_not_go_on() {
    let mut memory = Memory::default();
    let mut note = |at, lasts| {
        let mut group = group(at, &[], 0);
        memory.note(&mut group, [said("broker 1", "connection reset", lasts)].into());
        group.errors.values().map(|error| (error.at, error.until)).collect::<Vec<_>>()
    };
    assert_eq!(note(1, true), [(1, None)]);
    // it is connected again, and tells the last error for the rest of its life
    assert_eq!([note(2, false), note(3, false)], [[(1, Some(2))], [(1, Some(2))]]);
}

#[test]
fn more_at_once_than_are_kept_leave_what_was_before_and_are_noted_once() {
    let mut memory = Memory::default();
    let mut note = |at, problems: Problems| {
        let mut group = group(at, &[], 0);
        memory.note(&mut group, problems);
        group.errors
    };
    let cause = || said("broker 1", "it is gone", true);
    note(1, [cause()].into());
    let all =
        || (0..300).map(|number| said(&format!("t {number}"), "no leader", true)).chain([cause()]).collect();
    let first = note(2, all());
    assert_eq!(first.values().next().map(|error| &*error.text), Some("it is gone"));
    for at in 3..10 {
        assert_eq!(note(at, all()), first);
    }
    assert!(note(10, Problems::new()).values().all(|error| error.until == Some(10)));
}

#[test]
fn rates_are_of_two_samples_and_never_below_zero() {
    let mut memory = Memory::default();
    let mut rate = |at, records| {
        let mut group = group(at, &[], records);
        memory.note(&mut group, Problems::new());
        group.totals.records
    };
    assert_eq!([rate(1000, 500), rate(3000, 1500), rate(5000, 20), rate(7000, 40)], [0.0, 500.0, 0.0, 10.0]);
}

#[test]
fn a_member_keeps_its_mark_and_a_new_one_takes_none_that_is_taken() {
    let mut memory = Memory::default();
    let mut marks = |ids: &[&str]| {
        let members = ids.iter().map(|id| ((*id).to_owned(), Member::default())).collect();
        let mut group = Group { members, ..Group::default() };
        memory.note(&mut group, Problems::new());
        group.members.values().map(|member| member.mark).collect::<Vec<_>>()
    };
    assert_eq!(marks(&["b", "c"]), [0, 1]);
    assert_eq!(marks(&["a", "b", "c"]), [2, 0, 1]);
    assert_eq!(marks(&["c"]), [1]);
    assert_eq!(marks(&["a", "b", "c"]), [2, 0, 1]);
}

#[test]
fn who_came_and_went_is_told_from_one_read_of_the_group_to_the_next() {
    let mut memory = Memory::default();
    let mut note = |at: i64, read: i64, ids: &[&str]| {
        let member = |id: &&str| ((*id).to_owned(), Member { since: Some(at - 1), ..Member::default() });
        let members = ids.iter().map(member).collect();
        let mut group = Group { at, read: Some(read), members, ..Group::default() };
        memory.note(&mut group, Problems::new());
        group.changes.into_values().map(|it| (it.at, it.member, it.came)).collect::<Vec<_>>()
    };
    assert_eq!(note(10, 1, &["a", "b"]), []);
    // as before: it was not read anew
    assert_eq!(note(20, 1, &["a"]), []);
    assert_eq!(note(30, 2, &["a", "c"]), [(29, "c".to_owned(), true), (30, "b".to_owned(), false)]);
}
