//! What Kafka's own producers compress, through brokers of their generation, comes out as the same bytes (B16, B17,
//! B19).

use std::fs;

use troupe_cluster::{Cluster, JavaRecord, KafkaVersion};

use crate::support::clusters::shared;
use crate::support::records::Reading;
use crate::support::system::run;

const SNAPPY_FRAME: &[u8] = b"\x82SNAPPY\0";
/// The check byte of an lz4 frame with 64 KB blocks, as producers before magic 2 write it: over the frame's magic too.
const LZ4_WRONG_CHECK: &[u8] = b"\x04\x22\x4d\x18\x60\x40\x1a";
const LZ4_RIGHT_CHECK: &[u8] = b"\x04\x22\x4d\x18\x60\x40\x82";
/// Of a zstd frame.
const ZSTD_FRAME: &[u8] = b"\x28\xb5\x2f\xfd";
const ZEROS: usize = 10 << 20;

/// Three blocks of 32 KB that hardly compress, and small records around them.
fn values() -> Vec<Vec<u8>> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut noise = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let blocks = (0..98_304 / 8).flat_map(|_| noise()).collect();
    vec![b"before".to_vec(), blocks, vec![], b"after ".repeat(1000)]
}

/// All in one batch, with a producer of the brokers' release; what its log holds then.
fn produce(cluster: &Cluster, topic: &str, codec: &str, values: &[Vec<u8>]) -> Vec<u8> {
    let properties = [
        ("compression.type", codec),
        ("linger.ms", "1000"),
        ("batch.size", "1000000"),
        ("max.request.size", "20000000"),
    ];
    let mut producer = cluster.java_producer(cluster.broker(0).version(), &properties).unwrap();
    for value in values {
        let record = JavaRecord { value: Some(value.clone()), ..JavaRecord::default() };
        producer.send(topic, &record).unwrap();
    }
    assert_eq!(producer.flush().unwrap(), values.len() as u64);
    let segment = format!("{topic}-0/00000000000000000000.log");
    fs::read(cluster.broker(0).data().join(segment)).unwrap()
}

fn read_back(cluster: &Cluster, topic: &str, values: &[Vec<u8>]) {
    run(async {
        let reading = Reading::start(cluster, topic, "m", &[]).await;
        let records = reading.kept.wait_for(topic, 0, values.len()).await;
        assert!(records.iter().map(|record| record.offset).eq(0..values.len() as i64));
        let same = records.iter().map(|record| record.value.as_ref().unwrap()).eq(values);
        assert!(same, "{topic}: the bytes differ");
        reading.member.shutdown().await;
    });
}

/// The frame tells that the log is compressed as asked.
#[track_caller]
fn all_the_way(version: KafkaVersion, codec: &str, frame: &[u8]) {
    let (cluster, values) = (shared(version), values());
    let topic = format!("b16-{codec}");
    cluster.create_topic(&topic, 1, 1).unwrap();
    let log = produce(cluster, &topic, codec, &values);
    assert!(has(&log, frame), "{version}, {codec}: {:02x?}", &log[..log.len().min(100)]);
    read_back(cluster, &topic, &values);
}

fn has(log: &[u8], part: &[u8]) -> bool {
    log.windows(part.len()).any(|window| window == part)
}

#[test]
fn b16_b17_lz4_and_snappy_of_0_8_2_2() {
    all_the_way(KafkaVersion::V0_8_2_2, "lz4", LZ4_WRONG_CHECK);
    all_the_way(KafkaVersion::V0_8_2_2, "snappy", SNAPPY_FRAME);
    all_the_way(KafkaVersion::V0_8_2_2, "gzip", b"\x1f\x8b\x08");
}

#[test]
fn b16_b17_b19_lz4_snappy_and_zstd_of_3_9_1() {
    all_the_way(KafkaVersion::V3_9_1, "lz4", LZ4_RIGHT_CHECK);
    all_the_way(KafkaVersion::V3_9_1, "snappy", SNAPPY_FRAME);
    all_the_way(KafkaVersion::V3_9_1, "zstd", ZSTD_FRAME);
}

/// A producer does not know a frame's content size when it begins it.
#[test]
fn b19_ten_megabytes_of_zeros_by_zstd_without_a_content_size() {
    let cluster = shared(KafkaVersion::V3_9_1);
    cluster.create_topic("b19-zeros", 1, 1).unwrap();
    let values = [vec![0; ZEROS]];
    let log = produce(cluster, "b19-zeros", "zstd", &values);
    let at = log.windows(4).position(|window| window == ZSTD_FRAME).expect("a zstd frame");
    // neither a content size of 2, 4 or 8 bytes nor a single segment, which has one of at least 1
    assert_eq!(log[at + 4] & 0b1110_0000, 0, "the frame has a content size");
    assert!(log.len() < 100_000, "{} bytes in the log", log.len());
    read_back(cluster, "b19-zeros", &values);
}
