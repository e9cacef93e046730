//! The few requests of Kafka's protocol that a test needs, without the seconds that a JVM per call would cost.

use crate::{
    ClusterError, KafkaVersion, PartitionMetadata, ProduceRecord, admin,
    connection::{Api, Connection},
    generation::Generation,
    metadata::Metadata,
    poll::{Look, until},
    produce,
    wire::{Reader, Writer},
};
use std::io;

/// Error codes after which the same request may succeed soon: unknown or leaderless partition, no replica, a
/// coordinator or controller that moves.
pub(crate) const RETRIABLE: &[i16] = &[3, 5, 6, 7, 8, 9, 13, 14, 15, 16, 19, 20, 41, 56, 74, 75];
pub(crate) const UNKNOWN_TOPIC: i16 = 3;

/// Talks to the brokers at some addresses; each call connects anew.
#[derive(Debug, Clone)]
pub struct Client {
    addresses: Vec<String>,
    pub(crate) generation: Generation,
    /// Where topics are changed if that cannot be asked of the brokers.
    pub(crate) zookeeper: Option<String>,
}

impl Client {
    /// A client of a cluster of any release from 1.0 to 4.x; `bootstrap` is a list `host:port,host:port` with all
    /// brokers that run.
    pub fn new(bootstrap: impl AsRef<str>) -> Self {
        let addresses = bootstrap.as_ref().split(',').filter(|address| !address.is_empty());
        let addresses = addresses.map(str::to_owned).collect();
        Self { addresses, generation: Generation::of(KafkaVersion::V1_1_1), zookeeper: None }
    }

    /// Asks only what brokers of this release understand, which is the oldest of the cluster's; topics of brokers
    /// before 1.0 are changed in `zookeeper` (as `zookeeper.connect`).
    #[must_use]
    pub fn of_version(mut self, oldest: KafkaVersion, zookeeper: impl Into<String>) -> Self {
        self.generation = Generation::of(oldest);
        self.zookeeper = Some(zookeeper.into());
        self
    }

    /// Ids and `host:port` of the brokers that the first answering broker lists as alive. One of 0.8 lists none until
    /// there is a topic.
    ///
    /// # Errors
    /// [`ClusterError::Io`] if no broker answers.
    pub fn brokers(&self) -> Result<Vec<(i32, String)>, ClusterError> {
        Ok(self.metadata(&[])?.brokers)
    }

    /// The names of all topics, internal ones too, that the first answering broker knows.
    ///
    /// # Errors
    /// [`ClusterError::Io`] if no broker answers.
    pub fn topics(&self) -> Result<Vec<String>, ClusterError> {
        let topics = self.metadata_of_all()?.topics;
        Ok(topics.into_iter().map(|(_, name, _)| name).collect())
    }

    /// The partitions of a topic in order, as the first answering broker sees them; empty if there is no such topic.
    ///
    /// # Errors
    /// [`ClusterError::Io`] if no broker answers.
    pub fn partitions(&self, topic: &str) -> Result<Vec<PartitionMetadata>, ClusterError> {
        Ok(self.metadata(&[topic])?.partitions_of(topic))
    }

    /// Creates a topic and waits until every partition has a leader.
    ///
    /// # Errors
    /// [`ClusterError::Kafka`] with code 36 if it exists, 38 if there are too few brokers for the replication.
    pub fn create_topic(&self, name: &str, partitions: i32, replication: i16) -> Result<(), ClusterError> {
        self.create_topic_with(name, partitions, replication, &[])
    }

    /// As [`Client::create_topic`], with configs of the topic such as `("cleanup.policy", "compact")`.
    ///
    /// # Errors
    /// Those of [`Client::create_topic`]; code 40 for a config that a broker from 1.0 refuses.
    pub fn create_topic_with(
        &self,
        name: &str,
        partitions: i32,
        replication: i16,
        configs: &[(&str, &str)],
    ) -> Result<(), ClusterError> {
        admin::create_topic(self, name, (partitions, replication), configs)?;
        self.wait_for_partitions(name, partitions)
    }

    /// Grows a topic to `total` partitions and waits until every partition has a leader.
    ///
    /// # Errors
    /// [`ClusterError::Kafka`] with code 3 if there is no such topic, 37 if it has as many already.
    pub fn add_partitions(&self, name: &str, total: i32) -> Result<(), ClusterError> {
        admin::add_partitions(self, name, total)?;
        self.wait_for_partitions(name, total)
    }

    /// Deletes a topic and waits until no broker knows it.
    ///
    /// # Errors
    /// [`ClusterError::Kafka`] with code 3 if there is no such topic.
    pub fn delete_topic(&self, name: &str) -> Result<(), ClusterError> {
        admin::delete_topic(self, name)?;
        self.on_every_broker(&format!("end of topic {name}"), |metadata| admin::gone(metadata, name))
    }

    /// Waits until every broker of this client sees, for every partition of the topic, a leader that is one of
    /// these brokers.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`] after a minute.
    pub fn wait_for_leaders(&self, topic: &str) -> Result<(), ClusterError> {
        self.wait_for_partitions(topic, 1)
    }

    /// Produces with `acks=all` and returns the number of records, each of which is in the log once, whatever
    /// happens to brokers meanwhile (an idempotent producer that retries for up to a minute). Brokers before 0.11 know
    /// no such producer: there, what is sent again because an answer was lost may be in the log twice.
    ///
    /// Records without a partition go round all partitions, or with a key to the partition that Kafka's own
    /// producer chooses. The iterator is asked only a few batches ahead of the acknowledgements, so it may as well
    /// report progress. A batch is sent when it has 256 KiB or the iterator ends.
    ///
    /// # Errors
    /// [`ClusterError::Kafka`] if a broker refuses a batch for good, for example with code 10 for a record above
    /// `message.max.bytes`; [`ClusterError::TimedOut`] if retries do not help.
    pub fn produce(
        &self,
        topic: &str,
        records: impl IntoIterator<Item = ProduceRecord>,
    ) -> Result<u64, ClusterError> {
        produce::produce(self, topic, records)
    }

    /// The offset that the next record gets, for each partition of a topic.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`] if a partition has no answering leader for a minute.
    pub fn log_end_offsets(&self, topic: &str) -> Result<Vec<i64>, ClusterError> {
        let count = self.wait_for_topic(topic)?;
        (0..count).map(|partition| self.log_end_offset(topic, partition)).collect()
    }

    fn log_end_offset(&self, topic: &str, partition: i32) -> Result<i64, ClusterError> {
        let mut body = Writer::default();
        body.i32(-1); // not a replica
        body.len(1);
        body.string(topic);
        body.len(1);
        body.i32(partition);
        body.i64(-1); // the latest
        let api = self.generation.list_offsets();
        if api.version == 0 {
            body.i32(1); // one offset
        }
        let what = format!("{topic}-{partition}");
        until(&format!("end offset of {what}"), || {
            let answer = self
                .leader(topic, partition)
                .and_then(|mut leader| leader.call(api, &body.0))
                .and_then(|response| end_offset(api, &mut Reader(&response)));
            match answer {
                Ok((0, offset)) => Ok(Look::Done(offset)),
                Ok((code, _)) => not_yet(api, &what, code, String::new()),
                Err(error) => Ok(Look::NotYet(error.to_string())),
            }
        })
    }

    /// A connection to the partition's leader.
    pub(crate) fn leader(&self, topic: &str, partition: i32) -> io::Result<Connection> {
        let metadata = self.metadata(&[topic]).map_err(io::Error::other)?;
        let partitions = metadata.partitions_of(topic);
        let leader =
            partitions.iter().find(|seen| seen.partition == partition).map_or(-1, |seen| seen.leader);
        match metadata.address_of(leader) {
            Some(address) => Connection::open(address),
            None => Err(io::Error::other(format!("{topic}-{partition} has no leader"))),
        }
    }

    /// A connection to any broker.
    pub(crate) fn any(&self) -> Result<Connection, ClusterError> {
        let mut last = io::Error::other("no broker is running");
        for address in &self.addresses {
            match Connection::open(address) {
                Ok(connection) => return Ok(connection),
                Err(error) => last = error,
            }
        }
        Err(ClusterError::io(format!("connect to a broker of {}", self.addresses.join(",")))(last))
    }

    /// The number of partitions, once the topic is known to a broker.
    pub(crate) fn wait_for_topic(&self, topic: &str) -> Result<i32, ClusterError> {
        until(&format!("topic {topic}"), || {
            Ok(match self.partitions(topic).map(|seen| i32::try_from(seen.len())) {
                Ok(Ok(count)) if count > 0 => Look::Done(count),
                Ok(_) => Look::NotYet("no broker knows it".to_owned()),
                Err(error) => Look::NotYet(error.to_string()),
            })
        })
    }

    fn wait_for_partitions(&self, topic: &str, total: i32) -> Result<(), ClusterError> {
        self.on_every_broker(&format!("leaders of {topic}"), |metadata| {
            let seen = metadata.partitions_of(topic);
            let enough = i32::try_from(seen.len()).is_ok_and(|count| count >= total);
            let led =
                |leader| metadata.address_of(leader).is_some_and(|at| self.addresses.iter().any(|a| a == at));
            if enough && seen.iter().all(|partition| led(partition.leader)) {
                Ok(())
            } else {
                Err(format!("{} of {total} partitions: {seen:?}", seen.len()))
            }
        })
    }

    /// Waits until a condition holds in every broker's view.
    fn on_every_broker(
        &self,
        what: &str,
        condition: impl Fn(&Metadata) -> Result<(), String>,
    ) -> Result<(), ClusterError> {
        for address in &self.addresses {
            until(&format!("{what} at {address}"), || {
                let alone = Self { addresses: vec![address.clone()], ..self.clone() };
                let seen = alone.metadata_of_all().map_err(|error| error.to_string());
                Ok(seen.and_then(|metadata| condition(&metadata)).map_or_else(Look::NotYet, Look::Done))
            })?;
        }
        Ok(())
    }

    pub(crate) fn controller(&self) -> io::Result<Connection> {
        let metadata = self.metadata(&[]).map_err(io::Error::other)?;
        match metadata.address_of(metadata.controller) {
            Some(address) => Connection::open(address),
            None => Err(io::Error::other("there is no controller")),
        }
    }

    fn metadata(&self, topics: &[&str]) -> Result<Metadata, ClusterError> {
        let mut body = Writer::default();
        body.len(topics.len());
        for topic in topics {
            body.string(topic);
        }
        self.ask_for_metadata(&body.0)
    }

    /// Of all topics, which is also how one asks whether a topic exists without creating it.
    fn metadata_of_all(&self) -> Result<Metadata, ClusterError> {
        let all = if self.generation.metadata().version == 0 { 0i32 } else { -1 };
        self.ask_for_metadata(&all.to_be_bytes())
    }

    fn ask_for_metadata(&self, body: &[u8]) -> Result<Metadata, ClusterError> {
        let api = self.generation.metadata();
        self.any()?
            .call(api, body)
            .and_then(|response| Metadata::read(api, &mut Reader(&response)))
            .map_err(ClusterError::io(format!("ask {} for metadata", self.addresses.join(","))))
    }
}

/// Error code and offset of the only partition asked for.
fn end_offset(api: Api, response: &mut Reader<'_>) -> io::Result<(i16, i64)> {
    let topics = response.vec(|topic| {
        topic.string()?;
        topic.vec(|partition| {
            partition.i32()?;
            let code = partition.i16()?;
            if api.version == 0 {
                let offsets = partition.vec(Reader::i64)?;
                return Ok((code, offsets.first().copied().unwrap_or(-1)));
            }
            partition.i64()?; // timestamp
            Ok((code, partition.i64()?))
        })
    })?;
    topics.into_iter().flatten().next().ok_or_else(|| io::Error::other("no result"))
}

/// Retries what may pass; the rest is an error.
pub(crate) fn not_yet<T>(api: Api, what: &str, code: i16, message: String) -> Result<Look<T>, ClusterError> {
    if RETRIABLE.contains(&code) {
        return Ok(Look::NotYet(format!("error code {code} {message}")));
    }
    Err(refusal(api, what, code, message))
}

pub(crate) fn refusal(api: Api, what: &str, code: i16, message: impl Into<String>) -> ClusterError {
    ClusterError::Kafka { api: api.name, what: what.to_owned(), code, message: message.into() }
}
