//! An application tested with `testkit`: what its own tests would look like.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::prelude::*;
use kafka_troupe::testkit::{self, ErrorCode, StoredRecord, TestCluster, TestRecord};
use kafka_troupe::{
    BeforeReleasingPartitions, BeforeStartingPartitions, Builder, ConsumerConfig, ConsumerHandle,
    FailurePolicy, HandlerResult, OwnershipLost, Record, Subscription, Then,
};
use tokio::time::Instant;

/// In place of a database.
#[derive(Clone, Default)]
struct Books(Arc<Mutex<Vec<Entry>>>);

struct Entry {
    partition: i32,
    key: Option<String>,
    value: String,
    trace: Option<String>,
}

impl Books {
    fn values(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|entry| entry.value.clone()).collect()
    }

    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// The application's handler. An order of "nothing" is refused.
struct Orders(Books);

impl Actor for Orders {
    type Context = Context<Self>;
}

impl Handler<Record> for Orders {
    type Result = HandlerResult;

    fn handle(&mut self, record: Record, _: &mut Context<Self>) -> HandlerResult {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let trace = record.headers().find(|header| header.key == b"trace");
        let entry = Entry {
            partition: record.partition(),
            key: record.key().map(text),
            value: record.text().into_owned(),
            trace: trace.and_then(|header| header.value).map(text),
        };
        self.0.0.lock().unwrap().push(entry);
        if record.text() == "nothing" { Err("an order of nothing".into()) } else { Ok(()) }
    }
}

/// The application's seam.
fn consumers(builder: Builder, books: &Books) -> Builder {
    let books = books.clone();
    builder.handle("orders", 2, move || Orders(books.clone()))
}

async fn start(cluster: &TestCluster, books: &Books) -> ConsumerHandle {
    let config = cluster.config("billing").build().unwrap();
    consumers(cluster.builder(config), books).start().await.unwrap()
}

#[test]
fn what_is_produced_is_handled_and_committed() {
    testkit::run(async {
        let (cluster, books) = (TestCluster::new().topic("orders", 4), Books::default());
        let app = start(&cluster, &books).await;
        let group = cluster.group("billing");
        let record = TestRecord::value("a book").key("alice").header("trace", "7");
        let (partition, offset) = cluster.produce("orders", record.clone());
        assert_eq!(cluster.produce("orders", record), (partition, offset + 1), "the key's partition");
        assert_eq!(cluster.produce("orders", TestRecord::value("a lamp").partition(3)).0, 3);
        group.until_handled("orders").await;
        assert_eq!(group.lag("orders"), 0);
        {
            let books = books.0.lock().unwrap();
            let alices: Vec<_> = books.iter().filter(|entry| entry.key.as_deref() == Some("alice")).collect();
            assert_eq!(alices.len(), 2);
            assert!(alices.iter().all(|it| it.partition == partition && it.trace.as_deref() == Some("7")));
        }
        assert_eq!(group.committed("orders", partition), Some(0), "the position with which it began");
        let begun = Instant::now();
        group.until_committed("orders").await;
        assert!(begun.elapsed() > Duration::from_secs(30), "by auto.commit.interval.ms");
        assert_eq!(group.committed("orders", partition), Some(offset + 2));
        app.shutdown().await;
        assert!(group.members().is_empty());
    });
}

#[test]
fn an_app_with_its_own_configuration_runs_here() {
    for storage in ["zookeeper.connect=zk-1:2181,zk-2:2181/kafka", "offsets.storage=kafka"] {
        testkit::run(async {
            let (cluster, books) = (TestCluster::new().topic("orders", 1), Books::default());
            let (key, value) = storage.split_once('=').unwrap();
            let config = ConsumerConfig::builder()
                .zookeeper_connect("zk:2181")
                .group_id("billing")
                .bootstrap_servers("kafka-1:9092,kafka-2:9092")
                .property(key, value);
            let config = config.build().unwrap();
            let app = consumers(cluster.builder(config), &books).start().await.unwrap();
            // auto.offset.reset is largest
            cluster.group("billing").until_owned("orders").await;
            cluster.produce("orders", "a book");
            cluster.group("billing").until_committed("orders").await;
            assert_eq!(books.values(), ["a book"]);
            app.shutdown().await;
        });
    }
}

#[test]
fn records_of_an_earlier_run_are_not_handled_again() {
    testkit::run(async {
        let (cluster, books) = (TestCluster::new().topic("orders", 1), Books::default());
        for order in ["one", "two", "three"] {
            cluster.produce("orders", order);
        }
        cluster.group("billing").commit("orders", 0, 2);
        let app = start(&cluster, &books).await;
        cluster.group("billing").until_handled("orders").await;
        assert_eq!(books.values(), ["three"]);
        app.shutdown().await;
    });
}

#[test]
fn a_lost_broker_s_partitions_go_on_at_another_and_one_alone_is_waited_for() {
    testkit::run(async {
        let (cluster, books) = (TestCluster::with_brokers(2).topic("orders", 2), Books::default());
        let app = start(&cluster, &books).await;
        let group = cluster.group("billing");
        group.until_owned("orders").await;
        cluster.stop_broker(0);
        for partition in 0..2 {
            cluster.produce("orders", TestRecord::value("of one").partition(partition));
        }
        group.until_handled("orders").await;
        cluster.stop_broker(1);
        cluster.produce("orders", "of none");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!((books.len(), group.lag("orders")), (2, 1));
        cluster.start_broker(0);
        group.until_handled("orders").await;
        assert_eq!(books.values(), ["of one", "of one", "of none"]);
        app.shutdown().await;
    });
}

#[test]
fn what_was_not_committed_when_the_session_expired_comes_again() {
    testkit::run(async {
        let (cluster, books) = (TestCluster::new().topic("orders", 1), Books::default());
        let app = start(&cluster, &books).await;
        let group = cluster.group("billing");
        cluster.produce("orders", "committed");
        group.until_committed("orders").await;
        cluster.produce("orders", "handled");
        group.until_handled("orders").await;
        cluster.expire_session(&app).await;
        group.until_committed("orders").await;
        assert_eq!(books.values(), ["committed", "handled", "handled"]);
        app.shutdown().await;
    });
}

#[test]
fn a_fetch_that_fails_is_tried_again() {
    testkit::run(async {
        let (cluster, books) = (TestCluster::new().topic("orders", 1), Books::default());
        let (app, group) = (start(&cluster, &books).await, cluster.group("billing"));
        group.until_owned("orders").await;
        let handled_after = async |order: &'static str| {
            let begun = Instant::now();
            cluster.produce("orders", order);
            group.until_handled("orders").await;
            begun.elapsed()
        };
        let flowing = handled_after("a book").await;
        cluster.fail_fetches("orders", 0, ErrorCode::NotLeaderOrFollower, 3);
        let failing = handled_after("a lamp").await;
        assert!(failing > flowing + Duration::from_millis(400), "{flowing:?}, then {failing:?}");
        assert_eq!(books.values(), ["a book", "a lamp"]);
        app.shutdown().await;
    });
}

#[test]
fn a_refused_record_comes_again_and_holds_what_is_behind_it() {
    testkit::run(async {
        let (cluster, books) = (TestCluster::new().topic("orders", 1), Books::default());
        let app = start(&cluster, &books).await;
        cluster.produce("orders", "nothing");
        cluster.produce("orders", "a book");
        testkit::until("it was tried three times", || books.len() >= 3).await;
        assert!(books.values().iter().all(|value| value == "nothing"));
        assert_eq!(cluster.group("billing").lag("orders"), 2);
        app.shutdown().await;
    });
}

async fn start_with(cluster: &TestCluster, books: &Books, policy: FailurePolicy) -> ConsumerHandle {
    let (config, books) = (cluster.config("billing").build().unwrap(), books.clone());
    let orders = Subscription::topic("orders").on_failure(policy).handle(move || Orders(books.clone()));
    cluster.builder(config).subscription(orders).start().await.unwrap()
}

#[test]
fn a_record_that_is_given_up_is_a_dead_letter_and_the_next_is_handled() {
    testkit::run(async {
        let cluster = TestCluster::new().topic("orders", 1).topic("orders.dead", 1);
        let (books, group) = (Books::default(), cluster.group("billing"));
        let policy = FailurePolicy::retry(2).then(Then::DeadLetter("orders.dead".into()));
        let app = start_with(&cluster, &books, policy).await;
        cluster.produce("orders", TestRecord::value("nothing").key("alice"));
        cluster.produce("orders", "a book");
        group.until_handled("orders").await;
        assert_eq!(books.values(), ["nothing", "nothing", "nothing", "a book"]);
        let letters = cluster.records("orders.dead");
        let letters: Vec<_> = letters.iter().filter_map(StoredRecord::dead_letter).collect();
        assert_eq!(letters.len(), 1);
        assert_eq!((letters[0].offset, letters[0].attempts), (0, 3));
        assert_eq!(letters[0].key.as_deref(), Some(&b"alice"[..]));
        assert_eq!(letters[0].reason, "an order of nothing");
        app.shutdown().await;
        assert_eq!(group.committed("orders", 0), Some(2));
    });
}

#[test]
fn a_partition_that_a_record_stops_goes_on_when_it_is_sought_past_it() {
    testkit::run(async {
        let (cluster, books) = (TestCluster::new().topic("orders", 1), Books::default());
        let app = start_with(&cluster, &books, FailurePolicy::retry(1)).await;
        cluster.produce("orders", "nothing");
        cluster.produce("orders", "a book");
        testkit::until("it is tried twice", || books.len() == 2).await;
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(books.len(), 2, "it is not tried again by itself");
        let status = app.metrics().await.unwrap();
        assert!(status.halted.iter().any(|it| it.why.contains("an order of nothing")), "{:?}", status.halted);
        app.seek("orders", 0, 1).await.unwrap();
        cluster.group("billing").until_handled("orders").await;
        assert_eq!(books.values(), ["nothing", "nothing", "a book"]);
        app.shutdown().await;
    });
}

/// In a word, and with which partitions.
type Call = (&'static str, Vec<i32>);

/// What a rebalance listener was told, with the partitions.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<Call>>>);

impl Actor for Told {
    type Context = Context<Self>;
}

impl Told {
    fn note(&self, what: &'static str, partitions: impl IntoIterator<Item = i32>) {
        self.0.lock().unwrap().push((what, partitions.into_iter().collect()));
    }

    fn by_kind(&self) -> BTreeMap<&'static str, Vec<i32>> {
        let mut kinds = BTreeMap::<_, Vec<i32>>::new();
        for (what, partitions) in self.0.lock().unwrap().drain(..) {
            kinds.entry(what).or_default().extend(partitions);
        }
        kinds.values_mut().for_each(|partitions| partitions.sort_unstable());
        kinds
    }
}

impl Handler<BeforeStartingPartitions> for Told {
    type Result = ();

    fn handle(&mut self, starting: BeforeStartingPartitions, _: &mut Context<Self>) {
        self.note("start", starting.partitions.keys().map(|it| it.partition));
    }
}

impl Handler<BeforeReleasingPartitions> for Told {
    type Result = ();

    fn handle(&mut self, releasing: BeforeReleasingPartitions, _: &mut Context<Self>) {
        self.note("release", releasing.partitions.keys().map(|it| it.partition));
    }
}

impl Handler<OwnershipLost> for Told {
    type Result = ();

    fn handle(&mut self, lost: OwnershipLost, _: &mut Context<Self>) {
        self.note("lost", lost.partitions.iter().map(|it| it.partition));
    }
}

#[test]
fn a_rebalance_listener_is_told_when_another_member_joins_and_leaves_and_when_a_session_expires() {
    testkit::run(async {
        let (cluster, books) = (TestCluster::new().topic("orders", 4), Books::default());
        let (group, told) = (cluster.group("billing"), Told::default());
        let config = |id: &str| cluster.config("billing").consumer_id(id).build().unwrap();
        let builder = consumers(cluster.builder(config("a")), &books);
        let app = builder.rebalance_listener(told.clone().start()).start().await.unwrap();
        group.until_owned("orders").await;
        assert_eq!(told.by_kind(), BTreeMap::from([("start", vec![0, 1, 2, 3])]));

        let other = cluster.builder(config("b")).pull("orders", 2).start().await.unwrap();
        let of_other = |partition| group.owner("orders", partition).is_some_and(|it| it.contains("_b-"));
        testkit::until("the other has its share", || of_other(2) && of_other(3)).await;
        group.until_owned("orders").await;
        // 1 is for the other stream
        assert_eq!(told.by_kind(), BTreeMap::from([("release", vec![1, 2, 3]), ("start", vec![1])]));
        assert_eq!(group.members(), ["billing_a", "billing_b"]);

        other.shutdown().await;
        testkit::until("all is the first's", || (0..4).all(|it| !of_other(it))).await;
        group.until_owned("orders").await;
        assert_eq!(told.by_kind(), BTreeMap::from([("release", vec![1]), ("start", vec![1, 2, 3])]));

        cluster.expire_session(&app).await;
        testkit::until("it is told", || !told.0.lock().unwrap().is_empty()).await;
        group.until_owned("orders").await;
        let all = vec![0, 1, 2, 3];
        assert_eq!(told.by_kind(), BTreeMap::from([("lost", all.clone()), ("start", all)]));
        app.shutdown().await;
    });
}

/// The message of a panic.
fn panic_of(test: impl AsyncFnOnce(TestCluster)) -> String {
    let cluster = TestCluster::new().topic("orders", 2);
    let test = std::panic::AssertUnwindSafe(|| testkit::run(test(cluster)));
    let panic = std::panic::catch_unwind(test).expect_err("it waits in vain");
    panic.downcast_ref::<String>().expect("a text").clone()
}

#[test]
fn what_waits_in_vain_says_where_and_what_is_missing() {
    let nobody = panic_of(async |cluster| {
        cluster.produce("orders", TestRecord::value("a book").partition(1));
        cluster.group("billing").until_handled("orders").await;
    });
    assert!(nobody.starts_with("tests/testkit.rs:"), "{nobody}");
    let missing = "group billing:\n  orders-1: handled nothing of 1, committed nothing, owned by nobody";
    assert!(nobody.ends_with(missing), "{nobody}");

    let refused = panic_of(async |cluster| {
        let _app = start_with(&cluster, &Books::default(), FailurePolicy::retry(1)).await;
        for order in ["a book", "nothing", "a lamp"] {
            cluster.produce("orders", TestRecord::value(order).partition(0));
        }
        cluster.group("billing").until_handled("orders").await;
    });
    let missing =
        "\n  orders-0: handled up to 1 of 3, committed up to 1, owned by billing_member-1-0, failed: ";
    assert!(refused.contains(missing) && refused.contains("an order of nothing"), "{refused}");

    let own = panic_of(async |_| testkit::until("the moon is full", || false).await);
    assert!(own.starts_with("tests/testkit.rs:") && own.ends_with("the moon is full"), "{own}");
}

#[test]
fn what_is_in_a_topic_can_be_read() {
    testkit::run(async {
        let cluster = TestCluster::new().topic("orders", 2);
        let full = TestRecord::value("a book").key("k").partition(1).header("h", "v").timestamp(5);
        cluster.produce("orders", full);
        cluster.produce("orders", TestRecord::tombstone("k").partition(1));
        let records = cluster.records("orders");
        let places: Vec<_> = records.iter().map(|it| (it.partition, it.offset, it.timestamp)).collect();
        assert_eq!(places, [(1, 0, 5), (1, 1, 0)]);
        assert_eq!((records[0].text(), records[0].header("h")), ("a book".to_owned(), Some(&b"v"[..])));
        assert_eq!((records[1].key.as_deref(), &records[1].value), (Some(&b"k"[..]), &None));
    });
}
