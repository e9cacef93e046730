//! Who consumes, as a process of its own, and what it took.

use std::fmt::{self, Write as _};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use troupe_cluster::{Cluster, KafkaVersion, cache_root};

use crate::{PARTITIONS, Result, TOPIC, floor, troupe};

/// Says that the process is a contender; the job follows.
const CHILD: &str = "--contender";
/// The kernel's clock ticks per second in /proc: 100 on every Linux that Rust knows.
const TICKS: f64 = 100.0;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contender {
    Floor,
    Handle,
    Pull,
    Scala,
}

impl Contender {
    pub const ALL: [Self; 4] = [Self::Floor, Self::Handle, Self::Pull, Self::Scala];

    /// For the table.
    pub fn title(self) -> &'static str {
        match self {
            Self::Floor => "floor: fetch, walk, checksum",
            Self::Handle => "Troupe, handler actor one by one",
            Self::Pull => "Troupe, pulled stream",
            Self::Scala => "Scala consumer 1.1.1",
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Floor => "floor",
            Self::Handle => "handle",
            Self::Pull => "pull",
            Self::Scala => "scala",
        })
    }
}

impl FromStr for Contender {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let found = Self::ALL.into_iter().find(|contender| contender.to_string() == text);
        found.ok_or_else(|| "one of floor, handle, pull, scala".to_owned())
    }
}

/// What a contender has read, and the time from its first record to its last.
#[derive(Default)]
pub struct Tally {
    pub records: u64,
    pub bytes: u64,
    pub nanos: u128,
}

impl Tally {
    pub fn add(&mut self, value: Option<&[u8]>) {
        self.records += 1;
        self.bytes += value.map_or(0, |value| value.len() as u64);
    }
}

/// What one run took.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub records: u64,
    /// User and system time of the whole process, in seconds.
    pub cpu: f64,
    pub broker_cpu: f64,
    /// Records per second from the first record to the last.
    pub rate: f64,
    pub rss_mb: f64,
}

/// One run of one contender.
pub struct Job {
    pub contender: Contender,
    pub port: u16,
    pub zookeeper: String,
    pub group: String,
    pub per_partition: i64,
    pub streams: u32,
    /// For Troupe.
    pub properties: Vec<String>,
}

impl Job {
    /// What this process is to do, if it is a contender.
    pub fn of_child(arguments: &[String]) -> Result<Option<Self>> {
        let [_, child, contender, port, zookeeper, group, per_partition, streams, properties @ ..] =
            arguments
        else {
            return Ok(None);
        };
        if child != CHILD {
            return Ok(None);
        }
        Ok(Some(Self {
            contender: contender.parse()?,
            port: port.parse()?,
            zookeeper: zookeeper.clone(),
            group: group.clone(),
            per_partition: per_partition.parse()?,
            streams: streams.parse()?,
            properties: properties.to_vec(),
        }))
    }

    /// Consumes, in the contender's own process, and prints the tally.
    pub fn run(&self) -> Result {
        let tally = match self.contender {
            Contender::Floor => floor::consume(self.port, self.per_partition)?,
            Contender::Handle => troupe::handle(self)?,
            Contender::Pull => troupe::pull(self)?,
            Contender::Scala => return Err("that is a Java program".into()),
        };
        println!("{} {} {}", tally.records, tally.bytes, tally.nanos);
        Ok(())
    }

    fn command(&self, cluster: &Cluster, under: &str) -> Result<Command> {
        if self.contender == Contender::Scala {
            return self.scala(cluster);
        }
        let own = std::env::current_exe()?;
        let mut words = under.split_whitespace();
        let mut command = match words.next() {
            Some(program) => {
                let mut command = Command::new(program);
                command.args(words).arg(own);
                command
            }
            None => Command::new(own),
        };
        command.args([
            CHILD,
            &self.contender.to_string(),
            &self.port.to_string(),
            &self.zookeeper,
            &self.group,
        ]);
        command.args([self.per_partition.to_string(), self.streams.to_string()]).args(&self.properties);
        Ok(command)
    }

    /// The old consumer in the tool that counts and does not print, with the flags of Kafka's own scripts.
    fn scala(&self, cluster: &Cluster) -> Result<Command> {
        let version = KafkaVersion::V1_1_1;
        // has the jars fetched if they are missing
        cluster.java(version, "-version", &[])?.wait()?;
        let each = self.per_partition * i64::from(PARTITIONS) / i64::from(self.streams);
        let mut command = Command::new("java");
        command.args(["-server", "-Xmx512m", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-cp"]);
        command.arg(cache_root().join(version.to_string()).join("*"));
        command.args(["kafka.tools.ConsumerPerformance", "--hide-header", "--topic", TOPIC]);
        command.args(["--zookeeper", &self.zookeeper, "--group", &self.group]);
        command.args(["--messages", &each.to_string(), "--threads", &self.streams.to_string()]);
        command.stderr(Stdio::null());
        Ok(command)
    }

    /// Runs the contender as a process and waits for its end.
    pub fn measure(&self, cluster: &Cluster, under: &str) -> Result<Outcome> {
        let mut command = self.command(cluster, under)?;
        let broker = cluster.broker(0).pid().ok_or("the broker has ended")?;
        let (cpu_before, broker_before) = (cpu_of_children()?, cpu_of(broker)?);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let (said, rss_mb) = watch(child)?;
        let cpu = cpu_of_children()? - cpu_before;
        let broker_cpu = cpu_of(broker)? - broker_before;
        let (records, rate) = match self.contender {
            Contender::Scala => scala_result(&said)?,
            _ => own_result(&said)?,
        };
        let expected = self.per_partition as u64 * PARTITIONS as u64;
        if records != expected {
            return Err(format!("{} has read {records} records instead of {expected}", self.contender).into());
        }
        Ok(Outcome { records, cpu, broker_cpu, rate, rss_mb })
    }
}

/// Waits for the end; answers the output, and the most memory seen resident in MB.
fn watch(mut child: Child) -> Result<(String, f64)> {
    let mut rss_kb = 0.0;
    let status = loop {
        rss_kb = high_water_mark(child.id()).unwrap_or(rss_kb);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let mut said = String::new();
    if let Some(stdout) = child.stdout.take() {
        let _ = write!(said, "{}", std::io::read_to_string(stdout)?);
    }
    if status.success() { Ok((said, rss_kb / 1024.0)) } else { Err(format!("{status}: {said}").into()) }
}

fn high_water_mark(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Of all children that have been waited for.
fn cpu_of_children() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok((usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6)
}

/// Of a process that runs.
fn cpu_of(pid: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(") ").ok_or("no name in /proc stat")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    Ok((fields[11].parse::<f64>()? + fields[12].parse::<f64>()?) / TICKS)
}

fn own_result(said: &str) -> Result<(u64, f64)> {
    let line = said.lines().last().unwrap_or_default();
    let numbers: Vec<f64> = line.split(' ').map(str::parse).collect::<std::result::Result<_, _>>()?;
    let [records, _, nanos] = numbers[..] else { return Err(format!("no tally: {said}").into()) };
    Ok((records as u64, records / nanos * 1e9))
}

/// start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec
fn scala_result(said: &str) -> Result<(u64, f64)> {
    let line = said.lines().last().unwrap_or_default();
    let fields: Vec<&str> = line.split(", ").collect();
    let [.., records, rate] = fields[..] else { return Err(format!("no result: {said}").into()) };
    Ok((records.trim().parse()?, rate.trim().parse()?))
}
