//! One `consumer.id` for two processes, one after the other and both at once.

use std::time::{Duration, Instant};

use troupe_cluster::KafkaVersion;

use crate::support::clusters::shared;
use crate::support::group::Group;
use crate::support::load::Load;
use crate::support::wait::until;

crate::on_each_version!(
    b02_a_killed_member_that_comes_again_with_its_id_joins_when_its_old_session_ends,
    b02_a_second_live_member_with_the_same_id_is_refused,
);

const SESSION: &[&str] = &["zookeeper.session.timeout.ms=4000"];
/// Of ZooKeeper here, in milliseconds.
const TICK: i64 = 500;

fn b02_a_killed_member_that_comes_again_with_its_id_joins_when_its_old_session_ends(version: KafkaVersion) {
    let group = Group::new(shared(version), "revived", 2);
    let load = Load::start(group.cluster, "revived");
    let mut first = group.join("m", 1, SESSION);
    group.wait_for_owners(&["m-0", "m-0"]);
    group.wait_for_more(100);
    let old = group.registration("m").session.expect("it is ephemeral");
    first.kill();
    let second = group.join("m", 1, SESSION);
    until("registration in a new session", || {
        let node = group.zookeeper().node("ids/revived_m").and_then(|node| node.session);
        if node.is_some_and(|session| session != old) { Ok(()) } else { Err(format!("{node:?}")) }
    });
    group.wait_for_owners(&["m-0", "m-0"]);
    group.wait_for_more(100);

    let (zookeeper, node) = (group.zookeeper(), group.registration("m"));
    let joined = node.created.0 - zookeeper.ended[&old];
    println!("joined {joined} ms after the end of the old session");
    // the process takes its time to start on a loaded machine
    assert!((0..2 * TICK + 4000).contains(&joined), "joined {joined} ms after the end of the old session");
    for partition in 0..2 {
        let owner = zookeeper.node(&format!("owners/revived/{partition}")).expect("it is owned");
        assert_eq!(owner.session, node.session, "an owner of the new session");
    }
    load.end();
    group.wait_for_all();
    second.leave();
    group.history().check(&group.zookeeper());
}

fn b02_a_second_live_member_with_the_same_id_is_refused(version: KafkaVersion) {
    let group = Group::new(shared(version), "taken", 2);
    let load = Load::start(group.cluster, "taken");
    let first = group.join("m", 1, SESSION);
    group.wait_for_owners(&["m-0", "m-0"]);
    let before = group.registration("m");
    let begun = Instant::now();
    let mut second = group.join("other", 1, &[SESSION, &["consumer.id=m"]].concat());
    assert_eq!(second.wait().code(), Some(3));
    assert!(begun.elapsed() < Duration::from_secs(20), "refused after {:?}", begun.elapsed());
    let errors = second.errors();
    let refusal = format!("id in use by session 0x{:x}", before.session.expect("it is ephemeral"));
    assert!(errors.lines().last().is_some_and(|line| line.contains(&refusal)), "{errors}");

    // the first has noticed nothing
    group.wait_for_more(100);
    let after = group.registration("m");
    assert_eq!((after.session, after.created), (before.session, before.created));
    let zookeeper = group.zookeeper();
    assert_eq!(zookeeper.tenures.len(), 2, "{:?}", zookeeper.tenures);
    load.end();
    group.wait_for_all();
    first.leave();
    let history = group.history();
    history.check(&group.zookeeper());
    assert_eq!(history.duplicates(), 0);
}
