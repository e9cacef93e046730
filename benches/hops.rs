//! What it costs to hand a record over, by each kind of send, beside walking the records and nothing else.
//!
//! ```text
//! cargo bench --bench hops [-- --records N --runs N --only NAME,..]
//! ```
//!
//! In memory, without a broker: chunks of records of 100 B are put into the mailbox of a `StreamQueue`, and each contender
//! consumes them all, in turn, some times over. Counted is the processor time of the process, so that kinds which cross
//! threads show all that they cost. Machines are noisy: only ratios of one run count. Results are kept in
//! `benches/RESULTS.md`.

#[path = "hops/chunks.rs"]
mod chunks;
#[path = "hops/contenders.rs"]
mod contenders;
#[path = "hops/handlers.rs"]
mod handlers;
#[path = "hops/stream.rs"]
mod stream;

use clap::Parser;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

#[derive(Parser)]
struct Arguments {
    /// Records for each contender and run; rounded down to whole chunks
    #[arg(long, default_value_t = 2_000_000)]
    records: u64,
    /// How often each contender runs
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Only those whose names hold one of these
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Given by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let arguments = Arguments::parse();
    if !arguments.bench {
        println!("nothing to test: this is run by `cargo bench --bench hops`");
        return;
    }
    let is_wanted = |name: &str| {
        arguments.only.is_empty() || arguments.only.iter().any(|part| name.contains(part.as_str()))
    };
    let mut contenders = contenders::all();
    contenders.retain(|it| it.name == contenders::FLOOR || is_wanted(it.name));
    let mut costs: Vec<Vec<f64>> = vec![Vec::new(); contenders.len()];
    for _ in 0..arguments.runs {
        for (contender, costs) in contenders.iter().zip(&mut costs) {
            costs.push(ns_per_record(contender, arguments.records / contender.slowness));
        }
    }
    print(&contenders, &costs);
}

/// Of processor time.
fn ns_per_record(contender: &contenders::Contender, records: u64) -> f64 {
    let used = cpu_seconds();
    let handled = (contender.run)(records);
    (cpu_seconds() - used) * 1e9 / handled as f64
}

fn cpu_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("our own usage");
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

/// A row for each contender: medians, with least and most.
fn print(contenders: &[contenders::Contender], costs: &[Vec<f64>]) {
    println!("| | ns a record | x walking |\n|---|---|---|");
    let mut floor = None;
    for (contender, costs) in contenders.iter().zip(costs) {
        let mut costs = costs.clone();
        costs.sort_by(f64::total_cmp);
        let median = costs[costs.len() / 2];
        let floor = *floor.get_or_insert(median);
        let (least, most) = (costs[0], costs[costs.len() - 1]);
        println!("| {} | {median:.1} ({least:.1}-{most:.1}) | {:.2} |", contender.name, median / floor);
    }
}
