//! What handlers handled, written where no killed process can take it along: one `write` per record to a file, done
//! before the record is acknowledged.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of an entry: partition, padding, offset, sequence number, time. A divisor of the page size, so that a kill in
/// the middle of a write leaves no half entry.
const ENTRY: usize = 32;

/// One record, handled once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub partition: i32,
    pub offset: i64,
    /// The number that the producer put into the record.
    pub sequence: i64,
    /// When, in microseconds since 1970.
    pub micros: i64,
}

/// The log of one member, shared by its handlers.
pub struct HandledLog(File);

impl HandledLog {
    pub fn create(folder: &Path, member: &str) -> io::Result<Self> {
        Ok(Self(OpenOptions::new().create(true).append(true).open(path(folder, member))?))
    }

    pub fn append(&self, entry: Entry) -> io::Result<()> {
        let mut bytes = [0; ENTRY];
        bytes[..4].copy_from_slice(&entry.partition.to_le_bytes());
        let numbers = [entry.offset, entry.sequence, entry.micros];
        for (place, number) in bytes[8..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        (&self.0).write_all(&bytes)
    }
}

/// All entries of a member's log, in the order they were written.
pub fn read(folder: &Path, member: &str) -> io::Result<Vec<Entry>> {
    let bytes = std::fs::read(path(folder, member))?;
    let (entries, rest) = bytes.as_chunks::<ENTRY>();
    if !rest.is_empty() {
        return Err(io::Error::other(format!("the log of {member} ends in half an entry")));
    }
    Ok(entries.iter().map(parse).collect())
}

fn parse(bytes: &[u8; ENTRY]) -> Entry {
    let number = |at: usize| {
        let mut number = [0; 8];
        number.copy_from_slice(&bytes[at..at + 8]);
        i64::from_le_bytes(number)
    };
    let partition = i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    Entry { partition, offset: number(8), sequence: number(16), micros: number(24) }
}

/// Microseconds since 1970, which all processes of a machine agree on.
pub fn now_micros() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}

fn path(folder: &Path, member: &str) -> PathBuf {
    folder.join(format!("{member}.handled"))
}
