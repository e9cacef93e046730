//! Files that have the offset of a partition in each line, whatever its form.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use thiserror::Error;

/// Why a line is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {number}: {text:?} {why}")]
#[non_exhaustive]
pub struct LineError {
    /// The line, from 1.
    pub number: usize,
    /// What stands there, cut where it is long.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

/// Every line of a file that is refused, one to a line of the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineErrors(Vec<LineError>);

/// Characters of a bad line that an error repeats.
const MAX_QUOTED: usize = 160;

impl LineErrors {
    /// In the order of the file; at least one.
    pub fn iter(&self) -> std::slice::Iter<'_, LineError> {
        self.0.iter()
    }
}

impl fmt::Display for LineErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n  "))
    }
}

impl std::error::Error for LineErrors {}

/// Reads the lines that are not empty; what has an offset comes sorted, and once.
///
/// # Errors
/// Every line that `parse` refuses, and those that say otherwise than an earlier one.
pub(crate) fn parse<K: Ord>(
    text: &str,
    mut parse: impl FnMut(&str) -> Result<(K, i64), String>,
) -> Result<BTreeMap<K, i64>, LineErrors> {
    let (mut known, mut errors) = (BTreeMap::<K, (i64, usize)>::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let outcome = parse(line).and_then(|(key, offset)| match known.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert((offset, number));
                Ok(())
            }
            Entry::Occupied(entry) if entry.get().0 == offset => Ok(()),
            Entry::Occupied(entry) => Err(format!("says otherwise than line {}", entry.get().1)),
        });
        if let Err(why) = outcome {
            errors.push(LineError { number, text: line.chars().take(MAX_QUOTED).collect(), why });
        }
    }
    let known = known.into_iter().map(|(key, (offset, _))| (key, offset)).collect();
    if errors.is_empty() { Ok(known) } else { Err(LineErrors(errors)) }
}
