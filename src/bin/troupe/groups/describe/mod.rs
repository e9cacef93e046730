//! `troupe groups describe`.

mod kafka;
mod rows;
#[cfg(test)]
mod tests;
mod zookeeper;

use futures_util::stream::{self, StreamExt};
use kafka_troupe::GroupView;
use kafka_troupe::admin::{AdminError, KafkaAdmin, ZooKeeperAdmin};

use super::places::Places;
use super::{AT_A_TIME, Coordination};
use crate::exit::{Answer, Failure, Outcome, finish};
use crate::output::Output;
use crate::output::progress::Progress;
use crate::servers::Servers;
use rows::{MemberRow, PartitionRow, StateRow};

/// Which groups, and what of them.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub servers: Servers,
    /// A group; may be repeated
    #[arg(long, required_unless_present = "all_groups", value_name = "GROUP")]
    pub group: Vec<String>,
    /// All groups
    #[arg(long, conflicts_with = "group")]
    pub all_groups: bool,
    /// Only partitions of this topic, or of several with commas between them; may be repeated
    #[arg(long, value_name = "TOPIC[,TOPIC]", value_delimiter = ',', conflicts_with_all = ["members", "state"])]
    pub topic: Vec<String>,
    #[command(flatten)]
    pub view: View,
}

/// What is shown of each.
#[derive(clap::Args)]
#[group(multiple = false)]
pub struct View {
    /// Offset, end of the log, lag and owner of each partition, and the members without one (this is the default)
    #[arg(long)]
    pub offsets: bool,
    /// The members, what each subscribes to and has
    #[arg(long)]
    pub members: bool,
    /// One line for each group
    #[arg(long)]
    pub state: bool,
}

/// A group in one of the places where groups are.
struct Described {
    state: StateRow,
    members: Vec<MemberRow>,
    partitions: Vec<PartitionRow>,
}

/// What is found under a name.
#[derive(Default)]
struct Found {
    groups: Vec<Described>,
    /// What could not be read, and the like.
    notes: Vec<String>,
    /// Where it could not be looked for.
    failures: Vec<AdminError>,
}

/// Describes groups. One that cannot be described keeps no other from being shown.
pub async fn run(args: Args, output: Output) -> Outcome {
    let places = Places::of(&args.servers).await?;
    let brokers = brokers_beside(&args.servers, &places).await;
    let (names, missing) = if args.all_groups { places.names().await? } else { (args.group, None) };
    let described = describe_all(&places, brokers.as_ref(), &names).await;
    places.close().await;
    let (mut groups, mut outcome) = (Vec::new(), Ok(Answer::Yes));
    for (name, found) in names.iter().zip(described) {
        if found.groups.is_empty() && found.failures.is_empty() {
            say!("{}", AdminError::NoSuchGroup { group: name.clone() });
            outcome = outcome.and(Ok(Answer::No));
        }
        for error in found.failures {
            say!("{name:?}: {error}");
            outcome = Err(Failure::work("not every group could be described"));
        }
        found.notes.iter().for_each(|note| say!("{name:?}: {note}"));
        groups.extend(found.groups);
    }
    if !of_topics(&mut groups, &args.topic) {
        outcome = outcome.and(Ok(Answer::No));
    }
    let printed = print(&args.view, output, groups);
    finish(printed, missing.map_or(outcome, Err))
}

/// In the order of the names.
async fn describe_all(places: &Places, brokers: Option<&KafkaAdmin>, names: &[String]) -> Vec<Found> {
    let progress = Progress::of("groups described", u64::try_from(names.len()).ok());
    let described = names.iter().map(async |name| {
        let found = describe(places, brokers, name).await;
        progress.add(1);
        found
    });
    stream::iter(described).buffered(AT_A_TIME).collect().await
}

/// Those that stand in ZooKeeper, where no others are named. The nodes are worth something without them.
async fn brokers_beside(servers: &Servers, places: &Places) -> Option<KafkaAdmin> {
    let (Some(zookeeper), None) = (&places.zookeeper, &places.kafka) else { return None };
    let brokers = servers.kafka_beside(zookeeper).await;
    brokers.map_err(|why| say!("ends of logs and offsets in Kafka are not shown: {why}")).ok()
}

/// Wherever there is a group of this name; what fails in one place does not hide the other.
async fn describe(places: &Places, brokers: Option<&KafkaAdmin>, group: &str) -> Found {
    let mut found = Found::default();
    if let Some(zookeeper) = &places.zookeeper {
        match in_zookeeper(zookeeper, places.kafka.as_ref().or(brokers), group).await {
            Ok(view) => {
                found.groups.extend(view.as_ref().map(zookeeper::described));
                found.notes.extend(view.into_iter().flat_map(|view| view.errors));
            }
            Err(error) => found.failures.push(error),
        }
    }
    if let Some(kafka) = &places.kafka {
        match kafka::described(kafka, group).await {
            Ok(described) => {
                found.notes.extend(described.iter().filter_map(|it| it.state.note.clone()));
                found.groups.extend(described);
            }
            // there is none, then: brokers of 0.8 coordinate no groups
            Err(AdminError::Unsupported { .. }) if places.zookeeper.is_some() => {}
            Err(error) => found.failures.push(error),
        }
    }
    if found.groups.len() > 1 {
        found.notes.push("a group in ZooKeeper, and another in Kafka".to_owned());
    }
    found
}

async fn in_zookeeper(
    zookeeper: &ZooKeeperAdmin,
    brokers: Option<&KafkaAdmin>,
    group: &str,
) -> Result<Option<GroupView>, AdminError> {
    match is_there(zookeeper, group).await? {
        true => zookeeper.view(group, brokers).await.map(Some),
        false => Ok(None),
    }
}

/// A name that can be no node's is no group's there.
async fn is_there(zookeeper: &ZooKeeperAdmin, group: &str) -> Result<bool, AdminError> {
    match zookeeper.group_exists(group).await {
        Err(AdminError::Name { .. }) => Ok(false),
        exists => exists,
    }
}

/// Leaves the partitions of these topics, of all if there are none; whether each topic has one.
fn of_topics(groups: &mut [Described], topics: &[String]) -> bool {
    if topics.is_empty() {
        return true;
    }
    for group in groups.iter_mut() {
        group.partitions.retain(|row| row.topic.as_ref().is_some_and(|topic| topics.contains(topic)));
    }
    let has = |topic: &String| {
        groups.iter().flat_map(|group| &group.partitions).any(|row| row.topic.as_ref() == Some(topic))
    };
    let without: Vec<_> = topics.iter().filter(|topic| !has(topic)).collect();
    without.iter().for_each(|topic| say!("there is no partition of {topic:?} in what is described"));
    without.is_empty()
}

fn print(view: &View, output: Output, found: Vec<Described>) -> std::io::Result<()> {
    if view.state {
        output.print(&found.into_iter().map(|it| it.state).collect::<Vec<_>>())
    } else if view.members {
        output.print(&found.into_iter().flat_map(|it| it.members).collect::<Vec<_>>())
    } else {
        output.print(&found.into_iter().flat_map(|it| it.partitions).collect::<Vec<_>>())
    }
}

impl Described {
    fn new(state: StateRow, members: Vec<MemberRow>, mut partitions: Vec<PartitionRow>) -> Self {
        let lag = partitions.iter().filter_map(|row| row.lag).reduce(i64::saturating_add);
        let state =
            StateRow { members: Some(members.len()), partitions: Some(partitions.len()), lag, ..state };
        let spare = members.iter().filter(|member| member.owned == 0);
        partitions.extend(spare.map(MemberRow::spare));
        Self { state, members, partitions }
    }
}
