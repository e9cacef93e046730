//! What could not be read, and what moved while it was read.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::{partition, view_with, world};

const READS_ORDERS: &str = r#"{"version":1,"subscription":{"orders":1},"pattern":"static","timestamp":"1"}"#;

#[test]
fn a_topic_whose_node_cannot_be_read_is_not_told_as_missing() {
    world(2, async |world| {
        let handle = world.builder("a").pull("returns", 1).start().await.expect("it starts");
        world.put_member("x", READS_ORDERS, 7);
        world.put_owner("orders", 0, "x-0", 7);
        world.zookeeper.put("/brokers/topics/orders", b"{");
        let view = view_with(&handle, |view| !view.partitions.is_empty()).await;
        let shown = partition(&view, "orders", 0);
        assert_eq!((shown.exists, shown.owner_member.as_str()), (None, "x"));
        assert!(view.errors.iter().any(|why| why.contains("/brokers/topics/orders")), "{:?}", view.errors);
        handle.shutdown().await;
    });
}

#[test]
fn a_topic_to_which_nobody_subscribes_exists_all_the_same() {
    world(2, async |world| {
        let handle = world.builder("a").pull("returns", 1).start().await.expect("it starts");
        world.put_member("unreadable", "{", 7);
        world.put_owner("orders", 0, "unreadable-0", 7);
        world.put_owner("orders", 9, "unreadable-0", 7);
        let view = view_with(&handle, |view| view.partitions.len() == 2).await;
        assert_eq!(partition(&view, "orders", 0).exists, Some(true));
        assert_eq!(partition(&view, "orders", 0).log_end, Some(0));
        assert_eq!(partition(&view, "orders", 9).exists, Some(false), "the topic has two");
        handle.shutdown().await;
    });
}

#[test]
fn while_no_broker_tells_topics_none_is_told_as_missing() {
    world(2, async |mut world| {
        world.properties.push(("bootstrap.servers", "broker-0:9092"));
        world.brokers.stop(0);
        world.brokers.stop(1);
        world.put_member("x", READS_ORDERS, 7);
        world.put_owner("orders", 0, "x-0", 7);
        world.put_owner("gone", 0, "x-0", 7);
        let handle = world.builder("a").pull("returns", 1).start().await.expect("it starts");
        let view = view_with(&handle, |view| view.partitions.len() == 2).await;
        assert_eq!((partition(&view, "orders", 0).exists, partition(&view, "gone", 0).exists), (None, None));
        assert!(!view.errors.is_empty());

        world.brokers.start(0);
        world.brokers.start(1);
        world.brokers.elect();
        let view = view_with(&handle, |view| partition(view, "orders", 0).exists == Some(true)).await;
        assert_eq!(partition(&view, "gone", 0).exists, Some(false));
        handle.shutdown().await;
    });
}

#[test]
fn a_member_that_joins_while_the_group_is_read_is_no_missing_owner() {
    world(2, async |world| {
        let handle = world.builder("a").pull("returns", 1).start().await.expect("it starts");
        world.put_member("again", READS_ORDERS, 7);
        world.put_owner("orders", 0, "again-0", 7);
        view_with(&handle, |view| view.members.len() == 2).await;
        sleep(Duration::from_secs(1)).await;
        // each read takes 200 ms: members are read from 0 to 400, owners after that
        world.zookeeper.set_pace(Arc::new(|| Duration::from_millis(100)));
        let reading = tokio::task::spawn_local({
            let handle = handle.clone();
            async move { handle.group().await.expect("a view") }
        });
        sleep(Duration::from_millis(450)).await;
        world.put_member("late", READS_ORDERS, 8);
        world.put_owner("orders", 1, "late-0", 8);
        // and one that was there is there anew, with a new session
        world.zookeeper.remove("/consumers/g/owners/orders/0");
        world.zookeeper.remove("/consumers/g/ids/again");
        world.put_member("again", READS_ORDERS, 9);
        world.put_owner("orders", 0, "again-0", 9);
        let view = reading.await.expect("no panic");
        for (number, owner) in [(0, "again"), (1, "late")] {
            let it = partition(&view, "orders", number);
            assert_eq!(
                (it.owner_member.as_str(), it.owner_is_missing, it.session_differs),
                (owner, false, false)
            );
        }
        let ids: Vec<_> = view.members.iter().map(|it| (it.id.as_str(), it.owned)).collect();
        assert_eq!(ids, [("again", 1), ("g_a", 0), ("late", 1)]);
        handle.shutdown().await;
    });
}

#[test]
fn a_zookeeper_that_hangs_holds_nobody_for_long() {
    world(1000, async |world| {
        let handle = world.member("a", 1).await;
        view_with(&handle, super::owned_by("g_a", 1000)).await;
        sleep(Duration::from_secs(1)).await;
        // each read is answered in time, all of them together are not
        world.zookeeper.set_pace(Arc::new(|| Duration::from_millis(400)));
        let began = tokio::time::Instant::now();
        let asked = handle.group().await;
        let took = began.elapsed();
        let error = asked.expect_err("it is not read in time").to_string();
        assert!(error.contains("group g") && error.contains("30s"), "{error}");
        assert!(took < Duration::from_secs(31), "{took:?}");
        world.zookeeper.set_pace(Arc::new(|| Duration::ZERO));
        handle.shutdown().await;
    });
}
