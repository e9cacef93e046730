//! A cluster that another process runs: what it tells of itself in a file, and a socket that takes orders.

use crate::{Client, ClusterError, KafkaVersion, ProduceRecord, cache_root, znodes::Znodes};
use std::{
    collections::BTreeMap,
    env, fs,
    io::{Read, Write as _},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::Path,
};

/// A cluster that runs already.
#[derive(Debug)]
pub struct Running {
    endpoints: BTreeMap<String, String>,
}

/// The cluster that an example is for: of `--zookeeper HOST:PORT/CHROOT` among this program's arguments, else the one
/// that `cargo cluster up` has started.
///
/// # Errors
/// [`ClusterError`] if there is none.
pub fn running() -> Result<Running, ClusterError> {
    match argument("--zookeeper") {
        Some(zookeeper) => Running::at(&zookeeper),
        None => Running::find(&cache_root().join("running")),
    }
}

/// What follows `name` among this program's arguments.
pub fn argument(name: &str) -> Option<String> {
    env::args().skip_while(|argument| argument != name).nth(1)
}

impl Running {
    /// By the state file of `cargo cluster up`.
    ///
    /// # Errors
    /// [`ClusterError::Invalid`] if there is none or the cluster of which it tells is gone.
    pub fn find(state: &Path) -> Result<Self, ClusterError> {
        let none =
            || ClusterError::Invalid("no cluster is running: start one with `cargo cluster up`".into());
        let text = fs::read_to_string(state).map_err(|_| none())?;
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        let running =
            Self { endpoints: pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect() };
        if running.connect().is_err() {
            // it was ended by a signal
            fs::remove_file(state).map_err(ClusterError::io(format!("remove {}", state.display())))?;
            return Err(none());
        }
        Ok(running)
    }

    /// By its ZooKeeper, in which brokers from 1.0 on are registered.
    ///
    /// # Errors
    /// [`ClusterError`] if there is none.
    pub fn at(zookeeper: &str) -> Result<Self, ClusterError> {
        let brokers = Znodes::open(zookeeper).and_then(|mut znodes| znodes.broker_addresses());
        let brokers = brokers.map_err(ClusterError::io(format!("look for brokers in {zookeeper}")))?;
        if brokers.is_empty() {
            return Err(ClusterError::Invalid(format!("no broker is registered in {zookeeper}")));
        }
        let endpoints = [("zookeeper", zookeeper.to_owned()), ("bootstrap", brokers.join(","))];
        Ok(Self { endpoints: endpoints.map(|(key, value)| (key.to_owned(), value)).into() })
    }

    /// As in `zookeeper.connect`.
    pub fn zookeeper(&self) -> &str {
        self.endpoints.get("zookeeper").map_or("", String::as_str)
    }

    /// As in `bootstrap.servers`.
    pub fn bootstrap(&self) -> &str {
        self.endpoints.get("bootstrap").map_or("", String::as_str)
    }

    /// A client of the brokers that run.
    ///
    /// # Errors
    /// [`ClusterError::Invalid`] if the state file names a release that is not known.
    pub fn client(&self) -> Result<Client, ClusterError> {
        let client = Client::new(self.bootstrap());
        Ok(match self.endpoints.get("kafka") {
            Some(oldest) => {
                let oldest = oldest.parse::<KafkaVersion>();
                let oldest = oldest.map_err(|error| ClusterError::Invalid(error.to_string()))?;
                client.of_version(oldest, self.zookeeper())
            }
            None => client,
        })
    }

    /// Creates a topic and fills it, unless it is there.
    ///
    /// # Errors
    /// As [`Client::create_topic`] and [`Client::produce`].
    pub fn fill<R: Into<ProduceRecord>>(
        &self,
        topic: &str,
        partitions: i32,
        records: impl IntoIterator<Item = R>,
    ) -> Result<(), ClusterError> {
        let client = self.client()?;
        if client.partitions(topic)?.is_empty() {
            client.create_topic(topic, partitions, 1)?;
            let count = client.produce(topic, records.into_iter().map(Into::into))?;
            println!("topic {topic} is new, and has {count} records");
        }
        Ok(())
    }

    /// The offsets that a group has stored in ZooKeeper, by partition of one topic.
    ///
    /// # Errors
    /// [`ClusterError::Io`] if ZooKeeper does not answer.
    pub fn zookeeper_offsets(&self, group: &str, topic: &str) -> Result<BTreeMap<i32, i64>, ClusterError> {
        let read = Znodes::open(self.zookeeper()).and_then(|mut znodes| znodes.offsets(group, topic));
        read.map_err(ClusterError::io(format!("offsets of {group} in {}", self.zookeeper())))
    }

    /// Lets the running cluster do something and waits until it is done.
    ///
    /// # Errors
    /// [`ClusterError`] if it cannot, or runs no more.
    pub fn order(&self, order: &str) -> Result<(), ClusterError> {
        let answer = self.ask(order).map_err(ClusterError::io(format!("order {order}")))?;
        match answer.trim_end() {
            "" => Ok(()),
            error => Err(ClusterError::Invalid(error.to_owned())),
        }
    }

    fn ask(&self, order: &str) -> std::io::Result<String> {
        let (mut socket, mut answer) = (self.connect()?, String::new());
        writeln!(socket, "{order}")?;
        socket.shutdown(Shutdown::Write)?;
        socket.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn connect(&self) -> std::io::Result<UnixStream> {
        let control = self.endpoints.get("control").ok_or(std::io::ErrorKind::NotFound)?;
        UnixStream::connect(control)
    }
}
