//! B30 of the field cases: bursts that lose nothing, and members that wait without spinning.

use futures_util::future::join_all;
use kafka_troupe_actors::Subscription;
use kafka_troupe_proto::zk::topic_filter::TopicFilter;

use super::*;

/// Tells what it handles, once it may.
struct Held {
    tell: UnboundedSender<String>,
    gate: tokio::sync::watch::Receiver<bool>,
}

impl Actor for Held {
    type Context = Context<Self>;
}

impl Handler<Record> for Held {
    type Result = ResponseFuture<HandlerResult>;

    fn handle(&mut self, record: Record, _: &mut Self::Context) -> Self::Result {
        let (tell, mut gate) = (self.tell.clone(), self.gate.clone());
        Box::pin(async move {
            gate.wait_for(|open| *open).await?;
            tell.send(format!("{}@{}", record.partition(), record.offset()))?;
            Ok(())
        })
    }
}

/// Requests and dials in a minute, a while after what came before.
async fn asked_in_a_minute(world: &World) -> (u64, u64) {
    let fetches = Arc::new(std::sync::atomic::AtomicU64::new(0));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (told, dials) = (Arc::clone(&fetches), world.brokers.dials());
    world.brokers.set_watch(Arc::new(move |_| {
        told.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }));
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.brokers.set_watch(Arc::new(|_| {}));
    (fetches.load(std::sync::atomic::Ordering::SeqCst), world.brokers.dials() - dials)
}

fn held() -> (UnboundedReceiver<String>, tokio::sync::watch::Sender<bool>, impl Fn() -> Held + Send + Sync) {
    let ((tell, told), (open, gate)) = (unbounded_channel(), tokio::sync::watch::channel(false));
    (told, open, move || Held { tell: tell.clone(), gate: gate.clone() })
}

#[test]
fn two_hundred_chunks_at_once_for_one_stream_are_all_handled() {
    on_paused_clock(async |world| {
        world.brokers.create_topic("orders", 200);
        (0..200).for_each(|partition| world.produce_to("orders", partition, "value"));
        let (mut told, open, make) = held();
        let subscription = Subscription::topic("orders").handle(make);
        let handle = world.builder("a").subscription(subscription).start().await.expect("it starts");
        tokio::time::sleep(Duration::from_secs(5)).await;
        let stream = handle.metrics().await.expect("it runs").streams.remove(0);
        assert!(stream.chunks > 100, "they came in a burst: {stream:?}");
        open.send_replace(true);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let told = timeout(PATIENCE, told.recv()).await.expect("a record in time").expect("no end");
            assert!(seen.insert(told));
        }
        handle.shutdown().await;
        assert!(told.try_recv().is_err(), "each came once");
    });
}

#[test]
fn two_hundred_topics_and_two_hundred_commits_at_once_are_all_heard_of() {
    on_paused_clock(async |world| {
        let filter = TopicFilter::white_list("burst.*").expect("a filter");
        let (mut told, open, make) = held();
        open.send_replace(true);
        let subscription = Subscription::matching(filter).handle(make);
        let handle = world.builder("a").subscription(subscription).start().await.expect("it starts");
        for topic in 0..200 {
            world.brokers.create_topic(&format!("burst-{topic}"), 1);
            world.produce_to(&format!("burst-{topic}"), 0, "value");
        }
        for _ in 0..200 {
            timeout(PATIENCE, told.recv()).await.expect("a record in time").expect("no end");
        }
        let commits = (0..200).map(|_| handle.commit());
        let answers = timeout(PATIENCE, join_all(commits)).await.expect("answers in time");
        assert!(answers.into_iter().all(|answer| answer.is_ok()));
        handle.shutdown().await;
        for topic in 0..200 {
            let node = world.zookeeper.node(&format!("/consumers/g/offsets/burst-{topic}/0"));
            assert_eq!(node.map(|node| node.data), Some(b"1".to_vec()), "{topic}");
        }
    });
}

#[test]
fn with_all_queues_full_nobody_asks_for_anything_and_it_goes_on_at_once() {
    on_paused_clock(async |world| {
        world.brokers.create_topic("orders", 4);
        let large = "x".repeat(10_000);
        let fill = |partition| (0..50).for_each(|_| world.produce_to("orders", partition, &large));
        (0..4).for_each(fill);
        let (mut told, open, make) = held();
        let builder =
            world.builder_of("a", &[("auto.offset.reset", "smallest"), ("fetch.message.max.bytes", "20000")]);
        let subscription = Subscription::topic("orders").streams(2).handle(make);
        let handle = builder.subscription(subscription).start().await.expect("it starts");
        assert_eq!(asked_in_a_minute(&world).await, (0, 0));
        for stream in handle.metrics().await.expect("it runs").streams {
            let most = 2 * 2 * 20_100;
            assert!(stream.queued_chunks <= 4 && stream.queued_bytes <= most, "{stream:?}");
        }
        open.send_replace(true);
        let began = Instant::now();
        for _ in 0..200 {
            timeout(PATIENCE, told.recv()).await.expect("a record in time").expect("no end");
        }
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        handle.shutdown().await;
    });
}

#[test]
fn a_stream_that_stays_full_beside_an_idle_one_costs_no_more_than_an_idle_one() {
    on_paused_clock(async |world| {
        world.brokers.create_topic("orders", 2);
        (0..50).for_each(|_| world.produce_to("orders", 0, "value"));
        let (mut told, open, make) = held();
        let small = [("auto.offset.reset", "smallest"), ("fetch.message.max.bytes", "100")];
        let subscription = Subscription::topic("orders").streams(2).handle(make);
        let builder = world.builder_of("a", &small).subscription(subscription);
        let handle = builder.start().await.expect("it starts");
        let (requests, dials) = asked_in_a_minute(&world).await;
        assert!((500..=1_300).contains(&requests), "{requests} requests in a minute");
        assert_eq!(dials, 0);
        world.produce_to("orders", 1, "value");
        tokio::time::sleep(Duration::from_secs(1)).await;
        open.send_replace(true);
        for _ in 0..51 {
            timeout(Duration::from_secs(2), told.recv()).await.expect("a record in time").expect("no end");
        }
        handle.shutdown().await;
    });
}

#[test]
fn with_all_brokers_down_they_are_dialled_now_and_then_and_it_goes_on_within_two_seconds() {
    for bootstrap in [false, true] {
        on_paused_clock(async |world| {
            let world = World { bootstrap, ..world };
            world.brokers.create_topic("orders", 50);
            world.produce("before");
            let (handle, mut stream) = world.pulling().await;
            assert_eq!(next(&mut stream).await, "before");
            world.brokers.stop(0);
            let (requests, dials) = asked_in_a_minute(&world).await;
            // each 200 ms (refresh.leader.backoff.ms), and the metadata's own
            assert!(requests == 0 && dials <= 60 * 10, "bootstrap {bootstrap}: {dials} dials in a minute");
            world.brokers.start(0);
            world.brokers.elect();
            world.produce("after");
            let began = Instant::now();
            assert_eq!(next(&mut stream).await, "after");
            assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
            handle.shutdown().await;
        });
    }
}
