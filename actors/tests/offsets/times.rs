//! `auto.offset.reset` by time, at real brokers.

use std::time::{Duration, SystemTime};

use kafka_troupe_proto::config::{IsolationLevel, OffsetReset};
use troupe_cluster::{Cluster, JavaRecord, KafkaVersion};

use crate::real_logs::{Reader, produce, settings};

/// A time after all that was produced, and before all that will be.
fn between() -> i64 {
    let now = || {
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap();
        i64::try_from(since.as_millis()).unwrap()
    };
    let last = now();
    while now() <= last + 1 {
        std::thread::yield_now();
    }
    last + 1
}

/// Where a reader without an offset begins, and that this was stored before.
async fn begins_at(cluster: &Cluster, reset: OffsetReset, expected: i64) {
    let reader = Reader::start(cluster, settings(reset), None).await;
    reader.until("a position", || reader.claimed.acked() >= 0).await;
    let made = reader.claimed.committed();
    assert_eq!((made, reader.other.stored()), (expected, Some((expected, 0))), "{reset}");
    let end = cluster.log_end_offsets("t").unwrap()[0];
    if made == end {
        produce(cluster, "more", 1);
    }
    reader.until("a record", || reader.count() > 0).await;
    let arrived = reader.offsets("", 1).await;
    assert_eq!(arrived[0], (expected, Some(expected)), "{reset}");
}

async fn a_time_is_found_exactly(version: KafkaVersion) {
    let cluster = Cluster::start(version, 1).unwrap();
    cluster.create_topic("t", 1, 1).unwrap();
    produce(&cluster, "first", 10);
    let time = between();
    produce(&cluster, "second", 5);
    let age = SystemTime::UNIX_EPOCH.elapsed().unwrap() + Duration::from_secs(3600);
    begins_at(&cluster, OffsetReset::ToTime(time), 10).await;
    begins_at(&cluster, OffsetReset::ToTime(0), 0).await;
    begins_at(&cluster, OffsetReset::ByDuration(Duration::from_secs(3600)), 0).await;
    begins_at(&cluster, OffsetReset::ByDuration(age), 0).await;
    // nothing is that young: at the end, and each adds a record
    begins_at(&cluster, OffsetReset::ToTime(time + 3_600_000), 15).await;
    between();
    begins_at(&cluster, OffsetReset::ByDuration(Duration::ZERO), 16).await;
}

#[actix::test]
async fn a_time_is_found_exactly_in_1_1_1() {
    a_time_is_found_exactly(KafkaVersion::V1_1_1).await;
}

#[actix::test]
async fn a_time_is_found_exactly_in_3_9_1() {
    a_time_is_found_exactly(KafkaVersion::V3_9_1).await;
}

/// Brokers before 0.10.1 know when a segment was last written, and no more: nothing is passed over.
#[actix::test]
async fn a_time_is_a_segments_start_in_0_8_2_2() {
    let cluster =
        Cluster::builder().kafka(KafkaVersion::V0_8_2_2).broker_property("log.segment.bytes", "400");
    let cluster = cluster.start().unwrap();
    cluster.create_topic("t", 1, 1).unwrap();
    let times = ["first", "second", "third"].map(|word| {
        produce(&cluster, word, 10);
        between()
    });
    // each word is a segment of its own
    for (time, start) in [(0, 0), (times[0], 0), (times[1], 10), (times[2], 20)] {
        begins_at(&cluster, OffsetReset::ToTime(time), start).await;
    }
    begins_at(&cluster, OffsetReset::ToTime(times[2] + 3_600_000), 30).await;
}

/// With read_committed the end of a log is where the first open transaction begins.
#[actix::test]
async fn the_end_is_the_last_stable_offset_with_read_committed() {
    let cluster = Cluster::start(KafkaVersion::V3_9_1, 1).unwrap();
    cluster.create_topic("t", 1, 1).unwrap();
    produce(&cluster, "plain", 10);
    let mut producer = cluster.java_producer(KafkaVersion::V3_9_1, &[("transactional.id", "one")]).unwrap();
    producer.begin().unwrap();
    producer.send("t", &JavaRecord { value: Some(b"open".to_vec()), ..JavaRecord::default() }).unwrap();
    producer.flush().unwrap();
    for (isolation, end) in [(IsolationLevel::ReadUncommitted, 11), (IsolationLevel::ReadCommitted, 10)] {
        let mut settings = settings(OffsetReset::Largest);
        settings.isolation = isolation;
        let reader = Reader::start(&cluster, settings, None).await;
        reader.until("a position", || reader.claimed.acked() >= 0).await;
        assert_eq!((reader.claimed.acked(), reader.other.stored()), (end, Some((end, 0))), "{isolation}");
    }
}

/// Such records have no times.
#[actix::test]
async fn a_topic_of_an_old_message_format_is_named_with_what_to_do() {
    let cluster = Cluster::start(KafkaVersion::V1_1_1, 1).unwrap();
    let old = [("message.format.version", "0.9.0")];
    cluster.client().create_topic_with("t", 1, 1, &old).unwrap();
    let reader = Reader::start(&cluster, settings(OffsetReset::ToTime(7)), None).await;
    reader.until_waiting_for("topic t has a message format before 0.10").await;
    let status = reader.describe().await;
    assert!(status.waiting[0].failed && status.waiting[0].why.as_deref().unwrap().contains("to_time:7"));
    assert_eq!((reader.other.stored(), reader.count()), (None, 0));
}
