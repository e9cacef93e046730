//! Configuration: every property of the old consumer, and Troupe's own under `troupe.`.
//!
//! One table (`table.rs`) declares each property once: key, type, default, unit, check and what it trades
//! off. From it come the typed [`ConsumerConfig`] and its builder, the reader of Java properties, and
//! [`properties`] for documentation.
//!
//! ```
//! use std::time::Duration;
//! use kafka_troupe_proto::config::{ConsumerConfig, OffsetReset};
//!
//! let config = ConsumerConfig::builder()
//!     .zookeeper_connect("zk1:2181,zk2:2181/kafka")
//!     .group_id("orders")
//!     .auto_offset_reset(OffsetReset::Smallest)
//!     .auto_commit_interval(Duration::from_secs(5))
//!     .build()?;
//! assert_eq!(config.client_id, "orders");
//! # Ok::<(), kafka_troupe_proto::config::ConfigErrors>(())
//! ```

mod checks;
mod choices;
mod declare;
mod errors;
mod file_check;
mod iso_duration;
pub mod java_properties;
mod nearest;
mod offset_reset;
mod old_consumer;
mod property;
mod secrets;
mod servers;
mod table;

pub use choices::{AssignmentStrategy, InternalTopicsPeers, IsolationLevel, OffsetsStorage, RoundRobinPeers};
pub use errors::{ConfigError, ConfigErrors, PropertyNotice};
pub use file_check::{CheckedProperty, Treatment, check_file};
pub use iso_duration::parse as parse_duration;
pub use offset_reset::OffsetReset;
pub use property::{Effect, Property, RENAMED, properties};
pub(crate) use secrets::without_credentials;
pub use servers::{BootstrapServers, ServerAddress, ServerError};
pub use table::{ConsumerConfig, ConsumerConfigBuilder};

use crate::zk::topic_filter::{INTERNAL_BEFORE_0_11, INTERNAL_TOPICS};

/// A configuration read from properties, with what its author should be told.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Parsed {
    /// The valid configuration.
    pub config: ConsumerConfig,
    /// Properties that have no effect, in the order given; each is worth a warning.
    pub report: Vec<PropertyNotice>,
}

impl ConsumerConfig {
    /// The topics that white and black lists never take in here, by `exclude.internal.topics` and
    /// `troupe.internal.topics.peers`.
    pub fn kept_out_topics(&self) -> &'static [&'static str] {
        match (self.exclude_internal_topics, self.internal_topics_peers) {
            (false, _) => &[],
            (true, InternalTopicsPeers::Before0_11) => INTERNAL_BEFORE_0_11,
            (true, InternalTopicsPeers::From0_11) => INTERNAL_TOPICS,
        }
    }

    /// Starts a configuration; `zookeeper_connect` and `group_id` are required.
    pub fn builder() -> ConsumerConfigBuilder {
        ConsumerConfigBuilder::default()
    }

    /// Reads the text of a Java `.properties` file, as given to the old consumer. All problems are reported
    /// at once.
    pub fn from_properties(text: &str) -> Result<Parsed, ConfigErrors> {
        Self::builder().properties(text).build_with_report()
    }

    /// Reads properties given as keys and values; of equal keys the last counts.
    pub fn from_pairs<K: AsRef<str>, V: AsRef<str>>(
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Parsed, ConfigErrors> {
        let set = |builder: ConsumerConfigBuilder, (key, value): (K, V)| {
            builder.property(key.as_ref(), value.as_ref())
        };
        pairs.into_iter().fold(Self::builder(), set).build_with_report()
    }
}

impl ConsumerConfigBuilder {
    /// Makes properties that have no effect (unknown, renamed, not acted on) errors instead of notices.
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Sets one property from text, with white space around its value removed. An unknown key becomes a
    /// notice.
    pub fn property(mut self, key: &str, value: &str) -> Self {
        match property::Known::of(key) {
            property::Known::Property(property) => {
                let outcome =
                    (property.set)(&mut self, value.trim()).map_err(|why| secrets::unless_secret(value, why));
                // of equal keys the last counts, for its mistakes too
                self.problems.retain(|problem| problem.property() != Some(key));
                self.problems.extend(outcome.err().map(|reason| ConfigError::invalid(key, reason)));
                property.notice().into_iter().for_each(|notice| self.notice(notice));
            }
            property::Known::Renamed(key, successor) => {
                self.notices.push(PropertyNotice::Renamed { key, successor });
            }
            property::Known::External => {}
            property::Known::No => self.notices.push(PropertyNotice::NotValid { key: key.to_owned() }),
        }
        self
    }

    /// Told once, however often the property is set.
    fn notice(&mut self, notice: PropertyNotice) {
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }

    /// Sets every property in the text of a Java `.properties` file.
    pub fn properties(mut self, text: &str) -> Self {
        match java_properties::parse(text) {
            Ok(pairs) => pairs.iter().fold(self, |builder, (key, value)| builder.property(key, value)),
            Err(syntax) => {
                self.problems.push(syntax);
                self
            }
        }
    }

    /// Checks everything, and reports all problems at once.
    pub fn build(self) -> Result<ConsumerConfig, ConfigErrors> {
        self.build_with_report().map(|parsed| parsed.config)
    }

    /// As [`build`](Self::build), with the notices about properties that have no effect.
    pub fn build_with_report(mut self) -> Result<Parsed, ConfigErrors> {
        let report = std::mem::take(&mut self.notices);
        let strict = self.strict;
        let (config, mut problems) = self.resolve();
        problems.extend(checks::across(&config));
        if strict {
            problems.extend(report.iter().cloned().map(ConfigError::NoEffect));
        }
        if problems.is_empty() { Ok(Parsed { config, report }) } else { Err(ConfigErrors(problems)) }
    }
}

#[cfg(test)]
mod tests;
