//! What was written where, which each reader is held against too, so that a record that none delivers is missed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use troupe_cluster::JavaRecord;

/// A partition.
pub type Place = (&'static str, i32);

/// How a record was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct How {
    pub writer: &'static str,
    /// As written; a broker may have converted it.
    pub magic: i8,
    pub codec: &'static str,
    /// Its number in [`Journal`].
    pub transaction: Option<usize>,
}

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    Open,
    Committed,
    Aborted,
}

#[derive(Debug, Default)]
struct Log {
    records: Vec<(JavaRecord, How)>,
    /// The offset of the next record.
    end: i64,
}

/// All that was written, by partition.
#[derive(Debug, Default)]
pub struct Journal {
    logs: BTreeMap<Place, Log>,
    transactions: Vec<(Fate, BTreeSet<Place>)>,
    count: usize,
}

impl Journal {
    pub fn begin(&mut self) -> usize {
        self.transactions.push((Fate::Open, BTreeSet::new()));
        self.transactions.len() - 1
    }

    /// Its marker takes an offset of each partition; these are returned.
    pub fn end(&mut self, transaction: usize, fate: Fate) -> BTreeSet<Place> {
        let (now, places) = &mut self.transactions[transaction];
        *now = fate;
        let places = places.clone();
        for place in &places {
            self.logs.entry(*place).or_default().end += 1;
        }
        places
    }

    /// A record at the end of its partition. Its timestamp is `None` where only the readers know it.
    pub fn note(&mut self, topic: &'static str, mut record: JavaRecord, how: How) {
        let place = (topic, record.partition);
        let log = self.logs.entry(place).or_default();
        record.offset = log.end;
        log.end += 1;
        log.records.push((record, how));
        self.count += 1;
        if let Some(transaction) = how.transaction {
            self.transactions[transaction].1.insert(place);
        }
    }

    /// The number of records.
    pub fn count(&self) -> usize {
        self.count
    }

    pub fn end_of(&self, place: Place) -> i64 {
        self.logs.get(&place).map_or(0, |log| log.end)
    }

    pub fn places(&self) -> impl Iterator<Item = Place> {
        self.logs.keys().copied()
    }

    /// Where reading ends: of committed records, at the first record of a transaction that is open (the last stable
    /// offset).
    pub fn readable_end(&self, place: Place, read_committed: bool) -> i64 {
        let Some(log) = self.logs.get(&place) else { return 0 };
        let open = |how: &How| self.fate(how) == Some(Fate::Open);
        let first_open = log.records.iter().find(|(_, how)| read_committed && open(how));
        first_open.map_or(log.end, |(record, _)| record.offset)
    }

    /// What a reader must deliver of a partition.
    pub fn readable(&self, place: Place, read_committed: bool) -> impl Iterator<Item = &JavaRecord> {
        let end = self.readable_end(place, read_committed);
        let records = self.logs.get(&place).map_or(&[][..], |log| &log.records);
        let delivered = move |(record, how): &&(JavaRecord, How)| {
            record.offset < end && !(read_committed && self.fate(how) == Some(Fate::Aborted))
        };
        records.iter().filter(delivered).map(|(record, _)| record)
    }

    /// How the record at an offset was written.
    pub fn how(&self, place: Place, offset: i64) -> Option<(How, Option<Fate>)> {
        let records = &self.logs.get(&place)?.records;
        let at = records.binary_search_by_key(&offset, |(record, _)| record.offset).ok()?;
        let how = records[at].1;
        Some((how, self.fate(&how)))
    }

    fn fate(&self, how: &How) -> Option<Fate> {
        how.transaction.map(|transaction| self.transactions[transaction].0)
    }
}

/// How many records were written in each way.
impl fmt::Display for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut counts: BTreeMap<_, usize> = BTreeMap::new();
        for ((topic, _), log) in &self.logs {
            for (_, how) in &log.records {
                let way = (*topic, how.writer, how.magic, how.codec, self.fate(how));
                *counts.entry(way).or_default() += 1;
            }
        }
        for ((topic, writer, magic, codec, fate), count) in counts {
            let fate = fate.map_or_else(|| "no transaction".to_owned(), |fate| format!("{fate:?}"));
            writeln!(f, "{count:>7} {topic}: {writer}, magic {magic}, {codec}, {fate}")?;
        }
        Ok(())
    }
}
