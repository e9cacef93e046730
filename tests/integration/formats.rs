//! Record formats, written by Kafka's own producers, all the way (B14).

use std::fs;

use troupe_cluster::{Cluster, JavaProducer, JavaRecord, KafkaVersion, entries};

use crate::support::by_hand::ByHand;
use crate::support::clusters::shared;
use crate::support::records::Reading;
use crate::support::system::run;

/// The format of the last entry in a partition's log.
fn last_magic(cluster: &Cluster, topic: &str, partition: i32) -> Option<u8> {
    let segment = format!("{topic}-{partition}/00000000000000000000.log");
    let log = fs::read(cluster.broker(0).data().join(segment)).unwrap();
    entries(&log).last().map(|(magic, _)| *magic)
}

/// Writes to partition 1 until its broker does so in this format.
fn wait_for_format(cluster: &Cluster, producer: &mut JavaProducer, topic: &str, magic: u8) {
    let record = JavaRecord { partition: 1, value: Some(b"probe".to_vec()), ..JavaRecord::default() };
    for _ in 0..1000 {
        producer.send(topic, &record).unwrap();
        producer.flush().unwrap();
        if last_magic(cluster, topic, 1) == Some(magic) {
            return;
        }
    }
    panic!("{topic} is not written in format {magic}");
}

#[test]
fn b14_one_reply_holds_all_three_formats() {
    let cluster = shared(KafkaVersion::V1_1_1);
    let mut producer = cluster.java_producer(KafkaVersion::V1_1_1, &[]).unwrap();
    for codec in ["none", "gzip"] {
        let topic = format!("b14-{codec}");
        cluster.create_topic(&topic, 2, 1).unwrap();
        producer.configure(&[("compression.type", codec), ("linger.ms", "1000")]).unwrap();
        let mut sent = Vec::new();
        run(async {
            let zookeeper = ByHand::of_all(cluster).await;
            for (magic, format) in [(0, "0.9.0"), (1, "0.10.2"), (2, "1.1")] {
                let config = format!(r#""message.format.version":"{format}""#);
                zookeeper.configure(&format!("topics/{topic}"), &config).await;
                wait_for_format(cluster, &mut producer, &topic, magic);
                sent.extend(five(&mut producer, &topic, magic));
                assert_eq!(last_magic(cluster, &topic, 0), Some(magic));
            }
            zookeeper.close().await;
            read_at_once(cluster, &topic, &sent).await;
        });
    }
}

/// Five records for partition 0, as they are read from a log of this format.
fn five(producer: &mut JavaProducer, topic: &str, magic: u8) -> Vec<JavaRecord> {
    let records = (0..5).map(|number| JavaRecord {
        offset: i64::from(magic) * 5 + number,
        timestamp: Some(1_600_000_000_000 + 1000 * i64::from(magic) + number),
        key: Some(format!("key {number}").into_bytes()),
        value: Some(format!("{magic}: {number}").repeat(20).into_bytes()),
        headers: if magic == 2 {
            vec![("h".to_owned(), Some(vec![7])), ("h".to_owned(), None)]
        } else {
            vec![]
        },
        ..JavaRecord::default()
    });
    let mut records: Vec<JavaRecord> = records.collect();
    records.iter().for_each(|record| producer.send(topic, record).unwrap());
    assert_eq!(producer.flush().unwrap(), 5);
    if magic == 0 {
        records.iter_mut().for_each(|record| record.timestamp = None);
    }
    records
}

async fn read_at_once(cluster: &Cluster, topic: &str, sent: &[JavaRecord]) {
    let reading = Reading::start(cluster, topic, "m", &[]).await;
    assert_eq!(reading.kept.wait_for(topic, 0, 15).await, sent);
    // one of each partition
    assert_eq!(reading.status().await.streams[0].chunks, 2);
    reading.member.shutdown().await;
}
