//! Commits that are asked for: what is stored, and what is not touched.

use std::time::Duration;

use actix::prelude::*;
use futures_util::StreamExt;
use kafka_troupe::{
    ConsumerHandle, ConsumerSystem, HandlerResult, KafkaStream, Offsets, Record, TopicPartition,
};
use tokio::time::{sleep, timeout};
use troupe_cluster::{Cluster, KafkaVersion, ProduceRecord};

use crate::support::clusters::shared;
use crate::support::load::{Load, numbered};
use crate::support::system::{Log, Recorder, config, run, wait_for_owners};
use crate::support::wait::{PATIENCE, until_async};
use crate::support::zk_log::GroupHistory;

crate::on_each_version!(
    b22a_without_automatic_commit_three_rebalances_write_no_offset,
    b22d_an_explicit_commit_is_stored_and_moves_nothing_else,
    what_a_handler_commits_in_its_hand_is_not_taken_back,
    what_handlers_commit_before_their_partitions_go_stands,
);

const BY_HAND: (&str, &str) = ("auto.commit.enable", "false");

/// Takes `takes` for each record, then commits it.
struct Committing {
    member: &'static str,
    log: Log,
    takes: Duration,
    offsets: Offsets,
}

impl Committing {
    fn factory(
        member: &'static str,
        log: &Log,
        takes: Duration,
        offsets: Offsets,
    ) -> impl Fn() -> Self + Send + Sync + 'static {
        let log = log.clone();
        move || Self { member, log: log.clone(), takes, offsets: offsets.clone() }
    }
}

impl Actor for Committing {
    type Context = Context<Self>;
}

impl Handler<Record> for Committing {
    type Result = ResponseFuture<HandlerResult>;

    fn handle(&mut self, record: Record, _: &mut Context<Self>) -> Self::Result {
        self.log.note(self.member, &record);
        let (takes, offsets) = (self.takes, self.offsets.clone());
        Box::pin(async move {
            sleep(takes).await;
            offsets.commit_record(&record).await?;
            Ok(())
        })
    }
}

/// So many records more in each of two partitions.
fn fill(cluster: &Cluster, name: &str, each: usize) {
    for partition in 0..2 {
        let record = || ProduceRecord { partition: Some(partition), ..ProduceRecord::value("x") };
        cluster.produce(name, (0..each).map(|_| record())).unwrap();
    }
}

async fn pulling(cluster: &Cluster, name: &str, streams: u32) -> (ConsumerHandle, Vec<KafkaStream>) {
    let config = config(cluster, name, "m1", &[BY_HAND]);
    let system = ConsumerSystem::builder(config).pull(name, streams).start().await.unwrap();
    let streams = system.streams(name);
    (system, streams)
}

/// The offset of what comes next.
async fn next(stream: &mut KafkaStream) -> i64 {
    timeout(PATIENCE, stream.next()).await.unwrap().unwrap().unwrap().offset()
}

fn b22a_without_automatic_commit_three_rebalances_write_no_offset(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "uncommitted");
    cluster.create_topic(name, 2, 1).unwrap();
    fill(cluster, name, 5);
    run(async {
        let (one, mut streams) = pulling(cluster, name, 1).await;
        for _ in 0..10 {
            next(&mut streams[0]).await;
        }
        streams[0].ack();
        let log = Log::default();
        for round in 1..=3 {
            let handler = Recorder::factory("m2", &log, |_: &Record| Ok(()));
            let two = ConsumerSystem::builder(config(cluster, name, "m2", &[BY_HAND]));
            let two = two.handle(name, 1, handler).start().await.unwrap();
            wait_for_owners(cluster, name, name, &["m1-0", "m2-0"]).await;
            delivered(&log, 5 * round).await;
            two.shutdown().await;
            wait_for_owners(cluster, name, name, &["m1-0", "m1-0"]).await;
        }
        assert_eq!(GroupHistory::of(cluster, name).commits, []);
        // asked for, and unchanged by one more
        let partition = TopicPartition::new(name, 0);
        assert_eq!(one.commit_offsets([(partition, 3)]).await.unwrap().all(), Ok(1));
        let two = ConsumerSystem::builder(config(cluster, name, "m2", &[BY_HAND])).pull(name, 1);
        let two = two.start().await.unwrap();
        wait_for_owners(cluster, name, name, &["m1-0", "m2-0"]).await;
        one.shutdown().await;
        wait_for_owners(cluster, name, name, &["m2-0", "m2-0"]).await;
        two.shutdown().await;
        assert_eq!(written(cluster, name, 0), [3]);
        assert_eq!(written(cluster, name, 1), Vec::<i64>::new());
    });
}

async fn delivered(log: &Log, count: usize) {
    let look = async || if log.len() >= count { Ok(()) } else { Err(format!("{}", log.len())) };
    until_async(&format!("{count} deliveries"), look).await;
}

/// Every value that the offset node was given.
fn written(cluster: &Cluster, name: &str, partition: i32) -> Vec<i64> {
    let which = format!("{name}/{partition}");
    let commits = GroupHistory::of(cluster, name).commits.into_iter();
    commits.filter(|(_, its, _)| *its == which).map(|(_, _, offset)| offset).collect()
}

fn b22d_an_explicit_commit_is_stored_and_moves_nothing_else(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "explicit");
    cluster.create_topic(name, 2, 1).unwrap();
    fill(cluster, name, 6);
    run(async {
        let (system, mut streams) = pulling(cluster, name, 2).await;
        for stream in &mut streams {
            for offset in 0..6 {
                assert_eq!(next(stream).await, offset);
            }
            stream.ack();
        }
        let partition = TopicPartition::new(name, 0);
        assert_eq!(system.commit_offsets([(partition.clone(), 2)]).await.unwrap().all(), Ok(1));
        fill(cluster, name, 1);
        for stream in &mut streams {
            assert_eq!(next(stream).await, 6);
        }
        system.shutdown().await;
        assert_eq!((written(cluster, name, 0), written(cluster, name, 1)), (vec![2], vec![]));
        let (again, mut streams) = pulling(cluster, name, 2).await;
        let mut first = Vec::new();
        for stream in &mut streams {
            first.push(next(stream).await);
        }
        assert_eq!(first, [2, 0], "what is stored is where it begins");
        again.shutdown().await;
    });
}

/// Automatic commits go by before and after, with the record still in hand.
fn what_a_handler_commits_in_its_hand_is_not_taken_back(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "in-hand");
    cluster.create_topic(name, 1, 1).unwrap();
    cluster.produce(name, numbered(20)).unwrap();
    run(async {
        let log = Log::default();
        let builder =
            ConsumerSystem::builder(config(cluster, name, "m", &[("auto.commit.interval.ms", "10")]));
        let make = Committing::factory("m", &log, Duration::from_millis(35), builder.offsets());
        let system = builder.handle(name, 1, make).start().await.unwrap();
        log.wait_for_all(cluster, name).await;
        system.shutdown().await;
        // 0 is the first position; each was committed in hand, and no more than once
        assert_eq!(written(cluster, name, 0), (0..=20).collect::<Vec<_>>());
        log.history(name).check(&GroupHistory::of(cluster, name));
    });
}

/// Members come and go while each record is committed by its handler, and by nothing else.
fn what_handlers_commit_before_their_partitions_go_stands(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "stands");
    cluster.create_topic(name, 4, 1).unwrap();
    let load = Load::start(cluster, name);
    run(async {
        let log = Log::default();
        let start = async |member: &'static str| {
            let builder = ConsumerSystem::builder(config(cluster, name, member, &[BY_HAND]));
            let make = Committing::factory(member, &log, Duration::from_millis(1), builder.offsets());
            builder.handle(name, 2, make).start().await.unwrap()
        };
        let one = start("m1").await;
        wait_for_owners(cluster, name, name, &["m1-0", "m1-0", "m1-1", "m1-1"]).await;
        for _ in 0..2 {
            given_to(&log, name, ["m1"; 4]).await;
            let two = start("m2").await;
            wait_for_owners(cluster, name, name, &["m1-0", "m1-1", "m2-0", "m2-1"]).await;
            given_to(&log, name, ["m1", "m1", "m2", "m2"]).await;
            two.shutdown().await;
            wait_for_owners(cluster, name, name, &["m1-0", "m1-0", "m1-1", "m1-1"]).await;
        }
        given_to(&log, name, ["m1"; 4]).await;
        load.end();
        log.wait_for_all(cluster, name).await;
        one.shutdown().await;
        let history = log.history(name);
        history.check(&GroupHistory::of(cluster, name));
        assert_eq!(history.duplicates(), 0);
        let ends = cluster.log_end_offsets(name).unwrap();
        let committed: Vec<_> = GroupHistory::of(cluster, name).committed(name).into_values().collect();
        assert_eq!(committed, ends);
    });
}

/// Waits until the last record of each partition was given to this member.
async fn given_to(log: &Log, name: &str, members: [&str; 4]) {
    until_async(&format!("records for {members:?}"), async || {
        let history = log.history(name);
        let last = [0, 1, 2, 3].map(|partition| history.of(partition).last().map(|it| it.member.clone()));
        let all = last.iter().zip(members).all(|(last, member)| last.as_deref() == Some(member));
        if all { Ok(()) } else { Err(format!("{last:?}")) }
    })
    .await;
}
