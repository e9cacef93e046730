//! Where a group is to begin.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use kafka_troupe::proto::TopicPartition;
use kafka_troupe::proto::config::parse_duration;
use kafka_troupe::proto::group::reset::ResetTarget;
use kafka_troupe::proto::group::reset::file::{self, ResetRow};

use crate::exit::Failure;
use crate::time;

/// One of these.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub struct TargetArgs {
    /// To where each log starts
    #[arg(long)]
    to_earliest: bool,
    /// To where each log ends
    #[arg(long)]
    to_latest: bool,
    /// To where the group is; to the log's end where it has no offset
    #[arg(long)]
    to_current: bool,
    /// To this offset, or the end of the log that is nearer to it
    #[arg(long, value_name = "OFFSET", allow_negative_numbers = true)]
    to_offset: Option<i64>,
    /// By so many records, ahead or (-N) back
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    shift_by: Option<i64>,
    /// To the first record since this time, such as 2026-11-30T16:00:00.000; UTC unless it names its offset (+01:00)
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    to_datetime: Option<i64>,
    /// To the first record since so long ago, such as PT6H or P1DT30M
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    by_duration: Option<Duration>,
    /// To the offsets in a file, as --export prints them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["topic", "all_topics"])]
    from_file: Option<PathBuf>,
}

/// Where a group is to begin.
#[derive(Debug)]
pub enum Target {
    /// By a rule for every partition.
    Rule(ResetTarget),
    /// Each partition of these at its own offset.
    Rows(Vec<ResetRow>),
}

impl TargetArgs {
    /// Reads the file, if one is named, and the clock, if it counts.
    pub fn read(&self) -> Result<Target, Failure> {
        let flags = [
            (self.to_earliest, ResetTarget::Earliest),
            (self.to_latest, ResetTarget::Latest),
            (self.to_current, ResetTarget::Current),
        ];
        let by_flag = flags.into_iter().find_map(|(is_set, target)| is_set.then_some(target));
        let rule = by_flag
            .or(self.to_offset.map(ResetTarget::Offset))
            .or(self.shift_by.map(ResetTarget::Shift))
            .or(self.to_datetime.map(ResetTarget::Time))
            .or(self.by_duration.map(|age| ResetTarget::Time(time::before_now(age))));
        match (rule, &self.from_file) {
            (Some(rule), _) => Ok(Target::Rule(rule)),
            (None, Some(path)) => {
                let failure = |why: String| Failure::usage(format!("{}: {why}", path.display()));
                let text = fs::read_to_string(path).map_err(|error| failure(error.to_string()))?;
                let rows = file::parse(&text).map_err(|errors| failure(errors.to_string()))?;
                if rows.is_empty() { Err(failure("has no rows".to_owned())) } else { Ok(Target::Rows(rows)) }
            }
            // clap has asked for one
            (None, None) => Err(Failure::usage("where to is missing, such as --to-earliest")),
        }
    }
}

impl Target {
    /// Whether the rows of a file are of the groups that are named.
    pub fn check(&self, groups: &[String]) -> Result<(), Failure> {
        let Self::Rows(rows) = self else { return Ok(()) };
        match rows.iter().find(|row| row.group.as_ref().is_none_or(|group| !groups.contains(group))) {
            None => Ok(()),
            Some(ResetRow { group: Some(group), .. }) => {
                Err(Failure::usage(format!("the file has rows of group {group:?}: name it with --group too")))
            }
            Some(_) if groups.len() == 1 => Ok(()),
            Some(_) => {
                let why =
                    "the file does not say which rows are of which group: write group,topic,partition,offset";
                Err(Failure::usage(why))
            }
        }
    }

    /// What is to become of one partition; nothing where the file does not have it.
    pub fn of(&self, group: &str, key: &TopicPartition) -> Option<ResetTarget> {
        match self {
            Self::Rule(target) => Some(*target),
            Self::Rows(rows) => {
                let row = rows.iter().find(|row| is_of(row, group) && row.key == *key)?;
                Some(ResetTarget::Offset(row.offset))
            }
        }
    }

    /// The partitions of a group that a file has.
    pub fn keys(&self, group: &str) -> Vec<TopicPartition> {
        match self {
            Self::Rule(_) => Vec::new(),
            Self::Rows(rows) => {
                rows.iter().filter(|row| is_of(row, group)).map(|row| row.key.clone()).collect()
            }
        }
    }
}

fn is_of(row: &ResetRow, group: &str) -> bool {
    row.group.as_deref().is_none_or(|it| it == group)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Target {
        Target::Rows(file::parse(text).unwrap())
    }

    #[test]
    fn rows_of_a_file_must_be_of_the_groups_named() {
        let groups = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let of_one = rows("t,0,5");
        assert!(of_one.check(&groups(&["a"])).is_ok());
        assert!(of_one.check(&groups(&["a", "b"])).is_err());
        let of_two = rows("a,t,0,5\nb,t,0,6");
        assert!(of_two.check(&groups(&["a", "b"])).is_ok());
        assert!(of_two.check(&groups(&["a"])).is_err());
        let key = TopicPartition::new("t", 0);
        assert_eq!(of_two.of("b", &key), Some(ResetTarget::Offset(6)));
        assert_eq!(of_two.keys("b"), [key]);
        assert_eq!(of_two.of("b", &TopicPartition::new("t", 1)), None);
    }
}
