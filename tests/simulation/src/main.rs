//! `cargo sim --seeds N [--from S]`: runs seeds until one fails, and tells what happened there.
#![expect(clippy::print_stdout, reason = "it is what the program is for")]

use std::process::ExitCode;

use clap::Parser;
use troupe_simulation::{fresh_seed, replay, run};

/// Runs whole groups over ZooKeeper and brokers in memory, with faults drawn from a seed.
#[derive(Parser)]
struct Args {
    /// How many seeds.
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    /// The first; by default one that is new.
    #[arg(long)]
    from: Option<u64>,
    /// Tells what happens in every run.
    #[arg(long)]
    trace: bool,
    /// Goes on after a failure.
    #[arg(long)]
    keep_going: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let from = args.from.unwrap_or_else(fresh_seed);
    let mut failed = Vec::new();
    for seed in from..from.saturating_add(args.seeds) {
        let mut report = if args.trace { replay(seed) } else { run(seed) };
        if report.wrong.is_some() && !args.keep_going {
            report = replay(seed);
        }
        report.trace.iter().for_each(|line| println!("{line}"));
        println!("{report}");
        if report.wrong.is_some() {
            failed.push(seed);
            if !args.keep_going {
                break;
            }
        }
    }
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("failed seeds: {failed:?}; see one again with: cargo sim --seeds 1 --from {}", failed[0]);
    ExitCode::FAILURE
}
