//! The old Scala consumer as a member: Kafka's console consumer.

use std::fs;
use std::io::{BufRead, BufReader};
use std::thread::{self, JoinHandle};

use troupe_cluster::{Cluster, JavaChild, KafkaVersion};

use super::wait::until;

/// A running console consumer of a topic that holds [placed](super::load::placed) records; killed when dropped.
pub struct Scala {
    child: JavaChild,
    output: Option<JoinHandle<Vec<String>>>,
}

impl Scala {
    /// Starts it with a `consumer.id`, and with lines of properties that go before. Where there is no offset it begins at the end: only who comes first may have
    /// `auto.offset.reset=smallest` in `more`, for the console refuses that once the group has offsets.
    pub fn join(cluster: &Cluster, version: KafkaVersion, group: &str, member: &str, more: &str) -> Self {
        Self::join_matching(cluster, version, group, group, member, more)
    }

    /// As [`join`](Self::join), of all topics that a white list allows.
    pub fn join_matching(
        cluster: &Cluster,
        version: KafkaVersion,
        group: &str,
        filter: &str,
        member: &str,
        more: &str,
    ) -> Self {
        let file = cluster.folder().join(format!("{group}-{member}.properties"));
        // patient, since it gives up for good after its last attempt, and a machine under load is slow
        let text = format!(
            "group.id={group}\nconsumer.id={member}\nzookeeper.session.timeout.ms=20000\n\
             zookeeper.connection.timeout.ms=30000\nrebalance.max.retries=20\nrebalance.backoff.ms=1000\n\
             auto.commit.interval.ms=200\n{more}\n"
        );
        fs::write(&file, text).expect("a file can be written");
        let (connect, file) = (cluster.zookeeper_connect(), file.display().to_string());
        let arguments = ["--zookeeper", &connect, "--whitelist", filter, "--consumer.config", &file];
        let mut child =
            cluster.java(version, "kafka.tools.ConsoleConsumer", &arguments).expect("a consumer starts");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let output = thread::spawn(move || lines.map_while(Result::ok).collect());
        Self { child, output: Some(output) }
    }

    /// Waits for a line of its log with this.
    #[track_caller]
    pub fn wait_for_log(&self, part: &str) {
        until(&format!("log of {part:?}"), || {
            let log = fs::read_to_string(self.child.log()).unwrap_or_default();
            if log.lines().any(|line| line.contains(part)) { Ok(()) } else { Err(log) }
        });
    }

    /// Ends it by SIGTERM; partition and offset of what it has printed, in order.
    pub fn leave(mut self) -> Vec<(i32, i64)> {
        self.child.term().expect("it runs");
        self.child.wait().expect("it ends");
        let lines = self.output.take().expect("it ends once").join().expect("its output is read");
        let place = |line: String| {
            let place = line
                .split_once(':')
                .and_then(|(partition, offset)| Some((partition.parse().ok()?, offset.parse().ok()?)));
            place.unwrap_or_else(|| panic!("odd line: {line:?}"))
        };
        lines.into_iter().map(place).collect()
    }
}

impl Drop for Scala {
    fn drop(&mut self) {
        if thread::panicking() {
            let log = self.child.log();
            eprintln!("--- {}\n{}", log.display(), fs::read_to_string(log).unwrap_or_default());
        }
    }
}
