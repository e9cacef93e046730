//! Troupe: handler actors, one record at a time, and pulled streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use actix::prelude::*;
use futures_util::StreamExt;
use kafka_troupe::{ConsumerConfig, ConsumerSystem, HandlerResult, KafkaStream, Record};
use tokio::sync::Notify;

use crate::contender::{Job, Tally};
use crate::{PARTITIONS, Result, TOPIC};

/// What the streams of one run share; touched once per partition, not per record.
struct Course {
    last_offset: i64,
    left: AtomicI32,
    records: AtomicU64,
    bytes: AtomicU64,
    done: Notify,
    first: std::sync::OnceLock<Instant>,
}

impl Course {
    fn new(job: &Job) -> Arc<Self> {
        Arc::new(Self {
            last_offset: job.per_partition - 1,
            left: AtomicI32::new(PARTITIONS),
            records: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            done: Notify::new(),
            first: std::sync::OnceLock::new(),
        })
    }

    async fn run(&self) -> Tally {
        self.done.notified().await;
        let nanos = self.first.get().map_or(0, |first| first.elapsed().as_nanos());
        Tally { records: self.records.load(Relaxed), bytes: self.bytes.load(Relaxed), nanos }
    }
}

/// One stream's share.
struct Runner {
    course: Arc<Course>,
    tally: Tally,
}

impl Runner {
    fn new(course: &Arc<Course>) -> Self {
        Self { course: Arc::clone(course), tally: Tally::default() }
    }

    fn take(&mut self, record: &Record) {
        if self.tally.records == 0 {
            self.course.first.get_or_init(Instant::now);
        }
        self.tally.add(record.value());
        if record.offset() == self.course.last_offset {
            self.end_of_partition();
        }
    }

    fn end_of_partition(&mut self) {
        let Tally { records, bytes, .. } = self.tally;
        self.course.records.fetch_add(records, Relaxed);
        self.course.bytes.fetch_add(bytes, Relaxed);
        self.tally = Tally::default();
        if self.course.left.fetch_sub(1, Relaxed) == 1 {
            self.course.done.notify_one();
        }
    }
}

impl Actor for Runner {
    type Context = Context<Self>;
}

impl Handler<Record> for Runner {
    type Result = HandlerResult;

    fn handle(&mut self, record: Record, _: &mut Context<Self>) -> HandlerResult {
        self.take(&record);
        Ok(())
    }
}

fn config(job: &Job) -> Result<ConsumerConfig> {
    let mut config = ConsumerConfig::builder()
        .property("zookeeper.connect", &job.zookeeper)
        .property("group.id", &job.group)
        .property("auto.offset.reset", "smallest");
    for property in &job.properties {
        let (key, value) = property.split_once('=').ok_or("--property wants KEY=VALUE")?;
        config = config.property(key, value);
    }
    Ok(config.build()?)
}

/// Reads the whole topic with handler actors.
pub fn handle(job: &Job) -> Result<Tally> {
    System::new().block_on(async {
        let course = Course::new(job);
        let make = {
            let course = Arc::clone(&course);
            move || Runner::new(&course)
        };
        let system = ConsumerSystem::builder(config(job)?).handle(TOPIC, job.streams, make).start().await?;
        let tally = course.run().await;
        system.shutdown().await;
        Ok(tally)
    })
}

/// Reads the whole topic by pulling.
pub fn pull(job: &Job) -> Result<Tally> {
    System::new().block_on(async {
        let course = Course::new(job);
        let system = ConsumerSystem::builder(config(job)?).pull(TOPIC, job.streams).start().await?;
        for stream in system.streams(TOPIC) {
            actix::spawn(drain(stream, Runner::new(&course)));
        }
        let tally = course.run().await;
        system.shutdown().await;
        Ok(tally)
    })
}

async fn drain(mut stream: KafkaStream, mut runner: Runner) {
    while let Some(record) = stream.next().await {
        match record {
            Ok(record) => runner.take(&record),
            Err(error) => eprintln!("{error}"),
        }
    }
}
