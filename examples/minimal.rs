//! A topic, and an actor that is given its records: one by one, in order, and again if it fails.
//!
//! `cargo cluster up`, and beside it `cargo run --example minimal`, until Ctrl-C; start it twice, and the two share the
//! partitions.

use std::error::Error;

use actix::prelude::*;
use kafka_troupe::{ConsumerConfig, ConsumerSystem, HandlerResult, Record};

struct Printer;

impl Actor for Printer {
    type Context = Context<Self>;
}

impl Handler<Record> for Printer {
    type Result = HandlerResult;

    fn handle(&mut self, record: Record, _: &mut Context<Self>) -> HandlerResult {
        println!("{}-{}@{}: {}", record.topic(), record.partition(), record.offset(), record.text());
        Ok(())
    }
}

#[actix::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = troupe_cluster::running()?;
    cluster.fill("orders", 4, (1..=20).map(|number| format!("order {number}")))?;
    let config = ConsumerConfig::builder()
        .zookeeper_connect(cluster.zookeeper())
        .group_id("minimal")
        .property("auto.offset.reset", "smallest")
        .build()?;
    let system = ConsumerSystem::builder(config).handle("orders", 2, || Printer).start().await?;
    system.run_until_terminated().await?;
    Ok(())
}
