//! `troupe offsets get`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;

use kafka_troupe::proto::TopicPartition;
use kafka_troupe::proto::kafka::list_offsets::{EARLIEST, LATEST};
use kafka_troupe::{TopicFilter, actors::topic_metadata::KnownTopic};
use serde::Serialize;

use super::partition_pattern::PartitionPattern;
use crate::exit::{Answer, Failure, Outcome, finish};
use crate::output::{Output, print_json};
use crate::servers::Servers;
use crate::time;

/// Of which logs, at what time.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub servers: Servers,
    /// A topic, or a pattern of names where none is called so; without, all topics
    #[arg(long, value_name = "TOPIC")]
    pub topic: Option<String>,
    /// Which partitions: 0,1; without, all
    #[arg(long, value_name = "P,P", value_delimiter = ',')]
    pub partitions: Vec<i32>,
    /// Which partitions of which topics: TOPIC:3, TOPIC:2-5 (without 5), TOPIC:2-, TOPIC:-5 or TOPIC, some with commas
    /// between them; TOPIC is a pattern of names, and without it all topics are meant
    #[arg(long, value_name = "TOPIC:P,..", value_delimiter = ',', conflicts_with_all = ["topic", "partitions"])]
    pub topic_partitions: Vec<PartitionPattern>,
    /// latest (-1), earliest (-2), milliseconds since 1970, or a time as in 2026-11-30T12:00:00Z
    #[arg(long, default_value = "latest", allow_hyphen_values = true, value_parser = time)]
    pub time: i64,
    /// Leave Kafka's own topics out
    #[arg(long)]
    pub exclude_internal_topics: bool,
    /// How many offsets of each partition; brokers of today know of one
    #[arg(long, hide = true, default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..=1))]
    pub offsets: i32,
}

/// What brokers tell of since 3.0: of the youngest record, and of what is kept in other tiers.
const NOT_ASKED_FOR: &[&str] =
    &["max-timestamp", "-3", "earliest-local", "-4", "latest-tiered", "-5", "earliest-pending-upload", "-6"];

/// As the flag has it.
fn time(given: &str) -> Result<i64, String> {
    match (given, given.parse()) {
        ("latest", _) => Ok(LATEST),
        ("earliest", _) => Ok(EARLIEST),
        _ if NOT_ASKED_FOR.contains(&given) => Err(format!(
            "no broker is asked for {given} here: kafka-get-offsets.sh of 3.0 and later does; there are latest (-1), \
             earliest (-2) and times"
        )),
        (_, Ok(number @ EARLIEST..)) => Ok(number),
        (_, Ok(_)) => Err("none of latest (-1), earliest (-2) and milliseconds since 1970".to_owned()),
        (_, Err(_)) => time::parse(given),
    }
}

/// One partition.
#[derive(Serialize)]
struct Found {
    topic: String,
    partition: i32,
    /// None where there is nothing of that time or younger, or it cannot be told.
    offset: Option<i64>,
    /// Why it cannot be told.
    error: Option<String>,
}

/// Does it.
pub async fn run(args: Args, output: Output) -> Outcome {
    let kafka = args.servers.kafka().await?;
    let topics = kafka.topics().await?;
    let keys = args.keys(&topics)?;
    let Some(keys) = keys else {
        match args.topic.as_deref() {
            _ if !args.topic_partitions.is_empty() => say!("there is no such partition of any topic"),
            topic => say!("there is no topic {}", topic.unwrap_or("at all")),
        }
        return Ok(Answer::No);
    };
    let found = kafka.log_offsets(&keys, args.time).await.into_iter().map(|(key, told)| Found {
        topic: key.topic.to_string(),
        partition: key.partition,
        offset: told.clone().ok().flatten(),
        error: told.err(),
    });
    let found: Vec<_> = found.collect();
    let printed = print(&found, output);
    for Found { topic, partition, error, .. } in &found {
        error.iter().for_each(|why| say!("{topic}-{partition}: {why}"));
    }
    let untold: Vec<_> = found.iter().filter(|it| it.error.is_some()).collect();
    let is_there =
        |it: &&&Found| topics.get(&*it.topic).is_some_and(|topic| topic.partitions.contains(&it.partition));
    let outcome = match (untold.len(), untold.iter().filter(is_there).count()) {
        (0, _) => Ok(Answer::Yes),
        (_, 0) => Ok(Answer::No),
        (_, there) => {
            Err(Failure::work(format!("the offsets of {there} partitions that are there were not told")))
        }
    };
    finish(printed, outcome)
}

impl Args {
    /// What is asked for, whether it is there or not; none without any topic, or where no pattern matches.
    fn keys(&self, topics: &BTreeMap<Arc<str>, KnownTopic>) -> Result<Option<Vec<TopicPartition>>, Failure> {
        let asked: BTreeSet<i32> = self.partitions.iter().copied().collect();
        let chosen = self.chosen(topics)?;
        let keys = chosen.iter().flat_map(|(name, topic)| {
            let all = || topic.partitions.iter().copied().collect();
            let numbers = if asked.is_empty() { all() } else { asked.clone() };
            numbers.into_iter().map(|number| TopicPartition::new(Arc::clone(name), number))
        });
        let patterns = &self.topic_partitions;
        let is_meant = |key: &TopicPartition| {
            patterns.is_empty() || patterns.iter().any(|it| it.allows(&key.topic, key.partition))
        };
        let keys: Vec<_> = keys.filter(is_meant).collect();
        Ok((!keys.is_empty()).then_some(keys))
    }

    fn chosen<'a>(
        &self,
        topics: &'a BTreeMap<Arc<str>, KnownTopic>,
    ) -> Result<Vec<(&'a Arc<str>, &'a KnownTopic)>, Failure> {
        let is_wanted = |topic: &KnownTopic| !(self.exclude_internal_topics && topic.is_internal);
        let wanted = topics.iter().filter(|(_, topic)| is_wanted(topic));
        let Some(pattern) = &self.topic else { return Ok(wanted.collect()) };
        if let Some(exact) = topics.get_key_value(pattern.as_str()) {
            return Ok(vec![exact]);
        }
        let filter =
            TopicFilter::white_list(pattern).map_err(|error| Failure::usage(format!("--topic: {error}")))?;
        Ok(wanted.filter(|(name, _)| filter.allows(name, &[])).collect())
    }
}

/// The old tools' lines, or JSON.
fn print(found: &[Found], output: Output) -> io::Result<()> {
    if output == Output::Json {
        return print_json(found);
    }
    let mut out = io::stdout().lock();
    for Found { topic, partition, offset, .. } in found.iter().filter(|it| it.error.is_none()) {
        let offset = offset.map(|offset| offset.to_string()).unwrap_or_default();
        writeln!(out, "{topic}:{partition}:{offset}")?;
    }
    out.flush()
}
