//! `troupe groups reset` beside `kafka.admin.ConsumerGroupCommand --reset-offsets` and `kafka.tools.UpdateOffsetsInZK`.

mod kafka;
mod zookeeper;

use std::collections::BTreeMap;

use crate::old_tools::{Ended, troupe};

/// New offsets by topic and partition.
type Offsets = BTreeMap<(String, i32), i64>;

/// Rows of the old tool's table, whatever columns are before; 3.9.1 prints all of it in one line.
#[track_caller]
fn of_table(ended: &Ended) -> Offsets {
    let words = ended.words().concat();
    let row = |words: &[&str]| {
        let is_name = words[0].parse::<i64>().is_err();
        let row = ((words[0].to_owned(), words[1].parse().ok()?), words[2].parse().ok()?);
        is_name.then_some(row)
    };
    let rows: Offsets = words.windows(3).filter_map(row).collect();
    assert!(!rows.is_empty(), "{ended:#?}");
    rows
}

/// Rows of ours.
#[track_caller]
fn of_json(ended: &Ended) -> Offsets {
    let row = |row: &serde_json::Value| {
        let partition = i32::try_from(row["partition"].as_i64()?).ok()?;
        Some(((row["topic"].as_str()?.to_owned(), partition), row["new_offset"].as_i64()?))
    };
    ended.rows().iter().map(|it| row(it).unwrap_or_else(|| panic!("{ended:#?}"))).collect()
}

/// Runs `troupe groups reset` with rows as JSON.
#[track_caller]
fn reset(arguments: &[&str]) -> Ended {
    troupe(&[&["--output", "json", "groups", "reset"], arguments].concat())
}
