//! Columns that fit: which are shown at a width, and how wide each is.

use ratatui::text::Span;

use crate::output::shown::shown;

/// A column of texts.
pub struct Column {
    head: &'static str,
    cells: Vec<String>,
    is_number: bool,
    /// Shortened where there is no room, by its middle.
    shrinks: bool,
    /// The higher, the sooner it is left out; 0: never.
    leaves: u8,
}

/// A column never shrinks below this.
const LEAST: usize = 12;
/// Between columns.
const GAP: usize = 2;

impl Column {
    /// Of names, which may be shortened.
    pub fn names(head: &'static str, leaves: u8, cells: impl Iterator<Item = String>) -> Self {
        let cells = cells.map(|cell| shown(&cell).into_owned()).collect();
        Self { head, cells, is_number: false, shrinks: true, leaves }
    }

    /// Of short values, aligned to the right.
    pub fn numbers(head: &'static str, leaves: u8, cells: impl Iterator<Item = String>) -> Self {
        Self { head, cells: cells.collect(), is_number: true, shrinks: false, leaves }
    }

    fn natural(&self) -> usize {
        self.cells.iter().map(|cell| width(cell)).chain([width(self.head)]).max().unwrap_or(0)
    }

    fn is_empty(&self) -> bool {
        self.cells.iter().all(String::is_empty)
    }
}

/// The head line and one line per row, at most `room` wide where that can be. A column that says nothing is left out.
pub fn lines(mut columns: Vec<Column>, room: usize) -> (String, Vec<String>) {
    columns.retain(|column| column.leaves == 0 || !column.is_empty());
    let widths = fit(&mut columns, room);
    let rows = columns.iter().map(|column| column.cells.len()).max().unwrap_or(0);
    let head = line(&columns, &widths, |column| column.head);
    let rows = (0..rows).map(|row| line(&columns, &widths, |column| &column.cells[row]));
    (head, rows.collect())
}

/// Leaves out columns until the others fit at their least, then shrinks the widest.
fn fit(columns: &mut Vec<Column>, room: usize) -> Vec<usize> {
    let least = |column: &Column| if column.shrinks { column.natural().min(LEAST) } else { column.natural() };
    while total(columns.iter().map(least)) > room {
        let Some(first) = columns.iter().map(|it| it.leaves).max().filter(|leaves| *leaves > 0) else {
            break;
        };
        columns.retain(|column| column.leaves != first);
    }
    let mut widths: Vec<_> = columns.iter().map(Column::natural).collect();
    while total(widths.iter().copied()) > room {
        let shrinking = (0..columns.len()).filter(|at| columns[*at].shrinks && widths[*at] > LEAST);
        let Some(widest) = shrinking.max_by_key(|at| widths[*at]) else { break };
        widths[widest] -= 1;
    }
    widths
}

fn total(widths: impl Iterator<Item = usize>) -> usize {
    widths.map(|width| width + GAP).sum::<usize>().saturating_sub(GAP)
}

fn line<'a>(columns: &'a [Column], widths: &[usize], text: impl Fn(&'a Column) -> &'a str) -> String {
    let mut line = String::new();
    for (column, width) in columns.iter().zip(widths) {
        let cell = shortened(text(column), *width);
        let padding = " ".repeat(width.saturating_sub(self::width(&cell)));
        if !line.is_empty() {
            line.push_str(&" ".repeat(GAP));
        }
        match column.is_number {
            true => line.extend([padding.as_str(), &cell]),
            false => line.extend([cell.as_str(), &padding]),
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// How many cells of a terminal it takes.
pub fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// `text` as it can be shown, in at most `room` cells: where it is longer, without its middle, as names differ at
/// their ends.
pub fn shortened(text: &str, room: usize) -> String {
    let text = shown(text);
    if width(&text) <= room {
        return text.into_owned();
    }
    let room = room.saturating_sub(1);
    let end = taken(text.chars().rev(), room - room / 2);
    let begin = taken(text.chars(), room / 2);
    format!("{}…{}", begin.iter().collect::<String>(), end.iter().rev().collect::<String>())
}

fn taken(chars: impl Iterator<Item = char>, room: usize) -> Vec<char> {
    let mut needed = 0;
    let fits = |char: &char| {
        needed += width(char.encode_utf8(&mut [0; 4]));
        needed <= room
    };
    chars.take_while(fits).collect()
}
