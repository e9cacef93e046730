//! The view of a group from outside.

use std::sync::Arc;
use std::time::Duration;

use kafka_troupe_actors::admin::{KafkaAdmin, ZooKeeperAdmin};
use kafka_troupe_actors::broker_connection::{ConnectOptions, Transport};
use kafka_troupe_actors::testkit::{MemoryBrokers, MemoryZooKeeper, clock::on_paused_clock};
use kafka_troupe_proto::schemas::group::v1::{GroupPartition, GroupView};
use kafka_troupe_proto::zk::broker::SecurityProtocol;

use super::{PATIENCE, admin, key};

struct World {
    zookeeper: MemoryZooKeeper,
    brokers: MemoryBrokers,
    admin: ZooKeeperAdmin,
    kafka: KafkaAdmin,
}

/// The topic `orders` with two partitions, three records in the first; the group `g` has committed in it, and in `gone`.
fn world(test: impl AsyncFnOnce(World)) {
    on_paused_clock(async {
        let (zookeeper, brokers) = (MemoryZooKeeper::default(), MemoryBrokers::new(2));
        brokers.register(&zookeeper);
        brokers.create_topic("orders", 2);
        brokers.append(&key("orders", 0), &["a", "b", "c"]);
        for (node, offset) in [("orders/0", "1"), ("gone/0", "5")] {
            zookeeper.put(&format!("/consumers/g/offsets/{node}"), offset.as_bytes());
        }
        let admin = admin(&zookeeper).await;
        let mut options = ConnectOptions::new("admin", Duration::from_secs(10));
        options.transport = Transport::Memory { brokers: brokers.clone(), client: "admin".to_owned() };
        let (known, warnings) =
            admin.brokers(SecurityProtocol::Plaintext).await.expect("they are registered");
        assert!(warnings.is_empty(), "{warnings:?}");
        let kafka = KafkaAdmin::from_brokers(known, options);
        test(World { zookeeper, brokers, admin, kafka }).await;
    });
}

impl World {
    async fn view(&self) -> GroupView {
        self.admin.view("g", Some(&self.kafka)).await.expect("a view")
    }

    fn join(&self, id: &str, topic: &str) {
        let record =
            format!(r#"{{"version":1,"subscription":{{"{topic}":1}},"pattern":"static","timestamp":"1"}}"#);
        self.zookeeper.put("/consumers/g/ids", b"");
        self.zookeeper.put_ephemeral(&format!("/consumers/g/ids/{id}"), record.as_bytes(), 7);
    }
}

fn named(view: &GroupView) -> Vec<String> {
    view.partitions.iter().map(|it| format!("{}-{}", it.topic, it.partition)).collect()
}

fn figures(shown: &GroupPartition) -> (Option<i64>, Option<i64>, Option<i64>, Option<bool>) {
    (shown.committed_zookeeper, shown.log_end, shown.lag, shown.exists)
}

#[test]
fn b24_a_group_without_members_shows_its_offsets_and_a_deleted_topic_spoils_nothing() {
    world(async |world| {
        let view = world.view().await;
        assert_eq!((named(&view), view.members.len()), (vec!["gone-0".to_owned(), "orders-0".to_owned()], 0));
        assert_eq!(figures(&view.partitions[0]), (Some(5), None, None, Some(false)));
        assert_eq!(figures(&view.partitions[1]), (Some(1), Some(3), Some(2), Some(true)));
        assert!(view.errors.is_empty() && view.partitions.iter().all(|it| !it.is_subscribed), "{view:#?}");
        assert!(!world.brokers.topics().contains_key("gone"), "who asks makes no topic");
    });
}

#[test]
fn b24_a_spare_member_is_shown_no_offset_has_no_lag_and_one_beyond_the_end_none_below_0() {
    world(async |world| {
        world.join("g_a", "orders");
        world.join("g_spare", "orders");
        world.zookeeper.put("/consumers/g/owners/orders", b"");
        world.zookeeper.put_ephemeral("/consumers/g/owners/orders/0", b"g_a-0", 7);
        world.zookeeper.put("/consumers/g/offsets/orders/0", b"9");
        let view = world.view().await;
        let members: Vec<_> = view.members.iter().map(|it| (it.id.as_str(), it.owned)).collect();
        assert_eq!(members, [("g_a", 1), ("g_spare", 0)]);
        assert_eq!(named(&view), ["gone-0", "orders-0", "orders-1"]);
        assert_eq!(figures(&view.partitions[1]), (Some(9), Some(3), Some(0), Some(true)));
        assert_eq!(figures(&view.partitions[2]), (None, Some(0), None, Some(true)));
        assert!(view.partitions[2].is_subscribed && !view.partitions[0].is_subscribed);
    });
}

#[test]
fn offsets_in_kafka_are_shown_too_and_asked_for_only_where_kafka_has_some() {
    world(async |world| {
        world.brokers.store_offset("g", &key("orders", 1), 4);
        let view = world.view().await;
        assert_eq!(named(&view), ["gone-0", "orders-0"], "who asks for a coordinator has a topic made");
        world.brokers.create_topic("__consumer_offsets", 1);
        let view = world.view().await;
        assert_eq!(named(&view), ["gone-0", "orders-0", "orders-1"]);
        let shown = &view.partitions[2];
        assert_eq!((shown.committed_kafka, shown.committed_zookeeper, shown.lag), (Some(4), None, Some(0)));
    });
}

#[test]
fn where_nothing_is_committed_the_start_of_the_log_is_told() {
    world(async |world| {
        world.join("g_a", "orders");
        world.zookeeper.remove("/consumers/g/offsets/orders/0");
        world.brokers.delete_before(&key("orders", 0), 3);
        let view = world.view().await;
        let told: Vec<_> = view.partitions.iter().map(|it| (it.log_start, it.log_end)).collect();
        assert_eq!(told, [(None, None), (Some(3), Some(3)), (Some(0), Some(0))]);
    });
}

#[test]
fn brokers_tell_topics_where_kafka_has_no_zookeeper() {
    world(async |world| {
        // it may have had one once: what is left there is out of date
        world.zookeeper.remove("/brokers/topics/orders");
        world.zookeeper.put("/brokers/topics/gone", br#"{"version":1,"partitions":{"0":[0]}}"#);
        for broker in world.zookeeper.children("/brokers/ids") {
            world.zookeeper.remove(&format!("/brokers/ids/{broker}"));
        }
        world.join("g_a", "orders");
        let view = world.view().await;
        let exist: Vec<_> = view.partitions.iter().map(|it| it.exists).collect();
        assert_eq!((named(&view).len(), exist), (3, vec![Some(false), Some(true), Some(true)]));
        assert_eq!(view.partitions[1].log_end, Some(3));
    });
}

#[test]
fn brokers_that_are_down_leave_out_what_they_know_with_one_reason() {
    world(async |world| {
        world.join("g_a", "orders");
        world.brokers.stop(0);
        world.brokers.stop(1);
        let view = world.view().await;
        assert_eq!(view.errors.len(), 1, "{:?}", view.errors);
        assert!(view.errors[0].starts_with("topics: not within"), "{:?}", view.errors);
        assert_eq!(figures(&view.partitions[1]), (Some(1), None, None, Some(true)));
    });
}

/// Whatever it had read by then: what went unread would look like a group without it.
#[test]
fn a_view_in_which_zookeeper_goes_away_is_none() {
    for reads in 0..8 {
        world(async |world| {
            world.join("g_a", "orders");
            world.zookeeper.set_pace(Arc::new(|| Duration::from_millis(10)));
            let session = world.zookeeper.sessions()[0];
            let going = async {
                tokio::time::sleep(Duration::from_millis(10 * reads + 5)).await;
                world.zookeeper.suspend(session);
            };
            let (view, ()) = tokio::join!(world.admin.view("g", Some(&world.kafka)), going);
            assert!(view.is_err(), "gone after {reads} reads: {view:?}");
        });
    }
}

#[test]
fn zookeeper_that_goes_away_is_not_waited_for_once_per_partition() {
    world(async |world| {
        (0..400).for_each(|it| world.zookeeper.put(&format!("/consumers/g/owners/orders/{it}"), b"g_a-0"));
        world.join("g_a", "orders");
        world.zookeeper.set_pace(Arc::new(|| Duration::from_millis(10)));
        let session = world.zookeeper.sessions()[0];
        let going = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            world.zookeeper.suspend(session);
        };
        let begun = tokio::time::Instant::now();
        let (view, ()) = tokio::join!(world.admin.view("g", Some(&world.kafka)), going);
        assert!(view.is_err() && begun.elapsed() < 4 * PATIENCE, "{:?}", begun.elapsed());
    });
}
