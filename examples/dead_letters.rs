//! A handler that refuses some records, the dead-letter topic that keeps them, and a reader that mends them and produces
//! them once more.
//!
//! `cargo cluster up`, and beside it `cargo run --example dead_letters`, until Ctrl-C.

use std::error::Error;

use actix::prelude::*;
use kafka_troupe::proto::schemas::dead_letter::v1::DeadLetter;
use kafka_troupe::{
    ConsumerConfig, ConsumerSystem, FailurePolicy, HandlerResult, Protobuf, Record, Subscription, Then,
};
use troupe_cluster::{Client, ProduceRecord};

/// Welcomes who has an address.
struct SignUps;

impl Actor for SignUps {
    type Context = Context<Self>;
}

impl Handler<Record> for SignUps {
    type Result = HandlerResult;

    fn handle(&mut self, record: Record, _: &mut Context<Self>) -> HandlerResult {
        let address = record.text();
        if !address.contains('@') {
            return Err(format!("{address} is no address").into());
        }
        println!("welcome, {address}");
        Ok(())
    }
}

/// What a person would do, or the next release.
struct Mender(Client);

impl Actor for Mender {
    type Context = Context<Self>;
}

impl Handler<Record<DeadLetter>> for Mender {
    type Result = HandlerResult;

    fn handle(&mut self, record: Record<DeadLetter>, _: &mut Context<Self>) -> HandlerResult {
        let DeadLetter { topic, partition, offset, key, value, reason, attempts, .. } = record.into_decoded();
        println!("{topic}-{partition}@{offset}: {reason}, {attempts} times");
        let value = [&value.unwrap_or_default(), &b"@example.org"[..]].concat();
        let mended = ProduceRecord { partition: Some(partition), key: key.map(Into::into), value };
        self.0.produce(&topic, [mended])?;
        Ok(())
    }
}

#[actix::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = troupe_cluster::running()?;
    let address = |number: i32| if number % 4 == 0 { "" } else { "@example.com" };
    cluster.fill("signups", 2, (0..20).map(|number| format!("person-{number}{}", address(number))))?;
    // nobody but you makes it: it is to keep its records as long as you need
    cluster.fill("signups.dead", 2, std::iter::empty::<String>())?;

    let config = |group: &str| {
        let config = ConsumerConfig::builder().zookeeper_connect(cluster.zookeeper()).group_id(group);
        config.property("auto.offset.reset", "smallest").build()
    };
    let policy = FailurePolicy::retry(2).then(Then::DeadLetter("signups.dead".into()));
    let sign_ups = Subscription::topic("signups").on_failure(policy).handle(|| SignUps);
    let sign_ups = ConsumerSystem::builder(config("signups")?).subscription(sign_ups).start().await?;

    let client = cluster.client()?;
    let letters = Subscription::topic("signups.dead")
        .decoder(Protobuf::<DeadLetter>::new())
        .handle(move || Mender(client.clone()));
    let letters = ConsumerSystem::builder(config("mending")?).subscription(letters).start().await?;

    sign_ups.run_until_terminated().await?;
    letters.shutdown().await;
    Ok(())
}
