//! Resets: which offset a group is to begin at, when somebody says so by hand.
//!
//! The rules are those of Kafka's own `kafka-consumer-groups --reset-offsets` (0.11 to 4.x), so that both make the same
//! of the same target; what it only warns of in its log is a [`Mark`] here.
//!
//! - [`ResetTarget::plan`]: the new offset of one partition.
//! - [`StoredOffsets`]: what a group has stored, in ZooKeeper and in Kafka; [`Stores`]: where a reset must write.
//! - [`file`](mod@file): rows of `--export` and `--from-file`.

pub mod file;
#[cfg(test)]
mod tests;

use std::fmt;

use thiserror::Error;

/// Where a group is to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResetTarget {
    /// At the log's start.
    Earliest,
    /// At the log's end.
    Latest,
    /// Where it is; at the log's end where nothing is committed.
    Current,
    /// At this offset.
    Offset(i64),
    /// So many records further, or back.
    Shift(i64),
    /// At the first record that is not older than this, in epoch milliseconds; at the log's end where there is none.
    Time(i64),
}

/// What a log holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRange {
    /// The offset of its first record.
    pub start: i64,
    /// The offset of the next record to come.
    pub end: i64,
}

/// The offset that a partition is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedOffset {
    /// The next offset to consume.
    pub offset: i64,
    /// Why it is another than one might think.
    pub mark: Option<Mark>,
}

/// What is said of a planned offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mark {
    /// This was asked for, and the log starts later: its start.
    BelowStart(i64),
    /// This was asked for, and the log ends earlier: its end.
    BeyondEnd(i64),
    /// Nothing was committed: the log's end.
    NothingCommitted,
    /// There is no record that is so late: the log's end.
    NoRecordSince,
    /// It stays outside of what the log holds.
    OutsideLog(LogRange),
}

/// Why no offset can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unplanned {
    /// Nothing is committed that could be shifted.
    #[error("nothing is committed that could be shifted")]
    NothingToShift,
}

impl ResetTarget {
    /// The new offset of a partition: `at_time` is the offset of the first record that is not older than the target's
    /// time, looked at for [`Time`](Self::Time) only.
    ///
    /// # Errors
    /// [`Unplanned`]: why it cannot be told.
    pub fn plan(
        self,
        committed: Option<i64>,
        log: LogRange,
        at_time: Option<i64>,
    ) -> Result<PlannedOffset, Unplanned> {
        let or_end = |offset: Option<i64>, mark| match offset {
            Some(offset) => PlannedOffset::plain(offset),
            None => PlannedOffset { offset: log.end, mark: Some(mark) },
        };
        Ok(match self {
            Self::Earliest => PlannedOffset::plain(log.start),
            Self::Latest => PlannedOffset::plain(log.end),
            Self::Current => or_end(committed, Mark::NothingCommitted).marked_outside(log),
            Self::Offset(offset) => log.clamp(offset),
            Self::Shift(by) => log.clamp(committed.ok_or(Unplanned::NothingToShift)?.saturating_add(by)),
            Self::Time(_) => or_end(at_time, Mark::NoRecordSince),
        })
    }
}

impl LogRange {
    fn clamp(self, offset: i64) -> PlannedOffset {
        match offset {
            _ if offset > self.end => PlannedOffset { offset: self.end, mark: Some(Mark::BeyondEnd(offset)) },
            _ if offset < self.start => {
                PlannedOffset { offset: self.start, mark: Some(Mark::BelowStart(offset)) }
            }
            _ => PlannedOffset::plain(offset),
        }
    }

    fn holds(self, offset: i64) -> bool {
        (self.start..=self.end).contains(&offset)
    }
}

impl PlannedOffset {
    fn plain(offset: i64) -> Self {
        Self { offset, mark: None }
    }

    fn marked_outside(self, log: LogRange) -> Self {
        if log.holds(self.offset) { self } else { Self { mark: Some(Mark::OutsideLog(log)), ..self } }
    }
}

impl fmt::Display for Mark {
    /// For people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BelowStart(asked) => write!(f, "{asked} is below the log's start"),
            Self::BeyondEnd(asked) => write!(f, "{asked} is beyond the log's end"),
            Self::NothingCommitted => f.write_str("nothing was committed: the log's end"),
            Self::NoRecordSince => f.write_str("no record is so late: the log's end"),
            Self::OutsideLog(log) => write!(f, "outside the log, which holds {} to {}", log.start, log.end),
        }
    }
}

/// What a group has committed for one partition, in each store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredOffsets {
    /// In ZooKeeper; absent where no position is stored.
    pub zookeeper: Option<i64>,
    /// In Kafka; absent where no position is stored.
    pub kafka: Option<i64>,
}

impl StoredOffsets {
    /// The position: the larger of both, as the old consumer with `dual.commit.enabled` reads it.
    pub fn position(self) -> Option<i64> {
        self.zookeeper.max(self.kafka)
    }
}

/// The stores that a ZooKeeper group's offsets are in. A reset writes both where both are used: the larger wins when
/// they are read, so an offset that only one of them lowers would stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stores {
    /// ZooKeeper.
    pub zookeeper: bool,
    /// Kafka.
    pub kafka: bool,
}

impl Stores {
    /// The stores that hold any of the group's offsets; ZooKeeper where none does.
    pub fn of<'a>(committed: impl IntoIterator<Item = &'a StoredOffsets>) -> Self {
        let none = Self { zookeeper: false, kafka: false };
        let used = committed.into_iter().fold(none, |used, it| Self {
            zookeeper: used.zookeeper || it.zookeeper.is_some(),
            kafka: used.kafka || it.kafka.is_some(),
        });
        Self { zookeeper: used.zookeeper || !used.kafka, ..used }
    }
}
