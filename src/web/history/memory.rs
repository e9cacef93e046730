//! What is remembered of a group: bounded, and without a clock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Value, json};

use crate::web::picture::{Change, Group, Problem, Problems, Rebalance, Said, Totals};

/// Half an hour of totals.
const TOTALS: usize = 900;
/// Ten minutes of the lag of each partition.
const LAGS: usize = 300;
/// Partitions whose lag is remembered.
const PARTITIONS: usize = 2_000;
/// Members that have gone whose marks are kept for them.
const MARKS_KEPT: usize = 20;
const REBALANCES: usize = 300;
const ERRORS: usize = 200;
/// Errors that one sample may add: what a broker that goes away leads to leaves what was before it.
const ERRORS_AT_ONCE: usize = 100;
/// Over how long a trend is taken, and how long at least.
const TREND_MS: i64 = 60_000;
const TREND_LEAST_MS: i64 = 8_000;
/// The lag was not known.
const UNKNOWN: i64 = -1;

/// See the [module's page](self).
#[derive(Default)]
pub(super) struct Memory {
    totals: VecDeque<(i64, Totals)>,
    /// When lags were taken.
    times: VecDeque<i64>,
    /// Up to the last of `times`; shorter for a partition that came later.
    lags: BTreeMap<(String, i32), VecDeque<i64>>,
    /// Records and bytes by member, and when they were counted.
    counted: BTreeMap<String, (u64, u64)>,
    counted_at: Option<i64>,
    /// By member; of those that have gone too, so that one that comes back looks as before.
    marks: BTreeMap<String, usize>,
    rebalances: BTreeMap<String, Rebalance>,
    /// Members when ZooKeeper was read last, and when that was.
    members: BTreeSet<String>,
    read: Option<i64>,
    changes: BTreeMap<String, Change>,
    errors: BTreeMap<String, Problem>,
    /// What was said last, by member and place: the text, and its key in `errors` unless there was no room.
    said: BTreeMap<(String, String), (String, Option<String>)>,
    noted: u64,
}

impl Memory {
    /// Takes one more sample, and tells the group what only memory knows. A group that has ended leaves no more.
    pub(super) fn note(&mut self, group: &mut Group, problems: Problems) {
        self.mark(group);
        self.note_changes(group);
        if group.ended.is_none() {
            self.note_totals(group);
            self.note_lags(group);
            self.note_errors(group.at, problems);
        } else {
            self.note_errors(group.at, Problems::new());
        }
        self.rebalances.append(&mut group.rebalances);
        forget_first(&mut self.rebalances, REBALANCES);
        group.rebalances = self.rebalances.clone();
        group.changes = self.changes.clone();
        group.errors = self.errors.clone();
    }

    /// Gives each member the first mark that is free.
    fn mark(&mut self, group: &mut Group) {
        if self.marks.len() > group.members.len() + MARKS_KEPT {
            self.marks.retain(|id, _| group.members.contains_key(id));
        }
        for (id, member) in &mut group.members {
            let marks = &mut self.marks;
            let first = || (0..).find(|mark| !marks.values().any(|taken| taken == mark)).unwrap_or_default();
            member.mark = marks.get(id).copied().unwrap_or_else(first);
            marks.insert(id.clone(), member.mark);
        }
    }

    /// Who came and went since ZooKeeper was read before.
    fn note_changes(&mut self, group: &Group) {
        if group.read.is_none() || group.read == self.read {
            return;
        }
        let members: BTreeSet<_> = group.members.keys().cloned().collect();
        if self.read.is_some() {
            let since = |id: &String| group.members.get(id).and_then(|member| member.since);
            let came = members.difference(&self.members).map(|id| (id, since(id).unwrap_or(group.at), true));
            let went = self.members.difference(&members).map(|id| (id, group.at, false));
            for (id, at, came) in came.chain(went) {
                let mark = self.marks.get(id).copied().unwrap_or_default();
                let change = Change { at, member: id.clone(), mark, came };
                self.changes.insert(format!("{at:013} {id} {came}"), change);
            }
            forget_first(&mut self.changes, REBALANCES);
        }
        (self.members, self.read) = (members, group.read);
    }

    /// The first sample tells no rates, and is not remembered.
    fn note_totals(&mut self, group: &mut Group) {
        let is_first = self.counted_at.is_none();
        self.note_rates(group);
        if !is_first {
            self.totals.push_back((group.at, group.totals));
            self.totals.drain(..self.totals.len().saturating_sub(TOTALS));
        }
    }

    fn note_rates(&mut self, group: &mut Group) {
        let before = self.counted_at.replace(group.at);
        let seconds = before.map_or(0.0, |before| (group.at - before) as f64 / 1e3);
        let mut counted = BTreeMap::new();
        for (id, member) in group.members.iter_mut().filter(|(_, member)| member.here) {
            counted.insert(id.clone(), (member.records, member.bytes));
            let Some((records, bytes)) = self.counted.get(id).filter(|_| seconds > 0.0) else { continue };
            // a member that began anew counts from 0
            let each = |now: u64, before: u64| round(now.saturating_sub(before) as f64 / seconds);
            member.rate = each(member.records, *records);
            group.totals.records += member.rate;
            group.totals.bytes += each(member.bytes, *bytes);
        }
        self.counted = counted;
    }

    fn note_lags(&mut self, group: &mut Group) {
        self.times.push_back(group.at);
        self.times.drain(..self.times.len().saturating_sub(LAGS));
        for lags in self.lags.values_mut() {
            lags.push_back(UNKNOWN);
            lags.drain(..lags.len().saturating_sub(LAGS));
        }
        for (topic, partitions) in &mut group.topics {
            for (number, partition) in partitions {
                let Some(lag) = partition.lag else { continue };
                let key = (topic.clone(), *number);
                if let Some(last) = self.lags.get_mut(&key).and_then(|lags| lags.back_mut()) {
                    *last = lag;
                } else if self.lags.len() < PARTITIONS {
                    self.lags.insert(key.clone(), [lag].into());
                }
                partition.trend = self.trend(&key);
            }
        }
        self.lags.retain(|_, lags| lags.iter().any(|lag| *lag != UNKNOWN));
    }

    /// Times and lags of a partition, the latest first.
    fn lag_series(&self, partition: &(String, i32)) -> impl Iterator<Item = (i64, i64)> {
        let lags = self.lags.get(partition).into_iter().flat_map(|lags| lags.iter().rev().copied());
        self.times.iter().rev().copied().zip(lags).filter(|(_, lag)| *lag != UNKNOWN)
    }

    /// Records by which the lag grows each second: the means of both halves of the last minute are compared, so that
    /// what goes up and down is steady.
    fn trend(&self, partition: &(String, i32)) -> Option<f64> {
        let now = *self.times.back()?;
        let last: Vec<_> = self.lag_series(partition).take_while(|(at, _)| now - at <= TREND_MS).collect();
        let (later, earlier) = last.split_at(last.len() / 2);
        let ((at, lag), (before_at, before)) = (mean(later)?, mean(earlier)?);
        (now - last.last()?.0 >= TREND_LEAST_MS).then(|| round((lag - before) / (at - before_at) * 1e3))
    }

    /// What is said for the first time is noted, and ends when it does not last, or is no longer said.
    fn note_errors(&mut self, at: i64, problems: Problems) {
        let (mut said, mut room) = (BTreeMap::new(), ERRORS_AT_ONCE);
        for (place, Said { text, lasts }) in problems {
            let is_known = self.said.get(&place).is_some_and(|(before, _)| *before == text);
            let key = if is_known {
                self.said.remove(&place).and_then(|(_, key)| key)
            } else if room > 0 {
                room -= 1;
                Some(self.note_error(at, &place, &text))
            } else {
                None
            };
            if !lasts {
                self.end_error(at, key.as_ref());
            }
            said.insert(place, (text, key));
        }
        for (_, key) in std::mem::replace(&mut self.said, said).into_values() {
            self.end_error(at, key.as_ref());
        }
        forget_first(&mut self.errors, ERRORS);
    }

    fn note_error(&mut self, at: i64, (member, place): &(String, String), text: &str) -> String {
        self.noted += 1;
        let key = format!("{:010}", self.noted);
        let (member, place, text) = (member.clone(), place.clone(), text.to_owned());
        self.errors.insert(key.clone(), Problem { at, until: None, member, place, text });
        key
    }

    fn end_error(&mut self, at: i64, key: Option<&String>) {
        if let Some(error) = key.and_then(|key| self.errors.get_mut(key)) {
            error.until.get_or_insert(at);
        }
    }

    /// The last sample, as in [`totals`](Self::totals).
    pub(super) fn last(&self) -> Option<Value> {
        self.totals.back().map(|(at, totals)| row(*at, totals))
    }

    /// Rows of time, lag, records a second and bytes a second.
    pub(super) fn totals(&self) -> Value {
        json!({ "totals": self.totals.iter().map(|(at, totals)| row(*at, totals)).collect::<Vec<_>>() })
    }

    /// Rows of time and lag.
    pub(super) fn lag_of(&self, partition: &(String, i32)) -> Value {
        let mut rows: Vec<_> = self.lag_series(partition).collect();
        rows.reverse();
        json!({ "lag": rows })
    }
}

fn row(at: i64, totals: &Totals) -> Value {
    json!([at, totals.lag, totals.records, totals.bytes])
}

/// The mean time and lag.
fn mean(rows: &[(i64, i64)]) -> Option<(f64, f64)> {
    let sum = |of: fn(&(i64, i64)) -> i64| rows.iter().map(|row| of(row) as f64).sum::<f64>();
    let count = rows.len() as f64;
    (!rows.is_empty()).then(|| (sum(|row| row.0) / count, sum(|row| row.1) / count))
}

/// To a tenth: what is sent need not be longer.
fn round(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// Keys ascend with time.
fn forget_first<T>(all: &mut BTreeMap<String, T>, most: usize) {
    while all.len() > most {
        all.pop_first();
    }
}

#[cfg(test)]
mod tests;
