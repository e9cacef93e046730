//! Members in this process, with handlers that write down what they are given.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use actix::prelude::*;
use kafka_troupe::{ConsumerConfig, ConsumerHandle, HandlerResult, Record};
use troupe_cluster::Cluster;

use super::history::{Delivery, History};
use super::wait::until_async;
use super::zk_log::GroupHistory;

/// Runs a test in an actix system of its own. What the members log is seen with `RUST_LOG`.
pub fn run(test: impl Future<Output = ()>) {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "off".into());
    // an error: another test has done it
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
    System::new().block_on(test);
}

/// From the beginning, with quick commits; `more` goes before.
pub fn config(cluster: &Cluster, group: &str, member: &str, more: &[(&str, &str)]) -> ConsumerConfig {
    let connect = cluster.zookeeper_connect();
    let properties = [
        ("zookeeper.connect", connect.as_str()),
        ("group.id", group),
        ("consumer.id", member),
        ("auto.offset.reset", "smallest"),
        ("rebalance.backoff.ms", "1000"),
        ("auto.commit.interval.ms", "100"),
    ];
    let all = properties.iter().chain(more);
    let builder = all.fold(ConsumerConfig::builder(), |builder, (key, value)| builder.property(key, value));
    builder.build().expect("a good configuration")
}

/// Deliveries to all handlers that share it, in the order in which they happened.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<(String, Delivery)>>>);

impl Log {
    /// The record is in the member's hand now.
    pub fn note(&self, member: &str, record: &Record) {
        let mut deliveries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let delivery = Delivery {
            member: member.to_owned(),
            partition: record.partition(),
            offset: record.offset(),
            at: Some(now_ms()),
        };
        deliveries.push((record.topic().to_owned(), delivery));
    }

    pub fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub fn history(&self, topic: &str) -> History {
        let deliveries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let its = deliveries.iter().filter(|(its, _)| its == topic).map(|(_, delivery)| delivery.clone());
        History { topic: topic.to_owned(), deliveries: its.collect() }
    }

    /// Waits until everything that stands in the topic was delivered.
    pub async fn wait_for_all(&self, cluster: &Cluster, topic: &str) -> History {
        let ends = cluster.log_end_offsets(topic).expect("the topic has ends");
        until_async("delivery of all", async || {
            let history = self.history(topic);
            history.covers(&ends).map(|()| history)
        })
        .await
    }

    /// Waits until so many records were delivered since now.
    pub async fn wait_for_more(&self, count: usize) {
        let before = self.len();
        until_async(&format!("{count} more deliveries"), async || {
            let more = self.len() - before;
            if more >= count { Ok(()) } else { Err(format!("{more} more")) }
        })
        .await;
    }
}

/// Writes down each record, then does with it what it was told.
pub struct Recorder<F> {
    member: String,
    log: Log,
    act: F,
}

impl<F: Fn(&Record) -> HandlerResult + Clone + Send + Sync + Unpin + 'static> Recorder<F> {
    /// Makes recorders, for [`Builder::handle`](kafka_troupe::Builder::handle).
    pub fn factory(member: &str, log: &Log, act: F) -> impl Fn() -> Self + Send + Sync + 'static {
        let (member, log) = (member.to_owned(), log.clone());
        move || Self { member: member.clone(), log: log.clone(), act: act.clone() }
    }
}

impl<F: Unpin + 'static> Actor for Recorder<F> {
    type Context = Context<Self>;
}

impl<F: Fn(&Record) -> HandlerResult + Unpin + 'static> Handler<Record> for Recorder<F> {
    type Result = HandlerResult;

    fn handle(&mut self, record: Record, _: &mut Context<Self>) -> HandlerResult {
        self.log.note(&self.member, &record);
        (self.act)(&record)
    }
}

/// Waits until the partitions are owned by these threads (`member-index`), in order.
pub async fn wait_for_owners(cluster: &Cluster, group: &str, topic: &str, threads: &[&str]) {
    let expected: Vec<&str> = threads.to_vec();
    until_async(&format!("owners {expected:?}"), async || {
        let owners = GroupHistory::of(cluster, group).owners(topic);
        let same = owners.values().map(String::as_str).eq(expected.iter().copied());
        if same { Ok(()) } else { Err(format!("{owners:?}")) }
    })
    .await;
}

/// How often an actor was restarted, as the metrics tell.
pub async fn restarts(member: &ConsumerHandle, actor: &str) -> u64 {
    let status = member.metrics().await.expect("the member runs");
    status.actors.iter().filter(|it| it.name.starts_with(actor)).map(|it| it.restarts).sum()
}

pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    i64::try_from(since.as_millis()).expect("it is long before then")
}
