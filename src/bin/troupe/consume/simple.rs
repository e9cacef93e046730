//! Records of partitions, without a group: `--partition` and `--offset`, as the simple consumer shell; and all of a
//! topic where there is no ZooKeeper to coordinate a group.

use std::io::{self, Write};
use std::str::FromStr;
use std::sync::Arc;

use kafka_troupe::admin::{
    KafkaAdmin, PartitionReadError, PartitionReadOptions, PartitionReader, ReadUntil, StartAt,
};
use kafka_troupe::{ConsumeError, ConsumerConfig, Record, TopicPartition};

use super::args::Args;
use super::formatter::Formatter;
use super::printing::{Printing, Source};
use super::settings::Settings;
use crate::ends::Ends;
use crate::exit::{Answer, Failure, Outcome};
use crate::servers::Servers;

/// Kafka's own topics, which a filter leaves out unless `exclude.internal.topics=false`.
const INTERNAL: &[&str] = &["__consumer_offsets", "__transaction_state", "__share_group_state"];

/// Which partition, and where in it.
#[derive(clap::Args)]
pub struct SimpleArgs {
    /// Just this partition of --topic, without a group
    #[arg(long, value_name = "N", requires = "topic", conflicts_with_all = ["group", "delete_consumer_offsets"])]
    pub partition: Option<i32>,
    /// Where in the partition to begin: earliest (the default), latest, latest-N for the last N, or an offset; -2 and
    /// -1 are earliest and latest
    #[arg(long, value_name = "OFFSET", requires = "partition", allow_hyphen_values = true)]
    #[arg(conflicts_with = "from_beginning")]
    pub offset: Option<Place>,
    /// End at the end that the log has now
    #[arg(long)]
    pub no_wait_at_logend: bool,
    /// Before each record, print `next offset = ` and the offset after it; to stderr where records are JSON
    #[arg(long, requires = "partition")]
    pub print_offsets: bool,
}

/// `--offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(StartAt);

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.trim().to_ascii_lowercase();
        let before_end = lower.strip_prefix("latest").and_then(|rest| rest.trim().strip_prefix('-'));
        let place = match (lower.as_str(), before_end.map(|count| count.trim().parse())) {
            ("earliest", _) => StartAt::Earliest,
            ("latest", _) => StartAt::Latest,
            (_, Some(Ok(count))) => StartAt::BeforeEnd(count),
            (offset, _) => match offset.parse() {
                Ok(-2) => StartAt::Earliest,
                Ok(-1) => StartAt::Latest,
                Ok(offset) if offset >= 0 => StartAt::Offset(offset),
                _ => return Err("must be earliest, latest, latest-N, or an offset from 0 on".to_owned()),
            },
        };
        Ok(Self(place))
    }
}

impl SimpleArgs {
    /// Whether it is to be read without a group.
    pub fn wanted(&self) -> bool {
        self.partition.is_some()
    }

    /// The formatter, with a line before each record if that is asked for.
    pub fn with_offsets(&self, formatter: Box<dyn Formatter>, is_json: bool) -> Box<dyn Formatter> {
        if self.print_offsets { Box::new(WithOffsets { formatter, is_json }) } else { formatter }
    }
}

struct WithOffsets {
    formatter: Box<dyn Formatter>,
    /// The lines are no JSON: they go to stderr.
    is_json: bool,
}

impl Formatter for WithOffsets {
    fn write(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), String> {
        let line = format!("next offset = {}", record.offset() + 1);
        if self.is_json {
            say!("{line}");
        } else {
            writeln!(out, "{line}").map_err(|error| error.to_string())?;
        }
        self.formatter.write(record, out)
    }
}

/// Prints the records of partitions; as JSON, nothing but these to stdout.
pub async fn run(
    args: &Args,
    settings: &Settings,
    printing: Printing,
    is_json: bool,
    mut ends: Ends,
) -> Outcome {
    refuse_groups(args, settings)?;
    let servers = servers(args, settings)?;
    let config = settings.config_without_group()?;
    let printing = printing.patient_for(config.consumer_timeout);
    let options = options(args, settings, &config);
    let opened = tokio::select! {
        opened = open(args, settings, &servers, &config, options) => opened?,
        () = ends.next() => return Ok(Answer::Yes),
    };
    let (source, outcome) = printing.print(opened, &mut ends).await;
    let Some(source) = source else { return outcome };
    match source.failed {
        Some(failed) => Err(failed),
        None => {
            if source.is_over && args.simple.no_wait_at_logend {
                say_ends(&source.reader, is_json)?;
            }
            outcome
        }
    }
}

fn refuse_groups(args: &Args, settings: &Settings) -> Result<(), Failure> {
    if args.group.is_some() || args.delete_consumer_offsets {
        return Err(Failure::usage(
            "--group and --delete-consumer-offsets: groups are coordinated through ZooKeeper, and stand in it: name it \
             with --zookeeper HOSTS/CHROOT; without it, partitions are read and nothing is committed",
        ));
    }
    if let Some(group) = settings.group()? {
        say!("read without a group: group.id={group} is not used, and nothing is committed");
    }
    Ok(())
}

/// Those of the command line, and what properties say counts as well. What is wrong with a flag names the flag.
fn servers(args: &Args, settings: &Settings) -> Result<Servers, Failure> {
    let mut servers = args.servers.clone();
    servers.bootstrap()?;
    if servers.zookeeper.is_some() {
        servers.connect_string()?;
    }
    let or = |flag: Option<String>, key: &str| flag.or_else(|| settings.get(key).map(str::to_owned));
    servers.zookeeper = or(servers.zookeeper, "zookeeper.connect");
    servers.bootstrap_server = or(servers.bootstrap_server, "bootstrap.servers");
    Ok(servers)
}

fn options(args: &Args, settings: &Settings, config: &ConsumerConfig) -> PartitionReadOptions {
    let bytes = |bytes: u32| i32::try_from(bytes).unwrap_or(i32::MAX);
    let mut options = PartitionReadOptions::default();
    if args.simple.no_wait_at_logend {
        options.until = ReadUntil::LogEnd;
    }
    options.read = config.into();
    options.fetch_bytes = bytes(config.fetch_message_max_bytes);
    // without it, a large record is read here: there is no memory to be shared with others
    if settings.get("troupe.fetch.message.max.bytes.limit").is_some() {
        options.most_fetch_bytes = bytes(config.fetch_message_max_bytes_limit);
    }
    options.most_fetch_bytes = options.most_fetch_bytes.max(options.fetch_bytes);
    options.backoff = config.refresh_leader_backoff;
    if settings.get("fetch.wait.max.ms").is_some() {
        options.max_wait = config.fetch_wait_max;
    }
    options
}

async fn open(
    args: &Args,
    settings: &Settings,
    servers: &Servers,
    config: &ConsumerConfig,
    options: PartitionReadOptions,
) -> Result<Partitions, Failure> {
    let admin = servers.kafka_with(&config.into()).await?;
    let (partitions, single) = match (&args.topics.topic, args.simple.partition) {
        (Some(topic), Some(partition)) => {
            let place = args.simple.offset.unwrap_or(Place(StartAt::Earliest));
            (vec![(TopicPartition::new(topic.as_str(), partition), place.0)], true)
        }
        _ => (all_of(args, settings, &admin).await?, false),
    };
    let reader = admin.read_partitions(partitions, options).await;
    Ok(Partitions {
        reader,
        is_single: single,
        ends: args.simple.no_wait_at_logend,
        is_over: false,
        failed: None,
    })
}

/// All partitions of the topics, from their ends on or from the beginning.
async fn all_of(
    args: &Args,
    settings: &Settings,
    admin: &KafkaAdmin,
) -> Result<Vec<(TopicPartition, StartAt)>, Failure> {
    let from_beginning = matches!(settings.get("auto.offset.reset"), Some("smallest" | "earliest"));
    let start = if from_beginning { StartAt::Earliest } else { StartAt::Latest };
    let filter = args.topics.filter().map_err(Failure::usage)?;
    let shows_internal = settings.get("exclude.internal.topics") == Some("false");
    let kept_out = if shows_internal { &[] } else { INTERNAL };
    let mut partitions = Vec::new();
    for (name, topic) in admin.topics().await? {
        let wanted = match (&filter, &args.topics.topic) {
            (Some(filter), _) => (shows_internal || !topic.is_internal) && filter.allows(&name, kept_out),
            (None, Some(topic)) => **topic == *name,
            (None, None) => false,
        };
        if wanted {
            let keys = topic.partitions.iter().map(|it| TopicPartition::new(Arc::clone(&name), *it));
            partitions.extend(keys.map(|key| (key, start)));
        }
    }
    if partitions.is_empty() {
        return Err(Failure::work(match &args.topics.topic {
            Some(topic) => format!("the topic {topic} does not exist"),
            None => "no topic matches; with --bootstrap-server alone, those that come later are not seen"
                .to_owned(),
        }));
    }
    Ok(partitions)
}

/// The old shell's last line, for each partition.
fn say_ends(reader: &PartitionReader, is_json: bool) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    for (TopicPartition { topic, partition, .. }, progress) in reader.progress() {
        let offset = progress.position;
        let line =
            format!("Terminating. Reached the end of partition ({topic}, {partition}) at offset {offset}");
        if is_json {
            say!("{line}");
        } else {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// What is read, and how it ended.
struct Partitions {
    reader: PartitionReader,
    /// Just one, of which `--offset` can be given.
    is_single: bool,
    /// It does not wait for what is to come.
    ends: bool,
    /// All was read.
    is_over: bool,
    /// What ended it otherwise.
    failed: Option<Failure>,
}

impl Source for Partitions {
    async fn next(&mut self) -> Option<Result<Record, ConsumeError>> {
        loop {
            match self.reader.next().await {
                Some(Ok(record)) => return Some(Ok(record)),
                Some(Err(PartitionReadError::Unreadable(error))) => return Some(Err(error)),
                // it goes on by itself
                Some(Err(error @ PartitionReadError::Unavailable { offset: Some(_), .. })) if !self.ends => {
                    say!("{error}");
                }
                Some(Err(error)) => {
                    self.failed = Some(failure(&error));
                    return None;
                }
                None => {
                    self.is_over = true;
                    return None;
                }
            }
        }
    }

    async fn step_over(&mut self, unread: &ConsumeError) -> Result<(), Failure> {
        self.reader.seek(&unread.topic, unread.partition, unread.resume_at);
        Ok(())
    }

    fn advice(&self, unread: &ConsumeError) -> Option<String> {
        self.is_single.then(|| format!("begin behind it, with --offset {}", unread.resume_at))
    }

    fn all_handled(&mut self) {}

    fn all_but_the_last_handled(&mut self) {}
}

fn failure(error: &PartitionReadError) -> Failure {
    match error {
        PartitionReadError::OutOfRange { partition, offset, log_start, log_end, .. } => {
            Failure::work(format!(
                "{partition} has no offset {offset}: its log goes from {log_start} to {log_end}; begin with --offset \
             earliest, latest, or one of these"
            ))
        }
        error => Failure::work(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_taken_as_old_and_new_tools_take_them() {
        for (text, expected) in [
            ("earliest", StartAt::Earliest),
            ("-2", StartAt::Earliest),
            ("LATEST", StartAt::Latest),
            ("-1", StartAt::Latest),
            ("latest-10", StartAt::BeforeEnd(10)),
            ("latest - 3", StartAt::BeforeEnd(3)),
            ("0", StartAt::Offset(0)),
            ("9007199254740993", StartAt::Offset(9_007_199_254_740_993)),
        ] {
            assert_eq!(text.parse(), Ok(Place(expected)), "{text}");
        }
        for text in ["", "-3", "latest-", "latest-x", "latest+1", "first", "1.5"] {
            assert!(text.parse::<Place>().is_err(), "{text}");
        }
    }
}
