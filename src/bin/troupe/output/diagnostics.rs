//! Where the log goes: to stderr; kept back while a screen is drawn, which it would garble.
//!
//! A thread of its own writes it, so that a stderr that nobody reads (`2>&1 | less`) holds up nobody else: neither a
//! signal, nor who has a group to leave.

use std::collections::VecDeque;
use std::fmt::Arguments;
use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::shown::shown;

/// So many writes, by rule lines, are kept back: the last ones.
const KEPT: usize = 50;

/// So many writes wait for who reads slowly, and behind them the last [`KEPT`].
const WAITING: usize = 1024;

/// So long in all those who have something to say wait for who reads slowly, until that one has read all.
const PATIENCE: Duration = Duration::from_secs(1);

/// So long the end waits for who reads slowly.
const LAST_LINES: Duration = Duration::from_secs(1);

/// What waits for the writer.
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    waiting: VecDeque<Vec<u8>>,
    /// Lines that came behind these and are left out.
    left_out: usize,
    /// What came last, behind what is left out.
    last: VecDeque<Vec<u8>>,
    /// How long may still be waited for space.
    patience: Duration,
    is_writing: bool,
}

static QUEUE: Queue = Queue::new(PATIENCE);

impl Queue {
    const fn new(patience: Duration) -> Self {
        Self {
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                left_out: 0,
                last: VecDeque::new(),
                patience,
                is_writing: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits a little where there is no space; then the oldest of what came last is left out.
    fn put(&self, text: &[u8]) {
        let mut state = self.state();
        while state.is_full() && !state.patience.is_zero() {
            let (begun, limit) = (Instant::now(), state.patience);
            let waited = self.changed.wait_timeout(state, limit);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            state.patience = state.patience.saturating_sub(begun.elapsed());
        }
        state.put(text.to_vec());
        self.changed.notify_all();
    }

    /// The next to write; waits for it.
    fn next(&self) -> Vec<u8> {
        let mut state = self.state();
        state.is_writing = false;
        loop {
            if let Some(text) = state.next() {
                state.is_writing = true;
                self.changed.notify_all();
                return text;
            }
            state.patience = PATIENCE;
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until all is written, or so long.
    fn wait_written(&self, limit: Duration) {
        let is_written =
            |state: &mut State| state.waiting.is_empty() && !state.is_behind() && !state.is_writing;
        // in time or not: it was the last thing
        drop(self.changed.wait_timeout_while(self.state(), limit, |state| !is_written(state)));
    }
}

impl State {
    /// Something is kept apart already, which what comes must not overtake.
    fn is_behind(&self) -> bool {
        self.left_out > 0 || !self.last.is_empty()
    }

    fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING || self.is_behind()
    }

    fn put(&mut self, text: Vec<u8>) {
        if !self.is_full() {
            self.waiting.push_back(text);
            return;
        }
        self.last.push_back(text);
        if self.last.len() > KEPT
            && let Some(text) = self.last.pop_front()
        {
            self.left_out += text.iter().filter(|byte| **byte == b'\n').count();
        }
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        if self.waiting.is_empty() {
            std::mem::swap(&mut self.waiting, &mut self.last);
            if self.left_out > 0 {
                let lines = std::mem::take(&mut self.left_out);
                return Some(format!("{lines} lines left out: stderr is not read\n").into_bytes());
            }
        }
        self.waiting.pop_front()
    }
}

/// Whether there is the one writer: none where no thread can be had.
fn has_writer() -> bool {
    static WRITER: OnceLock<bool> = OnceLock::new();
    let start = || thread::Builder::new().name("stderr".to_owned()).spawn(write_all).is_ok();
    *WRITER.get_or_init(start)
}

fn write_all() {
    loop {
        // nobody is left to tell that it failed
        drop(io::stderr().write_all(&QUEUE.next()));
    }
}

fn write(text: &[u8]) {
    if has_writer() {
        QUEUE.put(text);
    } else {
        drop(io::stderr().write_all(text));
    }
}

/// Waits until all is written, but not for ever: before the process ends.
pub fn flush() {
    if has_writer() {
        QUEUE.wait_written(LAST_LINES);
    }
}

static HELD: Mutex<Option<VecDeque<Vec<u8>>>> = Mutex::new(None);

/// Lines for stderr, in which names stand that others chose.
pub fn say(text: Arguments) {
    let lines: String = text.to_string().lines().map(|line| shown(line) + "\n").collect();
    // it does not fail
    let _ = Diagnostics.write_all(lines.as_bytes());
}

/// stderr, or what keeps back what goes there. Never fails: where nobody reads it any more (`2>&1 | head`), nobody is left
/// to tell, and there may be a group to leave.
#[derive(Clone, Copy, Debug)]
pub struct Diagnostics;

/// Keeps the log back until it is dropped; then its last lines are printed.
#[must_use]
pub struct Held(());

impl Held {
    /// From now on.
    pub fn back() -> Self {
        *HELD.lock().unwrap_or_else(PoisonError::into_inner) = Some(VecDeque::new());
        Self(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let held = HELD.lock().unwrap_or_else(PoisonError::into_inner).take();
        held.iter().flatten().for_each(|text| write(text));
    }
}

impl Write for Diagnostics {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        match HELD.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(held) => {
                held.push_back(text.to_vec());
                held.drain(..held.len().saturating_sub(KEPT));
                Ok(text.len())
            }
            None => {
                write(text);
                Ok(text.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_while_a_screen_is_drawn() {
        let held = Held::back();
        (0..KEPT + 2).for_each(|n| Diagnostics.write_all(format!("{n}\n").as_bytes()).unwrap());
        let kept = HELD.lock().unwrap().take().unwrap();
        assert_eq!((kept.len(), kept.back().unwrap().as_slice()), (KEPT, &b"51\n"[..]));
        drop(held);
        assert!(HELD.lock().unwrap().is_none());
    }

    fn line(n: usize) -> Vec<u8> {
        format!("{n}\n").into_bytes()
    }

    #[test]
    fn what_nobody_reads_is_left_out_and_counted_but_for_the_last_lines() {
        let queue = Queue::new(Duration::from_millis(20));
        let (all, more) = (WAITING + 7 + KEPT, 3);
        (0..all).for_each(|n| queue.put(&line(n)));
        (0..WAITING).for_each(|n| assert_eq!(queue.next(), line(n)));
        assert_eq!(queue.next(), b"7 lines left out: stderr is not read\n");
        // what comes now stands behind it
        (all..all + more).for_each(|n| queue.put(&line(n)));
        (WAITING + 7..all + more).for_each(|n| assert_eq!(queue.next(), line(n)));
        // the last one is being written, without end
        queue.wait_written(Duration::from_millis(1));
        assert!(queue.state().is_writing);
    }

    #[test]
    fn nothing_is_left_out_while_it_is_read_slowly() {
        let queue = Queue::new(Duration::from_secs(60));
        let all = WAITING + 2 * KEPT;
        thread::scope(|threads| {
            threads.spawn(|| (0..all).for_each(|n| queue.put(&line(n))));
            (0..all).for_each(|n| assert_eq!(queue.next(), line(n)));
        });
        assert!(!queue.state().is_full());
    }
}
