//! Handlers that do not get on are noticed, and forgotten when they do; what they do not take is not fetched.

use kafka_troupe_actors::Subscription;
use kafka_troupe_proto::group::{FailurePolicy, InFlight};
use kafka_troupe_proto::health::Health;
use tokio::sync::Semaphore;

use super::failing::{Deed, Player, Script, order, status};
use super::*;

#[test]
fn a_handler_that_is_stuck_is_noticed_and_forgotten_when_it_moves_on() {
    on_paused_clock(async |world| {
        world.brokers.create_topic("orders", 2);
        let gate = Arc::new(Semaphore::new(0));
        let script = Script::of(&[("1", Deed::Wait(Arc::clone(&gate)))]);
        world.produce_all(1, &["0", "1", "2"]);
        let (handle, mut told) = world.playing(FailurePolicy::default(), &script).await;
        assert_eq!([heard(&mut told).await, heard(&mut told).await], ["0", "1"]);
        let since = status(&handle).await.taken_ms;
        tokio::time::sleep(Duration::from_secs(28)).await;
        assert_eq!(status(&handle).await.stuck, [], "it only takes its time");
        tokio::time::sleep(Duration::from_secs(4)).await;
        let stuck = status(&handle).await.stuck;
        let told_as: Vec<_> = stuck.iter().map(|it| (&*it.topic, it.partition, it.offset)).collect();
        assert_eq!(told_as, [("orders", 1, 1)]);
        assert!((0..=1_000).contains(&(stuck[0].since_ms - since)), "{stuck:?}");
        assert!(stuck[0].thread.ends_with("_a-0"), "{stuck:?}");
        gate.add_permits(1);
        assert_eq!(heard(&mut told).await, "2");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(status(&handle).await.stuck, []);
        handle.shutdown().await;
    });
}

/// Nothing of any partition of its stream comes meanwhile, whoever has the one that it is stuck with.
#[test]
fn a_handler_that_is_stuck_stays_so_though_its_partition_is_sought_or_lost() {
    for loses in [false, true] {
        on_paused_clock(async |world| {
            let gate = Arc::new(Semaphore::new(0));
            let script = Script::of(&[("0", Deed::Wait(Arc::clone(&gate)))]);
            world.produce_all(0, &["0", "1", "2"]);
            let (handle, mut told) = world.playing(FailurePolicy::default(), &script).await;
            assert_eq!(heard(&mut told).await, "0");
            tokio::time::sleep(Duration::from_secs(32)).await;
            assert_eq!(status(&handle).await.stuck.len(), 1);
            match loses {
                true => world.zookeeper.expire(world.zookeeper.sessions_of("a")[0]),
                false => handle.seek("orders", 0, 2).await.expect("it is ours"),
            }
            for _ in 0..60 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let offsets: Vec<_> = status(&handle).await.stuck.iter().map(|it| it.offset).collect();
                assert_eq!(offsets, [0], "{loses}");
            }
            let why = format!("{:?}", handle.health().await);
            assert!(why.contains("the handler of orders-0 is stuck"), "{why}");
            assert!(told.try_recv().is_err(), "it has one record");
            script.set("0", None);
            gate.add_permits(1);
            let next = if loses { "0" } else { "2" };
            assert_eq!(heard(&mut told).await, next);
            tokio::time::sleep(Duration::from_secs(2)).await;
            assert_eq!(status(&handle).await.stuck, []);
            handle.shutdown().await;
        });
    }
}

#[test]
fn a_record_that_fails_for_long_is_not_stuck_and_0_notices_nothing() {
    on_paused_clock(async |world| {
        let script = Script::of(&[("bad", Deed::Fail)]);
        let (handle, mut told) = world.playing(FailurePolicy::retry_forever(), &script).await;
        world.produce("bad");
        assert_eq!(heard(&mut told).await, "bad");
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(status(&handle).await.stuck, []);
        handle.shutdown().await;
        let properties = [("auto.offset.reset", "smallest"), ("troupe.handler.stuck.ms", "0")];
        let (tell, mut told) = unbounded_channel();
        script.set("bad", Some(Deed::Wait(Arc::new(Semaphore::new(0)))));
        let subscribed = Subscription::topic("orders").handle(move || Player(tell.clone(), script.clone()));
        let builder = world.builder_of("a", &properties).subscription(subscribed);
        let handle = builder.start().await.expect("it starts");
        assert_eq!(heard(&mut told).await, "bad");
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(status(&handle).await.stuck, []);
        handle.shutdown().await;
    });
}

#[test]
fn a_record_that_fails_for_long_is_shown_and_fails_until_it_is_handled() {
    for in_flight in [InFlight::one(), InFlight::window(8)] {
        on_paused_clock(async |world| {
            let script = Script::of(&[("bad", Deed::Fail)]);
            let (tell, mut told) = unbounded_channel();
            let player = Player(tell, script.clone());
            let subscribed = Subscription::topic("orders")
                .on_failure(FailurePolicy::retry_forever())
                .in_flight(in_flight)
                .handle(move || Player(player.0.clone(), player.1.clone()));
            let handle = world.builder("a").subscription(subscribed).start().await.expect("it starts");
            let begun = status(&handle).await.taken_ms;
            world.produce("bad");
            assert_eq!(heard(&mut told).await, "bad");
            tokio::time::sleep(Duration::from_secs(20)).await;
            let retried = status(&handle).await.retried.remove(0);
            assert_eq!((&*retried.topic, retried.partition, retried.offset), ("orders", 0, 0));
            assert_eq!((&*retried.why, retried.is_stuck), ("bad is bad", false));
            assert!(retried.attempts > 2 && retried.since_ms - begun < 1_000, "{retried:?}");
            assert_eq!(handle.health().await, Health::Healthy, "it may pass by itself");
            tokio::time::sleep(Duration::from_secs(20)).await;
            let Health::Failing { why } = handle.health().await else { panic!("it does not get on") };
            assert!(why.len() == 1 && why[0].contains("orders-0") && why[0].contains("offset 0"), "{why:?}");
            script.set("bad", None);
            tokio::time::sleep(Duration::from_secs(12)).await;
            assert_eq!(status(&handle).await.retried, []);
            assert_eq!(handle.health().await, Health::Healthy);
            handle.shutdown().await;
        });
    }
}

/// What lies between broker and handler is bounded by the properties, whatever the handler does.
#[test]
fn a_slow_handler_slows_its_own_fetches_and_nobody_else_s() {
    on_paused_clock(async |world| {
        world.brokers.create_topic("other", 1);
        let gate = Arc::new(Semaphore::new(0));
        let script = Script::of(&[("slow", Deed::Wait(Arc::clone(&gate)))]);
        let properties = [
            ("auto.offset.reset", "smallest"),
            ("queued.max.message.chunks", "3"),
            ("fetch.message.max.bytes", "1000"),
        ];
        let (tell, mut told) = unbounded_channel();
        let (tell_other, mut told_other) = unbounded_channel();
        let playing = move |tell: UnboundedSender<String>| {
            let script = script.clone();
            move || Player(tell.clone(), script.clone())
        };
        let builder = world.builder_of("a", &properties);
        let builder = builder.subscription(Subscription::topic("orders").handle(playing(tell)));
        let builder = builder.subscription(Subscription::topic("other").handle(playing(tell_other)));
        let handle = builder.start().await.expect("it starts");
        world.produce("slow");
        assert_eq!(heard(&mut told).await, "slow");
        for number in 0..200 {
            world.produce(&format!("{number:0>800}"));
            world.produce_to("other", 0, &number.to_string());
        }
        for number in 0..200 {
            assert_eq!(heard(&mut told_other).await, number.to_string());
        }
        let fetches = world.brokers.fetches(&order(0));
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(world.brokers.fetches(&order(0)), fetches, "there is no room for it");
        let stream = status(&handle).await.streams.remove(0);
        assert_eq!((&*stream.name, stream.queued_chunks), ("orders-0", 3));
        assert!(stream.queued_bytes <= 3 * 1000, "{} bytes", stream.queued_bytes);
        gate.add_permits(1);
        for number in 0..200 {
            assert_eq!(heard(&mut told).await, format!("{number:0>800}"));
        }
        handle.shutdown().await;
        assert_eq!(world.stored().as_deref(), Some("201"));
    });
}
