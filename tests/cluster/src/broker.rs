//! A Kafka broker.

use crate::{
    Client, ClusterError, Ensemble, KafkaVersion, Proxy, free_port,
    poll::{Look, until},
    scratch::Scratch,
    server::Server,
};
use std::{
    ffi::OsString,
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
};

/// Defaults for quick tests on a small machine; [`crate::ClusterBuilder::broker_property`] comes after them.
const PROPERTIES: &[(&str, &str)] = &[
    // a killed broker leaves ZooKeeper this soon
    ("zookeeper.session.timeout.ms", "3000"),
    ("zookeeper.connection.timeout.ms", "30000"),
    ("auto.create.topics.enable", "false"),
    ("delete.topic.enable", "true"),
    ("controlled.shutdown.enable", "false"),
    ("group.initial.rebalance.delay.ms", "0"),
    ("offsets.topic.num.partitions", "8"),
    ("offsets.topic.replication.factor", "1"),
    ("transaction.state.log.replication.factor", "1"),
    ("transaction.state.log.min.isr", "1"),
    // the default takes 128 MiB of the small heap
    ("log.cleaner.dedupe.buffer.size", "8388608"),
    // 10 MiB for each index of each partition by default
    ("log.index.size.max.bytes", "1048576"),
];

/// One Kafka broker on a port of 127.0.0.1, which keeps its data over restarts.
#[derive(Debug)]
pub struct Broker {
    server: Server,
    id: i32,
    version: KafkaVersion,
    port: AtomicU16,
    ensemble: Arc<Ensemble>,
    chroot: String,
    overrides: Vec<(String, String)>,
    /// What it advertises instead of its own address.
    proxy: Option<Proxy>,
}

/// What all brokers of a cluster share.
#[derive(Debug)]
pub(crate) struct Shared<'a> {
    pub(crate) scratch: &'a Arc<Scratch>,
    pub(crate) ensemble: &'a Arc<Ensemble>,
    pub(crate) version: KafkaVersion,
    pub(crate) chroot: &'a str,
    pub(crate) overrides: &'a [(String, String)],
    pub(crate) proxied: bool,
}

impl Broker {
    /// Launches the process; [`Broker::wait_until_up`] is for the caller, so that brokers start side by side.
    pub(crate) fn launch_new(id: i32, shared: &Shared<'_>) -> Result<Self, ClusterError> {
        let port = free_port()?;
        let broker = Self {
            server: Server::new(shared.scratch, &format!("broker-{id}"))?,
            id,
            version: shared.version,
            port: AtomicU16::new(port),
            ensemble: Arc::clone(shared.ensemble),
            chroot: shared.chroot.to_owned(),
            overrides: shared.overrides.to_vec(),
            proxy: if shared.proxied { Some(Proxy::start(format!("127.0.0.1:{port}"))?) } else { None },
        };
        broker.launch()?;
        Ok(broker)
    }

    /// Its `broker.id`, which is also its index in the cluster.
    pub fn id(&self) -> i32 {
        self.id
    }

    /// Always `127.0.0.1`.
    pub fn host(&self) -> &'static str {
        "127.0.0.1"
    }

    /// The port at which clients reach it: its proxy's, or that of its only listener (PLAINTEXT).
    pub fn port(&self) -> u16 {
        self.proxy.as_ref().map_or_else(|| self.port.load(Ordering::Relaxed), Proxy::port)
    }

    /// The proxy in front of it, with [`crate::ClusterBuilder::proxied_brokers`].
    pub fn proxy(&self) -> Option<&Proxy> {
        self.proxy.as_ref()
    }

    /// `host:port`.
    pub fn address(&self) -> String {
        format!("{}:{}", self.host(), self.port())
    }

    /// The process id, or `None` while it is not running.
    pub fn pid(&self) -> Option<u32> {
        self.server.pid()
    }

    /// Ends it as `kill -9` does and waits until it is gone; fine if it is not running. Its node in ZooKeeper lives
    /// on until the session expires (`zookeeper.session.timeout.ms`, here 3000).
    ///
    /// # Errors
    /// [`ClusterError::Io`] if its end cannot be waited for.
    pub fn kill(&self) -> Result<(), ClusterError> {
        self.server.kill()
    }

    /// Ends it by SIGTERM and waits until it is gone; fine if it is not running. It gives up its session.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`] if it does not end within a minute.
    pub fn stop(&self) -> Result<(), ClusterError> {
        self.server.stop()
    }

    /// Stops its world by SIGSTOP: connections stay open and nothing is answered.
    ///
    /// # Errors
    /// [`ClusterError::Server`] if it is not running.
    pub fn pause(&self) -> Result<(), ClusterError> {
        self.server.pause()
    }

    /// Lets it run again after [`Broker::pause`].
    ///
    /// # Errors
    /// [`ClusterError::Server`] if it is not running.
    pub fn resume(&self) -> Result<(), ClusterError> {
        self.server.resume()
    }

    /// Starts it again on the same port, stopping it first if it runs, and waits until it is up. After a kill this
    /// takes until ZooKeeper has expired the session of the one before.
    ///
    /// # Errors
    /// [`ClusterError::Server`] with the end of its log if it does not come up.
    pub fn restart(&self) -> Result<(), ClusterError> {
        self.stop()?;
        self.wait_until_unregistered()?;
        self.launch()?;
        self.wait_until_up(&[self.id])
    }

    /// As [`Broker::restart`], on another port.
    ///
    /// # Errors
    /// Those of [`Broker::restart`] and [`free_port`]; [`ClusterError::Invalid`] for a broker with a proxy.
    pub fn restart_on_new_port(&self) -> Result<(), ClusterError> {
        if self.proxy.is_some() {
            let what = format!("broker-{} has a proxy, whose port does not change", self.id);
            return Err(ClusterError::Invalid(what));
        }
        self.port.store(free_port()?, Ordering::Relaxed);
        self.restart()
    }

    /// Waits until it lists all of these brokers as alive, of which it is one, and the topics of which it has data:
    /// then it is registered in ZooKeeper and the controller has told it all. The topics come after the brokers.
    pub(crate) fn wait_until_up(&self, brokers: &[i32]) -> Result<(), ClusterError> {
        let client = Client::new(self.address());
        self.server.wait_until_up(|| {
            let alive = client.brokers().map_err(|error| error.to_string())?;
            let own = (self.id, self.address());
            let all = brokers.iter().all(|id| alive.iter().any(|(alive, _)| alive == id));
            if !all || !alive.contains(&own) {
                return Err(format!("it lists {alive:?}"));
            }
            let topics = client.topics().map_err(|error| error.to_string())?;
            match self.topics_on_disk().into_iter().find(|topic| !topics.contains(topic)) {
                Some(topic) => Err(format!("it does not know topic {topic}")),
                None => Ok(()),
            }
        })
    }

    /// The topics of its partitions, whose folders are `topic-partition`; those of deleted ones end differently.
    fn topics_on_disk(&self) -> Vec<String> {
        let folders = fs::read_dir(self.data()).into_iter().flatten().flatten();
        let names = folders.filter_map(|folder| folder.file_name().into_string().ok());
        let topic = |name: String| {
            let (topic, partition) = name.rsplit_once('-')?;
            partition.parse::<u32>().is_ok().then(|| topic.to_owned())
        };
        names.filter_map(topic).collect()
    }

    fn data(&self) -> PathBuf {
        self.server.folder().join("data")
    }

    /// Waits until its node in ZooKeeper is gone: a broker that finds the node of its predecessor ends itself.
    fn wait_until_unregistered(&self) -> Result<(), ClusterError> {
        let node = format!("{}/brokers/ids/{}", self.chroot, self.id);
        until(&format!("end of the ZooKeeper node {node}"), || {
            let dump = self.ensemble.command("dump")?;
            let registered = dump.lines().any(|line| line.trim() == node);
            Ok(if registered { Look::NotYet("it exists".to_owned()) } else { Look::Done(()) })
        })
    }

    fn launch(&self) -> Result<(), ClusterError> {
        let own = [
            ("broker.id", self.id.to_string()),
            ("listeners", format!("PLAINTEXT://127.0.0.1:{}", self.port.load(Ordering::Relaxed))),
            ("advertised.listeners", format!("PLAINTEXT://{}", self.address())),
            ("zookeeper.connect", self.ensemble.connect() + &self.chroot),
            ("log.dirs", self.data().display().to_string()),
        ];
        let defaults = PROPERTIES.iter().map(|&(key, value)| (key, value.to_owned()));
        let properties = own.into_iter().chain(defaults).map(|(key, value)| (key.to_owned(), value));
        let properties: Vec<_> = properties.chain(self.overrides.iter().cloned()).collect();
        let properties = self.server.write_properties("server.properties", &properties)?;
        let arguments = ["-Xmx512m".into(), OsString::from("kafka.Kafka"), properties.into_os_string()];
        self.server.start(self.version, &arguments)
    }
}
