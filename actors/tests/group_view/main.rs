//! The view of a whole group, over ZooKeeper and brokers in memory, on a clock that stands.

mod half_read;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use kafka_troupe_actors::chaos::CrashChild;
use kafka_troupe_actors::testkit::{MemoryBrokers, MemoryZooKeeper, clock::on_paused_clock};
use kafka_troupe_actors::{ConsumerHandle, ConsumerSystem};
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::config::ConsumerConfig;
use kafka_troupe_proto::schemas::group::v1::{GroupMember, GroupPartition, GroupView};
use kafka_troupe_proto::zk::topic_filter::TopicFilter;
use tokio::time::{Instant, sleep, timeout};

/// By a clock that stands.
const PATIENCE: Duration = Duration::from_secs(60);

struct World {
    zookeeper: MemoryZooKeeper,
    brokers: MemoryBrokers,
    properties: Vec<(&'static str, &'static str)>,
}

fn world(partitions: usize, test: impl AsyncFnOnce(World)) {
    on_paused_clock(async move {
        let (zookeeper, brokers) = (MemoryZooKeeper::default(), MemoryBrokers::new(2));
        brokers.register(&zookeeper);
        brokers.create_topic("orders", partitions);
        test(World { zookeeper, brokers, properties: vec![("auto.offset.reset", "smallest")] }).await;
    });
}

impl World {
    fn builder(&self, id: &str) -> kafka_troupe_actors::consumer_system::Builder {
        let config =
            ConsumerConfig::builder().property("zookeeper.connect", "memory").property("group.id", "g");
        let config = config.property("consumer.id", id);
        let config = self.properties.iter().fold(config, |config, (key, value)| config.property(key, value));
        ConsumerSystem::builder(config.build().expect("a configuration"))
            .connector(Arc::new(self.zookeeper.connector(id)))
            .in_memory(self.brokers.clone())
    }

    async fn member(&self, id: &str, streams: u32) -> ConsumerHandle {
        self.builder(id).pull("orders", streams).start().await.expect("it starts")
    }

    fn put_member(&self, id: &str, record: &str, session: i64) {
        self.zookeeper.put_ephemeral(&format!("/consumers/g/ids/{id}"), record.as_bytes(), session);
    }

    fn put_owner(&self, topic: &str, partition: i32, thread: &str, session: i64) {
        let parent = format!("/consumers/g/owners/{topic}");
        self.zookeeper.put(&parent, b"");
        self.zookeeper.put_ephemeral(&format!("{parent}/{partition}"), thread.as_bytes(), session);
    }
}

/// Views, once a second, until one is as hoped.
async fn view_with(handle: &ConsumerHandle, is_it: impl Fn(&GroupView) -> bool) -> GroupView {
    let until = Instant::now() + PATIENCE;
    loop {
        let view = handle.group().await.expect("a view");
        if is_it(&view) {
            return view;
        }
        assert!(Instant::now() < until, "{view:#?}");
        sleep(Duration::from_secs(1)).await;
    }
}

fn member<'a>(view: &'a GroupView, id: &str) -> &'a GroupMember {
    view.members.iter().find(|it| it.id == id).unwrap_or_else(|| panic!("no {id} in {view:#?}"))
}

fn partition<'a>(view: &'a GroupView, topic: &str, number: i32) -> &'a GroupPartition {
    let found = view.partitions.iter().find(|it| it.topic == topic && it.partition == number);
    found.unwrap_or_else(|| panic!("no {topic}-{number} in {view:#?}"))
}

fn owned_by<'a>(id: &'a str, count: usize) -> impl Fn(&GroupView) -> bool + 'a {
    move |view| view.partitions.iter().filter(|it| it.owner_member == id).count() == count
}

#[test]
fn all_members_are_shown_with_what_they_own_since_when_and_how_far_it_is() {
    world(4, async |world| {
        for number in 0..4 {
            world.brokers.append(&TopicPartition::new("orders", number), &["a", "b", "c"]);
        }
        let one = world.member("a", 1).await;
        view_with(&one, owned_by("g_a", 4)).await;
        sleep(Duration::from_secs(100)).await;
        let two = world.member("b", 2).await;
        let view = view_with(&two, owned_by("g_b", 2)).await;
        assert_eq!((view.group.as_str(), view.consumer_id.as_str(), view.errors.len()), ("g", "g_b", 0));
        let ids: Vec<_> = view.members.iter().map(|it| (it.id.as_str(), it.is_own, it.owned)).collect();
        assert_eq!(ids, [("g_a", false, 2), ("g_b", true, 2)]);
        let (a, b) = (member(&view, "g_a"), member(&view, "g_b"));
        assert_eq!((a.pattern.as_str(), a.subscription.as_str(), a.streams), ("static", "orders (1)", 1));
        assert_eq!((b.subscription.as_str(), b.streams, b.topics[0].streams), ("orders (2)", 2, 2));
        assert!(b.since_ms - a.since_ms >= 100_000, "{} and {}", a.since_ms, b.since_ms);
        assert!(a.session_id != 0 && a.session_id != b.session_id);
        for it in &view.partitions {
            let owner = member(&view, &it.owner_member);
            assert_eq!((it.session_id, it.is_own), (owner.session_id, owner.is_own));
            assert!(it.owner_thread.as_deref().is_some_and(|thread| thread.starts_with(&owner.id)));
            assert!(
                it.exists == Some(true) && !it.owner_is_missing && !it.session_differs && it.error.is_empty()
            );
            assert!(it.since_ms.is_some_and(|since| since >= owner.since_ms));
            assert_eq!((it.log_end, it.committed_kafka), (Some(3), None));
        }
        one.shutdown().await;
        two.shutdown().await;
    });
}

#[test]
fn lag_is_what_is_not_committed_and_a_partition_that_nobody_owns_is_shown_as_such() {
    world(2, async |world| {
        world.brokers.append(&TopicPartition::new("orders", 0), &["a", "b", "c"]);
        world.zookeeper.put("/consumers/g/offsets/orders/1", b"not a number");
        let handle = world.builder("a").pull("orders", 1).start().await.expect("it starts");
        let mut stream = handle.streams("orders").remove(0);
        for _ in 0..2 {
            timeout(PATIENCE, stream.next()).await.expect("in time").expect("no end").expect("a record");
        }
        assert!(handle.commit().await.expect("it is committed").all().is_ok());
        let view =
            view_with(&handle, |view| partition(view, "orders", 0).committed_zookeeper == Some(1)).await;
        let (first, second) = (partition(&view, "orders", 0), partition(&view, "orders", 1));
        assert_eq!((first.log_end, first.lag), (Some(3), Some(2)));
        assert_eq!((second.committed_zookeeper, second.lag, second.log_end), (None, None, Some(0)));
        assert!(second.error.contains("/consumers/g/offsets/orders/1 holds"), "{}", second.error);
        handle.shutdown().await;

        // a group of which nobody is left but one that reads another topic
        world.brokers.create_topic("returns", 1);
        let other = world.builder("b").pull("returns", 1).start().await.expect("it starts");
        world.put_member(
            "x",
            r#"{"version":1,"subscription":{"orders":1},"pattern":"static","timestamp":"1"}"#,
            7,
        );
        let view = view_with(&other, |view| view.partitions.len() == 3).await;
        let nobodys = partition(&view, "orders", 0);
        assert_eq!((nobodys.owner_thread.as_deref(), nobodys.since_ms, nobodys.session_id), (None, None, 0));
        assert!(nobodys.owner_member.is_empty() && !nobodys.owner_is_missing && nobodys.exists == Some(true));
        other.shutdown().await;
    });
}

#[test]
fn foreign_names_are_kept_and_what_looks_wrong_is_flagged() {
    world(4, async |world| {
        let handle = world.builder("a").pull("returns", 1).start().await.expect("it starts");
        let subscription = r#"{"version":1,"subscription":{"orders":2},"pattern":"static","timestamp":"1"}"#;
        let scripted = "g_<script>alert(1)<\u{301}script> \u{202e}-1";
        world.put_member(scripted, subscription, 77);
        world.put_member("unreadable", "{", 78);
        world.put_owner("orders", 0, &format!("{scripted}-0"), 77);
        world.put_owner("orders", 1, &format!("{scripted}-1"), 76);
        world.put_owner("orders", 2, "g_gone-0", 75);
        world.put_owner("orders", 3, "what is this", 0);
        world.put_owner("deleted", 9, "unreadable-0", 78);
        let view = view_with(&handle, |view| view.partitions.len() == 5).await;
        let shown = member(&view, scripted);
        assert_eq!((shown.session_id, shown.owned, shown.is_own), (77, 2, false));
        let unreadable = member(&view, "unreadable");
        assert!(
            unreadable.error.contains("ids/unreadable") && unreadable.pattern.is_empty(),
            "{unreadable:?}"
        );
        let flags = |topic, number| {
            let it = partition(&view, topic, number);
            (
                it.owner_thread.as_deref().expect("an owner"),
                it.owner_is_missing,
                it.session_differs,
                it.exists,
            )
        };
        assert_eq!(flags("orders", 0), (format!("{scripted}-0").as_str(), false, false, Some(true)));
        assert_eq!(flags("orders", 1), (format!("{scripted}-1").as_str(), false, true, Some(true)));
        assert_eq!(flags("orders", 2), ("g_gone-0", true, false, Some(true)));
        assert_eq!(flags("orders", 3), ("what is this", true, false, Some(true)));
        assert_eq!(flags("deleted", 9), ("unreadable-0", false, false, Some(false)));
        handle.shutdown().await;
    });
}

#[test]
fn filters_are_expanded_and_added_members_are_own() {
    world(2, async |world| {
        world.brokers.create_topic("order-returns", 1);
        world.brokers.create_topic("__consumer_offsets", 1);
        let filter = TopicFilter::white_list("order.*").expect("a filter");
        let handle = world.builder("a").pull_matching(filter, 2).start().await.expect("it starts");
        let added = handle.subscribe().pull("orders", 1).start().await.expect("it starts");
        let view = view_with(&handle, |view| view.partitions.iter().all(|it| it.is_own)).await;
        let topics: Vec<_> = view.partitions.iter().map(|it| (it.topic.as_str(), it.partition)).collect();
        assert_eq!(topics, [("order-returns", 0), ("orders", 0), ("orders", 1)]);
        let filtered = member(&view, "g_a");
        assert_eq!((filtered.pattern.as_str(), filtered.subscription.as_str()), ("white_list", "order.*"));
        assert!(filtered.topics.is_empty() && filtered.streams == 2);
        assert!(member(&view, "g_a.1").is_own);
        added.shutdown().await;
        handle.shutdown().await;
    });
}

#[test]
fn a_view_is_given_again_for_a_second_and_read_only_when_asked() {
    world(1, async |world| {
        let handle = world.member("a", 1).await;
        view_with(&handle, owned_by("g_a", 1)).await;
        sleep(Duration::from_secs(1)).await;
        let before = handle.group().await.expect("a view");
        world.put_member("x", "{}", 7);
        sleep(Duration::from_millis(990)).await;
        assert_eq!(handle.group().await.as_ref(), Ok(&before));
        sleep(Duration::from_millis(20)).await;
        assert_eq!(handle.group().await.expect("a view").members.len(), 2);
        handle.shutdown().await;
        let error = handle.group().await.expect_err("it has shut down");
        assert!(error.to_string().contains("group g") && error.to_string().contains("shut down"), "{error}");
    });
}

#[test]
fn a_reader_that_panics_comes_back() {
    world(1, async |world| {
        let handle = world.member("a", 1).await;
        view_with(&handle, owned_by("g_a", 1)).await;
        handle.address().do_send(CrashChild("group-reader".to_owned()));
        let asked = handle.group().await;
        assert!(asked.as_ref().is_err_and(|error| error.to_string().contains("restarted")), "{asked:?}");
        sleep(Duration::from_secs(1)).await;
        view_with(&handle, owned_by("g_a", 1)).await;
        let status = handle.metrics().await.expect("a status");
        let reader = status.actors.iter().find(|it| it.name == "group-reader").expect("it is shown");
        assert_eq!(reader.restarts, 1);
        handle.shutdown().await;
    });
}

#[test]
fn a_view_of_a_thousand_partitions_keeps_no_commit_and_no_claim_waiting() {
    world(1000, async |world| {
        let one = world.member("a", 1).await;
        view_with(&one, owned_by("g_a", 1000)).await;
        world.zookeeper.set_pace(Arc::new(|| Duration::from_millis(5)));
        sleep(Duration::from_secs(1)).await;
        let began = Instant::now();
        let reading = tokio::task::spawn_local({
            let one = one.clone();
            async move { one.group().await.expect("a view") }
        });
        sleep(Duration::from_millis(200)).await;
        let asked = Instant::now();
        assert!(one.commit().await.expect("it is committed").all().is_ok());
        assert!(asked.elapsed() < Duration::from_millis(100), "a commit took {:?}", asked.elapsed());
        let view = reading.await.expect("no panic");
        println!("read in {:?}", began.elapsed());
        assert!(view.took_ms >= 1000, "so many reads are not all under way at once: {} ms", view.took_ms);
        assert_eq!((view.partitions.len(), member(&view, "g_a").owned), (1000, 1000));
        one.shutdown().await;
    });
}

#[test]
fn where_the_brokers_tell_topics_and_keep_offsets_these_are_shown() {
    world(2, async |mut world| {
        world.properties.extend([("bootstrap.servers", "broker-0:9092"), ("offsets.storage", "kafka")]);
        world.properties.push(("dual.commit.enabled", "false"));
        world.brokers.append(&TopicPartition::new("orders", 0), &["a", "b", "c"]);
        let handle = world.member("a", 1).await;
        let mut stream = handle.streams("orders").remove(0);
        for _ in 0..3 {
            timeout(PATIENCE, stream.next()).await.expect("in time").expect("no end").expect("a record");
        }
        assert!(handle.commit().await.expect("it is committed").all().is_ok());
        let view = view_with(&handle, |view| partition(view, "orders", 0).committed_kafka == Some(2)).await;
        let first = partition(&view, "orders", 0);
        assert_eq!((first.committed_zookeeper, first.log_end, first.lag), (None, Some(3), Some(1)));
        assert!(partition(&view, "orders", 1).exists == Some(true) && view.errors.is_empty());
        handle.shutdown().await;
    });
}

#[test]
fn what_the_brokers_do_not_tell_is_left_out_and_named() {
    world(2, async |world| {
        let handle = world.member("a", 1).await;
        view_with(&handle, |view| view.partitions.iter().all(|it| it.log_end == Some(0))).await;
        world.brokers.stop(1);
        sleep(Duration::from_secs(1)).await;
        let view = handle.group().await.expect("a view");
        let ends: Vec<_> = view.partitions.iter().map(|it| it.log_end).collect();
        assert!(ends.contains(&None) && ends.contains(&Some(0)), "{ends:?}");
        assert!(view.errors.len() == 1 && view.errors[0].contains("orders-1"), "{:?}", view.errors);
        handle.shutdown().await;
    });
}
