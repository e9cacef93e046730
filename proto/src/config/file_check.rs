//! What becomes of each line of a consumer.properties.

use std::collections::BTreeMap;

use super::java_properties;
use super::nearest::nearest;
use super::old_consumer::{NEVER_ACTED_ON, OLD_KEYS};
use super::property::{Effect, Known, properties};
use super::secrets::{HIDDEN, is_secret, sets_a_secret, without_credentials};
use super::{ConfigError, ConsumerConfig};

/// What Troupe does with a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Treatment {
    /// What the old consumer does.
    ActedOn,
    /// It acts on it, and not in all as the old consumer does.
    ActedOnDifferently,
    /// The old consumer does not know it, and Troupe acts on it.
    New,
    /// Nothing: it is not needed any more.
    NotNeeded,
    /// Nothing: a later line sets the same property.
    Overridden,
    /// Nothing, and nothing is said, as the old consumer does with keys that begin with `external`.
    PassedOver,
    /// Nothing: neither Troupe nor the old consumer knows it.
    Unknown,
    /// It does not start with this value.
    Refused,
    /// It does not start without it.
    Missing,
}

impl Treatment {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::ActedOn => "acted on",
            Self::ActedOnDifferently => "acted on differently",
            Self::New => "acted on, new",
            Self::NotNeeded => "not needed",
            Self::Overridden => "overridden",
            Self::PassedOver => "passed over",
            Self::Unknown => "unknown",
            Self::Refused => "refused",
            Self::Missing => "missing",
        }
    }

    /// Whether a consumer starts in spite of it.
    pub fn starts(self) -> bool {
        !matches!(self, Self::Refused | Self::Missing)
    }
}

/// One property of a file, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CheckedProperty {
    /// The line where it begins, from 1; none for one that is missing.
    pub line: Option<usize>,
    /// Its name, without escapes. Empty where the line cannot be read, hidden where it sets a secret.
    pub key: String,
    /// Its value, without escapes; secrets are hidden.
    pub value: Option<String>,
    /// What Troupe does with it.
    pub treatment: Treatment,
    /// Why, how it differs, or what was probably meant; may be empty.
    pub note: String,
    /// Troupe's default, where it acts on the property.
    pub default: Option<&'static str>,
    /// The old consumer's default, where it knows the property.
    pub old_default: Option<&'static str>,
}

/// Reads the text of a consumer.properties: what becomes of each property, in the order of the file, then what is
/// missing. A consumer [starts](Treatment::starts) with it if it does with each.
pub fn check_file(text: &str) -> Vec<CheckedProperty> {
    let lines: Vec<_> = java_properties::lines(text).collect();
    let mut last = BTreeMap::new();
    for (line, pair) in &lines {
        pair.iter().for_each(|(key, _)| {
            last.insert(key.as_str(), *line);
        });
    }
    let problems = problems(text);
    let checked = lines.iter().map(|(line, pair)| match pair {
        Err(error) => unreadable(*line, error),
        Ok((key, value)) => match last[key.as_str()] {
            by if by != *line => overridden(*line, key, value, by),
            _ => property(*line, key, value, &problems),
        },
    });
    let missing = problems.iter().filter_map(|problem| match problem {
        ConfigError::Missing { property } => Some(missing(property)),
        _ => None,
    });
    checked.chain(missing).collect()
}

/// What keeps a consumer from starting, but for lines that cannot be read: they keep none of the others back.
fn problems(text: &str) -> Vec<ConfigError> {
    let pairs = java_properties::lines(text).filter_map(|(_, pair)| pair.ok());
    match ConsumerConfig::from_pairs(pairs) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.problems().to_vec(),
    }
}

fn property(line: usize, key: &str, value: &str, problems: &[ConfigError]) -> CheckedProperty {
    let (treatment, note) = treated(key);
    let refused: Vec<&str> = problems
        .iter()
        .filter_map(|problem| match problem {
            ConfigError::Invalid { property, reason } if property == key => Some(reason.as_str()),
            _ => None,
        })
        .collect();
    match refused.is_empty() {
        true => checked(line, key, value, treatment, note),
        false => checked(line, key, value, Treatment::Refused, refused.join("; ")),
    }
}

fn treated(key: &str) -> (Treatment, String) {
    let old = OLD_KEYS.iter().find(|old| old.key == key);
    match Known::of(key) {
        Known::Property(property) => match (property.effect, old) {
            (Effect::None, _) => (Treatment::NotNeeded, property.about.to_owned()),
            (Effect::Full, None) => (Treatment::New, "the old consumer does not know it".to_owned()),
            (Effect::Full, Some(old)) => match old.differs {
                Some(how) => (Treatment::ActedOnDifferently, how.to_owned()),
                None => (Treatment::ActedOn, String::new()),
            },
        },
        Known::Renamed(_, successor) => (Treatment::Unknown, of_0_7(successor)),
        Known::External => (Treatment::PassedOver, "it begins with `external`".to_owned()),
        Known::No => (Treatment::Unknown, unknown(key)),
    }
}

fn of_0_7(successor: Option<&str>) -> String {
    match successor {
        Some(successor) => format!("it is a name of Kafka 0.7, which later ones ignore: use {successor}"),
        None => "it was of Kafka 0.7 and has no successor".to_owned(),
    }
}

fn unknown(key: &str) -> String {
    if let Some((_, what)) = NEVER_ACTED_ON.iter().find(|(never, _)| *never == key) {
        return (*what).to_owned();
    }
    match nearest(key, properties().map(|property| property.key)) {
        Some(meant) => format!("probably a slip: {meant} is known"),
        None => "the old consumer does not know it either".to_owned(),
    }
}

fn overridden(line: usize, key: &str, value: &str, by: usize) -> CheckedProperty {
    checked(
        line,
        key,
        value,
        Treatment::Overridden,
        format!("line {by} sets it again, and the last one counts"),
    )
}

fn unreadable(line: usize, error: &ConfigError) -> CheckedProperty {
    let note = match error {
        ConfigError::Syntax { reason, .. } => reason.clone(),
        other => other.to_string(),
    };
    CheckedProperty { value: None, ..checked(line, "", "", Treatment::Refused, note) }
}

fn missing(key: &str) -> CheckedProperty {
    let note = "it has no default".to_owned();
    CheckedProperty { line: None, value: None, ..checked(0, key, "", Treatment::Missing, note) }
}

fn checked(line: usize, key: &str, value: &str, treatment: Treatment, note: String) -> CheckedProperty {
    let known = properties().find(|property| property.key == key && property.effect == Effect::Full);
    let old = OLD_KEYS.iter().find(|old| old.key == key);
    let value =
        if is_secret(key) { HIDDEN.to_owned() } else { without_credentials(value.trim()).into_owned() };
    let key = if sets_a_secret(key) { HIDDEN } else { key };
    CheckedProperty {
        line: Some(line),
        key: key.to_owned(),
        value: Some(value),
        treatment,
        note,
        default: known.map(|property| property.default),
        old_default: old.map(|old| old.default),
    }
}

#[cfg(test)]
mod tests;
