//! `troupe offsets copy`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kafka_troupe::admin::{AdminError, KafkaAdmin, OffsetNode, ZooKeeperAdmin};
use kafka_troupe::proto::TopicPartition;
use kafka_troupe::proto::group::offsets_copy::{Copying, Step};

use crate::exit::{Answer, Failure, Outcome, finish, is_answer};
use crate::offset_row::OffsetRow;
use crate::output::Output;
use crate::servers::Servers;

/// Of which group, from where to where.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub servers: Servers,
    /// The group
    #[arg(long, value_name = "GROUP")]
    pub group: String,
    /// Where they are
    #[arg(long, value_enum, value_name = "zookeeper|kafka", hide_possible_values = true)]
    pub from: Store,
    /// Where they are to be too
    #[arg(long, value_enum, value_name = "zookeeper|kafka", hide_possible_values = true)]
    pub to: Store,
    /// Only these topics; may be repeated
    #[arg(long, value_name = "TOPIC")]
    pub topic: Vec<String>,
    /// Also where the other store is further: the group handles records again
    #[arg(long)]
    pub allow_lower: bool,
    /// Only show what would be done
    #[arg(long)]
    pub dry_run: bool,
}

/// A place of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Store {
    /// /consumers/GROUP/offsets
    Zookeeper,
    /// __consumer_offsets
    Kafka,
}

impl Store {
    fn name(self) -> &'static str {
        match self {
            Self::Zookeeper => "zookeeper",
            Self::Kafka => "kafka",
        }
    }
}

/// Does it.
pub async fn run(args: Args, output: Output) -> Outcome {
    if args.from == args.to {
        return Err(Failure::usage("--from and --to name the same store: one is zookeeper, the other kafka"));
    }
    let zookeeper = args.servers.zookeeper().await?;
    let copied = copy(&args, &zookeeper).await;
    zookeeper.close().await;
    let Copied { rows, problems, failed } = copied?;
    let printed = output.print(&rows);
    problems.iter().for_each(|why| say!("{why}"));
    if args.dry_run {
        say!("a dry run: no offset was set; do it without --dry-run");
    }
    let outcome = match problems.is_empty() {
        _ if failed => Err(Failure::work("not every offset could be set: see above")),
        true => Ok(Answer::Yes),
        false => Ok(Answer::No),
    };
    finish(printed, outcome)
}

/// What has come of it.
struct Copied {
    rows: Vec<OffsetRow>,
    problems: Vec<String>,
    /// Servers are among them.
    failed: bool,
}

/// What was found on both sides.
struct Found {
    copying: Copying,
    used: Used,
    /// In ZooKeeper.
    nodes: BTreeMap<TopicPartition, OffsetNode>,
    topics: BTreeSet<Arc<str>>,
}

/// Who uses the group.
#[derive(Default, PartialEq, Eq)]
struct Used {
    members: Vec<String>,
    owners: BTreeMap<TopicPartition, String>,
    /// What members subscribe to and nobody owns, as in a rebalance.
    unowned: Vec<TopicPartition>,
}

impl Used {
    async fn look(zookeeper: &ZooKeeperAdmin, kafka: &KafkaAdmin, group: &str) -> Result<Self, Failure> {
        let members = zookeeper.members(group).await?;
        let mut used = Self { members, ..Self::default() };
        if used.members.is_empty() {
            return Ok(used);
        }
        // which topics there are, brokers say where Kafka has no ZooKeeper
        for it in zookeeper.view(group, Some(kafka)).await?.partitions {
            let key = TopicPartition::new(it.topic, it.partition);
            match it.owner_thread.filter(|_| !it.owner_is_missing) {
                Some(owner) => drop(used.owners.insert(key, owner)),
                None if it.is_subscribed && it.exists == Some(true) => used.unowned.push(key),
                None => {}
            }
        }
        Ok(used)
    }

    /// Why nothing can be told of what members own.
    fn rebalance(&self, group: &str) -> Option<String> {
        (!self.unowned.is_empty()).then(|| {
            format!(
                "nothing is set: group {group:?} has members, and {} has no owner (yet): try again when it has",
                joined(&self.unowned)
            )
        })
    }
}

fn joined(all: &[impl ToString]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

async fn copy(args: &Args, zookeeper: &ZooKeeperAdmin) -> Result<Copied, Failure> {
    let kafka = args.servers.kafka_beside(zookeeper).await?;
    let found = find(args, zookeeper, &kafka).await?;
    let (from, to) = (args.from.name(), args.to.name());
    let mut problems = kafka_members(&kafka, &args.group).await?;
    problems.extend(found.used.rebalance(&args.group));
    let steps = match found.copying.plan() {
        Ok(steps) => steps,
        Err(keys) => {
            problems.push(one_sided(args, &found.copying.members, &keys));
            let rows = keys.iter().map(|key| bare(args, &found, key)).collect();
            return Ok(Copied { rows, problems, failed: false });
        }
    };
    let rows: Vec<_> = steps.into_iter().map(|(key, step)| row(args, &found, &key, step)).collect();
    problems.extend(unreadable(args, &found));
    if rows.is_empty() {
        problems.push(format!("group {:?} has no offsets in {from} to be copied to {to}", args.group));
    }
    let mut copied = Copied { rows, problems, failed: false };
    if copied.problems.is_empty() && !args.dry_run {
        write(args, zookeeper, &kafka, &found, &mut copied).await?;
    }
    Ok(copied)
}

async fn find(args: &Args, zookeeper: &ZooKeeperAdmin, kafka: &KafkaAdmin) -> Result<Found, Failure> {
    // first: who comes later is seen at the second look
    let used = Used::look(zookeeper, kafka, &args.group).await?;
    let topics: BTreeSet<_> = kafka.topics().await?.into_keys().collect();
    // where it is copied from first: what is committed meanwhile makes the other one larger, which is kept
    let (nodes, in_kafka) = match args.from {
        Store::Zookeeper => {
            let nodes = zookeeper.offsets(&args.group).await?;
            (nodes, kafka.committed(&args.group, None).await?)
        }
        Store::Kafka => {
            let in_kafka = kafka.committed(&args.group, None).await?;
            (zookeeper.offsets(&args.group).await?, in_kafka)
        }
    };
    let is_wanted =
        |key: &TopicPartition| args.topic.is_empty() || args.topic.iter().any(|it| *it == *key.topic);
    let nodes = nodes.into_iter().map(|node| (node.key.clone(), node)).filter(|(key, _)| is_wanted(key));
    let nodes: BTreeMap<_, _> = nodes.collect();
    let in_zookeeper =
        nodes.values().filter_map(|node| Some((node.key.clone(), *node.offset.as_ref().ok()?)));
    let in_kafka = in_kafka.into_iter().map(|(key, it)| (key, it.offset)).filter(|(key, _)| is_wanted(key));
    let (in_zookeeper, in_kafka) = (in_zookeeper.collect(), in_kafka.collect());
    let (from, to) = match args.from {
        Store::Zookeeper => (in_zookeeper, in_kafka),
        Store::Kafka => (in_kafka, in_zookeeper),
    };
    let (members, owners) = (used.members.clone(), used.owners.clone());
    let copying = Copying { from, to, members, owners, may_lower: args.allow_lower };
    Ok(Found { copying, used, nodes, topics })
}

/// Brokers take no commit from outside beside members of theirs; and what these commit moves on meanwhile.
async fn kafka_members(kafka: &KafkaAdmin, group: &str) -> Result<Vec<String>, Failure> {
    let members = match kafka.describe(group).await {
        Ok(described) => described.members,
        // brokers before 0.9 have no members
        Err(AdminError::NoSuchGroup { .. } | AdminError::Unsupported { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let ids: Vec<_> = members.into_iter().map(|member| member.id).collect();
    Ok(match ids.is_empty() {
        true => Vec::new(),
        false => vec![format!(
            "nothing is set: group {group:?} has members that brokers coordinate: stop {} first",
            ids.join(", ")
        )],
    })
}

fn one_sided(args: &Args, members: &[String], keys: &[TopicPartition]) -> String {
    format!(
        "nothing is set: group {:?} has members, and no offset in {} of what they own ({}): they do not commit to both \
         stores. Stop {} first, or restart them with offsets.storage=kafka and dual.commit.enabled=true",
        args.group,
        args.to.name(),
        joined(keys),
        joined(members)
    )
}

fn bare(args: &Args, found: &Found, key: &TopicPartition) -> OffsetRow {
    let there = found.copying.to.get(key).copied().filter(|offset| *offset >= 0);
    OffsetRow::new(&args.group, key, there)
}

fn row(args: &Args, found: &Found, key: &TopicPartition, step: Step) -> OffsetRow {
    let mut row = bare(args, found, key);
    let (from, to) = (args.from.name(), args.to.name());
    let offset = found.copying.from.get(key).copied();
    let shown = offset.map(|offset| offset.to_string()).unwrap_or_default();
    match step {
        _ if !found.topics.contains(&key.topic) => row.add("no such topic: not set"),
        Step::Write => row.new_offset = offset,
        Step::Same => row.add("the same in both"),
        Step::Lower => row.add(format!("{shown} in {from} is less: kept (--allow-lower)")),
        Step::Owned(owner) => row.add(format!("{shown} in {from}; {owner} commits it: left alone")),
        Step::InUse => {
            row.add(format!("{shown} in {from}, and in {to} too; the group has members: left alone"));
        }
    }
    row
}

/// Of what is to be copied.
fn unreadable(args: &Args, found: &Found) -> Vec<String> {
    let nodes = found.nodes.values().filter(|_| args.from == Store::Zookeeper);
    nodes.filter_map(|node| Some(format!("nothing is set: {}", node.offset.as_ref().err()?))).collect()
}

async fn write(
    args: &Args,
    zookeeper: &ZooKeeperAdmin,
    kafka: &KafkaAdmin,
    found: &Found,
    copied: &mut Copied,
) -> Result<(), Failure> {
    let offsets = copied.rows.iter().filter_map(|row| Some((row.key(), row.new_offset?)));
    let offsets: Vec<_> = offsets.collect();
    if Used::look(zookeeper, kafka, &args.group).await? != found.used {
        let why = "its members, or what they own, have changed since it was looked at: try again";
        copied.problems.push(format!("nothing is set: group {:?}: {why}", args.group));
        return Ok(());
    }
    let outcomes = match args.to {
        Store::Kafka => to_kafka(kafka, &args.group, &offsets).await,
        Store::Zookeeper => {
            let set = async |key: TopicPartition, offset| {
                let version = found.nodes.get(&key).map(|node| node.version);
                zookeeper.set_offset(&args.group, &key, offset, version).await
            };
            to_zookeeper(&offsets, set).await
        }
    };
    copied.note(outcomes);
    // nothing fences Kafka's offsets, and who begins meanwhile may have begun at the old ones
    match Used::look(zookeeper, kafka, &args.group).await {
        Ok(used) if used == found.used => {}
        Ok(_) => {
            let why =
                "its members, or what they own, have changed while offsets were set: see where they are";
            copied.problems.push(format!("group {:?}: {why}, and copy them again", args.group));
        }
        Err(why) => {
            copied.failed = true;
            copied.problems.push(format!("whether a member came meanwhile is not known: {why}"));
        }
    }
    Ok(())
}

/// Why an offset is not set.
#[derive(Debug, PartialEq, Eq)]
struct NotSet {
    why: String,
    /// For what the servers are, not the group.
    failed: bool,
}

type Outcomes = BTreeMap<TopicPartition, Result<(), NotSet>>;

async fn to_kafka(kafka: &KafkaAdmin, group: &str, offsets: &[(TopicPartition, i64)]) -> Outcomes {
    let failed = |why| NotSet { why, failed: true };
    match kafka.commit(group, offsets).await {
        Ok(told) => told
            .into_iter()
            .map(|(key, it)| (key, it.map_err(|why| failed(format!("not set: {why}")))))
            .collect(),
        Err(error) => {
            let not_set = || Err(failed(format!("set or not, which is not known: {error}")));
            offsets.iter().map(|(key, _)| (key.clone(), not_set())).collect()
        }
    }
}

/// Sets one after the other, until ZooKeeper does not answer: each of the others would be waited for as long.
async fn to_zookeeper(
    offsets: &[(TopicPartition, i64)],
    set: impl AsyncFn(TopicPartition, i64) -> Result<(), AdminError>,
) -> Outcomes {
    let (mut outcomes, mut away) = (Outcomes::new(), false);
    for (key, offset) in offsets {
        let outcome = match away {
            true => Err(NotSet { why: "not set: ZooKeeper did not answer before".to_owned(), failed: true }),
            false => set(key.clone(), *offset).await.map_err(|error| {
                away = matches!(&error, AdminError::ZooKeeper(why) if why.is_in_doubt());
                NotSet { why: format!("not set: {error}"), failed: !is_answer(&error) }
            }),
        };
        outcomes.insert(key.clone(), outcome);
    }
    outcomes
}

impl Copied {
    fn note(&mut self, mut outcomes: Outcomes) {
        let silent = || "not set: the coordinator does not say that it is".to_owned();
        for row in self.rows.iter_mut().filter(|row| row.new_offset.is_some()) {
            let key = row.key();
            let outcome =
                outcomes.remove(&key).unwrap_or_else(|| Err(NotSet { why: silent(), failed: true }));
            if let Err(NotSet { why, failed }) = outcome {
                row.new_offset = None;
                row.add(&why);
                self.problems.push(format!("{key} is {why}"));
                self.failed |= failed;
            }
        }
    }
}

#[cfg(test)]
mod tests;
