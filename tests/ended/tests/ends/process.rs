//! The process, seen from outside.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
/// What its end may take: less than a session that is left to expire.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// Killed when dropped.
pub struct Process {
    child: RefCell<Child>,
    output: Receiver<String>,
    lines: RefCell<Vec<String>>,
}

impl Process {
    pub fn start(how: &str, name: &str, zookeeper: &str, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_troupe-ended"))
            .args([how, name, "auto.offset.reset=smallest", "rebalance.backoff.ms=1000"])
            // no commit but the last, and a session that outlasts the test
            .args(["auto.commit.interval.ms=3600000", "zookeeper.session.timeout.ms=40000"])
            .args([format!("zookeeper.connect={zookeeper}"), format!("group.id={name}")])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("it has an output"));
        let (tell, told) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Self { child: RefCell::new(child), output: told, lines: RefCell::default() }
    }

    pub fn signal(&self, name: &str) {
        let process = self.child.borrow().id().to_string();
        let kill = Command::new("kill").args([&format!("-{name}"), &process]).status();
        assert!(kill.expect("kill runs").success());
    }

    /// As somebody does who has no patience.
    #[track_caller]
    pub fn signal_until_it_ends(&self, name: &str) {
        let begun = Instant::now();
        loop {
            self.signal(name);
            match self.output.recv_timeout(Duration::from_millis(100)) {
                Ok(line) => self.lines.borrow_mut().push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => assert!(begun.elapsed() < ENDS_WITHIN, "it goes on"),
            }
        }
        self.wait();
    }

    #[track_caller]
    pub fn wait_for_handled(&self, count: usize) {
        let begun = Instant::now();
        while self.handled().count() < count {
            assert!(self.read(PATIENCE.saturating_sub(begun.elapsed())), "it ended: {:?}", self.lines);
        }
    }

    /// Waits for its end, which comes soon once it has begun.
    #[track_caller]
    pub fn wait(&self) {
        self.wait_for_handled_unless_it_ends();
        let begun = Instant::now();
        while self.read(ENDS_WITHIN.saturating_sub(begun.elapsed())) {}
        let status = self.child.borrow_mut().wait().expect("it ends");
        assert!(status.success(), "it ended by {status}: {:?}", self.lines.borrow().last());
    }

    fn wait_for_handled_unless_it_ends(&self) {
        let begun = Instant::now();
        while self.handled().count() < 40 && self.read(PATIENCE.saturating_sub(begun.elapsed())) {}
    }

    /// One line more; false at the end of its output.
    #[track_caller]
    fn read(&self, patience: Duration) -> bool {
        match self.output.recv_timeout(patience) {
            Ok(line) => self.lines.borrow_mut().push(line),
            Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => panic!("not in time: {:?}", self.lines.borrow().last()),
        }
        true
    }

    fn handled(&self) -> impl Iterator<Item = (i32, i64)> {
        let lines = self.lines.borrow().clone();
        lines.into_iter().filter_map(|line| {
            let (partition, offset) = line.strip_prefix("handled ")?.split_once(' ')?;
            Some((partition.parse().expect("a number"), offset.parse().expect("a number")))
        })
    }

    /// Of each partition; each record before was handled, and once.
    #[track_caller]
    pub fn next_offsets(&self) -> BTreeMap<i32, i64> {
        let mut next = BTreeMap::new();
        for (partition, offset) in self.handled() {
            let at: &mut i64 = next.entry(partition).or_default();
            assert_eq!(offset, *at, "partition {partition}");
            *at += 1;
        }
        next
    }

    pub fn has(&self, line: &str) -> bool {
        self.lines.borrow().iter().any(|its| its == line)
    }

    /// The rest of the line that starts so, when it comes.
    #[track_caller]
    pub fn wait_for(&self, start: &str) -> String {
        let begun = Instant::now();
        loop {
            let rest =
                self.lines.borrow().iter().find_map(|line| line.strip_prefix(start).map(str::to_owned));
            if let Some(rest) = rest {
                return rest;
            }
            assert!(self.read(PATIENCE.saturating_sub(begun.elapsed())), "it ended: {:?}", self.lines);
        }
    }

    pub fn has_start_of(&self, start: &str) -> bool {
        self.lines.borrow().iter().any(|its| its.starts_with(start))
    }

    pub fn last_line(&self) -> String {
        self.lines.borrow().last().cloned().unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // an error: it has ended
        let _ = self.child.borrow_mut().kill();
        let _ = self.child.borrow_mut().wait();
    }
}
