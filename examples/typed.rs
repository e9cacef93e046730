//! A handler that is given Protobuf messages instead of bytes, and a policy for what is none.
//!
//! `cargo cluster up`, and beside it `cargo run --example typed`, until Ctrl-C.

use std::error::Error;

use actix::prelude::*;
use kafka_troupe::{
    ConsumerConfig, ConsumerSystem, FailurePolicy, HandlerResult, Protobuf, Record, Subscription, Then,
};
use prost::Message as _;
use troupe_cluster::ProduceRecord;

/// In earnest: generated from a schema by `prost-build`.
#[derive(Clone, PartialEq, prost::Message)]
struct Reading {
    #[prost(string, tag = "1")]
    sensor: String,
    #[prost(double, tag = "2")]
    celsius: f64,
}

#[derive(Default)]
struct Warmest(Option<Reading>);

impl Actor for Warmest {
    type Context = Context<Self>;
}

impl Handler<Record<Reading>> for Warmest {
    type Result = HandlerResult;

    fn handle(&mut self, record: Record<Reading>, _: &mut Context<Self>) -> HandlerResult {
        let reading = record.into_decoded();
        if self.0.as_ref().is_none_or(|warmest| warmest.celsius < reading.celsius) {
            println!("the warmest so far: {} at {} °C", reading.sensor, reading.celsius);
            self.0 = Some(reading);
        }
        Ok(())
    }
}

#[actix::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = troupe_cluster::running()?;
    cluster.fill("readings", 1, readings())?;
    let config = ConsumerConfig::builder()
        .zookeeper_connect(cluster.zookeeper())
        .group_id("typed")
        .property("auto.offset.reset", "smallest")
        .build()?;
    let readings = Subscription::topic("readings")
        .decoder(Protobuf::<Reading>::new())
        // by default its partition would stop, and say why
        .on_failure(FailurePolicy::default().undecodable(Then::Skip))
        .handle(Warmest::default);
    let system = ConsumerSystem::builder(config).subscription(readings).start().await?;
    system.run_until_terminated().await?;
    Ok(())
}

/// A thousand, and one that is no reading.
fn readings() -> impl Iterator<Item = ProduceRecord> {
    let reading = |number: u32| Reading {
        sensor: format!("sensor-{}", number % 10),
        celsius: f64::from(number * 37 % 1_000) / 10.0,
    };
    let readings = (0..1_000).map(move |number| ProduceRecord::value(reading(number).encode_to_vec()));
    std::iter::once(ProduceRecord::value("no reading")).chain(readings)
}
