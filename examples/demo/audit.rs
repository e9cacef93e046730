//! What the handlers' logs prove: nothing missing, little handled twice, never two owners.

use std::collections::BTreeMap;

use crate::handled_log::Entry;
use crate::producing::{PARTITIONS, sequence_at, share};

/// What ZooKeeper said of the killed member's partitions.
#[derive(Debug, Default)]
pub struct Kill {
    pub member: String,
    pub at_micros: i64,
    pub partitions: Vec<TakenOver>,
}

/// One of them.
#[derive(Debug, Clone)]
pub struct TakenOver {
    pub partition: i32,
    /// Committed by the dead, which is where the next owner began.
    pub committed: i64,
    pub by: String,
    pub at_micros: i64,
}

/// What each member handled, by name and in order.
pub type Logs<'a> = Vec<(&'a str, Vec<Entry>)>;

/// What was handled of one partition.
#[derive(Debug, Default, Clone)]
pub struct PartitionAudit {
    /// Handled per member, by name.
    pub by_member: BTreeMap<String, u64>,
    pub missing: u64,
    pub duplicates: u64,
    /// The most duplicates that the kill excuses.
    pub bound: u64,
    /// Records that are not what was produced at their offset.
    pub wrong: u64,
}

#[derive(Debug, Default)]
pub struct Audit {
    pub partitions: Vec<PartitionAudit>,
    /// Two members that handled one partition at the same time.
    pub overlaps: Vec<String>,
    /// From the first record handled to the last.
    pub micros: i64,
    /// The most records handled within one second.
    pub best_second: u64,
    /// How old the first record was that the killed member had handled and not committed.
    pub oldest_uncommitted_micros: i64,
    /// From the kill to the first record of the last partition to go on.
    pub resumed_micros: Option<i64>,
}

impl Audit {
    /// Of the logs of all members, by name.
    pub fn of(logs: &[(&str, Vec<Entry>)], records: u64, kill: &Kill) -> Self {
        let mut audit =
            Self { partitions: vec![PartitionAudit::default(); PARTITIONS as usize], ..Self::default() };
        for partition in 0..PARTITIONS {
            let of_partition = |entry: &&Entry| entry.partition == partition;
            let logs: Logs = logs
                .iter()
                .map(|(member, log)| (*member, log.iter().filter(of_partition).copied().collect()))
                .collect();
            audit.count(partition, &logs, share(records, partition));
            audit.find_overlaps(partition, &logs, kill);
            audit.judge_kill(partition, &logs, kill);
        }
        audit.pace(logs.iter().flat_map(|(_, log)| log));
        audit
    }

    pub fn sum(&self, what: impl Fn(&PartitionAudit) -> u64) -> u64 {
        self.partitions.iter().map(what).sum()
    }

    fn count(&mut self, partition: i32, logs: &[(&str, Vec<Entry>)], produced: i64) {
        let audit = &mut self.partitions[partition as usize];
        let mut times = vec![0_u32; produced as usize];
        for (member, log) in logs {
            audit.by_member.insert((*member).to_owned(), log.len() as u64);
            for entry in log {
                match times.get_mut(entry.offset as usize) {
                    Some(times) if entry.sequence == sequence_at(partition, entry.offset) => *times += 1,
                    _ => audit.wrong += 1,
                }
            }
        }
        audit.missing = times.iter().filter(|times| **times == 0).count() as u64;
        audit.duplicates = times.iter().map(|times| u64::from(times.saturating_sub(1))).sum();
    }

    /// A stint is a run of offsets without a gap by one member; those of different members must follow each other.
    /// The kill ends a stint too: one may go on where it once stopped, if the dead had committed nothing.
    fn find_overlaps(&mut self, partition: i32, logs: &[(&str, Vec<Entry>)], kill: &Kill) {
        let goes_on = |one: &Entry, next: &Entry| {
            next.offset == one.offset + 1 && (one.micros > kill.at_micros || next.micros <= kill.at_micros)
        };
        let mut stints: Vec<(i64, i64, &str)> = Vec::new();
        for (member, log) in logs {
            for stint in log.chunk_by(goes_on) {
                stints.push((stint[0].micros, stint[stint.len() - 1].micros, member));
            }
        }
        stints.sort_unstable();
        let overlapping = stints.windows(2).filter(|pair| pair[0].2 != pair[1].2 && pair[1].0 <= pair[0].1);
        self.overlaps.extend(overlapping.map(|pair| {
            format!("partition {partition}: {} handled records while {} did", pair[1].2, pair[0].2)
        }));
    }

    /// What the killed member handled beyond its last commit comes again, and nothing else.
    fn judge_kill(&mut self, partition: i32, logs: &[(&str, Vec<Entry>)], kill: &Kill) {
        let Some(taken) = kill.partitions.iter().find(|taken| taken.partition == partition) else { return };
        for (member, log) in logs {
            if *member == kill.member {
                let uncommitted = log.iter().filter(|entry| entry.offset >= taken.committed);
                let (mut bound, mut oldest) = (0, 0);
                for entry in uncommitted {
                    bound += 1;
                    oldest = oldest.max(kill.at_micros - entry.micros);
                }
                self.partitions[partition as usize].bound = bound;
                self.oldest_uncommitted_micros = self.oldest_uncommitted_micros.max(oldest);
            } else if let Some(first) = log.iter().find(|entry| entry.micros > kill.at_micros) {
                // the partition may move once more, later
                let pause = first.micros - kill.at_micros;
                if *member == taken.by {
                    self.resumed_micros = self.resumed_micros.max(Some(pause));
                }
            }
        }
    }

    fn pace<'a>(&mut self, entries: impl Iterator<Item = &'a Entry>) {
        let mut seconds: BTreeMap<i64, u64> = BTreeMap::new();
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        for entry in entries {
            *seconds.entry(entry.micros / 1_000_000).or_default() += 1;
            (first, last) = (first.min(entry.micros), last.max(entry.micros));
        }
        self.micros = last.saturating_sub(first).max(1);
        self.best_second = seconds.into_values().max().unwrap_or_default();
    }
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;
