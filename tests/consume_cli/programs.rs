//! The programs that share a group here: `troupe`, and Kafka 1.1.1's console tools.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use troupe_cluster::{Cluster, JavaChild, KafkaVersion};

/// Longer than anything here takes on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Asks again and again until `look` finds something.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) => assert!(begun.elapsed() < PATIENCE, "not in time: {what}; last seen: {seen}"),
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// What a program that has ended has left.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub lines: Vec<String>,
    pub errors: String,
}

impl Ended {
    /// What it says on stderr beside its log, whose lines begin with the time.
    pub fn said(&self) -> String {
        let lines = self.errors.lines().filter(|line| !line.starts_with("20"));
        lines.map(|line| line.to_owned() + "\n").collect()
    }

    /// The lines printed, of a program that ended well.
    pub fn printed(self) -> Vec<String> {
        assert!(self.status.success(), "{self:?}");
        self.lines
    }
}

/// A running `troupe consume`; killed when dropped.
pub struct Troupe {
    child: Killed,
    lines: Receiver<String>,
    errors: Option<JoinHandle<String>>,
}

impl Troupe {
    /// `troupe consume --zookeeper … --group … --topic …` and more.
    pub fn consume(cluster: &Cluster, group: &str, topic: &str, more: &[&str]) -> Self {
        let connect = cluster.zookeeper_connect();
        let arguments = ["--zookeeper", &connect, "--group", group, "--topic", topic];
        Self::run(&[&arguments[..], more].concat())
    }

    /// `troupe consume` with just these arguments.
    pub fn run(arguments: &[&str]) -> Self {
        // whoever runs the tests may ignore it (`nohup`)
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_troupe"), "consume"]).args(arguments);
        Self::start(command)
    }

    /// A line in a shell, which is to `exec "$TROUPE"`.
    pub fn shell(line: &str, folder: &Path) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(folder).env("TROUPE", env!("CARGO_BIN_EXE_troupe"));
        Self::start(command)
    }

    fn start(mut command: Command) -> Self {
        command.env_remove("RUST_LOG").stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Killed(command.spawn().unwrap());
        // who does not take the lines holds it up, as a slow pipe does
        let (line, lines) = sync_channel(0);
        let output = BufReader::new(child.0.stdout.take().unwrap());
        // ends when the test has: nobody hears it any more
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|text| line.send(text)));
        let mut output = child.0.stderr.take().unwrap();
        let errors = thread::spawn(move || {
            let mut text = String::new();
            output.read_to_string(&mut text).unwrap();
            text
        });
        Self { child, lines, errors: Some(errors) }
    }

    /// Waits until it has printed so many lines more.
    pub fn next_lines(&self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.lines.recv_timeout(PATIENCE).expect("a line in time")).collect()
    }

    pub fn id(&self) -> u32 {
        self.child.0.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child.0), signal).unwrap();
    }

    /// Nobody reads its lines any more: the pipe is closed once it has written another.
    pub fn close_stdout(&mut self) {
        (_, self.lines) = sync_channel(0);
    }

    /// Waits for its end, and reads none of its lines any more.
    pub fn end_unread(mut self) -> ExitStatus {
        eventually("its end", || self.child.0.try_wait().unwrap().ok_or_else(|| "it runs".to_owned()))
    }

    /// Waits for its end; the lines are those that [`next_lines`](Self::next_lines) has not given.
    pub fn end(mut self) -> Ended {
        let mut lines = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => lines.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("troupe neither prints nor ends"),
            }
        }
        let status = self.child.0.wait().unwrap();
        Ended { status, lines, errors: self.errors.take().unwrap().join().unwrap() }
    }
}

/// A process that does not outlive the test.
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // an error: it has ended
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// All that `troupe consume` prints, to the byte, when it ends well.
pub fn printed_bytes(arguments: &[&str]) -> Vec<u8> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_troupe"));
    command.arg("consume").args(arguments).env_remove("RUST_LOG").stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// All that a class prints, to the byte, when it ends well.
pub fn printed_bytes_by(
    cluster: &Cluster,
    version: KafkaVersion,
    class: &str,
    arguments: &[&str],
) -> Vec<u8> {
    let mut child = cluster.java(version, class, arguments).unwrap();
    let mut printed = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut printed).unwrap();
    assert!(child.wait().unwrap().success(), "{arguments:?}: {}", log(&child));
    printed
}

/// Writes lines by `kafka.tools.ConsoleProducer`.
pub fn produce(cluster: &Cluster, topic: &str, lines: &[String]) {
    let (brokers, class) = (cluster.bootstrap(), "kafka.tools.ConsoleProducer");
    let arguments = ["--broker-list", &brokers, "--topic", topic, "--request-required-acks", "-1"];
    let mut producer = cluster.java(KafkaVersion::V1_1_1, class, &arguments).unwrap();
    // it prompts on stdout, a few bytes a line
    let output = read_lines(&mut producer);
    let mut input = producer.stdin.take().unwrap();
    input.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
    drop(input);
    assert!(producer.wait().unwrap().success(), "{}", log(&producer));
    output.join().unwrap();
}

/// A running `kafka.tools.ConsoleConsumer`: the old Scala consumer, with a white list, of one topic or more.
pub struct Scala {
    child: JavaChild,
    output: JoinHandle<Vec<String>>,
}

impl Scala {
    pub fn consume(cluster: &Cluster, group: &str, topic: &str, more: &[&str]) -> Self {
        Self::run(cluster, group, ["--topic", topic], more)
    }

    pub fn matching(cluster: &Cluster, group: &str, white_list: &str, more: &[&str]) -> Self {
        Self::run(cluster, group, ["--whitelist", white_list], more)
    }

    fn run(cluster: &Cluster, group: &str, topics: [&str; 2], more: &[&str]) -> Self {
        let (connect, group) = (cluster.zookeeper_connect(), format!("group.id={group}"));
        let [which, topics] = topics;
        let arguments = ["--zookeeper", &connect, which, topics, "--consumer-property", &group];
        let arguments = [&arguments[..], more].concat();
        let class = "kafka.tools.ConsoleConsumer";
        let mut child = cluster.java(KafkaVersion::V1_1_1, class, &arguments).unwrap();
        let output = read_lines(&mut child);
        Self { child, output }
    }

    pub fn term(&mut self) {
        self.child.term().unwrap();
    }

    /// Waits for its end. It flushes what it prints when it ends, not before.
    pub fn end(mut self) -> Ended {
        let status = self.child.wait().unwrap();
        Ended { status, lines: self.output.join().unwrap(), errors: log(&self.child) }
    }
}

fn read_lines(child: &mut JavaChild) -> JoinHandle<Vec<String>> {
    let output = BufReader::new(child.stdout.take().unwrap());
    thread::spawn(move || output.lines().map_while(Result::ok).collect())
}

fn log(child: &JavaChild) -> String {
    std::fs::read_to_string(child.log()).unwrap()
}

/// Whether it ended by itself, with an exit code and not by a signal.
pub fn exit_code(ended: &Ended) -> i32 {
    let signal = ended.status.signal();
    ended.status.code().unwrap_or_else(|| panic!("ended by signal {signal:?}: {}", ended.errors))
}
