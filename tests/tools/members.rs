//! Members of groups, while tools look at them.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use troupe_cluster::{Cluster, JavaMember, KafkaVersion, ProduceRecord};

/// Starts from the beginning, and commits at once.
const PROPERTIES: [&str; 2] = ["auto.offset.reset=smallest", "auto.commit.interval.ms=100"];

/// A topic with so many records, spread evenly.
pub fn topic(cluster: &Cluster, name: &str, partitions: i32, records: usize) {
    cluster.create_topic(name, partitions, 1).unwrap();
    cluster.wait_for_leaders(name).unwrap();
    cluster.produce(name, (0..records).map(|n| ProduceRecord::value(format!("record {n}")))).unwrap();
}

/// A running `troupe consume`; killed when dropped.
pub struct Ours {
    child: Child,
    errors: Arc<Mutex<String>>,
}

impl Ours {
    pub fn join(cluster: &Cluster, group: &str, topic: &str, streams: u32, properties: &[&str]) -> Self {
        let (connect, streams) = (cluster.zookeeper_connect(), streams.to_string());
        let mut command = Command::new(env!("CARGO_BIN_EXE_troupe"));
        command.args(["consume", "--zookeeper", &connect, "--group", group, "--topic", topic]);
        command.args(["--threads", &streams]);
        for property in PROPERTIES.iter().chain(properties) {
            command.args(["--consumer-property", property]);
        }
        command.env_remove("RUST_LOG").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let errors = Arc::new(Mutex::new(String::new()));
        let (output, kept) = (BufReader::new(child.stderr.take().unwrap()), Arc::clone(&errors));
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                *kept.lock().unwrap() += &(line + "\n");
            }
        });
        Self { child, errors }
    }

    /// Ends it as Ctrl-C does, and waits.
    pub fn leave(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {}", self.errors.lock().unwrap());
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        // an error: it has ended
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A member by the old Scala consumer of a release, which has joined.
pub fn scala(
    cluster: &Cluster,
    version: KafkaVersion,
    group: &str,
    (topic, streams): (&str, u32),
    properties: &[&str],
) -> JavaMember {
    let group = format!("group.id={group}");
    let properties = [&[group.as_str()], &PROPERTIES[..], properties].concat();
    let journal = journal(cluster, &group);
    let mut member = cluster.old_member(version, (topic, streams), (&journal, "scala"), &properties).unwrap();
    member.join().unwrap();
    member
}

/// A member by Kafka's own consumer of a release, which has joined.
pub fn java(
    cluster: &Cluster,
    version: KafkaVersion,
    group: &str,
    topic: &str,
    properties: &[&str],
) -> JavaMember {
    let group = format!("group.id={group}");
    let own = [group.as_str(), "auto.offset.reset=earliest", "auto.commit.interval.ms=100"];
    let properties = [&own[..], properties].concat();
    let journal = journal(cluster, &group);
    let mut member = cluster.group_member(version, topic, (&journal, "java"), &properties).unwrap();
    member.join().unwrap();
    member
}

/// What they handle is of no interest here.
fn journal(cluster: &Cluster, group: &str) -> PathBuf {
    let name: String = group.chars().filter(char::is_ascii_alphanumeric).collect();
    cluster.folder().join(format!("{name}.journal"))
}
