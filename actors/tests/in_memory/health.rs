//! What [`ConsumerHandle::health`] says of a member to which things happen, and that it takes it back.

use std::sync::Mutex;

use kafka_troupe_actors::Subscription;
use kafka_troupe_actors::rebalance_listener::{
    BeforeReleasingPartitions, BeforeStartingPartitions, OwnershipLost,
};
use kafka_troupe_proto::group::FailurePolicy;
use kafka_troupe_proto::health::{self, Health};
use kafka_troupe_proto::schemas::status::v1::StatusSnapshot;
use tokio::sync::oneshot;

use super::*;

/// Waits until the member is so.
async fn becomes(handle: &ConsumerHandle, expected: &Health) {
    let began = Instant::now();
    loop {
        let health = handle.health().await;
        if health == *expected {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{health:?} and not {expected:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until it is failing, and gives the only reason.
async fn fails(handle: &ConsumerHandle) -> String {
    let began = Instant::now();
    loop {
        match handle.health().await {
            Health::Failing { mut why } => {
                assert_eq!(why.len(), 1, "{why:?}");
                return why.remove(0);
            }
            health => assert!(began.elapsed() < PATIENCE, "{health:?}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Refuses records until it is told otherwise.
#[derive(Clone)]
struct Picky(Arc<Mutex<bool>>);

impl Actor for Picky {
    type Context = Context<Self>;
}

impl Handler<Record> for Picky {
    type Result = HandlerResult;

    fn handle(&mut self, _: Record, _: &mut Self::Context) -> HandlerResult {
        if *self.0.lock().unwrap() { Ok(()) } else { Err("no such customer".into()) }
    }
}

#[test]
fn a_partition_that_is_stopped_by_its_policy_fails_until_it_is_resumed() {
    on_paused_clock(async |world| {
        let picky = Picky(Arc::default());
        let (accepts, policy) = (Arc::clone(&picky.0), FailurePolicy::retry(1));
        let subscription = Subscription::topic("orders").on_failure(policy).handle(move || picky.clone());
        let handle = world.builder("a").subscription(subscription).start().await.expect("it starts");
        becomes(&handle, &Health::Healthy).await;
        world.produce("one");
        let why = fails(&handle).await;
        for name in ["orders-0", "offset 0", "no such customer"] {
            assert!(why.contains(name), "{why}");
        }
        let status = handle.metrics().await.unwrap();
        assert_eq!(status.health.unwrap().why, [why], "the picture says the same");
        *accepts.lock().unwrap() = true;
        handle.resume([TopicPartition::new("orders", 0)]).await.unwrap();
        becomes(&handle, &Health::Healthy).await;
        handle.shutdown().await;
        assert_eq!(handle.health().await, Health::Ended);
    });
}

#[test]
fn a_broker_that_is_gone_fails_once_its_grace_is_over_and_is_well_when_it_is_back() {
    on_paused_clock(async |world| {
        // the cluster is there yet, without a leader for what the other had
        world.brokers.start(1);
        let (handle, _stream) = world.pulling().await;
        becomes(&handle, &Health::Healthy).await;
        let stopped = Instant::now();
        world.brokers.stop(0);
        tokio::time::sleep(health::GRACE - Duration::from_secs(1)).await;
        assert_eq!(handle.health().await, Health::Healthy, "it may be a leader's election");
        let why = fails(&handle).await;
        assert!(why.contains("orders-0"), "{why}");
        assert!(stopped.elapsed() < health::GRACE + Duration::from_secs(5), "{:?}", stopped.elapsed());
        let since = handle.metrics().await.unwrap().partitions[0].unfetched_since_ms;
        tokio::time::sleep(Duration::from_secs(300)).await;
        let status = handle.metrics().await.unwrap();
        let lasted = status.taken_ms - status.partitions[0].unfetched_since_ms;
        assert_eq!(status.partitions[0].unfetched_since_ms, since);
        assert!((310_000..330_000).contains(&lasted), "{lasted} ms, by the clock of the timers");
        world.brokers.start(0);
        world.brokers.elect();
        becomes(&handle, &Health::Healthy).await;
        handle.shutdown().await;
    });
}

/// Ends itself as soon as it is there, until it is told otherwise.
struct Fleeting(Arc<Mutex<bool>>);

impl Actor for Fleeting {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if !*self.0.lock().unwrap() {
            ctx.stop();
        }
    }
}

impl Handler<Record> for Fleeting {
    type Result = HandlerResult;

    fn handle(&mut self, _: Record, _: &mut Self::Context) -> HandlerResult {
        Ok(())
    }
}

/// The handler is made well once it is let.
async fn fails_until_let(world: World, may: Arc<Mutex<bool>>, builder: Builder, names: &[&str]) {
    let handle = builder.start().await.expect("it starts");
    world.produce("one");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(handle.health().await, Health::Healthy, "it may pass");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let why = fails(&handle).await;
    for name in names {
        assert!(why.contains(name), "{why}");
    }
    let restarts = |name: &str, status: &StatusSnapshot| {
        status.actors.iter().find(|actor| actor.name == name).map(|actor| actor.restarts)
    };
    let status = handle.metrics().await.unwrap();
    assert_eq!(restarts("stream-queue/orders-0", &status), Some(0), "it is the handler that ends");
    *may.lock().unwrap() = true;
    becomes(&handle, &Health::Healthy).await;
    handle.shutdown().await;
    assert_eq!(world.stored().as_deref(), Some("1"));
}

#[test]
fn a_handler_that_cannot_be_made_fails_until_it_can() {
    on_paused_clock(async |world| {
        let may = Arc::new(Mutex::new(false));
        let shared = Arc::clone(&may);
        let builder = world.builder("a").handle("orders", 1, move || {
            let may = *shared.lock().unwrap();
            assert!(may, "no such database");
            Fleeting(Arc::clone(&shared))
        });
        fails_until_let(world, may, builder, &["orders-0", "no such database"]).await;
    });
}

#[test]
fn a_handler_that_stops_as_soon_as_it_is_started_fails_until_it_does_not() {
    on_paused_clock(async |world| {
        let may = Arc::new(Mutex::new(false));
        let shared = Arc::clone(&may);
        let builder = world.builder("a").handle("orders", 1, move || Fleeting(Arc::clone(&shared)));
        fails_until_let(world, may, builder, &["orders-0", "it panicked, or stopped"]).await;
    });
}

#[test]
fn a_member_that_is_shutting_down_is_leaving_and_not_ready() {
    on_paused_clock(async |world| {
        let (handle, mut stream) = world.pulling().await;
        world.produce("one");
        assert_eq!(next(&mut stream).await, "one");
        let leaving = handle.clone();
        actix::spawn(async move { leaving.shutdown().await });
        tokio::time::sleep(Duration::from_millis(100)).await;
        let mut health = handle.health().await;
        assert_eq!(health, Health::Leaving, "the record in hand is waited for");
        while health != Health::Ended {
            assert_eq!(health, Health::Leaving);
            tokio::time::sleep(Duration::from_millis(1)).await;
            health = handle.health().await;
        }
    });
}

#[test]
fn a_member_without_a_session_is_suspended_and_comes_back_by_a_rebalance() {
    on_paused_clock(async |world| {
        let (handle, _stream) = world.pulling().await;
        becomes(&handle, &Health::Healthy).await;
        let session = world.zookeeper.sessions_of("a")[0];
        world.zookeeper.suspend(session);
        becomes(&handle, &Health::Suspended).await;
        world.zookeeper.reconnect(session);
        becomes(&handle, &Health::Healthy).await;
        // so that the rebalance takes its time
        world.zookeeper.set_pace(Arc::new(|| Duration::from_millis(50)));
        world.zookeeper.expire(session);
        becomes(&handle, &Health::Rebalancing).await;
        becomes(&handle, &Health::Healthy).await;
        handle.shutdown().await;
    });
}

#[test]
fn what_is_wrong_with_an_added_member_is_said_with_its_name() {
    on_paused_clock(async |world| {
        world.brokers.create_topic("payments", 1);
        let (handle, _stream) = world.pulling().await;
        let policy = FailurePolicy::retry(0);
        let refuse = move || Picky(Arc::default());
        let subscription = Subscription::topic("payments").on_failure(policy).handle(refuse);
        let added = handle.subscribe().connector(Arc::new(world.zookeeper.connector("a.1")));
        let added = added.subscription(subscription).start().await.expect("it starts");
        becomes(&handle, &Health::Healthy).await;
        world.produce_to("payments", 0, "one");
        let why = fails(&handle).await;
        assert!(why.starts_with("g_a.1: payments-0 "), "{why}");
        added.shutdown().await;
        becomes(&handle, &Health::Healthy).await;
        handle.shutdown().await;
    });
}

/// Answers when it is let.
#[derive(Default)]
struct Dreamer(Vec<oneshot::Receiver<()>>);

impl Actor for Dreamer {
    type Context = Context<Self>;
}

impl Handler<BeforeStartingPartitions> for Dreamer {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: BeforeStartingPartitions, _: &mut Self::Context) -> Self::Result {
        let let_go = self.0.pop();
        Box::pin(async move {
            if let Some(let_go) = let_go {
                let_go.await.unwrap_or(());
            }
        })
    }
}

impl Handler<BeforeReleasingPartitions> for Dreamer {
    type Result = ();

    fn handle(&mut self, _: BeforeReleasingPartitions, _: &mut Self::Context) {}
}

impl Handler<OwnershipLost> for Dreamer {
    type Result = ();

    fn handle(&mut self, _: OwnershipLost, _: &mut Self::Context) {}
}

#[test]
fn a_listener_that_owes_an_answer_fails_until_it_gives_it() {
    on_paused_clock(async |world| {
        let (let_go, wait) = oneshot::channel();
        let listener = Dreamer(vec![wait]).start();
        let builder = world.builder("a").pull("orders", 1).rebalance_listener(listener);
        let builder = builder.rebalance_listener_timeout(Duration::from_secs(3));
        let handle = builder.start().await.expect("it starts");
        let why = fails(&handle).await;
        assert!(why.contains("Dreamer") && why.contains("orders-0") && why.contains("3000 ms"), "{why}");
        let_go.send(()).unwrap();
        becomes(&handle, &Health::Healthy).await;
        let listener = handle.metrics().await.unwrap().listener.unwrap();
        assert_eq!((listener.late, &*listener.failing), (1, ""));
        assert!(!listener.last_error.is_empty(), "what has been is remembered");
        handle.shutdown().await;
    });
}

#[test]
fn an_actor_that_is_being_restarted_is_named() {
    for child in ["rebalance-coordinator", "fetcher-manager", "offset-committer", "zk-session"] {
        on_paused_clock(async |world| {
            let (handle, _stream) = world.pulling().await;
            becomes(&handle, &Health::Healthy).await;
            crash(&handle, child);
            let why = fails(&handle).await;
            assert!(why.contains(child), "{why}");
            becomes(&handle, &Health::Healthy).await;
            handle.shutdown().await;
        });
    }
}
