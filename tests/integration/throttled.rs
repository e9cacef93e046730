//! A byte rate that a broker grants us (quotas).

use std::time::{Duration, Instant};

use troupe_cluster::{KafkaVersion, ProduceRecord};

use crate::support::by_hand::ByHand;
use crate::support::clusters::builder;
use crate::support::records::Reading;
use crate::support::system::run;

/// Bytes a second.
const QUOTA: u64 = 100_000;
/// Over so many seconds; what a batch exceeds would never be sent.
const WINDOW: u64 = 5;
/// Of 1000 bytes each, in batches of a quarter of a megabyte: twice what is granted at once.
const RECORDS: u64 = 1000;

/// The broker reads nothing from us for longer than we wait for an answer: so it must not be asked then.
#[test]
fn a_consumer_with_a_quota_is_slow_and_asks_nothing_while_the_broker_is_deaf() {
    let cluster = builder(KafkaVersion::V3_9_1)
        .broker_property("quota.window.num", "2")
        .broker_property("quota.window.size.seconds", WINDOW.to_string())
        .start()
        .unwrap();
    cluster.create_topic("throttled", 1, 1).unwrap();
    cluster.produce("throttled", (0..RECORDS).map(|_| ProduceRecord::value(vec![b'v'; 1000]))).unwrap();
    run(async {
        let zookeeper = ByHand::of_all(&cluster).await;
        let rate = format!(r#""consumer_byte_rate":"{QUOTA}""#);
        zookeeper.configure("clients/slow", &rate).await;
        zookeeper.close().await;
        // it reads all quotas when it starts
        cluster.broker(0).restart().unwrap();

        let time = async |client: &str| {
            let began = Instant::now();
            let properties = [
                ("client.id", client),
                ("group.id", client),
                ("socket.timeout.ms", "1000"),
                ("fetch.message.max.bytes", "100000"),
            ];
            let reading = Reading::start(&cluster, "throttled", "m", &properties).await;
            reading.log.wait_for_all(&cluster, "throttled").await;
            let (time, requests) = (began.elapsed(), reading.requests().await);
            let failures: Vec<String> =
                reading.status().await.brokers.into_iter().map(|it| it.last_error).collect();
            assert_eq!(failures, [""], "of the broker");
            reading.member.shutdown().await;
            assert_eq!(reading.log.history("throttled").duplicates(), 0);
            println!("{client}: {requests} requests in {time:?}");
            (time, requests)
        };
        let (free, _) = time("free").await;
        let (slow, requests) = time("slow").await;
        assert!(slow > free + Duration::from_secs(WINDOW / 2), "{slow:?}, and {free:?} without a quota");
        assert!(requests < 4 * slow.as_secs(), "{requests} requests");
    });
}
