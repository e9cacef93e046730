//! Whole members over ZooKeeper and brokers in memory, on a clock that stands.

mod commits;
mod ending;
mod failing;
mod fetching;
mod handlers;
mod health;
mod idle;
mod in_flight;
mod kafka_offsets;
mod log;
mod metadata_mode;
mod pausing;
mod pulling;
mod remade;
mod restarting;
mod seeking;
mod spans;
mod starting;
mod stuck;

use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use futures_util::StreamExt as _;
use kafka_troupe_actors::chaos::CrashChild;
use kafka_troupe_actors::consumer_system::Builder;
use kafka_troupe_actors::testkit::clock;
use kafka_troupe_actors::testkit::{MemoryBrokers, MemoryZooKeeper};
use kafka_troupe_actors::{ConsumerHandle, ConsumerSystem, HandlerResult, KafkaStream, Record};
use kafka_troupe_proto::TopicPartition;
use kafka_troupe_proto::config::ConsumerConfig;
use kafka_troupe_proto::group::FailurePolicy;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, timeout};

/// By a clock that stands, so it costs nothing.
const PATIENCE: Duration = Duration::from_secs(60);

struct World {
    zookeeper: MemoryZooKeeper,
    brokers: MemoryBrokers,
    /// Members find topics and brokers by `bootstrap.servers`: the ZooKeeper knows of the group alone.
    bootstrap: bool,
}

/// Runs a test in one thread, on a paused clock, with one topic of one partition.
fn on_paused_clock(test: impl AsyncFnOnce(World)) {
    clock::on_paused_clock(async {
        let (zookeeper, brokers) = (MemoryZooKeeper::default(), MemoryBrokers::new(1));
        brokers.register(&zookeeper);
        brokers.create_topic("orders", 1);
        test(World { zookeeper, brokers, bootstrap: false }).await;
    });
}

impl World {
    fn builder(&self, id: &str) -> Builder {
        self.builder_with(id, "smallest")
    }

    fn builder_with(&self, id: &str, reset: &str) -> Builder {
        self.builder_of(id, &[("auto.offset.reset", reset)])
    }

    fn builder_of(&self, id: &str, properties: &[(&str, &str)]) -> Builder {
        let config = ConsumerConfig::builder()
            .property("zookeeper.connect", "memory")
            .property("group.id", "g")
            .property("consumer.id", id);
        let config = match self.bootstrap {
            true => config.property("bootstrap.servers", "broker-0:9092"),
            false => config,
        };
        let config = properties.iter().fold(config, |config, (key, value)| config.property(key, value));
        ConsumerSystem::builder(config.build().expect("a configuration"))
            .connector(Arc::new(self.zookeeper.connector(id)))
            .in_memory(self.brokers.clone())
    }

    /// Who owns a partition, by the node.
    fn owner(&self, partition: i32) -> Option<String> {
        self.owner_of("orders", partition)
    }

    fn owner_of(&self, topic: &str, partition: i32) -> Option<String> {
        let node = self.zookeeper.node(&format!("/consumers/g/owners/{topic}/{partition}"))?;
        Some(String::from_utf8(node.data).expect("text"))
    }

    /// The offset of partition 0, by the node.
    fn stored(&self) -> Option<String> {
        let node = self.zookeeper.node("/consumers/g/offsets/orders/0")?;
        Some(String::from_utf8(node.data).expect("text"))
    }

    fn produce(&self, value: &str) {
        self.produce_to("orders", 0, value);
    }

    fn produce_to(&self, topic: &str, partition: i32, value: &str) {
        self.brokers.append(&TopicPartition::new(topic, partition), &[value]);
    }

    async fn pulling(&self) -> (ConsumerHandle, KafkaStream) {
        self.pulling_as("a").await
    }

    async fn pulling_as(&self, id: &str) -> (ConsumerHandle, KafkaStream) {
        let handle = self.builder(id).pull("orders", 1).start().await.expect("it starts");
        let stream = handle.streams("orders").remove(0);
        (handle, stream)
    }
}

async fn next(stream: &mut KafkaStream) -> String {
    let record = timeout(PATIENCE, stream.next()).await.expect("a record in time").expect("no end");
    record.expect("it can be read").text().into_owned()
}

#[test]
fn a_stream_that_is_waited_for_goes_on_after_its_queue_panicked() {
    on_paused_clock(async |world| {
        let (handle, mut stream) = world.pulling().await;
        world.produce("before");
        assert_eq!(next(&mut stream).await, "before");
        assert!(timeout(Duration::from_secs(1), stream.next()).await.is_err(), "nothing is there to pull");
        crash(&handle, "stream-queue/orders-0");
        assert!(timeout(Duration::from_secs(1), stream.next()).await.is_err(), "nothing is there to pull");
        world.produce("after");
        assert_eq!(next(&mut stream).await, "after");
        handle.shutdown().await;
        assert!(stream.next().await.is_none());
    });
}

#[test]
fn a_stream_that_is_waited_for_ends_when_the_system_panicked() {
    on_paused_clock(async |world| {
        let (handle, mut stream) = world.pulling().await;
        world.produce("before");
        assert_eq!(next(&mut stream).await, "before");
        stream.ack();
        crash(&handle, "consumer-system");
        assert!(timeout(PATIENCE, stream.next()).await.expect("it ends").is_none());
    });
}

/// With pauses that a test need not wait for.
fn soon(times: u32) -> FailurePolicy {
    FailurePolicy::retry(times).backoff(Duration::from_millis(100), Duration::from_secs(1))
}

fn crash(handle: &ConsumerHandle, child: &str) {
    handle.address().do_send(CrashChild(child.to_owned()));
}

/// By looking again and again: the clock stands, so that costs nothing.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn an_owner_node_deleted_while_no_session_actor_runs_is_claimed_again() {
    on_paused_clock(async |world| {
        let (handle, _stream) = world.pulling().await;
        until("it owns the partition", || world.owner(0).is_some()).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        crash(&handle, "zk-session");
        tokio::time::sleep(Duration::from_millis(50)).await;
        world.zookeeper.remove("/consumers/g/owners/orders/0");
        until("it owns it again", || world.owner(0).is_some()).await;
        handle.shutdown().await;
    });
}

#[test]
fn a_coordinator_restarted_without_a_connection_forgets_none_of_its_nodes() {
    on_paused_clock(async |world| {
        world.brokers.create_topic("orders", 2);
        let (first, _stream) = world.pulling().await;
        until("it owns both", || (0..2).all(|partition| world.owner(partition).is_some())).await;
        let session = world.zookeeper.sessions_of("a")[0];
        world.zookeeper.suspend(session);
        crash(&first, "rebalance-coordinator");
        tokio::time::sleep(Duration::from_secs(2)).await;
        world.zookeeper.reconnect(session);
        let second = world.builder("b").pull("orders", 1).start().await.expect("it starts");
        until("the second owns its share", || world.owner(1).as_deref() == Some("g_b-0")).await;
        assert_eq!(world.owner(0).as_deref(), Some("g_a-0"));
        second.shutdown().await;
        first.shutdown().await;
    });
}

#[test]
fn a_first_position_stands_once_it_is_stored_whoever_waited_for_it() {
    // when it lags, the answer to the first is still to come when the second is made
    let cases =
        [("fetcher-manager", false), ("stream-queue/orders-0", false), ("stream-queue/orders-0", true)];
    for (child, lags) in cases {
        on_paused_clock(async |world| {
            world.produce("long ago");
            // so that storing is one write
            world.zookeeper.put("/consumers/g/offsets/orders", b"");
            world.zookeeper.set_pace(Arc::new(|| Duration::from_millis(10)));
            let builder = world.builder_with("a", "largest").pull("orders", 1);
            let handle = builder.start().await.expect("it starts");
            let mut stream = handle.streams("orders").remove(0);
            let session = world.zookeeper.sessions_of("a")[0];
            if lags {
                until("it owns the partition", || world.owner(0).is_some()).await;
                tokio::time::sleep(Duration::from_millis(25)).await;
                world.zookeeper.lag(session);
            }
            until("the position is stored", || {
                world.zookeeper.node("/consumers/g/offsets/orders/0").is_some()
            })
            .await;
            crash(&handle, child);
            world.produce("after that");
            tokio::time::sleep(Duration::from_millis(500)).await;
            world.zookeeper.catch_up(session);
            assert_eq!(next(&mut stream).await, "after that", "{child}");
            handle.shutdown().await;
        });
    }
}

struct Teller(UnboundedSender<String>);

impl Actor for Teller {
    type Context = Context<Self>;
}

impl Handler<Record> for Teller {
    type Result = HandlerResult;

    fn handle(&mut self, record: Record, _: &mut Self::Context) -> HandlerResult {
        self.0.send(record.text().into_owned())?;
        Ok(())
    }
}

async fn heard(told: &mut UnboundedReceiver<String>) -> String {
    timeout(PATIENCE, told.recv()).await.expect("a record in time").expect("the handler lives")
}

/// The lease follows the clock that stands, and the session expires by it.
#[test]
fn a_member_that_is_cut_off_hands_nothing_over_and_its_successor_begins_where_it_stopped() {
    on_paused_clock(async |world| {
        let (tell, mut told) = unbounded_channel();
        let start = async |id: &str, tell: UnboundedSender<String>| {
            let builder = world.builder(id).handle("orders", 1, move || Teller(tell.clone()));
            builder.start().await.expect("it starts")
        };
        let first = start("a", tell).await;
        world.produce("one");
        assert_eq!(heard(&mut told).await, "one");
        assert_eq!(first.commit().await.unwrap().all(), Ok(1));
        let cut = Instant::now();
        world.zookeeper.cut_off(world.zookeeper.sessions_of("a")[0]);
        // its lease (2/3 of 6 s) is over, its session is not
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.produce("two");
        let (tell, mut told_second) = unbounded_channel();
        let second = start("b", tell).await;
        assert_eq!(heard(&mut told_second).await, "two");
        assert!(cut.elapsed() >= Duration::from_secs(6), "before the session timeout of the first");
        assert!(told.try_recv().is_err(), "the first handed over what is not its own any more");
        second.shutdown().await;
        first.shutdown().await;
    });
}
