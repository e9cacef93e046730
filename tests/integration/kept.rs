//! Partitions that stay keep flowing while others move.

use kafka_troupe::{ConsumerHandle, ConsumerSystem, Record};
use troupe_cluster::{Cluster, KafkaVersion};

use crate::support::clusters::shared;
use crate::support::history::History;
use crate::support::load::{Load, numbered};
use crate::support::rounds;
use crate::support::system::{Log, Recorder, config, now_ms, run, wait_for_owners};
use crate::support::zk_log::GroupHistory;

crate::on_each_version!(what_stays_keeps_flowing_through_rebalances);

async fn start(cluster: &Cluster, group: &str, member: &str, log: &Log) -> ConsumerHandle {
    let handler = Recorder::factory(member, log, |_: &Record| Ok(()));
    // no session ends because the machine is under load
    let config = config(cluster, group, member, &[("zookeeper.session.timeout.ms", "20000")]);
    let system = ConsumerSystem::builder(config).handle("stays", 1, handler);
    system.start().await.expect("a member starts")
}

/// Since when the partitions that stay are owned: another time after they were stopped and started again.
async fn kept_since(member: &ConsumerHandle) -> Vec<(i32, i64)> {
    let status = member.metrics().await.expect("the member runs");
    let kept = status.partitions.iter().filter(|its| its.partition < 2);
    kept.map(|its| (its.partition, its.owned_since_ms)).collect()
}

/// While another joins and leaves, two of four partitions stay with the first member, at 1,000 records a second each.
fn what_stays_keeps_flowing_through_rebalances(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "stays");
    cluster.create_topic(name, 4, 1).unwrap();
    run(async {
        // the control's group never rebalances, on the same machine and topic
        let (log, control_log) = (Log::default(), Log::default());
        let one = start(cluster, name, "m1", &log).await;
        let control = start(cluster, "stays-control", "m1", &control_log).await;
        let load = Load::of(cluster, name, || numbered(80).collect());
        wait_for_owners(cluster, name, name, &["m1-0"; 4]).await;
        control_log.wait_for_more(400).await;
        log.wait_for_more(400).await;
        let (since, begun) = (kept_since(&one).await, now_ms());
        assert_eq!(since.len(), 2);
        for _ in 0..rounds().unwrap_or(3) {
            let two = start(cluster, name, "m2", &log).await;
            wait_for_owners(cluster, name, name, &["m1-0", "m1-0", "m2-0", "m2-0"]).await;
            log.wait_for_more(100).await;
            assert_eq!(kept_since(&one).await, since);
            two.shutdown().await;
            wait_for_owners(cluster, name, name, &["m1-0"; 4]).await;
            log.wait_for_more(100).await;
            assert_eq!(kept_since(&one).await, since);
        }
        let ended = now_ms();
        load.end();
        log.wait_for_all(cluster, name).await;
        let (history, zookeeper) = (log.history(name), GroupHistory::of(cluster, name));
        one.shutdown().await;
        control.shutdown().await;
        history.check(&GroupHistory::of(cluster, name));
        assert_eq!(history.duplicates(), 0);
        for partition in 0..2 {
            let tenures = zookeeper.tenures.iter().filter(|tenure| tenure.partition == partition);
            let tenures: Vec<_> = tenures.collect();
            assert_eq!(tenures.len(), 1, "{tenures:?}");
            let owner = zookeeper.node(&format!("owners/{name}/{partition}")).unwrap();
            assert_eq!(owner.created, tenures[0].from, "the same node");
        }
        check_gaps(&history, &control_log.history(name), begun, ended);
    });
}

/// Time is judged at the closing size only, on a quiet machine.
fn check_gaps(history: &History, control: &History, from: i64, to: i64) {
    let (ours, control) = (largest_gap(history, from, to), largest_gap(control, from, to));
    println!(
        "largest gap between deliveries of a kept partition: {ours} ms; without rebalances: {control} ms"
    );
    if rounds().is_some() {
        assert!(ours < 100.max(2 * control), "{ours} ms without a delivery; the control: {control} ms");
    }
}

/// Between deliveries of partitions 0 and 1, in milliseconds.
fn largest_gap(history: &History, from: i64, to: i64) -> i64 {
    let gaps = (0..2).flat_map(|partition| {
        let times = history.of(partition).filter_map(|delivery| delivery.at);
        let times: Vec<i64> = times.filter(|at| (from..=to).contains(at)).collect();
        times.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>()
    });
    gaps.max().expect("deliveries")
}
