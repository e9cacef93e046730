//! A ZooKeeper ensemble and its brokers.

use crate::{
    Broker, Client, ClusterError, Ensemble, JavaChild, KafkaVersion, ProduceRecord, ZooKeeper,
    ZooKeeperVersion, broker::Shared, scratch::Scratch,
};
use std::{
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

    /// Puts a [`Proxy`](crate::Proxy) in front of every broker, whose address the broker advertises; not so if not
    /// set. All go through it: clients, other brokers and this cluster's own calls.
    #[must_use]
    pub fn proxied_brokers(mut self) -> Self {
        self.proxied = true;
        self
    }

    /// Kafka's path in ZooKeeper, such as `/kafka`, which the brokers create; the root if not set.
    #[must_use]
    pub fn chroot(mut self, path: impl Into<String>) -> Self {
        self.chroot = path.into().trim_end_matches('/').to_owned();
        self
    }

    /// Fetches what is missing, starts the servers and waits until each broker knows all the others.
    ///
    /// # Errors
    /// [`ClusterError::Fetch`] without Java or jars, [`ClusterError::Server`] if a server does not come up.
    pub fn start(self) -> Result<Cluster, ClusterError> {
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
            proxied: self.proxied,
        };
        let brokers = ids.iter().map(|&id| Broker::launch_new(id, &shared)).collect::<Result<Vec<_>, _>>()?;
        brokers.iter().try_for_each(|broker| broker.wait_until_up(&ids))?;
        let chroot = self.chroot;
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

    /// A client of the brokers that run now.
    pub fn client(&self) -> Client {
        let running = self.brokers.iter().filter(|broker| broker.pid().is_some());
        let addresses: Vec<String> = running.map(Broker::address).collect();
        Client::new(addresses.join(","))
    }

    /// As [`Client::create_topic`].
    ///
    /// # Errors
    /// Those of [`Client::create_topic`].
    pub fn create_topic(&self, name: &str, partitions: i32, replication: i16) -> Result<(), ClusterError> {
        self.client().create_topic(name, partitions, replication)
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
}
