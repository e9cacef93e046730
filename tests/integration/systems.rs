//! Whole members in this process: several of them, their end, and the panic of each of their actors.

use std::time::{Duration, Instant};

use kafka_troupe::actors::chaos::CrashChild;
use kafka_troupe::{ConsumerHandle, ConsumerSystem, Record};
use troupe_cluster::{Cluster, KafkaVersion};

use crate::support::clusters::shared;
use crate::support::load::{Load, numbered};
use crate::support::system::{Log, Recorder, config, restarts, run, wait_for_owners};
use crate::support::wait::until_async;
use crate::support::zk_log::GroupHistory;

crate::on_each_version!(
    several_members_in_one_process_take_turns,
    the_panic_of_any_actor_loses_nothing,
    shutdown_commits_and_leaves_at_once,
);

async fn start(cluster: &Cluster, name: &str, member: &str, streams: u32, log: &Log) -> ConsumerHandle {
    let work = |_: &Record| {
        // so that there is always more in the queues
        std::thread::sleep(Duration::from_millis(1));
        Ok(())
    };
    let handler = Recorder::factory(member, log, work);
    let system = ConsumerSystem::builder(config(cluster, name, member, &[])).handle(name, streams, handler);
    system.start().await.expect("a member starts")
}

/// With times of one clock: no record is in a hand that does not own it at that very moment.
fn several_members_in_one_process_take_turns(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "turns");
    cluster.create_topic(name, 6, 1).unwrap();
    cluster.produce(name, numbered(9_000)).unwrap();
    let load = Load::start(cluster, name);
    run(async {
        let log = Log::default();
        let one = start(cluster, name, "m1", 2, &log).await;
        let two = start(cluster, name, "m2", 2, &log).await;
        wait_for_owners(cluster, name, name, &["m1-0", "m1-0", "m1-1", "m1-1", "m2-0", "m2-1"]).await;
        log.wait_for_more(100).await;
        let three = start(cluster, name, "m3", 2, &log).await;
        wait_for_owners(cluster, name, name, &["m1-0", "m1-1", "m2-0", "m2-1", "m3-0", "m3-1"]).await;
        log.wait_for_more(100).await;
        one.shutdown().await;
        wait_for_owners(cluster, name, name, &["m2-0", "m2-0", "m2-1", "m2-1", "m3-0", "m3-1"]).await;
        let again = start(cluster, name, "m1", 1, &log).await;
        wait_for_owners(cluster, name, name, &["m1-0", "m1-0", "m2-0", "m2-1", "m3-0", "m3-1"]).await;
        log.wait_for_more(100).await;
        load.end();
        log.wait_for_all(cluster, name).await;
        for member in [again, two, three] {
            member.shutdown().await;
        }
        let history = log.history(name);
        history.check(&GroupHistory::of(cluster, name));
        assert_eq!(history.duplicates(), 0);
    });
}

fn the_panic_of_any_actor_loses_nothing(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "crashed");
    cluster.create_topic(name, 4, 1).unwrap();
    cluster.produce(name, numbered(4_000)).unwrap();
    let load = Load::start(cluster, name);
    run(async {
        let log = Log::default();
        let member = start(cluster, name, "m", 2, &log).await;
        wait_for_owners(cluster, name, name, &["m-0", "m-0", "m-1", "m-1"]).await;
        log.wait_for_more(50).await;
        for (actor, counted) in [
            ("zk-session", "zk-session"),
            ("rebalance-coordinator", "rebalance-coordinator"),
            ("fetcher-manager", "fetcher-manager"),
            ("broker-fetchers", "broker-fetcher/"),
            ("stream-queue/crashed-0", "stream-queue/crashed-0"),
            ("stream-queue/crashed-1", "stream-queue/crashed-1"),
            ("offset-committer", "offset-committer"),
        ] {
            let before = restarts(&member, counted).await;
            member.address().send(CrashChild(actor.to_owned())).await.unwrap();
            until_async(&format!("restart of {actor}"), async || {
                let now = restarts(&member, counted).await;
                if now > before { Ok(()) } else { Err(format!("{now}")) }
            })
            .await;
            // each partition flows again
            for partition in 0..4 {
                let seen = log.history(name).of(partition).count();
                until_async(&format!("{actor} back, partition {partition}"), async || {
                    let now = log.history(name).of(partition).count();
                    if now > seen + 20 { Ok(()) } else { Err(format!("{seen} then {now}")) }
                })
                .await;
            }
        }
        load.end();
        log.wait_for_all(cluster, name).await;
        member.shutdown().await;
        let (history, zookeeper) = (log.history(name), GroupHistory::of(cluster, name));
        history.check(&zookeeper);
        assert!(history.duplicates() <= 4, "{} duplicates", history.duplicates());
        let committed: Vec<i64> = zookeeper.committed(name).into_values().collect();
        assert_eq!(committed, cluster.log_end_offsets(name).unwrap());
        assert!(zookeeper.owners(name).is_empty());
    });
}

fn shutdown_commits_and_leaves_at_once(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "ended");
    cluster.create_topic(name, 2, 1).unwrap();
    cluster.produce(name, numbered(100)).unwrap();
    run(async {
        let log = Log::default();
        let handler = Recorder::factory("m", &log, |_| Ok(()));
        // no commit but the last
        let config = config(cluster, name, "m", &[("auto.commit.interval.ms", "3600000")]);
        let member = ConsumerSystem::builder(config).handle(name, 1, handler).start().await.unwrap();
        log.wait_for_all(cluster, name).await;
        let begun = Instant::now();
        // whoever asks second must not stop the threads under the first
        tokio::join!(member.shutdown(), member.shutdown());
        assert!(begun.elapsed() < Duration::from_secs(3), "it took {:?}", begun.elapsed());
        let zookeeper = GroupHistory::of(cluster, name);
        assert_eq!(zookeeper.committed(name).into_values().collect::<Vec<_>>(), [50, 50]);
        assert_eq!(zookeeper.children("ids"), [""; 0]);
        assert!(zookeeper.owners(name).is_empty());

        let begun = Instant::now();
        member.shutdown().await;
        assert!(begun.elapsed() < Duration::from_secs(1), "it took {:?}", begun.elapsed());
        assert!(member.metrics().await.is_err());
        assert_eq!(log.len(), 100);
    });
}
