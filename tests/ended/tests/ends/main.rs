//! A member leaves its group however its process ends, on real servers: what was handled is stored, and its nodes are
//! gone at the moment at which the process has ended, though its session would last much longer.

mod group;
mod page;
mod process;

use std::time::{Duration, Instant};

use group::Group;
use page::Page;
use process::Process;
use troupe_cluster::{Cluster, KafkaVersion, ProduceRecord};

const RECORDS: u32 = 4_000;
const PARTITIONS: i32 = 2;

fn cluster() -> &'static Cluster {
    static SHARED: std::sync::OnceLock<Cluster> = std::sync::OnceLock::new();
    SHARED.get_or_init(|| {
        let builder = Cluster::builder().kafka(KafkaVersion::V3_9_1).chroot(group::CHROOT);
        builder.session_timeouts(Duration::from_secs(2), Duration::from_secs(60)).start().expect("it starts")
    })
}

/// Starts a process that ends in this way, in a group of this name, on a topic of its own.
fn start(how: &str, name: &str) -> Process {
    start_with(how, name, &[])
}

fn start_with(how: &str, name: &str, more: &[&str]) -> Process {
    let cluster = cluster();
    cluster.create_topic(name, PARTITIONS, 1).expect("a topic is made");
    cluster
        .produce(name, (0..RECORDS).map(|number| ProduceRecord::value(number.to_string())))
        .expect("it is written");
    Process::start(how, name, &cluster.zookeeper_connect(), more)
}

/// What it handled is stored, to the record, and nobody is there any more.
fn check(name: &str, process: &Process) {
    check_group(name, process);
    assert_eq!(process.last_line(), "left threads [] sockets 0", "{name}");
}

fn check_group(name: &str, process: &Process) {
    let (mut group, handled) = (Group::of(cluster(), name), process.next_offsets());
    // where it began is stored as well
    group.committed.retain(|_, offset| *offset > 0);
    assert_eq!(group.committed, handled, "{name}");
    assert_eq!(group.ephemeral.keys().collect::<Vec<_>>(), [""; 0], "{name}");
}

fn ends_by_itself(how: &str) -> Process {
    let process = start(how, how);
    process.wait();
    check(how, &process);
    process
}

#[test]
fn by_sigterm() {
    let process = start("terminated", "sigterm");
    process.wait_for_handled(40);
    process.signal("TERM");
    process.wait();
    check("sigterm", &process);
    assert!(process.has("complete true"));
}

#[test]
fn by_sigint() {
    let process = start("terminated", "sigint");
    process.wait_for_handled(40);
    process.signal("INT");
    process.wait();
    check("sigint", &process);
    assert!(process.has("complete true"));
}

/// Handlers would get 4 s to finish; within a deadline it is half of that.
#[test]
fn by_sigterm_while_a_handler_hangs_it_ends_by_the_deadline() {
    let process =
        start_with("hung", "hung", &["rebalance.backoff.ms=3000", "troupe.shutdown.timeout.ms=1000"]);
    process.wait_for_handled(40);
    let begun = Instant::now();
    process.signal("TERM");
    process.wait();
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    check("hung", &process);
    assert!(process.has("complete false"));
    assert!(process.has_start_of("hung-0: the record at offset "));
}

/// The first second's are those of the one end, told more than once. Handlers would get 4 s to finish.
#[test]
fn by_sigterm_again_and_again_while_a_handler_hangs_its_end_is_cut_short() {
    let process = start_with("hung", "hurried", &["rebalance.backoff.ms=3000"]);
    process.wait_for_handled(40);
    let begun = Instant::now();
    process.signal_until_it_ends("TERM");
    let took = begun.elapsed();
    assert!(took > Duration::from_secs(1) && took < Duration::from_secs(3), "{took:?}");
    check("hurried", &process);
    assert!(process.has("complete false"));
    assert!(process.has("cut short by SIGTERM, after SIGTERM"));
    assert!(process.has_start_of("hurried-0: the record at offset "));
}

/// It waits for open connections, and those of the dashboard's pages are never done by themselves.
#[test]
fn by_sigterm_that_a_server_with_an_open_page_handles() {
    let process = start("served", "served");
    let page = Page::open(&process.wait_for("serving "));
    process.wait_for_handled(40);
    process.signal("TERM");
    process.wait();
    check("served", &process);
    assert!(process.has("served"));
    page.has_ended();
}

#[test]
fn its_system_is_stopped() {
    assert!(ends_by_itself("stopped").has("returned"));
}

#[test]
fn its_main_future_returns() {
    ends_by_itself("returned");
}

#[test]
fn its_main_future_returns_and_the_process_exits_at_once() {
    let process = start("exits", "exits");
    process.wait();
    check_group("exits", &process);
}

#[test]
fn its_main_future_panics() {
    ends_by_itself("panicked");
}

#[test]
fn a_task_that_pulls_ends_with_its_system() {
    ends_by_itself("pulled");
}

#[test]
fn tasks_of_two_members_are_waited_for_at_once() {
    assert!(ends_by_itself("both").has("at once true"));
}

#[test]
fn a_thread_that_pulls_comes_to_the_end_of_its_stream() {
    ends_by_itself("blocking");
}

#[test]
fn two_members_in_one_system() {
    ends_by_itself("two");
}

#[test]
fn members_in_systems_of_their_own() {
    ends_by_itself("apart");
}

#[test]
fn a_member_whose_handlers_have_lost_their_threads_leaves_its_group() {
    let process = ends_by_itself("arbiter");
    assert!(process.has("complete true"));
    assert!(process.has_start_of("again no actix System runs on this thread"));
}

#[test]
fn shut_down_three_times() {
    ends_by_itself("shutdown");
}

#[test]
fn without_a_system_it_does_not_start() {
    let process = Process::start("without", "without", &cluster().zookeeper_connect(), &[]);
    process.wait();
    assert!(process.has_start_of("refused no actix System runs on this thread"));
    assert_eq!(process.last_line(), "left threads [] sockets 0");
}
