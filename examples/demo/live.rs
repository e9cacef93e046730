//! The live view on standard error: a bar and a table on a terminal, else a line each second.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{HumanCount, MultiProgress, ProgressBar, ProgressStyle};
use kafka_troupe::proto::schemas::rebalance::v1::RebalanceTrace;
use kafka_troupe::proto::schemas::status::v1::{Session, SessionState};

use crate::board::{Board, Member, State};
use crate::producing::PARTITIONS;

const REDRAW: Duration = Duration::from_millis(200);
const LINE_EVERY: Duration = Duration::from_secs(1);
/// The rate is that of the last so many redraws.
const RATE_OVER: usize = 10;

/// Draws the board again and again, and tells of events.
pub struct Live {
    board: Arc<Board>,
    screen: Option<Screen>,
    records: u64,
    began: Instant,
    last_line: Instant,
    /// Acknowledged records at the last redraws.
    past: Vec<(Instant, u64)>,
    /// The last rebalance told of, per member.
    told: BTreeMap<String, u64>,
}

struct Screen {
    all: MultiProgress,
    bar: ProgressBar,
    table: ProgressBar,
}

impl Live {
    pub fn new(board: Arc<Board>, records: u64) -> Self {
        let screen = io::stderr().is_terminal().then(|| Screen::new(records));
        let now = Instant::now();
        Self { board, screen, records, began: now, last_line: now, past: Vec::new(), told: BTreeMap::new() }
    }

    /// Tells of something that has happened.
    pub fn say(&self, what: &str) {
        let line = format!("[{:5.1} s] {what}", self.began.elapsed().as_secs_f64());
        match &self.screen {
            // a closed standard error is no reason to stop
            Some(screen) => drop(screen.all.println(line)),
            None => drop(writeln!(io::stderr(), "{line}")),
        }
    }

    /// Draws if it is time to; `produced` is what the producer has got rid of.
    pub fn draw(&mut self, produced: u64) {
        let now = Instant::now();
        if self.past.last().is_some_and(|(last, _)| now - *last < REDRAW) {
            return;
        }
        let acked = self.board.acked();
        self.past.push((now, acked));
        let (first, before) = self.past[self.past.len().saturating_sub(RATE_OVER)];
        let rate = (acked - before) as f64 / (now - first).as_secs_f64().max(0.1);
        let pace =
            format!("{}/s, {} behind", HumanCount(rate as u64), HumanCount(produced.saturating_sub(acked)));
        let members = self.board.members();
        self.tell_rebalances(&members);
        if let Some(screen) = &self.screen {
            screen.bar.set_position(acked);
            screen.bar.set_message(pace);
            screen.table.set_message(table(&members));
        } else if now - self.last_line >= LINE_EVERY {
            self.last_line += LINE_EVERY;
            let (acked, records) = (HumanCount(acked), HumanCount(self.records));
            self.say(&format!("{acked} of {records} handled, {pace}; {}", summary(&members)));
        }
    }

    /// Leaves the screen to others, with what it shows last.
    pub fn end(&mut self) {
        if let Some(screen) = self.screen.take() {
            screen.bar.abandon();
            screen.table.abandon();
        }
    }

    /// Takes the screen again, below what others have written.
    pub fn resume(&mut self) {
        self.screen = io::stderr().is_terminal().then(|| Screen::new(self.records));
    }

    /// Whether it draws, rather than to write lines.
    pub fn draws(&self) -> bool {
        self.screen.is_some()
    }

    fn tell_rebalances(&mut self, members: &[Member]) {
        for member in members {
            let told = self.told.get(&member.name).copied().unwrap_or(0);
            for trace in member.traces().filter(|trace| trace.generation > told) {
                self.say(&format!("{} {}", member.name, rebalanced(trace)));
                self.told.insert(member.name.clone(), trace.generation);
            }
        }
    }
}

impl Screen {
    fn new(records: u64) -> Self {
        let style = |template: &str| {
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
        };
        let all = MultiProgress::new();
        let bar = all.add(ProgressBar::new(records));
        bar.set_style(style("{bar:40.green} {human_pos} of {human_len} handled, {msg}"));
        let table = all.add(ProgressBar::new_spinner());
        table.set_style(style("{msg}"));
        Self { all, bar, table }
    }
}

/// Who owns what, and how each member stands.
fn table(members: &[Member]) -> String {
    let mut text = String::from("partition ");
    for partition in 0..PARTITIONS {
        let _ = write!(text, "{partition:>8}");
    }
    text.push_str("\nowner     ");
    for partition in 0..PARTITIONS {
        let _ = write!(text, "{:>8}", owner(members, partition).map_or("-", |(member, _)| &member.name));
    }
    text.push_str("\nlag       ");
    for partition in 0..PARTITIONS {
        let lag = owner(members, partition).and_then(|(_, lag)| lag);
        let lag = lag.map_or_else(|| "-".to_owned(), |lag| HumanCount(lag.unsigned_abs()).to_string());
        let _ = write!(text, "{lag:>8}");
    }
    text.push_str(
        "\nmember    pid  session                          lease  phase     owns    records  rebalances",
    );
    for member in members {
        let _ = write!(text, "\n{}", describe(member));
    }
    text
}

/// Who reads a partition, and how far it is behind.
fn owner(members: &[Member], partition: i32) -> Option<(&Member, Option<i64>)> {
    members.iter().filter(|member| member.state == State::Running).find_map(|member| {
        let owned = member.snapshot.partitions.iter().find(|owned| owned.partition == partition)?;
        Some((member, owned.lag))
    })
}

fn describe(member: &Member) -> String {
    let Member { name, pid, state, snapshot } = member;
    let session = snapshot.session.as_ref();
    let of_session = session.map_or_else(String::new, |of| format!("{:#x} {}", of.id, describe_session(of)));
    let lease = session.map_or(0.0, |session| session.lease_remaining_ms as f64 / 1000.0);
    let start = format!("{name:<6} {pid:>6}");
    match state {
        State::Killed => format!("{start}  killed -9"),
        State::Left => format!("{start}  has left"),
        State::Running => format!(
            "{start}  {of_session:<29} {lease:>5.1} s  {:<8}  {:>4}  {:>9}  {:>10}",
            snapshot.phase,
            member.owned(),
            HumanCount(snapshot.records).to_string(),
            member.rebalances(),
        ),
    }
}

fn describe_session(session: &Session) -> &'static str {
    match session.state() {
        SessionState::Connected => "connected",
        SessionState::Connecting => "connecting",
        SessionState::Suspended => "suspended",
        SessionState::Expired => "expired",
        SessionState::Unspecified => "unknown",
    }
}

fn rebalanced(trace: &RebalanceTrace) -> String {
    let RebalanceTrace { duration_ms, kept, released, claimed, moved, .. } = trace;
    let why = trace.reasons.join(", ");
    format!(
        "rebalanced in {duration_ms} ms: {kept} kept, {released} released, {claimed} claimed, {moved} moved ({why})"
    )
}

/// The table in a few words.
fn summary(members: &[Member]) -> String {
    let mut text = String::from("owners ");
    for partition in 0..PARTITIONS {
        text.push_str(owner(members, partition).map_or("-", |(member, _)| &member.name));
    }
    for member in members {
        let state = match member.state {
            State::Running => &member.snapshot.phase,
            State::Killed => "killed",
            State::Left => "left",
        };
        let _ = write!(text, "; {} {state}, {} rebalances", member.name, member.rebalances());
    }
    text
}
