//! The view without a terminal: each read as tables, or as one line of JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::super::Coordination;
use super::cells;
use super::columns::{Column, lines};
use super::snapshot::{Member, Snapshot};
use super::view::{Failure, Row, Totals, View};
use crate::output::Output;

/// What a line of JSON has of a group that was read.
#[derive(Serialize)]
struct Read<'a> {
    taken_ms: i64,
    group: &'a str,
    coordination: Coordination,
    exists: bool,
    r#type: Option<&'a str>,
    state: Option<&'a str>,
    #[serde(flatten)]
    totals: Totals,
    members: Vec<ReadMember<'a>>,
    partitions: Vec<Row<'a>>,
    errors: &'a [String],
}

/// A member, and how many partitions it owns.
#[derive(Serialize)]
struct ReadMember<'a> {
    #[serde(flatten)]
    member: &'a Member,
    owned: usize,
}

/// What a line of JSON has of one that could not be.
#[derive(Serialize)]
struct NotRead<'a> {
    group: &'a str,
    error: &'a str,
    failing_since_ms: i64,
}

/// Prints what the last read brought.
///
/// # Errors
/// Of `out`.
pub fn print(out: &mut impl Write, output: Output, group: &str, view: &View) -> io::Result<()> {
    match (output, &view.failure, view.latest()) {
        (Output::Json, Some(failure), _) => json(out, &not_read(group, failure)),
        (Output::Json, None, Some(latest)) => json(out, &read(view, latest)),
        (_, None, Some(latest)) => tables(out, view, latest),
        // the error goes to stderr
        _ => Ok(()),
    }?;
    out.flush()
}

fn json(out: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    writeln!(out)
}

fn not_read<'a>(group: &'a str, failure: &'a Failure) -> NotRead<'a> {
    NotRead { group, error: &failure.why, failing_since_ms: failure.since_ms }
}

fn read<'a>(view: &'a View, latest: &'a Snapshot) -> Read<'a> {
    let owned = |id: &str| latest.partitions.iter().filter(|it| it.member.as_deref() == Some(id)).count();
    let members = latest.members.iter();
    Read {
        taken_ms: latest.taken_ms,
        group: &latest.group,
        coordination: latest.coordination,
        exists: latest.exists,
        r#type: latest.r#type.as_deref(),
        state: latest.state.as_deref(),
        totals: view.totals(),
        members: members.map(|member| ReadMember { member, owned: owned(&member.id) }).collect(),
        partitions: view.rows(),
        errors: &latest.errors,
    }
}

fn tables(out: &mut impl Write, view: &View, latest: &Snapshot) -> io::Result<()> {
    writeln!(out, "{}", cells::title(latest, latest.taken_ms))?;
    writeln!(out, "{}", cells::totals(&view.totals()))?;
    for error in &latest.errors {
        writeln!(out, "not read: {}", crate::output::shown::shown(error))?;
    }
    table(out, cells::members(&view.members(), latest.taken_ms, ""))?;
    table(out, cells::partitions(&view.rows(), latest.taken_ms, ""))?;
    writeln!(out)
}

fn table(out: &mut impl Write, columns: Vec<Column>) -> io::Result<()> {
    let (head, rows) = lines(columns, usize::MAX);
    writeln!(out, "\n{head}")?;
    rows.iter().try_for_each(|row| writeln!(out, "{row}"))
}

#[cfg(test)]
mod tests;
