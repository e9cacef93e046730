//! `troupe offsets import`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use kafka_troupe::admin::{OffsetNode, ZooKeeperAdmin};
use kafka_troupe::proto::TopicPartition;
use kafka_troupe::proto::zk::offsets_file::{self, OffsetLine};

use crate::exit::{Answer, Failure, Outcome, finish};
use crate::offset_row::OffsetRow;
use crate::output::Output;
use crate::output::progress::Progress;
use crate::servers::Servers;

const HELP: &str = "\
The file is one of `troupe offsets export`, or of kafka.tools.ExportZkOffsets. Offsets are set in ZooKeeper only: what
Kafka stores for a group stays, and where both do the larger wins (`troupe groups reset --from-file` sets both).

Nothing is set where a line cannot be read (exit code 2) or a group has members (exit code 1). The old tool
kafka.tools.ImportZkOffsets set them all the same, as --force does; it stopped at the first empty line, which means
nothing here. What failed halfway says per offset whether it was set.";

/// From where.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    pub servers: Servers,
    /// The file
    #[arg(long, value_name = "FILE")]
    pub input_file: PathBuf,
    /// Only show what would be done
    #[arg(long)]
    pub dry_run: bool,
    /// Also of groups with members, who may overwrite it, and over what is committed meanwhile
    #[arg(long)]
    pub force: bool,
}

/// Imports offsets.
pub async fn run(args: Args, output: Output) -> Outcome {
    let failure = |why: String| Failure::usage(format!("{}: {why}", args.input_file.display()));
    let text = fs::read_to_string(&args.input_file).map_err(|error| failure(error.to_string()))?;
    let lines = offsets_file::parse(&text).map_err(|errors| failure(errors.to_string()))?;
    let zookeeper = args.servers.zookeeper().await?;
    let imported = import(&zookeeper, &args, lines).await;
    zookeeper.close().await;
    let Imported { rows, problems, failure } = imported?;
    let printed = output.print(&rows);
    problems.iter().for_each(|why| say!("{why}"));
    if args.dry_run {
        say!("a dry run: no offset was set; do it without --dry-run");
    }
    let outcome = match failure {
        Some(failure) => Err(failure),
        None if problems.is_empty() => Ok(Answer::Yes),
        None => Ok(Answer::No),
    };
    finish(printed, outcome)
}

/// What has come of it.
struct Imported {
    rows: Vec<OffsetRow>,
    /// Why nothing is set.
    problems: Vec<String>,
    /// Why not all is set.
    failure: Option<Failure>,
}

/// The nodes that groups have, by group and partition.
type Nodes = BTreeMap<(String, TopicPartition), OffsetNode>;

async fn import(
    zookeeper: &ZooKeeperAdmin,
    args: &Args,
    lines: Vec<OffsetLine>,
) -> Result<Imported, Failure> {
    let groups: BTreeSet<&String> = lines.iter().map(|line| &line.group).collect();
    let mut nodes = Nodes::new();
    for group in &groups {
        let found = zookeeper.offsets(group).await?;
        nodes.extend(found.into_iter().map(|node| (((*group).clone(), node.key.clone()), node)));
    }
    let mut imported = Imported {
        rows: lines.iter().map(|line| row(line, &nodes)).collect(),
        problems: Vec::new(),
        failure: None,
    };
    if !args.force {
        let members = members(zookeeper, &groups).await?;
        let why = |it| format!("nothing is set: {it} first, or say --force");
        imported.problems = members.into_iter().map(why).collect();
    }
    if imported.problems.is_empty() && !args.dry_run {
        imported.failure = write(zookeeper, args.force, &nodes, &mut imported.rows).await;
        if !args.force && imported.failure.is_none() {
            // where one began that came meanwhile is not known
            let members = members(zookeeper, &groups).await?;
            let why = |it| format!("since offsets are being set, {it}, and import them again");
            imported.problems = members.into_iter().map(why).collect();
        }
    }
    Ok(imported)
}

/// Groups that have members.
async fn members(zookeeper: &ZooKeeperAdmin, groups: &BTreeSet<&String>) -> Result<Vec<String>, Failure> {
    let mut active = Vec::new();
    for group in groups {
        let members = zookeeper.members(group).await?;
        if !members.is_empty() {
            active.push(format!("group {group:?} has members: stop {}", members.join(", ")));
        }
    }
    Ok(active)
}

fn row(line: &OffsetLine, nodes: &Nodes) -> OffsetRow {
    let node = nodes.get(&(line.group.clone(), line.key.clone()));
    let old = node.and_then(|node| node.offset.as_ref().ok().copied()).filter(|offset| *offset >= 0);
    let mut row = OffsetRow::new(&line.group, &line.key, old);
    match line.offset {
        ..0 => row.add(format!("{} says that there is no position: not set", line.offset)),
        offset => row.new_offset = Some(offset),
    }
    node.and_then(|node| node.offset.as_ref().err()).into_iter().for_each(|why| row.add(why));
    row
}

/// The first that cannot be set is the last that is tried.
async fn write(
    zookeeper: &ZooKeeperAdmin,
    force: bool,
    nodes: &Nodes,
    rows: &mut [OffsetRow],
) -> Option<Failure> {
    let (mut error, mut set) = (None, 0);
    let progress = Progress::of("offsets set", Some(rows.len() as u64));
    for row in rows.iter_mut() {
        progress.add(1);
        let (Some(offset), key) = (row.new_offset, row.key()) else { continue };
        if error.is_some() {
            row.add("not set");
            continue;
        }
        let version = nodes.get(&(row.group.clone(), key.clone())).map(|node| node.version);
        let written = match force {
            true => zookeeper.put_offset(&row.group, &key, offset).await,
            false => zookeeper.set_offset(&row.group, &key, offset, version).await,
        };
        match written {
            Ok(()) => set += 1,
            Err(why) => {
                row.add(format!("not set: {why}"));
                error = Some(why);
            }
        }
    }
    let said = |why| format!("{set} offsets are set and the others are not, as above: {why}");
    error.map(|why| Failure::from(why).said(said))
}
