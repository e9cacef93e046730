//! Dead letters: what is given up is kept before it is acknowledged.

use kafka_troupe_proto::group::InFlight;
use kafka_troupe_proto::health::Health;
use kafka_troupe_proto::kafka::error_code::ErrorCode;
use kafka_troupe_proto::schemas::dead_letter::v1::DeadLetter;
use kafka_troupe_proto::schemas::status::v1::UnwrittenLetter;

use super::failing::{Deed, Player, Script};
use super::*;

const DEAD: &str = "orders.dead";

fn policy(times: u32) -> FailurePolicy {
    soon(times).then(Then::DeadLetter(DEAD.into()))
}

fn letters(world: &World) -> Vec<DeadLetter> {
    let records = world.brokers.records(&TopicPartition::new(DEAD, 0)).expect("they can be read");
    records.iter().map(|record| record.dead_letter().expect("a letter")).collect()
}

#[test]
fn a_record_is_acknowledged_when_its_dead_letter_is_written() {
    on_paused_clock(async |world| {
        world.brokers.create_topic(DEAD, 1);
        let script = Script::of(&[("bad", Deed::Fail)]);
        world.produce_batch(&["0", "bad", "2"]);
        let (handle, mut told) = world.playing(policy(1), &script).await;
        heard_all(&mut told, &["0", "bad", "bad", "2"]).await;
        let letter = letters(&world).remove(0);
        assert_eq!((&*letter.topic, letter.partition, letter.offset, letter.attempts), ("orders", 0, 1, 2));
        assert_eq!((letter.value.as_deref(), &*letter.reason), (Some(&b"bad"[..]), "bad is bad"));
        assert_eq!(status(&handle).await.streams[0].dead_letters, 1);
        handle.shutdown().await;
        assert_eq!((letters(&world).len(), world.stored().as_deref()), (1, Some("3")));
    });
}

#[test]
fn while_a_dead_letter_cannot_be_written_its_partition_waits_and_nothing_is_acknowledged() {
    on_paused_clock(async |world| {
        world.brokers.create_topic(DEAD, 1);
        world.brokers.refuse_produce(DEAD, Some(ErrorCode::NotLeaderOrFollower));
        let script = Script::of(&[("bad", Deed::Fail)]);
        world.produce_batch(&["0", "bad", "2"]);
        let (handle, mut told) = world.playing(policy(0), &script).await;
        assert_eq!(all_heard(&mut told).await, ["0", "bad"]);
        assert_eq!(status(&handle).await.partitions[0].acked, 1);
        world.brokers.refuse_produce(DEAD, None);
        heard_all(&mut told, &["2"]).await;
        assert_eq!(letters(&world).len(), 1);
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("3"));
    });
}

#[test]
fn a_letter_that_dies_with_its_writer_is_written_by_the_next_one() {
    on_paused_clock(async |world| {
        world.brokers.create_topic(DEAD, 1);
        let script = Script::of(&[("bad", Deed::Fail)]);
        let (handle, mut told) = world.playing(policy(0), &script).await;
        world.brokers.refuse_produce(DEAD, Some(ErrorCode::NotEnoughReplicas));
        world.produce_batch(&["0", "bad", "2"]);
        heard_all(&mut told, &["0", "bad"]).await;
        for _ in 0..3 {
            crash(&handle, "dead-letter-writer");
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        let lost = status(&handle).await;
        assert_eq!((lost.partitions[0].acked, letters(&world).len()), (1, 0));
        world.brokers.refuse_produce(DEAD, None);
        heard_all(&mut told, &["2"]).await;
        let offsets: Vec<_> = letters(&world).iter().map(|letter| letter.offset).collect();
        assert_eq!(offsets, [1]);
        let restarts = status(&handle).await.actors.into_iter().find(|it| it.name == "dead-letter-writer");
        assert_eq!(restarts.expect("it runs").restarts, 3);
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("3"));
    });
}

/// The topic is missing: that is told at once, of the partition that waits, and only while it does.
#[test]
fn a_letter_that_cannot_be_written_fails_health_until_nobody_waits_for_it() {
    for in_flight in [InFlight::one(), InFlight::window(4)] {
        for ends in ["seek", "pause", "topic"] {
            on_paused_clock(async |world| {
                world.produce_batch(&["0", "bad", "2"]);
                let (tell, mut told) = unbounded_channel();
                let script = Script::of(&[("bad", Deed::Fail)]);
                let subscription = Subscription::topic("orders").on_failure(policy(0)).in_flight(in_flight);
                let subscription = subscription.handle(move || Player(tell.clone(), script.clone()));
                let handle = world.subscribed(subscription).await;
                for value in ["0", "bad"] {
                    assert_eq!(heard(&mut told).await, value);
                }
                tokio::time::sleep(Duration::from_secs(5)).await;
                let letter = unwritten(&handle).await.remove(0);
                let place = (&*letter.topic, letter.partition, letter.offset);
                assert_eq!((place, &*letter.dead_letter_topic), (("orders", 0, 1), DEAD));
                assert!(letter.lasting && letter.why.contains("knows no topic"), "{letter:?}");
                let why = format!("{:?}", handle.health().await);
                assert!(why.contains("orders-0 waits at offset 1 for its dead letter"), "{why}");
                match ends {
                    "seek" => handle.seek("orders", 0, 2).await.expect("it is ours"),
                    "pause" => handle.pause([TopicPartition::new("orders", 0)]).await.expect("it is ours"),
                    _ => world.brokers.create_topic(DEAD, 1),
                }
                tokio::time::sleep(Duration::from_secs(20)).await;
                assert_eq!(unwritten(&handle).await, [], "{ends}");
                assert_eq!(handle.health().await, Health::Healthy, "{ends}, {in_flight:?}");
                handle.shutdown().await;
            });
        }
    }
}

/// One that is written says nothing of another topic's.
#[test]
fn a_letter_that_is_written_hides_none_that_waits_for_another_topic() {
    on_paused_clock(async |world| {
        world.brokers.create_topic(DEAD, 1);
        world.brokers.create_topic("payments", 1);
        let script = Script::of(&[("bad", Deed::Fail)]);
        let (tell, mut told) = unbounded_channel();
        let subscribed = |topic: &str, dead: &str| {
            let (tell, script) = (tell.clone(), script.clone());
            let subscription =
                Subscription::topic(topic).on_failure(soon(0).then(Then::DeadLetter(dead.into())));
            subscription.handle(move || Player(tell.clone(), script.clone()))
        };
        let builder = world.builder("a").subscription(subscribed("orders", DEAD));
        let builder = builder.subscription(subscribed("payments", "payments.dead"));
        let handle = builder.start().await.expect("it starts");
        world.produce_to("payments", 0, "bad");
        assert_eq!(heard(&mut told).await, "bad");
        for _ in 0..5 {
            world.produce("bad");
            assert_eq!(heard(&mut told).await, "bad");
            tokio::time::sleep(Duration::from_secs(1)).await;
            let topics: Vec<_> =
                unwritten(&handle).await.into_iter().map(|it| it.dead_letter_topic).collect();
            assert_eq!(topics, ["payments.dead"]);
        }
        assert_eq!(letters(&world).len(), 5);
        handle.shutdown().await;
    });
}

/// Its handler has given the record up, and is not to be suspected.
#[test]
fn a_letter_that_takes_long_is_told_as_that_and_not_as_a_stuck_handler() {
    for in_flight in [InFlight::one(), InFlight::by_key(4)] {
        on_paused_clock(async |world| {
            world.brokers.create_topic(DEAD, 1);
            let script = Script::of(&[("bad", Deed::Fail)]);
            let (tell, mut told) = unbounded_channel();
            let subscription = Subscription::topic("orders").on_failure(policy(0)).in_flight(in_flight);
            let subscription = subscription.handle(move || Player(tell.clone(), script.clone()));
            let properties = [("auto.offset.reset", "smallest"), ("socket.timeout.ms", "600000")];
            let builder = world.builder_of("a", &properties).subscription(subscription);
            let handle = builder.start().await.expect("it starts");
            world.produce("good");
            assert_eq!(heard(&mut told).await, "good");
            world.brokers.set_pace(Arc::new(|| Duration::from_secs(40)));
            world.produce("bad");
            assert_eq!(heard(&mut told).await, "bad");
            for _ in 0..90 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let status = status(&handle).await;
                assert_eq!(status.stuck, [], "{in_flight:?}");
                let unwritten = status.dead_letters.unwrap_or_default().unwritten;
                assert_eq!(
                    unwritten.iter().map(|it| (it.offset, it.lasting)).collect::<Vec<_>>(),
                    [(1, false)]
                );
            }
            world.brokers.set_pace(Arc::new(|| Duration::ZERO));
            until("it is written", || letters(&world).len() == 1).await;
            handle.shutdown().await;
            assert_eq!(world.stored().as_deref(), Some("2"));
        });
    }
}

async fn unwritten(handle: &ConsumerHandle) -> Vec<UnwrittenLetter> {
    status(handle).await.dead_letters.unwrap_or_default().unwritten
}

/// A seek, a shutdown or the next owner is not held up by it.
#[test]
fn a_partition_that_is_given_up_while_its_dead_letter_waits_is_not_acknowledged_past_it() {
    on_paused_clock(async |world| {
        let script = Script::of(&[("bad", Deed::Fail)]);
        world.produce_batch(&["0", "bad", "2"]);
        // there is no such topic
        let (handle, mut told) = world.playing(policy(0), &script).await;
        assert_eq!(all_heard(&mut told).await, ["0", "bad"]);
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("1"));
    });
}

#[test]
fn of_a_batch_that_failed_every_record_is_written_or_told_of() {
    let fails = || {
        does(|batch: RecordBatch| match batch.first_offset() {
            3 => Err("no disk".into()),
            _ => Ok(()),
        })
    };
    for then in [Then::DeadLetter(DEAD.into()), Then::Skip] {
        on_paused_clock(async |world| {
            world.brokers.create_topic(DEAD, 1);
            world.produce_batch(&["0", "1", "2"]);
            world.produce_batch(&["3", "4", "5", "6", "7"]);
            let subscription = Subscription::topic("orders").on_failure(soon(0).then(then.clone()));
            let handle = world.subscribed(subscription.handle_batches(3, fails)).await;
            tokio::time::sleep(Duration::from_secs(10)).await;
            let offsets: Vec<_> = letters(&world).iter().map(|letter| letter.offset).collect();
            let stream = status(&handle).await.streams.remove(0);
            let given_up = (stream.dead_letters, stream.skipped);
            match then {
                Then::Skip => assert_eq!((offsets.len(), given_up), (0, (0, 3))),
                _ => assert_eq!((offsets, given_up), (vec![3, 4, 5], (3, 0))),
            }
            handle.shutdown().await;
            assert_eq!(world.stored().as_deref(), Some("8"));
        });
    }
}

#[test]
fn at_a_place_only_that_record_is_written_and_the_rest_comes_again() {
    on_paused_clock(async |world| {
        world.brokers.create_topic(DEAD, 1);
        world.produce_batch(&["0", "x", "2", "y", "4"]);
        let (tell, mut told) = unbounded_channel();
        let make = move || {
            let tell: Tell = tell.clone();
            does(move |batch: RecordBatch| {
                batch.try_for_each(|record| {
                    tell.send(record.text().into_owned())?;
                    record.text().parse::<u32>()?;
                    Ok(())
                })
            })
        };
        let subscription = Subscription::topic("orders").on_failure(policy(0));
        let handle = world.subscribed(subscription.handle_batches(10, make)).await;
        heard_all(&mut told, &["0", "x", "2", "y", "4"]).await;
        let offsets: Vec<_> = letters(&world).iter().map(|letter| letter.offset).collect();
        assert_eq!(offsets, [1, 3]);
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("5"));
    });
}
