//! What a record costs: the floor (fetch, walk, checksum), Troupe and the Scala consumer, in one run.
//!
//! `cargo bench --bench consume [-- --records N --kafka 1.1.1|3.9.1 --runs N ...]` starts a real broker, produces
//! once, then lets each contender consume the whole topic as a process of its own, in turn, some times over. Machines
//! are noisy: only ratios of one run count. Results are kept in `benches/RESULTS.md`.

#[path = "consume/contender.rs"]
mod contender;
#[path = "consume/floor.rs"]
mod floor;
#[path = "consume/link.rs"]
mod link;
#[path = "consume/produce.rs"]
mod produce;
#[path = "consume/produce_request.rs"]
mod produce_request;
#[path = "consume/table.rs"]
mod table;
#[path = "consume/troupe.rs"]
mod troupe;

use std::error::Error;

use clap::Parser;
use contender::{Contender, Job};
use troupe_cluster::{Cluster, KafkaVersion};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// The topic, which is made anew in each run.
const TOPIC: &str = "bench";
const PARTITIONS: i32 = 8;

#[derive(Parser)]
struct Arguments {
    /// Records to produce; rounded down to whole rounds of the 8 partitions
    #[arg(long, default_value_t = 10_000_000)]
    records: i64,
    /// Bytes of a value, random letters
    #[arg(long, default_value_t = 100)]
    size: usize,
    /// Bytes of a batch, as a producer's batch.size
    #[arg(long, default_value_t = 16_384)]
    batch: usize,
    /// The broker's release
    #[arg(long, default_value = "1.1.1")]
    kafka: KafkaVersion,
    /// How often each contender runs
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Streams of Troupe and of the Scala consumer
    #[arg(long, default_value_t = 1)]
    streams: u32,
    /// Only these, by name
    #[arg(long, value_delimiter = ',')]
    only: Vec<Contender>,
    /// A consumer property for Troupe; may be given more than once
    #[arg(long, value_name = "KEY=VALUE")]
    property: Vec<String>,
    /// Run Troupe and the floor under this command, such as `perf record -g -o out --`
    #[arg(long, default_value = "")]
    under: String,
    /// What `cargo bench` adds
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(job) = Job::of_child(&arguments)? {
        return job.run();
    }
    if !arguments.iter().any(|argument| argument == "--bench") {
        println!("nothing to test: this is run by `cargo bench --bench consume`");
        return Ok(());
    }
    measure(&Arguments::parse())
}

fn measure(arguments: &Arguments) -> Result {
    let per_partition = arguments.records / i64::from(PARTITIONS);
    let records = per_partition * i64::from(PARTITIONS);
    let cluster = Cluster::start(arguments.kafka, 1)?;
    cluster.create_topic(TOPIC, PARTITIONS, 1)?;
    cluster.wait_for_leaders(TOPIC)?;
    eprintln!("producing {records} records of {} B to Kafka {}", arguments.size, arguments.kafka);
    produce::produce(cluster.broker(0).port(), per_partition, arguments.size, arguments.batch)?;
    let contenders: Vec<_> = Contender::ALL
        .into_iter()
        .filter(|contender| arguments.only.is_empty() || arguments.only.contains(contender))
        .collect();
    let mut outcomes = vec![Vec::new(); contenders.len()];
    for run in 0..arguments.runs {
        for (contender, outcomes) in contenders.iter().zip(&mut outcomes) {
            let job = Job {
                contender: *contender,
                port: cluster.broker(0).port(),
                zookeeper: cluster.zookeeper_connect(),
                group: format!("{contender}-{run}"),
                per_partition,
                streams: arguments.streams,
                properties: arguments.property.clone(),
            };
            let outcome = job.measure(&cluster, &arguments.under)?;
            eprintln!("run {run} {contender}: {outcome:?}");
            outcomes.push(outcome);
        }
    }
    table::print(&contenders, &outcomes);
    Ok(())
}
