//! What is watched, and how somebody looks at it: no terminal, no clock.
//!
//! Reads and keys come in, rows come out; `draw` and `plain` print them.

use std::collections::BTreeMap;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use serde::Serialize;

use super::snapshot::{Member, Partition, Snapshot};

/// How long it is said that a partition has moved.
const NEWS_MS: i64 = 60_000;

/// A group that is watched.
#[derive(Debug, Default)]
pub struct View {
    latest: Option<Snapshot>,
    /// The read before the latest, by partition: what is compared for rates.
    before: Option<Before>,
    /// Why the last reads failed; the latest good one stays.
    pub failure: Option<Failure>,
    moves: BTreeMap<Key, Move>,
    pub sort: Sort,
    pub filter: Filter,
    pub focus: List,
    /// How far each list is scrolled.
    pub scrolled: Scrolled,
}

type Key = (String, i32);

#[derive(Debug)]
struct Before {
    taken_ms: i64,
    partitions: BTreeMap<Key, Partition>,
}

/// A group that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub why: String,
    /// Since when, in epoch milliseconds.
    pub since_ms: i64,
}

/// A partition's last change of owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Move {
    /// Who had it; none if nobody had.
    pub from: Option<String>,
    /// When that was seen, in epoch milliseconds.
    pub seen_ms: i64,
}

/// The order of partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Sort {
    /// The largest lag first, what is not known last
    #[default]
    Lag,
    /// By topic and partition
    Topic,
}

/// What is shown of the lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub text: String,
    /// Whether keys go there.
    pub is_typed: bool,
}

/// Which list the keys scroll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum List {
    #[default]
    Partitions,
    Members,
}

/// The first row shown of each list, and how many there is room for (what drawing said).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scrolled {
    pub partitions: usize,
    pub members: usize,
    pub page: usize,
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    GoOn,
    Quit,
}

/// A partition as it is printed.
#[derive(Debug, Serialize)]
pub struct Row<'a> {
    #[serde(flatten)]
    pub partition: &'a Partition,
    /// Records that were committed per second, between the last two reads; negative after a reset.
    pub committed_per_second: Option<f64>,
    /// By how much the lag grew per second.
    pub lag_per_second: Option<f64>,
    /// Its last change of owner, for a minute.
    pub moved: Option<&'a Move>,
}

/// Over all partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Of those whose lag is known.
    pub total_lag: i64,
    /// How many have a lag that is not known.
    pub unknown_lags: usize,
    /// Over the partitions that both reads know.
    pub lag_per_second: Option<f64>,
    pub committed_per_second: Option<f64>,
}

impl View {
    /// Of nothing yet.
    pub fn new(sort: Sort) -> Self {
        Self { sort, ..Self::default() }
    }

    /// It was read at `now_ms`, or could not be.
    pub fn take(&mut self, read: Result<Snapshot, String>, now_ms: i64) {
        match read {
            Ok(snapshot) => self.read(snapshot),
            Err(why) => self.failed(why, now_ms),
        }
    }

    /// The group was read.
    pub fn read(&mut self, snapshot: Snapshot) {
        self.failure = None;
        let Some(last) = self.latest.take() else {
            self.latest = Some(snapshot);
            return;
        };
        let before = Before { taken_ms: last.taken_ms, partitions: by_key(last.partitions) };
        self.note_moves(&before, &snapshot);
        self.before = Some(before);
        self.latest = Some(snapshot);
    }

    /// It could not be.
    pub fn failed(&mut self, why: String, now_ms: i64) {
        let since_ms = self.failure.take().map_or(now_ms, |failure| failure.since_ms);
        self.failure = Some(Failure { why, since_ms });
    }

    /// The last good read.
    pub fn latest(&self) -> Option<&Snapshot> {
        self.latest.as_ref()
    }

    fn note_moves(&mut self, before: &Before, now: &Snapshot) {
        self.moves.retain(|_, it| now.taken_ms - it.seen_ms < NEWS_MS);
        for partition in &now.partitions {
            let key = key(partition);
            if let Some(was) = before.partitions.get(&key).filter(|was| was.owner != partition.owner) {
                // who had it, past a moment when nobody did
                let known = self.moves.remove(&key).and_then(|it| it.from).filter(|_| was.owner.is_none());
                let from = was.owner.clone().or(known);
                self.moves.insert(key, Move { from, seen_ms: now.taken_ms });
            }
        }
    }

    /// The partitions that the filter lets through, in order.
    pub fn rows(&self) -> Vec<Row<'_>> {
        let partitions = self.latest.iter().flat_map(|it| &it.partitions);
        let mut rows: Vec<_> = partitions.filter(|it| self.shows(it)).map(|it| self.row(it)).collect();
        rows.sort_by(|one, other| {
            let by_topic = || key_of(one.partition).cmp(&key_of(other.partition));
            match self.sort {
                Sort::Lag => other.partition.lag.cmp(&one.partition.lag).then_with(by_topic),
                Sort::Topic => by_topic(),
            }
        });
        rows
    }

    fn row<'a>(&'a self, partition: &'a Partition) -> Row<'a> {
        let moved = self.moves.get(&key(partition));
        let was = self.before.as_ref().and_then(|it| it.partitions.get(&key(partition)));
        let committed = was.and_then(|was| was.committed).zip(partition.committed);
        let lag = was.and_then(|was| was.lag).zip(partition.lag);
        let committed_per_second = committed.and_then(|(was, is)| self.per_second(is - was));
        let lag_per_second = lag.and_then(|(was, is)| self.per_second(is - was));
        Row { partition, committed_per_second, lag_per_second, moved }
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    fn per_second(&self, change: i64) -> Option<f64> {
        let since = self.before.as_ref()?.taken_ms;
        let took_ms = self.latest.as_ref()?.taken_ms - since;
        (took_ms > 0).then(|| change as f64 * 1000.0 / took_ms as f64)
    }

    /// Over all partitions, whatever the filter.
    pub fn totals(&self) -> Totals {
        let partitions = || self.latest.iter().flat_map(|it| &it.partitions);
        let rows: Vec<_> = partitions().map(|it| self.row(it)).collect();
        let sum = |rates: Vec<Option<f64>>| rates.into_iter().flatten().reduce(|one, other| one + other);
        Totals {
            total_lag: partitions().filter_map(|it| it.lag).sum(),
            unknown_lags: partitions().filter(|it| it.lag.is_none()).count(),
            lag_per_second: sum(rows.iter().map(|row| row.lag_per_second).collect()),
            committed_per_second: sum(rows.iter().map(|row| row.committed_per_second).collect()),
        }
    }

    /// The members that the filter lets through, each with what it owns: `orders 0-3 5, returns 1`.
    pub fn members(&self) -> Vec<(&Member, String)> {
        let Some(latest) = &self.latest else { return Vec::new() };
        let mut owned: BTreeMap<&str, BTreeMap<&str, Vec<i32>>> = BTreeMap::new();
        for partition in &latest.partitions {
            let member = partition.member.as_deref().unwrap_or_default();
            owned.entry(member).or_default().entry(&partition.topic).or_default().push(partition.partition);
        }
        let owned = |member: &Member| owned.get(member.id.as_str()).map(owns).unwrap_or_default();
        let shown = latest.members.iter().filter(|it| self.lets(&it.id) || self.lets(&it.about));
        shown.map(|it| (it, owned(it))).collect()
    }

    fn shows(&self, partition: &Partition) -> bool {
        self.lets(&partition.topic) || partition.owner.as_deref().is_some_and(|owner| self.lets(owner))
    }

    fn lets(&self, text: &str) -> bool {
        self.filter.text.is_empty() || text.to_lowercase().contains(&self.filter.text.to_lowercase())
    }

    /// A key was pressed.
    pub fn press(&mut self, key: KeyEvent) -> Then {
        if key.kind == KeyEventKind::Release {
            return Then::GoOn;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if key.code == KeyCode::Char('c') { Then::Quit } else { Then::GoOn };
        }
        if self.filter.is_typed {
            self.type_filter(key.code);
            return Then::GoOn;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Then::Quit,
            KeyCode::Char('l') => self.sort = Sort::Lag,
            KeyCode::Char('t') => self.sort = Sort::Topic,
            KeyCode::Char('/') => self.filter.is_typed = true,
            KeyCode::Tab | KeyCode::BackTab => {
                self.focus = if self.focus == List::Members { List::Partitions } else { List::Members };
            }
            code => self.scroll(code),
        }
        Then::GoOn
    }

    /// Enter keeps the filter, Esc drops it.
    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.filter.is_typed = false,
            KeyCode::Esc => self.filter = Filter::default(),
            KeyCode::Backspace => drop(self.filter.text.pop()),
            KeyCode::Char(char) => self.filter.text.push(char),
            _ => return,
        }
        (self.scrolled.partitions, self.scrolled.members) = (0, 0);
    }

    fn scroll(&mut self, code: KeyCode) {
        let length = if self.focus == List::Members { self.members().len() } else { self.rows().len() };
        let page = self.scrolled.page.max(1);
        let last = length.saturating_sub(page);
        let first = match self.focus {
            List::Members => &mut self.scrolled.members,
            List::Partitions => &mut self.scrolled.partitions,
        };
        *first = match code {
            KeyCode::Up | KeyCode::Char('k') => first.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => *first + 1,
            KeyCode::PageUp => first.saturating_sub(page),
            KeyCode::PageDown | KeyCode::Char(' ') => *first + page,
            KeyCode::Home => 0,
            KeyCode::End => last,
            _ => *first,
        }
        .min(last);
    }
}

fn key(partition: &Partition) -> Key {
    (partition.topic.clone(), partition.partition)
}

fn key_of(partition: &Partition) -> (&str, i32) {
    (&partition.topic, partition.partition)
}

fn by_key(partitions: Vec<Partition>) -> BTreeMap<Key, Partition> {
    partitions.into_iter().map(|it| (key(&it), it)).collect()
}

/// Partitions by topic, runs of numbers joined.
fn owns(topics: &BTreeMap<&str, Vec<i32>>) -> String {
    let topics = topics.iter().map(|(topic, numbers)| format!("{topic} {}", runs(numbers)));
    topics.collect::<Vec<_>>().join(", ")
}

fn runs(numbers: &[i32]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let runs = sorted.chunk_by(|one, next| one + 1 == *next);
    let text = runs.map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        [only] => only.to_string(),
        [] => String::new(),
    });
    text.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
