//! Handler actors: order, retry, acknowledgement, panics, and a handler that blocks its thread.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use actix::prelude::*;
use kafka_troupe::{ConsumerSystem, HandlerResult, Record};
use tokio::sync::Semaphore;
use troupe_cluster::{KafkaVersion, ProduceRecord};

use crate::support::clusters::shared;
use crate::support::load::numbered;
use crate::support::system::{Log, Recorder, config, now_ms, run, wait_for_owners};
use crate::support::wait::until_async;
use crate::support::zk_log::GroupHistory;

crate::on_each_version!(
    records_come_in_order_and_a_failed_one_again_before_the_next,
    a_handler_that_panics_is_made_anew_and_gets_its_record_again,
    only_what_a_handler_is_done_with_is_committed,
    b07_a_handler_that_blocks_its_thread_is_cut_off,
);

/// True once for each record with this offset.
fn once_at(offset: i64) -> impl Fn(&Record) -> bool + Clone + Send + Sync + Unpin {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    move |record| record.offset() == offset && seen.lock().unwrap().insert(record.partition())
}

fn records_come_in_order_and_a_failed_one_again_before_the_next(version: KafkaVersion) {
    let cluster = shared(version);
    cluster.create_topic("retried", 4, 1).unwrap();
    cluster.produce("retried", numbered(400)).unwrap();
    run(async {
        let (log, fails) = (Log::default(), once_at(33));
        let act = move |record: &Record| if fails(record) { Err("not now".into()) } else { Ok(()) };
        let config = config(cluster, "retried", "m", &[]);
        let system = ConsumerSystem::builder(config).handle("retried", 2, Recorder::factory("m", &log, act));
        let system = system.start().await.unwrap();
        let history = log.wait_for_all(cluster, "retried").await;
        for partition in 0..4 {
            let offsets: Vec<i64> = history.of(partition).map(|delivery| delivery.offset).collect();
            let expected: Vec<i64> = (0..=33).chain(33..100).collect();
            assert_eq!(offsets, expected, "partition {partition}");
        }
        system.shutdown().await;
        log.history("retried").check(&GroupHistory::of(cluster, "retried"));
    });
}

fn a_handler_that_panics_is_made_anew_and_gets_its_record_again(version: KafkaVersion) {
    let cluster = shared(version);
    cluster.create_topic("panicked", 2, 1).unwrap();
    cluster.produce("panicked", numbered(400)).unwrap();
    run(async {
        let (log, panics) = (Log::default(), once_at(50));
        let act = move |record: &Record| {
            assert!(!panics(record), "a handler's panic, as it should be");
            Ok(())
        };
        let config = config(cluster, "panicked", "m", &[]);
        let system = ConsumerSystem::builder(config).handle("panicked", 2, Recorder::factory("m", &log, act));
        let system = system.start().await.unwrap();
        let history = log.wait_for_all(cluster, "panicked").await;
        for partition in 0..2 {
            let offsets: Vec<i64> = history.of(partition).map(|delivery| delivery.offset).collect();
            let expected: Vec<i64> = (0..=50).chain(50..200).collect();
            assert_eq!(offsets, expected, "partition {partition}");
        }
        let status = system.metrics().await.unwrap();
        assert!(status.streams.iter().all(|stream| stream.handler_restarts == 1), "{:?}", status.streams);
        system.shutdown().await;
        log.history("panicked").check(&GroupHistory::of(cluster, "panicked"));
    });
}

/// Is done with a record when it is let.
struct Patient {
    log: Log,
    permits: Arc<Semaphore>,
}

impl Actor for Patient {
    type Context = Context<Self>;
}

impl Handler<Record> for Patient {
    type Result = ResponseFuture<HandlerResult>;

    fn handle(&mut self, record: Record, _: &mut Context<Self>) -> Self::Result {
        self.log.note("m", &record);
        let permits = Arc::clone(&self.permits);
        Box::pin(async move {
            permits.acquire().await?.forget();
            Ok(())
        })
    }
}

/// Commits on demand: nothing else writes offsets, not even the end.
fn only_what_a_handler_is_done_with_is_committed(version: KafkaVersion) {
    let cluster = shared(version);
    cluster.create_topic("demanded", 1, 1).unwrap();
    cluster.produce("demanded", numbered(20)).unwrap();
    let committed = || GroupHistory::of(cluster, "demanded").committed("demanded").get(&0).copied();
    run(async {
        let (log, permits) = (Log::default(), Arc::new(Semaphore::new(7)));
        let make = {
            let (log, permits) = (log.clone(), Arc::clone(&permits));
            move || Patient { log: log.clone(), permits: Arc::clone(&permits) }
        };
        let config = config(cluster, "demanded", "m", &[("auto.commit.enable", "false")]);
        let system = ConsumerSystem::builder(config).handle("demanded", 1, make).start().await.unwrap();
        until_async(
            "the eighth record",
            async || {
                if log.len() == 8 { Ok(()) } else { Err(format!("{}", log.len())) }
            },
        )
        .await;
        assert_eq!(committed(), None);
        assert_eq!(system.commit().await.unwrap().all(), Ok(1));
        assert_eq!(committed(), Some(7), "the eighth is in hand");
        assert_eq!(system.commit().await.unwrap().all(), Ok(0), "nothing is new");
        permits.add_permits(5);
        until_async("the thirteenth record", async || {
            if log.len() == 13 { Ok(()) } else { Err(format!("{}", log.len())) }
        })
        .await;
        system.commit().await.unwrap().all().unwrap();
        assert_eq!(committed(), Some(12));
        permits.add_permits(100);
        log.wait_for_all(cluster, "demanded").await;
        system.shutdown().await;
        assert_eq!(committed(), Some(12), "nobody asked for another commit");
        assert_eq!(log.len(), 20);
    });
}

/// It delays neither other streams nor a rebalance, and the record that it is in goes to the next owner as well.
fn b07_a_handler_that_blocks_its_thread_is_cut_off(version: KafkaVersion) {
    let cluster = shared(version);
    cluster.create_topic("blocked", 2, 1).unwrap();
    cluster.create_topic("flowing", 1, 1).unwrap();
    let to = |partition| ProduceRecord { partition: Some(partition), ..ProduceRecord::value("x") };
    cluster.produce("blocked", (0..10).map(|_| to(1))).unwrap();
    run(async {
        let log = Log::default();
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        let blocks = once_at(4);
        let block = move |record: &Record| {
            if record.partition() == 1 && blocks(record) {
                // an error: the test is over
                let _ = released.lock().unwrap().recv();
            }
            Ok(())
        };
        let properties = [("troupe.drain.timeout.ms", "500")];
        let one = ConsumerSystem::builder(config(cluster, "blocked", "m1", &properties))
            .handle("blocked", 1, Recorder::factory("m1", &log, block))
            .handle("flowing", 1, Recorder::factory("m1", &log, |_| Ok(())));
        let one = one.start().await.unwrap();
        wait_for_owners(cluster, "blocked", "blocked", &["m1-0", "m1-0"]).await;
        until_async("the record that blocks", async || {
            let last = log.history("blocked").of(1).map(|delivery| delivery.offset).last();
            if last == Some(4) { Ok(()) } else { Err(format!("{last:?}")) }
        })
        .await;

        cluster.produce("flowing", numbered(100)).unwrap();
        log.wait_for_all(cluster, "flowing").await;

        let begun = (Instant::now(), now_ms());
        let two = ConsumerSystem::builder(config(cluster, "blocked", "m2", &properties)).handle(
            "blocked",
            1,
            Recorder::factory("m2", &log, |_| Ok(())),
        );
        let two = two.start().await.unwrap();
        wait_for_owners(cluster, "blocked", "blocked", &["m1-0", "m2-0"]).await;
        let history = log.wait_for_all(cluster, "blocked").await;
        let took = begun.0.elapsed();
        assert!(took < Duration::from_secs(6), "the rebalance took {took:?}");
        let its = GroupHistory::of(cluster, "blocked");
        let moved = its.tenures.iter().find(|it| it.partition == 1 && it.thread == "blocked_m2-0").unwrap();
        assert!(moved.from.0 - begun.1 >= 500, "the handler had its time");
        let first = its.tenures.iter().find(|it| it.partition == 1 && it.thread == "blocked_m1-0").unwrap();
        let after = moved.from.0 - first.to.unwrap();
        // at once; the backoff is what the field case allows, the rest is for a loaded machine
        assert!(after < 1000 + 4000, "claimed {after} ms after the release");
        let second = history.of(1).find(|delivery| delivery.member == "m2").unwrap();
        assert_eq!(second.offset, 4, "the record that was cut off");

        release.send(()).unwrap();
        cluster.produce("blocked", (0..10).map(|number| to(number % 2))).unwrap();
        log.wait_for_all(cluster, "blocked").await;
        one.shutdown().await;
        two.shutdown().await;
        let history = log.history("blocked");
        history.check(&GroupHistory::of(cluster, "blocked"));
        assert_eq!(history.duplicates(), 1, "{history:?} {:?}", GroupHistory::of(cluster, "blocked").tenures);
    });
}
