//! `__consumer_offsets`, read by a member with a filter and decoded: what brokers keep of other groups, as Kafka's own
//! consumer reads it and as brokers tell it when they are asked.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU32;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use kafka_troupe::proto::kafka::offsets_topic::{
    GroupMetadata, OFFSETS_TOPIC, OffsetsRecord, RecordValue, decode, partition_for_group,
};
use kafka_troupe::{ConsumerHandle, ConsumerSystem, Record, TopicFilter};
use troupe_cluster::{Cluster, JavaRecord, KafkaVersion};

use crate::support::clusters::builder;
use crate::support::load::placed;
use crate::support::scala::Scala;
use crate::support::system::{Log, Recorder, config, run};
use crate::support::wait::until_async;

crate::on_each_version!(the_offsets_topic_is_read_as_kafkas_own_consumer_reads_it);

const TOPIC: &str = "orders";
/// Of the old consumer. Its partition of 7 is 4, by the absolute value of its hash; by a cleared sign bit it were 5.
const SCALA: &str = "lcsnew";
const JAVA: &str = "java";
/// Of the offsets topic, which has 50 by default.
const PARTITIONS: NonZeroU32 = NonZeroU32::new(7).unwrap();
const EACH: i64 = 10;

/// Partition and offset of a record, its key and its value.
type Raw = (i32, i64, Option<Vec<u8>>, Option<Vec<u8>>);

/// What a member has read of the offsets topic, in order.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(Raw, OffsetsRecord)>>>);

impl Seen {
    fn note(&self, record: &Record) {
        if record.topic() == OFFSETS_TOPIC {
            let (key, value) = (record.key(), record.value_bytes());
            let decoded = decode(key, value.clone());
            let value = value.map(|value| value.to_vec());
            let raw = (record.partition(), record.offset(), key.map(<[u8]>::to_vec), value);
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push((raw, decoded));
        }
    }

    fn all(&self) -> Vec<(Raw, OffsetsRecord)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What stands now, by partition of the group's topic.
    fn offsets_of(&self, name: &str) -> BTreeMap<i32, i64> {
        let mut stand = BTreeMap::new();
        for (_, record) in self.all() {
            match record {
                OffsetsRecord::Offset { group, partition, value } if *group == *name => match value.read() {
                    Some(committed) => _ = stand.insert(partition.partition, committed.offset),
                    None => _ = stand.remove(&partition.partition),
                },
                _ => {}
            }
        }
        stand
    }

    /// Waits until the group's record says this of it.
    async fn wait_for_group(
        &self,
        name: &str,
        what: &str,
        is_so: impl Fn(&RecordValue<GroupMetadata>) -> bool,
    ) {
        until_async(what, async || {
            let all = self.all();
            let is_there = all.iter().any(|(_, record)| match record {
                OffsetsRecord::Group { group, value } => **group == *name && is_so(value),
                _ => false,
            });
            if is_there { Ok(()) } else { Err(format!("{all:?}")) }
        })
        .await;
    }

    /// Waits until the group has committed all of both partitions.
    async fn wait_for_commits(&self, name: &str) {
        until_async(&format!("commits of {name}"), async || {
            let offsets = self.offsets_of(name);
            if offsets == BTreeMap::from([(0, EACH), (1, EACH)]) {
                Ok(())
            } else {
                Err(format!("{offsets:?}"))
            }
        })
        .await;
    }
}

/// Reads every topic that it may, in a group of its own.
async fn reader(cluster: &Cluster, group: &str, more: &[(&str, &str)]) -> (ConsumerHandle, Log, Seen) {
    let (log, seen) = (Log::default(), Seen::default());
    let noted = seen.clone();
    let recorder = Recorder::factory(group, &log, move |record: &Record| {
        noted.note(record);
        Ok(())
    });
    let filter = TopicFilter::white_list(".*").expect("a good filter");
    let builder = ConsumerSystem::builder(config(cluster, group, group, more));
    let member = builder.handle_matching(filter, 1, recorder).start().await.expect("a member starts");
    (member, log, seen)
}

fn the_offsets_topic_is_read_as_kafkas_own_consumer_reads_it(version: KafkaVersion) {
    let count = PARTITIONS.to_string();
    let cluster = builder(version).broker_property("offsets.topic.num.partitions", count).start().unwrap();
    cluster.create_topic(TOPIC, 2, 1).unwrap();
    cluster.produce(TOPIC, placed(EACH, Arc::new(AtomicUsize::new(2)))()).unwrap();
    run(async {
        let (plain, plain_log, nothing) = reader(&cluster, "plain", &[]).await;
        let (asked, log, seen) = reader(&cluster, "asked", &[("exclude.internal.topics", "false")]).await;
        others_come_and_go(&cluster, version, &seen).await;
        log.wait_for_all(&cluster, OFFSETS_TOPIC).await;
        plain_log.wait_for_all(&cluster, TOPIC).await;
        plain.shutdown().await;
        assert_eq!((nothing.all().len(), plain_log.history(OFFSETS_TOPIC).deliveries.len()), (0, 0));
        asked.shutdown().await;
        check(&cluster, &seen);
    });
}

/// Every byte is as Kafka's own consumer reads it, every record is one that we know, where it should be, and what they
/// tell together is what brokers answer.
fn check(cluster: &Cluster, seen: &Seen) {
    let partitions = cluster.log_end_offsets(OFFSETS_TOPIC).expect("it is there").len();
    assert_eq!(partitions, PARTITIONS.get() as usize);
    let all = seen.all();
    let mut ours: Vec<Raw> = all.iter().map(|(raw, _)| raw.clone()).collect();
    let theirs = cluster.java_consume(OFFSETS_TOPIC, &[]).expect("it can be read").into_iter();
    let raw = |it: JavaRecord| (it.partition, it.offset, it.key, it.value);
    let mut theirs: Vec<Raw> = theirs.map(raw).collect();
    ours.sort();
    theirs.sort();
    assert_eq!(ours, theirs);
    for ((partition, ..), record) in &all {
        let (OffsetsRecord::Offset { group, .. } | OffsetsRecord::Group { group, .. }) = record else {
            panic!("{record:?}")
        };
        assert_eq!(*partition, partition_for_group(group, PARTITIONS), "{group}");
    }
    assert_eq!(partition_for_group(SCALA, PARTITIONS), 4);
    assert_eq!(seen.offsets_of(SCALA), committed(cluster, SCALA));
    assert_eq!((seen.offsets_of(JAVA), committed(cluster, JAVA)), (BTreeMap::new(), BTreeMap::new()));
}

fn committed(cluster: &Cluster, group: &str) -> BTreeMap<i32, i64> {
    cluster.client().committed_offsets(group, TOPIC).expect("a coordinator answers")
}

/// An old consumer that stores its offsets in Kafka, and a Java consumer, whose group is then deleted.
async fn others_come_and_go(cluster: &Cluster, version: KafkaVersion, seen: &Seen) {
    let stored = "auto.offset.reset=smallest\noffsets.storage=kafka\ndual.commit.enabled=false";
    let scala = Scala::join_matching(cluster, KafkaVersion::V1_1_1, SCALA, TOPIC, "s", stored);
    seen.wait_for_commits(SCALA).await;
    assert_eq!(scala.leave().len() as i64, 2 * EACH);

    let file = cluster.folder().join("java.properties");
    fs::write(&file, format!("group.id={JAVA}\nauto.commit.interval.ms=200\n"))
        .expect("a file can be written");
    let (file, bootstrap) = (file.display().to_string(), cluster.bootstrap());
    let arguments =
        ["--bootstrap-server", &bootstrap, "--topic", TOPIC, "--from-beginning", "--consumer.config", &file];
    let mut java = cluster.java(version, console(version), &arguments).unwrap();
    seen.wait_for_commits(JAVA).await;
    java.term().unwrap();
    java.wait().unwrap();
    let is_empty = |group: &GroupMetadata| group.generation > 1 && group.members.is_empty();
    seen.wait_for_group(JAVA, "an empty group", |it| it.read().is_some_and(is_empty)).await;
    assert_eq!(seen.offsets_of(JAVA), committed(cluster, JAVA));
    cluster.client().delete_group(JAVA).expect("an empty group can be deleted");
    seen.wait_for_group(JAVA, "the end of a group", |it| *it == RecordValue::Tombstone).await;
}

fn console(version: KafkaVersion) -> &'static str {
    match version {
        KafkaVersion::V1_1_1 => "kafka.tools.ConsoleConsumer",
        _ => "org.apache.kafka.tools.consumer.ConsoleConsumer",
    }
}
