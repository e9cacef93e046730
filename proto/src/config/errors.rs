//! What can be wrong with a configuration, and what its author should know.

use std::fmt;

use thiserror::Error;

use super::secrets::without_credentials;

/// One problem of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A property without default that is not set.
    #[error("missing required property `{property}`")]
    Missing {
        /// The property.
        property: &'static str,
    },
    /// A value that is refused.
    #[error("property `{property}`: {reason}")]
    Invalid {
        /// The property.
        property: String,
        /// What is wrong with its value.
        reason: String,
    },
    /// A property without effect, refused because the configuration is read strictly.
    #[error("{0}")]
    NoEffect(PropertyNotice),
    /// Text that is not in the format of Java properties.
    #[error("line {line} of the properties: {reason}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

impl ConfigError {
    pub(super) fn invalid(property: &str, reason: impl Into<String>) -> Self {
        Self::Invalid { property: property.to_owned(), reason: reason.into() }
    }

    /// The property concerned, if one is.
    pub fn property(&self) -> Option<&str> {
        match self {
            Self::Missing { property } => Some(property),
            Self::Invalid { property, .. } => Some(property),
            Self::NoEffect(notice) => Some(notice.key()),
            Self::Syntax { .. } => None,
        }
    }
}

/// Every problem of a configuration; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(pub(super) Vec<ConfigError>);

impl ConfigErrors {
    /// The problems: first what could not be read, then what is missing or out of bounds, then what does not
    /// fit together.
    pub fn problems(&self) -> &[ConfigError] {
        &self.0
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problems: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&problems.join("\n"))
    }
}

impl std::error::Error for ConfigErrors {}

/// A property that was set and has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PropertyNotice {
    /// Nobody knows it. The old consumer warned in the same words.
    NotValid {
        /// The key as given.
        key: String,
    },
    /// The old consumer had it, Troupe does not act on it.
    NotActedOn {
        /// The key.
        key: &'static str,
        /// What it was for, and what takes its place.
        about: &'static str,
    },
    /// A name of Kafka 0.7, which 0.8 and later ignore too.
    Renamed {
        /// The key.
        key: &'static str,
        /// The property that took its place, if one did.
        successor: Option<&'static str>,
    },
}

impl PropertyNotice {
    /// The key as given.
    pub fn key(&self) -> &str {
        match self {
            Self::NotValid { key } => key,
            Self::NotActedOn { key, .. } | Self::Renamed { key, .. } => key,
        }
    }
}

impl fmt::Display for PropertyNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotValid { key } => write!(f, "Property {} is not valid", without_credentials(key)),
            Self::NotActedOn { key, about } => write!(f, "Property {key} is not acted on: {about}"),
            Self::Renamed { key, successor: Some(successor) } => {
                write!(f, "Property {key} is not valid: it is a name of Kafka 0.7, use {successor}")
            }
            Self::Renamed { key, successor: None } => {
                write!(f, "Property {key} is not valid: it was of Kafka 0.7 and has no successor")
            }
        }
    }
}
