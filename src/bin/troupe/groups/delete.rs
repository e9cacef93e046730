//! `troupe groups delete`.

use kafka_troupe::admin::{AdminError, ZooKeeperAdmin};
use serde::Serialize;

use super::Coordination;
use super::places::Places;
use crate::exit::{self, Answer, Failure, Outcome, finish};
use crate::output::{Output, Row, or_dash};
use crate::servers::Servers;

/// Which groups.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub servers: Servers,
    /// A group; may be repeated
    #[arg(long, required_unless_present = "topic", value_name = "GROUP")]
    pub group: Vec<String>,
    /// Only what the groups have of this topic; without --group, of all groups in ZooKeeper that have no members
    #[arg(long, value_name = "TOPIC", value_parser = whole_topic)]
    pub topic: Option<String>,
}

/// A topic without partitions, which `groups reset` takes and this does not.
fn whole_topic(given: &str) -> Result<String, String> {
    match given.split_once(':') {
        Some((topic, _)) => Err(format!(
            "partitions cannot be deleted one by one: it is all of a topic, as in --topic {topic} (no topic has a colon \
             in its name)"
        )),
        None => Ok(given.to_owned()),
    }
}

/// What came of a group.
#[derive(Debug, Serialize)]
struct Deleted {
    group: String,
    coordination: Option<Coordination>,
    /// None: the whole group.
    topic: Option<String>,
    deleted: bool,
    /// Why not.
    reason: Option<String>,
}

impl Deleted {
    /// On stderr, why it is not; for who does not read it in the rows.
    fn tell(&self) {
        self.reason.iter().for_each(|why| say!("{}: not deleted: {why}", self.group));
    }
}

impl Row for Deleted {
    const HEAD: &'static [&'static str] = &["GROUP", "COORDINATION", "TOPIC", "DELETED", "REASON"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.group.clone(),
            or_dash(self.coordination),
            or_dash(self.topic.as_ref()),
            if self.deleted { "yes" } else { "no" }.to_owned(),
            or_dash(self.reason.as_ref()),
        ]
    }
}

/// Deletes groups.
pub async fn run(args: Args, output: Output) -> Outcome {
    if args.group.is_empty() && args.servers.zookeeper.is_none() {
        return Err(Failure::usage(
            "--group is missing, or --zookeeper: --topic alone means groups that stand there",
        ));
    }
    let places = Places::of(&args.servers).await?;
    let (topic, mut groups) = (args.topic.as_deref(), args.group);
    if let (Some(zookeeper), Some(topic), true) = (&places.zookeeper, topic, groups.is_empty()) {
        groups = idle_with(zookeeper, topic).await?;
    }
    let (mut rows, mut failed) = (Vec::new(), false);
    for group in &groups {
        let results = delete(&places, group, topic).await;
        failed |= results.iter().any(|(_, result)| !is_answer(result));
        rows.extend(outcome(group, topic, results));
    }
    places.close().await;
    let printed = output.print(&rows);
    if printed.is_err() {
        rows.iter().for_each(Deleted::tell);
    }
    let outcome = match rows.iter().all(|row| row.deleted) {
        _ if failed => Err(Failure::work("not everything was tried to its end: see the reasons")),
        true => Ok(Answer::Yes),
        false => Ok(Answer::No),
    };
    finish(printed, outcome)
}

/// The groups without members that have offsets of a topic in ZooKeeper.
async fn idle_with(zookeeper: &ZooKeeperAdmin, topic: &str) -> Result<Vec<String>, AdminError> {
    let mut idle = Vec::new();
    for group in zookeeper.groups().await? {
        let offsets = zookeeper.offsets(&group).await?;
        if !offsets.iter().any(|node| &*node.key.topic == topic) {
            continue;
        }
        match zookeeper.members(&group).await?.is_empty() {
            true => idle.push(group),
            false => say!("{group:?} is left as it is: it has members"),
        }
    }
    Ok(idle)
}

/// What came of it in a place.
type Results = Vec<(Coordination, Result<(), AdminError>)>;

/// Wherever it is: while members are registered in ZooKeeper, what brokers have of it is theirs as well.
async fn delete(places: &Places, group: &str, topic: Option<&str>) -> Results {
    let mut results = Vec::new();
    if let Some(zookeeper) = &places.zookeeper {
        let deleted = match topic {
            None => zookeeper.delete_group(group).await,
            Some(topic) => zookeeper.delete_group_topic(group, topic).await,
        };
        let go_on = is_missing(&deleted) || deleted.is_ok();
        results.push((Coordination::ZooKeeper, deleted));
        if !go_on {
            return results;
        }
    }
    if let Some(kafka) = &places.kafka {
        let deleted = match topic {
            None => kafka.delete_group(group).await,
            Some(topic) => kafka.delete_group_topic(group, topic).await,
        };
        results.push((Coordination::Kafka, deleted));
    }
    results
}

/// Whether it is done, or refused for what the group is.
fn is_answer(result: &Result<(), AdminError>) -> bool {
    is_missing(result) || result.as_ref().err().is_none_or(exit::is_answer)
}

/// There is none of that name, or can be none; or nothing of the topic.
fn is_missing(result: &Result<(), AdminError>) -> bool {
    is_without(result) || matches!(result, Err(AdminError::NoSuchGroup { .. } | AdminError::Name { .. }))
}

/// The group is there, and has nothing of the topic.
fn is_without(result: &Result<(), AdminError>) -> bool {
    matches!(result, Err(AdminError::NothingOfTopic { .. }))
}

/// That it is in one place only is nothing to tell.
fn outcome(group: &str, topic: Option<&str>, results: Results) -> Vec<Deleted> {
    let row = |coordination, result: Result<(), AdminError>| Deleted {
        group: group.to_owned(),
        coordination,
        topic: topic.map(str::to_owned),
        deleted: result.is_ok(),
        reason: result.err().map(|why| why.to_string()),
    };
    let (missing, mut tried): (Vec<_>, Vec<_>) =
        results.into_iter().partition(|(_, result)| is_missing(result));
    let (without, missing): (Vec<_>, Vec<_>) =
        missing.into_iter().partition(|(_, result)| is_without(result));
    if tried.is_empty() {
        tried = without;
    }
    match tried.is_empty() {
        true => missing.into_iter().take(1).map(|(_, result)| row(None, result)).collect(),
        false => tried.into_iter().map(|(place, result)| row(Some(place), result)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_group_has_nothing_of_the_topic_it_is_said_unless_another_place_had() {
        let nothing = || Err(AdminError::NothingOfTopic { group: "g".to_owned(), topic: "tpyo".to_owned() });
        let none = || Err(AdminError::NoSuchGroup { group: "g".to_owned() });
        for (zookeeper, kafka, expected) in [
            (nothing(), none(), vec![(Some(Coordination::ZooKeeper), false)]),
            (none(), nothing(), vec![(Some(Coordination::Kafka), false)]),
            (nothing(), Ok(()), vec![(Some(Coordination::Kafka), true)]),
            (Ok(()), nothing(), vec![(Some(Coordination::ZooKeeper), true)]),
            (none(), none(), vec![(None, false)]),
        ] {
            let results = vec![(Coordination::ZooKeeper, zookeeper), (Coordination::Kafka, kafka)];
            let rows = outcome("g", Some("tpyo"), results);
            let told: Vec<_> = rows.iter().map(|row| (row.coordination, row.deleted)).collect();
            assert_eq!(told, expected, "{rows:?}");
        }
        let rows = outcome("g", Some("tpyo"), vec![(Coordination::Kafka, nothing())]);
        assert!(rows[0].reason.as_ref().unwrap().contains("has nothing of topic tpyo"), "{rows:?}");
        assert!(is_answer(&nothing()));
    }

    #[test]
    fn a_single_partition_is_refused() {
        assert_eq!(whole_topic("orders"), Ok("orders".to_owned()));
        assert!(whole_topic("orders:0").unwrap_err().contains("--topic orders "));
    }
}
