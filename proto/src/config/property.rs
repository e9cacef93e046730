//! What is known about each property, and how its text becomes a value.

use std::fmt::Display;
use std::time::Duration;

use super::choices::{
    AssignmentStrategy, InternalTopicsPeers, IsolationLevel, OffsetsStorage, RoundRobinPeers,
};
use super::errors::PropertyNotice;
use super::offset_reset::OffsetReset;
use super::secrets::without_credentials;
use super::servers::{BootstrapServers, ServerError};
use super::table::{ConsumerConfigBuilder, TABLE};
use crate::zk::connect_string::ConnectString;

/// A property that the old consumer or Troupe knows.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Property {
    /// Its name in a properties file.
    pub key: &'static str,
    /// Its default, as it would be written, or the rule that gives it.
    pub default: &'static str,
    /// Its unit, or the kind of its value.
    pub unit: &'static str,
    /// What it does and trades off.
    pub about: &'static str,
    /// Whether Troupe acts on it. If not, it is checked and reported.
    pub effect: Effect,
    pub(super) set: fn(&mut ConsumerConfigBuilder, &str) -> Result<(), String>,
}

/// Whether Troupe acts on a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// It does.
    Full,
    /// It never will; `about` says why.
    None,
}

impl Property {
    /// What its author should be told when it is set.
    pub(super) fn notice(&self) -> Option<PropertyNotice> {
        let key = self.key;
        match self.effect {
            Effect::Full => None,
            Effect::None => Some(PropertyNotice::NotActedOn { key, about: self.about }),
        }
    }
}

/// What stands as the default of a property that must be set.
pub(super) const REQUIRED: &str = "required";

/// Every property, in the order of the documentation.
pub fn properties() -> impl Iterator<Item = &'static Property> {
    TABLE.iter()
}

/// Names of Kafka 0.7 and what took their place. No aliases: 0.8 and later warn and ignore them, and so does
/// Troupe.
pub const RENAMED: &[(&str, Option<&str>)] = &[
    ("zk.connect", Some("zookeeper.connect")),
    ("zk.sessiontimeout.ms", Some("zookeeper.session.timeout.ms")),
    ("zk.connectiontimeout.ms", Some("zookeeper.connection.timeout.ms")),
    ("zk.synctime.ms", Some("zookeeper.sync.time.ms")),
    ("groupid", Some("group.id")),
    ("consumerid", Some("consumer.id")),
    ("socket.buffersize", Some("socket.receive.buffer.bytes")),
    ("fetch.size", Some("fetch.message.max.bytes")),
    ("fetcher.backoff.ms", None),
    ("autocommit.enable", Some("auto.commit.enable")),
    ("autocommit.interval.ms", Some("auto.commit.interval.ms")),
    ("queuedchunks.max", Some("queued.max.message.chunks")),
    ("rebalance.retries.max", Some("rebalance.max.retries")),
    ("autooffset.reset", Some("auto.offset.reset")),
    ("shallowiterator.enable", None),
];

/// What a key is.
pub(super) enum Known {
    Property(&'static Property),
    Renamed(&'static str, Option<&'static str>),
    /// The old consumer passes over keys that begin with `external`, for programs that keep theirs in the
    /// same file.
    External,
    No,
}

impl Known {
    pub(super) fn of(key: &str) -> Self {
        if let Some(property) = TABLE.iter().find(|property| property.key == key) {
            return Self::Property(property);
        }
        match RENAMED.iter().find(|(old, _)| *old == key) {
            Some((old, successor)) => Self::Renamed(old, *successor),
            None if key.starts_with("external") => Self::External,
            None => Self::No,
        }
    }
}

/// A value that a property can have, read from text without white space around it.
pub(super) trait PropertyValue: Sized {
    fn parse(text: &str) -> Result<Self, String>;
}

/// A whole number as Java's `Integer.parseInt` takes it.
fn int(text: &str) -> Result<i32, String> {
    text.parse().map_err(|_| format!("{text:?} is not a whole number from {} to {}", i32::MIN, i32::MAX))
}

impl PropertyValue for u32 {
    fn parse(text: &str) -> Result<Self, String> {
        int(text)?.try_into().map_err(|_| format!("{text} is negative"))
    }
}

impl PropertyValue for i32 {
    fn parse(text: &str) -> Result<Self, String> {
        int(text)
    }
}

impl PropertyValue for bool {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| format!("{text:?} is neither true nor false"))
    }
}

impl PropertyValue for String {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

/// Empty for none.
impl PropertyValue for Option<String> {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
    }
}

impl PropertyValue for BootstrapServers {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|why: ServerError| why.to_string())
    }
}

/// In milliseconds.
impl PropertyValue for Duration {
    fn parse(text: &str) -> Result<Self, String> {
        u32::parse(text).map(|millis| Self::from_millis(millis.into()))
    }
}

/// In milliseconds, negative for none.
impl PropertyValue for Option<Duration> {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(u64::try_from(int(text)?).ok().map(Duration::from_millis))
    }
}

impl PropertyValue for ConnectString {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|why| format!("{:?}: {why}", without_credentials(text)))
    }
}

impl PropertyValue for OffsetReset {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
    }
}

impl PropertyValue for OffsetsStorage {
    fn parse(text: &str) -> Result<Self, String> {
        word(text, Self::from_word(&text.to_ascii_lowercase()), Self::WORDS)
    }
}

impl PropertyValue for AssignmentStrategy {
    fn parse(text: &str) -> Result<Self, String> {
        word(text, Self::from_word(text), Self::WORDS)
    }
}

impl PropertyValue for RoundRobinPeers {
    fn parse(text: &str) -> Result<Self, String> {
        word(text, Self::from_word(text), Self::WORDS)
    }
}

impl PropertyValue for InternalTopicsPeers {
    fn parse(text: &str) -> Result<Self, String> {
        word(text, Self::from_word(text), Self::WORDS)
    }
}

impl PropertyValue for IsolationLevel {
    fn parse(text: &str) -> Result<Self, String> {
        word(text, Self::from_word(&text.to_ascii_lowercase()), Self::WORDS)
    }
}

fn word<T>(text: &str, found: Option<T>, words: &[&str]) -> Result<T, String> {
    found.ok_or_else(|| format!("{text:?} is none of {}", words.join(", ")))
}

/// The value of a default that the table gives as text.
pub(super) fn parse_default<T: PropertyValue>(text: &str) -> T {
    T::parse(text).unwrap_or_else(|why| unreachable!("a default in the table is not valid: {why}"))
}

/// What a builder's setter was given, as the property's type.
pub(super) fn given<T, V: TryInto<T, Error: Display>>(value: V) -> Result<T, String> {
    value.try_into().map_err(|why| why.to_string())
}
