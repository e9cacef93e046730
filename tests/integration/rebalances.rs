//! Rebalances that went wrong in the field.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use kafka_troupe::{ConsumerSystem, Record};
use troupe_cluster::{KafkaVersion, Proxy};

use crate::bad_input::check_all_idle;
use crate::support::clusters::{CHROOT, shared};
use crate::support::group::Group;
use crate::support::load::{Load, numbered};
use crate::support::member::Member;
use crate::support::rounds;
use crate::support::system::{Log, Recorder, config, now_ms, run, wait_for_owners};
use crate::support::wait::until;
use crate::support::zk_log::GroupHistory;

crate::on_each_version!(
    b01_a_member_cut_off_from_zookeeper_stops_and_comes_back_in_a_new_session,
    b07_a_stream_that_nobody_reads_holds_up_no_rebalance,
    b08_spare_members_are_idle_and_take_over,
);

/// Its brokers stay in reach. One clock for all: nothing is delivered a session timeout after the cut, nor while
/// another owns it.
fn b01_a_member_cut_off_from_zookeeper_stops_and_comes_back_in_a_new_session(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "cut-off");
    cluster.create_topic(name, 4, 1).unwrap();
    let load = Load::start(cluster, name);
    let proxy = Proxy::start(cluster.zookeeper().connect()).unwrap();
    let connect = proxy.address() + CHROOT;
    run(async {
        let log = Log::default();
        let start = async |member: &str, more: &[(&str, &str)]| {
            let handler = Recorder::factory(member, &log, |_: &Record| Ok(()));
            let system =
                ConsumerSystem::builder(config(cluster, name, member, more)).handle(name, 1, handler);
            system.start().await.unwrap()
        };
        let cut_off = [("zookeeper.connect", connect.as_str()), ("zookeeper.session.timeout.ms", "3000")];
        let one = start("m1", &cut_off).await;
        let two = start("m2", &[]).await;
        let shares = ["m1-0", "m1-0", "m2-0", "m2-0"];
        wait_for_owners(cluster, name, name, &shares).await;
        log.wait_for_more(100).await;
        let session = || GroupHistory::of(cluster, name).node("ids/cut-off_m1").unwrap().session;
        let before = session();
        let cut = now_ms();
        proxy.freeze();
        wait_for_owners(cluster, name, name, &["m2-0"; 4]).await;
        // enough to see whether the first goes on
        log.wait_for_more(400).await;
        let healed = now_ms();
        proxy.heal();
        wait_for_owners(cluster, name, name, &shares).await;
        let after = session();
        assert_ne!(after, before, "a new session");
        let owning = GroupHistory::of(cluster, name).owning_sessions(name, "m1");
        assert_eq!(owning, BTreeSet::from([after]));
        log.wait_for_more(100).await;
        load.end();
        log.wait_for_all(cluster, name).await;
        one.shutdown().await;
        two.shutdown().await;
        let history = log.history(name);
        history.check(&GroupHistory::of(cluster, name));
        let late = |at: i64| (cut + 3000..healed).contains(&at);
        let late = history.deliveries.iter().filter(|it| it.member == "m1" && it.at.is_some_and(late));
        assert_eq!(late.count(), 0, "cut at {cut}, healed at {healed}");
    });
}

/// Its queue is full for good.
fn b07_a_stream_that_nobody_reads_holds_up_no_rebalance(version: KafkaVersion) {
    let (cluster, name) = (shared(version), "unread");
    cluster.create_topic(name, 2, 1).unwrap();
    cluster.produce(name, numbered(20_000)).unwrap();
    run(async {
        let log = Log::default();
        let full = [("queued.max.message.chunks", "1"), ("fetch.message.max.bytes", "4096")];
        let one = ConsumerSystem::builder(config(cluster, name, "m1", &full)).pull(name, 1);
        let one = one.start().await.unwrap();
        let unread = one.streams(name);
        wait_for_owners(cluster, name, name, &["m1-0", "m1-0"]).await;
        let handler = Recorder::factory("m2", &log, |_: &Record| Ok(()));
        let two = ConsumerSystem::builder(config(cluster, name, "m2", &[])).handle(name, 1, handler);
        let two = two.start().await.unwrap();
        wait_for_owners(cluster, name, name, &["m1-0", "m2-0"]).await;
        let its = GroupHistory::of(cluster, name);
        let moved =
            |owner: &str| its.tenures.iter().find(|it| it.partition == 1 && it.thread == owner).unwrap();
        let after = moved("unread_m2-0").from.0 - moved("unread_m1-0").to.unwrap();
        assert!(after < 1000 + 4000, "claimed {after} ms after the release");
        drop(unread);
        one.shutdown().await;
        log.wait_for_all(cluster, name).await;
        two.shutdown().await;
        let history = log.history(name);
        history.check(&GroupHistory::of(cluster, name));
        assert_eq!(history.duplicates(), 0);
    });
}

/// Less than 2 % of a processor each: over 10 s here, over 60 s to close an issue.
fn b08_spare_members_are_idle_and_take_over(version: KafkaVersion) {
    let group = Group::new(shared(version), "spare", 1);
    let properties = ["zookeeper.session.timeout.ms=3000"];
    let mut one = group.join("m1", 1, &properties);
    group.wait_for_owners(&["m1-0"]);
    let spares = ["m2", "m3"].map(|member| group.join(member, 1, &properties));
    until("registration of all", || {
        let ids = group.zookeeper().children("ids");
        if ids.len() == 3 { Ok(()) } else { Err(format!("{ids:?}")) }
    });
    let time = Duration::from_secs(if rounds().is_some() { 60 } else { 10 });
    check_all_idle(&spares.each_ref(), time, 0.02);
    assert_eq!(group.zookeeper().children("ids").len(), 3, "they stay");
    group.cluster.produce("spare", numbered(100)).unwrap();
    group.wait_for_all();
    let killed = now_ms();
    one.kill();
    group.wait_for_owners(&["m2-0"]);
    let taken = group.zookeeper().tenures.last().unwrap().from.0 - killed;
    // the session, the server's tick, and a rebalance on a machine under load
    assert!(taken < 3000 + 500 + 3000, "taken over {taken} ms after the kill");
    group.cluster.produce("spare", numbered(100)).unwrap();
    group.wait_for_all();
    spares.into_iter().for_each(|spare| drop(spare.leave()));
    group.history().check(&group.zookeeper());
}

/// Range: who comes first by name has one more while they last.
fn ranged(partitions: usize, members: &[String]) -> Vec<String> {
    let (each, more) = (partitions / members.len(), partitions % members.len());
    let counts = (0..).map(|index: usize| each + usize::from(index < more));
    let its = members.iter().zip(counts);
    its.flat_map(|(member, count)| vec![format!("{member}-0"); count]).collect()
}

fn wait_for_range(group: &Group<'_>, members: &[String]) {
    let owners = ranged(46, members);
    group.wait_for_owners(&owners.iter().map(String::as_str).collect::<Vec<_>>());
}

/// Then half of them die at once. Once here, 20 times (`TROUPE_ROUNDS`) to close an issue.
#[test]
fn b06_sixteen_members_that_start_at_once_share_all() {
    (0..rounds().unwrap_or(1)).for_each(|round| crowd(&format!("crowd-{round}")));
}

fn crowd(name: &str) {
    let group = Group::new(shared(KafkaVersion::V1_1_1), name, 46);
    group.cluster.produce(name, numbered(4600)).unwrap();
    let names: Vec<String> = (10..26).map(|number| format!("m{number}")).collect();
    let begun = Instant::now();
    let mut members: Vec<Member> = names.iter().map(|name| group.join(name, 1, &[])).collect();
    let started = begun.elapsed();
    wait_for_range(&group, &names);
    println!("all were started within {started:?} and share all after {:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    group.wait_for_all();
    let rest = members.split_off(8);
    members.iter_mut().for_each(Member::kill);
    wait_for_range(&group, &names[8..]);
    group.cluster.produce(name, numbered(4600)).unwrap();
    group.wait_for_all();
    group.wait_for_all_committed();
    rest.into_iter().for_each(|member| drop(member.leave()));
    let (history, zookeeper) = (group.history(), group.zookeeper());
    history.check(&zookeeper);
    assert!(zookeeper.owners(name).is_empty());
}
