//! The view as texts: what screen and plain tables show alike.

use super::super::kafka_group::shows_members;
use super::columns::Column;
use super::snapshot::{Member, Snapshot};
use super::view::{Move, Row, Totals};
use crate::output::or_dash;
use crate::output::shown::shown;

/// How long ago, or for how long: `5 s`, `3 m 12 s`, `4 h 05 m`, `12 d 03 h`. Clocks differ, so never less than none.
pub fn age(millis: i64) -> String {
    let seconds = (millis / 1000).max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match () {
        () if seconds < 60 => format!("{seconds} s"),
        () if hours < 1 => format!("{minutes} m {:02} s", seconds % 60),
        () if days < 1 => format!("{hours} h {:02} m", minutes % 60),
        () => format!("{days} d {:02} h", hours % 24),
    }
}

/// How long ago that was, where it is known.
pub fn since(now_ms: i64, since_ms: Option<i64>) -> String {
    or_dash(since_ms.map(|since| age(now_ms - since)))
}

/// `14:03:22Z`.
pub fn time_of_day(millis: i64) -> String {
    match jiff::Timestamp::from_millisecond(millis) {
        Ok(time) => time.strftime("%H:%M:%SZ").to_string(),
        Err(_) => or_dash(None::<&str>),
    }
}

/// `+120/s`, small ones with a decimal.
fn rate(value: Option<f64>, is_signed: bool) -> String {
    let Some(value) = value else { return or_dash(value) };
    // no -0.0
    let value = if value.abs() < 0.05 { 0.0 } else { value };
    let decimals = usize::from(value != 0.0 && value.abs() < 9.95);
    match is_signed && value != 0.0 {
        true => format!("{value:+.decimals$}"),
        false => format!("{value:.decimals$}"),
    }
}

/// Whether lag grows: `▲` it does, `▼` it shrinks, `=` it stays.
fn trend(lag_per_second: Option<f64>) -> &'static str {
    match lag_per_second {
        None => " ",
        Some(rate) if rate > 0.0 => "▲",
        Some(rate) if rate < 0.0 => "▼",
        Some(_) => "=",
    }
}

/// Which group, and when it was read.
pub fn title(latest: &Snapshot, now_ms: i64) -> String {
    let read = format!("read {} ({} ago)", time_of_day(latest.taken_ms), age(now_ms - latest.taken_ms));
    let (group, coordination) = (shown(&latest.group), latest.coordination);
    if !latest.exists {
        return format!("{group}  there is no such group in {coordination}  {read}");
    }
    let about = latest.r#type.iter().chain(&latest.state).map(|it| format!(" {it}")).collect::<String>();
    let is_hidden = latest.r#type.as_deref().is_some_and(|group_type| !shows_members(group_type));
    let members = or_dash((!is_hidden).then_some(latest.members.len()));
    let partitions = latest.partitions.len();
    format!("{group}  ({coordination}{about})  {members} members  {partitions} partitions  {read}")
}

/// `lag 120 ▲ +3.5/s, committed 40/s`.
pub fn totals(totals: &Totals) -> String {
    let mut text = format!("lag {}", totals.total_lag);
    if let Some(rate) = totals.lag_per_second {
        text += &format!(" {} {}/s", trend(Some(rate)), self::rate(Some(rate), true));
    }
    if totals.unknown_lags > 0 {
        text += &format!(" ({} not known)", totals.unknown_lags);
    }
    if totals.committed_per_second.is_some() {
        text += &format!(", committed {}/s", rate(totals.committed_per_second, false));
    }
    text
}

/// Members, and what each owns. Ids are shown without `prefix`, which all may begin with.
pub fn members(members: &[(&Member, String)], now_ms: i64, prefix: &str) -> Vec<Column> {
    let of = |text: fn(&Member) -> String| members.iter().map(move |(member, _)| text(member));
    let owns = members.iter().map(|(_, owns)| or_dash(Some(owns).filter(|owns| !owns.is_empty())));
    vec![
        Column::names("MEMBER", 0, members.iter().map(|(member, _)| without(prefix, &member.id))),
        Column::numbers("FOR", 2, members.iter().map(|(member, _)| since(now_ms, member.since_ms))),
        Column::names("OWNS", 0, owns),
        Column::names("SUBSCRIBES", 3, of(|it| it.about.clone())),
        Column::names("NOTE", 1, of(|it| it.note.clone().unwrap_or_default())),
    ]
}

/// Partitions. Owners are shown without `prefix`.
pub fn partitions(rows: &[Row<'_>], now_ms: i64, prefix: &str) -> Vec<Column> {
    let of = |text: fn(&Row<'_>) -> String| rows.iter().map(text);
    let owner = |row: &Row<'_>| or_dash(row.partition.owner.as_ref().map(|it| without(prefix, it)));
    vec![
        Column::names("TOPIC", 0, of(|it| it.partition.topic.clone())),
        Column::numbers("PART", 0, of(|it| it.partition.partition.to_string())),
        Column::names("OWNER", 0, rows.iter().map(owner)),
        Column::numbers("FOR", 4, rows.iter().map(|row| since(now_ms, row.partition.since_ms))),
        Column::numbers("COMMITTED", 6, of(|it| or_dash(it.partition.committed))),
        Column::numbers("LOG END", 5, of(|it| or_dash(it.partition.log_end))),
        Column::numbers(
            "LAG  ",
            0,
            of(|it| format!("{} {}", or_dash(it.partition.lag), trend(it.lag_per_second))),
        ),
        Column::numbers("REC/S", 3, of(|it| rate(it.committed_per_second, false))),
        Column::names("NOTE", 2, rows.iter().map(|row| note(row, now_ms, prefix))),
    ]
}

fn note(row: &Row<'_>, now_ms: i64, prefix: &str) -> String {
    let problem = row.partition.note.clone();
    let moved = row.moved.map(|it| news(it, now_ms, prefix));
    problem.into_iter().chain(moved).collect::<Vec<_>>().join("; ")
}

fn news(moved: &Move, now_ms: i64, prefix: &str) -> String {
    let from = moved.from.as_deref().map_or_else(|| "nobody".into(), |from| without(prefix, from));
    format!("{} ago from {from}", age(now_ms - moved.seen_ms))
}

fn without(prefix: &str, id: &str) -> String {
    id.strip_prefix(prefix).unwrap_or(id).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_rates_are_short() {
        assert_eq!([-5, 59_999, 192_000].map(age), ["0 s", "59 s", "3 m 12 s"]);
        assert_eq!([14_700_000, 1_047_600_000].map(age), ["4 h 05 m", "12 d 03 h"]);
        let rates = [Some(0.0), Some(3.45), Some(120.4), Some(-2.0), Some(-0.001), None];
        assert_eq!(rates.map(|it| rate(it, true)), ["0", "+3.5", "+120", "-2.0", "0", "-"]);
        assert_eq!(rate(Some(9.96), false), "10");
        assert_eq!(time_of_day(1_490_000_000_000), "08:53:20Z");
    }
}
