//! Examples as processes.

use std::fmt::Display;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use troupe_cluster::{Cluster, KafkaVersion, Running};

const PATIENCE: Duration = Duration::from_secs(60);

static CLUSTER: LazyLock<Cluster> =
    LazyLock::new(|| Cluster::start(KafkaVersion::V3_9_1, 1).expect("a cluster starts"));

/// One for all tests: each example has its own topics and group.
pub fn cluster() -> Running {
    Running::at(&CLUSTER.zookeeper_connect()).expect("its broker is registered")
}

/// A running example; it is killed when this is dropped.
pub struct Example {
    name: &'static str,
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Example {
    /// As built by `cargo test`, against the cluster of the tests.
    pub fn start(name: &'static str, arguments: &[&str]) -> Self {
        let program = program(name);
        let mut child = Command::new(&program)
            .args(["--zookeeper", cluster().zookeeper()])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}: run `cargo build --examples`", program.display()));
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let (read, output) = (Arc::clone(&lines), child.stdout.take().expect("it is piped"));
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                read.lock().expect("nobody panics with it").push(line);
            }
        });
        Self { name, child, lines }
    }

    /// What it has printed so far.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().expect("nobody panics with it").clone()
    }

    /// Waits for a line that it prints.
    pub fn wait_for_line(&mut self, what: &str, is: impl Fn(&str) -> bool) -> String {
        let mut found = None;
        self.wait_until(what, |lines| {
            found = lines.iter().find(|line| is(line)).cloned();
            if found.is_some() { Ok(()) } else { Err(lines.join("\n")) }
        });
        found.expect("it was waited for")
    }

    /// Waits until its lines are as wanted, which it must live to see.
    pub fn wait_until<E: Display>(&mut self, what: &str, mut look: impl FnMut(&[String]) -> Result<(), E>) {
        until(&format!("{}: {what}", self.name), || {
            // before the look: what it did in the end counts
            let ended = self.child.try_wait().expect("it is our child");
            look(&self.lines()).inspect_err(|seen| {
                assert!(ended.is_none(), "{} ended: {ended:?}, without {what}: {seen}", self.name);
            })
        });
    }

    /// By SIGTERM, as an operator does, once it listens to that; it must end well.
    pub fn terminate(mut self) {
        let status = format!("/proc/{}/status", self.child.id());
        self.wait_until("a handler of SIGTERM", |_| {
            let status = std::fs::read_to_string(&status).unwrap_or_default();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
            if caught.is_some_and(|mask| mask & 1 << (15 - 1) != 0) { Ok(()) } else { Err(status) }
        });
        self.signal(Signal::TERM);
        self.succeeds();
    }

    /// Waits for its end, which must be a success; gives what it printed.
    pub fn succeeds(&mut self) -> Vec<String> {
        let mut status: Option<ExitStatus> = None;
        until(&format!("{} ends", self.name), || {
            status = self.child.try_wait().expect("it is our child");
            status.map(drop).ok_or("it runs")
        });
        assert!(status.is_some_and(|status| status.success()), "{}: {status:?}", self.name);
        self.lines()
    }

    /// As kill -9 does.
    pub fn kill(mut self) {
        self.signal(Signal::KILL);
        self.child.wait().expect("it is our child");
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(id, signal).expect("it is our child, and not waited for yet");
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        // an error: it has ended
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Beside the folder of this test.
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    let folder = test.ancestors().nth(2).expect("it is in target/PROFILE/deps");
    folder.join("examples").join(name)
}

/// Looks every 5 ms until it is so.
pub fn until<E: Display>(what: &str, mut look: impl FnMut() -> Result<(), E>) {
    let began = Instant::now();
    while let Err(seen) = look() {
        assert!(began.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}; last seen: {seen}");
        thread::sleep(Duration::from_millis(5));
    }
}
