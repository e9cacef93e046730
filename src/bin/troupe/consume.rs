//! `troupe consume`: the old console consumer.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{SelectAll, select_all};
use kafka_troupe::proto::zk::paths::GroupPaths;
use kafka_troupe::{
    Builder, ConsumeError, ConsumerConfig, ConsumerHandle, ConsumerSystem, KafkaStream, Record, TopicFilter,
    TopicFilterError, TopicPartition,
};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use crate::format::{Format, Properties};

/// What to consume.
#[derive(clap::Args)]
pub struct Args {
    /// Where ZooKeeper is: host:port,host:port/chroot (property zookeeper.connect)
    #[arg(long, value_name = "HOSTS/CHROOT")]
    zookeeper: Option<String>,
    /// The consumer group (property group.id)
    #[arg(long)]
    group: Option<String>,
    #[command(flatten)]
    topics: Topics,
    /// Streams: the partitions are shared among them
    #[arg(long, default_value_t = 1, value_name = "N")]
    threads: u32,
    /// Where the group has no offset, start at the beginning (property auto.offset.reset=smallest)
    #[arg(long)]
    from_beginning: bool,
    /// End after so many records
    #[arg(long, value_name = "N")]
    max_messages: Option<u64>,
    /// End when no record has come for so long
    #[arg(long, value_name = "N")]
    timeout_ms: Option<u64>,
    /// Step over a record that cannot be read, such as a damaged one, and say so, instead of ending with an error
    #[arg(long)]
    skip_message_on_error: bool,
    /// A consumer.properties file
    #[arg(long, value_name = "FILE")]
    consumer_config: Option<PathBuf>,
    /// A consumer property, which goes before the file, or one of the output: print.key, print.value,
    /// print.timestamp, print.partition, print.offset (true or false), key.separator, line.separator. May be given
    /// more than once
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    property: Vec<(String, String)>,
}

/// Which topics: exactly one of these.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Topics {
    /// The topic
    #[arg(long)]
    topic: Option<String>,
    /// All topics whose whole name matches, and those that come later: a Java regular expression, or some with commas
    /// between them
    #[arg(long, value_name = "REGEX")]
    whitelist: Option<String>,
    /// All topics whose whole name does not match
    #[arg(long, value_name = "REGEX")]
    blacklist: Option<String>,
}

impl Topics {
    fn subscribe(&self, builder: Builder, streams: u32) -> Result<Builder, TopicFilterError> {
        Ok(match (&self.topic, &self.whitelist, &self.blacklist) {
            (Some(topic), ..) => builder.pull(topic.as_str(), streams),
            (_, Some(regex), _) => builder.pull_matching(TopicFilter::white_list(regex)?, streams),
            (.., Some(regex)) => builder.pull_matching(TopicFilter::black_list(regex)?, streams),
            // the parser wants one
            (None, None, None) => builder,
        })
    }

    fn streams(&self, system: &ConsumerHandle) -> Vec<KafkaStream> {
        self.topic.as_ref().map_or_else(|| system.matching_streams(), |topic| system.streams(topic))
    }
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must be KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.to_owned()))
}

/// Consumes until the end that was asked for, Ctrl-C or SIGTERM.
pub async fn run(args: Args) -> Result<(), Box<dyn Error>> {
    // from here on a signal is not lost, whatever is going on
    let mut ends = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let (output, properties) = Format::split(&args.property)?;
    let config = configure(&args, properties)?;
    let group = config.group_id.clone();
    let builder = args.topics.subscribe(ConsumerSystem::builder(config), args.threads)?;
    let mut starting = pin!(builder.start());
    let system = tokio::select! {
        started = &mut starting => started?,
        () = ended(&mut ends) => {
            // what is half made ends as a whole does, unless a second signal says at once
            tokio::select! {
                started = starting => leave(&started?).await,
                () = ended(&mut ends) => {}
            }
            return Ok(());
        }
    };
    let printed = print(&system, &group, &args, &output, &mut ends).await;
    leave(&system).await;
    printed
}

/// Says what could not be done within `troupe.shutdown.timeout.ms`.
async fn leave(system: &ConsumerHandle) {
    for what in system.shutdown_within(system.config().shutdown_timeout).await.cut_off {
        eprintln!("not done before the end: {what}");
    }
}

type Ends = (Signal, Signal);

async fn ended((interrupt, terminate): &mut Ends) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

fn configure(args: &Args, properties: Properties) -> Result<ConsumerConfig, Box<dyn Error>> {
    let mut builder = ConsumerConfig::builder();
    if let Some(file) = &args.consumer_config {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        builder = builder.properties(&text);
    }
    for (key, value) in properties {
        builder = builder.property(key, value);
    }
    if let Some(zookeeper) = &args.zookeeper {
        builder = builder.property("zookeeper.connect", zookeeper);
    }
    if let Some(group) = &args.group {
        builder = builder.property("group.id", group);
    }
    if args.from_beginning {
        builder = builder.property("auto.offset.reset", "smallest");
    }
    let parsed = builder.build_with_report()?;
    for notice in &parsed.report {
        eprintln!("{notice}");
    }
    Ok(parsed.config)
}

async fn print(
    system: &ConsumerHandle,
    group: &str,
    args: &Args,
    output: &Format,
    ends: &mut Ends,
) -> Result<(), Box<dyn Error>> {
    let mut streams = select_all(args.topics.streams(system));
    let (printed, failed) = print_from(&mut streams, system, args, output, ends).await?;
    // the last one is handled as well
    streams.iter_mut().for_each(KafkaStream::ack);
    eprintln!("Processed a total of {printed} messages");
    failed.map_or(Ok(()), |error| Err(how_to_go_on(group, &error).into()))
}

/// How many records were printed, and the one that could not be read, if that ended it.
async fn print_from(
    streams: &mut SelectAll<KafkaStream>,
    system: &ConsumerHandle,
    args: &Args,
    output: &Format,
    ends: &mut Ends,
) -> Result<(u64, Option<ConsumeError>), Box<dyn Error>> {
    let patience = args.timeout_ms.map_or(Duration::MAX, Duration::from_millis);
    let mut printed = 0;
    while args.max_messages.is_none_or(|most| printed < most) {
        // a chunk of records that are all there must not keep a signal waiting
        tokio::task::consume_budget().await;
        let record = tokio::select! {
            biased;
            () = ended(ends) => break,
            record = timeout(patience, streams.next()) => record,
        };
        match record {
            Ok(Some(Ok(record))) => {
                print_record(&record, output)?;
                printed += 1;
            }
            Ok(Some(Err(error))) if args.skip_message_on_error => {
                eprintln!("{error}; stepping over it");
                system.seek(&error.topic, error.partition, error.resume_at).await?;
            }
            Ok(Some(Err(error))) => return Ok((printed, Some(error))),
            Ok(None) => break,
            Err(_) => {
                eprintln!("No record for {patience:?}.");
                break;
            }
        }
    }
    Ok((printed, None))
}

fn how_to_go_on(group: &str, error: &ConsumeError) -> String {
    let ConsumeError { topic, partition, offset, resume_at, why, .. } = error;
    let path = GroupPaths::new(group).offset(&TopicPartition::new(topic.as_str(), *partition));
    format!(
        "cannot read {topic}-{partition} at offset {offset}: {why}; to step over it, consume with \
         --skip-message-on-error, or set {path} to {resume_at} while no member of the group runs"
    )
}

/// What is committed is what was printed: a line is out before its record is acknowledged.
fn print_record(record: &Record, output: &Format) -> io::Result<()> {
    let mut out = io::stdout().lock();
    output.write(record, &mut out)?;
    out.flush()
}
