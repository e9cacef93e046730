//! `cargo cluster`: real servers from the command line.

mod serving;

use clap::{Parser, Subcommand};
use std::{
    error::Error,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::Instant,
};
use troupe_cluster::{Client, Cluster, KafkaVersion, ProduceRecord, Running, cache_root};

/// Real ZooKeeper and Kafka servers on free ports of 127.0.0.1.
#[derive(Parser)]
#[command(name = "cluster")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// File that tells of the running cluster; one per cluster [default: `running` in the jar cache]
    #[arg(long, global = true)]
    state: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Start servers, print their endpoints, and run until Ctrl-C, SIGTERM or `down`
    Up {
        /// Release of Kafka
        #[arg(long, default_value = "3.9.1")]
        kafka: KafkaVersion,
        /// Number of brokers
        #[arg(long, default_value_t = 1)]
        brokers: usize,
        /// Number of ZooKeeper servers; several are zookeeper-0 and up
        #[arg(long, default_value_t = 1)]
        zookeepers: usize,
        /// Kafka's path in ZooKeeper, such as /kafka
        #[arg(long, default_value = "")]
        chroot: String,
    },
    /// Create a topic, or let it grow
    Topic {
        /// Name of the topic
        name: String,
        /// Total number of partitions
        #[arg(long)]
        partitions: i32,
        /// Replicas of each partition, when it is created
        #[arg(long, default_value_t = 1)]
        replication: i16,
    },
    /// Produce records numbered from 0, round all partitions
    Produce {
        /// Name of the topic
        topic: String,
        /// How many
        #[arg(long, default_value_t = 1_000_000)]
        records: u64,
        /// Bytes of each: its number with leading zeros
        #[arg(long, default_value_t = 100)]
        size: usize,
    },
    /// End a server as kill -9 does: zookeeper or broker-N
    Kill {
        /// zookeeper, zookeeper-N or broker-N
        server: String,
    },
    /// Let a server stop answering
    Pause {
        /// zookeeper, zookeeper-N or broker-N
        server: String,
    },
    /// Let a paused server go on
    Resume {
        /// zookeeper, zookeeper-N or broker-N
        server: String,
    },
    /// Start a server again, on the same data
    Restart {
        /// zookeeper, zookeeper-N or broker-N
        server: String,
    },
    /// End the running cluster
    Down,
}

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result {
    let state = arguments.state.unwrap_or_else(|| cache_root().join("running"));
    let order = |order: &str, server: &str| Ok(Running::find(&state)?.order(&format!("{order} {server}"))?);
    match arguments.command {
        Command::Up { kafka, brokers, zookeepers, chroot } => {
            if Running::find(&state).is_ok() {
                return Err(format!("a cluster is running already, see {}", state.display()).into());
            }
            let cluster = Cluster::builder().kafka(kafka).brokers(brokers).zookeepers(zookeepers);
            serving::serve(cluster.chroot(chroot).start()?, &state)
        }
        Command::Topic { name, partitions, replication } => {
            topic(&Running::find(&state)?.client()?, &name, partitions, replication)
        }
        Command::Produce { topic, records, size } => {
            produce(&Running::find(&state)?.client()?, &topic, records, size)
        }
        Command::Kill { server } => order("kill", &server),
        Command::Pause { server } => order("pause", &server),
        Command::Resume { server } => order("resume", &server),
        Command::Restart { server } => order("restart", &server),
        Command::Down => Ok(Running::find(&state)?.order("down")?),
    }
}

fn topic(client: &Client, name: &str, partitions: i32, replication: i16) -> Result {
    match i32::try_from(client.partitions(name)?.len())? {
        0 => client.create_topic(name, partitions, replication)?,
        now if now < partitions => client.add_partitions(name, partitions)?,
        now if now == partitions => {}
        now => return Err(format!("{name} has {now} partitions, and partitions cannot be taken away").into()),
    }
    println!("{name} has {partitions} partitions");
    Ok(())
}

fn produce(client: &Client, topic: &str, records: u64, size: usize) -> Result {
    if client.partitions(topic)?.is_empty() {
        return Err(
            format!("there is no topic {topic}: create it with `topic {topic} --partitions N`").into()
        );
    }
    let tenth = (records / 10).max(1);
    let numbered = (0..records).map(|number| {
        if number > 0 && number % tenth == 0 {
            // progress is a courtesy: a closed standard error is no reason to stop
            let _ = writeln!(io::stderr(), "{number} of {records}");
        }
        ProduceRecord::value(format!("{number:0size$}"))
    });
    let begun = Instant::now();
    let count = client.produce(topic, numbered)?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("{count} records to {topic} in {seconds:.2} s: {:.0} records/s", count as f64 / seconds);
    Ok(())
}
