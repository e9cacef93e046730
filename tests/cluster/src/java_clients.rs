//! Kafka's own producer and consumers, driven line by line.

use crate::{Cluster, ClusterError, JavaChild, KafkaVersion};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{BufRead, BufReader, BufWriter, Write},
    path::Path,
    process::{ChildStdin, ChildStdout},
};

/// A record as Kafka's own clients write and read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JavaRecord {
    /// Its partition; -1 to let the producer choose.
    pub partition: i32,
    /// Its offset; not looked at when it is sent.
    pub offset: i64,
    /// Milliseconds since 1970, -1 as a consumer sees it where there is none. `None` lets the producer choose; releases
    /// before 0.10 take nothing else.
    pub timestamp: Option<i64>,
    /// What set the timestamp: `CreateTime`, `LogAppendTime` or `NoTimestampType`; not looked at when it is sent.
    pub timestamp_type: String,
    /// The key.
    pub key: Option<Vec<u8>>,
    /// The value; `None` is a tombstone.
    pub value: Option<Vec<u8>>,
    /// Names and values; releases before 0.11 take none.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

/// Kafka's own producer of a release in a Java process, which ends when this is dropped. See
/// [`Cluster::java_producer`](crate::Cluster::java_producer).
#[derive(Debug)]
pub struct JavaProducer {
    child: JavaChild,
    orders: BufWriter<ChildStdin>,
    answers: BufReader<ChildStdout>,
    bootstrap: String,
}

impl JavaProducer {
    pub(crate) fn new(mut child: JavaChild, bootstrap: String) -> Result<Self, ClusterError> {
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(child.error("has no pipes"));
        };
        Ok(Self { child, orders: BufWriter::new(stdin), answers: BufReader::new(stdout), bootstrap })
    }

    /// Closes the producer, which sends what it has, and makes one with other properties, such as `compression.type`;
    /// with a `transactional.id` it initializes its transactions. Returns as [`JavaProducer::flush`].
    ///
    /// # Errors
    /// Those of [`JavaProducer::flush`], or the producer's own words about a property.
    pub fn configure(&mut self, properties: &[(&str, &str)]) -> Result<u64, ClusterError> {
        let mut order = format!("producer\tbootstrap.servers={}", self.bootstrap);
        for (key, value) in properties {
            let _ = write!(order, "\t{key}={value}");
        }
        self.obey(&order)
    }

    /// Sends a record without waiting for its acknowledgement; an error shows at the next other call.
    ///
    /// # Errors
    /// [`ClusterError::Server`] if the process has ended.
    pub fn send(&mut self, topic: &str, record: &JavaRecord) -> Result<(), ClusterError> {
        let timestamp = record.timestamp.map_or_else(|| NULL.to_owned(), |timestamp| timestamp.to_string());
        let headers = record.headers.iter();
        let headers: Vec<String> = headers
            .map(|(name, value)| format!("{}:{}", hex(Some(name.as_bytes())), hex(value.as_deref())))
            .collect();
        let (key, value) = (hex(record.key.as_deref()), hex(record.value.as_deref()));
        let (partition, headers) = (record.partition, headers.join(","));
        self.order(&format!("send\t{topic}\t{partition}\t{timestamp}\t{key}\t{value}\t{headers}"))
    }

    /// Waits until all that was sent is acknowledged, and returns the number of records since the last such call.
    ///
    /// # Errors
    /// [`ClusterError::Server`] with the producer's words if a record was refused, or if the process has ended.
    pub fn flush(&mut self) -> Result<u64, ClusterError> {
        self.obey("flush")
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// Those of [`JavaProducer::flush`].
    pub fn begin(&mut self) -> Result<(), ClusterError> {
        self.obey("begin").map(drop)
    }

    /// Commits the transaction, and returns as [`JavaProducer::flush`].
    ///
    /// # Errors
    /// Those of [`JavaProducer::flush`].
    pub fn commit(&mut self) -> Result<u64, ClusterError> {
        self.obey("commit")
    }

    /// Aborts the transaction; what was sent in it may or may not have reached the log. See [`JavaProducer::flush`].
    ///
    /// # Errors
    /// Those of [`JavaProducer::flush`].
    pub fn abort(&mut self) -> Result<(), ClusterError> {
        self.obey("abort").map(drop)
    }

    /// Ends it by SIGKILL, which leaves a transaction open until its time is out.
    ///
    /// # Errors
    /// Those of [`JavaChild::kill`].
    pub fn kill(mut self) -> Result<(), ClusterError> {
        self.child.kill()
    }

    fn order(&mut self, order: &str) -> Result<(), ClusterError> {
        writeln!(self.orders, "{order}").map_err(|error| self.child.error(format!("takes no order: {error}")))
    }

    fn obey(&mut self, order: &str) -> Result<u64, ClusterError> {
        self.order(order)?;
        self.orders.flush().map_err(|error| self.child.error(format!("takes no order: {error}")))?;
        let mut answer = String::new();
        self.answers
            .read_line(&mut answer)
            .map_err(|error| self.child.error(format!("does not answer: {error}")))?;
        let count = answer.strip_prefix("ok ").and_then(|count| count.trim_end().parse().ok());
        count.ok_or_else(|| self.child.error(format!("answered {order:?} by {:?}", answer.trim_end())))
    }
}

/// A consumer of Kafka's own as a member of a group, in a Java process, which ends when this is dropped. It appends a
/// line to a file for each record as it is handled: `Partition:P`, `Offset:O`, its value and the member's name, separated
/// by tabs. See [`Cluster::old_member`] and [`Cluster::group_member`].
#[derive(Debug)]
pub struct JavaMember {
    child: JavaChild,
    answers: BufReader<ChildStdout>,
}

impl Cluster {
    /// The old Scala consumer of a release (to 1.1.1) that will be a member of a group with so many streams of a topic,
    /// ready to [join](JavaMember::join). Its `zookeeper.connect` is this cluster's, if `properties` have no other.
    ///
    /// # Errors
    /// Those of [`Cluster::java`]; [`ClusterError::Fetch`] without a JDK, [`ClusterError::Server`] if it fails.
    pub fn old_member(
        &self,
        version: KafkaVersion,
        (topic, streams): (&str, u32),
        (journal, name): (&Path, &str),
        properties: &[&str],
    ) -> Result<JavaMember, ClusterError> {
        let (streams, connect) =
            (streams.to_string(), format!("zookeeper.connect={}", self.zookeeper_connect()));
        let journal = journal.to_string_lossy();
        let arguments = [&[topic, &streams, &journal, name, &connect], properties].concat();
        JavaMember::new(self.java_source(version, "OldMember", &arguments)?)
    }

    /// Kafka's own consumer of a release that will be a member of a group which brokers coordinate, ready to
    /// [join](JavaMember::join); see [`Cluster::old_member`].
    ///
    /// # Errors
    /// Those of [`Cluster::old_member`].
    pub fn group_member(
        &self,
        version: KafkaVersion,
        topic: &str,
        (journal, name): (&Path, &str),
        properties: &[&str],
    ) -> Result<JavaMember, ClusterError> {
        let servers = format!("bootstrap.servers={}", self.bootstrap());
        let journal = journal.to_string_lossy();
        let arguments = [&[topic, &*journal, name, &servers], properties].concat();
        JavaMember::new(self.java_source(version, "GroupMember", &arguments)?)
    }

    /// A share consumer of a release (4.1 up) that will be a member of a share group, ready to [join](JavaMember::join).
    ///
    /// # Errors
    /// Those of [`Cluster::old_member`].
    pub fn share_member(
        &self,
        version: KafkaVersion,
        topic: &str,
        group: &str,
    ) -> Result<JavaMember, ClusterError> {
        let servers = format!("bootstrap.servers={}", self.bootstrap());
        let group = format!("group.id={group}");
        JavaMember::new(self.java_source(version, "ShareMember", &[topic, &servers, &group])?)
    }

    /// What the coordinator, the first broker, takes for a member of a streams group (4.1 up), ready to
    /// [join](JavaMember::join): it processes nothing, and is gone when its session of 45 s is out.
    ///
    /// # Errors
    /// Those of [`Cluster::old_member`].
    pub fn streams_member(
        &self,
        version: KafkaVersion,
        topic: &str,
        group: &str,
    ) -> Result<JavaMember, ClusterError> {
        let bootstrap = self.bootstrap();
        let first = bootstrap.split(',').next().unwrap_or_default();
        JavaMember::new(self.java_source(version, "StreamsMember", &[topic, first, group])?)
    }
}

impl JavaMember {
    /// Waits until the process is ready.
    fn new(mut child: JavaChild) -> Result<Self, ClusterError> {
        let Some(stdout) = child.stdout.take() else { return Err(child.error("has no output")) };
        let mut member = Self { child, answers: BufReader::new(stdout) };
        member.expect("ready")?;
        Ok(member)
    }

    /// Joins its group, without waiting for what it gets.
    ///
    /// # Errors
    /// [`ClusterError::Server`] if the process has ended.
    pub fn join(&mut self) -> Result<(), ClusterError> {
        self.order("join")
    }

    /// Handles no more, commits what it has handled if it commits by itself, leaves its group and ends.
    ///
    /// # Errors
    /// [`ClusterError::Server`] with the end of its log if it does not.
    pub fn leave(mut self) -> Result<(), ClusterError> {
        self.order("leave")?;
        self.expect("left")?;
        self.child.wait().map(drop)
    }

    /// Ends it by SIGKILL, which leaves its registration until its session expires.
    ///
    /// # Errors
    /// Those of [`JavaChild::kill`].
    pub fn kill(mut self) -> Result<(), ClusterError> {
        self.child.kill()
    }

    /// The file with its standard error, which has its log too; it goes with the cluster.
    pub fn log(&self) -> &Path {
        self.child.log()
    }

    fn order(&mut self, order: &str) -> Result<(), ClusterError> {
        let told = self.child.stdin.as_mut().map(|stdin| writeln!(stdin, "{order}"));
        match told {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(self.child.error(format!("takes no order: {error}"))),
            None => Err(self.child.error("has no input")),
        }
    }

    /// The next line that it says.
    fn expect(&mut self, answer: &str) -> Result<(), ClusterError> {
        let mut said = String::new();
        let read = self.answers.read_line(&mut said);
        read.map_err(|error| self.child.error(format!("does not answer: {error}")))?;
        if said.trim_end() == answer {
            return Ok(());
        }
        Err(self.child.error(format!("said {:?} and not {answer:?}", said.trim_end())))
    }
}

/// All records that a reader of ours prints by topic, each partition's in its order.
pub(crate) fn read_all(mut child: JavaChild) -> Result<BTreeMap<String, Vec<JavaRecord>>, ClusterError> {
    let Some(stdout) = child.stdout.take() else { return Err(child.error("has no output")) };
    let mut topics: BTreeMap<String, Vec<JavaRecord>> = BTreeMap::new();
    for line in BufReader::new(stdout).lines() {
        let line = line.map_err(|error| child.error(format!("cannot be read: {error}")))?;
        let record = line.split_once('\t').and_then(|(topic, rest)| Some((topic, parse(rest)?)));
        let (topic, record) = record.ok_or_else(|| child.error(format!("printed {line:?}")))?;
        topics.entry(topic.to_owned()).or_default().push(record);
    }
    if !child.wait()?.success() {
        return Err(child.error("did not read to the end"));
    }
    topics.values_mut().for_each(|records| records.sort_by_key(|record| record.partition));
    Ok(topics)
}

/// How null is written.
const NULL: &str = "-";

fn parse(line: &str) -> Option<JavaRecord> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [partition, offset, timestamp, timestamp_type, key, value, headers] = fields[..] else { return None };
    let header = |header: &str| {
        let (name, value) = header.split_once(':')?;
        Some((String::from_utf8(bytes(name)??).ok()?, bytes(value)?))
    };
    let headers = headers.split(',').filter(|header| !header.is_empty());
    Some(JavaRecord {
        partition: partition.parse().ok()?,
        offset: offset.parse().ok()?,
        timestamp: Some(timestamp.parse().ok()?),
        timestamp_type: timestamp_type.to_owned(),
        key: bytes(key)?,
        value: bytes(value)?,
        headers: headers.map(header).collect::<Option<_>>()?,
    })
}

fn hex(bytes: Option<&[u8]>) -> String {
    let Some(bytes) = bytes else { return NULL.to_owned() };
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The bytes or null; `None` if it is neither.
fn bytes(hex: &str) -> Option<Option<Vec<u8>>> {
    if hex == NULL {
        return Some(None);
    }
    let digits: Option<Vec<u32>> = hex.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(Some(digits.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()))
}
