//! Registrations of members: `/consumers/<group>/ids/<consumer>`, which every member of the group reads.
//!
//! Written byte for byte as the Scala consumer of 0.8.2 to 0.11 does, since one record that a member cannot
//! read stops that member's rebalances. 1.0.1 and later escape a filter twice, and so match nothing that
//! holds a backslash; we do not copy that, but take such a record literally, because that is what every peer
//! computes with.

mod read;

use std::fmt::Write;

use thiserror::Error;

use super::topic_filter::{TopicFilter, TopicFilterError};

pub use read::unreadable_before_1_0;

/// What a member asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subscription {
    /// Topics by name, each with its number of streams (at least 1), in the order given.
    Static(Vec<(String, u32)>),
    /// Every topic that the filter matches.
    WhiteList {
        /// A regular expression, see [`TopicFilter`].
        filter: String,
        /// Number of streams, at least 1; each carries partitions of every matching topic.
        streams: u32,
    },
    /// Every topic that the filter does not match.
    BlackList {
        /// A regular expression, see [`TopicFilter`].
        filter: String,
        /// Number of streams, at least 1; each carries partitions of every topic that does not match.
        streams: u32,
    },
}

impl Subscription {
    /// The topics of a filter, as the old consumer registers them.
    pub fn matching(filter: &TopicFilter, streams: u32) -> Self {
        let pattern = filter.pattern().to_owned();
        if filter.is_white_list() {
            Self::WhiteList { filter: pattern, streams }
        } else {
            Self::BlackList { filter: pattern, streams }
        }
    }

    /// The compiled filter; `None` for topics by name.
    pub fn topic_filter(&self) -> Option<Result<TopicFilter, TopicFilterError>> {
        match self {
            Self::Static(_) => None,
            Self::WhiteList { filter, .. } => Some(TopicFilter::white_list(filter)),
            Self::BlackList { filter, .. } => Some(TopicFilter::black_list(filter)),
        }
    }

    fn pattern(&self) -> &'static str {
        match self {
            Self::Static(_) => "static",
            Self::WhiteList { .. } => "white_list",
            Self::BlackList { .. } => "black_list",
        }
    }

    fn entries(&self) -> Vec<(&str, u32)> {
        match self {
            Self::Static(topics) => {
                topics.iter().map(|(topic, streams)| (topic.as_str(), *streams)).collect()
            }
            Self::WhiteList { filter, streams } | Self::BlackList { filter, streams } => {
                vec![(filter, *streams)]
            }
        }
    }
}

/// The record of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Registration {
    /// What the member asks for.
    pub subscription: Subscription,
    /// When it registered, in epoch milliseconds; 0 if it does not say. No reader uses it.
    pub timestamp: i64,
}

/// A record that no consumer can read. Scala peers of such a member are stuck until its node goes away.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "registration ids/{member} cannot be read: {reason}; consumers of Kafka cannot rebalance until that node is gone"
)]
#[non_exhaustive]
pub struct RegistrationError {
    /// The member's consumer id: the name of its node.
    pub member: String,
    /// What is wrong with the record.
    pub reason: String,
}

impl Registration {
    /// A record to write at `timestamp`, in epoch milliseconds.
    pub fn new(subscription: Subscription, timestamp: i64) -> Self {
        Self { subscription, timestamp }
    }

    /// The data of the node, byte for byte what the Scala consumer would write.
    pub fn to_json(&self) -> String {
        let mut json = String::from(r#"{"version":1,"subscription":{"#);
        for (at, (name, streams)) in self.subscription.entries().into_iter().enumerate() {
            json.push_str(if at == 0 { "\"" } else { ",\"" });
            escape(name, &mut json);
            // writing to a String cannot fail
            let _ = write!(json, "\":{streams}");
        }
        let pattern = self.subscription.pattern();
        let _ = write!(json, r#"}},"pattern":"{pattern}","timestamp":"{}"}}"#, self.timestamp);
        json
    }

    /// Reads the record of `member`, as leniently as the most lenient Scala consumer and no more.
    ///
    /// What every generation of readers fails on is an error. For what only those before 1.0 fail on, see
    /// [`unreadable_before_1_0`]. A filter that is a correct Java expression beyond this crate's engine is no
    /// error here but in [`Subscription::topic_filter`].
    pub fn parse(member: &str, data: &[u8]) -> Result<Self, RegistrationError> {
        read::registration(data).map_err(|reason| RegistrationError { member: member.to_owned(), reason })
    }
}

/// Kafka's `JSONEscapeString`: escapes the slash and the control characters U+007F to U+009F too, in
/// lower-case hex.
fn escape(text: &str, json: &mut String) {
    for c in text.chars() {
        match c {
            '"' | '\\' | '/' => json.extend(['\\', c]),
            '\u{8}' => json.push_str("\\b"),
            '\u{c}' => json.push_str("\\f"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => {
                let _ = write!(json, "\\u{:04x}", u32::from(c));
            }
            _ => json.push(c),
        }
    }
}

#[cfg(test)]
mod tests;
