//! The programs of the comparison: `troupe`, and the classes behind the old scripts.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use troupe_cluster::{Cluster, KafkaVersion};

use crate::PATIENCE;

/// What a program that has ended has left.
#[derive(Clone, Debug)]
pub struct Ended {
    pub code: i32,
    /// Of stdout.
    pub lines: Vec<String>,
    /// All of stderr.
    pub errors: String,
}

impl Ended {
    /// The lines printed, of a program that must have ended well.
    #[track_caller]
    pub fn printed(self) -> Vec<String> {
        assert_eq!(self.code, 0, "{self:#?}");
        self.lines
    }

    /// What it says on stderr beside a log, whose lines begin with the time or a bracket.
    pub fn said(&self) -> Vec<&str> {
        self.errors.lines().filter(|line| !line.starts_with(['2', '['])).collect()
    }

    /// All of stdout as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.lines.join("\n")).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// The JSON array that `--output json` prints.
    #[track_caller]
    pub fn rows(&self) -> Vec<Value> {
        match self.json() {
            Value::Array(rows) => rows,
            other => panic!("not rows: {other}"),
        }
    }

    /// Each line's words, empty lines left out: tables of the old tools and of ours.
    pub fn words(&self) -> Vec<Vec<&str>> {
        let words = self.lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>());
        words.filter(|words| !words.is_empty()).collect()
    }
}

/// Runs a class of a release, such as `kafka.admin.ConsumerGroupCommand`, to its end; killed where it does not come.
#[track_caller]
pub fn old_tool(cluster: &Cluster, version: KafkaVersion, class: &str, arguments: &[&str]) -> Ended {
    old_tool_with_input(cluster, version, class, arguments, "")
}

/// As [`old_tool`], with something on its standard input.
#[track_caller]
pub fn old_tool_with_input(
    cluster: &Cluster,
    version: KafkaVersion,
    class: &str,
    arguments: &[&str],
    input: &str,
) -> Ended {
    let mut child = cluster.java(version, class, arguments).unwrap();
    feed(child.stdin.take(), input);
    let output = read(child.stdout.take().unwrap());
    let begun = Instant::now();
    let Ok(output) = output.recv_timeout(PATIENCE) else {
        let log = std::fs::read_to_string(child.log()).unwrap();
        child.kill().unwrap();
        panic!("{class} {arguments:?} does not end: {log}");
    };
    let status = until_it_ends(class, begun, || child.try_wait().unwrap());
    let errors = std::fs::read(child.log()).unwrap();
    ended(status, &output, &errors)
}

/// Runs `troupe` to its end; killed where it does not come.
#[track_caller]
pub fn troupe(arguments: &[&str]) -> Ended {
    troupe_with_input(arguments, "")
}

/// As [`troupe`], with something on its standard input.
#[track_caller]
pub fn troupe_with_input(arguments: &[&str], input: &str) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_troupe"));
    command.args(arguments).env_remove("RUST_LOG").env("NO_COLOR", "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Killed(command.spawn().unwrap());
    feed(child.0.stdin.take(), input);
    child.end(&format!("troupe {arguments:?}"))
}

/// A process that does not outlive the test.
pub struct Killed(pub Child);

impl Killed {
    /// Waits for its end; killed where it does not come.
    #[track_caller]
    pub fn end(mut self, what: &str) -> Ended {
        let (output, errors) = (read(self.0.stdout.take().unwrap()), read(self.0.stderr.take().unwrap()));
        let begun = Instant::now();
        let output = output.recv_timeout(PATIENCE);
        if output.is_err() {
            // an error: it has ended meanwhile
            let _ = self.0.kill();
        }
        let errors = errors.recv_timeout(PATIENCE).unwrap_or_default();
        let text = String::from_utf8_lossy(&errors);
        let output = output.unwrap_or_else(|_| panic!("{what} does not end: {text}"));
        let status = until_it_ends(what, begun, || self.0.try_wait().unwrap());
        ended(status, &output, &errors)
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // an error: it has ended
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// All that a pipe brings until it is closed, by a thread of its own: a full pipe holds nobody up.
fn read(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if pipe.read_to_end(&mut bytes).is_ok() {
            // an error: nobody waits any more
            let _ = sender.send(bytes);
        }
    });
    receiver
}

/// Writes and closes, by a thread of its own too.
fn feed(pipe: Option<impl std::io::Write + Send + 'static>, input: &str) {
    let input = input.to_owned();
    thread::spawn(move || {
        if let Some(mut pipe) = pipe {
            // an error: it reads no more
            let _ = pipe.write_all(input.as_bytes());
        }
    });
}

/// It has closed its output, so it is about to end.
fn until_it_ends(what: &str, begun: Instant, mut look: impl FnMut() -> Option<ExitStatus>) -> ExitStatus {
    loop {
        match look() {
            Some(status) => return status,
            None => assert!(begun.elapsed() < PATIENCE, "{what} has closed its output and does not end"),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn ended(status: ExitStatus, output: &[u8], errors: &[u8]) -> Ended {
    let output = String::from_utf8_lossy(output);
    Ended {
        code: status.code().unwrap_or_else(|| panic!("ended by a signal: {status}")),
        lines: output.lines().map(str::to_owned).collect(),
        errors: String::from_utf8_lossy(errors).into_owned(),
    }
}
