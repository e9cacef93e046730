//! Writes the golden logs that proto's tests read: what producers of each generation wrote, as it lies in the segment
//! files of a broker of that generation, and what Kafka's own consumer reads from it.
//!
//! ```text
//! proto/src/kafka/records/tests/golden/regenerate
//! ```
//!
//! One line per log: broker, producer, name, timestamp type, the segments in hex, and each record as
//! `offset@timestamp:key=value[headers]`. Needs a JDK and the jars of each release, which it fetches. Times of the
//! broker and ids of producers differ from run to run. Takes minutes; releases as arguments limit it to them.

use std::{fmt::Write as _, fs, thread, time::Duration};
use troupe_cluster::KafkaVersion::{self, *};
use troupe_cluster::{Cluster, ClusterError, JavaProducer, JavaRecord, entries};

type Result<T = (), E = ClusterError> = std::result::Result<T, E>;

/// Some time in 2017.
const TIME: i64 = 1_500_000_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let asked: Vec<KafkaVersion> =
        std::env::args().skip(1).map(|version| version.parse()).collect::<Result<_, _>>()?;
    let all = vec![V0_8_2_2, V0_9_0_1, V0_10_2_2, V0_11_0_3, V1_1_1, V2_8_2, V3_9_1, V4_4_0];
    for version in if asked.is_empty() { all } else { asked } {
        eprintln!("{version}");
        Generation::start(version)?.write_all()?;
    }
    Ok(())
}

/// How often the five records of a compacted log are written.
const ROUNDS: usize = 4;

/// A broker, and a producer of the same release.
struct Generation {
    version: KafkaVersion,
    cluster: Cluster,
    producer: JavaProducer,
}

impl Generation {
    fn start(version: KafkaVersion) -> Result<Self> {
        // all acknowledged records are in one batch, as far as the linger goes, and compaction does not wait
        let cluster = Cluster::builder()
            .kafka(version)
            // the records are older than what a broker keeps
            .broker_property("log.retention.hours", "1000000")
            .broker_property("log.cleaner.enable", "true")
            .broker_property("log.cleaner.backoff.ms", "100")
            .broker_property("log.cleaner.dedupe.buffer.size", "4000000")
            .start()?;
        let producer = cluster.java_producer(version, &[])?;
        Ok(Self { version, cluster, producer })
    }

    fn write_all(&mut self) -> Result {
        let codecs: &[&str] = match self.version {
            version if version >= V2_8_2 => &["none", "gzip", "snappy", "lz4", "zstd"],
            _ => &["none", "gzip", "snappy", "lz4"],
        };
        for codec in codecs {
            self.write(codec, &[], codec)?;
            if *codec != "none" && self.version >= V0_10_2_2 {
                self.write(codec, &[("message.timestamp.type", "LogAppendTime")], "logappend")?;
            }
            if self.version == V0_10_2_2 {
                // what the broker makes of magic 1 for older consumers
                self.write(codec, &[("message.format.version", "0.9.0")], "format-0.9")?;
            }
        }
        if self.version >= V0_11_0_3 {
            self.write_transactions()?;
        }
        if self.version == V1_1_1 {
            self.write_mixed()?;
        }
        if self.version > V3_9_1 {
            return Ok(()); // its segments have at least 1 MiB, and the last is never compacted
        }
        self.write_compacted("none")?;
        self.write_compacted("gzip")
    }

    /// A topic of one partition, and the producer ready for it.
    fn topic(&mut self, name: &str, configs: &[(&str, &str)], properties: &[(&str, &str)]) -> Result {
        self.cluster.create_topic_with(name, 1, 1, configs)?;
        self.cluster.wait_for_leaders(name)?;
        let mut all = vec![("linger.ms", "200"), ("acks", "all")];
        all.extend(properties);
        self.producer.configure(&all).map(drop)
    }

    fn write(&mut self, codec: &str, configs: &[(&str, &str)], name: &str) -> Result {
        let name = if name == codec { codec.to_owned() } else { format!("{codec}-{name}") };
        self.topic(&name, configs, &[("compression.type", codec)])?;
        for record in self.records() {
            self.producer.send(&name, &record)?;
        }
        self.producer.flush()?;
        self.print(&name, &[], &name)
    }

    /// Each way that a key or value can be, headers where there are any, and one record that compresses.
    fn records(&self) -> Vec<JavaRecord> {
        let long = "v".repeat(300);
        let mut records = [
            (Some("k"), Some("one")),
            (None, Some("two")),
            (Some(""), Some("")),
            (Some("gone"), None),
            (Some("long"), Some(long.as_str())),
        ]
        .map(|(key, value)| self.record(key, value))
        .to_vec();
        for (index, record) in records.iter_mut().enumerate() {
            record.timestamp = record.timestamp.map(|time| time + index as i64);
        }
        if self.version >= V0_11_0_3 {
            records[1].headers = vec![
                ("h".to_owned(), Some(b"1".to_vec())),
                ("n".to_owned(), None),
                ("h".to_owned(), Some(Vec::new())),
            ];
        }
        records
    }

    fn record(&self, key: Option<&str>, value: Option<&str>) -> JavaRecord {
        let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
        JavaRecord {
            timestamp: (self.version >= V0_10_2_2).then_some(TIME),
            key: bytes(key),
            value: bytes(value),
            ..JavaRecord::default()
        }
    }

    /// Transactions that end either way, one of each batch by batch, and a record of none.
    fn write_transactions(&mut self) -> Result {
        let name = "transactions";
        self.topic(name, &[], &[("transactional.id", "t"), ("compression.type", "snappy")])?;
        for (transaction, commit) in [(0, true), (1, false), (2, false), (3, true)] {
            self.producer.begin()?;
            for part in 0..2 {
                let value = format!("{transaction}-{part}");
                self.producer.send(name, &self.record(Some("k"), Some(&value)))?;
                self.producer.flush()?;
            }
            if commit { self.producer.commit().map(drop)? } else { self.producer.abort()? }
        }
        self.producer.configure(&[("acks", "all")])?;
        self.producer.send(name, &self.record(Some("k"), Some("none")))?;
        self.producer.flush()?;
        self.print(name, &[], name)?;
        self.print(name, &[("isolation.level", "read_committed")], "transactions-committed")
    }

    /// A log that has lived through all formats, plain and compressed.
    fn write_mixed(&mut self) -> Result {
        let name = "mixed";
        self.cluster.create_topic_with(name, 2, 1, &[("message.format.version", "0.9.0")])?;
        self.cluster.wait_for_leaders(name)?;
        for (magic, format) in ["0.9.0", "0.10.0", "1.1"].into_iter().enumerate() {
            self.alter(name, &format!("message.format.version={format}"))?;
            self.wait_for_format(name, magic as u8)?;
            for codec in ["none", "gzip"] {
                self.producer.configure(&[
                    ("linger.ms", "200"),
                    ("acks", "all"),
                    ("compression.type", codec),
                ])?;
                for record in self.records() {
                    // what has no headers of its own keeps none in the older formats
                    let headers = if magic == 2 { record.headers } else { Vec::new() };
                    self.producer.send(name, &JavaRecord { headers, ..record })?;
                }
                self.producer.flush()?;
            }
        }
        self.print(name, &[], name)
    }

    /// Writes to the second partition, which is not printed, until its broker does so in this format.
    fn wait_for_format(&mut self, topic: &str, magic: u8) -> Result {
        let probe = JavaRecord { partition: 1, ..self.record(None, Some("probe")) };
        for _ in 0..1000 {
            self.producer.send(topic, &probe)?;
            self.producer.flush()?;
            if entries(&self.log(topic, 1)).last().is_some_and(|entry| entry.0 == magic) {
                return Ok(());
            }
        }
        panic!("the broker has not heard of format {magic} of {topic}");
    }

    /// Sets a property of a topic, of which the broker hears some time later.
    fn alter(&self, topic: &str, property: &str) -> Result {
        let zookeeper = self.cluster.zookeeper_connect();
        let entity = ["--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", property];
        let arguments: Vec<_> = ["--zookeeper", &zookeeper].into_iter().chain(entity).collect();
        let mut command = self.cluster.java(self.version, "kafka.admin.ConfigCommand", &arguments)?;
        command.stdout = None;
        assert!(command.wait()?.success(), "{property} is not taken");
        Ok(())
    }

    /// A log whose first segments the cleaner has gone through: gaps, and entries without records.
    fn write_compacted(&mut self, codec: &str) -> Result {
        let name = &format!("{codec}-compacted");
        let configs = [
            ("cleanup.policy", "compact"),
            ("segment.bytes", "400"),
            ("min.cleanable.dirty.ratio", "0.01"),
            ("delete.retention.ms", "3600000"),
        ];
        self.topic(name, &configs, &[("compression.type", codec)])?;
        for round in 0..ROUNDS {
            // only the last of each key stays, of the key that is no more a tombstone
            for key in ["a", "b", &format!("c{round}"), "d", "a"] {
                let value = (key != "d").then(|| format!("{key}{round}"));
                self.producer.send(name, &self.record(Some(key), value.as_deref()))?;
            }
            self.producer.flush()?;
        }
        // a bounded wait for what the broker does when it likes to
        for _ in 0..20 {
            self.wait_for_rest(name);
            if self.cluster.java_consume(name, &[])?.len() < 5 * ROUNDS {
                return self.print(name, &[], name);
            }
        }
        panic!("the cleaner of {} left all of {name}", self.version);
    }

    /// Until the log has stayed the same for 2 s.
    fn wait_for_rest(&self, topic: &str) {
        let (mut log, mut unchanged) = (Vec::new(), 0);
        while unchanged < 20 {
            thread::sleep(Duration::from_millis(100));
            let now = self.log(topic, 0);
            unchanged = if now == log { unchanged + 1 } else { 0 };
            log = now;
        }
    }

    /// All segments of a partition, in order.
    fn log(&self, topic: &str, partition: i32) -> Vec<u8> {
        let folder = self.cluster.broker(0).data().join(format!("{topic}-{partition}"));
        let files = fs::read_dir(&folder).into_iter().flatten().flatten().map(|file| file.path());
        let mut segments: Vec<_> =
            files.filter(|path| path.extension().is_some_and(|extension| extension == "log")).collect();
        segments.sort();
        segments.iter().flat_map(|path| fs::read(path).unwrap_or_default()).collect()
    }

    fn print(&self, topic: &str, properties: &[(&str, &str)], name: &str) -> Result {
        let mut records = self.cluster.java_consume(topic, properties)?;
        records.retain(|record| record.partition == 0);
        assert!(!records.is_empty(), "{topic} of {} is empty", self.version);
        let version = self.version;
        let kind = records.first().map_or("NoTimestampType", |record| &record.timestamp_type);
        let kind = if kind.is_empty() { "NoTimestampType" } else { kind };
        let mut line = format!("{version} {version} {name} {kind} ");
        for byte in self.log(topic, 0) {
            let _ = write!(line, "{byte:02x}");
        }
        for record in records {
            let (key, value) = (text(record.key), text(record.value));
            let _ = write!(line, " {}@{}:{key}={value}[", record.offset, record.timestamp.unwrap_or(-1));
            for (name, value) in record.headers {
                let _ = write!(line, "{name}={};", text(value));
            }
            line.push(']');
        }
        println!("{line}");
        Ok(())
    }
}

fn text(bytes: Option<Vec<u8>>) -> String {
    bytes.map_or("null".to_owned(), |bytes| String::from_utf8_lossy(&bytes).replace(' ', "_"))
}
