//! Records as a `futures::Stream`, where there is no actor to hand them to: a record counts as handled when the next is
//! asked for.
//!
//! `cargo cluster up`, and beside it `cargo run --example pull`: the sum of a hundred numbers.

use std::error::Error;

use futures_util::{StreamExt, TryStreamExt};
use kafka_troupe::{ConsumerConfig, ConsumerSystem};

#[actix::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = troupe_cluster::running()?;
    cluster.fill("numbers", 4, (1..=100).map(|number| number.to_string()))?;
    let config = ConsumerConfig::builder()
        .zookeeper_connect(cluster.zookeeper())
        .group_id(format!("pull-{}", std::process::id())) // a new one: all of it, each time
        .property("auto.offset.reset", "smallest")
        .build()?;
    let system = ConsumerSystem::builder(config).pull("numbers", 1).start().await?;
    let stream = system.streams("numbers").remove(0);
    let sum: u64 = stream
        .take(100)
        .map_ok(|record| record.text().parse::<u64>().unwrap_or_default())
        .try_fold(0, async |sum, number| Ok(sum + number))
        .await?;
    println!("the sum is {sum}");
    system.shutdown().await;
    Ok(())
}
