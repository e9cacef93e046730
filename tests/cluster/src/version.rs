//! The generations of servers: a new one is a variant and a row.

use std::{fmt, str::FromStr};

/// A release of Kafka whose programs run on the Java that is installed; all but the oldest also as the cluster's
/// brokers, in ZooKeeper mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KafkaVersion {
    /// 0.8.2.2 for Scala 2.11, for its consumer: the cluster's own client asks more of a broker.
    V0_8_2_2,
    /// 1.1.1 for Scala 2.11: the last with the old consumer.
    V1_1_1,
    /// 3.9.1 for Scala 2.13: the last with ZooKeeper.
    V3_9_1,
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
    pub(crate) scala: &'static str,
    /// More artifacts (`group:artifact:version`) that it needs: Maven's Kafka has no logger, and later Javas
    /// lack modules.
    pub(crate) extras: &'static [&'static str],
}

impl KafkaVersion {
    /// All versions of brokers, oldest first.
    pub const ALL: &'static [Self] = &[Self::V1_1_1, Self::V3_9_1];

    /// The row of the table.
    pub(crate) fn release(self) -> Release {
        match self {
            Self::V0_8_2_2 => {
                Release { name: "0.8.2.2", scala: "2.11", extras: &["org.slf4j:slf4j-log4j12:1.7.25"] }
            }
            Self::V1_1_1 => {
                Release { name: "1.1.1", scala: "2.11", extras: &["org.slf4j:slf4j-log4j12:1.7.25"] }
            }
            Self::V3_9_1 => Release {
                name: "3.9.1",
                scala: "2.13",
                // the console tools moved out of the core
                extras: &["org.slf4j:slf4j-reload4j:1.7.36", "org.apache.kafka:kafka-tools:3.9.1"],
            },
        }
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
