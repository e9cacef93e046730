//! The view on a terminal, live. However it ends, the terminal is as it was.

use std::io;
use std::thread;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use tokio::sync::mpsc::{self, Receiver, UnboundedReceiver};
use tokio::time::{MissedTickBehavior, interval};

use super::draw::{Look, draw};
use super::snapshot::Snapshot;
use super::view::{Then, View};
use crate::ends::Ends;
use crate::output::colours;
use crate::output::diagnostics::Held;
use crate::time::now_ms;

/// How often it is drawn anew when nothing happens: ages go on.
const TICK: Duration = Duration::from_secs(1);

/// The terminal while it is ours: raw, and its other screen. A panic gives it back too (ratatui's hook).
struct Screen {
    terminal: DefaultTerminal,
    // dropped after the terminal is given back: then the log is printed
    _log: Held,
}

impl Screen {
    fn open() -> io::Result<Self> {
        let log = Held::back();
        let terminal = ratatui::try_init().inspect_err(|_| ratatui::restore())?;
        Ok(Self { terminal, _log: log })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Shows what is read until somebody quits, or a signal ends it.
///
/// # Errors
/// Of the terminal.
pub async fn show(
    group: &str,
    mut view: View,
    mut reads: Receiver<Result<Snapshot, String>>,
) -> io::Result<()> {
    let mut ends = Ends::new()?;
    let look = Look { colours: colours(&io::stdout()) };
    let mut screen = Screen::open()?;
    let mut events = events();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let mut page = 0;
        screen.terminal.draw(|frame| page = draw(frame, &view, group, now_ms(), look))?;
        view.scrolled.page = page;
        tokio::select! {
            Some(read) = reads.recv() => view.take(read, now_ms()),
            event = events.recv() => match event {
                Some(Ok(Event::Key(key))) if view.press(key) == Then::Quit => return Ok(()),
                Some(Ok(_)) => {}
                Some(Err(why)) => return Err(why),
                None => return Ok(()),
            },
            _ = ticks.tick() => {}
            () = ends.next() => return Ok(()),
        }
    }
}

/// What the terminal tells, from a thread of its own, which ends with the process: its reads cannot be ended.
fn events() -> UnboundedReceiver<io::Result<Event>> {
    let (tell, events) = mpsc::unbounded_channel();
    thread::spawn(move || {
        loop {
            let event = event::read();
            let is_last = event.is_err();
            if tell.send(event).is_err() || is_last {
                return;
            }
        }
    });
    events
}
