//! What is wrong outside is named, and waited for where it may come right; nothing panics and nothing spins.

use std::process::Command;
use std::time::{Duration, Instant};

use troupe_cluster::{Cluster, KafkaVersion, free_port};

use crate::support::clusters::{CHROOT, shared};
use crate::support::group::Group;
use crate::support::load::numbered;
use crate::support::member::Member;
use crate::support::wait::until;
use crate::support::zk_log::was_created;

crate::on_each_version!(
    a_topic_that_is_missing_is_waited_for,
    a_member_that_cannot_be_read_is_planned_without,
    b03_a_bad_connect_string_or_chroot_is_named,
    b03_each_form_of_a_connect_string_reaches_its_tree,
);

/// While it waits, a member takes next to no time of a processor.
#[track_caller]
pub fn check_idle(member: &Member) {
    check_all_idle(&[member], Duration::from_secs(2), 0.2);
}

/// None of them takes more than this part of a processor, each by itself.
#[track_caller]
pub fn check_all_idle(members: &[&Member], time: Duration, limit: f64) {
    let (before, begun) = (members.iter().map(|it| it.cpu_time()).collect::<Vec<_>>(), Instant::now());
    // this is what is measured: nothing happens meanwhile
    std::thread::sleep(time);
    for (member, before) in members.iter().zip(before) {
        let used = (member.cpu_time() - before).as_secs_f64() / begun.elapsed().as_secs_f64();
        println!("idle: {:.2} % of a processor over {:?}", used * 100.0, begun.elapsed());
        assert!(used < limit, "{used:.3} of a processor");
    }
}

fn a_topic_that_is_missing_is_waited_for(version: KafkaVersion) {
    let group = Group::without_topic(shared(version), "late");
    let member = group.join("m", 1, &[]);
    member.wait_for_log(&["WARN", "topic does not exist", "/brokers/topics/late"]);
    check_idle(&member);
    group.cluster.create_topic("late", 2, 1).unwrap();
    group.cluster.produce("late", numbered(100)).unwrap();
    group.wait_for_owners(&["m-0", "m-0"]);
    group.wait_for_all();
    member.leave();
    let history = group.history();
    history.check(&group.zookeeper());
    assert_eq!(history.duplicates(), 0);
}

/// A Scala member would give up.
fn a_member_that_cannot_be_read_is_planned_without(version: KafkaVersion) {
    let group = Group::new(shared(version), "odd", 2);
    group.cluster.produce("odd", numbered(100)).unwrap();
    let member = group.join("m", 1, &[]);
    group.wait_for_owners(&["m-0", "m-0"]);
    let path = "/consumers/odd/ids/odd_a";
    zookeeper_shell(group.cluster, version, "create", path, &["not-json"]);
    member.wait_for_log(&["WARN", path, "planning without this member"]);
    let other = group.join("n", 1, &[]);
    group.wait_for_owners(&["m-0", "n-0"]);
    other.wait_for_log(&["WARN", path]);
    check_idle(&member);
    group.wait_for_all();
    member.leave();
    other.leave();
    group.history().check(&group.zookeeper());
}

/// A command of ZooKeeper's own shell, for we have no client of it here.
pub fn zookeeper_shell(cluster: &Cluster, version: KafkaVersion, command: &str, path: &str, more: &[&str]) {
    let (server, path) = (cluster.zookeeper().connect(), format!("{CHROOT}{path}"));
    let arguments = [&["-server", &server, command, &path], more].concat();
    let mut shell = cluster.java(version, "org.apache.zookeeper.ZooKeeperMain", &arguments).unwrap();
    shell.wait().unwrap();
}

fn b03_a_bad_connect_string_or_chroot_is_named(version: KafkaVersion) {
    let server = shared(version).zookeeper().connect();
    let nobody = format!("127.0.0.1:{}", free_port().unwrap());
    // 2: it cannot be; 3: it could not be reached
    let cases = [
        ("127.0.0.1:zwei".to_owned(), "zwei", 2),
        (format!("{server}/a,{server}/b"), "/a", 2),
        (format!("{server}/nowhere"), "/nowhere", 3),
        ("no-such-host.invalid:2181".to_owned(), "no-such-host.invalid", 3),
        (nobody.clone(), nobody.as_str(), 3),
    ];
    for (connect, named, code) in &cases {
        let begun = Instant::now();
        let outcome = Command::new(env!("CARGO_BIN_EXE_troupe"))
            .args(["consume", "--group", "bad", "--topic", "t", "--zookeeper", connect])
            .args(["--property", "zookeeper.session.timeout.ms=1500"])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&outcome.stderr);
        assert_eq!(outcome.status.code(), Some(*code), "{connect}: {errors}");
        let last = errors.lines().last().unwrap_or_default();
        assert!(last.starts_with("troupe: ") && last.contains(named), "{connect}: {errors}");
        assert!(!errors.contains("panicked"), "{errors}");
        assert!(begun.elapsed() < Duration::from_secs(15), "{connect} took {:?}", begun.elapsed());
    }
    assert!(!was_created(shared(version), "/nowhere"), "a chroot is never made");
}

fn b03_each_form_of_a_connect_string_reaches_its_tree(version: KafkaVersion) {
    let group = Group::new(shared(version), "forms", 2);
    let server = group.cluster.zookeeper().connect();
    for form in
        ["{}/kafka", "{},{}/kafka", "{}/kafka,{}/kafka", "{}/kafka/", "{}, {}/kafka", " {} , {}/kafka/ "]
    {
        group.cluster.produce("forms", numbered(20)).unwrap();
        let member = group.join_through(&form.replace("{}", &server), "m", 1, &[]);
        group.wait_for_owners(&["m-0", "m-0"]);
        group.wait_for_all_committed();
        member.leave();
    }
    let history = group.history();
    history.check(&group.zookeeper());
    assert_eq!(history.duplicates(), 0);

    // the root, where no brokers are
    let root = Group::without_topic(group.cluster, "forms-root");
    let brokers = format!("bootstrap.servers={}", root.cluster.bootstrap());
    let member = root.join_through(&format!("{server}/"), "m", 1, &[&brokers]);
    until("registration at the root", || {
        let there = was_created(root.cluster, "/consumers/forms-root/ids/forms-root_m");
        if there { Ok(()) } else { Err("none".to_owned()) }
    });
    member.leave();
    assert!(!was_created(root.cluster, "/kafka/consumers/forms-root"));
}
