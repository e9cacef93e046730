//! Topics that are deleted and made again (case B13), half of a topic, and brokers that cannot be used (B26), as whole
//! members find them: in ZooKeeper, and by `bootstrap.servers`.

use kafka_troupe_actors::Subscription;
use kafka_troupe_actors::testkit::Generation;
use kafka_troupe_proto::group::InFlight;

use super::*;
use crate::log::Log;

/// Longer than it takes to notice anything.
const QUIET: Duration = Duration::from_secs(15);
const OFFSET: &str = "/consumers/g/offsets/orders/0";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    ZooKeeper,
    Metadata,
}

/// Runs a test in one thread, on a paused clock, with one topic of one partition and ten records.
fn in_mode(mode: Mode, test: impl AsyncFnOnce(World)) {
    in_mode_with(mode, 10, test);
}

fn in_mode_with(mode: Mode, records: i64, test: impl AsyncFnOnce(World)) {
    clock::on_paused_clock(async {
        let (zookeeper, brokers) = (MemoryZooKeeper::default(), MemoryBrokers::new(1));
        if mode == Mode::ZooKeeper {
            brokers.register(&zookeeper);
        }
        let world = World { zookeeper, brokers, bootstrap: mode == Mode::Metadata };
        world.make("old", records);
        test(world).await;
    });
}

impl World {
    fn reading(&self, properties: &[(&str, &str)]) -> Builder {
        self.builder_of("a", &[&[("auto.offset.reset", "smallest")], properties].concat())
    }

    /// A member that has read the old topic from its beginning, and which the policy would send to the end of any
    /// other.
    async fn having_read_the_old(&self) -> (ConsumerHandle, KafkaStream) {
        self.zookeeper.put(OFFSET, b"0");
        let largest = [("auto.offset.reset", "largest"), ("auto.commit.interval.ms", "100")];
        let (handle, mut stream) = self.pulling_with(&largest).await;
        assert_eq!(all(&mut stream).await, named("old", 10));
        assert_eq!(self.stored().as_deref(), Some("10"));
        (handle, stream)
    }

    async fn pulling_with(&self, properties: &[(&str, &str)]) -> (ConsumerHandle, KafkaStream) {
        let handle = self.reading(properties).pull("orders", 1).start().await.expect("it starts");
        let stream = handle.streams("orders").remove(0);
        (handle, stream)
    }

    /// Makes the topic, with records of this name.
    fn make(&self, name: &str, records: i64) {
        self.brokers.create_topic("orders", 1);
        self.append(name, 0..records);
    }

    fn append(&self, name: &str, offsets: std::ops::Range<i64>) {
        for offset in offsets {
            self.brokers.append(&TopicPartition::new("orders", 0), &[&format!("{name} {offset}")]);
        }
    }

    fn make_again(&self, records: i64) {
        self.brokers.delete_topic("orders");
        self.make("new", records);
    }
}

/// What comes until nothing more does.
async fn all(stream: &mut KafkaStream) -> Vec<String> {
    let mut values = Vec::new();
    while let Ok(Some(record)) = timeout(QUIET, stream.next()).await {
        values.push(record.expect("it can be read").text().into_owned());
    }
    values
}

fn named(name: &str, records: i64) -> Vec<String> {
    (0..records).map(|offset| format!("{name} {offset}")).collect()
}

/// With fewer records than the old offset, and with more: nothing of the log itself tells then.
#[test]
fn a_group_that_starts_again_reads_the_whole_of_a_topic_made_again_meanwhile() {
    for (mode, records) in [Mode::ZooKeeper, Mode::Metadata].into_iter().flat_map(|it| [(it, 5), (it, 20)]) {
        in_mode(mode, async |world| {
            let (handle, mut stream) = world.pulling_with(&[]).await;
            assert_eq!(all(&mut stream).await, named("old", 10));
            handle.shutdown().await;
            assert_eq!(world.stored().as_deref(), Some("10"));
            world.make_again(records);
            let (handle, mut stream) = world.pulling_with(&[]).await;
            assert_eq!(all(&mut stream).await, named("new", records));
            handle.shutdown().await;
            assert_eq!(world.stored(), Some(records.to_string()));
            // and it is not taken for an earlier one's any more
            let (handle, mut stream) = world.pulling_with(&[]).await;
            assert_eq!(all(&mut stream).await, named("", 0));
            handle.shutdown().await;
        });
    }
}

/// Between two reads: the topic has as many partitions as before.
#[test]
fn a_running_member_reads_the_whole_of_a_topic_made_again_at_once() {
    for mode in [Mode::ZooKeeper, Mode::Metadata] {
        for records in [5, 20] {
            in_mode(mode, async |world| {
                let (handle, mut stream) = world.having_read_the_old().await;
                world.make_again(0);
                // written after it is noticed
                assert_eq!(all(&mut stream).await, named("", 0));
                world.make("new", records);
                assert_eq!(all(&mut stream).await, named("new", records), "{mode:?}");
                assert_eq!(world.stored(), Some(records.to_string()));
                handle.shutdown().await;
            });
        }
    }
}

/// The old offset is not in the new topic: the change is noticed before `auto.offset.reset` makes a position, which
/// would have the records come twice.
#[test]
fn a_running_member_reads_few_records_that_come_with_a_topic_made_again_once() {
    for mode in [Mode::ZooKeeper, Mode::Metadata] {
        in_mode(mode, async |world| {
            let (handle, mut stream) = world.having_read_the_old().await;
            world.make_again(5);
            assert_eq!(all(&mut stream).await, named("new", 5), "{mode:?}");
            assert_eq!(world.stored().as_deref(), Some("5"));
            handle.shutdown().await;
        });
    }
}

/// What stands past the old offset before it is noticed comes twice.
#[test]
fn nothing_of_a_topic_made_again_is_passed_over_however_much_is_in_it_at_once() {
    for mode in [Mode::ZooKeeper, Mode::Metadata] {
        in_mode(mode, async |world| {
            let (handle, mut stream) = world.having_read_the_old().await;
            world.make_again(20);
            assert!(all(&mut stream).await.ends_with(&named("new", 20)), "{mode:?}");
            assert_eq!(world.stored().as_deref(), Some("20"));
            handle.shutdown().await;
        });
    }
}

#[test]
fn a_deleted_topic_is_let_go_without_a_commit_and_taken_up_when_it_is_made_again() {
    for mode in [Mode::ZooKeeper, Mode::Metadata] {
        in_mode_with(mode, 8, async |world| {
            let (handle, mut stream) = world.pulling_with(&[]).await;
            assert_eq!(all(&mut stream).await, named("old", 8));
            handle.commit().await.unwrap().all().expect("it is committed");
            world.append("old", 8..10);
            assert_eq!(all(&mut stream).await, ["old 8", "old 9"]);
            let position = world.stored();
            world.brokers.delete_topic("orders");
            until("it is released", || world.owner(0).is_none()).await;
            assert_eq!(world.stored(), position, "{mode:?}: an offset of nothing");
            tokio::time::sleep(QUIET).await;
            world.make("new", 20);
            assert_eq!(all(&mut stream).await, named("new", 20), "{mode:?}");
            handle.shutdown().await;
            assert_eq!(world.stored().as_deref(), Some("20"));
        });
    }
}

/// The old records are handled, but not committed, when the topic is made again: their offset must not be stored under
/// the new one.
#[test]
fn what_was_handled_of_the_earlier_topic_is_not_committed_into_the_later() {
    for mode in [Mode::ZooKeeper, Mode::Metadata] {
        in_mode(mode, async |world| {
            let (handle, mut stream) = world.pulling_with(&[("auto.commit.interval.ms", "3600000")]).await;
            assert_eq!(all(&mut stream).await, named("old", 10));
            world.make_again(0);
            tokio::time::sleep(QUIET).await;
            handle.commit().await.unwrap().all().expect("nothing is wrong");
            assert_eq!(world.stored().as_deref(), Some("0"), "{mode:?}: its new position");
            handle.shutdown().await;
            assert_eq!(world.stored().as_deref(), Some("0"));
        });
    }
}

/// The stream is at the end of what it has, and would say so when it is asked next.
#[test]
fn a_stream_that_idles_after_its_last_record_passes_over_nothing_of_a_topic_made_again_meanwhile() {
    for by_batch in [false, true] {
        in_mode(Mode::ZooKeeper, async |world| {
            let (handle, mut stream) = world.pulling_with(&[("auto.commit.interval.ms", "100")]).await;
            match by_batch {
                true => {
                    let mut read = 0;
                    while read < 10 {
                        read += stream.next_batch(10).await.expect("no end").expect("it can be read").len();
                    }
                }
                false => {
                    for offset in 0..10 {
                        assert_eq!(next(&mut stream).await, format!("old {offset}"));
                    }
                }
            }
            stream.ack();
            tokio::time::sleep(QUIET).await;
            assert_eq!(world.stored().as_deref(), Some("10"));
            world.make_again(0);
            tokio::time::sleep(QUIET).await;
            world.append("new", 0..20);
            tokio::time::sleep(QUIET).await;
            assert_eq!(world.stored().as_deref(), Some("0"), "nothing of it is handled");
            assert_eq!(all(&mut stream).await, named("new", 20));
            handle.shutdown().await;
            assert_eq!(world.stored().as_deref(), Some("20"));
        });
    }
}

/// Tells each record, and waits after the last of the old ones, so that its driver is not asked.
#[derive(Clone)]
struct Rester(UnboundedSender<String>);

impl Actor for Rester {
    type Context = Context<Self>;
}

impl Handler<Record> for Rester {
    type Result = HandlerResult;

    fn handle(&mut self, record: Record, ctx: &mut Context<Self>) -> HandlerResult {
        let value = record.text().into_owned();
        if value == "old 9" {
            ctx.wait(tokio::time::sleep(QUIET * 3).into_actor(self));
        }
        Ok(self.0.send(value)?)
    }
}

#[test]
fn a_handler_that_rests_after_its_last_record_passes_over_nothing_of_a_topic_made_again_meanwhile() {
    for in_flight in [InFlight::one(), InFlight::window(4), InFlight::by_key(4)] {
        in_mode(Mode::ZooKeeper, async |world| {
            let (tell, mut told) = unbounded_channel();
            let subscription = Subscription::topic("orders").in_flight(in_flight);
            let builder = world.reading(&[]).subscription(subscription.handle(move || Rester(tell.clone())));
            let handle = builder.start().await.expect("it starts");
            for offset in 0..10 {
                assert_eq!(heard(&mut told).await, format!("old {offset}"));
            }
            world.make_again(0);
            tokio::time::sleep(QUIET).await;
            world.append("new", 0..20);
            for offset in 0..20 {
                assert_eq!(heard(&mut told).await, format!("new {offset}"), "{in_flight:?}");
            }
            handle.shutdown().await;
            assert_eq!(world.stored().as_deref(), Some("20"));
        });
    }
}

#[test]
fn a_topic_whose_node_says_nothing_has_no_partitions_and_others_flow_on() {
    for node in [&b""[..], b"{}", br#"{"version":1,"partitions":{}}"#, b"garbage"] {
        in_mode(Mode::ZooKeeper, async |world| {
            world.zookeeper.put("/brokers/topics/broken", node);
            let builder = world.reading(&[]).pull("broken", 1).pull("orders", 1);
            let handle = builder.start().await.expect("it starts");
            let mut stream = handle.streams("orders").remove(0);
            assert_eq!(all(&mut stream).await, named("old", 10));
            assert!(world.zookeeper.children("/consumers/g/owners/broken").is_empty());
            world.brokers.create_topic("broken", 1);
            world.brokers.append(&TopicPartition::new("broken", 0), &["whole"]);
            assert_eq!(all(&mut handle.streams("broken").remove(0)).await, ["whole"]);
            handle.shutdown().await;
        });
    }
}

#[test]
fn brokers_that_cannot_be_used_are_passed_over() {
    in_mode(Mode::ZooKeeper, async |world| {
        for (id, node) in [
            (7, "kafka-1234:host:9092"),
            (8, r#"{"endpoints":["SASL_SSL://h:9094"],"host":null,"port":-1,"version":4}"#),
            (9, r#"{"host":null,"port":-1,"version":1}"#),
            (10, "garbage"),
        ] {
            world.zookeeper.put(&format!("/brokers/ids/{id}"), node.as_bytes());
        }
        world.zookeeper.put("/brokers/ids/seed", b"not a number");
        let (log, _logged) = Log::begin();
        let (handle, mut stream) = world.pulling_with(&[]).await;
        assert_eq!(all(&mut stream).await, named("old", 10));
        handle.shutdown().await;
        for why in [
            "/brokers/ids/7 cannot be read: written by Kafka 0.7",
            "broker 8 has no PLAINTEXT listener to connect to; it offers SASL_SSL://h:9094",
            "broker 9 has no PLAINTEXT listener to connect to; it offers PLAINTEXT://(no host):-1",
            "/brokers/ids/10 cannot be read: not JSON",
        ] {
            assert!(log.lines().any(|line| line.contains("WARN") && line.contains(why)), "{why}");
        }
    });
}

/// Takes its time.
struct Slow;

impl Actor for Slow {
    type Context = Context<Self>;
}

impl Handler<Record> for Slow {
    type Result = ResponseFuture<HandlerResult>;

    fn handle(&mut self, _: Record, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            Ok(())
        })
    }
}

/// The record in hand is waited for meanwhile; then comes the last flush. (By `bootstrap.servers` it is noticed only
/// with the next poll; what was passed over comes then.)
#[test]
fn a_partition_whose_topic_is_made_again_while_it_is_given_up_is_not_flushed_into_the_later() {
    in_mode_with(Mode::ZooKeeper, 1, async |world| {
        let first = world.reading(&[]).handle("orders", 1, || Slow).start().await.expect("it starts");
        until("it owns the partition", || world.owner(0).is_some()).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        // it comes before the other in the order, and so gets the partition
        let builder = world.reading(&[("consumer.id", "0")]).pull("orders", 1);
        let second = actix::spawn(async move { builder.start().await.expect("it starts") });
        tokio::time::sleep(Duration::from_millis(300)).await;
        world.make_again(20);
        let second = second.await.expect("it does not panic");
        assert_eq!(all(&mut second.streams("orders").remove(0)).await, named("new", 20));
        second.shutdown().await;
        first.shutdown().await;
    });
}

/// Brokers that tell no ids, between two polls: each fetch would be refused for ever, as one of a later epoch.
#[test]
fn a_topic_made_again_where_topics_have_no_ids_is_told_by_its_leaders_epoch() {
    for records in [5, 40] {
        in_mode(Mode::Metadata, async |world| {
            let partition = TopicPartition::new("orders", 0);
            world.brokers.set_generation(0, Generation::Kafka2_4);
            world.brokers.set_leader_epoch(&partition, 5);
            world.append("old", 10..20);
            let (handle, mut stream) = world.pulling_with(&[]).await;
            assert_eq!(all(&mut stream).await, named("old", 20));
            world.make_again(0);
            world.brokers.set_leader_epoch(&partition, 0);
            world.append("new", 0..records);
            assert_eq!(all(&mut stream).await, named("new", records));
            handle.shutdown().await;
            assert_eq!(world.stored(), Some(records.to_string()));
        });
    }
}
