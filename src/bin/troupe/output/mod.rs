//! What commands print: rows, as a table for people or as JSON for programs.
//!
//! On stdout are results and nothing else; notes, warnings, counts and progress go to stderr.

pub mod diagnostics;
pub mod progress;
pub mod shown;

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

/// How rows are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// Columns under a head, for people
    #[default]
    Table,
    /// One JSON array; what is not known is null
    Json,
}

/// What is printed as rows.
pub trait Row: Serialize {
    /// The columns' heads.
    const HEAD: &'static [&'static str];

    /// One cell per column; what is not known is `-`.
    fn cells(&self) -> Vec<String>;
}

impl Output {
    /// Prints rows to stdout.
    ///
    /// # Errors
    /// Of stdout. `?` makes of a closed one (`| head`) the quiet end that people expect.
    pub fn print<R: Row>(self, rows: &[R]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        self.write(rows, &mut out)?;
        out.flush()
    }

    /// Prints rows to a writer.
    ///
    /// # Errors
    /// Of the writer.
    pub fn write<R: Row>(self, rows: &[R], out: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Table => table(rows).lines().try_for_each(|line| writeln!(out, "{}", line.trim_end())),
            Self::Json => json(rows, out),
        }
    }
}

/// A cell: what is not known is `-`.
pub fn or_dash(value: Option<impl Display>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// Prints a value to stdout, as [`Output::Json`] does rows.
///
/// # Errors
/// Of stdout.
pub fn print_json(value: &(impl Serialize + ?Sized)) -> io::Result<()> {
    let mut out = io::stdout().lock();
    json(value, &mut out)?;
    out.flush()
}

fn json(value: &(impl Serialize + ?Sized), out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

/// Whether a stream is shown in colours: it is a terminal, and nobody asked for none (<https://no-color.org>).
pub fn colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Columns of whole numbers stand at the right.
fn table<R: Row>(rows: &[R]) -> Table {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.cells().iter().map(|cell| shown::shown(cell).into_owned()).collect())
        .collect();
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(R::HEAD.to_vec());
    rows.iter().for_each(|cells| {
        table.add_row(cells);
    });
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if are_numbers(rows.iter().filter_map(|cells| cells.get(at))) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn are_numbers<'a>(cells: impl Iterator<Item = &'a String>) -> bool {
    let known: Vec<_> = cells.filter(|cell| *cell != "-").collect();
    !known.is_empty() && known.iter().all(|cell| cell.parse::<i128>().is_ok())
}

#[cfg(test)]
mod tests;
