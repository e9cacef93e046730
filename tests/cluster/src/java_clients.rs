//! Kafka's own producer and consumers, driven line by line.

use crate::{ClusterError, JavaChild};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{BufRead, BufReader, BufWriter, Write},
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
