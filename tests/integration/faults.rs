//! Servers that are restarted under load, and a broker that is not there yet.

use troupe_cluster::KafkaVersion;

use crate::bad_input::check_idle;
use crate::support::clusters::builder;
use crate::support::group::Group;
use crate::support::load::{Load, numbered};

crate::on_each_version!(servers_are_restarted_under_load, b10_b_a_broker_that_is_missing_is_waited_for);

fn servers_are_restarted_under_load(version: KafkaVersion) {
    let cluster = builder(version).start().unwrap();
    let name = "restarted";
    let group = Group::new(&cluster, name, 4);
    let load = Load::start(&cluster, name);
    let properties = ["zookeeper.session.timeout.ms=20000"];
    let (one, two) = (group.join("m1", 1, &properties), group.join("m2", 2, &properties));
    group.wait_for_owners(&["m1-0", "m1-0", "m2-0", "m2-1"]);
    group.wait_for_more(100);

    cluster.broker(0).kill().unwrap();
    cluster.broker(0).restart().unwrap();
    group.wait_for_more(400);

    cluster.zookeeper().restart().unwrap();
    group.wait_for_more(400);

    cluster.zookeeper().kill().unwrap();
    group.wait_for_more(10);
    cluster.zookeeper().restart().unwrap();
    group.wait_for_more(400);

    // they still watch
    let three = group.join("m3", 1, &properties);
    group.wait_for_owners(&["m1-0", "m2-0", "m2-1", "m3-0"]);
    load.end();
    group.wait_for_all();
    for member in [one, two, three] {
        member.leave();
    }
    let (history, zookeeper) = (group.history(), group.zookeeper());
    history.check(&zookeeper);
    // sessions outlive all of it, so only what was handed over moved
    assert_eq!(history.duplicates(), 0);
    let committed: Vec<i64> = zookeeper.committed(name).into_values().collect();
    assert_eq!(committed, cluster.log_end_offsets(name).unwrap());
}

fn b10_b_a_broker_that_is_missing_is_waited_for(version: KafkaVersion) {
    let cluster = builder(version).start().unwrap();
    let group = Group::new(&cluster, "brokerless", 2);
    cluster.produce("brokerless", numbered(100)).unwrap();
    cluster.broker(0).stop().unwrap();
    let member = group.join("m", 1, &[]);
    member.wait_for_log(&["WARN", "no broker in /brokers/ids can be used"]);
    check_idle(&member);
    cluster.broker(0).restart().unwrap();
    group.wait_for_all();
    member.leave();
    let history = group.history();
    history.check(&group.zookeeper());
    assert_eq!(history.duplicates(), 0);
}
