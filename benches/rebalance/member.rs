//! A member as a process of its own, and when it delivered what.

use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};
use troupe_cluster::{Cluster, KafkaVersion, cache_root};

use crate::{Arguments, Result, TOPIC};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    Troupe,
    Scala,
}

impl Kind {
    pub const ALL: [Self; 2] = [Self::Troupe, Self::Scala];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Troupe => "troupe",
            Self::Scala => "scala",
        })
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.to_string() == text);
        found.ok_or_else(|| "one of troupe, scala".to_owned())
    }
}

/// Microseconds since the epoch: the clock that ZooKeeper's log goes by.
pub fn now() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_micros()).unwrap_or_default()
}

/// A record that came out of a member.
pub struct Delivery {
    pub partition: i32,
    /// One more than that of the record before it.
    pub number: u64,
    pub produced: i64,
    pub at: i64,
}

type Delivered = Vec<Delivery>;

/// Killed when dropped.
pub struct Member {
    child: Child,
    delivered: Arc<Mutex<Delivered>>,
}

impl Member {
    /// Starts the process. All is as by default, but for the name.
    pub fn start(
        cluster: &Cluster,
        arguments: &Arguments,
        kind: Kind,
        group: &str,
        name: &str,
    ) -> Result<Self> {
        let mut command = match kind {
            Kind::Troupe => troupe(cluster, arguments, group, name),
            Kind::Scala => scala(cluster, group, name)?,
        };
        let errors = if arguments.log.is_some() { Stdio::inherit() } else { Stdio::null() };
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors).spawn()?;
        let delivered = Arc::default();
        if let Some(output) = child.stdout.take() {
            let delivered = Arc::clone(&delivered);
            std::thread::spawn(move || note(BufReader::new(output), &delivered));
        }
        Ok(Self { child, delivered })
    }

    /// All that has come out of it, in order.
    pub fn delivered(&self) -> MutexGuard<'_, Delivered> {
        lock(&self.delivered)
    }

    /// On TERM it leaves its group.
    pub fn term(&self) -> Result {
        let pid = Pid::from_raw(i32::try_from(self.child.id())?).ok_or("no process id")?;
        Ok(kill_process(pid, Signal::TERM)?)
    }

    pub fn kill(&mut self) -> Result {
        Ok(self.child.kill()?)
    }

    pub fn wait(&mut self) -> Result {
        self.child.wait()?;
        Ok(())
    }

    pub fn has_ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // an error: it has ended
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lock(delivered: &Mutex<Delivered>) -> MutexGuard<'_, Delivered> {
    delivered.lock().unwrap_or_else(PoisonError::into_inner)
}

fn note(mut output: impl BufRead, delivered: &Mutex<Delivered>) {
    let mut line = String::new();
    while output.read_line(&mut line).is_ok_and(|count| count > 0) {
        let at = now();
        // what else a tool prints is no record
        lock(delivered).extend(parse(&line, at));
        line.clear();
    }
}

/// A value as the producer makes them.
fn parse(line: &str, at: i64) -> Option<Delivery> {
    let mut numbers = line.trim_end().split(':');
    Some(Delivery {
        partition: numbers.next()?.parse().ok()?,
        number: numbers.next()?.parse().ok()?,
        produced: numbers.next()?.parse().ok()?,
        at,
    })
}

fn troupe(cluster: &Cluster, arguments: &Arguments, group: &str, name: &str) -> Command {
    let mut command = Command::new(&arguments.troupe);
    command.args(["consume", "--zookeeper", &cluster.zookeeper_connect()]);
    command.args(["--group", group, "--topic", TOPIC, "--property", &format!("consumer.id={name}")]);
    for property in &arguments.property {
        command.args(["--property", property]);
    }
    command.env("RUST_LOG", arguments.log.as_deref().unwrap_or("off"));
    command
}

/// With the flags of Kafka's own scripts.
fn scala(cluster: &Cluster, group: &str, name: &str) -> Result<Command> {
    let version = KafkaVersion::V1_1_1;
    let file = cluster.folder().join(format!("{group}-{name}.properties"));
    // on a busy machine its default of 4 attempts would end it for good; this changes no time before that
    fs::write(&file, format!("group.id={group}\nconsumer.id={name}\nrebalance.max.retries=20\n"))?;
    let mut command = Command::new("java");
    command.args(["-server", "-Xmx512m", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-cp"]);
    command.arg(cache_root().join(version.to_string()).join("*"));
    command.args(["kafka.tools.ConsoleConsumer", "--zookeeper", &cluster.zookeeper_connect()]);
    command.args(["--topic", TOPIC, "--consumer.config"]).arg(file);
    Ok(command)
}
