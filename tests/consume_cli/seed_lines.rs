//! The command lines of the second document that we were asked to implement, typed into a shell as they stand there: only
//! the program's name is another, and the addresses are those of the cluster. Each is compared with the real tool.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::process::Signal;
use troupe_cluster::{Cluster, KafkaVersion};

use crate::programs::{Troupe, exit_code, printed_bytes_by};

const CONSUMER: &str = "kafka.tools.ConsoleConsumer";
const SHELL: &str = "kafka.tools.SimpleConsumerShell";

/// A cluster whose offsets topic has 50 partitions, and a folder with config/consumer.properties.
struct Site {
    cluster: Cluster,
    version: KafkaVersion,
    folder: PathBuf,
    /// A group whose offsets are in partition 11.
    in_11: String,
}

fn before_0_11() -> &'static Site {
    static SITE: OnceLock<Site> = OnceLock::new();
    SITE.get_or_init(|| Site::of(KafkaVersion::V0_10_2_2))
}

fn since_0_11() -> &'static Site {
    static SITE: OnceLock<Site> = OnceLock::new();
    SITE.get_or_init(|| Site::of(KafkaVersion::V1_1_1))
}

impl Site {
    fn of(version: KafkaVersion) -> Self {
        let cluster = Cluster::builder().kafka(version).broker_property("offsets.topic.num.partitions", "50");
        let cluster = cluster.start().unwrap();
        let folder = cluster.folder().join("seed-lines");
        std::fs::create_dir_all(folder.join("config")).unwrap();
        let in_11 = (0..).map(|n| format!("seed-lines-{n}")).find(|group| hash_code(group).abs() % 50 == 11);
        let in_11 = in_11.unwrap();
        cluster.create_topic("seed-lines", 4, 1).unwrap();
        cluster.wait_for_leaders("seed-lines").unwrap();
        for group in ["console-consumer-50059", &in_11] {
            cluster.client().commit_offset(group, "seed-lines", 3, 42).unwrap();
        }
        Self { cluster, version, folder, in_11 }
    }

    /// The file of step (1) of the document, in a group of its own.
    fn consumer_properties(&self, group: &str) {
        let text = format!(
            "zookeeper.connect=127.0.0.1:2181\nzookeeper.connection.timeout.ms=6000\ngroup.id={group}\n\n\
             #是否排除内部的主题\nexclude.internal.topics=false\n"
        );
        std::fs::write(self.folder.join("config/consumer.properties"), text).unwrap();
    }

    /// Runs a line of the document.
    fn run(&self, line: &str, script: &str, ours: &str) -> Troupe {
        let mut line = line.replace(&format!("bin/{script}"), &format!("exec \"$TROUPE\" {ours}"));
        let (bootstrap, connect) = (self.cluster.bootstrap(), self.cluster.zookeeper_connect());
        for brokers in ["localhost:9092,localhost:9093,localhost:9094", "localhost:9092"] {
            line = line.replace(brokers, &bootstrap);
        }
        let line = line.replace("localhost:2181", &connect);
        assert!(!line.contains("localhost") && !line.contains("bin/"), "{line}");
        Troupe::shell(&line, &self.folder)
    }

    /// Lines of the two groups, of a real tool that ends by itself.
    fn real(&self, class: &str, arguments: &[&str]) -> BTreeSet<String> {
        let printed = printed_bytes_by(&self.cluster, self.version, class, arguments);
        let lines = String::from_utf8(printed).unwrap();
        lines.lines().filter(|line| self.is_ours(line)).map(str::to_owned).collect()
    }

    fn is_ours(&self, line: &str) -> bool {
        ["console-consumer-50059", &self.in_11].iter().any(|group| line.starts_with(&format!("[{group},")))
    }

    /// Ours waits for more at the end, as theirs does: until all of `expected` has come. Lines of others may be between.
    fn assert_prints(&self, troupe: Troupe, expected: &BTreeSet<String>) {
        let mut printed = BTreeSet::new();
        while !expected.is_subset(&printed) {
            printed.extend(troupe.next_lines(1).into_iter().filter(|line| self.is_ours(line)));
        }
        assert_eq!(&printed, expected);
        troupe.signal(Signal::INT);
        assert_eq!(exit_code(&troupe.end()), 0);
    }

    /// The offsets topic through the console consumer.
    fn assert_console_consumer(&self, line: &str, class: &str) {
        let connect = self.cluster.zookeeper_connect();
        self.consumer_properties(&format!("seed-real-{}", self.version));
        let file = self.folder.join("config/consumer.properties");
        let arguments = ["--topic", "__consumer_offsets", "--zookeeper", &connect, "--formatter", class];
        let more = ["--consumer.config", file.to_str().unwrap(), "--from-beginning", "--timeout-ms", "5000"];
        let expected = self.real(CONSUMER, &[&arguments[..], &more].concat());
        assert!(expected.len() >= 2, "{expected:?}");
        self.consumer_properties(&format!("seed-ours-{}", self.version));
        let troupe = self.run(line, "kafka-console-consumer.sh", "consume");
        self.assert_prints(troupe, &expected);
    }

    /// Partition 11 of the offsets topic through the simple consumer shell.
    fn assert_simple_consumer_shell(&self, line: &str, class: &str) {
        let bootstrap = self.cluster.bootstrap();
        let arguments = ["--topic", "__consumer_offsets", "--partition", "11", "--broker-list", &bootstrap];
        let expected =
            self.real(SHELL, &[&arguments[..], &["--formatter", class, "--no-wait-at-logend"]].concat());
        assert!(!expected.is_empty());
        assert!(expected.iter().all(|line| line.starts_with(&format!("[{},", self.in_11))), "{expected:?}");
        let troupe = self.run(line, "kafka-simple-consumer-shell.sh", "consume");
        self.assert_prints(troupe, &expected);
    }
}

/// Java's, of a text of ASCII.
fn hash_code(text: &str) -> i32 {
    text.bytes().fold(0, |hash: i32, byte| hash.wrapping_mul(31).wrapping_add(byte.into()))
}

#[test]
fn the_offsets_topic_before_0_11() {
    before_0_11().assert_console_consumer(
        r#"bin/kafka-console-consumer.sh --topic __consumer_offsets --zookeeper localhost:2181 --formatter "kafka.coordinator.GroupMetadataManager\$OffsetsMessageFormatter" --consumer.config config/consumer.properties --from-beginning"#,
        "kafka.coordinator.GroupMetadataManager$OffsetsMessageFormatter",
    );
}

#[test]
fn the_offsets_topic_since_0_11() {
    since_0_11().assert_console_consumer(
        r#"bin/kafka-console-consumer.sh --topic __consumer_offsets --zookeeper localhost:2181 --formatter "kafka.coordinator.group.GroupMetadataManager\$OffsetsMessageFormatter" --consumer.config config/consumer.properties --from-beginning"#,
        "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter",
    );
}

#[test]
fn the_groups_that_brokers_know() {
    let site = since_0_11();
    let line = "bin/kafka-consumer-groups.sh --bootstrap-server localhost:9092,localhost:9093,localhost:9094 --list --new-consumer";
    let class = "kafka.admin.ConsumerGroupCommand";
    let arguments = ["--bootstrap-server", &site.cluster.bootstrap(), "--list", "--new-consumer"];
    let theirs = String::from_utf8(printed_bytes_by(&site.cluster, site.version, class, &arguments)).unwrap();
    let ended = site.run(line, "kafka-consumer-groups.sh", "groups").end();
    let ours = ended.printed();
    for group in ["console-consumer-50059", &site.in_11] {
        assert!(theirs.lines().any(|line| line == group), "{theirs}");
        assert!(ours.iter().any(|line| line.split_whitespace().any(|word| word == group)), "{ours:?}");
    }
}

/// `Math.abs("console-consumer-50059".hashCode()) % 50=10`
#[test]
fn the_partition_of_a_group() {
    let site = since_0_11();
    let line = "exec \"$TROUPE\" offsets partition --group console-consumer-50059 --count 50";
    let printed = Troupe::shell(line, &site.folder).end().printed();
    assert!(printed.iter().any(|line| line.split_whitespace().any(|word| word == "10")), "{printed:?}");
    assert_eq!(hash_code("console-consumer-50059").abs() % 50, 10);
}

#[test]
fn a_partition_of_the_offsets_topic_before_0_11() {
    before_0_11().assert_simple_consumer_shell(
        r#"bin/kafka-simple-consumer-shell.sh --topic __consumer_offsets --partition 11 --broker-list localhost:9092 --formatter "kafka.coordinator.GroupMetadataManager\$OffsetsMessageFormatter""#,
        "kafka.coordinator.GroupMetadataManager$OffsetsMessageFormatter",
    );
}

#[test]
fn a_partition_of_the_offsets_topic_since_0_11() {
    since_0_11().assert_simple_consumer_shell(
        r#"bin/kafka-simple-consumer-shell.sh --topic __consumer_offsets --partition 11 --broker-list localhost:9092 --formatter "kafka.coordinator.group.GroupMetadataManager\$OffsetsMessageFormatter""#,
        "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter",
    );
}
