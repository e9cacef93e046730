//! Records that cannot be read, and the way past them: another position.

use kafka_troupe_actors::ConsumeError;
use kafka_troupe_actors::consumer_system::SeekError;
use kafka_troupe_actors::testkit::Spoilt;
use kafka_troupe_proto::schemas::status::v1::UnreadablePartition;

use super::*;

impl World {
    fn orders() -> TopicPartition {
        TopicPartition::new("orders", 0)
    }

    /// Batches of 2, 2 and 1 records, the second of them damaged.
    fn with_damage(&self) {
        for values in [&["0", "1"][..], &["2", "3"], &["4"]] {
            self.brokers.append(&Self::orders(), values);
        }
        self.brokers.damage(&Self::orders(), 2);
    }

    /// A member that has read and acknowledged the first three records, of a ZooKeeper that takes its time.
    async fn having_read_three_slowly(&self, id: &str) -> (ConsumerHandle, KafkaStream) {
        self.zookeeper.set_pace(Arc::new(|| Duration::from_millis(4)));
        ["0", "1", "2"].iter().for_each(|value| self.produce(value));
        let handle = self.builder(id).pull("orders", 1).start().await.expect("it starts");
        let mut stream = handle.streams("orders").remove(0);
        for value in ["0", "1", "2"] {
            assert_eq!(next(&mut stream).await, value);
        }
        stream.ack();
        (handle, stream)
    }
}

async fn error(stream: &mut KafkaStream) -> ConsumeError {
    let item = timeout(PATIENCE, stream.next()).await.expect("an item in time").expect("no end");
    item.expect_err("it cannot be read")
}

async fn unreadable(handle: &ConsumerHandle) -> Vec<UnreadablePartition> {
    handle.metrics().await.expect("it runs").streams.remove(0).unreadable
}

#[test]
fn a_puller_gets_what_is_before_a_damaged_batch_nothing_after_it_and_steps_over_it() {
    on_paused_clock(async |world| {
        world.with_damage();
        let (handle, mut stream) = world.pulling().await;
        assert_eq!(next(&mut stream).await, "0");
        assert_eq!(next(&mut stream).await, "1");
        let error_met = error(&mut stream).await;
        assert_eq!((&*error_met.topic, error_met.partition), ("orders", 0));
        assert_eq!((error_met.offset, error_met.resume_at), (2, 4));
        assert_eq!(error(&mut stream).await, error_met, "it is met again, and nothing is skipped");
        handle.seek("orders", 0, error_met.resume_at).await.expect("it is ours");
        assert_eq!(world.stored().as_deref(), Some("4"));
        assert_eq!(next(&mut stream).await, "4");
        world.produce("5");
        assert_eq!(next(&mut stream).await, "5");
        assert_eq!(unreadable(&handle).await, []);
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("5"), "the last one is not acknowledged");
    });
}

#[test]
fn a_handler_goes_on_by_itself_when_what_was_damaged_is_whole_again() {
    on_paused_clock(async |world| {
        world.with_damage();
        let (tell, mut told) = unbounded_channel();
        let builder = world.builder("a").handle("orders", 1, move || Teller(tell.clone()));
        let handle = builder.start().await.expect("it starts");
        assert_eq!([heard(&mut told).await, heard(&mut told).await], ["0", "1"]);
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert!(told.try_recv().is_err(), "nothing is handed over past what cannot be read");
        let met = unreadable(&handle).await.remove(0);
        assert_eq!((&*met.topic, met.partition, met.offset, met.resume_at), ("orders", 0, 2, 4));
        assert!(met.why.contains("checksum"), "{}", met.why);
        // after 1, 3, 7, 15, 31, 61 and 91 s
        assert!((7..=8).contains(&met.attempts), "{} attempts", met.attempts);
        assert_eq!(world.stored().as_deref(), Some("2"));
        world.brokers.damage(&World::orders(), 2);
        for value in ["2", "3", "4"] {
            assert_eq!(heard(&mut told).await, value);
        }
        assert_eq!(unreadable(&handle).await, []);
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("5"));
    });
}

#[test]
fn another_partition_of_the_stream_goes_on_beside_one_that_cannot_be_read() {
    on_paused_clock(async |world| {
        world.brokers.create_topic("orders", 2);
        world.with_damage();
        world.brokers.damage(&World::orders(), 0);
        let (handle, mut stream) = world.pulling().await;
        assert_eq!(error(&mut stream).await.offset, 0);
        world.brokers.append(&TopicPartition::new("orders", 1), &["other"]);
        assert_eq!(next(&mut stream).await, "other");
        handle.shutdown().await;
    });
}

#[test]
fn a_seek_goes_back_as_well_and_is_stored_at_once() {
    on_paused_clock(async |world| {
        ["0", "1", "2", "3"].iter().for_each(|value| world.produce(value));
        let (handle, mut stream) = world.pulling().await;
        for value in ["0", "1", "2"] {
            assert_eq!(next(&mut stream).await, value);
        }
        stream.ack();
        assert_eq!(handle.commit().await.unwrap().all(), Ok(1));
        assert_eq!(world.stored().as_deref(), Some("3"));
        handle.seek("orders", 0, 1).await.expect("it is ours");
        assert_eq!(world.stored().as_deref(), Some("1"));
        for value in ["1", "2", "3"] {
            assert_eq!(next(&mut stream).await, value);
        }
        stream.ack();
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("4"));
    });
}

#[test]
fn without_automatic_commit_a_seek_is_stored_by_the_next_commit() {
    on_paused_clock(async |world| {
        ["0", "1", "2"].iter().for_each(|value| world.produce(value));
        let properties = [("auto.offset.reset", "smallest"), ("auto.commit.enable", "false")];
        let handle = world.builder_of("a", &properties).pull("orders", 1).start().await.expect("it starts");
        let mut stream = handle.streams("orders").remove(0);
        for value in ["0", "1", "2"] {
            assert_eq!(next(&mut stream).await, value);
        }
        stream.ack();
        assert_eq!(handle.commit().await.unwrap().all(), Ok(1));
        handle.seek("orders", 0, 1).await.expect("it is ours");
        assert_eq!(world.stored().as_deref(), Some("3"));
        assert_eq!(handle.commit().await.unwrap().all(), Ok(1));
        assert_eq!(world.stored().as_deref(), Some("1"));
        assert_eq!(next(&mut stream).await, "1");
        handle.shutdown().await;
    });
}

#[test]
fn a_seek_that_makes_no_sense_says_so_and_changes_nothing() {
    on_paused_clock(async |world| {
        world.produce("0");
        let (handle, mut stream) = world.pulling().await;
        assert_eq!(next(&mut stream).await, "0");
        stream.ack();
        let negative = handle.seek("orders", 0, -1).await;
        assert!(matches!(negative, Err(SeekError::Negative { offset: -1, .. })), "{negative:?}");
        for (topic, partition) in [("orders", 1), ("other", 0)] {
            let not_ours = handle.seek(topic, partition, 0).await;
            assert!(matches!(not_ours, Err(SeekError::NotOwned(_))), "{not_ours:?}");
        }
        world.produce("1");
        assert_eq!(next(&mut stream).await, "1");
        handle.shutdown().await;
        let ended = handle.seek("orders", 0, 0).await;
        assert!(matches!(ended, Err(SeekError::NotRunning(_))), "{ended:?}");
    });
}

/// As `auto.offset.reset` says for every position that is not in the log.
#[test]
fn a_seek_beyond_the_log_goes_by_the_reset_policy() {
    on_paused_clock(async |world| {
        world.produce("0");
        let (handle, mut stream) = world.pulling().await;
        assert_eq!(next(&mut stream).await, "0");
        stream.ack();
        handle.seek("orders", 0, 1000).await.expect("it is ours");
        assert_eq!(next(&mut stream).await, "0");
        handle.shutdown().await;
    });
}

#[test]
fn a_seek_is_for_the_added_member_that_owns_the_partition() {
    on_paused_clock(async |world| {
        world.brokers.create_topic("more", 1);
        let more = TopicPartition::new("more", 0);
        world.brokers.append(&more, &["0", "1"]);
        let (handle, _stream) = world.pulling().await;
        let added = handle.subscribe().pull("more", 1).start().await.expect("it starts");
        let mut stream = added.streams("more").remove(0);
        assert_eq!([next(&mut stream).await, next(&mut stream).await], ["0", "1"]);
        stream.ack();
        handle.seek("more", 0, 1).await.expect("it is ours");
        assert_eq!(next(&mut stream).await, "1");
        handle.shutdown().await;
    });
}

/// Takes its time for the first record.
struct Slow(UnboundedSender<String>, bool);

impl Actor for Slow {
    type Context = Context<Self>;
}

impl Handler<Record> for Slow {
    type Result = ResponseFuture<HandlerResult>;

    fn handle(&mut self, record: Record, _: &mut Context<Self>) -> Self::Result {
        let (tell, is_first) = (self.0.clone(), !std::mem::replace(&mut self.1, true));
        Box::pin(async move {
            if is_first {
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
            tell.send(record.text().into_owned())?;
            Ok(())
        })
    }
}

#[test]
fn a_seek_waits_for_the_record_in_hand_and_drops_what_is_queued_behind_it() {
    on_paused_clock(async |world| {
        world.brokers.append(&World::orders(), &["0", "1", "2", "3"]);
        let (tell, mut told) = unbounded_channel();
        let builder = world.builder("a").handle("orders", 1, move || Slow(tell.clone(), false));
        let handle = builder.start().await.expect("it starts");
        tokio::time::sleep(Duration::from_secs(1)).await;
        handle.seek("orders", 0, 3).await.expect("it is ours");
        assert_eq!(told.try_recv().expect("it is done"), "0");
        assert_eq!(heard(&mut told).await, "3");
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("4"));
    });
}

#[test]
fn a_seek_that_cannot_be_stored_leaves_the_position_as_it_was() {
    on_paused_clock(async |world| {
        ["0", "1"].iter().for_each(|value| world.produce(value));
        let (handle, mut stream) = world.pulling().await;
        assert_eq!([next(&mut stream).await, next(&mut stream).await], ["0", "1"]);
        stream.ack();
        let session = world.zookeeper.sessions_of("a")[0];
        world.zookeeper.suspend(session);
        let refused = handle.seek("orders", 0, 0).await;
        assert!(matches!(refused, Err(SeekError::NotStored { offset: 0, .. })), "{refused:?}");
        world.zookeeper.reconnect(session);
        world.produce("2");
        assert_eq!(next(&mut stream).await, "2");
        handle.shutdown().await;
    });
}

/// An actor panics at some moment of it: all from the new position on is delivered, or all from the one before.
#[test]
fn a_seek_during_which_an_actor_dies_is_done_or_not() {
    let mut done = Vec::new();
    for child in ["offset-committer", "stream-queue/orders-0", "fetcher-manager", "zk-session"] {
        for delay in (0..30).step_by(3) {
            on_paused_clock(async |world| done.push(is_sought_while_one_dies(&world, child, delay).await));
        }
    }
    assert!(done.contains(&true) && done.contains(&false), "{done:?}");
}

async fn is_sought_while_one_dies(world: &World, child: &str, delay: u64) -> bool {
    let (handle, mut stream) = world.having_read_three_slowly("a").await;
    let sought = {
        let handle = handle.clone();
        actix::spawn(async move { handle.seek("orders", 0, 1).await })
    };
    tokio::time::sleep(Duration::from_millis(delay)).await;
    crash(&handle, child);
    let sought = sought.await.expect("it does not panic");
    world.produce("3");
    let first = next(&mut stream).await;
    match &sought {
        Ok(()) => assert_eq!(first, "1", "{child} after {delay} ms"),
        // the committer died with the answer
        Err(SeekError::NotStored { .. }) => assert!(["1", "3"].contains(&&*first), "{first}"),
        Err(error) => panic!("{error}"),
    }
    let rest: &[&str] = if first == "1" { &["2", "3"] } else { &[] };
    for value in rest {
        assert_eq!(next(&mut stream).await, *value, "{child} after {delay} ms");
    }
    stream.ack();
    while handle.commit().await.and_then(|outcome| outcome.all()).is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(world.stored().as_deref(), Some("4"), "{child} after {delay} ms");
    handle.shutdown().await;
    sought.is_ok()
}

/// The partition is to move while its position is set: nothing is passed over, whoever delivers it.
#[test]
fn a_seek_of_a_partition_that_moves_away_is_done_before_it_goes_or_not() {
    let mut done = Vec::new();
    for delay in (0..400).step_by(10) {
        on_paused_clock(async |world| done.push(is_sought_before_it_moves(&world, delay).await));
    }
    assert!(done.contains(&true) && done.contains(&false), "{done:?}");
}

async fn is_sought_before_it_moves(world: &World, delay: u64) -> bool {
    let (first, stream) = world.having_read_three_slowly("b").await;
    // it comes before the other in the order, and so gets the partition
    let builder = world.builder("a").pull("orders", 1);
    let second = actix::spawn(async move { builder.start().await.expect("it starts") });
    tokio::time::sleep(Duration::from_millis(delay)).await;
    let sought = first.seek("orders", 0, 1).await;
    let second = second.await.expect("it does not panic");
    world.produce("3");
    let mut both = futures_util::stream::select(stream, second.streams("orders").remove(0));
    let mut seen = Vec::new();
    while seen.last().is_none_or(|last| last != "3") {
        let record = timeout(PATIENCE, both.next()).await.expect("a record in time").expect("no end");
        seen.push(record.expect("it can be read").text().into_owned());
    }
    match &sought {
        Ok(()) => {
            seen.dedup();
            assert_eq!(seen, ["1", "2", "3"], "after {delay} ms");
        }
        Err(SeekError::NotOwned(_)) => assert_eq!(seen, ["3"], "after {delay} ms"),
        Err(error) => panic!("{error}"),
    }
    until("the second owns it", || world.owner(0).as_deref() == Some("g_a-0")).await;
    second.shutdown().await;
    first.shutdown().await;
    sought.is_ok()
}

/// The fetcher meets it: not even its extent can be told, so no stream gets it.
#[test]
fn a_batch_whose_head_is_spoilt_is_told_in_the_metrics_and_stepped_over_by_a_seek() {
    for spoilt in [Spoilt::Format, Spoilt::Size] {
        on_paused_clock(async |world| {
            for values in [&["0", "1"][..], &["2", "3"], &["4"]] {
                world.brokers.append(&World::orders(), values);
            }
            world.brokers.spoil(&World::orders(), 2, spoilt);
            let (handle, mut stream) = world.pulling().await;
            assert_eq!([next(&mut stream).await, next(&mut stream).await], ["0", "1"]);
            stream.ack();
            assert!(timeout(Duration::from_secs(10), stream.next()).await.is_err(), "{spoilt:?}");
            let waiting = handle.metrics().await.expect("it runs").waiting;
            let why = waiting.first().map(|it| it.why.clone()).unwrap_or_default();
            assert!(why.contains("fetch at offset 2"), "{spoilt:?}: {waiting:?}");
            handle.seek("orders", 0, 4).await.expect("it is ours");
            assert_eq!(next(&mut stream).await, "4", "{spoilt:?}");
            handle.shutdown().await;
        });
    }
}
