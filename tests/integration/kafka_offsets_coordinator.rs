//! The broker that keeps a group's offsets is killed under it, comes back, or is not there at all.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kafka_troupe::ConsumerHandle;
use troupe_cluster::{Cluster, KafkaVersion, ProduceRecord};

use crate::support::clusters::builder;
use crate::support::history::History;
use crate::support::load::{Load, numbered};
use crate::support::stored::{OFFSETS, ends, start, stored, wait_for_all_stored};
use crate::support::system::{Log, run, wait_for_owners};
use crate::support::wait::{until, until_async};

#[test]
fn b23_commits_follow_the_coordinator_of_1_1_1_and_a_rebalance_in_its_outage_goes_on_at_the_right_place() {
    commits_follow_the_coordinator(KafkaVersion::V1_1_1);
}

#[test]
fn b23_commits_follow_the_coordinator_of_3_9_1_and_a_rebalance_in_its_outage_goes_on_at_the_right_place() {
    commits_follow_the_coordinator(KafkaVersion::V3_9_1);
}

const PARTITIONS: i32 = 6;
const QUICK: [(&str, &str); 1] = [("offsets.channel.backoff.ms", "100")];

/// Its broker, which may be the same one again, is killed twice: a member joins in the first outage, and one leaves in
/// the second.
fn commits_follow_the_coordinator(version: KafkaVersion) {
    let name = "followed";
    let cluster = builder(version).brokers(3).broker_property("offsets.topic.replication.factor", "3");
    let cluster = cluster.start().unwrap();
    cluster.create_topic(name, PARTITIONS, 3).unwrap();
    let begun = Instant::now();
    let stage = |what: &str| println!("{version}: {what} after {:.1?}", begun.elapsed());
    run(async {
        let log = Log::default();
        let load = Load::start(&cluster, name);
        let one = start(&cluster, name, "m1", &log, &QUICK).await;
        let two = start(&cluster, name, "m2", &log, &QUICK).await;
        wait_for_owners(&cluster, name, name, &["m1-0", "m1-0", "m1-1", "m1-1", "m2-0", "m2-1"]).await;
        wait_for_more_stored(&cluster, name).await;

        stage("two members commit");
        let first = Outage::begin(&cluster, name, &log);
        let three = start(&cluster, name, "m3", &log, &QUICK).await;
        wait_for_owners(&cluster, name, name, &["m1-0", "m1-1", "m2-0", "m2-1", "m3-0", "m3-1"]).await;
        wait_for_deliveries_of(&log, name, "m3").await;
        first.wait_for_another_coordinator(&cluster, name).await;
        wait_for_more_stored(&cluster, name).await;
        stage("three members commit without the broker");
        first.end(&cluster, name);
        stage("it is back");
        wait_for_more_stored(&cluster, name).await;

        let second = Outage::begin(&cluster, name, &log);
        let begun = Instant::now();
        one.shutdown().await;
        println!("{version}: left in {:.1?} while the coordinator is down", begun.elapsed());
        assert!(begun.elapsed() < Duration::from_secs(15), "it took {:?}", begun.elapsed());
        wait_for_owners(&cluster, name, name, &["m2-0", "m2-0", "m2-1", "m2-1", "m3-0", "m3-1"]).await;
        second.wait_for_another_coordinator(&cluster, name).await;
        wait_for_more_stored(&cluster, name).await;
        stage("two members commit without another broker");

        let produced = load.end();
        wait_for_ends(&cluster, name, produced);
        log.wait_for_all(&cluster, name).await;
        tokio::join!(two.shutdown(), three.shutdown());
        assert_eq!(stored(&cluster, name), ends(&cluster, name));
        let history = log.history(name);
        check(&history, &[first, second]);
        let again = history.duplicates();
        stage(&format!("{again} of {} were handled again", history.deliveries.len()));
    });
}

/// The time without the broker that was the group's coordinator.
struct Outage {
    broker: usize,
    /// When it was killed; less is never read afterwards.
    stored: BTreeMap<i32, i64>,
    /// How many records had been delivered by then.
    delivered: usize,
}

impl Outage {
    fn begin(cluster: &Cluster, group: &str, log: &Log) -> Self {
        let (delivered, stored) = (log.len(), stored(cluster, group));
        let broker = usize::try_from(cluster.client().coordinator(group).unwrap()).unwrap();
        cluster.broker(broker).kill().unwrap();
        Self { broker, stored, delivered }
    }

    async fn wait_for_another_coordinator(&self, cluster: &Cluster, group: &str) {
        until_async("another coordinator", async || {
            match usize::try_from(cluster.client().coordinator(group).unwrap()) {
                Ok(now) if now != self.broker => Ok(()),
                now => Err(format!("{now:?}")),
            }
        })
        .await;
    }

    /// The broker comes back, and has caught up.
    fn end(&self, cluster: &Cluster, topic: &str) {
        cluster.broker(self.broker).restart().unwrap();
        for topic in [topic, OFFSETS] {
            until(&format!("all replicas of {topic}"), || {
                let seen = cluster.client().partitions(topic).map_err(|error| error.to_string())?;
                let all = seen.iter().all(|partition| partition.isr.len() == partition.replicas.len());
                if all { Ok(()) } else { Err(format!("{seen:?}")) }
            });
        }
    }
}

/// Nothing is skipped, nothing is handled again before there is an outage, and then only what was not stored.
#[track_caller]
fn check(history: &History, outages: &[Outage]) {
    history.check_nothing_is_skipped();
    let mut next: BTreeMap<i32, i64> = BTreeMap::new();
    for (index, delivery) in history.deliveries.iter().enumerate() {
        let next = next.entry(delivery.partition).or_insert(0);
        if delivery.offset < *next {
            let outage = outages.iter().rfind(|outage| outage.delivered <= index);
            let stored = outage.and_then(|outage| outage.stored.get(&delivery.partition));
            assert!(
                stored.is_some_and(|stored| delivery.offset >= *stored),
                "{delivery:?} again; stored: {stored:?}"
            );
        }
        *next = (*next).max(delivery.offset + 1);
    }
}

/// Waits until a good many more are stored of every partition.
async fn wait_for_more_stored(cluster: &Cluster, group: &str) {
    let before = stored(cluster, group);
    let wished = |partition: i32| before.get(&partition).copied().unwrap_or(0) + 30;
    until_async(&format!("more than {before:?} in Kafka"), async || {
        let now = stored(cluster, group);
        let missing = (0..PARTITIONS).find(|at| now.get(at).is_none_or(|offset| *offset < wished(*at)));
        missing.map_or(Ok(()), |partition| Err(format!("{partition} of {now:?}")))
    })
    .await;
}

/// A leader that is new tells the end that it has learnt from the one before, which may be behind.
fn wait_for_ends(cluster: &Cluster, topic: &str, produced: u64) {
    until(&format!("the ends of {produced} records"), || {
        let ends = ends(cluster, topic);
        let all = u64::try_from(ends.values().sum::<i64>()) == Ok(produced);
        if all { Ok(()) } else { Err(format!("{ends:?}")) }
    });
}

async fn wait_for_deliveries_of(log: &Log, topic: &str, member: &str) {
    until_async(&format!("deliveries of {member}"), async || {
        match log.history(topic).deliveries.iter().any(|delivery| delivery.member == member) {
            true => Ok(()),
            false => Err("none".to_owned()),
        }
    })
    .await;
}

/// The group's offsets are on one broker only, and it is down: when the member starts, and when it leaves.
#[test]
fn a_coordinator_that_is_not_there_is_named_and_keeps_nobody_from_leaving() {
    let name = "unreachable";
    let cluster = builder(KafkaVersion::V3_9_1).brokers(2).start().unwrap();
    cluster.create_topic(name, 2, 2).unwrap();
    cluster.produce(name, numbered(100)).unwrap();
    let more = [
        ("offsets.channel.backoff.ms", "100"),
        ("offsets.commit.max.retries", "2"),
        ("rebalance.backoff.ms", "500"),
        ("rebalance.max.retries", "3"),
    ];
    run(async {
        let log = Log::default();
        let member = start(&cluster, name, "m", &log, &more).await;
        log.wait_for_all(&cluster, name).await;
        member.shutdown().await;
        let coordinator = usize::try_from(cluster.client().coordinator(name).unwrap()).unwrap();
        let broker = cluster.broker(coordinator);

        broker.kill().unwrap();
        cluster.produce(name, numbered(100)).unwrap();
        let member = start(&cluster, name, "m", &log, &more).await;
        let failing = until_async("why it fails", async || {
            let status = member.metrics().await.unwrap();
            if status.failing.is_empty() { Err(format!("{status:?}")) } else { Ok(status.failing) }
        })
        .await;
        println!("{failing}");
        assert!(failing.contains(&format!("group {name}")) && failing.contains("coordinator"), "{failing}");
        leaves_within(Duration::from_secs(10), &member).await;
        assert_eq!(log.len(), 100, "nothing is handled without a place to begin at");

        let member = start(&cluster, name, "m", &log, &more).await;
        broker.restart().unwrap();
        log.wait_for_all(&cluster, name).await;
        wait_for_all_stored(&cluster, name).await;
        assert_eq!(log.history(name).duplicates(), 0);

        broker.kill().unwrap();
        cluster.produce(name, numbered(100)).unwrap();
        log.wait_for_all(&cluster, name).await;
        let refused = member.commit().await.unwrap().all().unwrap_err().to_string();
        println!("{refused}");
        assert!(refused.contains(&format!("group {name}")) && refused.contains("coordinator"), "{refused}");
        leaves_within(Duration::from_secs(10), &member).await;

        broker.restart().unwrap();
        let member = start(&cluster, name, "m", &log, &more).await;
        log.wait_for_more(100).await;
        wait_for_all_stored(&cluster, name).await;
        member.shutdown().await;
        assert_eq!(log.history(name).duplicates(), 100, "what could not be committed");
    });
}

/// What it could not commit is delivered again.
#[test]
fn a_shutdown_ends_while_the_coordinator_is_silent() {
    let (cluster, name) = (builder(KafkaVersion::V3_9_1).start().unwrap(), "silent");
    cluster.create_topic(name, 3, 1).unwrap();
    cluster.produce(name, numbered(300)).unwrap();
    run(async {
        let log = Log::default();
        let first = start(&cluster, name, "m", &log, &[]).await;
        log.wait_for_all(&cluster, name).await;
        cluster.broker(0).pause().unwrap();
        let began = Instant::now();
        first.shutdown().await;
        // the drain time, and a request in flight as long as the lease
        assert!(began.elapsed() < Duration::from_secs(12), "{:?}", began.elapsed());
        cluster.broker(0).resume().unwrap();
        cluster.produce(name, numbered(300)).unwrap();
        let second = start(&cluster, name, "m", &log, &[]).await;
        log.wait_for_all(&cluster, name).await;
        second.shutdown().await;
        assert_eq!(stored(&cluster, name), ends(&cluster, name));
    });
}

async fn leaves_within(limit: Duration, member: &ConsumerHandle) {
    let begun = Instant::now();
    member.shutdown().await;
    println!("left in {:.1?}", begun.elapsed());
    assert!(begun.elapsed() < limit, "it took {:?}", begun.elapsed());
}

/// Consumers of Kafka's own protocol come into a group that is under way.
#[test]
fn while_kafkas_own_consumer_is_in_the_group_commits_are_refused_and_delivery_goes_on() {
    let (name, version) = ("joined", KafkaVersion::V4_1_1);
    let cluster = builder(version).start().unwrap();
    cluster.create_topic(name, 2, 1).unwrap();
    let to_both = |count| {
        let at = |number| ProduceRecord { partition: Some(number % 2), ..ProduceRecord::value("x") };
        cluster.produce(name, (0..count).map(at)).unwrap()
    };
    run(async {
        let log = Log::default();
        let ours = start(&cluster, name, "ours", &log, &[]).await;
        to_both(100);
        wait_for_all_stored(&cluster, name).await;

        let journal = cluster.folder().join("java");
        let properties = [
            "group.id=joined",
            "enable.auto.commit=false",
            "auto.offset.reset=none",
            "group.protocol=consumer",
        ];
        let mut java = cluster.group_member(version, name, (&journal, "java"), &properties).unwrap();
        java.join().unwrap();
        until("a record that Java handles", || {
            to_both(2);
            let handled = std::fs::metadata(&journal).is_ok_and(|journal| journal.len() > 0);
            if handled { Ok(()) } else { Err(std::fs::read_to_string(java.log()).unwrap_or_default()) }
        });
        let before = stored(&cluster, name);
        to_both(100);
        log.wait_for_all(&cluster, name).await;
        let refused = ours.commit().await.unwrap().all().unwrap_err().to_string();
        println!("{refused}");
        assert!(refused.contains("are active under this group.id"), "{refused}");
        let commits = ours.metrics().await.unwrap().commits.expect("a committer");
        assert!(commits.last_error.contains("are active under this group.id"), "{commits:?}");
        assert_eq!(stored(&cluster, name), before);

        java.leave().unwrap();
        wait_for_all_stored(&cluster, name).await;
        ours.shutdown().await;
        assert_eq!(log.history(name).duplicates(), 0);
    });
}
