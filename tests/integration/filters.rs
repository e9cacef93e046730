//! Topic filters and several topics: what members of one group make of different subscriptions.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use kafka_troupe::{Builder, ConsumerHandle, ConsumerSystem, HandlerResult, Record, TopicFilter};
use troupe_cluster::{Cluster, KafkaVersion};

use crate::bad_input::zookeeper_shell;
use crate::support::clusters::shared;
use crate::support::load::numbered;
use crate::support::system::{Log, Recorder, config, run, wait_for_owners};
use crate::support::wait::until_async;
use crate::support::zk_log::GroupHistory;

crate::on_each_version!(
    streams_of_a_filter_carry_every_topic,
    internal_topics_are_left_out_unless_asked_for,
    b11_a_a_peer_with_a_filter_beyond_our_engine_is_waited_out,
    b11_b_round_robin_over_a_filter_of_no_topic_waits_for_the_first,
    b11_c_round_robin_with_different_topics_and_stream_counts,
);

fn white(filter: &str) -> TopicFilter {
    TopicFilter::white_list(filter).unwrap()
}

fn noted(
    member: &str,
    log: &Log,
) -> impl Fn() -> Recorder<fn(&Record) -> HandlerResult> + Send + Sync + 'static {
    let done: fn(&Record) -> HandlerResult = |_| Ok(());
    Recorder::factory(member, log, done)
}

fn create(cluster: &Cluster, topic: &str, partitions: i32) {
    cluster.create_topic(topic, partitions, 1).unwrap();
    cluster.produce(topic, numbered(10 * u64::from(partitions.unsigned_abs()))).unwrap();
}

async fn started(builder: Builder) -> ConsumerHandle {
    builder.start().await.expect("a member starts")
}

async fn wait_for_phase(member: &ConsumerHandle, phase: &str) {
    until_async(&format!("phase {phase}"), async || {
        let now = member.metrics().await.unwrap().phase;
        if now == phase { Ok(()) } else { Err(now) }
    })
    .await;
}

/// As `createMessageStreamsByFilter(filter, 2)`: the same two threads have partitions of each topic.
fn streams_of_a_filter_carry_every_topic(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "carried");
    for (topic, partitions) in [("carried-a", 3), ("carried-b", 1), ("carried-c", 2), ("uncarried", 1)] {
        create(cluster, topic, partitions);
    }
    run(async {
        let log = Log::default();
        let builder = ConsumerSystem::builder(config(cluster, name, "m", &[]));
        let member = started(builder.handle_matching(white("carried-.*"), 2, noted("m", &log))).await;
        wait_for_owners(cluster, name, "carried-a", &["m-0", "m-0", "m-1"]).await;
        wait_for_owners(cluster, name, "carried-b", &["m-0"]).await;
        wait_for_owners(cluster, name, "carried-c", &["m-0", "m-1"]).await;
        for topic in ["carried-a", "carried-b", "carried-c"] {
            log.wait_for_all(cluster, topic).await;
        }
        assert_eq!(log.len(), 60, "each once, and nothing else");
        let status = member.metrics().await.unwrap();
        assert_eq!(status.streams.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["0", "1"]);
        // those of a stream go on where they were when it is made anew
        let crash = kafka_troupe::actors::chaos::CrashChild("stream-queue/0".to_owned());
        member.address().send(crash).await.unwrap();
        cluster.produce("carried-b", numbered(5)).unwrap();
        log.wait_for_all(cluster, "carried-b").await;
        assert_eq!(log.history("carried-b").duplicates(), 0);
        member.shutdown().await;
        assert!(GroupHistory::of(cluster, name).owners("uncarried").is_empty());
    });
}

fn internal_topics_are_left_out_unless_asked_for(version: KafkaVersion) {
    let (cluster, filter) = (shared(version), "__consumer_offsets|internal-.*");
    create(cluster, "internal-not", 1);
    // makes it as brokers do; by hand, with another number of partitions, it would be of no use to other groups
    cluster.client().coordinator("inside").unwrap();
    let offsets = cluster.log_end_offsets("__consumer_offsets").unwrap();
    run(async {
        let log = Log::default();
        let builder = ConsumerSystem::builder(config(cluster, "outside", "m", &[]));
        let member = started(builder.handle_matching(white(filter), 1, noted("m", &log))).await;
        wait_for_owners(cluster, "outside", "internal-not", &["m-0"]).await;
        wait_for_phase(&member, "stable").await;
        wait_for_owners(cluster, "outside", "__consumer_offsets", &[]).await;
        let asked = [("exclude.internal.topics", "false")];
        let builder = ConsumerSystem::builder(config(cluster, "inside", "m", &asked));
        let other = started(builder.handle_matching(white(filter), 1, noted("m", &log))).await;
        wait_for_owners(cluster, "inside", "__consumer_offsets", &vec!["m-0"; offsets.len()]).await;
        wait_for_owners(cluster, "inside", "internal-not", &["m-0"]).await;
        member.shutdown().await;
        other.shutdown().await;
    });
}

/// It comes under a running member, which cannot tell what is left to it now: it keeps what it has, which flows.
fn b11_a_a_peer_with_a_filter_beyond_our_engine_is_waited_out(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "beyond");
    create(cluster, name, 2);
    run(async {
        let log = Log::default();
        let member = started(ConsumerSystem::builder(config(cluster, name, "m", &[])).handle(
            name,
            1,
            noted("m", &log),
        ))
        .await;
        wait_for_owners(cluster, name, name, &["m-0", "m-0"]).await;
        let peer = "/consumers/beyond/ids/beyond_a";
        let record =
            r#"{"version":1,"subscription":{"be(?!fore).*":1},"pattern":"white_list","timestamp":"1"}"#;
        zookeeper_shell(cluster, version, "create", peer, &[record]);
        let failing = until_async("report", async || {
            let status = member.metrics().await.unwrap();
            if status.failing.is_empty() { Err(status.phase) } else { Ok(status.failing) }
        });
        let failing = failing.await;
        assert!(failing.contains(peer) && failing.contains("(?!fore)"), "{failing}");
        cluster.produce(name, numbered(20)).unwrap();
        log.wait_for_all(cluster, name).await;
        wait_for_owners(cluster, name, name, &["m-0", "m-0"]).await;

        zookeeper_shell(cluster, version, "delete", peer, &[]);
        wait_for_phase(&member, "stable").await;
        assert_eq!(member.metrics().await.unwrap().failing, "");
        member.shutdown().await;
        let history = log.history(name);
        history.check(&GroupHistory::of(cluster, name));
        assert_eq!(history.duplicates(), 0);
    });
}

fn b11_b_round_robin_over_a_filter_of_no_topic_waits_for_the_first(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "nothing");
    run(async {
        let log = Log::default();
        let properties = [("partition.assignment.strategy", "roundrobin"), ("auto.offset.reset", "largest")];
        let builder = ConsumerSystem::builder(config(cluster, name, "m", &properties));
        let member = started(builder.handle_matching(white("nothing-.*"), 2, noted("m", &log))).await;
        wait_for_phase(&member, "stable").await;
        let status = member.metrics().await.unwrap();
        assert!(status.partitions.is_empty() && status.failing.is_empty(), "{status:?}");
        let begun = Instant::now();
        create(cluster, "nothing-yet", 2);
        wait_for_owners(cluster, name, "nothing-yet", &["m-0", "m-1"]).await;
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        log.wait_for_all(cluster, "nothing-yet").await;
        assert_eq!(log.len(), 20, "from the beginning, each once");
        member.shutdown().await;
    });
}

fn b11_c_round_robin_with_different_topics_and_stream_counts(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "uneven");
    create(cluster, "uneven-x", 4);
    create(cluster, "uneven-y", 5);
    run(async {
        let log = Log::default();
        let properties = [("partition.assignment.strategy", "roundrobin")];
        let builder = |member| ConsumerSystem::builder(config(cluster, name, member, &properties));
        let a = builder("a").handle("uneven-x", 2, noted("a", &log)).handle("uneven-y", 1, noted("a", &log));
        let a = started(a).await;
        let b = started(builder("b").handle("uneven-y", 3, noted("b", &log))).await;
        until_async("a share for each", async || {
            let zookeeper = GroupHistory::of(cluster, name);
            let threads = |topic| zookeeper.owners(topic).into_values().collect::<Vec<_>>();
            let (x, y) = (threads("uneven-x"), threads("uneven-y"));
            let shared = y.iter().map(|thread| &thread[..1]).collect::<BTreeSet<_>>();
            let all = x.len() == 4 && y.len() == 5 && shared == BTreeSet::from(["a", "b"]);
            let right = all && x.iter().all(|thread| thread.starts_with("a-"));
            if right { Ok(()) } else { Err(format!("{x:?} {y:?}")) }
        })
        .await;
        wait_for_phase(&a, "stable").await;
        wait_for_phase(&b, "stable").await;
        for topic in ["uneven-x", "uneven-y"] {
            cluster.produce(topic, numbered(40)).unwrap();
            log.wait_for_all(cluster, topic).await;
        }
        a.shutdown().await;
        b.shutdown().await;
        for topic in ["uneven-x", "uneven-y"] {
            let history = log.history(topic);
            history.check(&GroupHistory::of(cluster, name));
            assert_eq!(history.duplicates(), 0);
        }
    });
}
