//! A running group moves its offsets from ZooKeeper to Kafka, as the page `kafka_troupe::migration` says: one step at a
//! time, all members restarted one by one with the step's two properties, and a check before the next. Records go on
//! being produced and handled.
//!
//! `cargo cluster up`, and beside it `cargo run --example migration`.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe::{ConsumerConfig, ConsumerHandle, ConsumerSystem, HandlerResult, Record};
use troupe_cluster::Running;

const TOPIC: &str = "jobs";
const MEMBERS: [&str; 2] = ["a", "b"];
/// `offsets.storage` and `dual.commit.enabled`.
const STEPS: [(&str, &str); 3] = [("zookeeper", "false"), ("kafka", "true"), ("kafka", "false")];

/// Another at each start.
fn group() -> String {
    format!("migration-{}", std::process::id())
}

struct Jobs(Arc<AtomicU64>);

impl Actor for Jobs {
    type Context = Context<Self>;
}

impl Handler<Record> for Jobs {
    type Result = HandlerResult;

    fn handle(&mut self, _: Record, _: &mut Context<Self>) -> HandlerResult {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[actix::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = troupe_cluster::running()?;
    cluster.fill(TOPIC, 4, (0..1_000).map(|number| format!("job {number}")))?;
    let (handled, mut members) = (Arc::new(AtomicU64::new(0)), BTreeMap::new());
    for step in STEPS {
        for id in MEMBERS {
            if let Some(running) = members.remove(id) {
                ConsumerHandle::shutdown(&running).await;
            }
            members.insert(id, start(&cluster, id, step, &handled).await?);
            cluster.client()?.produce(TOPIC, (0..100).map(|number| format!("more {number}").into()))?;
        }
        println!("offsets.storage={}, dual.commit.enabled={}", step.0, step.1);
        check(&cluster, step).await?;
    }
    for member in members.into_values() {
        member.shutdown().await;
    }
    println!("{} records handled", handled.load(Ordering::Relaxed));
    Ok(())
}

async fn start(
    cluster: &Running,
    id: &str,
    (storage, dual): (&str, &str),
    handled: &Arc<AtomicU64>,
) -> Result<ConsumerHandle, Box<dyn Error>> {
    let config = ConsumerConfig::builder()
        .zookeeper_connect(cluster.zookeeper())
        .group_id(group())
        .property("consumer.id", id)
        .property("auto.offset.reset", "smallest")
        .property("auto.commit.interval.ms", "500")
        .property("offsets.storage", storage)
        .property("dual.commit.enabled", dual)
        .build()?;
    let handled = Arc::clone(handled);
    let builder = ConsumerSystem::builder(config).handle(TOPIC, 1, move || Jobs(Arc::clone(&handled)));
    Ok(builder.start().await?)
}

/// Before the next step, the stores of this one must have all: that is the check of the page's table.
async fn check(cluster: &Running, (storage, dual): (&str, &str)) -> Result<(), Box<dyn Error>> {
    let client = cluster.client()?;
    let ends: BTreeMap<i32, i64> = (0..).zip(client.log_end_offsets(TOPIC)?).collect();
    loop {
        let in_zookeeper = cluster.zookeeper_offsets(&group(), TOPIC)?;
        let in_kafka = client.committed_offsets(&group(), TOPIC)?;
        let zookeeper_has_all = in_zookeeper == ends || (storage, dual) == ("kafka", "false");
        if zookeeper_has_all && (in_kafka == ends || storage == "zookeeper") {
            println!("  in ZooKeeper {}, in Kafka {}", sum(&in_zookeeper), sum(&in_kafka));
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn sum(offsets: &BTreeMap<i32, i64>) -> i64 {
    offsets.values().sum()
}
