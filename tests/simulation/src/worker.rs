//! The handler actors: they take their time, fail and panic as chance has it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix::prelude::*;
use futures_util::StreamExt as _;
use kafka_troupe_actors::{HandlerResult, KafkaStream, Record};
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::group::InFlight;

use crate::chance::Chance;
use crate::handling::GivingUp;
use crate::history::{History, Taker};
use crate::storage::Storage;

/// What a handler's panic says that is meant.
pub const MEANT: &str = "a handler panics, as it was meant to";

/// What all handlers of a member share.
pub struct Bench {
    pub member: String,
    /// Its name with how often it has come back: its sessions are known by this.
    pub process: String,
    /// Where it stores offsets.
    pub storage: Storage,
    /// The process runs; what a killed one does is of no effect.
    pub alive: AtomicBool,
    pub history: History,
    pub chance: Chance,
    /// Nothing goes wrong here any more.
    pub steady: Arc<AtomicBool>,
    /// Handlers take long at times.
    pub slow: bool,
    pub in_flight: InFlight,
    pub giving_up: GivingUp,
}

/// What a handler does with a record.
enum Deed {
    AtOnce,
    After(Duration),
    Fail,
    Panic,
}

impl Bench {
    fn is_alive(&self) -> bool {
        self.alive.load(Ordering::SeqCst)
    }

    fn draw(&self) -> Deed {
        let steady = self.steady.load(Ordering::SeqCst);
        match self.chance.draw(|rng| rng.u32(..400)) {
            0 if !steady => Deed::Panic,
            1..5 if !steady => Deed::Fail,
            5..8 if self.slow => Deed::After(self.chance.millis(1_000, 8_000)),
            8..40 => Deed::After(self.chance.millis(1, 300)),
            _ => Deed::AtOnce,
        }
    }

    fn take(&self, record: &Record, in_flight: InFlight) -> TopicPartition {
        let partition = TopicPartition::new(record.topic(), record.partition());
        let taker = Taker { member: &self.member, process: &self.process, storage: self.storage, in_flight };
        self.history.handed_over(taker, &partition, record.offset());
        partition
    }

    /// The handler fails on the record, or ends with it: what is given up at once counts as done.
    fn fail(&self, partition: &TopicPartition, offset: i64) {
        if self.giving_up == GivingUp::Skips {
            self.history.count("skipped");
            self.history.done(&self.member, partition, offset);
        }
    }
}

/// Pulls a stream to its end. What asks for the next record has handled the last.
pub async fn pull(bench: Arc<Bench>, mut stream: KafkaStream) {
    while let Some(pulled) = stream.next().await {
        let Ok(record) = pulled else { continue };
        let partition = bench.take(&record, InFlight::one());
        if let Deed::After(time) = bench.draw() {
            tokio::time::sleep(time).await;
        }
        if !bench.is_alive() {
            return;
        }
        bench.history.done(&bench.member, &partition, record.offset());
    }
}

/// Answers at once.
pub struct Quick(pub Arc<Bench>);

/// Answers when it is done.
pub struct Patient(pub Arc<Bench>);

impl Actor for Quick {
    type Context = Context<Self>;
}

impl Actor for Patient {
    type Context = Context<Self>;
}

impl Handler<Record> for Quick {
    type Result = HandlerResult;

    fn handle(&mut self, record: Record, _: &mut Self::Context) -> HandlerResult {
        let bench = &self.0;
        if !bench.is_alive() {
            return Ok(());
        }
        let partition = bench.take(&record, bench.in_flight);
        let deed = bench.draw();
        if matches!(deed, Deed::Panic | Deed::Fail) {
            bench.fail(&partition, record.offset());
        }
        match deed {
            Deed::Panic => panic!("{MEANT}"),
            Deed::Fail => return Err("chance has it".into()),
            Deed::AtOnce | Deed::After(_) => bench.history.done(&bench.member, &partition, record.offset()),
        }
        Ok(())
    }
}

impl Handler<Record> for Patient {
    type Result = ResponseFuture<HandlerResult>;

    fn handle(&mut self, record: Record, _: &mut Self::Context) -> Self::Result {
        let bench = Arc::clone(&self.0);
        if !bench.is_alive() {
            return Box::pin(std::future::pending());
        }
        let partition = bench.take(&record, bench.in_flight);
        Box::pin(async move {
            let deed = bench.draw();
            if matches!(deed, Deed::Panic | Deed::Fail) {
                bench.fail(&partition, record.offset());
            }
            match deed {
                Deed::Panic => panic!("{MEANT}"),
                Deed::Fail => return Err("chance has it".into()),
                Deed::After(time) => tokio::time::sleep(time).await,
                Deed::AtOnce => {}
            }
            if !bench.is_alive() {
                return std::future::pending().await;
            }
            bench.history.done(&bench.member, &partition, record.offset());
            Ok(())
        })
    }
}
