//! Stops in bad moments (B29 of the field's cases).

use std::sync::atomic::{AtomicUsize, Ordering};

use kafka_troupe_proto::zk::topic_filter::TopicFilter;

use super::*;

/// Takes its time with each record, and says when it has ended.
#[derive(Clone, Default)]
struct Slow {
    takes: Duration,
    begun: Arc<AtomicUsize>,
    done: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
}

impl Actor for Slow {
    type Context = Context<Self>;

    fn stopped(&mut self, _: &mut Self::Context) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

impl Handler<Record> for Slow {
    type Result = ResponseFuture<HandlerResult>;

    fn handle(&mut self, _: Record, _: &mut Self::Context) -> Self::Result {
        let this = self.clone();
        Box::pin(async move {
            this.begun.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(this.takes).await;
            this.done.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
    }
}

impl World {
    /// Nobody is there any more: by the nodes.
    fn check_that_all_are_gone(&self) {
        let owners = |topic: &String| {
            let partitions = self.zookeeper.children(&format!("/consumers/g/owners/{topic}"));
            partitions.into_iter().map(|partition| format!("{topic}/{partition}")).collect::<Vec<_>>()
        };
        let owned: Vec<_> = self.zookeeper.children("/consumers/g/owners").iter().flat_map(owners).collect();
        assert_eq!(owned, [""; 0]);
        assert_eq!(self.zookeeper.children("/consumers/g/ids"), [""; 0]);
    }

    fn slow(&self) -> Slow {
        Slow { takes: Duration::from_millis(30), ..Slow::default() }
    }
}

fn all() -> TopicFilter {
    TopicFilter::white_list(".*").expect("a filter")
}

async fn wait_until(what: &str, is: impl Fn() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The topic is made at every moment around the stop.
#[test]
fn b29_a_a_topic_that_appears_while_a_member_stops_holds_nothing_up() {
    on_paused_clock(async |world| {
        for moment in 0..60u64 {
            let slow = world.slow();
            let factory = slow.clone();
            let builder = world.builder("a").handle_matching(all(), 2, move || factory.clone());
            let handle = builder.start().await.expect("it starts");
            world.produce("record");
            let name = format!("new-{moment}");
            let (brokers, topic) = (world.brokers.clone(), name.clone());
            let appears = async move {
                tokio::time::sleep(Duration::from_millis(moment)).await;
                brokers.create_topic(&topic, 2);
                brokers.append(&TopicPartition::new(topic.as_str(), 0), &["first"]);
            };
            let stops = async {
                tokio::time::sleep(Duration::from_millis(30)).await;
                let began = Instant::now();
                let outcome = handle.shutdown().await;
                (outcome, began.elapsed())
            };
            let ((outcome, took), ()) = tokio::join!(stops, appears);
            assert!(outcome.is_complete(), "{moment}: {outcome:?}");
            assert!(took < Duration::from_secs(10), "{moment}: {took:?}");
            world.check_that_all_are_gone();
            world.brokers.delete_topic(&name);
        }
    });
}

/// ZooKeeper is cut off while a rebalance is tried, at every moment of it.
#[test]
fn b29_b_a_stop_while_zookeeper_is_away_returns_within_two_backoffs_and_the_connect_time_out() {
    on_paused_clock(async |world| {
        for moment in 0..40u64 {
            let name = format!("m{moment}");
            let handle = world.builder(&name).pull("orders", 1).start().await.expect("it starts");
            let other = format!("/consumers/g/ids/g_other-{moment}");
            tokio::time::sleep(Duration::from_millis(500)).await;
            // a trigger, and then nobody answers
            world.zookeeper.put(
                &other,
                br#"{"version":1,"subscription":{"orders":1},"pattern":"static","timestamp":"1"}"#,
            );
            tokio::time::sleep(Duration::from_millis(moment * 50)).await;
            world.zookeeper.sessions_of(&name).into_iter().for_each(|id| world.zookeeper.suspend(id));
            tokio::time::sleep(Duration::from_millis(moment * 100)).await;
            let began = Instant::now();
            let outcome = handle.shutdown().await;
            let most = Duration::from_millis(2 * 2_000 + 6_000);
            assert!(began.elapsed() <= most, "{moment}: {:?}", began.elapsed());
            assert!(!outcome.is_complete(), "{moment}: nobody has heard of it");
            world.zookeeper.sessions_of(&name).into_iter().for_each(|id| world.zookeeper.expire(id));
            world.zookeeper.remove(&other);
        }
    });
}

#[test]
fn b29_c_each_stream_of_several_topics_ends_exactly_once() {
    on_paused_clock(async |world| {
        for topic in ["one", "two", "three"] {
            world.brokers.create_topic(topic, 2);
            world.produce_to(topic, 0, "record");
        }
        let pulling = world.builder("p").pull_matching(all(), 2).start().await.expect("it starts");
        let waiting = pulling.matching_streams().into_iter().map(|mut stream| {
            actix::spawn(async move {
                while stream.next().await.is_some() {}
                for _ in 0..3 {
                    assert!(stream.next().await.is_none(), "an end is an end");
                }
            })
        });
        let waiting: Vec<_> = waiting.collect();
        // a filter that matches nothing, too
        let none = TopicFilter::white_list("no-such").expect("a filter");
        let idle = world.builder("i").pull_matching(none, 1).start().await.expect("it starts");
        let mut idle_stream = idle.matching_streams().remove(0);
        let slow = world.slow();
        let factory = slow.clone();
        let builder = world.builder("h").handle_matching(all(), 2, move || factory.clone());
        let handling = builder.start().await.expect("it starts");
        tokio::time::sleep(Duration::from_secs(3)).await;
        for member in [pulling, idle, handling] {
            assert!(member.shutdown().await.is_complete());
        }
        for stream in waiting {
            timeout(PATIENCE, stream).await.expect("it ends").expect("it ends well");
        }
        assert!(timeout(PATIENCE, idle_stream.next()).await.expect("it ends").is_none());
        wait_until("both handlers have ended", || slow.ended.load(Ordering::Relaxed) == 2).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(slow.ended.load(Ordering::Relaxed), 2, "and once");
        world.check_that_all_are_gone();
    });
}

/// At every moment around the end of handling message n.
#[test]
fn b29_d_what_is_handled_right_before_the_stop_is_stored() {
    on_paused_clock(async |world| {
        world.brokers.append(&TopicPartition::new("orders", 0), &["x"; 4_000]);
        let mut before = 0;
        for moment in 0..70u64 {
            let slow = world.slow();
            let factory = slow.clone();
            let builder = world.builder_of(
                "a",
                &[("auto.commit.interval.ms", "3600000"), ("auto.offset.reset", "smallest")],
            );
            let handle =
                builder.handle("orders", 1, move || factory.clone()).start().await.expect("it starts");
            wait_until("the first is with its handler", || slow.begun.load(Ordering::Relaxed) > 0).await;
            tokio::time::sleep(Duration::from_millis(moment)).await;
            assert!(handle.shutdown().await.is_complete());
            let done = slow.done.load(Ordering::Relaxed);
            assert_eq!(done, slow.begun.load(Ordering::Relaxed), "none is cut off");
            before += done;
            assert_eq!(world.stored(), Some(before.to_string()), "{moment}");
            world.check_that_all_are_gone();
        }
    });
}

#[test]
fn b29_e_a_second_stop_waits_for_the_first_and_a_third_does_nothing() {
    on_paused_clock(async |world| {
        let slow = Slow { takes: Duration::from_secs(2), ..Slow::default() };
        let factory = slow.clone();
        let handle =
            world.builder("a").handle("orders", 1, move || factory.clone()).start().await.expect("it starts");
        world.produce("record");
        wait_until("it is with its handler", || slow.begun.load(Ordering::Relaxed) == 1).await;
        let began = Instant::now();
        let second = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let outcome = handle.shutdown().await;
            assert_eq!(slow.done.load(Ordering::Relaxed), 1, "it has waited as well");
            outcome
        };
        let (first, second) = tokio::join!(handle.shutdown(), second);
        assert!(first.is_complete());
        assert_eq!(first, second);
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
        let ended = Instant::now();
        assert_eq!(handle.shutdown().await, first);
        assert_eq!(ended.elapsed(), Duration::ZERO);
        assert_eq!(world.stored(), Some("1".to_owned()));
        world.check_that_all_are_gone();
    });
}

/// What is acknowledged is stored all the same, and what is left says where.
#[test]
fn a_handler_that_does_not_finish_by_the_deadline_is_cut_off_and_told() {
    on_paused_clock(async |world| {
        let slow = Slow { takes: Duration::from_secs(3_600), ..Slow::default() };
        let fast = world.slow();
        for (member, deadline) in
            [("a", 1_000), ("b", 8_000)].map(|(id, millis)| (id, Duration::from_millis(millis)))
        {
            world.brokers.create_topic(member, 1);
            world.produce_to(member, 0, "handled");
            world.produce_to(member, 0, "stuck");
            let (stuck, done) = (slow.clone(), fast.clone());
            let builder =
                world.builder(member).handle(member, 1, move || OnceThen(Some(done.clone()), stuck.clone()));
            let handle = builder.start().await.expect("it starts");
            let begun = slow.begun.load(Ordering::Relaxed);
            wait_until("it is stuck", || slow.begun.load(Ordering::Relaxed) > begun).await;
            let began = Instant::now();
            let outcome = handle.shutdown_within(deadline).await;
            assert!(began.elapsed() <= deadline, "{:?}", began.elapsed());
            assert_eq!(outcome.cut_off.len(), 1, "{outcome:?}");
            assert!(
                outcome.cut_off[0].starts_with(&format!("{member}-0: the record at offset 1 ")),
                "{outcome:?}"
            );
            let stored =
                world.zookeeper.node(&format!("/consumers/g/offsets/{member}/0")).expect("it is stored");
            assert_eq!(stored.data, b"1");
            world.check_that_all_are_gone();
        }
    });
}

/// The first record is handled by one, all others by the other.
struct OnceThen(Option<Slow>, Slow);

impl Actor for OnceThen {
    type Context = Context<Self>;
}

impl Handler<Record> for OnceThen {
    type Result = ResponseFuture<HandlerResult>;

    fn handle(&mut self, record: Record, _: &mut Self::Context) -> Self::Result {
        let one = self.0.take().unwrap_or_else(|| self.1.clone());
        Box::pin(async move {
            one.begun.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(one.takes).await;
            one.done.fetch_add(1, Ordering::Relaxed);
            drop(record);
            Ok(())
        })
    }
}

/// A second one is waited for by both; what is handled meanwhile counts.
#[test]
fn a_shutdown_that_has_begun_is_brought_forward_by_an_earlier_deadline_and_not_put_off_by_a_later_one() {
    on_paused_clock(async |world| {
        for (second, most) in [(500, 1_000), (60_000, 4_500)] {
            let name = format!("within-{second}");
            world.brokers.create_topic(&name, 1);
            world.produce_to(&name, 0, "handled");
            world.produce_to(&name, 0, "stuck");
            let (fast, stuck) = (world.slow(), Slow { takes: Duration::from_secs(3_600), ..Slow::default() });
            let builder = world.builder_of(
                "a",
                &[("auto.commit.interval.ms", "3600000"), ("auto.offset.reset", "smallest")],
            );
            let (done, hangs) = (fast.clone(), stuck.clone());
            let builder =
                builder.handle(name.as_str(), 1, move || OnceThen(Some(done.clone()), hangs.clone()));
            let handle = builder.start().await.expect("it starts");
            wait_until("it is stuck", || stuck.begun.load(Ordering::Relaxed) > 0).await;
            let began = Instant::now();
            let hurry = async {
                tokio::time::sleep(Duration::from_millis(400)).await;
                handle.shutdown_within(Duration::from_millis(second)).await
            };
            let (outcome, hurried) = tokio::join!(handle.shutdown(), hurry);
            assert_eq!(outcome, hurried);
            assert!(began.elapsed() <= Duration::from_millis(most), "{:?}", began.elapsed());
            let told = format!("{name}-0: the record at offset 1 ");
            assert!(outcome.cut_off.len() == 1 && outcome.cut_off[0].starts_with(&told), "{outcome:?}");
            let stored =
                world.zookeeper.node(&format!("/consumers/g/offsets/{name}/0")).expect("it is stored");
            assert_eq!(stored.data, b"1");
            world.check_that_all_are_gone();
        }
    });
}
