//! Record sets written by Kafka's own Java classes, held against what those classes read from them.
//! `golden/Golden.java` writes both.

use super::*;
use crate::kafka::records::{ControlType, extent};
use std::fmt::Write;

fn sets() -> impl Iterator<Item = (String, Bytes, Vec<&'static str>)> {
    include_str!("golden/golden.txt").lines().map(|line| {
        let mut fields = line.split(' ');
        let mut field = || fields.next().expect("release, name, hex");
        let name = format!("{} {}", field(), field());
        let hex = field();
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
        (name, (0..hex.len()).step_by(2).map(byte).collect(), fields.collect())
    })
}

fn text(bytes: Option<&[u8]>) -> String {
    match bytes {
        None => "null".to_owned(),
        Some(bytes) if bytes.len() > 1000 => format!("{}bytes", bytes.len()),
        Some(bytes) => String::from_utf8(bytes.to_vec()).expect("text"),
    }
}

fn read(set: Bytes, from: i64) -> Vec<String> {
    let mut decompressor = Decompressor::default();
    let mut batches = RecordBatches::new(set, from, DecodeOptions::default());
    let mut all = Vec::new();
    while let Some(batch) = batches.next_batch(&mut decompressor) {
        let batch = batch.expect("a good batch");
        let payload = &batch.payload;
        let mut cursor = batch.records();
        while let Some(record) = cursor.next() {
            let record = record.expect("a good record");
            let mut line = format!("{}@{}:", record.offset, record.timestamp);
            let (key, value) = (text(record.key(payload)), text(record.value(payload)));
            write!(line, "{key}={value}[").expect("in memory");
            for header in record.headers(payload) {
                write!(line, "{}={};", header.name(), text(header.value)).expect("in memory");
            }
            all.push(line + "]");
        }
    }
    assert_eq!(batches.partial(), None);
    all
}

#[test]
fn we_read_what_kafka_reads() {
    for (name, set, expected) in sets() {
        assert_eq!(read(set, 0), expected, "{name}");
    }
}

#[test]
fn we_start_within_a_set_where_we_are_told() {
    for (name, set, expected) in sets() {
        for from in 39..45 {
            let offset = |record: &str| record[..2].parse::<i64>().expect("an offset");
            let expected: Vec<_> = expected.iter().copied().filter(|record| offset(record) >= from).collect();
            assert_eq!(read(set.clone(), from), expected, "{name} from {from}");
        }
    }
}

#[test]
fn the_position_after_a_set_covers_what_compaction_removed() {
    for (name, set, _) in sets().filter(|(name, ..)| name.contains("magic2-")) {
        let expected = match &name {
            abort if abort.ends_with("-abort") => 71,
            commit if commit.ends_with("-commit") => 72,
            _ => 44,
        };
        assert_eq!(extent(&set).next_offset, Some(expected), "{name}");
    }
}

#[test]
fn markers_are_read() {
    let mut seen = Vec::new();
    for (_, set, _) in sets().filter(|(name, ..)| name.ends_with("abort") || name.ends_with("commit")) {
        let mut batches = RecordBatches::new(set, 0, DecodeOptions::default());
        let batch = batches.next_batch(&mut Decompressor::default()).expect("a batch").expect("a good batch");
        assert_eq!((batch.producer_id, batch.producer_epoch, batch.leader_epoch), (9, 1, 3));
        seen.push(batch.control_type());
    }
    assert_eq!(seen, [Some(ControlType::Abort), Some(ControlType::Commit)]);
}
