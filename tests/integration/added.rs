//! Subscriptions that are added while running.

use futures_util::StreamExt;
use kafka_troupe::{ConsumerSystem, TopicFilter};
use tokio::time::timeout;
use troupe_cluster::KafkaVersion;

use crate::support::clusters::shared;
use crate::support::load::numbered;
use crate::support::system::{Log, Recorder, config, run, wait_for_owners};
use crate::support::wait::{PATIENCE, until_async};
use crate::support::zk_log::GroupHistory;

crate::on_each_version!(what_is_added_is_a_second_member, what_is_added_can_be_ended_alone);

/// A registration is not watched by the others, so there is a second one; the whole is one system all the same.
fn what_is_added_is_a_second_member(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "added");
    for topic in ["added-first", "added-then"] {
        cluster.create_topic(topic, 2, 1).unwrap();
        cluster.produce(topic, numbered(20)).unwrap();
    }
    run(async {
        let log = Log::default();
        let config = config(cluster, name, "m", &[("auto.commit.enable", "false")]);
        let handler = |member| Recorder::factory(member, &log, |_| Ok(()));
        let system =
            ConsumerSystem::builder(config).handle("added-first", 1, handler("m")).start().await.unwrap();
        wait_for_owners(cluster, name, "added-first", &["m-0", "m-0"]).await;
        let filter = TopicFilter::white_list("added-.*").unwrap();
        let more = system.subscribe().handle_matching(filter, 1, handler("m.1"));
        let more = more.start().await.unwrap();
        // what was subscribed to first is shared, as by any two members
        wait_for_owners(cluster, name, "added-first", &["m-0", "m.1-0"]).await;
        wait_for_owners(cluster, name, "added-then", &["m.1-0", "m.1-0"]).await;
        let zookeeper = GroupHistory::of(cluster, name);
        assert_eq!(zookeeper.children("ids"), ["added_m", "added_m.1"]);
        let record = |id: &str| zookeeper.node(&format!("ids/added_{id}")).unwrap().text();
        assert!(record("m").contains(r#""subscription":{"added-first":1},"pattern":"static""#));
        assert!(record("m.1").contains(r#""subscription":{"added-.*":1},"pattern":"white_list""#));

        log.wait_for_all(cluster, "added-first").await;
        log.wait_for_all(cluster, "added-then").await;
        let status = system.metrics().await.unwrap();
        let [added] = &status.added[..] else { panic!("{status:?}") };
        assert_eq!((status.consumer_id.as_str(), added.consumer_id.as_str()), ("added_m", "added_m.1"));
        assert_eq!((status.partitions.len(), added.partitions.len()), (1, 3));
        // what moved is read again, and may not be handled yet
        for topic in ["added-first", "added-then"] {
            until_async(&format!("commits of {topic}"), async || {
                system.commit().await.unwrap().all().unwrap();
                let committed = GroupHistory::of(cluster, name).committed(topic);
                if committed == [(0, 10), (1, 10)].into() { Ok(()) } else { Err(format!("{committed:?}")) }
            })
            .await;
        }
        system.shutdown().await;
        assert!(more.metrics().await.is_err());
        assert_eq!(GroupHistory::of(cluster, name).children("ids"), [""; 0]);
        let late = system.subscribe().pull("added-then", 1).start().await.err().unwrap();
        assert!(late.to_string().starts_with("could not join the group: "), "{late}");
        assert_eq!(GroupHistory::of(cluster, name).children("ids"), [""; 0]);
        for topic in ["added-first", "added-then"] {
            log.history(topic).check(&GroupHistory::of(cluster, name));
        }
    });
}

fn what_is_added_can_be_ended_alone(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "briefly");
    for topic in ["briefly-a", "briefly-b"] {
        cluster.create_topic(topic, 1, 1).unwrap();
        cluster.produce(topic, numbered(1)).unwrap();
    }
    run(async {
        let config = config(cluster, name, "m", &[]);
        let system = ConsumerSystem::builder(config).pull("briefly-a", 1).start().await.unwrap();
        let mut first = system.streams("briefly-a").pop().unwrap();
        for number in 1..=2 {
            let more = system.subscribe().pull("briefly-b", 1).start().await.unwrap();
            let mut stream = more.streams("briefly-b").pop().unwrap();
            let record = timeout(PATIENCE, stream.next()).await.unwrap().unwrap().unwrap();
            assert_eq!((record.topic(), record.offset()), ("briefly-b", number - 1));
            stream.ack();
            wait_for_owners(cluster, name, "briefly-b", &[&format!("m.{number}-0")]).await;
            more.shutdown().await;
            wait_for_owners(cluster, name, "briefly-b", &[]).await;
            assert_eq!(system.metrics().await.unwrap().added, []);
            cluster.produce("briefly-b", numbered(1)).unwrap();
        }
        timeout(PATIENCE, first.next()).await.unwrap().unwrap().unwrap();
        assert_eq!(GroupHistory::of(cluster, name).children("ids"), ["briefly_m"]);
        system.shutdown().await;
    });
}
