//! Metrics and health of members on real servers: B28, and what `/healthz` says while servers are gone.

use kafka_troupe::metrics::scrape;
use kafka_troupe::{ConsumerHandle, ConsumerSystem, Health};
use troupe_cluster::{Cluster, KafkaVersion};

use crate::support::by_hand::ByHand;
use crate::support::clusters::{builder, shared};
use crate::support::exposition::{Exposition, Sample};
use crate::support::load::numbered;
use crate::support::system::{Log, Recorder, config, run, wait_for_owners};
use crate::support::wait::until_async;

crate::on_each_version!(
    b28_series_are_named_exactly_and_go_with_what_they_are_of,
    health_names_what_is_wrong_while_servers_are_gone,
);

/// Two that Kafka's own metrics cannot tell apart.
const TOPICS: [&str; 2] = ["my.topic", "my_topic"];
const GROUP: &str = "b28-g_one";

async fn member(cluster: &Cluster, name: &str, log: &Log) -> ConsumerHandle {
    let config = config(cluster, GROUP, name, &[("client.id", "client-1_x.y")]);
    let subscribed = TOPICS.into_iter().fold(ConsumerSystem::builder(config), |builder, topic| {
        builder.handle(topic, 1, Recorder::factory(name, log, |_| Ok(())))
    });
    subscribed.start().await.expect("a member starts")
}

/// The partitions of a topic of which a member shows the lag.
fn shown(text: &Exposition, consumer_id: &str, topic: &str) -> Vec<String> {
    let labels = [("group", GROUP), ("consumer_id", consumer_id), ("topic", topic)];
    let series = text.find("troupe_partition_lag_records", &labels);
    let mut partitions: Vec<_> = series.iter().map(|it| it.labels["partition"].clone()).collect();
    partitions.sort();
    partitions
}

fn b28_series_are_named_exactly_and_go_with_what_they_are_of(version: KafkaVersion) {
    let cluster = shared(version);
    run(async {
        cluster.create_topic(TOPICS[0], 2, 1).unwrap();
        // brokers refuse the second name beside the first; their controller does not
        let hand = ByHand::of_all(cluster).await;
        hand.make(
            &format!("brokers/topics/{}", TOPICS[1]),
            r#"{"version":1,"partitions":{"0":[0],"1":[0]}}"#,
        )
        .await;
        cluster.wait_for_leaders(TOPICS[1]).unwrap();
        for topic in TOPICS {
            cluster.produce(topic, numbered(20)).unwrap();
        }
        let log = Log::default();
        let one = member(cluster, "m-1", &log).await;
        for topic in TOPICS {
            wait_for_owners(cluster, GROUP, topic, &["m-1-0", "m-1-0"]).await;
            log.wait_for_all(cluster, topic).await;
        }
        let (id_one, id_two) = (format!("{GROUP}_m-1"), format!("{GROUP}_m_2"));
        let text = until_async("all is handled and shown", async || {
            let text = Exposition::of(&scrape([&one]).await);
            let handled = text.value("troupe_records_total", &[]);
            let shown: usize = TOPICS.iter().map(|topic| shown(&text, &id_one, topic).len()).sum();
            if (handled, shown) == (40.0, 4) { Ok(text) } else { Err(format!("{handled} in {shown}")) }
        })
        .await;
        for topic in TOPICS {
            assert_eq!(shown(&text, &id_one, topic), ["0", "1"]);
            assert_eq!(text.value("troupe_owned_partitions", &[("topic", topic)]), 2.0);
        }
        text.value("troupe_member_info", &[("client_id", "client-1_x.y"), ("consumer_id", &id_one)]);
        assert_eq!(text.value("troupe_health", &[("state", "healthy")]), 1.0);

        // partition 1 of both moves
        let two = member(cluster, "m_2", &log).await;
        for topic in TOPICS {
            wait_for_owners(cluster, GROUP, topic, &["m-1-0", "m_2-0"]).await;
        }
        // at once: no series of what is another's
        let text = Exposition::of(&scrape([&one]).await);
        for topic in TOPICS {
            assert_eq!(shown(&text, &id_one, topic), ["0"]);
            let moved = [("topic", topic), ("partition", "1")];
            let is_of_it = |it: &&Sample| {
                moved.iter().all(|(key, value)| it.labels.get(*key).is_some_and(|its| its == value))
            };
            let left: Vec<_> = text.samples.iter().filter(is_of_it).collect();
            assert!(left.is_empty(), "{left:?}");
        }
        until_async("each partition is shown once", async || {
            let text = Exposition::of(&scrape([&one, &two]).await);
            let shown = TOPICS.map(|topic| (shown(&text, &id_one, topic), shown(&text, &id_two, topic)));
            let expected = (vec!["0".to_owned()], vec!["1".to_owned()]);
            if shown == [expected.clone(), expected] { Ok(()) } else { Err(format!("{shown:?}")) }
        })
        .await;

        two.shutdown().await;
        let text = Exposition::of(&scrape([&one, &two]).await);
        assert_eq!(text.find("troupe_records_total", &[]).len(), 1);
        assert!(text.samples.iter().all(|it| it.labels["consumer_id"] == id_one));
        one.shutdown().await;
        assert_eq!(scrape([&one, &two]).await, "");
    });
}

async fn becomes(member: &ConsumerHandle, what: &str, expected: impl Fn(&Health) -> bool) -> Health {
    until_async(what, async || {
        let health = member.health().await;
        if expected(&health) { Ok(health) } else { Err(format!("{health:?}")) }
    })
    .await
}

fn health_names_what_is_wrong_while_servers_are_gone(version: KafkaVersion) {
    let cluster = builder(version).brokers(2).start().unwrap();
    let (cluster, name) = (&cluster, "unwell");
    // one on each broker
    cluster.create_topic(name, 2, 1).unwrap();
    cluster.produce(name, numbered(10)).unwrap();
    run(async {
        let log = Log::default();
        let handler = Recorder::factory("m", &log, |_| Ok(()));
        let config = config(cluster, name, "m", &[]);
        let member = ConsumerSystem::builder(config).handle(name, 1, handler).start().await.unwrap();
        log.wait_for_all(cluster, name).await;
        becomes(&member, "well", |health| *health == Health::Healthy).await;

        cluster.broker(1).kill().unwrap();
        let failing = |health: &Health| matches!(health, Health::Failing { .. });
        let Health::Failing { why } = becomes(&member, "without its broker", failing).await else { return };
        assert_eq!(why.len(), 1, "{why:?}");
        assert!(why[0].starts_with("unwell-0 has not") || why[0].starts_with("unwell-1 has not"), "{why:?}");
        assert!(why[0].contains("been fetched from offset"), "{why:?}");
        cluster.broker(1).restart().unwrap();
        cluster.wait_for_leaders(name).unwrap();
        cluster.produce(name, numbered(5)).unwrap();
        log.wait_for_all(cluster, name).await;
        becomes(&member, "well with its broker", |health| *health == Health::Healthy).await;

        cluster.zookeeper().pause().unwrap();
        let health = becomes(&member, "without zookeeper", |health| !health.is_ready()).await;
        assert_eq!((&health, health.is_live()), (&Health::Suspended, true));
        cluster.zookeeper().resume().unwrap();
        becomes(&member, "well with zookeeper", |health| *health == Health::Healthy).await;
        member.shutdown().await;
        assert_eq!(member.health().await, Health::Ended);
    });
}
