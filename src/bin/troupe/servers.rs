//! Where the servers are: the options that all commands share.

use std::path::PathBuf;
use std::time::Duration;

use kafka_troupe::ConsumerConfig;
use kafka_troupe::actors::broker_connection::ConnectOptions;
use kafka_troupe::admin::{KafkaAdmin, ZooKeeperAdmin};
use kafka_troupe::proto::config::{BootstrapServers, Parsed, ServerAddress, java_properties};
use kafka_troupe::proto::zk::broker::SecurityProtocol;
use kafka_troupe::proto::zk::connect_string::ConnectString;

use crate::exit::Failure;
use crate::properties_file;

const PROTOCOL: &str = "security.protocol";

/// Where ZooKeeper and Kafka are.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Servers {
    /// Where ZooKeeper is: host:port,host:port/chroot
    #[arg(long, alias = "zkconnect", alias = "zookeeper.connect", value_name = "HOSTS/CHROOT")]
    pub zookeeper: Option<String>,
    /// Brokers to ask, host:port,host:port; without, those that stand in ZooKeeper
    #[arg(long, alias = "broker-list", value_name = "HOSTS")]
    pub bootstrap_server: Option<String>,
    /// A properties file with more: client.id, socket.timeout.ms, zookeeper.connection.timeout.ms
    #[arg(long, value_name = "FILE")]
    pub command_config: Option<PathBuf>,
}

/// What `--command-config`, or the consumer's properties, set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `client.id`: how we are named to brokers. Default: `troupe`.
    pub client_id: String,
    /// `socket.timeout.ms`: how long a broker may take. Default: 10 s.
    pub socket_timeout: Duration,
    /// `zookeeper.connection.timeout.ms`, or that of the session: how long ZooKeeper may take. Default: 6 s.
    pub zookeeper_timeout: Duration,
}

impl Servers {
    /// That one of both is named where groups are looked for.
    pub fn require_one(&self) -> Result<(), Failure> {
        match (&self.zookeeper, &self.bootstrap_server) {
            (None, None) => Err(Failure::usage(
                "--zookeeper HOSTS/CHROOT is missing, or --bootstrap-server HOSTS: it says which kind of group is meant",
            )),
            _ => Ok(()),
        }
    }

    /// ZooKeeper, which `--zookeeper` names.
    pub async fn zookeeper(&self) -> Result<ZooKeeperAdmin, Failure> {
        self.zookeeper_with(&self.settings()?).await
    }

    async fn zookeeper_with(&self, settings: &Settings) -> Result<ZooKeeperAdmin, Failure> {
        Ok(ZooKeeperAdmin::connect(self.connect_string()?, settings.zookeeper_timeout).await?)
    }

    /// The brokers: those of `--bootstrap-server`, else those that stand in ZooKeeper.
    pub async fn kafka(&self) -> Result<KafkaAdmin, Failure> {
        self.kafka_with(&self.settings()?).await
    }

    /// As [`kafka`](Self::kafka), with these in place of what is in `--command-config`.
    pub async fn kafka_with(&self, settings: &Settings) -> Result<KafkaAdmin, Failure> {
        if let Some(servers) = self.bootstrap()? {
            return Ok(KafkaAdmin::connect(servers, settings.connect_options()).await?);
        }
        if self.zookeeper.is_none() {
            return Err(Failure::usage(
                "--bootstrap-server HOSTS is missing, or --zookeeper HOSTS/CHROOT where the brokers stand",
            ));
        }
        let zookeeper = self.zookeeper_with(settings).await?;
        let kafka = brokers_of(&zookeeper, settings).await;
        zookeeper.close().await;
        kafka
    }

    /// As [`kafka`](Self::kafka), where ZooKeeper is at hand already. Entries there that cannot be used are told.
    pub async fn kafka_beside(&self, zookeeper: &ZooKeeperAdmin) -> Result<KafkaAdmin, Failure> {
        let settings = self.settings()?;
        match self.bootstrap()? {
            Some(servers) => Ok(KafkaAdmin::connect(servers, settings.connect_options()).await?),
            None => brokers_of(zookeeper, &settings).await,
        }
    }

    /// Where ZooKeeper is; names the flag where it is missing or wrong.
    pub fn connect_string(&self) -> Result<ConnectString, Failure> {
        let given = self.zookeeper.as_deref();
        let given = given.ok_or_else(|| Failure::usage("--zookeeper HOSTS/CHROOT is missing"))?;
        given.parse().map_err(|why| Failure::usage(format!("--zookeeper: {why}")))
    }

    /// The brokers of `--bootstrap-server`, if it is given.
    pub fn bootstrap(&self) -> Result<Option<Vec<ServerAddress>>, Failure> {
        let Some(given) = self.bootstrap_server.as_deref() else { return Ok(None) };
        let servers: BootstrapServers =
            given.parse().map_err(|why| Failure::usage(format!("--bootstrap-server: {why}")))?;
        match servers.addresses() {
            [] => Err(Failure::usage("--bootstrap-server: no broker: write host:port,host:port")),
            servers => Ok(Some(servers.to_vec())),
        }
    }

    /// The settings in `--command-config`, over the defaults.
    pub fn settings(&self) -> Result<Settings, Failure> {
        let Some(file) = &self.command_config else {
            return Ok(Settings::from(&consumer_config(&[])?.config));
        };
        let text = properties_file::read("--command-config", file)?;
        let properties = java_properties::parse(&text).map_err(Failure::usage);
        let parsed = properties.and_then(|properties| consumer_config(&properties));
        let unusable = |why: Failure| Failure::usage(format!("--command-config {}: {why}", file.display()));
        Ok(Settings::from(&parsed.map_err(unusable)?.config))
    }
}

async fn brokers_of(zookeeper: &ZooKeeperAdmin, settings: &Settings) -> Result<KafkaAdmin, Failure> {
    let (brokers, warnings) = zookeeper.brokers(SecurityProtocol::Plaintext).await?;
    warnings.iter().for_each(|warning| say!("passed over: {warning}"));
    Ok(KafkaAdmin::from_brokers(brokers, settings.connect_options()))
}

impl Settings {
    /// How brokers are talked to.
    pub fn connect_options(&self) -> ConnectOptions {
        ConnectOptions::new(self.client_id.as_str(), self.socket_timeout)
    }
}

impl From<&ConsumerConfig> for Settings {
    fn from(config: &ConsumerConfig) -> Self {
        Self {
            client_id: config.client_id.clone(),
            socket_timeout: config.socket_timeout,
            zookeeper_timeout: config.zookeeper_connection_timeout,
        }
    }
}

/// What properties say where there is no group to be a member of, over our defaults. An old consumer.properties will do;
/// what it must name for a consumer is not needed here.
pub fn consumer_config(properties: &[(String, String)]) -> Result<Parsed, Failure> {
    if let Some(other) = protocol(properties) {
        return Err(Failure::usage(format!("{PROTOCOL}={other}: brokers are talked to in PLAINTEXT only")));
    }
    let defaults = ConsumerConfig::builder()
        .zookeeper_connect("localhost")
        .group_id("troupe")
        .property("client.id", "troupe")
        .property("socket.timeout.ms", "10000");
    let builder = properties.iter().fold(defaults, |builder, (key, value)| builder.property(key, value));
    builder.build_with_report().map_err(Failure::usage)
}

/// Another than we speak: a broker would only be silent about it.
fn protocol(properties: &[(String, String)]) -> Option<&str> {
    let (_, given) = properties.iter().rev().find(|(key, _)| key == PROTOCOL)?;
    (!given.trim().eq_ignore_ascii_case("PLAINTEXT")).then_some(given)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Servers;

    #[test]
    fn what_brokers_would_only_be_silent_about_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let servers = Servers { command_config: Some(file.path().to_owned()), ..Servers::default() };
        fs::write(file.path(), "security.protocol=plaintext\nclient.id=t\n").unwrap();
        assert_eq!(servers.settings().unwrap().client_id, "t");
        fs::write(file.path(), "security.protocol=SASL_SSL\n").unwrap();
        let why = servers.settings().unwrap_err().to_string();
        assert!(
            why.ends_with(": security.protocol=SASL_SSL: brokers are talked to in PLAINTEXT only"),
            "{why}"
        );
    }
}
