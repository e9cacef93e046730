//! One offset of a group that is set: what a reset and an import print.

use std::fmt::Display;

use kafka_troupe::proto::TopicPartition;
use serde::Serialize;

use crate::output::{Row, or_dash};

/// One partition of one group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OffsetRow {
    pub group: String,
    pub topic: String,
    pub partition: i32,
    /// The position before.
    pub old_offset: Option<i64>,
    /// The position after; none where it cannot be told.
    pub new_offset: Option<i64>,
    /// What is to be said of it.
    pub note: Option<String>,
}

impl OffsetRow {
    /// A row without a new offset and a note.
    pub fn new(group: &str, key: &TopicPartition, old_offset: Option<i64>) -> Self {
        Self {
            group: group.to_owned(),
            topic: key.topic.to_string(),
            partition: key.partition,
            old_offset,
            new_offset: None,
            note: None,
        }
    }

    /// The partition.
    pub fn key(&self) -> TopicPartition {
        TopicPartition::new(self.topic.as_str(), self.partition)
    }

    /// Says one thing more of it.
    pub fn add(&mut self, note: impl Display) {
        self.note = Some(match self.note.take() {
            Some(before) => format!("{before}; {note}"),
            None => note.to_string(),
        });
    }
}

impl Row for OffsetRow {
    const HEAD: &'static [&'static str] =
        &["GROUP", "TOPIC", "PARTITION", "OLD-OFFSET", "NEW-OFFSET", "NOTE"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.group.clone(),
            self.topic.clone(),
            self.partition.to_string(),
            or_dash(self.old_offset),
            or_dash(self.new_offset),
            or_dash(self.note.as_ref()),
        ]
    }
}
