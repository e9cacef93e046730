//! Two lists of records, and where they first differ.

use std::fmt::Write as _;

use troupe_cluster::JavaRecord;

use crate::journal::{Journal, Place};

/// Records on each side of the first that differs.
const NEIGHBOURS: usize = 2;
/// Bytes of a key or value that are shown.
const SHOWN: usize = 24;

/// Panics with the first difference of what two readers delivered of a partition.
pub fn same(
    journal: &Journal,
    place: Place,
    (left, one): (&str, &[JavaRecord]),
    (right, other): (&str, &[JavaRecord]),
    reading: &str,
) {
    let differs = one.iter().zip(other).position(|(one, other)| one != other);
    let Some(at) = differs.or((one.len() != other.len()).then(|| one.len().min(other.len()))) else { return };
    let mut text = format!("{}-{} differs in record {at}, reading {reading}\n", place.0, place.1);
    for (name, records) in [(left, one), (right, other)] {
        let _ = writeln!(text, "{name}, {} records:", records.len());
        let from = at.saturating_sub(NEIGHBOURS);
        for (number, record) in records.iter().enumerate().skip(from).take(2 * NEIGHBOURS + 1) {
            let mark = if number == at { '>' } else { ' ' };
            let _ = writeln!(text, "{mark} {}\n    {:?}", show(record), journal.how(place, record.offset));
        }
    }
    panic!("{text}");
}

fn show(record: &JavaRecord) -> String {
    let bytes = |bytes: &Option<Vec<u8>>| match bytes {
        None => "null".to_owned(),
        Some(bytes) => {
            let (start, rest) = bytes.split_at(bytes.len().min(SHOWN));
            let dots = if rest.is_empty() { "" } else { ".." };
            format!("{} bytes {start:02x?}{dots}", bytes.len())
        }
    };
    let headers: Vec<String> =
        record.headers.iter().map(|(name, value)| format!("{name:?}={}", bytes(value))).collect();
    format!(
        "offset {}: timestamp {:?} {}, key {}, value {}, headers [{}]",
        record.offset,
        record.timestamp,
        record.timestamp_type,
        bytes(&record.key),
        bytes(&record.value),
        headers.join(", ")
    )
}
