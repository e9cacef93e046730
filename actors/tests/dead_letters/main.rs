//! Dead letters, written to brokers in memory and to real ones of every format.

mod memory;
mod real;

use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe_actors::broker_connection::ConnectOptions;
use kafka_troupe_actors::dead_letters::{
    DeadLetterError, DeadLetterWriter, Describe, WriteSettings, WriterParts, Written,
};
use kafka_troupe_actors::fetcher_manager::{BrokerAddress, KnownBrokers};
use kafka_troupe_actors::supervise::{ChildExited, ExitGuard};
use kafka_troupe_proto::config::ConsumerConfig;
use kafka_troupe_proto::schemas::dead_letter::v1::{DeadLetter, Header};
use kafka_troupe_proto::schemas::status::v1::DeadLetters;

const TOPIC: &str = "orders.dead";

/// What came of a letter.
type Outcome = Result<Written, DeadLetterError>;

/// Takes no notice of what ends.
struct Parent;

impl Actor for Parent {
    type Context = Context<Self>;
}

impl Handler<ChildExited> for Parent {
    type Result = ();

    fn handle(&mut self, _: ChildExited, _: &mut Self::Context) {}
}

/// A writer, and the brokers that it knows.
fn start(
    brokers: &[BrokerAddress],
    change: impl FnOnce(&mut ConnectOptions),
    timeout: Duration,
) -> Addr<DeadLetterWriter> {
    let config = ConsumerConfig::builder().zookeeper_connect("none").group_id("g");
    let mut settings = WriteSettings::from(&config.build().expect("a configuration"));
    settings.connect.socket_timeout = timeout;
    change(&mut settings.connect);
    let known = KnownBrokers::default();
    known.set(brokers);
    let guard = ExitGuard::new("dead-letter-writer", 1, Parent.start().recipient());
    let topics = vec![TOPIC.to_owned()];
    DeadLetterWriter::new(WriterParts { topics, settings, brokers: Arc::new(known), guard }).start()
}

async fn status(writer: &Addr<DeadLetterWriter>) -> DeadLetters {
    writer.send(Describe).await.expect("it lives").letters
}

/// One with all that a record may have.
fn letter(partition: i32, offset: i64) -> DeadLetter {
    let header = |key: &str, value: Option<&'static [u8]>| Header {
        key: key.to_owned(),
        value: value.map(Into::into),
        ..Header::default()
    };
    DeadLetter {
        topic: "orders".to_owned(),
        partition,
        offset,
        timestamp: Some(1_600_000_000_123),
        key: None,
        value: Some(vec![0, 159, 255].into()),
        headers: vec![header("h", Some(b"1")), header("h", None)],
        reason: "no such customer".to_owned(),
        attempts: 11,
        group: "g".to_owned(),
        consumer_id: "g_m".to_owned(),
        given_up_ms: 1_700_000_000_456,
        ..DeadLetter::default()
    }
}
