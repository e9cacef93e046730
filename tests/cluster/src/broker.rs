//! A Kafka broker.

use crate::{
    Client, ClusterError, Ensemble, KafkaVersion, Proxy, free_port,
    poll::{Look, until},
    properties::{Description, Listener},
    scratch::Scratch,
    server::Server,
};
use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU16, Ordering},
    },
};

/// Of KRaft clusters: any 16 bytes in base 64 that are not all zero, since each cluster is alone in its folder.
const CLUSTER_ID: &str = "dHJvdXBlLWNsdXN0ZXIwMA";
/// What a KRaft broker has among its topics' folders.
const METADATA_LOG: &str = "__cluster_metadata";

/// One Kafka broker on a port of 127.0.0.1, which keeps its data over restarts.
#[derive(Debug)]
pub struct Broker {
    server: Server,
    id: i32,
    releases: Mutex<Releases>,
    /// Of the first listener.
    port: AtomicU16,
    listeners: Vec<Listener>,
    controller_port: u16,
    ensemble: Arc<Ensemble>,
    chroot: String,
    overrides: Vec<(String, String)>,
    /// What it advertises instead of its own address.
    proxy: Option<Proxy>,
}

/// What it runs as, now or when it is started next.
#[derive(Debug, Clone, Copy)]
struct Releases {
    version: KafkaVersion,
    /// What it speaks to the others and writes into its log.
    protocol: KafkaVersion,
}

/// What all brokers of a cluster share.
#[derive(Debug)]
pub(crate) struct Shared<'a> {
    pub(crate) scratch: &'a Arc<Scratch>,
    pub(crate) ensemble: &'a Arc<Ensemble>,
    pub(crate) version: KafkaVersion,
    pub(crate) chroot: &'a str,
    pub(crate) overrides: &'a [(String, String)],
    /// The same for one broker each.
    pub(crate) own: &'a [(i32, String, String)],
    /// Their names.
    pub(crate) listeners: &'a [String],
    /// Of broker 0 in KRaft mode.
    pub(crate) controller_port: u16,
    pub(crate) proxied: bool,
}

impl Broker {
    /// Launches the process; [`Broker::wait_until_up`] is for the caller, so that brokers start side by side.
    pub(crate) fn launch_new(id: i32, shared: &Shared<'_>) -> Result<Self, ClusterError> {
        let port = free_port()?;
        let listeners = shared.listeners.iter().enumerate().map(|(index, name)| {
            let port = if index == 0 { port } else { free_port()? };
            Ok(Listener { name: name.clone(), port, advertised: port })
        });
        let own = shared.own.iter().filter(|(of, ..)| *of == id);
        let own = own.map(|(_, key, value)| (key.clone(), value.clone()));
        let broker = Self {
            server: Server::new(shared.scratch, &format!("broker-{id}"))?,
            id,
            releases: Mutex::new(Releases { version: shared.version, protocol: shared.version }),
            port: AtomicU16::new(port),
            listeners: listeners.collect::<Result<_, ClusterError>>()?,
            controller_port: shared.controller_port,
            ensemble: Arc::clone(shared.ensemble),
            chroot: shared.chroot.to_owned(),
            overrides: shared.overrides.iter().cloned().chain(own).collect(),
            proxy: if shared.proxied { Some(Proxy::start(format!("127.0.0.1:{port}"))?) } else { None },
        };
        broker.launch()?;
        Ok(broker)
    }

    /// Its `broker.id`, which is also its index in the cluster.
    pub fn id(&self) -> i32 {
        self.id
    }

    /// The release that it runs, or ran when it ended.
    pub fn version(&self) -> KafkaVersion {
        self.releases().version
    }

    /// The release that it speaks, which an upgrade leaves as it was.
    pub(crate) fn protocol(&self) -> KafkaVersion {
        self.releases().protocol
    }

    /// Always `127.0.0.1`.
    pub fn host(&self) -> &'static str {
        "127.0.0.1"
    }

    /// The port at which clients reach it: its proxy's, or that of its first listener (PLAINTEXT, if the cluster
    /// has not named others).
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

    /// `host:port` of one of several listeners, by its name.
    pub fn listener(&self, name: &str) -> Option<String> {
        let found = self.listeners().into_iter().find(|listener| listener.name == name);
        found.map(|listener| format!("{}:{}", self.host(), listener.advertised))
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

    /// As [`Broker::restart`], as another release on the same data: an upgrade in place. It goes on to speak to the
    /// other brokers, and to write its log, as the release did that it was before (`inter.broker.protocol.version`,
    /// `log.message.format.version`), so that brokers can be upgraded one after the other; a second call with the
    /// same release ends that.
    ///
    /// # Errors
    /// Those of [`Broker::restart`]; [`ClusterError::Invalid`] from ZooKeeper to KRaft mode or back, and to a release
    /// before the one whose protocol it speaks.
    pub fn restart_as(&self, version: KafkaVersion) -> Result<(), ClusterError> {
        let now = self.releases();
        let protocol = if version == now.version { version } else { now.protocol };
        if version.is_kraft() != now.version.is_kraft() || version < protocol {
            let what = format!("broker-{} cannot be made a {version} from a {}", self.id, now.version);
            return Err(ClusterError::Invalid(what));
        }
        self.stop()?;
        *self.releases.lock().unwrap_or_else(PoisonError::into_inner) = Releases { version, protocol };
        self.restart()
    }

    fn releases(&self) -> Releases {
        *self.releases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// With the ports of now.
    fn listeners(&self) -> Vec<Listener> {
        let mut listeners = self.listeners.clone();
        if let Some(first) = listeners.first_mut() {
            first.port = self.port.load(Ordering::Relaxed);
            first.advertised = self.port();
        }
        listeners
    }

    /// Waits until it lists all of these brokers as alive, of which it is one, and the topics of which it has data:
    /// then it is registered in ZooKeeper and the controller has told it all. The topics come after the brokers.
    pub(crate) fn wait_until_up(&self, brokers: &[i32]) -> Result<(), ClusterError> {
        let client = Client::new(self.address()).of_version(self.version(), self.zookeeper_connect());
        self.server.wait_until_up(|| {
            let alive = client.brokers().map_err(|error| error.to_string())?;
            let own = (self.id, self.address());
            if self.version() == KafkaVersion::V0_8_2_2
                && alive.is_empty()
                && self.topics_on_disk().is_empty()
            {
                // it knows of others with the first topic
                let registered = brokers.iter().try_fold(true, |all, id| Ok(all && self.is_registered(*id)?));
                return match registered.map_err(|error: ClusterError| error.to_string())? {
                    true => Ok(()),
                    false => Err("not all are in ZooKeeper".to_owned()),
                };
            }
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
            (partition.parse::<u32>().is_ok() && topic != METADATA_LOG).then(|| topic.to_owned())
        };
        names.filter_map(topic).collect()
    }

    /// The folder with its partitions' logs, named `topic-partition`; it goes with the cluster.
    pub fn data(&self) -> PathBuf {
        self.server.folder().join("data")
    }

    /// Waits until its node in ZooKeeper is gone: a broker that finds the node of its predecessor ends itself. In
    /// KRaft mode it waits itself.
    fn wait_until_unregistered(&self) -> Result<(), ClusterError> {
        if self.version().is_kraft() {
            return Ok(());
        }
        until(&format!("end of the ZooKeeper node of broker-{}", self.id), || {
            let registered = self.is_registered(self.id)?;
            Ok(if registered { Look::NotYet("it exists".to_owned()) } else { Look::Done(()) })
        })
    }

    fn is_registered(&self, id: i32) -> Result<bool, ClusterError> {
        let node = format!("{}/brokers/ids/{id}", self.chroot);
        let dump = self.ensemble.command("dump")?;
        Ok(dump.lines().any(|line| line.trim() == node))
    }

    fn zookeeper_connect(&self) -> String {
        self.ensemble.connect() + &self.chroot
    }

    fn launch(&self) -> Result<(), ClusterError> {
        let Releases { version, protocol } = self.releases();
        let description = Description {
            id: self.id,
            version,
            protocol,
            listeners: &self.listeners(),
            controller_port: self.controller_port,
            zookeeper: self.zookeeper_connect(),
            data: self.data().display().to_string(),
        };
        let properties = [description.properties(), self.overrides.clone()].concat();
        let properties = self.server.write_properties("server.properties", &properties)?;
        if version.is_kraft() && !self.data().join("meta.properties").exists() {
            self.format(version, &properties)?;
        }
        let arguments = ["-Xmx512m".into(), OsString::from("kafka.Kafka"), properties.into_os_string()];
        self.server.start(version, &arguments)
    }

    /// Makes its data folder one of the cluster's, with all features as the release has them by default.
    fn format(&self, version: KafkaVersion, properties: &Path) -> Result<(), ClusterError> {
        let arguments = ["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c"];
        let mut arguments = arguments.map(OsString::from).to_vec();
        arguments.push(properties.into());
        self.server.run(version, &arguments)
    }
}
