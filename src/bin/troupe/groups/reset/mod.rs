//! `troupe groups reset`.
//!
//! - `target`: where a group is to begin; `scope`: which partitions.
//! - `plan`: what a reset would do, row by row.
//! - `zookeeper`, `kafka`: what a group has, who uses it, and the writing.

mod kafka;
mod plan;
mod scope;
mod target;
mod zookeeper;

use std::io::{self, Write};

use kafka_troupe::admin::{KafkaAdmin, ZooKeeperAdmin};
use kafka_troupe::proto::group::reset::file::ResetRow;

use crate::exit::{Answer, Failure, Outcome, finish};
use crate::offset_row::OffsetRow;
use crate::output::Output;
use crate::servers::Servers;
use plan::{Found, Plan, Written};
use scope::Scope;
use target::Target;

const HELP: &str = "\
With --zookeeper the group is one that is coordinated there, and its offsets are set wherever it stores them: in
ZooKeeper, in Kafka, or in both. With --bootstrap-server alone it is one that Kafka coordinates: members that
ZooKeeper coordinates are seen only with --zookeeper.

Nothing is set of a group that has members (exit code 1), nor where it cannot be told for each partition to what.
An offset outside of the log becomes the end of the log that is nearer to it; the note says so.";

/// Which offsets, to what.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    pub servers: Servers,
    /// A group; may be repeated
    #[arg(long, required = true, value_name = "GROUP")]
    pub group: Vec<String>,
    /// A topic, or some partitions of it as in orders:0,1; may be repeated
    #[arg(long, value_name = "TOPIC[:P,P]")]
    pub topic: Vec<String>,
    /// Every partition that the group has an offset of
    #[arg(long, conflicts_with = "topic")]
    pub all_topics: bool,
    #[command(flatten)]
    pub target: target::TargetArgs,
    /// Do it
    #[arg(long, conflicts_with = "dry_run")]
    pub execute: bool,
    /// Only show what would be done (this is the default)
    #[arg(long)]
    pub dry_run: bool,
    /// Print lines for --from-file in place of the table: topic,partition,offset; with several groups
    /// group,topic,partition,offset
    #[arg(long)]
    pub export: bool,
}

/// Resets offsets.
pub async fn run(args: Args, output: Output) -> Outcome {
    let target = args.target.read()?;
    let scope = Scope::of(&args.topic, args.all_topics, &target)?;
    let mut names = args.group.clone();
    names.sort_unstable();
    names.dedup();
    target.check(&names)?;
    let places = Places::of(&args.servers).await?;
    let done = reset(&places, &names, &scope, &target, args.execute).await;
    if let Some(zookeeper) = places.zookeeper {
        zookeeper.close().await;
    }
    done.end(&args, names.len() > 1, output)
}

/// Where groups and logs are.
struct Places {
    /// For groups that are coordinated there.
    zookeeper: Option<ZooKeeperAdmin>,
    kafka: KafkaAdmin,
}

impl Places {
    async fn of(servers: &Servers) -> Result<Self, Failure> {
        servers.require_one()?;
        if servers.zookeeper.is_none() {
            return Ok(Self { zookeeper: None, kafka: servers.kafka().await? });
        }
        let zookeeper = servers.zookeeper().await?;
        let kafka = servers.kafka_beside(&zookeeper).await?;
        Ok(Self { zookeeper: Some(zookeeper), kafka })
    }

    async fn find(&self, group: &str) -> Result<Found, Failure> {
        match &self.zookeeper {
            Some(zookeeper) => zookeeper::find(zookeeper, &self.kafka, group).await,
            None => kafka::find(&self.kafka, group).await,
        }
    }

    async fn write(&self, plan: &Plan) -> Written {
        match &self.zookeeper {
            Some(zookeeper) => zookeeper::write(zookeeper, &self.kafka, plan).await,
            None => kafka::write(&self.kafka, plan).await,
        }
    }
}

/// What has come of all groups.
#[derive(Default)]
struct Done {
    plans: Vec<Plan>,
    failures: Vec<Failure>,
}

/// One group that fails keeps no other from being reset, nor what was done from being shown.
async fn reset(places: &Places, names: &[String], scope: &Scope, target: &Target, execute: bool) -> Done {
    let mut done = Done::default();
    for name in names {
        match plan(places, name, scope, target).await {
            Ok(mut plan) => {
                if execute && plan.refusals.is_empty() {
                    plan.note(places.write(&plan).await);
                }
                done.plans.push(plan);
            }
            Err(failure) => done.failures.push(failure),
        }
    }
    done
}

async fn plan(places: &Places, group: &str, scope: &Scope, target: &Target) -> Result<Plan, Failure> {
    let found = places.find(group).await?;
    let (keys, missing) = scope.keys(group, &found, target, &places.kafka).await?;
    let mut plan = Plan::of(group, found, target, keys, &places.kafka).await;
    plan.refusals.extend(missing);
    Ok(plan)
}

impl Done {
    fn end(mut self, args: &Args, of_several: bool, output: Output) -> Outcome {
        let rows: Vec<_> = self.plans.iter().flat_map(|plan| plan.rows.iter().cloned()).collect();
        let printed = match args.export {
            true => export(&rows, of_several),
            false if self.plans.is_empty() => Ok(()),
            false => output.print(&rows),
        };
        for Plan { group, refusals, written, .. } in &self.plans {
            refusals.iter().for_each(|why| say!("{group}: not reset: {why}"));
            written.in_use.iter().for_each(|why| say!("{group}: {why}"));
            self.failures.extend(written.failures.iter().map(|why| Failure::work(format!("{group}: {why}"))));
        }
        if !args.execute && self.plans.iter().any(|plan| plan.refusals.is_empty()) {
            say!("a dry run: no offset was set; do it with --execute");
        }
        let last = self.failures.pop();
        self.failures.iter().for_each(|why| say!("{why}"));
        let outcome = match last {
            Some(failure) => Err(failure),
            None if self.plans.iter().all(Plan::is_well) => Ok(Answer::Yes),
            None => Ok(Answer::No),
        };
        finish(printed, outcome)
    }
}

/// What `--from-file` takes.
fn export(rows: &[OffsetRow], of_several: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for row in rows {
        let Some(offset) = row.new_offset else { continue };
        let group = of_several.then(|| row.group.clone());
        writeln!(out, "{}", ResetRow { group, key: row.key(), offset })?;
    }
    out.flush()
}
