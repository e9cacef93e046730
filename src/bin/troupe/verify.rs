//! `troupe verify`.

use std::collections::BTreeSet;
use std::time::Duration;

use kafka_troupe::GroupView;
use kafka_troupe::admin::{AdminError, KafkaAdmin, KafkaGroup, ZooKeeperAdmin};
use kafka_troupe::proto::group::verify::{Looking, Reason, Verdict};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::exit::{Answer, Failure, Outcome, finish};
use crate::output::progress::Progress;
use crate::output::{Output, Row, or_dash};
use crate::servers::Servers;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// Which group, and for how long it may settle.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub servers: Servers,
    /// The group
    #[arg(long, value_name = "GROUP")]
    pub group: String,
    /// How long it may take to settle, in ms: until all is owned by registered members
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    pub within: u64,
    /// How long it may take until each offset has moved that is behind, in ms; longer than auto.commit.interval.ms of the
    /// members, whose default is 60000
    #[arg(long, value_name = "MS", default_value_t = 65_000)]
    pub moving_within: u64,
}

/// A reason, as it is printed.
#[derive(Serialize)]
struct Wrong<'a> {
    reason: &'static str,
    topic: Option<&'a str>,
    partition: Option<i32>,
    member: Option<&'a str>,
    path: &'a str,
    why: &'a str,
}

impl Row for Wrong<'_> {
    const HEAD: &'static [&'static str] = &["TOPIC", "PARTITION", "MEMBER", "WHY", "PATH"];

    fn cells(&self) -> Vec<String> {
        vec![
            or_dash(self.topic),
            or_dash(self.partition),
            or_dash(self.member),
            self.why.to_owned(),
            self.path.to_owned(),
        ]
    }
}

impl<'a> From<&'a Reason> for Wrong<'a> {
    fn from(reason: &'a Reason) -> Self {
        Self {
            reason: reason.kind.name(),
            topic: reason.topic.as_deref(),
            partition: reason.partition,
            member: reason.member.as_deref(),
            path: &reason.path,
            why: &reason.why,
        }
    }
}

/// Verifies a group: the reasons why it is not as it should be go to stdout, what the old tool said to stderr.
pub async fn run(args: Args, output: Output) -> Outcome {
    let zookeeper = args.servers.zookeeper().await?;
    let answer = answer(&args, output, &zookeeper).await;
    zookeeper.close().await;
    answer
}

async fn answer(args: &Args, output: Output, zookeeper: &ZooKeeperAdmin) -> Outcome {
    let exists = match zookeeper.group_exists(&args.group).await {
        // what can be no node's name may be a group's in Kafka
        Err(error @ AdminError::Name { .. }) => return absent(args, zookeeper, error).await,
        exists => exists?,
    };
    if !exists {
        let error = AdminError::NoSuchGroup { group: args.group.clone() };
        return absent(args, zookeeper, error).await;
    }
    let kafka = args.servers.kafka_beside(zookeeper).await?;
    let (view, verdict) = settled(args, zookeeper, &kafka).await?;
    if view.members.is_empty()
        && let Some(what) = in_kafka(&kafka, &args.group).await
    {
        say!("{what}");
    }
    report(&view, &verdict, output)
}

/// Of a group that is none of ZooKeeper: what it is in place of that.
async fn absent(args: &Args, zookeeper: &ZooKeeperAdmin, error: AdminError) -> Outcome {
    let what = match args.servers.kafka_beside(zookeeper).await {
        Ok(kafka) => in_kafka(&kafka, &args.group).await,
        // nor does ZooKeeper know of it, which is the answer
        Err(why) => Some(format!("whether it is a group of Kafka cannot be told: {why}")),
    };
    match (what, error) {
        (None, error @ AdminError::Name { .. }) => Err(error.into()),
        (None, error) => {
            say!("{error}");
            Ok(Answer::No)
        }
        (Some(what), _) => {
            say!("the group {:?} does not exist in ZooKeeper: {what}", args.group);
            Ok(Answer::No)
        }
    }
}

/// What a group is that Kafka coordinates; nothing where it coordinates none of that name.
async fn in_kafka(kafka: &KafkaAdmin, group: &str) -> Option<String> {
    match kafka.describe(group).await {
        Ok(KafkaGroup { group_type, state, members, .. }) => Some(format!(
            "brokers coordinate a group of that name ({group_type}, {state}, {} members), which is shown by \
             `troupe groups describe --bootstrap-server`",
            members.len()
        )),
        Err(AdminError::NoSuchGroup { .. } | AdminError::Unsupported { .. }) => None,
        Err(why) => Some(format!("whether it is a group of Kafka cannot be told: {why}")),
    }
}

/// Looks until all is well, or the time is up.
async fn settled(
    args: &Args,
    zookeeper: &ZooKeeperAdmin,
    kafka: &KafkaAdmin,
) -> Result<(GroupView, Verdict), AdminError> {
    let [structure, offsets] = [args.within, args.moving_within].map(Duration::from_millis);
    let (begun, mut looking) = (Instant::now(), Looking::new(structure, offsets));
    let progress = Progress::waiting("until the group settles");
    loop {
        let view = zookeeper.view(&args.group, Some(kafka)).await?;
        let (verdict, left) = looking.judge(&view, begun.elapsed());
        let Some(left) = left else { return Ok((view, verdict)) };
        if verdict.is_settled() {
            progress.show(format!("until {} offsets that are behind move", verdict.reasons.len()));
        }
        sleep(PAUSE.min(left)).await;
    }
}

/// Subscribed to by name. A filter takes in what there is.
fn missing_topics(view: &GroupView) -> BTreeSet<&str> {
    let exists = |topic: &str| view.partitions.iter().any(|it| it.topic == topic && it.exists != Some(false));
    let subscribed = view.members.iter().flat_map(|member| &member.topics).map(|it| it.topic.as_str());
    subscribed.filter(|topic| !exists(topic)).collect()
}

fn report(view: &GroupView, verdict: &Verdict, output: Output) -> Outcome {
    let wrong: Vec<_> = verdict.reasons.iter().map(Wrong::from).collect();
    let printed = match output {
        Output::Table if wrong.is_empty() => Ok(()),
        output => output.print(&wrong),
    };
    finish(printed, tell(view, verdict))
}

/// What goes to stderr.
fn tell(view: &GroupView, verdict: &Verdict) -> Outcome {
    for topic in missing_topics(view) {
        say!("the topic {topic}, to which members subscribe, does not exist");
    }
    verdict.unknown.iter().for_each(|why| say!("not known: {why}"));
    if !verdict.reasons.is_empty() {
        say!("Rebalance operation failed !");
        return Ok(Answer::No);
    }
    if !verdict.unknown.is_empty() {
        return Err(Failure::work(format!("whether group {} is as it should be cannot be told", view.group)));
    }
    let owned = view.partitions.iter().filter(|it| it.is_subscribed && it.exists == Some(true)).count();
    say!("{owned} partitions, each owned once by one of {} members, all read", view.members.len());
    say!("Rebalance operation successful !");
    Ok(Answer::Yes)
}
