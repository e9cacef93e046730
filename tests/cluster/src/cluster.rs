//! A ZooKeeper ensemble and its brokers.

use crate::{
    Broker, Client, ClusterError, Ensemble, JavaChild, JavaProducer, JavaRecord, KafkaVersion, ProduceRecord,
    ZooKeeper, ZooKeeperVersion, broker::Shared, free_port, java_clients::read_all,
    properties::DEFAULT_LISTENER, scratch::Scratch, znodes::Znodes,
};
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// Running servers, which end when this is dropped or the process ends in any way.
#[derive(Debug)]
pub struct Cluster {
    // the order is the order of the end: brokers, ZooKeeper, then their folder
    brokers: Vec<Broker>,
    ensemble: Arc<Ensemble>,
    chroot: String,
    java_children: AtomicUsize,
    scratch: Arc<Scratch>,
}

/// What to start; see [`Cluster::builder`].
#[derive(Debug, Clone)]
pub struct ClusterBuilder {
    kafka: KafkaVersion,
    zookeeper: ZooKeeperVersion,
    zookeepers: usize,
    brokers: usize,
    sessions: (Duration, Duration),
    properties: Vec<(String, String)>,
    own_properties: Vec<(i32, String, String)>,
    listeners: Vec<String>,
    proxied: bool,
    chroot: String,
}

impl ClusterBuilder {
    /// The release of the brokers; 3.9.1 if not set.
    #[must_use]
    pub fn kafka(mut self, version: KafkaVersion) -> Self {
        self.kafka = version;
        self
    }

    /// The release of ZooKeeper, which need not be the one that Kafka brings; 3.8.4 if not set.
    #[must_use]
    pub fn zookeeper(mut self, version: ZooKeeperVersion) -> Self {
        self.zookeeper = version;
        self
    }

    /// The number of ZooKeeper servers, 1 if not set; several elect a leader. See [`Ensemble`].
    #[must_use]
    pub fn zookeepers(mut self, zookeepers: usize) -> Self {
        self.zookeepers = zookeepers;
        self
    }

    /// The number of brokers, 1 if not set; with 0 there is only ZooKeeper.
    #[must_use]
    pub fn brokers(mut self, brokers: usize) -> Self {
        self.brokers = brokers;
        self
    }

    /// The least and the greatest session timeout that ZooKeeper grants (`minSessionTimeout`,
    /// `maxSessionTimeout`); 500 ms and 60 s if not set. A session expires in whole ticks of 500 ms.
    #[must_use]
    pub fn session_timeouts(mut self, min: Duration, max: Duration) -> Self {
        self.sessions = (min, max);
        self
    }

    /// A line for every broker's `server.properties`, which overrides the cluster's own; may be repeated.
    #[must_use]
    pub fn broker_property(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.push((key.into(), value.into()));
        self
    }

    /// As [`ClusterBuilder::broker_property`], for the broker with this id only and after those of all, such as
    /// `broker.rack`.
    #[must_use]
    pub fn broker_property_of(mut self, id: i32, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.own_properties.push((id, key.into(), value.into()));
        self
    }

    /// Names of every broker's listeners (all without encryption), of which the first is also for the other brokers
    /// and for this cluster's own calls; only `PLAINTEXT` if not set. See [`Broker::listener`]. From 0.10.2 only.
    #[must_use]
    pub fn listeners<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.listeners = names.into_iter().map(Into::into).collect();
        self
    }

    /// Puts a [`Proxy`](crate::Proxy) in front of every broker, whose address the broker advertises; not so if not
    /// set. All go through it: clients, other brokers and this cluster's own calls.
    #[must_use]
    pub fn proxied_brokers(mut self) -> Self {
        self.proxied = true;
        self
    }

    /// Kafka's path in ZooKeeper, such as `/kafka`, which the brokers create, or in KRaft mode this; the root if not set.
    #[must_use]
    pub fn chroot(mut self, path: impl Into<String>) -> Self {
        self.chroot = path.into().trim_end_matches('/').to_owned();
        self
    }

    /// Fetches what is missing, starts the servers and waits until each broker knows all the others.
    ///
    /// # Errors
    /// [`ClusterError::Fetch`] without Java or jars, [`ClusterError::Server`] if a server does not come up,
    /// [`ClusterError::Invalid`] for listeners that the release cannot have.
    pub fn start(self) -> Result<Cluster, ClusterError> {
        let named = self.listeners != [DEFAULT_LISTENER];
        if self.listeners.is_empty() || named && self.kafka < KafkaVersion::V0_10_2_2 {
            let what = format!("Kafka {} cannot have the listeners {:?}", self.kafka, self.listeners);
            return Err(ClusterError::Invalid(what));
        }
        let scratch = Arc::new(Scratch::create()?);
        let ensemble = Ensemble::start(&scratch, self.zookeeper, self.zookeepers, self.sessions)?;
        let ensemble = Arc::new(ensemble);
        let ids: Vec<i32> = (0..).take(self.brokers).collect();
        let shared = Shared {
            scratch: &scratch,
            ensemble: &ensemble,
            version: self.kafka,
            chroot: &self.chroot,
            overrides: &self.properties,
            own: &self.own_properties,
            listeners: &self.listeners,
            controller_port: if self.kafka.is_kraft() { free_port()? } else { 0 },
            proxied: self.proxied,
        };
        let brokers = ids.iter().map(|&id| Broker::launch_new(id, &shared)).collect::<Result<Vec<_>, _>>()?;
        brokers.iter().try_for_each(|broker| broker.wait_until_up(&ids))?;
        let chroot = self.chroot;
        if self.kafka.is_kraft() && !chroot.is_empty() {
            let made = Znodes::open(&ensemble.connect()).and_then(|mut znodes| znodes.create(&chroot, ""));
            made.map_err(ClusterError::io(format!("create {chroot} in ZooKeeper")))?;
        }
        Ok(Cluster { brokers, ensemble, chroot, java_children: AtomicUsize::new(0), scratch })
    }
}

impl Cluster {
    /// Starts one ZooKeeper and `brokers` brokers with the defaults of [`Cluster::builder`].
    ///
    /// # Errors
    /// Those of [`ClusterBuilder::start`].
    pub fn start(version: KafkaVersion, brokers: usize) -> Result<Self, ClusterError> {
        Self::builder().kafka(version).brokers(brokers).start()
    }

    /// A cluster to be configured before it starts.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder {
            kafka: KafkaVersion::V3_9_1,
            zookeeper: ZooKeeperVersion::V3_8_4,
            zookeepers: 1,
            brokers: 1,
            sessions: (Duration::from_millis(500), Duration::from_secs(60)),
            properties: Vec::new(),
            own_properties: Vec::new(),
            listeners: vec![DEFAULT_LISTENER.to_owned()],
            proxied: false,
            chroot: String::new(),
        }
    }

    /// The ZooKeeper server; the first of several.
    pub fn zookeeper(&self) -> &ZooKeeper {
        &self.ensemble.servers()[0]
    }

    /// All ZooKeeper servers.
    pub fn ensemble(&self) -> &Ensemble {
        &self.ensemble
    }

    /// What Kafka's clients take as `zookeeper.connect`: `127.0.0.1:port` of each server and the chroot.
    pub fn zookeeper_connect(&self) -> String {
        self.ensemble.connect() + &self.chroot
    }

    /// The broker with id `index`.
    ///
    /// # Panics
    /// If there is none, like indexing.
    pub fn broker(&self, index: usize) -> &Broker {
        &self.brokers[index]
    }

    /// All brokers, by id.
    pub fn brokers(&self) -> &[Broker] {
        &self.brokers
    }

    /// The folder with all data and logs, which goes with the cluster.
    pub fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// `host:port,host:port` of all brokers, running or not.
    pub fn bootstrap(&self) -> String {
        let addresses: Vec<String> = self.brokers.iter().map(Broker::address).collect();
        addresses.join(",")
    }

    /// A client of the brokers that run now, which asks what the oldest of them understands.
    pub fn client(&self) -> Client {
        let running = self.brokers.iter().filter(|broker| broker.pid().is_some());
        let addresses: Vec<String> = running.map(Broker::address).collect();
        let client = Client::new(addresses.join(","));
        match self.oldest() {
            Some(oldest) => client.of_version(oldest, self.zookeeper_connect()),
            None => client,
        }
    }

    /// The oldest release that a broker, running or not, is of or still speaks: see [`Broker::restart_as`].
    pub fn oldest(&self) -> Option<KafkaVersion> {
        self.brokers.iter().map(Broker::protocol).min()
    }

    /// As [`Client::create_topic`].
    ///
    /// # Errors
    /// Those of [`Client::create_topic`].
    pub fn create_topic(&self, name: &str, partitions: i32, replication: i16) -> Result<(), ClusterError> {
        self.client().create_topic(name, partitions, replication)
    }

    /// As [`Client::create_topic_with`].
    ///
    /// # Errors
    /// Those of [`Client::create_topic_with`].
    pub fn create_topic_with(
        &self,
        name: &str,
        partitions: i32,
        replication: i16,
        configs: &[(&str, &str)],
    ) -> Result<(), ClusterError> {
        self.client().create_topic_with(name, partitions, replication, configs)
    }

    /// As [`Client::add_partitions`].
    ///
    /// # Errors
    /// Those of [`Client::add_partitions`].
    pub fn add_partitions(&self, name: &str, total: i32) -> Result<(), ClusterError> {
        self.client().add_partitions(name, total)
    }

    /// As [`Client::delete_topic`].
    ///
    /// # Errors
    /// Those of [`Client::delete_topic`].
    pub fn delete_topic(&self, name: &str) -> Result<(), ClusterError> {
        self.client().delete_topic(name)
    }

    /// Waits until every running broker sees a running leader for every partition of the topic.
    ///
    /// # Errors
    /// Those of [`Client::wait_for_leaders`].
    pub fn wait_for_leaders(&self, topic: &str) -> Result<(), ClusterError> {
        self.client().wait_for_leaders(topic)
    }

    /// As [`Client::produce`].
    ///
    /// # Errors
    /// Those of [`Client::produce`].
    pub fn produce(
        &self,
        topic: &str,
        records: impl IntoIterator<Item = ProduceRecord>,
    ) -> Result<u64, ClusterError> {
        self.client().produce(topic, records)
    }

    /// As [`Client::log_end_offsets`].
    ///
    /// # Errors
    /// Those of [`Client::log_end_offsets`].
    pub fn log_end_offsets(&self, topic: &str) -> Result<Vec<i64>, ClusterError> {
        self.client().log_end_offsets(topic)
    }

    /// Starts a Java program on a version's class path, such as `kafka.tools.ConsoleConsumer`, with standard input
    /// and output piped to us.
    ///
    /// # Errors
    /// [`ClusterError::Fetch`] without Java or jars, [`ClusterError::Io`] if it cannot be started.
    pub fn java(
        &self,
        version: KafkaVersion,
        main_class: &str,
        arguments: &[&str],
    ) -> Result<JavaChild, ClusterError> {
        let number = self.java_children.fetch_add(1, Ordering::Relaxed);
        JavaChild::start(&self.scratch, number, version, main_class, arguments)
    }

    /// Kafka's own producer of a release, in a Java process, with properties such as `compression.type`; its
    /// `bootstrap.servers` are all brokers.
    ///
    /// # Errors
    /// Those of [`Cluster::java`] and [`JavaProducer::configure`]; [`ClusterError::Fetch`] without a JDK.
    pub fn java_producer(
        &self,
        version: KafkaVersion,
        properties: &[(&str, &str)],
    ) -> Result<JavaProducer, ClusterError> {
        let child = self.java_source(version, "Producer", &[])?;
        let mut producer = JavaProducer::new(child, self.bootstrap())?;
        producer.configure(properties)?;
        Ok(producer)
    }

    /// All records of a topic, as far as it goes now, that the consumer of 3.9.1 delivers, each partition's in its
    /// order; that of 0.8.2.2, from offset 0, if a broker is older than 0.10. `properties` such as `isolation.level` are
    /// for the former only.
    ///
    /// # Errors
    /// Those of [`Cluster::java`]; [`ClusterError::Fetch`] without a JDK, [`ClusterError::Server`] if it fails.
    pub fn java_consume(
        &self,
        topic: &str,
        properties: &[(&str, &str)],
    ) -> Result<Vec<JavaRecord>, ClusterError> {
        if self.oldest().is_some_and(|oldest| oldest < KafkaVersion::V0_10_2_2) {
            let broker = &self.brokers[0];
            let arguments = [topic, broker.host(), &broker.port().to_string()];
            let mut topics =
                read_all(self.java_source(KafkaVersion::V0_8_2_2, "SimpleReader", &arguments)?)?;
            return Ok(topics.remove(topic).unwrap_or_default());
        }
        Ok(self.java_consume_all(&[topic], properties)?.remove(topic).unwrap_or_default())
    }

    /// As [`Cluster::java_consume`] by one consumer of 3.9.1 for several topics, those without records left out; no
    /// broker may be older than 0.10.
    ///
    /// # Errors
    /// Those of [`Cluster::java_consume`].
    pub fn java_consume_all(
        &self,
        topics: &[&str],
        properties: &[(&str, &str)],
    ) -> Result<BTreeMap<String, Vec<JavaRecord>>, ClusterError> {
        let servers = format!("bootstrap.servers={}", self.bootstrap());
        let properties: Vec<String> =
            properties.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let topics = topics.join(",");
        let arguments = [topics.as_str(), &servers].into_iter().chain(properties.iter().map(String::as_str));
        let arguments: Vec<&str> = arguments.collect();
        read_all(self.java_source(KafkaVersion::V3_9_1, "Consumer", &arguments)?)
    }

    pub(crate) fn java_source(
        &self,
        version: KafkaVersion,
        program: &str,
        arguments: &[&str],
    ) -> Result<JavaChild, ClusterError> {
        let number = self.java_children.fetch_add(1, Ordering::Relaxed);
        JavaChild::start_source(&self.scratch, number, version, program, arguments)
    }
}
