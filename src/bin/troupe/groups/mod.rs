//! `troupe groups`: consumer groups, those of ZooKeeper and those that Kafka coordinates.

mod delete;
mod describe;
mod kafka_group;
mod list;
mod places;
mod reset;
mod watch;

use std::fmt::{self, Display};

use serde::Serialize;

use crate::exit::Outcome;
use crate::output::Output;

/// What to do with groups.
#[derive(clap::Subcommand)]
pub enum Command {
    /// The groups there are
    ///
    /// Those of ZooKeeper with --zookeeper, those that Kafka coordinates with --bootstrap-server; with both, both.
    List(list::Args),
    /// Who owns which partition of a group, and how far each is
    ///
    /// Of ZooKeeper with --zookeeper, of Kafka with --bootstrap-server; with both, a name that is a group in each is
    /// shown twice. Exit code 1: a group does not exist.
    Describe(describe::Args),
    /// Remove groups that have no members
    ///
    /// From ZooKeeper with --zookeeper, from Kafka with --bootstrap-server; with both, from each where it is. Exit code
    /// 1: a group has members, or does not exist, and is left as it is.
    Delete(delete::Args),
    /// Set offsets of a group that has no members; shows what it would do, unless told --execute
    Reset(reset::Args),
    /// A group, live
    ///
    /// The one in ZooKeeper with --zookeeper, the one that Kafka coordinates with --bootstrap-server; with both, that in
    /// ZooKeeper where there is one. Without a terminal, and with --output json, each read is printed.
    Watch(watch::Args),
}

impl Command {
    /// Does it.
    pub async fn run(self, output: Output) -> Outcome {
        match self {
            Self::List(args) => list::run(args, output).await,
            Self::Describe(args) => describe::run(args, output).await,
            Self::Delete(args) => delete::run(args, output).await,
            Self::Reset(args) => reset::run(args, output).await,
            Self::Watch(args) => watch::run(args, output).await,
        }
    }
}

/// Groups that are asked for at a time, where a command asks for many.
const AT_A_TIME: usize = 8;

/// By what a group is coordinated. One name may be a group in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Coordination {
    ZooKeeper,
    Kafka,
}

impl Coordination {
    /// What stands for the state of a group in ZooKeeper, which has none.
    fn state(members: usize) -> &'static str {
        if members == 0 { "Empty" } else { "Active" }
    }
}

impl Display for Coordination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ZooKeeper => "zookeeper",
            Self::Kafka => "kafka",
        })
    }
}
