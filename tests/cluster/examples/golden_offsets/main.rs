//! Writes what proto's tests of the offsets topic read: records of real brokers of each generation, with what Kafka's
//! own code of the same release says of each; and the partitions of groups, as Java computes them.
//!
//! ```text
//! proto/src/kafka/offsets_topic/tests/golden/regenerate
//! ```
//!
//! A line of records is: broker, partition, key and value in hex (null as `-`), and the three answers of
//! `Formatter.java`; separated by tabs. Needs a JDK and the jars of each release, which it fetches. Times, and names of
//! members, differ from run to run. Takes minutes; releases as arguments after `records` limit it to them.

mod requests;

use requests::{Commit, Form, commit, delete_group};
use std::io::{self, BufRead, BufReader, Write};
use std::sync::mpsc::{self, Receiver};
use std::{env, fmt::Write as _, fs, path::Path, thread, time::Duration};
use troupe_cluster::KafkaVersion::{self, *};
use troupe_cluster::{Cluster, ClusterError, JavaChild, JavaRecord, ProduceRecord};

type Result<T = (), E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// Of the offsets topic, which has fewer than by default.
const PARTITIONS: &str = "3";
/// Of which the golden partitions of groups are.
const COUNTS: [&str; 5] = ["50", "3", "8", "1", "2147483647"];
const TOPIC: &str = "orders";
/// How often to look for what a broker does when it likes to.
const ATTEMPTS: usize = 100;

fn main() -> Result {
    // the Java programs are named as they lie there
    env::set_current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/golden_offsets"))?;
    let mut arguments = env::args().skip(1);
    match arguments.next().as_deref() {
        Some("groups") => print_groups(),
        Some("records") => {
            let asked: Vec<KafkaVersion> =
                arguments.map(|version| version.parse()).collect::<Result<_, _>>()?;
            let all = vec![V0_8_2_2, V0_9_0_1, V0_10_2_2, V0_11_0_3, V1_1_1, V2_8_2, V3_9_1, V4_4_0];
            for version in if asked.is_empty() { all } else { asked } {
                eprintln!("{version}");
                Generation::start(version)?.write_all()?;
            }
            Ok(())
        }
        _ => Err("say what: groups, or records [RELEASE...]".into()),
    }
}

fn print_groups() -> Result {
    let cluster = Cluster::builder().brokers(0).start()?;
    let mut groups = cluster.java(V1_1_1, "Groups.java", &COUNTS)?;
    io::copy(&mut groups.stdout.take().ok_or("no output")?, &mut io::stdout())?;
    assert!(groups.wait()?.success(), "the groups are not all there");
    Ok(())
}

/// A broker, and Kafka's own programs of the same release.
struct Generation {
    version: KafkaVersion,
    cluster: Cluster,
}

impl Generation {
    fn start(version: KafkaVersion) -> Result<Self> {
        let cluster = Cluster::builder()
            .kafka(version)
            .broker_property("offsets.topic.num.partitions", PARTITIONS)
            .broker_property("offsets.retention.check.interval.ms", "1000")
            .start()?;
        cluster.create_topic(TOPIC, 2, 1)?;
        cluster.wait_for_leaders(TOPIC)?;
        Ok(Self { version, cluster })
    }

    fn write_all(&self) -> Result {
        self.commit_as_outsider();
        if self.version >= V0_9_0_1 {
            self.two_members("java")?;
        }
        if self.version >= V2_8_2 {
            self.one_member("static", "group.instance.id=static-1\n")?;
        }
        if self.version >= V4_4_0 {
            // its records are of kinds of their own
            self.one_member("next", "group.protocol=consumer\n")?;
        }
        let mut records = self.records_at_rest()?;
        if self.version < V0_9_0_1 {
            // its brokers begin to remove what has expired after 10 minutes, and let nobody else do it
            let expired = records.first().map(|record| JavaRecord { value: None, ..record.clone() });
            records.extend(expired);
        }
        self.print(&records)
    }

    /// What the old consumer commits, and others that are no members.
    fn commit_as_outsider(&self) {
        let now = if self.version >= V4_4_0 { Form::Kept(-1) } else { Form::Now };
        // of a hash below 0
        let old = Commit { group: "lcsnew", topic: TOPIC, offset: 5, metadata: "" };
        self.commit(&old, &now);
        self.commit(&Commit { offset: 1 << 53, metadata: "seen, größer €", ..old }, &now);
        self.commit(&Commit { group: "grüße-𝄞", ..old }, &now);
        if self.version >= V0_9_0_1 {
            self.commit(&Commit { group: "expiring", ..old }, &Form::Kept(1));
        }
        if self.version >= V2_8_2 {
            self.commit(&Commit { group: "epoch", offset: 55, ..old }, &Form::Epoch(7));
        }
        if self.version >= V1_1_1 {
            self.commit(&Commit { group: "deleted", ..old }, &now);
            assert_eq!(delete_group(&self.cluster.broker(0).address(), "deleted"), 0);
        }
    }

    /// Until the coordinator is there and has taken it.
    fn commit(&self, it: &Commit, form: &Form) {
        let mut code = 0;
        for _ in 0..ATTEMPTS {
            code = commit(&self.cluster.broker(0).address(), it, form);
            if code == 0 {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
        panic!("{} takes no offset of {}: error code {code}", self.version, it.group);
    }

    /// One comes, another comes, and both leave.
    fn two_members(&self, group: &str) -> Result {
        let mut first = Member::start(self, group, "first", "")?;
        self.feed(&first)?;
        let mut second = Member::start(self, group, "second", "")?;
        self.feed(&second)?;
        second.leave()?;
        first.leave()
    }

    fn one_member(&self, group: &str, properties: &str) -> Result {
        let mut member = Member::start(self, group, group, properties)?;
        self.feed(&member)?;
        member.leave()
    }

    /// Writes records to both partitions until the member reads one.
    fn feed(&self, member: &Member) -> Result {
        for _ in 0..3 * ATTEMPTS {
            self.cluster.produce(TOPIC, (0..2).map(|n| ProduceRecord::value(n.to_string())))?;
            if member.lines.recv_timeout(Duration::from_millis(200)).is_ok() {
                return Ok(());
            }
        }
        Err(format!("a member of {} reads nothing", self.version).into())
    }

    /// All of the topic, once something has expired (as far as it does) and nothing more comes.
    fn records_at_rest(&self) -> Result<Vec<JavaRecord>, ClusterError> {
        let mut before = Vec::new();
        for _ in 0..ATTEMPTS {
            let records = self.cluster.java_consume("__consumer_offsets", &[])?;
            let expired = records.iter().any(|record| record.value.is_none());
            if records == before && (expired || self.version < V0_9_0_1) {
                return Ok(records);
            }
            before = records;
            thread::sleep(Duration::from_secs(1));
        }
        let version = self.version;
        panic!("nothing has expired on {version}, or it does not come to rest: {before:#?}");
    }

    fn formatters(&self) -> [&'static str; 3] {
        match self.version {
            V0_8_2_2 => ["kafka.server.OffsetManager$OffsetsMessageFormatter", "-", "-"],
            V0_9_0_1 | V0_10_2_2 => [
                "kafka.coordinator.GroupMetadataManager$OffsetsMessageFormatter",
                "kafka.coordinator.GroupMetadataManager$GroupMetadataMessageFormatter",
                "kafka.coordinator.GroupMetadataManager",
            ],
            old if old <= V3_9_1 => [
                "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter",
                "kafka.coordinator.group.GroupMetadataManager$GroupMetadataMessageFormatter",
                "kafka.coordinator.group.GroupMetadataManager",
            ],
            _ => [
                "org.apache.kafka.tools.consumer.OffsetsMessageFormatter",
                "org.apache.kafka.tools.consumer.GroupMetadataMessageFormatter",
                "org.apache.kafka.coordinator.group.generated.GroupMetadataValue",
            ],
        }
    }

    fn print(&self, records: &[JavaRecord]) -> Result {
        let mut formatter = self.cluster.java(self.version, "Formatter.java", &self.formatters())?;
        let mut stdin = formatter.stdin.take().ok_or("no input")?;
        let mut lines = BufReader::new(formatter.stdout.take().ok_or("no output")?).lines();
        for record in records {
            let (key, value) = (hex(record.key.as_deref()), hex(record.value.as_deref()));
            writeln!(stdin, "{key}\t{value}")?;
            let said = lines.next().ok_or_else(|| {
                let log = fs::read_to_string(formatter.log()).unwrap_or_default();
                format!("no answer to {key} {value} of {}: {log}", self.version)
            })??;
            println!("{}\t{}\t{key}\t{value}\t{said}", self.version, record.partition);
        }
        Ok(())
    }
}

/// Kafka's console consumer, of Kafka's own group protocol.
struct Member {
    child: JavaChild,
    lines: Receiver<String>,
}

impl Member {
    fn start(of: &Generation, group: &str, client: &str, properties: &str) -> Result<Self> {
        let file = of.cluster.folder().join(format!("{client}.properties"));
        // the only commits are those of rebalances and of the end
        let text =
            format!("group.id={group}\nclient.id={client}\nauto.commit.interval.ms=600000\n{properties}");
        fs::write(&file, text)?;
        let (bootstrap, file) = (of.cluster.bootstrap(), file.display().to_string());
        let mut arguments = vec!["--bootstrap-server", &bootstrap, "--topic", TOPIC, "--from-beginning"];
        arguments.extend(["--consumer.config", &file]);
        if of.version == V0_9_0_1 {
            arguments.push("--new-consumer");
        }
        let class = match of.version {
            old if old <= V2_8_2 => "kafka.tools.ConsoleConsumer",
            _ => "org.apache.kafka.tools.consumer.ConsoleConsumer",
        };
        let mut child = of.cluster.java(of.version, class, &arguments)?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let (send, lines) = mpsc::channel();
        thread::spawn(move || {
            // beside its records it may print what it thinks of its options
            let lines = output.lines().map_while(Result::ok);
            lines.filter(|line| line.parse::<u64>().is_ok()).try_for_each(|line| send.send(line))
        });
        Ok(Self { child, lines })
    }

    fn leave(&mut self) -> Result {
        self.child.term()?;
        self.child.wait()?;
        Ok(())
    }
}

fn hex(bytes: Option<&[u8]>) -> String {
    let Some(bytes) = bytes else { return "-".to_owned() };
    let mut text = String::new();
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
