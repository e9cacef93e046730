//! What a broker's `server.properties` says, by release.

use crate::KafkaVersion;

/// Defaults for quick tests on a small machine; [`crate::ClusterBuilder::broker_property`] comes after them. A broker
/// warns of those that its release does not know, and goes on.
const DEFAULTS: &[(&str, &str)] = &[
    ("auto.create.topics.enable", "false"),
    ("delete.topic.enable", "true"),
    ("controlled.shutdown.enable", "false"),
    ("group.initial.rebalance.delay.ms", "0"),
    ("offsets.topic.num.partitions", "8"),
    ("offsets.topic.replication.factor", "1"),
    ("transaction.state.log.num.partitions", "8"),
    ("transaction.state.log.replication.factor", "1"),
    ("transaction.state.log.min.isr", "1"),
    // the default takes 128 MiB of the small heap
    ("log.cleaner.dedupe.buffer.size", "8388608"),
    // 10 MiB for each index of each partition by default
    ("log.index.size.max.bytes", "1048576"),
];
const IN_ZOOKEEPER_MODE: &[(&str, &str)] = &[
    // a killed broker leaves ZooKeeper this soon
    ("zookeeper.session.timeout.ms", "3000"),
    ("zookeeper.connection.timeout.ms", "30000"),
];
const IN_KRAFT_MODE: &[(&str, &str)] = &[
    ("broker.session.timeout.ms", "3000"),
    ("broker.heartbeat.interval.ms", "500"),
    ("controller.listener.names", CONTROLLER),
];
/// The name of the only listener if the cluster has not named others.
pub(crate) const DEFAULT_LISTENER: &str = "PLAINTEXT";
/// The listener of the broker that is the controller too.
const CONTROLLER: &str = "CONTROLLER";

/// A listener: its name, its own port, and the port that clients are told.
#[derive(Debug, Clone)]
pub(crate) struct Listener {
    pub(crate) name: String,
    pub(crate) port: u16,
    pub(crate) advertised: u16,
}

/// What differs from broker to broker and from start to start.
#[derive(Debug)]
pub(crate) struct Description<'a> {
    pub(crate) id: i32,
    pub(crate) version: KafkaVersion,
    /// The oldest release that the others may be of.
    pub(crate) protocol: KafkaVersion,
    /// The first is for the other brokers too.
    pub(crate) listeners: &'a [Listener],
    /// Of broker 0 in KRaft mode.
    pub(crate) controller_port: u16,
    pub(crate) zookeeper: String,
    pub(crate) data: String,
}

impl Description<'_> {
    /// The lines of `server.properties`.
    pub(crate) fn properties(&self) -> Vec<(String, String)> {
        let mode = if self.version.is_kraft() { IN_KRAFT_MODE } else { IN_ZOOKEEPER_MODE };
        let defaults = DEFAULTS.iter().chain(mode).map(|&(key, value)| (key, value.to_owned()));
        let own = if self.version.is_kraft() { self.kraft() } else { self.zookeeper_mode() };
        let common = [("log.dirs", self.data.clone())];
        let all = common.into_iter().chain(own).chain(self.sockets()).chain(defaults);
        all.map(|(key, value)| (key.to_owned(), value)).collect()
    }

    fn zookeeper_mode(&self) -> Vec<(&'static str, String)> {
        let mut lines =
            vec![("broker.id", self.id.to_string()), ("zookeeper.connect", self.zookeeper.clone())];
        if self.protocol != self.version {
            let protocol = self.protocol.release().protocol.to_owned();
            lines.push(("inter.broker.protocol.version", protocol.clone()));
            lines.push(("log.message.format.version", protocol));
        }
        lines
    }

    /// Broker 0 is the only controller.
    fn kraft(&self) -> Vec<(&'static str, String)> {
        let roles = if self.is_controller() { "broker,controller" } else { "broker" };
        vec![
            ("node.id", self.id.to_string()),
            ("process.roles", roles.to_owned()),
            ("controller.quorum.voters", format!("0@127.0.0.1:{}", self.controller_port)),
        ]
    }

    fn is_controller(&self) -> bool {
        self.version.is_kraft() && self.id == 0
    }

    fn sockets(&self) -> Vec<(&'static str, String)> {
        let first = &self.listeners[0];
        if self.version == KafkaVersion::V0_8_2_2 {
            return vec![
                ("host.name", "127.0.0.1".to_owned()),
                ("port", first.port.to_string()),
                ("advertised.host.name", "127.0.0.1".to_owned()),
                ("advertised.port", first.advertised.to_string()),
            ];
        }
        let join = |all: Vec<String>| all.join(",");
        let socket = |name: &str, port: u16| format!("{name}://127.0.0.1:{port}");
        let mut own: Vec<_> = self.listeners.iter().map(|it| socket(&it.name, it.port)).collect();
        let advertised = self.listeners.iter().map(|it| socket(&it.name, it.advertised)).collect();
        if self.is_controller() {
            own.push(socket(CONTROLLER, self.controller_port));
        }
        let mut lines = vec![("listeners", join(own)), ("advertised.listeners", join(advertised))];
        if self.version.is_kraft() || self.listeners.len() > 1 || first.name != DEFAULT_LISTENER {
            let names = self.listeners.iter().map(|it| it.name.as_str()).chain([CONTROLLER]);
            let map = names.map(|name| format!("{name}:PLAINTEXT")).collect();
            lines.push(("listener.security.protocol.map", join(map)));
            lines.push(("inter.broker.listener.name", first.name.clone()));
        }
        lines
    }
}
