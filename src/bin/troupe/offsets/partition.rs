//! `troupe offsets partition`: where in `__consumer_offsets` a group is.

use std::num::NonZeroU32;

use kafka_troupe::proto::kafka::offsets_topic::{OFFSETS_TOPIC, partition_for_group};
use serde::Serialize;

use crate::exit::{Answer, Failure, Outcome};
use crate::output::{Output, Row};
use crate::servers::Servers;

/// Brokers make the topic with so many, unless `offsets.topic.num.partitions` says otherwise.
const USUAL: NonZeroU32 = NonZeroU32::new(50).unwrap();

/// Which group, and of how many partitions.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub servers: Servers,
    /// A group; may be repeated
    #[arg(long, value_name = "GROUP", required = true)]
    pub group: Vec<String>,
    /// How many partitions __consumer_offsets has; without, the servers are asked if they are named, else 50 are assumed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pub count: Option<u32>,
}

#[derive(Serialize)]
struct GroupsPartition {
    group: String,
    partition: i32,
    partitions: u32,
}

impl Row for GroupsPartition {
    const HEAD: &'static [&'static str] = &["GROUP", "PARTITION", "PARTITIONS"];

    fn cells(&self) -> Vec<String> {
        vec![self.group.clone(), self.partition.to_string(), self.partitions.to_string()]
    }
}

/// Prints the partition of each group.
pub async fn run(args: Args, output: Output) -> Outcome {
    let count = match args.count.and_then(NonZeroU32::new) {
        Some(count) => count,
        None => asked(&args.servers).await?,
    };
    let rows = args.group.into_iter().map(|group| GroupsPartition {
        partition: partition_for_group(&group, count),
        partitions: count.get(),
        group,
    });
    output.print(&rows.collect::<Vec<_>>())?;
    Ok(Answer::Yes)
}

async fn asked(servers: &Servers) -> Result<NonZeroU32, Failure> {
    let count = if servers.bootstrap_server.is_some() {
        let topics = servers.kafka().await?.topics().await?;
        topics.get(OFFSETS_TOPIC).map(|topic| topic.partitions.len())
    } else if servers.zookeeper.is_some() {
        let zookeeper = servers.zookeeper().await?;
        let partitions = zookeeper.partitions(OFFSETS_TOPIC).await;
        zookeeper.close().await;
        partitions?.map(|partitions| partitions.len())
    } else {
        return Ok(USUAL);
    };
    let count = count.and_then(|count| NonZeroU32::new(u32::try_from(count).ok()?));
    Ok(count.unwrap_or_else(|| {
        say!("there is no {OFFSETS_TOPIC} yet: {USUAL} partitions assumed, as brokers make it");
        USUAL
    }))
}
