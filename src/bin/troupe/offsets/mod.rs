//! `troupe offsets`: offsets of groups and of logs.

mod copy;
mod dump;
mod export;
mod get;
mod import;
mod partition;
mod partition_pattern;

use crate::exit::Outcome;
use crate::output::Output;

/// What to do with offsets.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Write the offsets of groups in ZooKeeper to a file
    Export(export::Args),
    /// Set offsets in ZooKeeper from such a file
    Import(import::Args),
    /// The offsets of logs: their beginnings, their ends, or at a time
    ///
    /// Lines are topic:partition:offset, as kafka.tools.GetOffsetShell prints them. A partition that has no record of that
    /// time or younger has a line without offset, as it had until 2.x (from 3.x on it has none). Brokers before 0.10.1 go
    /// by segments: they tell where the youngest begins that was not written after that time.
    Get(get::Args),
    /// What `__consumer_offsets` holds
    Dump(dump::Args),
    /// Which partition of `__consumer_offsets` a group is in
    Partition(partition::Args),
    /// Copy a group's offsets from one store to the other
    ///
    /// Never to less than that has (see --allow-lower), nor of topics that do not exist.
    ///
    /// The group is to have no members. Members in ZooKeeper may stay where they commit to both stores
    /// (offsets.storage=kafka, dual.commit.enabled=true): then only partitions that nobody owns are set, where the other
    /// store has nothing of them. It is what to do before the last step of a migration to Kafka's offsets; --dry-run is
    /// the check that they are complete: a row without note is a hole.
    Copy(copy::Args),
}

impl Command {
    /// Does it.
    pub async fn run(self, output: Output) -> Outcome {
        match self {
            Self::Export(args) => export::run(args, output).await,
            Self::Import(args) => import::run(args, output).await,
            Self::Get(args) => get::run(args, output).await,
            Self::Dump(args) => dump::run(args, output).await,
            Self::Partition(args) => partition::run(args, output).await,
            Self::Copy(args) => copy::run(args, output).await,
        }
    }
}
