use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use kafka_troupe_proto::kafka::fetch::FetchRequest;
use kafka_troupe_proto::kafka::metadata::MetadataRequest;

use super::*;
use crate::broker_connection::Transport;
use crate::testkit::{Generation, MemoryBrokers, RequestSeen};

const VERSIONS: i16 = 18;
const METADATA: i16 = 3;

/// One broker in memory, options to dial it, and what it was asked.
struct Bench {
    brokers: MemoryBrokers,
    options: ConnectOptions,
    seen: Arc<Mutex<Vec<RequestSeen>>>,
}

fn bench(generation: Generation) -> Bench {
    let brokers = MemoryBrokers::new(1);
    brokers.create_topic("topic", 1);
    brokers.set_generation(0, generation);
    let seen = Arc::<Mutex<Vec<_>>>::default();
    let told = Arc::clone(&seen);
    brokers.set_watch(Arc::new(move |request| told.lock().expect("no test panics with it").push(request)));
    let mut options = ConnectOptions::new("test", Duration::from_secs(30));
    options.transport = Transport::Memory { brokers: brokers.clone(), client: "test".into() };
    Bench { brokers, options, seen }
}

impl Bench {
    async fn dial(&self) -> Result<BrokerConnection, ConnectionError> {
        BrokerConnection::connect("broker-0", 9092, self.options.clone()).await
    }

    /// Dials and asks for metadata; says in which version and how long that took.
    async fn metadata(&self) -> (i16, Duration) {
        let began = Instant::now();
        let mut connection = self.dial().await.expect("a connection");
        let version = connection.version_of::<MetadataRequest>().expect("a common version");
        let topics = Some(vec!["topic".into()]);
        let answer = connection.call(&MetadataRequest { topics }).await.expect("an answer");
        assert_eq!(answer.topics[0].partitions.len(), 1);
        (version, began.elapsed())
    }

    /// How often the versions were asked for since this was asked last.
    fn asked_versions(&self) -> usize {
        let seen = std::mem::take(&mut *self.seen.lock().expect("no test panics with it"));
        seen.iter().filter(|request| request.api == VERSIONS).count()
    }
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_answers_is_asked_once_per_connection() {
    for generation in [Generation::Kafka1_1, Generation::Latest, Generation::Kafka4] {
        let bench = bench(generation);
        for _ in 0..2 {
            let (version, took) = bench.metadata().await;
            assert!(version >= 5 && took.is_zero(), "{generation:?}: {version} in {took:?}");
            assert_eq!(bench.asked_versions(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_hangs_up_is_one_of_0_8_when_it_proves_it() {
    let bench = bench(Generation::Kafka0_8_2);
    assert_eq!(bench.metadata().await, (0, Duration::ZERO));
    assert_eq!(bench.asked_versions(), 2, "one to be hung up on, one to prove it");
    assert_eq!(bench.metadata().await, (0, Duration::ZERO));
    assert_eq!(bench.asked_versions(), 0, "taken for granted");
    tokio::time::advance(FRESH).await;
    assert_eq!(bench.metadata().await, (0, Duration::ZERO));
    assert_eq!(bench.asked_versions(), 1, "asked again");
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_swallows_is_one_of_0_9_and_waited_for_once() {
    let bench = bench(Generation::Kafka0_9);
    assert_eq!(bench.metadata().await, (0, SILENCE));
    assert_eq!(bench.metadata().await, (0, Duration::ZERO));
    assert_eq!(bench.asked_versions(), 1);
    tokio::time::advance(FRESH).await;
    let (version, took) = bench.metadata().await;
    assert!(version == 0 && took < Duration::from_millis(10), "{took:?}");
    assert_eq!(bench.asked_versions(), 1, "asked again, without a wait");
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_in_place_is_noticed_by_the_next_connection() {
    use Generation::{Kafka0_8_2, Kafka0_9, Kafka1_1, Kafka4, Latest};
    for (before, after) in [
        (Kafka0_8_2, Kafka1_1),
        (Kafka0_9, Kafka1_1),
        (Kafka0_9, Latest),
        (Kafka1_1, Latest),
        (Latest, Kafka1_1),
        (Kafka1_1, Kafka0_8_2),
        (Kafka1_1, Kafka0_9),
    ] {
        let bench = bench(before);
        let mut connection = bench.dial().await.expect("a connection");
        bench.brokers.set_generation(0, after);
        connection.call(&MetadataRequest::default()).await.expect_err("it is gone");
        let (version, took) = bench.metadata().await;
        assert_eq!(version > 0, !matches!(after, Kafka0_8_2 | Kafka0_9), "{before:?} to {after:?}");
        assert!(took <= SILENCE, "{before:?} to {after:?}: {took:?}");
    }
    // 4.0 does not know the probe: the attempt after that finds out
    for before in [Kafka0_8_2, Kafka0_9] {
        let bench = bench(before);
        let mut connection = bench.dial().await.expect("a connection");
        bench.brokers.set_generation(0, Kafka4);
        connection.call(&MetadataRequest::default()).await.expect_err("it is gone");
        let _ = bench.dial().await;
        assert_eq!(bench.metadata().await, (12, Duration::ZERO));
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_was_upgraded_while_nobody_was_connected_is_asked_again() {
    let bench = bench(Generation::Kafka0_8_2);
    bench.metadata().await;
    bench.brokers.set_generation(0, Generation::Latest);
    tokio::time::advance(FRESH).await;
    assert_eq!(bench.metadata().await.0, 12);
}

#[tokio::test(start_paused = true)]
async fn a_slow_broker_is_not_taken_for_an_old_one() {
    let bench = bench(Generation::Latest);
    bench.brokers.set_pace(Arc::new(|| SILENCE * 2));
    let connection = bench.dial().await.expect("a connection");
    assert_eq!(connection.version_of::<FetchRequest>().expect("a common version"), 11);
    assert!(bench.options.old_brokers.recall(connection.address()).is_none());
}

#[tokio::test(start_paused = true)]
async fn one_that_is_killed_while_it_is_asked_is_not_taken_for_an_old_one() {
    let bench = bench(Generation::Latest);
    let (brokers, is_first) = (bench.brokers.clone(), AtomicBool::new(true));
    // so that the answer is still to come
    brokers.set_pace(Arc::new(|| Duration::from_millis(1)));
    // it answers the first with the end of the connection, as one that is being killed does
    bench.brokers.set_watch(Arc::new(move |request| {
        if request.api == VERSIONS && is_first.swap(false, SeqCst) {
            brokers.cut("test");
        }
    }));
    let connection = bench.dial().await.expect("it is up again");
    assert_eq!(connection.version_of::<FetchRequest>().expect("a common version"), 11);
    assert!(bench.options.old_brokers.recall(connection.address()).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_port_that_is_silent_or_hangs_up_on_everything_is_an_error_and_nothing_is_learnt() {
    for (generation, told) in
        [(Generation::Silent, "waited 30s for a response"), (Generation::HangsUp, "closed the connection")]
    {
        let bench = bench(generation);
        let began = Instant::now();
        let error = bench.dial().await.expect_err("it is no broker");
        let text = error.to_string();
        assert!(text.contains("broker-0:9092") && text.contains(told), "{text}");
        assert!(began.elapsed() <= Duration::from_secs(32), "{:?}", began.elapsed());
        assert!(bench.options.old_brokers.recall("broker-0:9092").is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_outside_of_what_the_broker_speaks() {
    let bench = bench(Generation::Kafka4);
    bench.metadata().await;
    let seen = bench.seen.lock().expect("no test panics with it").clone();
    assert!(
        seen.iter().all(|request| matches!((request.api, request.version), (VERSIONS, 0) | (METADATA, 12)))
    );
}

#[tokio::test(start_paused = true)]
async fn a_throttled_connection_waits_before_it_asks_again() {
    for (generation, waits) in [(Generation::Latest, true), (Generation::Kafka1_1, false)] {
        let bench = bench(generation);
        let mut connection = bench.dial().await.expect("a connection");
        bench.brokers.set_throttle(Duration::from_secs(7));
        let began = Instant::now();
        connection.call(&MetadataRequest::default()).await.expect("an answer");
        assert_eq!(connection.deaf_for() == Duration::from_secs(7), waits);
        let offsets = ListOffsetsRequest::default();
        connection.call(&offsets).await.expect("an answer");
        assert_eq!(began.elapsed().as_secs(), if waits { 7 } else { 0 }, "{generation:?}");
        connection.call(&offsets).await.expect("an answer");
        assert_eq!(began.elapsed().as_secs(), if waits { 14 } else { 0 }, "{generation:?}");
    }
}
