//! The view on a screen.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::Paragraph;

use super::cells::{self, age, title};
use super::columns::{lines, shortened};
use super::view::{List, Sort, View};

/// Below this many lines, the lists share the screen by turns.
const LOW: u16 = 12;
/// Lines that say what could not be read, at most.
const SAID: usize = 3;

/// How things look. Colours are the terminal's own and few; nothing is told by a colour alone.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Whether there are colours.
    pub colours: bool,
}

impl Look {
    fn bad(self) -> Style {
        let style = Style::new().add_modifier(Modifier::BOLD);
        if self.colours { style.fg(Color::Red) } else { style }
    }
}

const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);

/// Draws it as it stands at `now_ms`; how many rows the list that keys scroll has room for.
pub fn draw(frame: &mut Frame, view: &View, group: &str, now_ms: i64, look: Look) -> usize {
    let area = frame.area();
    let head = head(view, group, now_ms, area, look);
    let height = u16::try_from(head.len()).unwrap_or(u16::MAX);
    let parts = [Constraint::Length(height), Constraint::Min(0), Constraint::Length(1)];
    let [top, middle, bottom] = Layout::vertical(parts).areas(area);
    frame.render_widget(Paragraph::new(head), top);
    let page = if view.latest().is_some() { lists(frame, view, now_ms, middle, look) } else { 0 };
    frame.render_widget(Paragraph::new(help(view)), bottom);
    page
}

fn head(view: &View, group: &str, now_ms: i64, area: Rect, look: Look) -> Vec<Line<'static>> {
    let room = usize::from(area.width);
    let mut head = Vec::new();
    let mut say = |text: String, style: Style| head.push(Line::styled(shortened(&text, room), style));
    match view.latest() {
        None => say(format!("{group}: not read yet"), STRONG),
        Some(latest) => {
            say(title(latest, now_ms), STRONG);
            say(cells::totals(&view.totals()), Style::new());
        }
    }
    if let Some(failure) = &view.failure {
        let forth = age(now_ms - failure.since_ms);
        say(format!("cannot be read since {forth}: {}", failure.why), look.bad());
    }
    let errors = view.latest().map(|it| it.errors.as_slice()).unwrap_or_default();
    let shown = if errors.len() > SAID { SAID - 1 } else { SAID };
    errors.iter().take(shown).for_each(|error| say(format!("not read: {error}"), look.bad()));
    if errors.len() > shown {
        say(format!("and {} more that could not be read", errors.len() - shown), look.bad());
    }
    head
}

/// Both lists, or where the screen is low the one that keys scroll.
fn lists(frame: &mut Frame, view: &View, now_ms: i64, area: Rect, look: Look) -> usize {
    let is_low = area.height < LOW;
    let height = |rows: usize| u16::try_from(rows + 3).unwrap_or(u16::MAX);
    let wanted = height(view.members().len());
    let spare = area.height.saturating_sub(height(view.rows().len()));
    let members = match view.focus {
        List::Members if is_low => area.height,
        List::Partitions if is_low => 0,
        List::Members => wanted.min(spare.max(area.height / 2)),
        List::Partitions => wanted.min(spare.max(area.height / 3)),
    };
    let parts = [Constraint::Length(members), Constraint::Min(0)];
    let [above, below] = Layout::vertical(parts).areas(area);
    let of_members = member_list(frame, view, now_ms, above);
    let of_partitions = partition_list(frame, view, now_ms, below, look);
    if view.focus == List::Members { of_members } else { of_partitions }
}

/// What every id in ZooKeeper begins with says nothing here.
fn prefix(view: &View) -> String {
    view.latest().map(|latest| format!("{}_", latest.group)).unwrap_or_default()
}

fn member_list(frame: &mut Frame, view: &View, now_ms: i64, area: Rect) -> usize {
    let members = view.members();
    let (head, rows) = lines(cells::members(&members, now_ms, &prefix(view)), usize::from(area.width));
    let title = format!("MEMBERS ({})", members.len());
    let rows = rows.into_iter().map(|row| (row, Style::new())).collect();
    list(frame, area, (title, view.focus == List::Members), head, rows, view.scrolled.members)
}

fn partition_list(frame: &mut Frame, view: &View, now_ms: i64, area: Rect, look: Look) -> usize {
    let partitions = view.rows();
    let (head, rows) = lines(cells::partitions(&partitions, now_ms, &prefix(view)), usize::from(area.width));
    let order = if view.sort == Sort::Lag { "lag" } else { "topic" };
    let title = format!("PARTITIONS ({}) by {order}", partitions.len());
    let styled = rows.into_iter().zip(&partitions).map(|(text, row)| {
        let style = match (&row.partition.note, row.moved) {
            (Some(_), _) => look.bad(),
            (None, Some(_)) => STRONG,
            (None, None) => Style::new(),
        };
        (text, style)
    });
    list(
        frame,
        area,
        (title, view.focus == List::Partitions),
        head,
        styled.collect(),
        view.scrolled.partitions,
    )
}

/// An empty line, a title, the columns' heads, and the rows that there is room for.
fn list(
    frame: &mut Frame,
    area: Rect,
    (title, is_focus): (String, bool),
    head: String,
    rows: Vec<(String, Style)>,
    first: usize,
) -> usize {
    let room = usize::from(area.height.saturating_sub(3));
    let first = first.min(rows.len().saturating_sub(room));
    let above = if first > 0 { format!("  {first} above") } else { String::new() };
    let below = rows.len().saturating_sub(first + room);
    let below = if below > 0 { format!("  {below} below") } else { String::new() };
    let style = if is_focus { STRONG.add_modifier(Modifier::REVERSED) } else { STRONG };
    let top =
        [Line::default(), Line::styled(format!("{title}{above}{below}"), style), Line::styled(head, FAINT)];
    let rows = rows.into_iter().skip(first).take(room).map(|(text, style)| Line::styled(text, style));
    frame.render_widget(Paragraph::new(Text::from_iter(top.into_iter().chain(rows))), area);
    room
}

fn help(view: &View) -> Line<'static> {
    if view.filter.is_typed {
        return Line::styled(format!("/{}▏ Enter keeps it, Esc drops it", view.filter.text), STRONG);
    }
    let filter = match view.filter.text.as_str() {
        "" => "/ filter".to_owned(),
        text => format!("/ filter: {text}"),
    };
    let text = format!("q quit  l/t by lag/topic  {filter}  Tab members/partitions  ↑↓ PgUp PgDn scroll");
    Line::styled(text, FAINT)
}

#[cfg(test)]
mod tests;
