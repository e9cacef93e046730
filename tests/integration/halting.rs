//! Partitions that are stopped by a failure policy or paused, and handlers that are stuck, on real brokers.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use kafka_troupe::{ConsumerHandle, ConsumerSystem, FailurePolicy, Record, StatusSnapshot, Subscription};
use kafka_troupe::{Then, TopicPartition};
use troupe_cluster::{Cluster, KafkaVersion};

use crate::support::clusters::shared;
use crate::support::load::numbered;
use crate::support::system::{Log, Recorder, config, run, wait_for_owners};
use crate::support::wait::until_async;
use crate::support::zk_log::GroupHistory;

crate::on_each_version!(
    a_record_that_always_fails_stops_its_partition_until_it_is_resumed,
    records_that_are_skipped_are_told_and_committed,
    pauses_across_rebalances_neither_lose_nor_repeat_a_record,
    a_handler_that_blocks_its_thread_is_noticed_as_stuck_until_it_goes_on,
);

async fn until_status(
    member: &ConsumerHandle,
    what: &str,
    holds: impl Fn(&StatusSnapshot) -> bool,
) -> StatusSnapshot {
    until_async(what, async || {
        let status = member.metrics().await.expect("the member runs");
        if holds(&status) { Ok(status) } else { Err(format!("{:?} {:?}", status.halted, status.stuck)) }
    })
    .await
}

fn soon(times: u32) -> FailurePolicy {
    FailurePolicy::retry(times).backoff(Duration::from_millis(10), Duration::from_millis(50))
}

fn committed(cluster: &Cluster, group: &str, partition: i32) -> Option<i64> {
    GroupHistory::of(cluster, group).committed(group).get(&partition).copied()
}

fn a_record_that_always_fails_stops_its_partition_until_it_is_resumed(version: KafkaVersion) {
    let cluster = shared(version);
    let topic = "stopped";
    cluster.create_topic(topic, 4, 1).unwrap();
    cluster.produce(topic, numbered(400)).unwrap();
    run(async {
        let (log, bad) = (Log::default(), Arc::new(AtomicBool::new(true)));
        let is_bad = Arc::clone(&bad);
        let act = move |record: &Record| match record.partition() == 1 && record.offset() == 33 {
            true if is_bad.load(SeqCst) => Err("it is bad".into()),
            _ => Ok(()),
        };
        let subscription = Subscription::topic(topic).streams(2).on_failure(soon(2));
        let subscribed = subscription.handle(Recorder::factory("m", &log, act));
        let system = ConsumerSystem::builder(config(cluster, topic, "m", &[])).subscription(subscribed);
        let system = system.start().await.unwrap();
        let all_others = |status: &StatusSnapshot| {
            let done = |it: &&_| -> bool {
                let it: &kafka_troupe::proto::schemas::status::v1::OwnedPartition = it;
                it.acked == 100
            };
            !status.halted.is_empty() && status.partitions.iter().filter(done).count() == 3
        };
        let status = until_status(&system, "the others are done", all_others).await;
        let halted = &status.halted[0];
        assert_eq!((halted.partition, halted.offset, halted.attempts), (1, 33, 3));
        assert_eq!((&*halted.reason, &*halted.why), ("failed", "it is bad"));
        system.commit().await.unwrap().all().unwrap();
        assert_eq!(committed(cluster, topic, 1), Some(33));
        bad.store(false, SeqCst);
        system.resume([TopicPartition::new(topic, 1)]).await.unwrap();
        let history = log.wait_for_all(cluster, topic).await;
        let offsets: Vec<_> = history.of(1).map(|delivery| delivery.offset).collect();
        assert_eq!(offsets, (0..33).chain([33; 3]).chain(33..100).collect::<Vec<_>>());
        assert_eq!(history.duplicates(), 3);
        until_status(&system, "it is halted no more", |status| status.halted.is_empty()).await;
        system.shutdown().await;
        log.history(topic).check(&GroupHistory::of(cluster, topic));
        assert_eq!(committed(cluster, topic, 1), Some(100));
    });
}

fn records_that_are_skipped_are_told_and_committed(version: KafkaVersion) {
    let cluster = shared(version);
    let topic = "skipped";
    cluster.create_topic(topic, 2, 1).unwrap();
    cluster.produce(topic, numbered(200)).unwrap();
    run(async {
        let log = Log::default();
        let act = |record: &Record| match record.offset() % 10 {
            3 => Err("no".into()),
            7 => panic!("a handler's panic, as it should be"),
            _ => Ok(()),
        };
        let subscription = Subscription::topic(topic).on_failure(soon(1).then(Then::Skip));
        let subscribed = subscription.handle(Recorder::factory("m", &log, act));
        let system = ConsumerSystem::builder(config(cluster, topic, "m", &[])).subscription(subscribed);
        let system = system.start().await.unwrap();
        let history = log.wait_for_all(cluster, topic).await;
        assert_eq!(history.duplicates(), 40, "each of the 40 is tried twice");
        let skipped = |status: &StatusSnapshot| status.streams.iter().map(|it| it.skipped).sum::<u64>();
        let status = until_status(&system, "all are told", |status| skipped(status) == 40).await;
        assert!(status.streams[0].last_skipped.is_some() && status.halted.is_empty());
        system.shutdown().await;
        assert_eq!([0, 1].map(|partition| committed(cluster, topic, partition)), [Some(100); 2]);
    });
}

fn pauses_across_rebalances_neither_lose_nor_repeat_a_record(version: KafkaVersion) {
    let cluster = shared(version);
    let topic = "paused";
    cluster.create_topic(topic, 4, 1).unwrap();
    cluster.produce(topic, numbered(400)).unwrap();
    run(async {
        let log = Log::default();
        let member = |id: &str| {
            let subscription = Subscription::topic(topic);
            let subscribed = subscription.handle(Recorder::factory(id, &log, |_| Ok(())));
            ConsumerSystem::builder(config(cluster, topic, id, &[])).subscription(subscribed)
        };
        let one = member("m1").start().await.unwrap();
        log.wait_for_all(cluster, topic).await;
        one.pause_topic(topic).await.unwrap();
        cluster.produce(topic, numbered(400)).unwrap();
        let two = member("m2").start().await.unwrap();
        wait_for_owners(cluster, topic, topic, &["m1-0", "m1-0", "m2-0", "m2-0"]).await;
        // the next owner is not paused
        until_async("the second's share", async || {
            let history = log.history(topic);
            history.covers(&[100, 100, 200, 200])
        })
        .await;
        two.shutdown().await;
        wait_for_owners(cluster, topic, topic, &["m1-0"; 4]).await;
        // claimed while the topic is paused
        let all = |status: &StatusSnapshot| status.halted.len() == 4;
        let status = until_status(&one, "all are paused", all).await;
        assert!(status.halted.iter().all(|it| it.reason == "topic_paused"), "{:?}", status.halted);
        cluster.produce(topic, numbered(400)).unwrap();
        let before = log.len();
        for _ in 0..20 {
            one.resume_topic(topic).await.unwrap();
            one.pause([TopicPartition::new(topic, 0)]).await.unwrap();
            one.pause_topic(topic).await.unwrap();
            one.resume([TopicPartition::new(topic, 0)]).await.unwrap();
        }
        one.resume_topic(topic).await.unwrap();
        let history = log.wait_for_all(cluster, topic).await;
        assert!(before < 1_200, "nothing of it came before: {before}");
        one.shutdown().await;
        history.check(&GroupHistory::of(cluster, topic));
        assert_eq!(history.duplicates(), 0);
        assert_eq!(committed(cluster, topic, 3), Some(300));
    });
}

fn a_handler_that_blocks_its_thread_is_noticed_as_stuck_until_it_goes_on(version: KafkaVersion) {
    let cluster = shared(version);
    let topic = "stuck";
    cluster.create_topic(topic, 2, 1).unwrap();
    cluster.produce(topic, numbered(40)).unwrap();
    run(async {
        let log = Log::default();
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        let block = move |record: &Record| {
            if (record.partition(), record.offset()) == (1, 7) {
                // an error: the test is over
                let _ = released.lock().unwrap().recv();
            }
            Ok(())
        };
        let config = config(cluster, topic, "m", &[("troupe.handler.stuck.ms", "1500")]);
        let system = ConsumerSystem::builder(config);
        let system = system.handle(topic, 2, Recorder::factory("m", &log, block)).start().await.unwrap();
        let status = until_status(&system, "it is noticed", |status| !status.stuck.is_empty()).await;
        let stuck = &status.stuck[0];
        assert_eq!((stuck.partition, stuck.offset, &*stuck.thread), (1, 7, "stuck_m-1"));
        assert!(status.taken_ms - stuck.since_ms >= 1_500, "{stuck:?}");
        assert_eq!(status.stuck.len(), 1, "the other goes on");
        release.send(()).unwrap();
        until_status(&system, "it is forgotten", |status| status.stuck.is_empty()).await;
        log.wait_for_all(cluster, topic).await;
        system.shutdown().await;
        assert_eq!(log.len(), 40);
    });
}
