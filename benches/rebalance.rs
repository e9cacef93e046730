//! How long a rebalance takes: a group of Troupe members against one of the old Scala consumer's, in one run.
//!
//! `cargo bench --bench rebalance [-- --partitions 64 --rounds 5 ...]` starts a real ZooKeeper and broker for each
//! number of partitions, and producers that write to all of them. In each round each kind of member has a group of
//! its own, in turn: of two members that are settled, a third joins, leaves, joins again and is killed. Each member is
//! a process: `troupe consume`, and Kafka's console consumer. What is measured is told by ZooKeeper's transaction log
//! and by the members' output. Machines are noisy: only ratios of one run count. Results are in `benches/RESULTS.md`.

#[path = "rebalance/group.rs"]
mod group;
#[path = "consume/link.rs"]
mod link;
#[path = "rebalance/load.rs"]
mod load;
#[path = "rebalance/member.rs"]
mod member;
#[path = "rebalance/ownership.rs"]
mod ownership;
#[path = "consume/produce_request.rs"]
mod produce_request;
#[path = "rebalance/table.rs"]
mod table;

use std::collections::BTreeMap;
use std::error::Error;

use clap::Parser;
use group::{Group, Outcome};
use load::Load;
use member::Kind;
use troupe_cluster::{Cluster, ClusterError, KafkaVersion};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

const TOPIC: &str = "bench";
/// Kafka's TOPIC_ALREADY_EXISTS.
const EXISTS: i16 = 36;

#[derive(Parser)]
struct Arguments {
    /// Numbers of partitions
    #[arg(long, value_delimiter = ',', default_values_t = [64, 1000])]
    partitions: Vec<usize>,
    /// How often each kind of group goes through all events
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only these kinds of members: troupe, scala
    #[arg(long, value_delimiter = ',')]
    only: Vec<Kind>,
    /// Records per second to each partition; 20 up to 100 partitions, else 1
    #[arg(long)]
    rate: Option<u32>,
    /// A consumer property for Troupe; may be given more than once
    #[arg(long, value_name = "KEY=VALUE")]
    property: Vec<String>,
    /// Another `troupe` program, to compare builds
    #[arg(long, default_value = env!("CARGO_BIN_EXE_troupe"))]
    troupe: String,
    /// Members' logs of this level (RUST_LOG) go to stderr
    #[arg(long)]
    log: Option<String>,
    /// What `cargo bench` adds
    #[arg(long, hide = true)]
    bench: bool,
}

/// What happens to a group of two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Event {
    /// A third joins.
    Join,
    /// The third leaves.
    Leave,
    /// The third is killed.
    Kill,
}

/// Of one number of partitions.
type Outcomes = BTreeMap<(Event, Kind), Vec<Outcome>>;

fn main() -> Result {
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("nothing to test: this is run by `cargo bench --bench rebalance`");
        return Ok(());
    }
    let arguments = Arguments::parse();
    let mut results = Vec::new();
    for partitions in &arguments.partitions {
        results.push((*partitions, measure(&arguments, *partitions)?));
    }
    table::print(&results);
    Ok(())
}

fn measure(arguments: &Arguments, partitions: usize) -> Result<Outcomes> {
    let cluster = Cluster::start(KafkaVersion::V1_1_1, 1)?;
    match cluster.create_topic(TOPIC, i32::try_from(partitions)?, 1) {
        // so many partitions may take longer than one attempt
        Ok(()) | Err(ClusterError::Kafka { code: EXISTS, .. }) => cluster.wait_for_leaders(TOPIC)?,
        Err(error) => return Err(error.into()),
    }
    let rate = arguments.rate.unwrap_or(if partitions <= 100 { 20 } else { 1 });
    let load = Load::start(cluster.broker(0).port(), partitions, rate);
    let mut outcomes = Outcomes::new();
    for round in 0..arguments.rounds {
        for kind in Kind::ALL {
            if arguments.only.is_empty() || arguments.only.contains(&kind) {
                let group =
                    Group::new(&cluster, &load, arguments, kind, format!("{kind}-{round}"), partitions)?;
                for (event, outcome) in group.go_through_all()? {
                    eprintln!("{partitions} partitions, round {round}, {kind}, {event:?}: {outcome:?}");
                    outcomes.entry((event, kind)).or_default().push(outcome);
                }
            }
        }
    }
    load.end()?;
    Ok(outcomes)
}
