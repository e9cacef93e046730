//! Brokers that are missing, or that come back elsewhere.

use std::time::{Duration, Instant};

use troupe_cluster::KafkaVersion;

use crate::support::clusters::builder;
use crate::support::group::Group;
use crate::support::load::{Load, numbered};
use crate::support::rounds;
use crate::support::wait::until;

crate::on_each_version!(b10_partitions_without_a_leader_wait_alone_and_a_moved_broker_is_found);

/// Partitions are on one broker each: when it goes, they have no leader.
fn b10_partitions_without_a_leader_wait_alone_and_a_moved_broker_is_found(version: KafkaVersion) {
    let cluster = builder(version).brokers(2).start().unwrap();
    let group = Group::new(&cluster, "leaderless", 4);
    cluster.produce("leaderless", numbered(400)).unwrap();
    let placed = cluster.client().partitions("leaderless").unwrap();
    let on = |broker: i32| placed.iter().filter(move |its| its.leader == broker).map(|its| its.partition);
    cluster.broker(1).stop().unwrap();

    // (a) the healthy ones flow
    let member = group.join("m", 1, &[]);
    group.wait_for_owners(&["m-0"; 4]);
    until("what the other broker has", || {
        let history = group.history();
        let missing = on(0).find(|partition| history.of(*partition).count() < 100);
        missing.map_or(Ok(()), |partition| {
            Err(format!("partition {partition}: {:?}", history.of(partition).last()))
        })
    });
    assert!(on(1).all(|partition| group.history().of(partition).next().is_none()));

    // (a, c) the others begin when their leader comes, at another port
    cluster.broker(1).restart_on_new_port().unwrap();
    let client = cluster.client();
    until("leaders", || match client.partitions("leaderless") {
        Ok(placed) if placed.iter().all(|its| its.leader >= 0) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let back = Instant::now();
    group.wait_for_all();
    println!("all is read {:?} after the leader is back", back.elapsed());
    // refresh.leader.backoff.ms, a second, and more of it on a machine under load
    let limit = if rounds().is_some() { 1200 } else { 5000 };
    assert!(back.elapsed() < Duration::from_millis(limit), "{:?}", back.elapsed());

    // (c) under load, without a restart
    let load = Load::start(&cluster, "leaderless");
    group.wait_for_more(200);
    load.end();
    cluster.broker(0).restart_on_new_port().unwrap();
    let load = Load::start(&cluster, "leaderless");
    group.wait_for_more(200);
    load.end();
    group.wait_for_all();
    group.wait_for_owners(&["m-0"; 4]);
    member.leave();
    let history = group.history();
    history.check(&group.zookeeper());
    assert_eq!(history.duplicates(), 0);
}
