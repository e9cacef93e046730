//! B30 of the field cases: a process that has nothing to do takes no processor time.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use troupe_cluster::{Cluster, KafkaVersion, ProduceRecord};

use crate::programs::Troupe;

/// What a second of processor time is counted in: USER_HZ is 100 on every Linux.
const TICKS_PER_SECOND: u64 = 100;
/// So long it is watched.
const WATCHED: Duration = Duration::from_secs(10);

/// Processor time that a process has taken, in ticks.
fn taken(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // the name may hold spaces; after it come 11 fields, then user and system time
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

fn assert_idle(troupe: &Troupe, while_: &str) {
    // what it was at has to end first
    sleep(Duration::from_secs(2));
    let before = taken(troupe.id());
    sleep(WATCHED);
    let ticks = taken(troupe.id()) - before;
    let percent = ticks * 100 / (WATCHED.as_secs() * TICKS_PER_SECOND);
    println!("{while_}: {ticks} ticks in {WATCHED:?}");
    assert!(percent < 5, "{while_}: {percent} % of a processor");
}

#[test]
fn with_full_queues_and_with_no_broker_it_takes_no_processor_time_and_goes_on_within_two_seconds() {
    let cluster = Cluster::start(KafkaVersion::V3_9_1, 1).unwrap();
    cluster.create_topic("idle", 4, 1).unwrap();
    cluster.wait_for_leaders("idle").unwrap();
    let large = "x".repeat(10_000);
    let records = (0..4_000).map(|number| ProduceRecord::value(format!("{number} {large}")));
    cluster.produce("idle", records).unwrap();
    // it is not read: the pipe is full, and both queues
    let troupe = Troupe::consume(&cluster, "idle", "idle", &["--from-beginning", "--threads", "2"]);
    assert_eq!(troupe.next_lines(1).len(), 1);
    assert_idle(&troupe, "all queues are full");
    let began = Instant::now();
    assert_eq!(troupe.next_lines(100).len(), 100);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(troupe.next_lines(3_899).len(), 3_899);

    cluster.broker(0).stop().unwrap();
    assert_idle(&troupe, "there is no broker");
    cluster.broker(0).restart().unwrap();
    cluster.wait_for_leaders("idle").unwrap();
    let began = Instant::now();
    cluster.produce("idle", [ProduceRecord::value("after")]).unwrap();
    assert_eq!(troupe.next_lines(1), ["after"]);
    // refresh.leader.backoff.ms, a second, and more of it on a machine under load
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_idle(&troupe, "nothing comes");
}
