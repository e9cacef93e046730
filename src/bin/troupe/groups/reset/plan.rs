//! What a reset would do, row by row.

use std::collections::BTreeMap;

use kafka_troupe::admin::KafkaAdmin;
use kafka_troupe::proto::TopicPartition;
use kafka_troupe::proto::group::reset::{LogRange, ResetTarget, StoredOffsets};
use kafka_troupe::proto::kafka::list_offsets::{EARLIEST, LATEST};

use super::target::Target;
use crate::offset_row::OffsetRow;

/// What a group has, and who uses it.
#[derive(Debug, Default)]
pub struct Found {
    /// Whether there is such a group.
    pub exists: bool,
    /// Why it must not be reset: its members.
    pub busy: Vec<String>,
    /// Its offsets.
    pub stored: BTreeMap<TopicPartition, StoredOffsets>,
    /// The versions of its offsets' nodes in ZooKeeper.
    pub versions: BTreeMap<TopicPartition, i32>,
    /// What is odd about an offset.
    pub odd: BTreeMap<TopicPartition, String>,
}

impl Found {
    /// Says of a group without offsets why it has none.
    pub fn nothing(&self) -> &'static str {
        if self.exists { "it has no offsets" } else { "it does not exist" }
    }
}

/// What has come of writing.
#[derive(Debug, Default)]
pub struct Written {
    /// Why an offset was not set, or not in every store.
    pub errors: BTreeMap<TopicPartition, String>,
    /// Why the group is not as it should be: it is in use.
    pub in_use: Vec<String>,
    /// What servers did not do.
    pub failures: Vec<String>,
}

/// What a reset would do to one group.
#[derive(Debug)]
pub struct Plan {
    pub group: String,
    pub found: Found,
    pub rows: Vec<OffsetRow>,
    /// Why it is not done.
    pub refusals: Vec<String>,
    /// What came of doing it.
    pub written: Written,
}

impl Plan {
    /// Asks the brokers for what their logs hold.
    pub async fn of(
        group: &str,
        found: Found,
        target: &Target,
        keys: Vec<TopicPartition>,
        kafka: &KafkaAdmin,
    ) -> Self {
        let logs = Logs::ask(kafka, &keys, target).await;
        let row = |key: &TopicPartition| {
            let stored = found.stored.get(key).copied().unwrap_or_default();
            let planned = match target.of(group, key) {
                Some(target) => logs.plan(key, target, stored.position()),
                None => Err("the file has no row of it".to_owned()),
            };
            let mut row = OffsetRow::new(group, key, stored.position());
            match planned {
                Ok((offset, mark)) => {
                    row.new_offset = Some(offset);
                    mark.into_iter().for_each(|mark| row.add(mark));
                }
                Err(why) => row.add(why),
            }
            found.odd.get(key).into_iter().for_each(|odd| row.add(odd));
            row
        };
        let rows: Vec<OffsetRow> = keys.iter().map(row).collect();
        let untold = rows.iter().filter(|row| row.new_offset.is_none()).count();
        let untold = (untold > 0)
            .then(|| format!("of {untold} of {} partitions it cannot be told to what offset", rows.len()));
        let refusals = found.busy.iter().cloned().chain(untold).collect();
        Self { group: group.to_owned(), found, rows, refusals, written: Written::default() }
    }

    /// What is to be written.
    pub fn offsets(&self) -> Vec<(TopicPartition, i64)> {
        self.rows.iter().filter_map(|row| Some((row.key(), row.new_offset?))).collect()
    }

    /// Takes down what has come of it.
    pub fn note(&mut self, written: Written) {
        for row in &mut self.rows {
            written.errors.get(&row.key()).into_iter().for_each(|why| row.add(why));
        }
        self.written = written;
    }

    /// Whether it is done, or could be.
    pub fn is_well(&self) -> bool {
        let Written { errors, in_use, failures } = &self.written;
        self.refusals.is_empty() && errors.is_empty() && in_use.is_empty() && failures.is_empty()
    }
}

/// What is asked of logs: an offset each, or why it is not told.
type Asked = BTreeMap<TopicPartition, Result<Option<i64>, String>>;

/// What logs hold.
struct Logs {
    starts: Asked,
    ends: Asked,
    /// Where records of the target's time begin.
    at_time: Asked,
}

impl Logs {
    async fn ask(kafka: &KafkaAdmin, keys: &[TopicPartition], target: &Target) -> Self {
        let starts = kafka.log_offsets(keys, EARLIEST).await;
        let at_time = match target {
            Target::Rule(ResetTarget::Time(time)) => kafka.log_positions(keys, *time).await,
            Target::Rule(_) | Target::Rows(_) => Asked::new(),
        };
        // last, so that none is below what was told before
        Self { starts, at_time, ends: kafka.log_offsets(keys, LATEST).await }
    }

    fn plan(
        &self,
        key: &TopicPartition,
        target: ResetTarget,
        committed: Option<i64>,
    ) -> Result<(i64, Option<String>), String> {
        let log = LogRange { start: told(&self.starts, key)?, end: told(&self.ends, key)? };
        let at_time = match target {
            // a position at the end is that of no record
            ResetTarget::Time(_) => Some(told(&self.at_time, key)?).filter(|offset| *offset < log.end),
            _ => None,
        };
        let planned = target.plan(committed, log, at_time).map_err(|why| why.to_string())?;
        Ok((planned.offset, planned.mark.map(|mark| mark.to_string())))
    }
}

fn told(asked: &Asked, key: &TopicPartition) -> Result<i64, String> {
    match asked.get(key) {
        Some(Ok(Some(offset))) => Ok(*offset),
        Some(Err(why)) => Err(why.clone()),
        Some(Ok(None)) | None => Err("its leader does not tell what its log holds".to_owned()),
    }
}
