//! Record sets that Kafka's own programs wrote, held against what Kafka's own code reads from them.
//!
//! - `golden/golden.txt`: by the Java classes of 1.1.1 and 2.8.2, through `golden/Golden.java`.
//! - `golden/logs.txt`: segment files of brokers from 0.8.2.2 to 4.4.0, filled by the Java producers of the same
//!   releases, through `tests/cluster/examples/golden_logs.rs`.

use super::*;
use crate::kafka::fetch::AbortedTransaction;
use crate::kafka::records::{ControlType, RecordBatch, TimestampType, TransactionFilter, extent};
use std::collections::BTreeMap;
use std::fmt::Write;

struct Golden {
    name: String,
    /// What Kafka's consumer says of it; the classes say nothing.
    timestamp_type: Option<TimestampType>,
    set: Bytes,
    records: Vec<&'static str>,
}

fn sets() -> impl Iterator<Item = Golden> {
    include_str!("golden/golden.txt").lines().map(|line| {
        let mut fields = line.split(' ');
        let mut field = || fields.next().expect("release, name, hex");
        let (name, set) = (format!("{} {}", field(), field()), unhex(field()));
        Golden { name, timestamp_type: None, set, records: fields.collect() }
    })
}

fn logs() -> impl Iterator<Item = Golden> {
    include_str!("golden/logs.txt").lines().map(|line| {
        let mut fields = line.split(' ');
        let mut field = || fields.next().expect("broker, producer, name, timestamp type, hex");
        let name = format!("{} {} {}", field(), field(), field());
        let timestamp_type = match field() {
            "NoTimestampType" => TimestampType::None,
            "CreateTime" => TimestampType::Create,
            "LogAppendTime" => TimestampType::LogAppend,
            other => panic!("{name}: {other}"),
        };
        Golden { name, timestamp_type: Some(timestamp_type), set: unhex(field()), records: fields.collect() }
    })
}

fn unhex(hex: &str) -> Bytes {
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
    (0..hex.len()).step_by(2).map(byte).collect()
}

fn text(bytes: Option<&[u8]>) -> String {
    match bytes {
        None => "null".to_owned(),
        Some(bytes) if bytes.len() > 1000 => format!("{}bytes", bytes.len()),
        Some(bytes) => String::from_utf8(bytes.to_vec()).expect("text"),
    }
}

fn batches(set: &Bytes, from: i64) -> Vec<RecordBatch> {
    let mut decompressor = Decompressor::default();
    let mut batches = RecordBatches::new(set.clone(), from, DecodeOptions::default());
    std::iter::from_fn(|| batches.next_batch(&mut decompressor))
        .map(|batch| batch.expect("a good batch"))
        .collect()
}

fn records(batch: &RecordBatch) -> Vec<String> {
    let payload = &batch.payload;
    let mut cursor = batch.records();
    let mut all = Vec::new();
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
    all
}

fn read(set: &Bytes, from: i64) -> Vec<String> {
    batches(set, from).iter().flat_map(records).collect()
}

fn offset(record: &str) -> i64 {
    record.split('@').next().and_then(|offset| offset.parse().ok()).expect("an offset")
}

/// What a fetch response says beside the log: the transactions that its markers abort.
fn aborted(set: &Bytes) -> Vec<AbortedTransaction> {
    let (mut open, mut aborted) = (BTreeMap::new(), Vec::new());
    for batch in batches(set, 0) {
        match batch.control_type() {
            None if batch.is_transactional => _ = open.entry(batch.producer_id).or_insert(batch.base_offset),
            None => {}
            Some(ControlType::Abort) => {
                let first = open.remove(&batch.producer_id).expect("a transaction");
                aborted.push(AbortedTransaction::new(batch.producer_id, first));
            }
            Some(_) => _ = open.remove(&batch.producer_id),
        }
    }
    aborted
}

fn is_committed(golden: &Golden) -> bool {
    golden.name.ends_with("-committed")
}

#[test]
fn we_read_what_kafka_reads() {
    for golden in sets().chain(logs().filter(|golden| !is_committed(golden))) {
        assert_eq!(read(&golden.set, 0), golden.records, "{}", golden.name);
    }
}

#[test]
fn timestamps_mean_what_kafka_says() {
    for Golden { name, timestamp_type, set, .. } in logs().filter(|golden| !golden.name.ends_with(" mixed")) {
        let told = |batch: &RecordBatch| batch.is_control || Some(batch.timestamp_type) == timestamp_type;
        assert!(batches(&set, 0).iter().all(told), "{name}");
    }
}

#[test]
fn every_generation_codec_and_format_is_there() {
    let names: Vec<_> = logs().map(|golden| golden.name).collect();
    let all = |versions: &[&str], kinds: &[&str]| {
        for version in versions {
            for kind in kinds {
                let name = format!("{version} {version} {kind}");
                assert!(names.contains(&name), "{name}");
            }
        }
    };
    all(
        &["0.8.2.2", "0.9.0.1", "0.10.2.2", "0.11.0.3", "1.1.1", "2.8.2", "3.9.1", "4.4.0"],
        &["none", "gzip", "snappy", "lz4"],
    );
    all(&["2.8.2", "3.9.1", "4.4.0"], &["zstd"]);
    let late = ["0.11.0.3", "1.1.1", "2.8.2", "3.9.1", "4.4.0"];
    all(&late, &["transactions", "transactions-committed", "lz4-logappend"]);
    all(&late[..4], &["none-compacted", "gzip-compacted"]);
    all(&["0.10.2.2"], &["lz4-format-0.9", "gzip-logappend", "none-compacted", "gzip-compacted"]);
    all(&["1.1.1"], &["mixed"]);
    for golden in logs().filter(|golden| !golden.name.ends_with(" mixed")) {
        let magic = match golden.name.split(' ').next() {
            Some("0.8.2.2" | "0.9.0.1") => 0,
            Some("0.10.2.2") if golden.name.ends_with("format-0.9") => 0,
            Some("0.10.2.2") => 1,
            _ => 2,
        };
        assert!(batches(&golden.set, 0).iter().all(|batch| batch.magic == magic), "{}", golden.name);
    }
}

#[test]
fn b14_a_log_of_a_real_broker_in_all_three_formats() {
    let golden = logs().find(|golden| golden.name.ends_with(" mixed")).expect("it is there");
    let seen: Vec<_> = batches(&golden.set, 0)
        .iter()
        .map(|batch| (batch.magic, batch.compression, batch.timestamp_type, records(batch).len()))
        .collect();
    use crate::kafka::compression::Compression::{Gzip, None};
    let (none, create) = (TimestampType::None, TimestampType::Create);
    let expected = [
        (0, None, none, 5),
        (0, Gzip, none, 5),
        (1, None, create, 5),
        (1, Gzip, create, 5),
        (2, None, create, 5),
        (2, Gzip, create, 5),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn b16_lz4_of_real_producers_has_the_check_byte_of_its_generation() {
    let check_byte = |name: &str| {
        let golden = logs().find(|golden| golden.name == name).expect(name);
        let frame =
            golden.set.windows(4).position(|window| window == [0x04, 0x22, 0x4d, 0x18]).expect("a frame");
        golden.set[frame + 6]
    };
    for version in ["0.8.2.2", "0.9.0.1"] {
        assert_eq!(check_byte(&format!("{version} {version} lz4")), 0x1a, "{version}");
    }
    assert_eq!(check_byte("0.10.2.2 0.10.2.2 lz4-format-0.9"), 0x1a);
    for version in ["0.10.2.2", "0.11.0.3", "1.1.1", "3.9.1"] {
        assert_eq!(check_byte(&format!("{version} {version} lz4")), 0x82, "{version}");
    }
}

#[test]
fn a_compacted_log_has_gaps() {
    for golden in logs().filter(|golden| golden.name.ends_with("-compacted")) {
        let offsets: Vec<_> = golden.records.iter().map(|record| offset(record)).collect();
        assert!(offsets.windows(2).any(|pair| pair[1] > pair[0] + 1), "{}: {offsets:?}", golden.name);
        assert_eq!(extent(&golden.set).next_offset, Some(20), "{}", golden.name);
    }
}

#[test]
fn reading_committed_leaves_out_what_kafka_leaves_out() {
    for golden in logs().filter(is_committed) {
        let aborted = aborted(&golden.set);
        assert_eq!(aborted.len(), 2, "{}", golden.name);
        let all = read(&golden.set, 0);
        for from in 0..=extent(&golden.set).next_offset.expect("a log") {
            let mut filter = TransactionFilter::new(aborted.clone());
            let admitted = batches(&golden.set, from).into_iter().filter(|batch| filter.admits(batch));
            let read: Vec<_> = admitted.flat_map(|batch| records(&batch)).collect();
            let expected: Vec<_> =
                golden.records.iter().copied().filter(|record| offset(record) >= from).collect();
            assert_eq!(read, expected, "{} from {from}", golden.name);
            assert!(from > 0 || read.len() < all.len(), "nothing was left out");
        }
    }
}

#[test]
fn we_start_within_a_set_where_we_are_told() {
    for golden in sets().chain(logs().filter(|golden| !is_committed(golden))) {
        let end = extent(&golden.set).next_offset.expect("a set");
        for from in golden.records.first().map_or(0, |record| offset(record)) - 1..=end {
            let records = golden.records.iter().copied();
            let expected: Vec<_> = records.filter(|record| offset(record) >= from).collect();
            assert_eq!(read(&golden.set, from), expected, "{} from {from}", golden.name);
        }
    }
}

#[test]
fn b12_a_log_of_any_generation_cut_at_every_byte_gives_its_whole_entries() {
    for golden in sets().chain(logs()).filter(|golden| golden.set.len() < 1000) {
        let mut whole = 0;
        for end in 0..=golden.set.len() {
            let (seen, error) = walk(golden.set.slice(..end), 0);
            assert_eq!(error, None, "{} cut at {end}", golden.name);
            assert!(seen.len() >= whole, "{}: fewer records at {end}", golden.name);
            whole = seen.len();
        }
    }
}

#[test]
fn the_position_after_a_set_covers_what_compaction_removed() {
    for Golden { name, set, .. } in sets().filter(|golden| golden.name.contains("magic2-")) {
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
    let marker = |golden: &Golden| golden.name.ends_with("-abort") || golden.name.ends_with("-commit");
    let mut seen = Vec::new();
    for golden in sets().filter(marker) {
        let [batch] = &batches(&golden.set, 0)[..] else { panic!("{}: one batch", golden.name) };
        assert_eq!((batch.producer_id, batch.producer_epoch, batch.leader_epoch), (9, 1, 3));
        seen.push(batch.control_type());
    }
    assert_eq!(seen, [Some(ControlType::Abort), Some(ControlType::Commit)]);
}
