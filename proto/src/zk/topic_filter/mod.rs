//! Topic filters: the white and black lists of wildcard subscriptions, regular expressions of Java.
//!
//! Every member expands every member's filter, and all must get the same topics. So a filter either means
//! here exactly what `java.util.regex` makes of it, or is refused with the reason.

mod java_regex;

use regex::Regex;
use thiserror::Error;

/// Topics that Kafka itself writes; kept out of wildcard subscriptions by `exclude.internal.topics` (default
/// true).
pub const INTERNAL_TOPICS: &[&str] = &["__consumer_offsets", TRANSACTION_STATE];

/// Those that Scala consumers before 0.11 keep out: `.*` means another set to them where transactions are used
/// (`troupe.internal.topics.peers`).
pub const INTERNAL_BEFORE_0_11: &[&str] = &["__consumer_offsets"];

/// The state of transactions, since Kafka 0.11.
pub const TRANSACTION_STATE: &str = "__transaction_state";

/// A compiled white or black list.
#[derive(Clone, Debug)]
pub struct TopicFilter {
    kind: Kind,
    pattern: String,
    regex: Regex,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    WhiteList,
    BlackList,
}

/// Why a filter is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TopicFilterError {
    /// Java would not compile it either: "… is an invalid regex" in the old consumer.
    #[error("topic filter {pattern:?} is not a regular expression: {reason}")]
    Invalid {
        /// The filter, normalised.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Java may compile it, but this crate's engine has no equal for it, and would match other topics than
    /// the peers do.
    #[error(
        "topic filter {pattern:?} uses {construct}, which this consumer does not support; write it without"
    )]
    Unsupported {
        /// The filter, normalised.
        pattern: String,
        /// What is not supported.
        construct: String,
    },
}

impl TopicFilter {
    /// Allows the topics whose whole name matches `filter`, which is normalised first (see [`normalise`]).
    pub fn white_list(filter: &str) -> Result<Self, TopicFilterError> {
        Self::new(Kind::WhiteList, filter)
    }

    /// Allows the topics whose whole name does not match `filter`, which is normalised first (see
    /// [`normalise`]).
    pub fn black_list(filter: &str) -> Result<Self, TopicFilterError> {
        Self::new(Kind::BlackList, filter)
    }

    fn new(kind: Kind, filter: &str) -> Result<Self, TopicFilterError> {
        let pattern = normalise(filter);
        let regex = java_regex::compile(&pattern)?;
        Ok(Self { kind, pattern, regex })
    }

    /// Whether the filter lets `topic` in; never one of `kept_out`, the internal topics that the *reader* keeps
    /// out ([`kept_out_topics`](crate::config::ConsumerConfig::kept_out_topics)).
    pub fn allows(&self, topic: &str, kept_out: &[&str]) -> bool {
        let wanted = self.regex.is_match(topic) == (self.kind == Kind::WhiteList);
        wanted && !kept_out.contains(&topic)
    }

    /// Whether it allows what matches; a black list allows what does not.
    pub fn is_white_list(&self) -> bool {
        self.kind == Kind::WhiteList
    }

    /// The normalised expression.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }
}

/// What the old consumer makes of a filter before it compiles it: trimmed, `,` means `|`, no spaces, no
/// quotes around it.
///
/// So a comma cannot be matched, and `{1,3}` is not a repetition but an error.
pub fn normalise(filter: &str) -> String {
    let is_quote = |c: char| c == '\'' || c == '"';
    // Java trims every character up to the space
    let trimmed = filter.trim_matches(|c: char| c <= ' ');
    trimmed.replace(',', "|").replace(' ', "").trim_matches(is_quote).to_owned()
}

#[cfg(test)]
mod tests;
