use ratatui::crossterm::event::KeyCode::{
    BackTab, Char, Down, End, Enter, Esc, Home, PageDown, PageUp, Tab, Up,
};

use super::super::sample::{BEGUN_MS, id, read, view as sample_view};
use super::*;

fn press(view: &mut View, codes: &[KeyCode]) -> Vec<Then> {
    codes.iter().map(|code| view.press(KeyEvent::new(*code, KeyModifiers::NONE))).collect()
}

fn shown(view: &View) -> Vec<i32> {
    view.rows().iter().map(|row| row.partition.partition).collect()
}

#[test]
fn rates_are_between_the_last_two_reads() {
    let mut view = View::default();
    view.read(read(0, 500));
    assert_eq!(view.rows()[0].committed_per_second, None, "one read has no rate");
    assert_eq!(view.totals().lag_per_second, None);
    view.read(read(2, 560));
    let row = &view.rows()[0];
    assert_eq!((row.committed_per_second, row.lag_per_second), (Some(30.0), Some(70.0)));
    assert_eq!(
        view.totals(),
        Totals {
            total_lag: 4 * 640,
            unknown_lags: 0,
            lag_per_second: Some(280.0),
            committed_per_second: Some(120.0)
        }
    );
    view.read(read(2, 560));
    assert_eq!(view.rows()[0].committed_per_second, None, "no time has passed");
}

#[test]
fn unknown_values_have_no_lag_and_no_rate() {
    let mut view = View::default();
    view.read(read(0, 500));
    let mut next = read(2, 560);
    (next.partitions[1].lag, next.partitions[1].committed) = (None, None);
    next.partitions[2].partition = 9;
    view.read(next);
    assert_eq!(shown(&view), [0, 3, 9, 1], "not known comes last");
    let rows = view.rows();
    let rates: Vec<_> = rows.iter().map(|row| row.committed_per_second).collect();
    assert_eq!(rates, [Some(30.0), Some(30.0), None, None]);
    assert_eq!((view.totals().total_lag, view.totals().unknown_lags), (3 * 640, 1));
    assert_eq!(view.totals().lag_per_second, Some(140.0));
}

#[test]
fn a_change_of_owner_is_news_for_a_minute() {
    let mut view = View::default();
    view.read(read(0, 0));
    let mut nobody = read(2, 0);
    nobody.partitions[3].owner = None;
    view.read(nobody);
    let moved = |view: &View| view.rows()[3].moved.cloned();
    let before = format!("{}-1", id("b"));
    assert_eq!(moved(&view), Some(Move { from: Some(before.clone()), seen_ms: BEGUN_MS + 2_000 }));
    let moved_on = |seconds| {
        let mut next = read(seconds, 0);
        next.partitions[3].owner = Some("else".into());
        next
    };
    view.read(moved_on(4));
    assert_eq!(moved(&view), Some(Move { from: Some(before), seen_ms: BEGUN_MS + 4_000 }), "past nobody");
    view.read(moved_on(63));
    assert!(moved(&view).is_some());
    view.read(moved_on(65));
    assert_eq!(moved(&view), None);
    assert!(view.rows()[0].moved.is_none());
}

#[test]
fn the_last_read_stays_while_reads_fail() {
    let mut view = View::default();
    view.take(Err("no server".into()), 1_000);
    view.take(Ok(read(0, 0)), 2_000);
    assert_eq!(view.failure, None);
    view.take(Err("no server".into()), 3_000);
    view.take(Err("refused".into()), 5_000);
    assert_eq!(view.failure, Some(Failure { why: "refused".into(), since_ms: 3_000 }));
    assert_eq!(view.latest(), Some(&read(0, 0)));
    view.take(Ok(read(8, 80)), 8_000);
    assert_eq!((view.failure.clone(), view.rows()[0].committed_per_second), (None, Some(10.0)));
}

#[test]
fn keys_sort_filter_and_quit() {
    let mut view = View::default();
    let mut group = read(0, 0);
    group.partitions[2].lag = Some(9_000);
    group.partitions[3].topic = "Änderungen".into();
    view.read(group);
    assert_eq!(shown(&view), [2, 0, 1, 3]);
    press(&mut view, &[Char('t')]);
    assert_eq!(shown(&view), [0, 1, 2, 3]);
    press(&mut view, &[Char('l'), Char('/'), Char('ä'), Char('q'), Char('x'), KeyCode::Backspace]);
    assert_eq!((shown(&view), view.filter.text.as_str()), (vec![], "äq"), "q is typed");
    press(&mut view, &[KeyCode::Backspace, Enter]);
    assert_eq!((shown(&view), view.filter.is_typed), (vec![3], false));
    assert_eq!(view.totals().total_lag, 9_000 + 3_000, "whatever the filter");
    press(&mut view, &[Char('/'), Esc]);
    assert_eq!((shown(&view).len(), &view.filter), (4, &Filter::default()));
    press(&mut view, &[Char('/'), Char('p'), Char('-'), Char('b'), Enter]);
    assert_eq!((shown(&view), view.members().len()), (vec![2, 3], 1), "by member");
    assert_eq!(press(&mut view, &[Char('x'), Char('q'), Esc]), [Then::GoOn, Then::Quit, Then::Quit]);
    view.filter.is_typed = true;
    assert_eq!(view.press(KeyEvent::new(Char('c'), KeyModifiers::CONTROL)), Then::Quit, "also while typing");
    let released = KeyEvent::new_with_kind(Char('q'), KeyModifiers::NONE, KeyEventKind::Release);
    assert_eq!(view.press(released), Then::GoOn);
}

#[test]
fn lists_scroll_within_their_ends() {
    let mut view = View::default();
    let mut group = read(0, 0);
    group.partitions = (0..100).map(|partition| Partition { partition, ..Partition::default() }).collect();
    view.read(group);
    view.scrolled.page = 10;
    let mut after = |code| {
        press(&mut view, &[code]);
        view.scrolled.partitions
    };
    let keys = [Up, Down, PageDown, PageDown, Up, End, Down, PageDown, PageUp, Home];
    assert_eq!(keys.map(&mut after), [0, 1, 11, 21, 20, 90, 90, 90, 80, 0]);
    press(&mut view, &[Tab, PageDown, Down]);
    assert_eq!((view.focus, view.scrolled.members), (List::Members, 0), "two members fit");
    press(&mut view, &[BackTab, End, Char('/'), Char('z')]);
    assert_eq!((view.focus, view.scrolled.partitions), (List::Partitions, 0), "a filter begins at the top");
}

#[test]
fn members_are_shown_with_what_they_own() {
    let mut view = View::default();
    let mut group = sample_view(0, 0);
    for (number, topic) in [(5, "orders"), (6, "orders"), (9, "orders"), (1, "returns")] {
        group.partitions.push(super::super::sample::partition("a", number, 0));
        group.partitions.last_mut().unwrap().topic = topic.into();
    }
    view.read(Snapshot::of_view(group));
    let owns: Vec<_> = view.members().into_iter().map(|(_, owns)| owns).collect();
    assert_eq!(owns, ["orders 0-1 5-6 9, returns 1", "orders 2-3"]);
}
