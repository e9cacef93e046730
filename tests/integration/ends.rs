//! Stops in bad moments (B29), and iterators that block.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use kafka_troupe::{BlockingStream, ConsumerSystem, PullError, TopicFilter};
use troupe_cluster::{Cluster, KafkaVersion};

use crate::support::clusters::{builder, shared};
use crate::support::load::numbered;
use crate::support::system::{Log, Recorder, config, run, wait_for_owners};
use crate::support::wait::until_async;
use crate::support::zk_log::GroupHistory;

crate::on_each_version!(
    b29_a_a_topic_that_appears_while_a_member_stops_holds_nothing_up,
    b29_c_d_streams_of_several_topics_end_once_with_all_that_they_handled_stored,
    a_blocking_iterator_times_out_and_goes_on,
    a_handler_that_blocks_its_thread_is_cut_off_at_the_deadline,
);

#[track_caller]
fn check_that_all_are_gone(cluster: &Cluster, group: &str) {
    let zookeeper = GroupHistory::of(cluster, group);
    assert_eq!(zookeeper.children("ids"), [""; 0]);
    let owned = zookeeper.tenures.iter().filter(|tenure| tenure.to.is_none());
    assert_eq!(owned.map(|tenure| tenure.thread.as_str()).collect::<Vec<_>>(), [""; 0]);
}

/// A session that outlasts the test: what is gone, was given up.
const LONG_SESSION: (&str, &str) = ("zookeeper.session.timeout.ms", "10000");

fn b29_a_a_topic_that_appears_while_a_member_stops_holds_nothing_up(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "b29a");
    cluster.create_topic("b29a-first", 2, 1).unwrap();
    for moment in 0..4u64 {
        let topic = format!("b29a-{moment}");
        let creating = topic.clone();
        run(async {
            let log = Log::default();
            let filter = TopicFilter::white_list("b29a-.*").unwrap();
            let handler = Recorder::factory("m", &log, |_| Ok(()));
            let builder = ConsumerSystem::builder(config(cluster, name, "m", &[LONG_SESSION]));
            let member = builder.handle_matching(filter, 2, handler).start().await.expect("it starts");
            wait_for_owners(cluster, name, "b29a-first", &["m-0", "m-1"]).await;
            let maker = std::thread::spawn(move || cluster.create_topic(&creating, 2, 1).unwrap());
            tokio::time::sleep(Duration::from_millis(moment * 60)).await;
            let begun = Instant::now();
            let outcome = member.shutdown().await;
            assert!(outcome.is_complete(), "{moment}: {outcome:?}");
            assert!(begun.elapsed() < Duration::from_secs(10), "{moment}: {:?}", begun.elapsed());
            check_that_all_are_gone(cluster, name);
            maker.join().expect("it is made");
        });
        cluster.delete_topic(&topic).unwrap();
    }
}

/// By what it is away: killed, it refuses connections; stopped, it is silent.
#[test]
fn b29_b_a_stop_while_zookeeper_is_away_returns_within_two_backoffs_and_the_connect_time_out() {
    for is_killed in [true, false] {
        let cluster = builder(KafkaVersion::V3_9_1).start().expect("a cluster starts");
        let name = "b29b";
        cluster.create_topic(name, 4, 1).unwrap();
        run(async {
            let log = Log::default();
            let start = async |member: &str| {
                let handler = Recorder::factory(member, &log, |_| Ok(()));
                let builder = ConsumerSystem::builder(config(&cluster, name, member, &[]));
                builder.handle(name, 1, handler).start().await.expect("it starts")
            };
            let one = start("m1").await;
            wait_for_owners(&cluster, name, name, &["m1-0"; 4]).await;
            // a rebalance is under way on both sides
            let two = start("m2").await;
            match is_killed {
                true => cluster.zookeeper().kill().unwrap(),
                false => cluster.zookeeper().pause().unwrap(),
            }
            for member in [&one, &two] {
                until_async("the connection is missed", async || {
                    let session = member.metrics().await.expect("it runs").session.unwrap_or_default();
                    let lease = session.lease_remaining_ms;
                    if lease == 0 { Ok(()) } else { Err(format!("a lease of {lease} ms")) }
                })
                .await;
            }
            let begun = Instant::now();
            let (first, second) = tokio::join!(one.shutdown(), two.shutdown());
            // rebalance.backoff.ms and zookeeper.connection.timeout.ms, and the time to see how it is
            let most = Duration::from_millis(2 * 1_000 + 6_000 + 500);
            assert!(begun.elapsed() < most, "{:?}", begun.elapsed());
            assert!(!first.is_complete() && !second.is_complete(), "nobody has heard of it");
        });
        if !is_killed {
            cluster.zookeeper().resume().unwrap();
        }
    }
}

fn b29_c_d_streams_of_several_topics_end_once_with_all_that_they_handled_stored(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "b29c");
    let topics = ["b29c-one", "b29c-two", "b29c-three"];
    for topic in topics {
        cluster.create_topic(topic, 2, 1).unwrap();
        cluster.produce(topic, numbered(200)).unwrap();
    }
    run(async {
        // no commit but the last
        let config = config(cluster, name, "m", &[("auto.commit.interval.ms", "3600000"), LONG_SESSION]);
        let filter = TopicFilter::white_list("b29c-.*").unwrap();
        let member = ConsumerSystem::builder(config).pull_matching(filter, 2).start().await.unwrap();
        let (handled, all) = channel();
        let streams = member.matching_streams().into_iter().map(|stream| {
            let (handled, mut stream) = (handled.clone(), stream.blocking());
            std::thread::spawn(move || {
                for record in &mut stream {
                    let record = record.expect("it can be read");
                    handled.send((record.topic().to_owned(), record.partition(), record.offset())).unwrap();
                }
                assert!(stream.next().is_none() && stream.next().is_none(), "an end is an end");
            })
        });
        let streams: Vec<_> = streams.collect();
        drop(handled);
        let mut seen: Vec<(String, i32, i64)> = Vec::new();
        until_async("some records of each", async || {
            seen.extend(all.try_iter());
            if seen.len() >= 100 { Ok(()) } else { Err(seen.len().to_string()) }
        })
        .await;
        let begun = Instant::now();
        let outcome = member.shutdown().await;
        assert!(outcome.is_complete(), "{outcome:?}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        check_that_all_are_gone(cluster, name);
        streams.into_iter().for_each(|stream| stream.join().expect("it ends well"));
        seen.extend(all.try_iter());
        for topic in topics {
            let committed = GroupHistory::of(cluster, name).committed(topic);
            for partition in 0..2 {
                let its = seen.iter().filter(|(its, number, _)| its == topic && *number == partition);
                let next = its.map(|(_, _, offset)| offset + 1).max().unwrap_or_default();
                assert_eq!(
                    committed.get(&partition).copied().unwrap_or_default(),
                    next,
                    "{topic}-{partition}"
                );
            }
        }
    });
}

/// What the thread saw, and when to go on.
struct Puller {
    told: Receiver<String>,
    go_on: Sender<()>,
}

impl Puller {
    fn start(mut stream: BlockingStream) -> Self {
        let ((tell, told), (go_on, wait)) = (channel(), channel());
        std::thread::spawn(move || {
            loop {
                let begun = Instant::now();
                let item = match stream.next() {
                    Some(Ok(record)) => record.text().into_owned(),
                    Some(Err(PullError::TimedOut(limit))) => {
                        assert!(begun.elapsed() >= limit, "{:?}", begun.elapsed());
                        format!("nothing within {limit:?}")
                    }
                    other => format!("{:?}", other.map(|item| item.is_ok())),
                };
                if tell.send(item).is_err() || wait.recv().is_err() {
                    return;
                }
            }
        });
        Self { told, go_on }
    }

    async fn next(&self) -> String {
        // an error: it has ended, which the next line tells
        let _ = self.go_on.send(());
        self.told().await
    }

    async fn told(&self) -> String {
        until_async("a word of the thread", async || self.told.try_recv().map_err(|error| error.to_string()))
            .await
    }
}

fn a_blocking_iterator_times_out_and_goes_on(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "blocking");
    cluster.create_topic(name, 1, 1).unwrap();
    run(async {
        let config = config(cluster, name, "m", &[("consumer.timeout.ms", "300")]);
        let member = ConsumerSystem::builder(config).pull(name, 1).start().await.unwrap();
        let puller = Puller::start(member.streams(name).remove(0).blocking());
        assert_eq!(puller.told().await, "nothing within 300ms");
        cluster.produce(name, numbered(3)).unwrap();
        let mut seen = Vec::new();
        while seen.len() < 3 {
            let word = puller.next().await;
            // the first may come after the next time-out
            seen.extend(Some(word).filter(|word| !word.starts_with("nothing")));
        }
        assert_eq!(seen, ["0", "1", "2"]);
        // asked for the next in vain: the last is handled
        assert_eq!(puller.next().await, "nothing within 300ms");
        until_async("the commit of all three", async || {
            let committed = GroupHistory::of(cluster, name).committed(name);
            if committed.get(&0) == Some(&3) { Ok(()) } else { Err(format!("{committed:?}")) }
        })
        .await;
        assert!(member.shutdown().await.is_complete());
        for _ in 0..3 {
            assert_eq!(puller.next().await, "None", "an end is an end");
        }
    });
}

fn a_handler_that_blocks_its_thread_is_cut_off_at_the_deadline(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "held_back");
    cluster.create_topic(name, 1, 1).unwrap();
    cluster.produce(name, numbered(10)).unwrap();
    run(async {
        let log = Log::default();
        let (let_go, wait) = channel::<()>();
        let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
        let handler = Recorder::factory("m", &log, move |record| {
            if record.offset() == 4 {
                let _ = wait.lock().unwrap().recv();
            }
            Ok(())
        });
        let config = config(cluster, name, "m", &[("auto.commit.interval.ms", "3600000"), LONG_SESSION]);
        let member = ConsumerSystem::builder(config).handle(name, 1, handler).start().await.unwrap();
        until_async(
            "the one that blocks",
            async || {
                if log.len() == 5 { Ok(()) } else { Err(log.len().to_string()) }
            },
        )
        .await;
        let begun = Instant::now();
        let outcome = member.shutdown_within(Duration::from_secs(2)).await;
        assert!(begun.elapsed() < Duration::from_millis(3_200), "{:?}", begun.elapsed());
        let told = outcome.cut_off.join("; ");
        assert!(told.contains("held_back-0: the record at offset 4 "), "{told}");
        assert!(told.contains("handler of stream held_back-0"), "{told}");
        check_that_all_are_gone(cluster, name);
        assert_eq!(GroupHistory::of(cluster, name).committed(name).get(&0), Some(&4));
        drop(let_go);
    });
}
