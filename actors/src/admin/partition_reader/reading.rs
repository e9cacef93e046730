//! How far one partition is. No I/O.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::kafka::error_code::{Disposition, ErrorCode};
use kafka_troupe_proto::kafka::fetch::FetchedPartition;
use kafka_troupe_proto::kafka::records::extent;
use tokio::time::Instant;

use super::walk::Chunk;
use super::{PartitionReadError, PartitionReadOptions, ReadUntil, StartAt};

/// How far the reading of a partition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadProgress {
    /// Where it began.
    pub start: i64,
    /// The next offset to read.
    pub position: i64,
    /// The end of the log when reading began; reading committed, the first offset of a transaction that was open. Less
    /// once the log was found to be cut (an unclean election).
    pub log_end: i64,
}

/// What the leader says of the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) log_start: i64,
    pub(super) log_end: i64,
    /// Where the time lies that was asked for.
    pub(super) at_time: Option<i64>,
}

/// Answers that do not know of a partition before there is none: a broker may be behind.
const UNKNOWN_MOST: u32 = 3;

/// So long nothing comes before the log's end is asked for again. A leader that was just elected may not know yet how far
/// its followers are, and gives out less than there is.
const QUIET: Duration = Duration::from_secs(5);

/// What is wanted next of a partition's leader.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// The log's ends, to find where to begin.
    Begin(StartAt),
    /// The log's ends: this offset is not between them.
    Outside(i64),
    /// Records.
    At(ReadProgress),
    /// The log's end once more: nothing comes before the one that it had.
    End(ReadProgress),
}

/// One partition.
pub(super) struct Reading {
    pub(super) key: Arc<TopicPartition>,
    /// Who is taken for its leader.
    pub(super) leader: Option<i32>,
    place: Place,
    /// Kept while the place is not known.
    known: Option<ReadProgress>,
    pub(super) fetch_bytes: i32,
    /// It has failed for good, or until the next seek.
    stopped: bool,
    /// A chunk of it waits to be walked.
    pub(super) is_queued: bool,
    /// Since when nobody has answered for it.
    failing_since: Option<Instant>,
    /// Since when answers have held nothing.
    quiet_since: Option<Instant>,
    /// How often in a row brokers did not know of it.
    unknown: u32,
}

impl Reading {
    pub(super) fn new(key: TopicPartition, start: StartAt, fetch_bytes: i32) -> Self {
        Self {
            key: Arc::new(key),
            leader: None,
            place: Place::Begin(start),
            known: None,
            fetch_bytes,
            stopped: false,
            is_queued: false,
            failing_since: None,
            quiet_since: None,
            unknown: 0,
        }
    }

    pub(super) fn progress(&self) -> Option<ReadProgress> {
        match self.place {
            Place::At(progress) | Place::End(progress) => Some(progress),
            Place::Begin(_) | Place::Outside(_) => self.known,
        }
    }

    /// Whether the log's ends are to be asked for, and which time is to be found in it.
    pub(super) fn wants_bounds(&self) -> Option<Option<i64>> {
        match self.place {
            Place::Begin(StartAt::Time(time)) => Some(Some(time)),
            Place::Begin(_) | Place::Outside(_) | Place::End(_) => Some(None),
            Place::At(_) => None,
        }
    }

    /// The last attempt failed.
    pub(super) fn is_failing(&self) -> bool {
        self.failing_since.is_some()
    }

    pub(super) fn is_begun(&self) -> bool {
        self.stopped || self.progress().is_some()
    }

    pub(super) fn until(&self, until: ReadUntil) -> Option<i64> {
        match until {
            ReadUntil::Forever => None,
            ReadUntil::LogEnd => self.progress().map(|progress| progress.log_end),
            ReadUntil::Offset(offset) => Some(offset),
        }
    }

    /// Nothing more is to be read of it.
    pub(super) fn is_over(&self, until: ReadUntil) -> bool {
        let reached = |end: i64| matches!(self.place, Place::At(progress) if progress.position >= end);
        self.stopped || self.until(until).is_some_and(reached)
    }

    /// The offset to fetch from, if it is to be fetched.
    pub(super) fn due(&self, until: ReadUntil) -> Option<i64> {
        match self.place {
            Place::At(progress) if !self.is_queued && !self.is_over(until) => Some(progress.position),
            _ => None,
        }
    }

    /// What lies before is read.
    pub(super) fn advance(&mut self, position: i64) {
        if let Place::At(progress) = &mut self.place {
            progress.position = progress.position.max(position);
        }
    }

    pub(super) fn seek(&mut self, offset: i64) {
        (self.stopped, self.is_queued) = (false, false);
        (self.failing_since, self.quiet_since) = (None, None);
        self.place = match self.progress() {
            Some(progress) => Place::At(ReadProgress { position: offset, ..progress }),
            None => Place::Begin(StartAt::Offset(offset)),
        };
    }

    pub(super) fn stop(&mut self) {
        self.stopped = true;
    }

    /// Its leader has told the ends of its log; `read_committed`, its end may be less than can be fetched.
    pub(super) fn bounded(&mut self, bounds: Bounds, read_committed: bool) -> Option<PartitionReadError> {
        let is_told = matches!(self.place, Place::Outside(_)) || !read_committed;
        (self.failing_since, self.unknown) = (None, 0);
        let Bounds { log_start, log_end, at_time } = bounds;
        let position = match self.place {
            Place::Begin(StartAt::Earliest) => log_start,
            Place::Begin(StartAt::Latest) => log_end,
            Place::Begin(StartAt::BeforeEnd(count)) => {
                log_end.saturating_sub(i64::try_from(count).unwrap_or(i64::MAX)).max(log_start)
            }
            Place::Begin(StartAt::Offset(offset)) | Place::Outside(offset) => offset,
            Place::Begin(StartAt::Time(_)) => at_time.unwrap_or(log_end),
            Place::At(progress) => progress.position,
            Place::End(progress) => {
                // a log that was cut ends here: what there was behind is gone
                let is_cut = progress.position >= log_end;
                let log_end = if is_cut { progress.position } else { progress.log_end };
                self.place = Place::At(ReadProgress { log_end, ..progress });
                return None;
            }
        };
        let progress = self.known.unwrap_or(ReadProgress { start: position, position, log_end });
        let progress = ReadProgress { position, ..progress };
        (self.place, self.known) = (Place::At(progress), Some(progress));
        if position >= log_start && (position <= log_end || !is_told) {
            return None;
        }
        self.stopped = true;
        let partition = TopicPartition::clone(&self.key);
        Some(PartitionReadError::OutOfRange { partition, offset: position, log_start, log_end })
    }

    /// Its leader has answered with an error.
    pub(super) fn refused(&mut self, error: ErrorCode) -> Result<(), Failed> {
        match error.disposition() {
            Disposition::ResetOffset => {
                if let Place::At(progress) = self.place {
                    (self.known, self.place) = (Some(progress), Place::Outside(progress.position));
                    self.failing_since.get_or_insert_with(Instant::now);
                }
                Ok(())
            }
            Disposition::Fatal => {
                self.stopped = true;
                let partition = TopicPartition::clone(&self.key);
                Err(Failed::Now(PartitionReadError::Refused { partition, error }))
            }
            _ => Err(Failed::Try(error.to_string())),
        }
    }

    /// A broker that answered does not know of it; an error where it is not just behind.
    pub(super) fn not_known(&mut self, partitions: usize) -> Option<PartitionReadError> {
        self.unknown += 1;
        if self.progress().is_some() || self.unknown < UNKNOWN_MOST {
            return None;
        }
        self.stopped = true;
        Some(PartitionReadError::NoSuchPartition { partition: TopicPartition::clone(&self.key), partitions })
    }

    /// Nobody has answered for it; an error once the patience is over.
    pub(super) fn unanswered(
        &mut self,
        why: String,
        options: &PartitionReadOptions,
    ) -> Option<PartitionReadError> {
        self.leader = None;
        let now = Instant::now();
        let since = *self.failing_since.get_or_insert(now);
        if now.duration_since(since) < options.patience {
            return None;
        }
        self.failing_since = Some(now);
        // before the beginning is known there is nothing that could go on by itself
        self.stopped |= self.progress().is_none();
        let (partition, offset) = (TopicPartition::clone(&self.key), self.progress().map(|it| it.position));
        Some(PartitionReadError::Unavailable { partition, offset, why })
    }

    /// Records came, or none: what is to be walked of it.
    pub(super) fn fetched(
        &mut self,
        from: i64,
        answer: FetchedPartition,
        options: &PartitionReadOptions,
    ) -> Result<Option<Chunk>, PartitionReadError> {
        self.failing_since = None;
        let FetchedPartition { records, aborted, .. } = answer;
        let extent = extent(&records);
        if extent.is_oversize() {
            let size = extent.partial.and_then(|it| it.size);
            return self.grow(&records, size, options.most_fetch_bytes).map(|()| None);
        }
        if extent.entries == 0 && extent.error.is_none() {
            self.nothing_came(options.until);
            return Ok(None);
        }
        self.quiet_since = None;
        self.is_queued = true;
        let next = extent.next_offset.unwrap_or(from);
        Ok(Some(Chunk { partition: Arc::clone(&self.key), from, next, records, aborted }))
    }

    fn nothing_came(&mut self, until: ReadUntil) {
        let now = Instant::now();
        let since = *self.quiet_since.get_or_insert(now);
        if let (Place::At(progress), ReadUntil::LogEnd) = (self.place, until)
            && now.duration_since(since) >= QUIET
        {
            (self.place, self.quiet_since) = (Place::End(progress), None);
        }
    }

    /// KIP-74 has brokers answer with a whole batch, however large, but only for the first partition of an answer.
    fn grow(&mut self, records: &Bytes, size: Option<usize>, most: i32) -> Result<(), PartitionReadError> {
        let asked = self.fetch_bytes.max(i32::try_from(records.len()).unwrap_or(i32::MAX));
        let size = size.map_or(0, |size| i32::try_from(size).unwrap_or(i32::MAX));
        if asked >= most || size > most {
            self.stopped = true;
            let (partition, offset) = (TopicPartition::clone(&self.key), self.progress());
            let offset = offset.map_or(0, |progress| progress.position);
            return Err(PartitionReadError::TooLarge { partition, offset, most });
        }
        self.fetch_bytes = asked.saturating_mul(2).max(size).min(most);
        Ok(())
    }
}

/// How an answer failed.
pub(super) enum Failed {
    /// Trying again cannot help.
    Now(PartitionReadError),
    /// Another leader may know.
    Try(String),
}
