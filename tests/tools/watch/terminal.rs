//! `troupe` on a pseudo-terminal, and what its screen shows.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread;

use nix::pty::{OpenptyResult, Winsize, openpty};
use nix::sys::termios::{LocalFlags, tcgetattr};
use rustix::process::{Pid, Signal, kill_process};

use crate::eventually;

/// A running `troupe`, with a terminal of its own; killed when dropped.
pub struct Terminal {
    child: Child,
    /// Where a person would sit.
    master: File,
    /// Kept open, so that it can be asked how it is after the end.
    slave: OwnedFd,
    size: (usize, usize),
    written: Arc<Mutex<Vec<u8>>>,
}

/// What a terminal shows.
#[derive(Debug, Default)]
pub struct Screen {
    pub lines: Vec<String>,
    /// Whether it is the other screen, which leaves what was there before as it was.
    pub is_other: bool,
    pub has_cursor: bool,
}

impl Terminal {
    pub fn run(arguments: &[&str], (width, height): (u16, u16)) -> Self {
        let size = Winsize { ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 };
        let OpenptyResult { master, slave } = openpty(&size, None).unwrap();
        // whoever runs the tests may ignore it (`nohup`)
        let mut command = Command::new("env");
        command
            .args(["--default-signal=HUP", env!("CARGO_BIN_EXE_troupe")])
            .args(arguments)
            .env("TERM", "xterm-256color")
            .env_remove("RUST_LOG");
        let end = || slave.try_clone().unwrap();
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let mut output = File::from(master.try_clone().unwrap());
        let written = Arc::new(Mutex::new(Vec::new()));
        let keeps = Arc::clone(&written);
        // ends with the test's process: we hold the other end open ourselves
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length) = output.read(&mut bytes) {
                keeps.lock().unwrap().extend(&bytes[..length]);
            }
        });
        let size = (usize::from(width), usize::from(height));
        Self { child, master: File::from(master), slave, size, written }
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn screen(&self) -> Screen {
        shown(&String::from_utf8_lossy(&self.written.lock().unwrap()), self.size)
    }

    /// Waits until the screen's lines are as they should be.
    #[track_caller]
    pub fn wait(&self, what: &str, is_there: impl Fn(&[String]) -> bool) {
        eventually(what, || {
            let screen = self.screen();
            is_there(&screen.lines).then_some(()).ok_or_else(|| screen.lines.join("\n"))
        });
    }

    /// Whether keys are echoed and come line by line, as a shell wants it.
    pub fn is_cooked(&self) -> bool {
        tcgetattr(&self.slave).unwrap().local_flags.contains(LocalFlags::ICANON | LocalFlags::ECHO)
    }

    pub fn wait_for_end(&mut self) -> ExitStatus {
        eventually("the end", || match self.child.try_wait().unwrap() {
            Some(status) => Ok(status),
            None => Err(self.screen().lines.join("\n")),
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // an error: it has ended
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// As much of a terminal as it takes: cursor moves, clearing, the other screen.
fn shown(written: &str, (width, height): (usize, usize)) -> Screen {
    let mut screen = Screen { has_cursor: true, ..Screen::default() };
    let blank = || vec![vec![' '; width]; height];
    let (mut cells, mut row, mut column) = (blank(), 0, 0);
    let mut chars = written.chars();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' => {
                let Some('[') = chars.next() else { continue };
                let mut parameters = String::new();
                let last = loop {
                    match chars.next() {
                        Some(char) if !char.is_ascii_alphabetic() => parameters.push(char),
                        last => break last,
                    }
                };
                match (parameters.as_str(), last) {
                    ("?1049", set) => screen.is_other = set == Some('h'),
                    ("?25", set) => screen.has_cursor = set == Some('h'),
                    (_, Some('J')) => cells = blank(),
                    (at, Some('H')) => {
                        let mut numbers = at.split(';').map(|it| it.parse::<usize>().unwrap_or(1) - 1);
                        (row, column) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
                    }
                    _ => {}
                }
            }
            '\r' => column = 0,
            '\n' => row += 1,
            char => {
                if let Some(cell) = cells.get_mut(row).and_then(|cells| cells.get_mut(column)) {
                    *cell = char;
                }
                column += 1;
            }
        }
    }
    let text = |row: &Vec<char>| row.iter().collect::<String>().trim_end().to_owned();
    screen.lines = cells.iter().map(text).collect();
    screen
}
