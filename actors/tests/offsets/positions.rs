//! Rule 7: the position is read after the claim, by a whole member.

use std::sync::{Arc, mpsc};

use kafka_troupe_actors::offset_committer::TopicNodes;
use kafka_troupe_actors::{ConsumerHandle, ConsumerSystem};
use kafka_troupe_proto::config::ConsumerConfig;

use crate::fake_broker::{Seen, start_watched};
use crate::member::{Member, PATIENCE};
use crate::other::Other;
use crate::scripted::Scripted;
use kafka_troupe_actors::testkit::MemoryZooKeeper;

/// A group, its topic with a log from 0 to 100, and who saw the fetches. Our member has not started.
struct World {
    zk: Scripted,
    other: Other,
    fetches: mpsc::Receiver<i64>,
}

impl World {
    fn new() -> Self {
        let ensemble = MemoryZooKeeper::default();
        let other = Other::connect(&ensemble);
        let (seen, fetches) = mpsc::channel();
        let watch = move |it| {
            if let Seen::Fetch(_, offset) = it {
                // a test that has seen enough is gone
                let _ = seen.send(offset);
            }
        };
        let port = start_watched("t", Arc::new(|_| 100), Arc::new(watch)).unwrap();
        for path in ["/brokers", "/brokers/ids", "/brokers/topics"] {
            other.make_with(path, "");
        }
        let broker =
            format!(r#"{{"version":1,"host":"127.0.0.1","port":{port},"jmx_port":-1,"timestamp":"0"}}"#);
        other.make_with("/brokers/ids/0", &broker);
        other.make_with("/brokers/topics/t", r#"{"version":1,"partitions":{"0":[0]}}"#);
        Self { zk: Scripted::over(&ensemble), other, fetches }
    }

    async fn start(&self) -> ConsumerHandle {
        let config = ConsumerConfig::builder().zookeeper_connect("memory").group_id("g");
        let config = config.property("consumer.id", "a").build().unwrap();
        let member = ConsumerSystem::builder(config).pull("t", 1).connector(Arc::new(self.zk.clone()));
        member.start().await.unwrap()
    }

    async fn first_fetch(self) -> i64 {
        let first = tokio::task::spawn_blocking(move || self.fetches.recv_timeout(PATIENCE));
        first.await.unwrap().expect("a fetch in time")
    }
}

fn place(steps: &[String], step: &str) -> usize {
    steps.iter().position(|it| it == step).unwrap_or_else(|| panic!("no {step} in {steps:?}"))
}

/// The owner before us commits for the last time just before its node is gone and ours is made.
#[actix::test]
async fn a_commit_just_before_the_claim_is_seen() {
    let world = World::new();
    world.other.commit(40);
    let last = world.other.clone();
    world.zk.before_first("create owner", move || last.commit(77));
    let (member, zk) = (world.start().await, world.zk.clone());
    assert_eq!(world.first_fetch().await, 77);
    let steps = zk.steps();
    assert!(place(&steps, "create owner") < place(&steps, "read offset"), "{steps:?}");
    member.shutdown().await;
}

/// We wait for it to let go.
#[actix::test]
async fn a_commit_of_the_owner_that_is_waited_for_is_seen() {
    let world = World::new();
    world.other.commit(40);
    world.other.own("g_b-0");
    let (waits, waiting) = tokio::sync::oneshot::channel();
    let owner = world.other.clone();
    world.zk.before_first("read owner", move || waits.send(()).unwrap());
    let (member, zk) = (world.start().await, world.zk.clone());
    waiting.await.unwrap();
    assert!(!zk.steps().contains(&"read offset".to_owned()), "nothing is claimed: {:?}", zk.steps());
    owner.commit(77);
    owner.disown();
    assert_eq!(world.first_fetch().await, 77);
    member.shutdown().await;
}

/// Operators store it before a topic is made; and nothing of a later topic can be passed over by it.
#[actix::test]
async fn an_offset_of_0_that_is_older_than_the_topic_counts_and_any_other_does_not() {
    for (stored, counts) in [(0, true), (1, false)] {
        let ensemble = MemoryZooKeeper::default();
        let other = Other::connect(&ensemble);
        other.commit(stored);
        other.make_with("/brokers/topics/t", r#"{"version":1,"partitions":{"0":[0]}}"#);
        let member = Member::join(&ensemble, "a", true).await;
        let read = member.read_position(TopicNodes::Kafka).await;
        assert_eq!((read.offset, read.earlier_topic), (Some(stored), !counts));
    }
}
