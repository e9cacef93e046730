//! The generations of servers: a new one is a variant and a row.

use std::{fmt, str::FromStr};

/// A release of Kafka, as a cluster's brokers and as Java programs; a later release is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum KafkaVersion {
    /// 0.8.2.2 for Scala 2.11: message sets of magic 0; closes the connection on a request that it does not know.
    V0_8_2_2,
    /// 0.9.0.1 for Scala 2.11: the first with groups that brokers coordinate.
    V0_9_0_1,
    /// 0.10.2.2 for Scala 2.11: message sets of magic 1, which have timestamps; the first with ApiVersions.
    V0_10_2_2,
    /// 0.11.0.3 for Scala 2.11: the first with record batches of magic 2, headers and transactions.
    V0_11_0_3,
    /// 1.1.1 for Scala 2.11: the last with the old consumer.
    V1_1_1,
    /// 2.8.2 for Scala 2.13, in ZooKeeper mode.
    V2_8_2,
    /// 3.9.1 for Scala 2.13: the last with ZooKeeper.
    V3_9_1,
    /// 4.1.1 for Scala 2.13, in KRaft mode.
    V4_1_1,
    /// 4.4.0 for Scala 2.13, in KRaft mode.
    V4_4_0,
}

/// A release of ZooKeeper; each comes with the jars of a release of Kafka.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ZooKeeperVersion {
    /// 3.4.10, which Kafka 1.1.1 brings.
    V3_4_10,
    /// 3.8.4, which Kafka 3.9.1 brings.
    V3_8_4,
}

/// What the cluster needs to know of a release of Kafka.
pub(crate) struct Release {
    pub(crate) name: &'static str,
    /// As `inter.broker.protocol.version` and `log.message.format.version` call it.
    pub(crate) protocol: &'static str,
    pub(crate) scala: &'static str,
    /// More artifacts (`group:artifact:version`) that it needs.
    pub(crate) extras: &'static [&'static str],
}

/// Maven's Kafka has no logger.
const LOG4J: &str = "org.slf4j:slf4j-log4j12:1.7.25";
const RELOAD4J: &str = "org.slf4j:slf4j-reload4j:1.7.36";
/// What later Javas lack.
const JAXB: &str = "javax.xml.bind:jaxb-api:2.3.1";

impl KafkaVersion {
    /// All versions, oldest first.
    pub const ALL: &'static [Self] = &[
        Self::V0_8_2_2,
        Self::V0_9_0_1,
        Self::V0_10_2_2,
        Self::V0_11_0_3,
        Self::V1_1_1,
        Self::V2_8_2,
        Self::V3_9_1,
        Self::V4_1_1,
        Self::V4_4_0,
    ];

    /// Whether its brokers keep their metadata themselves; those of all others keep it in ZooKeeper.
    pub fn is_kraft(self) -> bool {
        self >= Self::V4_1_1
    }

    /// The row of the table. The console tools of 3.9.1 and later are not in the core.
    pub(crate) fn release(self) -> Release {
        let (name, protocol, scala, extras): (_, _, _, &[_]) = match self {
            Self::V0_8_2_2 => ("0.8.2.2", "0.8.2", "2.11", &[LOG4J]),
            Self::V0_9_0_1 => ("0.9.0.1", "0.9.0", "2.11", &[LOG4J]),
            Self::V0_10_2_2 => ("0.10.2.2", "0.10.2", "2.11", &[LOG4J, JAXB]),
            Self::V0_11_0_3 => ("0.11.0.3", "0.11.0", "2.11", &[LOG4J, JAXB]),
            Self::V1_1_1 => ("1.1.1", "1.1", "2.11", &[LOG4J]),
            Self::V2_8_2 => ("2.8.2", "2.8", "2.13", &["org.slf4j:slf4j-log4j12:1.7.30"]),
            Self::V3_9_1 => ("3.9.1", "3.9", "2.13", &[RELOAD4J, "org.apache.kafka:kafka-tools:3.9.1"]),
            Self::V4_1_1 => ("4.1.1", "4.1", "2.13", &[RELOAD4J, "org.apache.kafka:kafka-tools:4.1.1"]),
            Self::V4_4_0 => ("4.4.0", "4.4", "2.13", &[RELOAD4J, "org.apache.kafka:kafka-tools:4.4.0"]),
        };
        Release { name, protocol, scala, extras }
    }
}

impl ZooKeeperVersion {
    /// The release of Kafka whose class path has this ZooKeeper.
    pub(crate) fn comes_with(self) -> KafkaVersion {
        match self {
            Self::V3_4_10 => KafkaVersion::V1_1_1,
            Self::V3_8_4 => KafkaVersion::V3_9_1,
        }
    }
}

impl fmt::Display for KafkaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.release().name)
    }
}

impl FromStr for KafkaVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.iter().copied().find(|version| version.release().name == text).ok_or_else(|| {
            let known: Vec<String> = Self::ALL.iter().map(ToString::to_string).collect();
            format!("unknown Kafka version {text}; known: {}", known.join(", "))
        })
    }
}
