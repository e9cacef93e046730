//! Records that cannot be read: a segment file with a flipped bit.

use std::process::{Command, Output};

use futures_util::StreamExt;
use kafka_troupe::{ConsumeError, ConsumerHandle, ConsumerSystem, KafkaStream, Record};
use tokio::time::timeout;
use troupe_cluster::{Cluster, JavaProducer, JavaRecord, KafkaVersion};

use crate::support::clusters::builder;
use crate::support::system::{config, run};
use crate::support::wait::PATIENCE;
use crate::support::zk_log::GroupHistory;

/// Ten records, each appended by itself.
fn fill(producer: &mut JavaProducer, topic: &str) {
    for number in 0..10 {
        let value = Some(format!("value {number}").into_bytes());
        producer.send(topic, &JavaRecord { value, ..JavaRecord::default() }).unwrap();
        assert_eq!(producer.flush().unwrap(), 1);
    }
}

/// Flips a bit of a value in the segment file; the broker must not run.
fn damage(cluster: &Cluster, topic: &str, value: &str) {
    let path = cluster.broker(0).data().join(format!("{topic}-0/00000000000000000000.log"));
    let mut log = std::fs::read(&path).unwrap();
    let at = log.windows(value.len()).position(|bytes| bytes == value.as_bytes()).expect("it is in there");
    log[at] ^= 1;
    std::fs::write(&path, log).unwrap();
}

async fn next(stream: &mut KafkaStream) -> Result<Record, ConsumeError> {
    timeout(PATIENCE, stream.next()).await.expect("in time").expect("no end")
}

async fn take(stream: &mut KafkaStream, numbers: std::ops::Range<i64>) {
    for number in numbers {
        let record = next(stream).await.expect("it can be read");
        assert_eq!((record.offset(), &*record.text()), (number, &*format!("value {number}")));
    }
}

async fn start(cluster: &Cluster, topic: &str, group: &str) -> (ConsumerHandle, KafkaStream) {
    let config = config(cluster, group, "m", &[]);
    let system = ConsumerSystem::builder(config).pull(topic, 1).start().await.expect("it starts");
    let stream = system.streams(topic).remove(0);
    (system, stream)
}

/// What is before comes, nothing after it does, and a seek steps over exactly the one.
async fn is_reported_and_stepped_over(cluster: &Cluster, topic: &str) {
    let stored = || GroupHistory::of(cluster, topic).committed(topic).get(&0).copied();
    let (system, mut stream) = start(cluster, topic, topic).await;
    take(&mut stream, 0..5).await;
    for _ in 0..2 {
        let error = next(&mut stream).await.expect_err("it is damaged");
        assert_eq!((&*error.topic, error.partition, error.offset, error.resume_at), (topic, 0, 5, 6));
        assert!(error.why.contains("checksum"), "{error}");
    }
    system.shutdown().await;
    assert_eq!(stored(), Some(5), "{topic}");

    let (system, mut stream) = start(cluster, topic, topic).await;
    let error = next(&mut stream).await.expect_err("it is damaged still");
    system.seek(topic, 0, error.resume_at).await.expect("it is ours");
    take(&mut stream, 6..10).await;
    stream.ack();
    system.shutdown().await;
    assert_eq!(stored(), Some(10), "{topic}");
}

#[test]
fn a_flipped_bit_in_a_message_of_magic_1_and_in_a_batch_of_magic_2_is_reported_and_stepped_over() {
    let cluster = builder(KafkaVersion::V1_1_1).start().unwrap();
    cluster.create_topic_with("messages", 1, 1, &[("message.format.version", "0.10.2")]).unwrap();
    cluster.create_topic("batches", 1, 1).unwrap();
    let mut producer = cluster.java_producer(KafkaVersion::V1_1_1, &[]).unwrap();
    for topic in ["messages", "batches"] {
        fill(&mut producer, topic);
    }
    cluster.broker(0).stop().unwrap();
    for topic in ["messages", "batches"] {
        damage(&cluster, topic, "value 5");
    }
    cluster.broker(0).restart().unwrap();
    run(async {
        is_reported_and_stepped_over(&cluster, "messages").await;
        is_reported_and_stepped_over(&cluster, "batches").await;
    });
    the_console_says_how_to_step_over(&cluster, "batches");
}

/// `troupe consume` from the beginning.
fn console(cluster: &Cluster, topic: &str, more: &[&str]) -> Output {
    let connect = cluster.zookeeper_connect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_troupe"));
    command.args(["consume", "--zookeeper", &connect, "--topic", topic, "--from-beginning"]).args(more);
    command.output().expect("it runs")
}

fn the_console_says_how_to_step_over(cluster: &Cluster, topic: &str) {
    let lines = |output: &Output| String::from_utf8_lossy(&output.stdout).lines().count();
    let stops = console(cluster, topic, &["--group", "stops"]);
    assert_eq!((stops.status.success(), lines(&stops)), (false, 5), "{stops:?}");
    let path = format!("set /consumers/stops/offsets/{topic}/0 to 6");
    for part in ["at offset 5: checksum", "--skip-message-on-error", &path] {
        assert!(String::from_utf8_lossy(&stops.stderr).contains(part), "{stops:?}");
    }
    let goes_on = ["--group", "goes-on", "--skip-message-on-error", "--max-messages", "9"];
    let goes_on = console(cluster, topic, &goes_on);
    assert_eq!((goes_on.status.success(), lines(&goes_on)), (true, 9), "{goes_on:?}");
    assert!(String::from_utf8_lossy(&goes_on.stderr).contains("stepping over it"), "{goes_on:?}");
    let stored = |group| GroupHistory::of(cluster, group).committed(topic).get(&0).copied();
    assert_eq!((stored("stops"), stored("goes-on")), (Some(5), Some(10)));
}
