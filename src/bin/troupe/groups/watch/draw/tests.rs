use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::super::sample::{BEGUN_MS, id, partition, read, view as sample_view};
use super::super::snapshot::Snapshot;
use super::*;

fn drawn(view: &mut View, now_s: i64, (width, height): (u16, u16), colours: bool) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let now_ms = BEGUN_MS + now_s * 1_000;
    let mut page = 0;
    terminal.draw(|frame| page = draw(frame, view, "mirror", now_ms, Look { colours })).unwrap();
    view.scrolled.page = page;
    terminal.backend().buffer().clone()
}

fn screen(view: &mut View, now_s: i64, size: (u16, u16)) -> String {
    let buffer = drawn(view, now_s, size, false);
    let rows = buffer.content.chunks(usize::from(size.0));
    let rows = rows.map(|row| row.iter().map(Cell::symbol).collect::<String>().trim_end().to_owned());
    rows.map(|row| row + "\n").collect()
}

/// The screen is that of golden/NAME.txt.
#[track_caller]
fn assert_golden(screen: &str, golden: &str) {
    assert!(screen == golden, "the screen is\n{screen}\nand was to be\n{golden}");
}

/// Read twice, two seconds apart, with a partition that moved and one that nobody owns.
fn moved() -> View {
    let mut view = View::default();
    view.read(read(0, 500));
    let mut group = sample_view(2, 560);
    group.partitions[1].owner_thread = Some(format!("{}-0", id("b")));
    group.partitions[1].owner_member = id("b");
    group.partitions[3].owner_thread = None;
    group.partitions[3].owner_member.clear();
    group.partitions[3].since_ms = None;
    (group.partitions[2].committed_zookeeper, group.partitions[2].lag) = (Some(1_200), Some(0));
    (group.partitions[0].log_end, group.partitions[0].lag) = (None, None);
    group.errors.push("broker 3 at 10.0.0.3:9092: connection refused".into());
    view.read(Snapshot::of_view(group));
    view
}

#[test]
fn a_large_screen_has_it_all() {
    assert_golden(&screen(&mut moved(), 3, (150, 20)), include_str!("../golden/large.txt"));
}

#[test]
fn the_sample_of_the_docs_is_a_screen() {
    assert_golden(&screen(&mut moved(), 3, (110, 16)), include_str!("../golden/sample.txt"));
}

#[test]
fn a_usual_screen_leaves_out_what_matters_least() {
    assert_golden(&screen(&mut moved(), 3, (80, 24)), include_str!("../golden/usual.txt"));
}

#[test]
fn a_small_screen_shows_one_list() {
    let mut view = moved();
    assert_golden(&screen(&mut view, 3, (40, 10)), include_str!("../golden/small.txt"));
    view.press(KeyEvent::new(KeyCode::Tab, KeyModifiers::NONE));
    assert!(screen(&mut view, 3, (40, 10)).contains("\nMEMBERS (2)\n"));
}

#[test]
fn servers_that_are_away_leave_the_last_view() {
    let mut view = moved();
    view.failed("127.0.0.1:2181: connection refused".into(), BEGUN_MS + 4_000);
    assert_golden(&screen(&mut view, 64, (110, 16)), include_str!("../golden/away.txt"));
    let mut nothing = View::default();
    nothing.failed("127.0.0.1:2181: connection refused".into(), BEGUN_MS);
    assert_golden(&screen(&mut nothing, 5, (80, 6)), include_str!("../golden/never.txt"));
}

#[test]
fn b27_odd_names_are_shown_as_text() {
    let mut view = View::default();
    let mut group = sample_view(0, 0);
    group.group = "data/x:y\u{1b}[2J".into();
    group.members[0].id = "<img src=x onerror=1>".into();
    group.members[1].error = "not\u{7}JSON".into();
    group.partitions.truncate(3);
    group.partitions[0].topic = "\u{1b}]0;title\u{7}".into();
    group.partitions[1].topic = "größe".into();
    group.partitions[2].topic = "注文".into();
    group.partitions[2].owner_thread = Some("a\r\nb\u{202e}".into());
    view.read(Snapshot::of_view(group));
    // wide characters take two cells, the second of which is a space here
    assert_golden(&screen(&mut view, 1, (150, 16)), include_str!("../golden/odd.txt"));
}

#[test]
fn long_lists_scroll_and_say_what_is_beyond() {
    let mut view = View::default();
    let mut group = sample_view(0, 0);
    group.partitions = (0..500).map(|number| partition("a", number, 0)).collect();
    view.read(Snapshot::of_view(group));
    view.press(KeyEvent::new(KeyCode::Char('t'), KeyModifiers::NONE));
    assert!(screen(&mut view, 0, (100, 24)).contains("PARTITIONS (500) by topic  487 below"));
    view.press(KeyEvent::new(KeyCode::PageDown, KeyModifiers::NONE));
    let second = screen(&mut view, 0, (100, 24));
    assert!(second.contains("PARTITIONS (500) by topic  13 above  474 below"), "{second}");
    view.press(KeyEvent::new(KeyCode::End, KeyModifiers::NONE));
    let last = screen(&mut view, 0, (100, 24));
    assert!(last.contains("487 above\n") && last.contains("499"), "{last}");
    // fewer partitions than were scrolled past
    view.read(read(2, 0));
    assert!(screen(&mut view, 2, (100, 24)).contains("PARTITIONS (4) by topic\n"));
}

#[test]
fn a_filter_is_shown_as_it_is_typed() {
    let mut view = moved();
    for key in ['/', 'o', 'r'] {
        view.press(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE));
    }
    assert!(screen(&mut view, 3, (80, 24)).contains("\n/or▏ Enter keeps it, Esc drops it\n"));
    view.press(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE));
    assert!(screen(&mut view, 3, (80, 24)).contains("/ filter: or"));
}

#[test]
fn colours_are_the_terminals_own_and_never_needed() {
    let (with, without) = (drawn(&mut moved(), 3, (100, 24), true), drawn(&mut moved(), 3, (100, 24), false));
    let text =
        |buffer: &Buffer| buffer.content.iter().map(|cell| cell.symbol().to_owned()).collect::<Vec<_>>();
    assert_eq!(text(&with), text(&without));
    assert!(with.content.iter().all(|cell| cell.bg == Color::Reset), "on dark and on light");
    assert!(with.content.iter().all(|cell| matches!(cell.fg, Color::Reset | Color::Red)));
    assert!(without.content.iter().all(|cell| cell.fg == Color::Reset));
}

#[test]
fn no_screen_is_too_small() {
    for size in [(1, 1), (2, 3), (10, 2), (30, 5), (300, 100)] {
        screen(&mut moved(), 3, size);
    }
}
