//! The rebalance listener: when it is asked, what waits for it, and what does not.

mod ends;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kafka_troupe::proto::group::assignor::Plan;
use kafka_troupe::{ConsumerHandle, ConsumerSystem, Record, ReleaseReason, StatusSnapshot};
use tokio::sync::Semaphore;
use troupe_cluster::{Cluster, KafkaVersion};

use crate::support::clusters::shared;
use crate::support::history::History;
use crate::support::listener::{Answer, Event, Events, Listener, What};
use crate::support::load::{Load, numbered};
use crate::support::system::{Log, Recorder, config, now_ms, run, wait_for_owners};
use crate::support::wait::until_async;
use crate::support::zk_log::{GroupHistory, Tenure};

crate::on_each_version!(
    a_release_and_a_start_wait_for_the_listener,
    a_release_is_asked_about_when_nothing_is_handed_over_any_more,
    a_listener_that_does_not_answer_holds_up_a_release_and_a_start_for_a_limited_time,
    a_listener_that_panics_holds_up_nothing,
    a_listener_may_commit_what_is_released,
);

const MORE: [(&str, &str); 1] = [("zookeeper.session.timeout.ms", "20000")];

/// A member that reads the topic of the group's name.
async fn start(
    cluster: &Cluster,
    name: &str,
    member: &str,
    more: &[(&str, &str)],
    (log, events): (&Log, &Events),
    answer: impl Fn(&What) -> Answer + Send + 'static,
) -> ConsumerHandle {
    let handler = Recorder::factory(member, log, |_: &Record| Ok(()));
    let system = ConsumerSystem::builder(config(cluster, name, member, more)).handle(name, 1, handler);
    let system = system.rebalance_listener(Listener::start(events, answer));
    system.rebalance_listener_timeout(START_LIMIT).start().await.expect("a member starts")
}

const START_LIMIT: Duration = Duration::from_millis(700);
/// `rebalance.backoff.ms` x 3 - 500 ms, the default of `troupe.drain.timeout.ms` here.
const RELEASE_LIMIT: i64 = 2500;
/// What a loaded machine takes for what should be at once.
const SLACK: i64 = 2000;

const SHARED: [&str; 4] = ["m1-0", "m1-0", "m2-0", "m2-0"];

async fn owners(cluster: &Cluster, name: &str, threads: &[&str]) {
    wait_for_owners(cluster, name, name, threads).await;
}

/// Waits for what was started to be these partitions, in one message or several.
async fn wait_for_started(events: &Events, partitions: &[i32]) {
    until_async(&format!("start of {partitions:?}"), async || {
        let mut started = events.partitions_of(|what| *what == What::Starting);
        started.sort_unstable();
        if started == partitions { Ok(()) } else { Err(format!("{:?}", events.all())) }
    })
    .await;
}

async fn wait_for_event(events: &Events, wanted: What) -> Event {
    until_async(&format!("{wanted:?}"), async || {
        let all = events.all();
        let found = all.iter().find(|event| event.what == wanted).cloned();
        found.ok_or_else(|| format!("{all:?}"))
    })
    .await
}

/// Waits until so many more of each of these partitions were delivered.
async fn wait_for_flow(log: &Log, name: &str, partitions: &[i32], more: usize) {
    let counts = || {
        let history = log.history(name);
        partitions.iter().map(|partition| history.of(*partition).count()).collect::<Vec<_>>()
    };
    let before = counts();
    until_async(&format!("{more} more of each of {partitions:?}"), async || {
        let now = counts();
        let flows = now.iter().zip(&before).all(|(now, before)| *now >= before + more);
        if flows { Ok(()) } else { Err(format!("{before:?} then {now:?}")) }
    })
    .await;
}

/// Deliveries of a partition to a member in these milliseconds, ends excluded.
fn delivered(history: &History, partition: i32, member: &str, from: i64, to: i64) -> usize {
    let its = history.of(partition).filter(|it| it.member == member);
    its.filter(|it| it.at.is_some_and(|at| from < at && at < to)).count()
}

fn tenure(zookeeper: &GroupHistory, partition: i32, thread: &str) -> Tenure {
    let its = |it: &&Tenure| it.partition == partition && zookeeper.short(&it.thread) == thread;
    zookeeper.tenures.iter().find(its).expect("it was owned").clone()
}

fn listener(status: &StatusSnapshot) -> (u64, u64, u64, String) {
    let listener = status.listener.clone().expect("there is one");
    assert!(listener.name.ends_with("Listener"), "{}", listener.name);
    (listener.asked, listener.late, listener.failed, listener.last_error)
}

fn threads(plan: &Plan) -> Vec<(i32, String)> {
    plan.iter().map(|(tp, thread)| (tp.partition, thread.to_string())).collect()
}

/// Both questions are left open for a while: the partition stands still meanwhile, the others do not.
fn a_release_and_a_start_wait_for_the_listener(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "listened");
    cluster.create_topic(name, 4, 1).unwrap();
    let load = Load::start(cluster, name);
    run(async {
        let (log, gate) = (Log::default(), Arc::new(Semaphore::new(0)));
        let (first, second) = (Events::default(), Events::default());
        let (open, thinks) = (Arc::clone(&gate), Arc::new(AtomicBool::new(false)));
        let thinks_now = Arc::clone(&thinks);
        let answer = move |what: &What| match what {
            What::Releasing(ReleaseReason::Rebalance) => Answer::When(Arc::clone(&open)),
            What::Starting if thinks_now.load(Ordering::SeqCst) => Answer::When(Arc::clone(&open)),
            _ => Answer::AtOnce,
        };
        // time enough to look
        let patient = [MORE[0], ("rebalance.backoff.ms", "5000"), ("troupe.drain.timeout.ms", "14000")];
        let one = start(cluster, name, "m1", &patient, (&log, &first), answer).await;
        owners(cluster, name, &["m1-0"; 4]).await;
        wait_for_flow(&log, name, &[0, 1, 2, 3], 20).await;
        wait_for_started(&first, &[0, 1, 2, 3]).await;
        for event in first.all() {
            assert!(event.positions.values().all(Option::is_none), "{event:?}");
            assert_eq!(event.member, "listened_m1");
            let all = (0..4).map(|partition| (partition, "listened_m1-0".to_owned()));
            assert_eq!(threads(&event.assignment), all.collect::<Vec<_>>());
        }

        let open = Arc::clone(&gate);
        let handler = Recorder::factory("m2", &log, |_: &Record| Ok(()));
        let two = ConsumerSystem::builder(config(cluster, name, "m2", &patient)).handle(name, 1, handler);
        let two = two.rebalance_listener(Listener::start(&second, move |what: &What| match what {
            What::Starting => Answer::When(Arc::clone(&open)),
            _ => Answer::AtOnce,
        }));
        let two = two.start().await.unwrap();

        let released = wait_for_event(&first, What::Releasing(ReleaseReason::Rebalance)).await;
        wait_for_flow(&log, name, &[0, 1], 20).await;
        let (asked, history) = (now_ms(), log.history(name));
        owners(cluster, name, &["m1-0"; 4]).await;
        assert_eq!(released.positions.keys().copied().collect::<Vec<_>>(), [2, 3]);
        for (partition, position) in &released.positions {
            assert_eq!(delivered(&history, *partition, "m1", released.told, asked), 0);
            let next = history.of(*partition).last().unwrap().offset + 1;
            assert_eq!(*position, Some(next), "the next of partition {partition}");
        }
        gate.add_permits(1);

        wait_for_started(&second, &[2, 3]).await;
        owners(cluster, name, &SHARED).await;
        wait_for_flow(&log, name, &[0, 1], 20).await;
        let history = log.history(name);
        let started = second.all();
        for event in &started {
            let its =
                |(partition, position): (&i32, &Option<i64>)| released.positions[partition] == *position;
            assert!(event.positions.iter().all(its), "{event:?} goes on from {released:?}");
            let all = (0..4).zip(SHARED.map(|thread| format!("listened_{thread}")));
            assert_eq!(threads(&event.assignment), all.collect::<Vec<_>>());
        }
        assert!(history.deliveries.iter().all(|delivery| delivery.member == "m1"));
        gate.add_permits(started.len());
        wait_for_flow(&log, name, &[2, 3], 20).await;

        // what the first has flows on while it is asked about more
        thinks.store(true, Ordering::SeqCst);
        two.shutdown().await;
        let left = wait_for_event(&second, What::Releasing(ReleaseReason::Shutdown)).await;
        assert_eq!(left.positions.keys().copied().collect::<Vec<_>>(), [2, 3]);
        owners(cluster, name, &["m1-0"; 4]).await;
        wait_for_started(&first, &[0, 1, 2, 2, 3, 3]).await;
        wait_for_flow(&log, name, &[0, 1], 20).await;
        let history = log.history(name);
        for partition in [2, 3] {
            assert_eq!(delivered(&history, partition, "m1", left.told, now_ms()), 0);
        }
        gate.add_permits(2);
        wait_for_flow(&log, name, &[0, 1, 2, 3], 20).await;
        load.end();
        log.wait_for_all(cluster, name).await;
        assert_eq!(listener(&one.metrics().await.unwrap()).1, 0, "none was late");
        one.shutdown().await;

        let (history, zookeeper) = (log.history(name), GroupHistory::of(cluster, name));
        history.check(&zookeeper);
        assert_eq!(history.duplicates(), 0);
        for partition in [2, 3] {
            let answered = first.answered(&released);
            let until = tenure(&zookeeper, partition, "m1-0").to.unwrap();
            assert!(answered <= until, "released at {until}, answered at {answered}");
            let started = second.all().into_iter().find(|it| it.positions.contains_key(&partition)).unwrap();
            let from = tenure(&zookeeper, partition, "m2-0").from.0;
            assert!(from <= started.told, "asked at {}, claimed at {from}", started.told);
            assert_eq!(delivered(&history, partition, "m2", 0, second.answered(&started)), 0);
        }
    });
}

/// Though thousands of records are queued, and each takes its handler a while.
fn a_release_is_asked_about_when_nothing_is_handed_over_any_more(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "backlogged");
    cluster.create_topic(name, 2, 1).unwrap();
    // a chunk is a batch here, and the partitions take turns
    for _ in 0..50 {
        cluster.produce(name, numbered(200)).unwrap();
    }
    run(async {
        let (log, events, gate) = (Log::default(), Events::default(), Arc::new(Semaphore::new(0)));
        let open = Arc::clone(&gate);
        let listener = Listener::start(&events, move |what: &What| match what {
            What::Releasing(ReleaseReason::Rebalance) => Answer::When(Arc::clone(&open)),
            _ => Answer::AtOnce,
        });
        let work = |_: &Record| {
            std::thread::sleep(Duration::from_millis(2));
            Ok(())
        };
        let chunks = ("fetch.message.max.bytes", "1024");
        let patient =
            [MORE[0], ("rebalance.backoff.ms", "5000"), ("troupe.drain.timeout.ms", "14000"), chunks];
        let handler = Recorder::factory("m1", &log, work);
        let one = ConsumerSystem::builder(config(cluster, name, "m1", &patient)).handle(name, 1, handler);
        let one = one.rebalance_listener(listener).start().await.unwrap();
        wait_for_flow(&log, name, &[0, 1], 20).await;
        let handler = Recorder::factory("m2", &log, work);
        let two = ConsumerSystem::builder(config(cluster, name, "m2", &patient)).handle(name, 1, handler);
        let two = two.start().await.unwrap();
        let released = wait_for_event(&events, What::Releasing(ReleaseReason::Rebalance)).await;
        wait_for_flow(&log, name, &[0], 100).await;
        let history = log.history(name);
        assert_eq!(delivered(&history, 1, "m1", released.told, now_ms()), 0);
        let next = history.of(1).last().unwrap().offset + 1;
        assert_eq!(released.positions, [(1, Some(next))].into());
        assert!(next < 5000, "there is more to hand over");
        gate.add_permits(1);
        wait_for_flow(&log, name, &[0, 1], 20).await;
        one.shutdown().await;
        two.shutdown().await;
        let history = log.history(name);
        history.check(&GroupHistory::of(cluster, name));
        assert_eq!(history.duplicates(), 0);
    });
}

fn a_listener_that_does_not_answer_holds_up_a_release_and_a_start_for_a_limited_time(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "unanswered");
    cluster.create_topic(name, 4, 1).unwrap();
    let load = Load::start(cluster, name);
    run(async {
        let (log, first, second) = (Log::default(), Events::default(), Events::default());
        let one = start(cluster, name, "m1", &MORE, (&log, &first), |_: &What| Answer::Never).await;
        wait_for_flow(&log, name, &[0, 1, 2, 3], 20).await;
        let began = log.history(name).deliveries[0].at.unwrap();
        let waited = began - first.all()[0].told;
        let limit = i64::try_from(START_LIMIT.as_millis()).unwrap();
        assert!((limit - 5..limit + SLACK).contains(&waited), "started after {waited} ms");
        let (asked, late, failed, why) = listener(&one.metrics().await.unwrap());
        assert_eq!((asked, failed), (late, 0));
        assert!(
            why.starts_with("before the start of unanswered-") && why.ends_with("no answer within 700 ms"),
            "{why}"
        );

        let two = start(cluster, name, "m2", &MORE, (&log, &second), |_: &What| Answer::AtOnce).await;
        owners(cluster, name, &SHARED).await;
        wait_for_flow(&log, name, &[0, 1, 2, 3], 20).await;
        let status = one.metrics().await.unwrap();
        let (_, now_late, failed, why) = listener(&status);
        assert_eq!((now_late, failed), (late + 1, 0));
        assert!(
            why.starts_with("before the release of unanswered-2, unanswered-3: no answer within 2"),
            "{why}"
        );
        load.end();
        log.wait_for_all(cluster, name).await;
        one.shutdown().await;
        two.shutdown().await;

        let (history, zookeeper) = (log.history(name), GroupHistory::of(cluster, name));
        history.check(&zookeeper);
        assert_eq!(history.duplicates(), 0);
        let told = first.all().into_iter().find(|it| it.what == What::Releasing(ReleaseReason::Rebalance));
        let told = told.expect("it was asked").told;
        for partition in [2, 3] {
            let waited = tenure(&zookeeper, partition, "m1-0").to.unwrap() - told;
            assert!((RELEASE_LIMIT - 500..RELEASE_LIMIT + SLACK).contains(&waited), "{waited} ms");
            assert!(delivered(&history, partition - 2, "m1", told, told + waited) > 0, "what stays flows");
        }
    });
}

/// At the first question; nobody starts it again.
fn a_listener_that_panics_holds_up_nothing(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "panicking");
    cluster.create_topic(name, 4, 1).unwrap();
    cluster.produce(name, numbered(400)).unwrap();
    run(async {
        let (log, first, second) = (Log::default(), Events::default(), Events::default());
        let one = start(cluster, name, "m1", &MORE, (&log, &first), |_: &What| Answer::Panic).await;
        log.wait_for_all(cluster, name).await;
        let two = start(cluster, name, "m2", &MORE, (&log, &second), |_: &What| Answer::AtOnce).await;
        owners(cluster, name, &SHARED).await;
        let (asked, late, failed, why) = listener(&one.metrics().await.unwrap());
        assert_eq!((late, failed), (0, asked));
        assert_eq!(why, "before the release of panicking-2, panicking-3: it panicked or stopped");
        cluster.produce(name, numbered(400)).unwrap();
        log.wait_for_all(cluster, name).await;
        let begun = now_ms();
        one.shutdown().await;
        assert!(now_ms() - begun < SLACK, "it took {} ms", now_ms() - begun);
        two.shutdown().await;
        let history = log.history(name);
        history.check(&GroupHistory::of(cluster, name));
        assert_eq!(history.duplicates(), 0);
        assert_eq!(first.all().len(), 1, "{:?}", first.all());
    });
}

/// Nothing else commits: a release that was not committed by the listener would give its records to the next once more.
fn a_listener_may_commit_what_is_released(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "committing");
    cluster.create_topic(name, 4, 1).unwrap();
    let load = Load::start(cluster, name);
    run(async {
        let (log, first, second) = (Log::default(), Events::default(), Events::default());
        let manual = [MORE[0], ("auto.commit.enable", "false")];
        let handle: Arc<OnceLock<ConsumerHandle>> = Arc::default();
        let own = Arc::clone(&handle);
        let one = start(cluster, name, "m1", &manual, (&log, &first), move |what: &What| match what {
            What::Releasing(_) => Answer::AfterCommit(own.get().expect("it has started").clone()),
            _ => Answer::AtOnce,
        })
        .await;
        assert!(handle.set(one.clone()).is_ok());
        wait_for_flow(&log, name, &[0, 1, 2, 3], 20).await;
        assert_eq!(GroupHistory::of(cluster, name).commits, []);
        let two = start(cluster, name, "m2", &manual, (&log, &second), |_: &What| Answer::AtOnce).await;
        wait_for_flow(&log, name, &[2, 3], 20).await;
        let released = wait_for_event(&first, What::Releasing(ReleaseReason::Rebalance)).await;
        for event in second.all() {
            let its =
                |(partition, position): (&i32, &Option<i64>)| released.positions[partition] == *position;
            assert!(event.positions.iter().all(its), "{event:?} goes on from {released:?}");
        }
        load.end();
        log.wait_for_all(cluster, name).await;
        one.shutdown().await;
        two.shutdown().await;
        let history = log.history(name);
        history.check(&GroupHistory::of(cluster, name));
        assert_eq!(history.duplicates(), 0);
    });
}
