//! Whole members that find topics and brokers by `bootstrap.servers`: the ZooKeeper knows of the group alone.

use kafka_troupe_actors::consumer_system::Metrics;
use kafka_troupe_actors::testkit::Generation;
use kafka_troupe_proto::zk::topic_filter::TopicFilter;

use super::*;

/// Runs a test in one thread, on a paused clock, with two brokers and one topic of one partition.
fn by_bootstrap_servers(test: impl AsyncFnOnce(World)) {
    clock::on_paused_clock(async {
        let (zookeeper, brokers) = (MemoryZooKeeper::default(), MemoryBrokers::new(2));
        brokers.create_topic("orders", 1);
        test(World { zookeeper, brokers, bootstrap: true }).await;
    });
}

#[test]
fn topics_and_brokers_come_from_bootstrap_servers_and_new_partitions_are_found() {
    by_bootstrap_servers(async |world| {
        let (handle, mut stream) = world.pulling_as("a").await;
        world.produce_to("orders", 0, "one");
        assert_eq!(next(&mut stream).await, "one");
        world.brokers.create_topic("orders", 2);
        world.produce_to("orders", 1, "two");
        let added = Instant::now();
        assert_eq!(next(&mut stream).await, "two");
        assert!(added.elapsed() <= Duration::from_millis(5500), "metadata.max.age.ms is 5 s");
        assert!(world.zookeeper.children("/brokers/topics").is_empty(), "nobody told ZooKeeper");
        handle.shutdown().await;
    });
}

#[test]
fn a_topic_that_is_named_before_it_is_made_is_read_once_it_is() {
    by_bootstrap_servers(async |world| {
        let handle = world.builder("a").pull("later", 1).start().await.expect("it starts");
        let mut stream = handle.streams("later").remove(0);
        assert!(timeout(Duration::from_secs(20), stream.next()).await.is_err());
        world.brokers.create_topic("later", 1);
        world.produce_to("later", 0, "here");
        assert_eq!(next(&mut stream).await, "here");
        handle.shutdown().await;
    });
}

#[test]
fn a_filter_takes_the_topics_of_the_metadata_but_for_internal_ones() {
    by_bootstrap_servers(async |world| {
        // one that no member of the old consumer knows as internal
        world.brokers.create_topic("__share_group_state", 1);
        world.brokers.create_topic("__consumer_offsets", 1);
        let all = TopicFilter::white_list(".*").expect("a filter");
        let handle = world.builder("a").pull_matching(all, 1).start().await.expect("it starts");
        let mut stream = handle.matching_streams().remove(0);
        world.produce_to("orders", 0, "one");
        assert_eq!(next(&mut stream).await, "one");
        world.brokers.create_topic("made later", 1);
        world.produce_to("made later", 0, "two");
        assert_eq!(next(&mut stream).await, "two");
        assert_eq!(world.zookeeper.children("/consumers/g/owners"), ["made later", "orders"]);
        world.brokers.delete_topic("made later");
        until("the partition is released", || world.owner_of("made later", 0).is_none()).await;
        assert!(world.owner_of("orders", 0).is_some());
        handle.shutdown().await;
    });
}

#[test]
fn brokers_that_do_not_answer_stop_nobody_and_one_that_is_lost_is_done_without() {
    by_bootstrap_servers(async |world| {
        let (handle, mut stream) = world.pulling_as("a").await;
        world.produce_to("orders", 0, "one");
        assert_eq!(next(&mut stream).await, "one");
        // the bootstrap broker; the other was learnt
        world.brokers.stop(0);
        world.brokers.elect();
        world.produce_to("orders", 0, "two");
        assert_eq!(next(&mut stream).await, "two");
        world.brokers.stop(1);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(world.owner_of("orders", 0).as_deref(), Some("g_a-0"), "it stays with us");
        let status = handle.address().send(Metrics).await.expect("it runs");
        let topics = status.topic_metadata.expect("bootstrap.servers is set");
        assert!(topics.age_ms > Some(50_000) && topics.last_error.contains("broker-1:9092"), "{topics:?}");
        world.brokers.start(1);
        world.brokers.elect();
        world.produce_to("orders", 0, "three");
        assert_eq!(next(&mut stream).await, "three");
        handle.shutdown().await;
    });
}

#[test]
fn a_member_that_starts_without_any_broker_waits_for_one() {
    by_bootstrap_servers(async |world| {
        (0..2).for_each(|broker| world.brokers.stop(broker));
        let (handle, mut stream) = world.pulling_as("a").await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(world.owner_of("orders", 0), None);
        (0..2).for_each(|broker| world.brokers.start(broker));
        world.brokers.elect();
        world.produce_to("orders", 0, "one");
        assert_eq!(next(&mut stream).await, "one");
        handle.shutdown().await;
    });
}

/// The second polls so much later than the first.
#[test]
fn members_that_learn_of_partitions_one_after_the_other_settle_without_blaming_each_other() {
    for later in [0, 500, 2000, 3500, 4500] {
        by_bootstrap_servers(async |world| {
            world.brokers.create_topic("orders", 4);
            let (first, _stream) = world.pulling_as("a").await;
            let (second, _stream) = world.pulling_as("b").await;
            let owners = || (0..8).map(|partition| world.owner_of("orders", partition)).collect::<Vec<_>>();
            let halves =
                |n| (0..n).map(move |it| Some(if it < n / 2 { "g_a-0" } else { "g_b-0" }.to_owned()));
            until("both own a half", || owners()[..4].iter().cloned().eq(halves(4))).await;
            tokio::time::sleep(Duration::from_millis(later)).await;
            second.address().do_send(CrashChild("topic-metadata".to_owned()));
            tokio::time::sleep(Duration::from_secs(27)).await;
            let seen = Instant::now();
            world.brokers.create_topic("orders", 8);
            until("both own their halves of eight", || owners().into_iter().eq(halves(8))).await;
            assert!(seen.elapsed() < Duration::from_secs(6), "{:?}", seen.elapsed());
            tokio::time::sleep(Duration::from_secs(30)).await;
            for member in [&first, &second] {
                let status = member.address().send(Metrics).await.expect("it runs");
                assert!(status.peers.is_empty() && status.failing.is_empty(), "{status:?}");
            }
            second.shutdown().await;
            first.shutdown().await;
        });
    }
}

#[test]
fn a_panic_of_the_actor_that_asks_costs_nothing() {
    by_bootstrap_servers(async |world| {
        let (handle, mut stream) = world.pulling_as("a").await;
        world.produce_to("orders", 0, "one");
        assert_eq!(next(&mut stream).await, "one");
        handle.address().do_send(CrashChild("topic-metadata".to_owned()));
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.brokers.create_topic("orders", 2);
        world.produce_to("orders", 1, "two");
        assert_eq!(next(&mut stream).await, "two");
        let status = handle.address().send(Metrics).await.expect("it runs");
        let actor = status.actors.iter().find(|actor| actor.name == "topic-metadata").expect("it is listed");
        assert_eq!(actor.restarts, 1);
        assert!(actor.handled > 0);
        handle.shutdown().await;
    });
}

/// As where the group was moved to a mirror and back: the node knows a later id than the one that the brokers tell.
#[test]
fn a_topic_whose_id_was_followed_by_another_waits_and_the_others_flow_on() {
    by_bootstrap_servers(async |world| {
        world.brokers.create_topic("payments", 1);
        let (handle, _stream) = world.pulling_as("a").await;
        until("it is noted", || world.zookeeper.node("/consumers/g/topics/orders").is_some()).await;
        handle.shutdown().await;
        let present = world.zookeeper.node("/consumers/g/topics/orders").expect("an id").data;
        let there = ["ab".repeat(16).as_bytes(), b"\n", &present].concat();
        world.zookeeper.put("/consumers/g/topics/orders", &there);

        let handle =
            world.builder("a").pull("orders", 1).pull("payments", 1).start().await.expect("it starts");
        let (mut orders, mut payments) =
            (handle.streams("orders").remove(0), handle.streams("payments").remove(0));
        world.produce_to("orders", 0, "one");
        world.produce_to("payments", 0, "two");
        assert_eq!(next(&mut payments).await, "two");
        assert!(timeout(Duration::from_secs(30), orders.next()).await.is_err());
        assert_eq!(world.owner_of("orders", 0), None, "it waits");
        // what the warning says
        world.zookeeper.remove("/consumers/g/topics/orders");
        assert_eq!(next(&mut orders).await, "one");
        world.produce_to("payments", 0, "three");
        assert_eq!(next(&mut payments).await, "three");
        handle.shutdown().await;
    });
}

/// Another member has noted the later topic; the broker that we ask has not heard of it.
#[test]
fn what_is_read_of_a_topic_that_was_made_again_unheard_of_is_not_committed() {
    by_bootstrap_servers(async |world| {
        let (handle, mut stream) = world.pulling_as("a").await;
        world.produce_to("orders", 0, "one");
        assert_eq!(next(&mut stream).await, "one");
        let present = world.zookeeper.node("/consumers/g/topics/orders").expect("an id").data;
        let later = ["ab".repeat(16).as_bytes(), b"\n", &present].concat();
        world.zookeeper.put("/consumers/g/topics/orders", &later);
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.produce_to("orders", 0, "two");
        assert_eq!(next(&mut stream).await, "two", "it stays ours");
        world.produce_to("orders", 0, "three");
        assert_eq!(next(&mut stream).await, "three");
        handle.shutdown().await;
        let stored = world.zookeeper.node("/consumers/g/offsets/orders/0").expect("where it began");
        assert_eq!(stored.data, b"0", "nothing after it was noted");
    });
}

/// What fails as it failed before says nothing new of topics.
#[test]
fn a_partition_that_fails_again_and_again_has_its_topic_looked_at_once() {
    by_bootstrap_servers(async |world| {
        let (handle, mut stream) = world.pulling_as("a").await;
        world.produce_to("orders", 0, "one");
        assert_eq!(next(&mut stream).await, "one");
        world.brokers.set_generation(1, Generation::HangsUp);
        world.brokers.set_leader(&TopicPartition::new("orders", 0), Some(1));
        let polls = async || {
            let status = handle.address().send(Metrics).await.expect("it runs");
            status.topic_metadata.expect("bootstrap.servers is set").polls
        };
        tokio::time::sleep(Duration::from_secs(5)).await;
        let before = polls().await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        let asked = polls().await - before;
        assert!((5..=7).contains(&asked), "{asked} in 30 s, metadata.max.age.ms is 5 s");
        handle.shutdown().await;
    });
}
