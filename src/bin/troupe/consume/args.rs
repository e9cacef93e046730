//! The command line of `troupe consume`.

use std::path::PathBuf;
use std::time::Duration;

use kafka_troupe::{ConsumerHandle, KafkaStream, TopicFilter, TopicFilterError};

use super::simple::SimpleArgs;
use crate::servers::Servers;

/// What to consume.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub servers: Servers,
    /// The consumer group (property group.id); without one, a temporary group, of which nothing is left at the end
    #[arg(long)]
    pub group: Option<String>,
    #[command(flatten)]
    pub topics: Topics,
    #[command(flatten)]
    pub simple: SimpleArgs,
    /// Streams: the partitions are shared among them
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub threads: u32,
    /// Begin with the oldest record (property auto.offset.reset=smallest); refused when the group has offsets, unless
    /// these are to be deleted
    #[arg(long)]
    pub from_beginning: bool,
    /// Delete all that the group has stored before it begins; not while a member of it runs
    #[arg(long)]
    pub delete_consumer_offsets: bool,
    /// Which records of transactions: read_committed or read_uncommitted (property isolation.level)
    #[arg(long, value_name = "LEVEL")]
    pub isolation_level: Option<String>,
    /// End after so many records
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_messages: Option<i64>,
    /// End when no record has come for so long
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    timeout_ms: Option<i64>,
    /// Step over a record that cannot be read or decoded, and say so, instead of ending with an error
    #[arg(long, alias = "skip-on-error")]
    pub skip_message_on_error: bool,
    /// How records are printed: default, logging, no-op, checksum, json (as --output json has it), hex, or the name of one
    /// of Kafka's classes
    #[arg(long, value_name = "NAME")]
    pub formatter: Option<String>,
    /// A property of the formatter: print.key, print.value, print.timestamp, print.headers, print.partition,
    /// print.offset (true or false), key.separator, line.separator, headers.separator, null.literal; another is the
    /// consumer's; may be repeated
    #[arg(long, alias = "formatter-property", value_name = "KEY=VALUE", value_parser = key_value)]
    pub property: Vec<(String, String)>,
    /// A properties file for the formatter; --property goes before it
    #[arg(long, value_name = "FILE")]
    pub formatter_config: Option<PathBuf>,
    /// What keys are: utf8, json, hex, base64, long, integer, short, double, float, boolean, uuid,
    /// protobuf:FILE#MESSAGE of a descriptor set, or one of Java's deserializers
    #[arg(long, alias = "key-deserializer", value_name = "NAME")]
    pub key_decoder: Option<String>,
    /// What values are, as for keys
    #[arg(long, alias = "value-deserializer", value_name = "NAME")]
    pub value_decoder: Option<String>,
    /// A consumer.properties file
    #[arg(long, alias = "consumer.config", value_name = "FILE")]
    pub consumer_config: Option<PathBuf>,
    /// A property of the consumer, which goes before the file; may be repeated
    #[arg(long, alias = "command-property", value_name = "KEY=VALUE", value_parser = key_value)]
    pub consumer_property: Vec<(String, String)>,
}

/// Which topics: exactly one of these.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub struct Topics {
    /// The topic
    #[arg(long)]
    pub topic: Option<String>,
    /// All topics whose whole name matches, and those that come later: a Java regular expression, or some with commas
    /// between them
    #[arg(long, value_name = "REGEX", aliases = ["include", "allow-list"])]
    pub whitelist: Option<String>,
    /// All topics whose whole name does not match
    #[arg(long, value_name = "REGEX", aliases = ["exclude", "deny-list"])]
    pub blacklist: Option<String>,
}

impl Args {
    /// So many and no more; below zero is no limit, as it was.
    pub fn most(&self) -> Option<u64> {
        self.max_messages.and_then(|most| u64::try_from(most).ok())
    }

    /// So long without a record; below zero is no limit, as it was.
    pub fn patience(&self) -> Duration {
        let millis = self.timeout_ms.and_then(|millis| u64::try_from(millis).ok());
        millis.map_or(Duration::MAX, Duration::from_millis)
    }
}

impl Topics {
    /// The filter, where it is not just one topic. The old tool took `--topic` for a white list: `a,b` are two topics.
    pub fn filter(&self) -> Result<Option<TopicFilter>, TopicFilterError> {
        let filter = match (&self.topic, &self.whitelist, &self.blacklist) {
            (Some(topic), ..) if is_name(topic) => return Ok(None),
            (Some(regex), ..) | (None, Some(regex), _) => TopicFilter::white_list(regex),
            (None, None, Some(regex)) => TopicFilter::black_list(regex),
            // the parser wants one
            (None, None, None) => return Ok(None),
        };
        filter.map(Some)
    }

    /// What comes of them.
    pub fn streams(&self, system: &ConsumerHandle) -> Vec<KafkaStream> {
        match self.topic.as_ref().filter(|topic| is_name(topic)) {
            Some(topic) => system.streams(topic),
            None => system.matching_streams(),
        }
    }
}

/// Whether a topic may have this name.
fn is_name(topic: &str) -> bool {
    topic.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must be KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.to_owned()))
}
