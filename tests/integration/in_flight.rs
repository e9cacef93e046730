//! Several records of a stream with its handler at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe::{ConsumerSystem, HandlerResult, InFlight, Record, Subscription};
use troupe_cluster::{Cluster, KafkaVersion, ProduceRecord};

use crate::support::clusters::shared;
use crate::support::system::{Log, config, run, wait_for_owners};
use crate::support::wait::until_async;
use crate::support::zk_log::GroupHistory;

crate::on_each_version!(
    by_key_each_key_s_records_come_in_order_many_at_once_through_a_join_and_a_leave,
    a_window_is_as_wide_as_it_may_be_and_leaves_nothing_out,
);

const RECORDS: usize = 1_500;
const KEYS: usize = 40;

/// What was done, by all members.
#[derive(Clone, Default)]
struct Work(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    done: BTreeSet<(i32, i64)>,
    keys: BTreeMap<(i32, i64), Vec<u8>>,
    at_once: BTreeMap<&'static str, usize>,
    most: usize,
    out_of_order: Vec<String>,
}

struct Worker {
    member: &'static str,
    log: Log,
    work: Work,
}

impl Actor for Worker {
    type Context = Context<Self>;
}

impl Handler<Record> for Worker {
    type Result = ResponseFuture<HandlerResult>;

    fn handle(&mut self, record: Record, _: &mut Self::Context) -> Self::Result {
        self.log.note(self.member, &record);
        self.work.begin(self.member, &record);
        let (member, work) = (self.member, self.work.clone());
        Box::pin(async move {
            // one in 7 takes ten times as long
            let millis = if record.offset() % 7 == 3 { 50 } else { 5 };
            tokio::time::sleep(Duration::from_millis(millis)).await;
            work.end(member, &record);
            Ok(())
        })
    }
}

impl Work {
    fn begin(&self, member: &'static str, record: &Record) {
        let mut inner = self.0.lock().unwrap();
        let (place, key) = ((record.partition(), record.offset()), record.key().unwrap_or_default().to_vec());
        let early = inner.keys.iter().filter(|(at, other)| {
            at.0 == place.0 && at.1 < place.1 && **other == key && !inner.done.contains(at)
        });
        let early: Vec<_> = early.map(|(at, _)| format!("{place:?} before {at:?}")).collect();
        inner.out_of_order.extend(early);
        inner.keys.insert(place, key);
        let at_once = inner.at_once.entry(member).or_default();
        *at_once += 1;
        let at_once = *at_once;
        inner.most = inner.most.max(at_once);
    }

    fn end(&self, member: &'static str, record: &Record) {
        let mut inner = self.0.lock().unwrap();
        inner.done.insert((record.partition(), record.offset()));
        *inner.at_once.entry(member).or_default() -= 1;
    }

    fn done(&self) -> usize {
        self.0.lock().unwrap().done.len()
    }
}

fn produce(cluster: &Cluster, topic: &str) {
    cluster.create_topic(topic, 3, 1).unwrap();
    let record = |number: usize| ProduceRecord {
        key: Some(format!("key {}", number % KEYS).into_bytes()),
        ..ProduceRecord::value(format!("{number}"))
    };
    cluster.produce(topic, (0..RECORDS).map(record)).unwrap();
}

async fn wait_for(work: &Work, count: usize) {
    until_async(&format!("{count} records"), async || {
        let done = work.done();
        if done >= count { Ok(()) } else { Err(format!("{done}")) }
    })
    .await;
}

fn member(
    cluster: &Cluster,
    topic: &str,
    member: &'static str,
    in_flight: InFlight,
    log: &Log,
    work: &Work,
) -> kafka_troupe::Builder {
    let (log, work) = (log.clone(), work.clone());
    let subscription = Subscription::topic(topic).in_flight(in_flight);
    let subscribed = subscription.handle(move || Worker { member, log: log.clone(), work: work.clone() });
    ConsumerSystem::builder(config(cluster, topic, member, &[])).subscription(subscribed)
}

fn by_key_each_key_s_records_come_in_order_many_at_once_through_a_join_and_a_leave(version: KafkaVersion) {
    let (cluster, topic) = (shared(version), "by_key");
    produce(cluster, topic);
    run(async {
        let (log, work, limit) = (Log::default(), Work::default(), InFlight::by_key(16));
        let first = member(cluster, topic, "a", limit, &log, &work).start().await.unwrap();
        wait_for(&work, 100).await;
        let second = member(cluster, topic, "b", limit, &log, &work).start().await.unwrap();
        wait_for_owners(cluster, topic, topic, &["a-0", "a-0", "b-0"]).await;
        wait_for(&work, 600).await;
        second.shutdown().await;
        log.wait_for_all(cluster, topic).await;
        wait_for(&work, RECORDS).await;
        first.shutdown().await;
        let inner = work.0.lock().unwrap();
        assert_eq!(inner.out_of_order, [""; 0]);
        assert!((9..=16).contains(&inner.most), "{} at once", inner.most);
        drop(inner);
        let zookeeper = GroupHistory::of(cluster, topic);
        log.history(topic).check_times(&zookeeper);
        zookeeper.check_commits_only_grow();
    });
}

fn a_window_is_as_wide_as_it_may_be_and_leaves_nothing_out(version: KafkaVersion) {
    let (cluster, topic) = (shared(version), "windowed");
    produce(cluster, topic);
    run(async {
        let (log, work) = (Log::default(), Work::default());
        let builder = member(cluster, topic, "a", InFlight::window(32), &log, &work);
        let system = builder.start().await.unwrap();
        wait_for(&work, RECORDS).await;
        system.shutdown().await;
        assert_eq!((work.0.lock().unwrap().most, log.len()), (32, RECORDS), "each came once");
        log.history(topic).check(&GroupHistory::of(cluster, topic));
    });
}
